//! Certificate of a run, and TLS clients that accept no other certificate.
//!
//! All clients offer only TLS 1.3 with one cipher suite and one key exchange group, so that every proxy does the same
//! work whatever its preferences.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, ProtocolVersion, RootCertStore,
    SignatureScheme, version,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::compare::failure::{Failure, context};

/// Host of every request, which is also the host of the certificate.
pub const HOST: &str = "bench.example";

/// Only offered cipher suite, by its name in OpenSSL and in the RFC.
pub const CIPHER_SUITE: &str = "TLS_AES_128_GCM_SHA256";

/// Only offered key exchange group, by its name in OpenSSL.
pub const GROUP: &str = "X25519";

/// Paths of a certificate and its ECDSA P-256 key, created for this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Certificate, as PEM.
    pub certificate: PathBuf,
    /// Private key, as PEM.
    pub key: PathBuf,
    /// Certificate and key in one PEM file, as HAProxy requires.
    pub both: PathBuf,
}

impl Credentials {
    /// Returns the paths of the files below a directory.
    pub fn below(directory: &Path) -> Self {
        Self {
            certificate: directory.join("certificate.pem"),
            key: directory.join("key.pem"),
            both: directory.join("both.pem"),
        }
    }

    /// Creates a new key and a certificate for [`HOST`], and writes the files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn make(directory: &Path) -> Result<Self, Failure> {
        let made = rcgen::generate_simple_self_signed([HOST.to_owned()])
            .map_err(context("cannot make a certificate"))?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let files = Self::below(directory);
        for (path, text) in [
            (&files.certificate, certificate.clone()),
            (&files.key, key.clone()),
            (&files.both, certificate + &key),
        ] {
            fs::write(path, text).map_err(context(path.display()))?;
        }
        Ok(files)
    }
}

/// Reads a certificate from a PEM file.
///
/// # Errors
/// When the file cannot be read or holds no certificate.
pub fn read_certificate(path: &Path) -> Result<CertificateDer<'static>, Failure> {
    CertificateDer::from_pem_file(path).map_err(context(path.display()))
}

/// Returns the server name that clients request.
pub fn server_name() -> ServerName<'static> {
    ServerName::try_from(HOST).expect("the constant above is a DNS name")
}

/// Creates a client that fully verifies the certificate and its signature, and offers one protocol.
///
/// # Errors
/// When the certificate is invalid.
pub fn strict_client(
    certificate: CertificateDer<'static>,
    protocol: &str,
) -> Result<Arc<ClientConfig>, Failure> {
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate)
        .map_err(context("cannot trust the certificate"))?;
    let mut config = builder()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.into()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Creates a client that only compares the certificate with the expected one, so that it does less work than the proxy.
/// A client that resumes keeps the session tickets that it receives, and uses each once.
///
/// # Errors
/// When the crypto library does not support an offered algorithm.
pub fn pinned_client(
    certificate: CertificateDer<'static>,
    resumes: bool,
) -> Result<Arc<ClientConfig>, Failure> {
    let verifier = Arc::new(Pinned {
        certificate,
        provider: provider(),
    });
    let mut config = builder()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.resumption = if resumes {
        Resumption::in_memory_sessions(1)
    } else {
        Resumption::disabled()
    };
    Ok(Arc::new(config))
}

/// Returns what a completed handshake negotiated other than the offer; `None` if it matches.
pub fn complaint(connection: &rustls::CommonState) -> Option<String> {
    let suite = connection
        .negotiated_cipher_suite()
        .map(|suite| suite.suite());
    if connection.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
        return Some(format!("negotiated {:?}", connection.protocol_version()));
    }
    if suite != Some(rustls::CipherSuite::TLS13_AES_128_GCM_SHA256) {
        return Some(format!("negotiated {suite:?}"));
    }
    None
}

/// Returns OpenSSL settings with which a program offers the same as the clients here.
pub fn openssl_settings() -> String {
    format!(
        "openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = tls
[tls]
MinProtocol = TLSv1.3
Ciphersuites = {CIPHER_SUITE}
Groups = {GROUP}
"
    )
}

fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![kx_group::X25519],
        ..aws_lc_rs::default_provider()
    }
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, Failure> {
    ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(context("cannot set up TLS"))
}

/// Verifier that accepts one certificate. The strict client checks the handshake signature once, instead of every time.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: CryptoProvider,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *end_entity == self.certificate {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_is_the_host_of_the_certificate() {
        assert_eq!(server_name().to_str(), HOST);
    }

    #[test]
    fn files_hold_one_certificate_and_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let files = Credentials::make(directory.path()).unwrap();
        let both = fs::read_to_string(&files.both).unwrap();
        assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 1);
        assert_eq!(both.matches("BEGIN PRIVATE KEY").count(), 1);
        let certificate = read_certificate(&files.certificate).unwrap();
        assert!(strict_client(certificate, "h2").is_ok());
    }

    #[test]
    fn pinned_client_refuses_every_other_certificate() {
        let of = || {
            let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
            made.cert.der().clone()
        };
        let (expected, other) = (of(), of());
        let pinned = Pinned {
            certificate: expected.clone(),
            provider: provider(),
        };
        let verdict = |shown: &CertificateDer<'_>| {
            pinned.verify_server_cert(shown, &[], &server_name(), &[], UnixTime::now())
        };
        assert!(verdict(&expected).is_ok());
        assert!(verdict(&other).is_err());
    }

    #[test]
    fn all_clients_offer_the_same() {
        let settings = openssl_settings();
        assert!(settings.contains(CIPHER_SUITE) && settings.contains(GROUP));
        let [suite] = provider().cipher_suites[..] else {
            panic!("one suite is offered");
        };
        assert_eq!(suite.suite(), rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    }
}
