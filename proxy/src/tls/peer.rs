//! Peer of a TLS connection, after the handshake.

use std::sync::OnceLock;

use rustls::{CommonState, HandshakeKind, ProtocolVersion};
use rustls_pki_types::CertificateDer;

use super::ciphers::openssl_name;
use super::digest::{hex, sha256};
use super::material::facts;
use super::pem::{CERTIFICATE, pem};
use traffic::certificate::Facts;

/// Peer of a TLS connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Negotiated version.
    pub version: Option<&'static str>,
    /// Cipher suite, by OpenSSL's name if it has one.
    pub cipher: Option<&'static str>,
    /// Certificate of the peer, if it presented one.
    pub certificate: Option<PeerCertificate>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

impl Peer {
    /// Returns the peer of a session after its handshake.
    pub fn of(session: &CommonState) -> Self {
        let certificates = session.peer_certificates().unwrap_or_default();
        let suite = session.negotiated_cipher_suite();
        Self {
            version: session.protocol_version().map(version),
            cipher: suite.and_then(|suite| suite.suite().as_str().map(openssl_name)),
            certificate: certificates.first().map(PeerCertificate::new),
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

/// Certificate of the peer, parsed on first use.
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    der: CertificateDer<'static>,
    facts: OnceLock<Option<Facts>>,
}

/// Compares the encoded bytes.
impl PartialEq for PeerCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for PeerCertificate {}

impl PeerCertificate {
    fn new(certificate: &CertificateDer<'_>) -> Self {
        Self {
            der: certificate.clone().into_owned(),
            facts: OnceLock::new(),
        }
    }
}

impl traffic::certificate::PeerCertificate for PeerCertificate {
    fn facts(&self) -> Option<&Facts> {
        let facts = self.facts.get_or_init(|| facts::read(&self.der).ok());
        facts.as_ref()
    }

    fn hash(&self) -> String {
        hex(&sha256(&self.der))
    }

    fn encoded_pem(&self) -> String {
        percent_encode(&pem(CERTIFICATE, &self.der))
    }
}

/// Percent-encodes bytes with a meaning in headers; of PEM: line ends, spaces, `+`, `/` and `=`.
pub fn percent_encode(pem: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(pem.len() + pem.len() / 8);
    for byte in pem.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    out
}

/// Returns the version's name in Envoy and Go.
fn version(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "unknown",
    }
}
