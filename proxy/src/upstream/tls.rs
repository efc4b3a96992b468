//! TLS to an endpoint: settings, server name, and failure reasons as text.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError, Error as TlsError};
use rustls_pki_types::ServerName;

use super::Protocol;
use super::stream::Stream;
use crate::tls::client::server_name;
use crate::tls::encrypted::{Encrypted, Failure, Reason};
use crate::tls::peer::{Peer, PeerCertificate};
use crate::tls::{ClientTls, Identity, Inside, WrongNames};
use traffic::connection::UpstreamTls;
use traffic::error::{Error, Kind};

/// Request host used as the TLS server name of connections.
#[derive(Debug)]
pub struct Host {
    /// Identifier, unique in the worker.
    pub serial: u64,
    /// Server name to send; `None` if the host is no valid name.
    pub name: Option<ServerName<'static>>,
    /// Last use, by a counter of the worker.
    pub used: Cell<u64>,
}

impl Host {
    /// Returns the host of an authority, for connections that no other request uses.
    pub fn of(authority: &str) -> Rc<Self> {
        Rc::new(Self {
            serial: 0,
            name: server_name(bare(authority)),
            used: Cell::new(0),
        })
    }
}

/// TLS for a request.
#[derive(Clone, Copy, Debug)]
pub struct TlsTarget<'a> {
    /// TLS settings.
    pub client: &'a Arc<dyn UpstreamTls>,
    /// Host of the request, if the TLS settings depend on it.
    pub host: Option<&'a Rc<Host>>,
}

/// TLS for a connection.
#[derive(Clone, Debug)]
pub struct ConnectionTls {
    /// TLS settings.
    pub client: Arc<dyn UpstreamTls>,
    /// Host of its requests, if the TLS settings depend on it.
    pub host: Option<Rc<Host>>,
}

impl From<TlsTarget<'_>> for ConnectionTls {
    fn from(target: TlsTarget<'_>) -> Self {
        Self {
            client: Arc::clone(target.client),
            host: target.host.cloned(),
        }
    }
}

/// Result of the handshake with an endpoint.
#[derive(Clone, Debug)]
pub struct NegotiatedTls {
    /// Negotiated version.
    pub version: Option<&'static str>,
    /// Cipher suite, by OpenSSL's name.
    pub cipher: Option<&'static str>,
    /// Certificate of the endpoint.
    pub certificate: Option<PeerCertificate>,
    /// Certificate of the proxy, if it has one.
    pub own: Option<Arc<Identity>>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

impl ConnectionTls {
    fn client(&self) -> &ClientTls {
        ClientTls::of(&*self.client)
    }

    /// Fails if the TLS settings are unusable, before a connection is opened.
    ///
    /// # Errors
    ///
    /// [`Kind::ConnectFailed`] with the reason.
    pub fn check(&self) -> Result<(), Error> {
        match self.client().refusal() {
            Some(reason) => Err(refused(reason)),
            None => Ok(()),
        }
    }

    /// Performs the handshake over a connected socket.
    ///
    /// # Errors
    ///
    /// [`Kind::ConnectFailed`] with the reason; no byte of a request was sent.
    pub async fn shake_hands(
        &self,
        stream: Stream,
        inside: Inside,
    ) -> Result<(Stream, NegotiatedTls), Error> {
        let host = self.host.as_ref().and_then(|host| host.name.as_ref());
        let terms = self.client().terms(inside, host);
        let (config, name) = terms.map_err(|reason| refused(&reason))?;
        let connecting = Encrypted::connect(stream, config, name);
        let encrypted = Box::pin(connecting).await;
        let encrypted = encrypted.map_err(|failure| refused(&failure_text(&failure)))?;
        let session = encrypted.session();
        if inside == Inside::Http2 && !self.client().agreed_on_http2(session.alpn_protocol()) {
            return Err(refused("the server does not agree on HTTP/2 (ALPN h2)"));
        }
        let peer = Peer::of(session);
        let agreed = NegotiatedTls {
            version: peer.version,
            cipher: peer.cipher,
            certificate: peer.certificate,
            own: self.client().identity.clone(),
            resumed: peer.resumed,
        };
        Ok((Stream::Tls(Box::new(encrypted)), agreed))
    }
}

impl From<Protocol> for Inside {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Http1 => Self::Http1,
            Protocol::Http2 => Self::Http2,
        }
    }
}

/// Returns the alert by which a server refuses the client after the client's handshake: in TLS 1.3 a client learns that
/// its certificate is rejected only when it reads. The server has processed no request.
pub fn late_refusal(error: &io::Error) -> Option<AlertDescription> {
    use AlertDescription as A;
    match error.get_ref()?.downcast_ref()? {
        TlsError::AlertReceived(
            alert @ (A::AccessDenied
            | A::BadCertificate
            | A::CertificateExpired
            | A::CertificateRequired
            | A::CertificateRevoked
            | A::CertificateUnknown
            | A::DecryptError
            | A::HandshakeFailure
            | A::UnknownCA
            | A::UnsupportedCertificate),
        ) => Some(*alert),
        _ => None,
    }
}

/// Returns the request error of a late refusal.
pub fn refused_late(alert: AlertDescription) -> Error {
    refused(&in_words(&TlsError::AlertReceived(alert)))
}

fn refused(reason: &str) -> Error {
    Error::new(Kind::ConnectFailed).with_transport(format!("TLS_error: {reason}"))
}

/// Returns the reason of a failed handshake as text.
fn failure_text(failure: &Failure) -> String {
    match failure.error() {
        Some(error) => in_words(error),
        None if failure.reason == Reason::Closed => {
            "the server closed the connection in the handshake".to_owned()
        }
        None => failure.to_string(),
    }
}

/// Returns a TLS error as text.
pub fn in_words(error: &TlsError) -> String {
    use CertificateError as C;
    let words = match error {
        TlsError::InvalidCertificate(error) => match error {
            C::UnknownIssuer => "unknown issuer: no CA that is trusted signed the certificate",
            C::Expired | C::ExpiredContext { .. } => "the certificate has expired",
            C::NotValidYet | C::NotValidYetContext { .. } => "the certificate is not valid yet",
            C::Revoked => "the certificate is revoked",
            C::UnknownRevocationStatus => {
                "no list of revoked certificates is by the certificate's issuer"
            }
            C::ExpiredRevocationList | C::ExpiredRevocationListContext { .. } => {
                "the list of revoked certificates is out of date"
            }
            C::NotValidForName => "name mismatch: the certificate is for none of the names wanted",
            C::Other(other) if other.0.is::<WrongNames>() => {
                return format!("name mismatch: {}", other.0);
            }
            C::NotValidForNameContext {
                expected,
                presented,
            } => {
                let wanted = expected.to_str();
                let names: Vec<&str> = presented.iter().map(|name| inner(name)).collect();
                let names = names.join(", ");
                return format!("name mismatch: the certificate is for {names}, not for {wanted}");
            }
            other => return format!("the certificate cannot be used: {other}"),
        },
        TlsError::AlertReceived(alert) => {
            return format!("handshake failed: the server sent the alert {alert:?}");
        }
        TlsError::InvalidMessage(_) => "the server does not speak TLS",
        other => return other.to_string(),
    };
    words.to_owned()
}

/// Extracts the name from rustls's form, `DnsName("a.example")`.
fn inner(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}

/// Returns the host of an authority, without its port and the brackets of an IPv6 address.
pub fn bare(authority: &str) -> &str {
    if let Some(inner) = authority.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner);
    }
    authority.split(':').next().unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    #[test]
    fn host_of_an_authority_has_no_port() {
        for (authority, host) in [
            ("a.example", "a.example"),
            ("a.example:8443", "a.example"),
            ("10.0.0.1:80", "10.0.0.1"),
            ("[::1]:443", "::1"),
            ("[::1]", "::1"),
            ("", ""),
        ] {
            assert_eq!(super::bare(authority), host);
        }
    }
}
