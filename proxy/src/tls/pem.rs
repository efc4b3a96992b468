//! PEM from DER, and certificates that follow each other in DER.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// Label of a certificate.
pub const CERTIFICATE: &str = "CERTIFICATE";
/// Label of a key (PKCS #8).
pub const PRIVATE_KEY: &str = "PRIVATE KEY";
/// Label of a revocation list.
pub const REVOCATION_LIST: &str = "X509 CRL";

/// Characters per line of PEM (RFC 7468, section 2).
const COLUMNS: usize = 64;

/// Returns a PEM block with this label.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::with_capacity(text.len() + text.len() / COLUMNS + 64);
    pem.push_str("-----BEGIN ");
    pem.push_str(label);
    pem.push_str("-----\n");
    let mut rest = &*text;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(COLUMNS));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END ");
    pem.push_str(label);
    pem.push_str("-----\n");
    pem
}

/// Returns the certificates in bytes that have one after the other; `None` if there is anything else.
pub fn split(mut der: &[u8]) -> Option<Vec<CertificateDer<'_>>> {
    let mut certificates = Vec::new();
    while !der.is_empty() {
        let (rest, _) = X509Certificate::from_der(der).ok()?;
        certificates.push(CertificateDer::from(&der[..der.len() - rest.len()]));
        der = rest;
    }
    Some(certificates)
}
