//! TLS client settings: offered protocols and trusted certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::dial::Tls;
use super::error::Error;
use super::protocol::Protocol;

/// Trusted certificates.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Any certificate: authentication is not measured.
    Any,
    /// Certificates issued by the authorities in a PEM file.
    File(&'a Path),
    /// Certificates issued by the authorities that Mozilla trusts.
    Public,
}

/// Returns the TLS settings for a server with this name.
///
/// # Errors
/// When the file of authorities cannot be used, or the name is invalid.
pub fn client(protocol: Protocol, trust: Trust<'_>, name: &str) -> Result<Tls, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Start(format!("TLS cannot be used: {error}")))?;
    let mut config = match trust {
        Trust::Any => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
            .with_no_client_auth(),
        Trust::File(path) => builder
            .with_root_certificates(authorities(path)?)
            .with_no_client_auth(),
        Trust::Public => {
            let mut roots = RootCertStore::empty();
            let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
            roots.add_parsable_certificates(public);
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![protocol.alpn().into()];
    let wrong = || Error::Usage(format!("{name:?} is not the name of a TLS server"));
    let name = ServerName::try_from(name.to_owned()).map_err(|_| wrong())?;
    Ok(Tls {
        config: Arc::new(config),
        name,
    })
}

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let wrong = |problem: String| Error::Usage(format!("--ca {}: {problem}", path.display()));
    let certificates = CertificateDer::pem_file_iter(path);
    let certificates = certificates.map_err(|error| wrong(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("no certificate; the file must be PEM".to_owned()));
    }
    Ok(roots)
}

/// Verifier that accepts every certificate, and checks only that the server has its key.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
