//! What is known of the other side of a TLS connection, once the handshake is over.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{CommonState, HandshakeKind, ProtocolVersion};
use rustls_pki_types::CertificateDer;

use super::Facts;
use super::digest::{hex, sha256};

/// The other side of a TLS connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The version that is spoken.
    pub version: Option<&'static str>,
    /// The cipher suite, as the standard names it.
    pub cipher: Option<&'static str>,
    /// The client's own certificate, if it showed one.
    certificate: Option<CertificateDer<'static>>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

impl Peer {
    /// What a connection says after its handshake.
    pub fn of(session: &CommonState) -> Self {
        let certificates = session.peer_certificates().unwrap_or_default();
        let suite = session.negotiated_cipher_suite();
        Self {
            version: session.protocol_version().map(version),
            cipher: suite.and_then(|suite| suite.suite().as_str()),
            certificate: certificates.first().map(|one| one.clone().into_owned()),
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// What the client's certificate says; `None` if it showed none, or one that only a verifier of anything lets in.
    pub fn certificate(&self) -> Option<PeerCertificate> {
        let der = self.certificate.as_ref()?;
        Some(PeerCertificate {
            facts: Facts::read(der).ok()?,
            hash: hex(&sha256(der)),
            pem: pem(der),
        })
    }
}

/// A client's certificate, as it is told to others.
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    /// What it says.
    pub facts: Facts,
    /// Its SHA-256: lower-case hexadecimal digits.
    pub hash: String,
    /// The whole of it.
    pub pem: String,
}

/// Columns of PEM (RFC 7468, section 2).
const COLUMNS: usize = 64;

fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = String::with_capacity(text.len() + text.len() / COLUMNS + 64);
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = &*text;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(COLUMNS));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

/// The name that Envoy and Go use.
fn version(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "unknown",
    }
}
