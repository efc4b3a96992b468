//! Certificates of authorities.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::Check;
use crate::diagnostic::codes::istio::MC007;
use crate::span::Span;

/// Adds the text of authorities to those before.
pub(super) fn authority(pem: &str, span: Span, all: &mut String, check: &mut Check<'_>) {
    if !is_of_authorities(pem) {
        let message =
            "the text has no certificate of an authority in PEM, or one that cannot be read";
        let found = check.error(MC007, span, message);
        found.help("write a block from `-----BEGIN CERTIFICATE-----` on, by `pem: |`");
    }
    all.push_str(pem);
    all.push('\n');
}

fn is_of_authorities(pem: &str) -> bool {
    let mut known = RootCertStore::empty();
    let mut certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    let is_valid = certificates.all(|one| one.is_ok_and(|one| known.add(one).is_ok()));
    is_valid && !known.is_empty()
}
