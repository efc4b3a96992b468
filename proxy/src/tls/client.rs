//! Settings and material to what connections to endpoints handshake with.
//!
//! Invariant: the same settings and the same material are the same [`ClientTls`], see [`super::Store::client`], so that
//! connections and sessions are used again across reloads; anything else has another number and sessions of its own, so
//! that nothing outlives the material that let it in. One whose material never was good refuses every connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::{DnsName, ServerName};

use super::server_verify::{AcceptedNames, ServerVerifier};
use super::{Authorities, AuthoritySource, Identity, IdentitySource};

/// TLS settings towards endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientSettings {
    /// The settings that it was made from.
    pub mode: ClientMode,
    /// The proxy's own certificate, if one is shown.
    pub identity: Option<IdentitySource>,
    /// The authorities that must have signed the certificate of the server; `None` if nothing is verified.
    pub authorities: Option<AuthoritySource>,
    /// Of these names the certificate must carry one; empty for what `naming` says.
    pub names: Vec<Arc<str>>,
    /// Trust domains of which the certificate must have a SPIFFE id, where no name is known; empty for any certificate.
    pub trust_domains: Vec<Arc<str>>,
    /// The name that the server is asked for.
    pub naming: Naming,
    /// Why it cannot be spoken at all, if so.
    pub refused: Option<Arc<str>>,
}

impl<'a> From<&'a ClientSettings> for AcceptedNames<'a> {
    fn from(settings: &'a ClientSettings) -> Self {
        Self {
            names: &settings.names,
            trust_domains: &settings.trust_domains,
        }
    }
}

/// The settings that it was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientMode {
    /// The mesh's identities on both sides, without a rule that says so.
    Automatic,
    /// The mesh's identities on both sides.
    IstioMutual,
    /// Certificates on both sides.
    Mutual,
    /// The server alone has a certificate.
    #[default]
    Simple,
}

impl ClientMode {
    /// As it is written in rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "ISTIO_MUTUAL (automatic)",
            Self::IstioMutual => "ISTIO_MUTUAL",
            Self::Mutual => "MUTUAL",
            Self::Simple => "SIMPLE",
        }
    }

    /// Whether both sides are the mesh's.
    pub const fn is_mesh(self) -> bool {
        matches!(self, Self::Automatic | Self::IstioMutual)
    }
}

/// The name that a server is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Naming {
    /// This one. It says nothing about the certificate.
    Fixed(Arc<str>),
    /// That of the request; where no other names are known, the certificate must be for it.
    #[default]
    Host,
}

/// The protocol inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Bytes, of no request: there is no host to ask for.
    Bytes,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// ALPN of HTTP/2.
const H2: &[u8] = b"h2";

/// ALPN within the mesh, as Istio's sidecars offer it: what is inside, the mesh, and what servers agree on.
///
/// `istio-peer-exchange` is not offered: who agrees on it sends the metadata of the workload before the bytes.
const MESH_BYTES: [&[u8]; 1] = [b"istio"];
const MESH_HTTP1: [&[u8]; 3] = [b"istio-http/1.1", b"istio", b"http/1.1"];
const MESH_HTTP2: [&[u8]; 3] = [b"istio-h2", b"istio", H2];

/// Names of servers, up to TLS 1.2 and from 1.3 on, of which sessions are kept to be resumed.
const SESSIONS_MAX: usize = 1_024;

/// What connections handshake with.
pub struct ClientTls {
    /// Unique, also over time.
    pub serial: u64,
    /// What it follows from.
    pub settings: ClientSettings,
    /// The proxy's own certificate, for pages.
    pub identity: Option<Arc<Identity>>,
    /// Who signs servers' certificates, for pages.
    pub authorities: Option<Arc<Authorities>>,
    terms: Result<Terms, Arc<str>>,
}

/// The configuration for rustls.
struct Terms {
    fixed: Option<ServerName<'static>>,
    bytes: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}

impl Eq for ClientTls {}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("serial", &self.serial)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// For pages: names of places, no material.
impl fmt::Display for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClientSettings {
            mode,
            identity,
            authorities,
            names,
            trust_domains,
            naming,
            ..
        } = &self.settings;
        f.write_str(mode.as_str())?;
        match naming {
            Naming::Fixed(name) => write!(f, ", sni {name}")?,
            Naming::Host => f.write_str(", sni is the host")?,
        }
        if let Some(source) = identity {
            write!(f, ", shows {source}")?;
        }
        match (authorities, &**names, naming) {
            (None, _, _) => f.write_str(", verifies nothing")?,
            (Some(source), [], Naming::Host) => write!(f, ", verifies by {source}, for the host")?,
            (Some(source), [], _) if !trust_domains.is_empty() => {
                let domains = trust_domains.join(" or ");
                write!(f, ", verifies by {source}, for any workload of {domains}")?;
            }
            (Some(source), [], _) => write!(f, ", verifies by {source}, for any name")?,
            (Some(source), names, _) => {
                write!(f, ", verifies by {source}, for {}", names.join(" or "))?;
            }
        }
        match self.refusal() {
            Some(refusal) => write!(f, "; connections fail: {refusal}"),
            None => Ok(()),
        }
    }
}

/// What a [`ClientTls`] is made of apart from its settings.
#[derive(Default)]
pub struct Material {
    /// The proxy's own certificate.
    pub identity: Option<Arc<Identity>>,
    /// Who signs servers' certificates.
    pub authorities: Option<Arc<Authorities>>,
}

impl ClientTls {
    /// Makes it, without any session yet. What is wanted and missing makes it refuse every connection.
    pub fn new(serial: u64, settings: ClientSettings, material: Material) -> Self {
        let terms = Terms::new(&settings, &material).map_err(Arc::from);
        Self {
            serial,
            settings,
            identity: material.identity,
            authorities: material.authorities,
            terms,
        }
    }

    /// Why it refuses every connection, if it does. Names no file.
    pub fn refusal(&self) -> Option<&Arc<str>> {
        self.terms.as_ref().err()
    }

    /// Whether the settings depend on the host of a request.
    pub fn wants_host(&self) -> bool {
        self.settings.naming == Naming::Host
    }

    /// Whether it was made of this, with these settings.
    pub(super) fn is_made_of(&self, material: &Material) -> bool {
        let same = |own: Option<usize>, other: Option<usize>| own == other;
        let at = |one: &Option<Arc<Identity>>| one.as_ref().map(|one| Arc::as_ptr(one) as usize);
        let by = |one: &Option<Arc<Authorities>>| one.as_ref().map(|one| Arc::as_ptr(one) as usize);
        same(at(&self.identity), at(&material.identity))
            && same(by(&self.authorities), by(&material.authorities))
    }

    /// What to handshake with, given the host of the request if there is one.
    ///
    /// # Errors
    ///
    /// Why there can be no handshake.
    pub fn terms(
        &self,
        inside: Inside,
        host: Option<&ServerName<'static>>,
    ) -> Result<(Arc<ClientConfig>, ServerName<'static>), Arc<str>> {
        let terms = self.terms.as_ref().map_err(Arc::clone)?;
        let config = match inside {
            Inside::Bytes => &terms.bytes,
            Inside::Http1 => &terms.http1,
            Inside::Http2 => &terms.http2,
        };
        // an address is never sent as a name (RFC 6066, section 3)
        let nobody = || ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let name = match (&terms.fixed, host) {
            (Some(fixed), _) => fixed.clone(),
            (None, Some(host)) => host.clone(),
            (None, None) if inside == Inside::Bytes => nobody(),
            (None, None) => {
                return Err("the request's host is no name that can be asked for".into());
            }
        };
        Ok((Arc::clone(config), name))
    }

    /// Whether a server that agreed on this protocol, or on none, speaks HTTP/2 inside.
    pub fn agreed_on_http2(&self, protocol: Option<&[u8]>) -> bool {
        let Some(protocol) = protocol else {
            return false;
        };
        // between sidecars the port says what is spoken
        protocol == H2 || (self.settings.mode.is_mesh() && MESH_HTTP2.contains(&protocol))
    }
}

/// The name of a server as TLS wants it; `None` for a text that is none.
pub fn server_name(text: &str) -> Option<ServerName<'static>> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ip.into());
    }
    let name = DnsName::try_from(text.to_ascii_lowercase()).ok()?;
    Some(ServerName::DnsName(name))
}

impl Terms {
    fn new(settings: &ClientSettings, material: &Material) -> Result<Self, String> {
        if let Some(refused) = &settings.refused {
            return Err(refused.to_string());
        }
        if settings.identity.is_some() && material.identity.is_none() {
            return Err("there is no usable client certificate".to_owned());
        }
        if settings.authorities.is_some() && material.authorities.is_none() {
            return Err("there are no usable CA certificates".to_owned());
        }
        let fixed = match &settings.naming {
            Naming::Fixed(name) => {
                Some(server_name(name).ok_or_else(|| format!("`{name}` is no name for SNI"))?)
            }
            Naming::Host => None,
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        // Sessions of connections whose server's name is verified must not be those of others.
        let sessions = || Resumption::in_memory_sessions(SESSIONS_MAX);
        let by_host = settings.naming == Naming::Host && settings.names.is_empty();
        let named = config(settings, material, &provider, by_host)?;
        let nameless = config(settings, material, &provider, false)?;
        let is_mesh = settings.mode.is_mesh();
        let with_alpn = |config: &ClientConfig, resumption: &Resumption, inside: Inside| {
            let mut config = config.clone();
            config.resumption = resumption.clone();
            let names: &[&[u8]] = match inside {
                Inside::Bytes if is_mesh => &MESH_BYTES,
                Inside::Http1 if is_mesh => &MESH_HTTP1,
                Inside::Http2 if is_mesh => &MESH_HTTP2,
                Inside::Http2 => &[H2],
                Inside::Bytes | Inside::Http1 => &[],
            };
            config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        let http = sessions();
        Ok(Self {
            fixed,
            bytes: with_alpn(&nameless, &sessions(), Inside::Bytes),
            http1: with_alpn(&named, &http, Inside::Http1),
            http2: with_alpn(&named, &http, Inside::Http2),
        })
    }
}

fn config(
    settings: &ClientSettings,
    material: &Material,
    provider: &Arc<CryptoProvider>,
    by_host: bool,
) -> Result<ClientConfig, String> {
    let authorities = match &settings.authorities {
        Some(_) => material.authorities.as_deref(),
        None => None,
    };
    let verifier = ServerVerifier::new(authorities, settings.into(), by_host, provider)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(match &material.identity {
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(Own(Arc::clone(&identity.certified))))
        }
        None => builder.with_no_client_auth(),
    })
}

/// For servers that nothing is verified of, as the kubelet probes them.
///
/// # Errors
///
/// When the library has no common protocol version.
pub fn unverified() -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = ServerVerifier::new(None, AcceptedNames::default(), false, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| error.to_string())?;
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(Arc::new(builder.with_no_client_auth()))
}

/// Shows one certificate to everyone who asks.
struct Own(Arc<CertifiedKey>);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
