//! CA certificates that the operating system trusts; without a file of them, the CA certificates that Mozilla trusts.

use std::path::Path;

use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use super::file::file;
use crate::tls::Problem;
use crate::tls::pem::{CERTIFICATE, pem};
use crate::tls::store::NamedContent;

/// Environment variable with the path of the file, as for OpenSSL.
const VARIABLE: &str = "SSL_CERT_FILE";

/// Paths of the file on Debian and Alpine, Fedora and RHEL, openSUSE, and others.
const FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];

/// Name of the certificates in the binary, for errors and pages.
const BUILT_IN: &str = "the built-in CA certificates";

/// Reads the file that the environment names, else the first existing file, else returns the certificates in the
/// binary.
pub(in crate::control) fn authorities() -> Result<NamedContent, Problem> {
    let named = std::env::var(VARIABLE).ok();
    let named = named.filter(|path| !path.is_empty());
    find(named.as_deref(), &FILES)
}

fn find(named: Option<&str>, files: &[&str]) -> Result<NamedContent, Problem> {
    let mut present = files.iter().filter(|path| Path::new(path).exists());
    match named.or_else(|| present.next().copied()) {
        Some(path) => file(&path.into()),
        // as in an image that contains only the binary
        None => Ok((BUILT_IN.into(), built_in())),
    }
}

/// Returns the certificates in the binary, in PEM.
fn built_in() -> Vec<u8> {
    let certificates = TLS_SERVER_ROOT_CERTS.iter();
    let blocks = certificates.map(|certificate| pem(CERTIFICATE, certificate));
    blocks.collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::ProblemKind;
    use crate::tls::material::{Authorities, AuthoritiesPem};

    #[test]
    fn built_in_certificates_are_used_where_the_system_has_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let (there, lost) = (path("there"), path("lost"));
        std::fs::write(&there, "of the system").unwrap();
        let place = |named, files: &[&str]| find(named, files).map(|(place, _)| place.to_string());
        assert_eq!(place(None, &[&lost]).unwrap(), BUILT_IN);
        assert_eq!(place(None, &[&lost, &there]).unwrap(), there);
        assert_eq!(place(Some(&there), &[]).unwrap(), there);
        // a configured file is not replaced
        assert_eq!(
            place(Some(&lost), &[&there]).unwrap_err().kind,
            ProblemKind::Missing
        );
    }

    #[test]
    fn every_built_in_certificate_is_trusted() {
        let bytes = built_in();
        let pem = AuthoritiesPem {
            authorities: (BUILT_IN, &bytes),
            revoked: None,
            // an error if one certificate cannot be used
            is_lenient: false,
        };
        let read = Authorities::read(pem).unwrap();
        assert_eq!(read.facts.len(), TLS_SERVER_ROOT_CERTS.len());
        assert!(read.facts.len() > 100);
    }
}
