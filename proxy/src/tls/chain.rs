//! What verifiers of both sides share: chains by authority and revocation, facts of certificates, and signatures.
//!
//! As Istio has it, only the peer's own certificate is looked up in lists of revocations, and a list that is out of date,
//! or none of its issuer, accepts no peer.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};

use super::material::facts::Facts;

type Revoked = [CertificateRevocationListDer<'static>];

/// Verifies chains of clients by these authorities.
///
/// # Errors
///
/// Why they cannot be used, or what they have revoked.
pub(super) fn client_verifier(
    roots: &Arc<RootCertStore>,
    revoked: &Revoked,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
        .with_crls(revoked.iter().cloned())
        .only_check_end_entity_revocation()
        .enforce_revocation_expiration()
        .build()
        .map_err(|error| error.to_string())
}

/// Verifies chains of servers by these authorities.
///
/// # Errors
///
/// Why they cannot be used, or what they have revoked.
pub(super) fn server_verifier(
    roots: &Arc<RootCertStore>,
    revoked: &Revoked,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
        .with_crls(revoked.iter().cloned())
        .only_check_end_entity_revocation()
        .enforce_revocation_expiration()
        .build()
        .map_err(|error| error.to_string())
}

/// A refusal of a certificate.
pub(super) fn refused<T>(error: CertificateError) -> Result<T, Error> {
    Err(Error::InvalidCertificate(error))
}

/// What a peer's certificate says.
pub(super) fn facts(certificate: &CertificateDer<'_>) -> Result<Facts, Error> {
    Facts::read(certificate).or_else(|_| refused(CertificateError::BadEncoding))
}

/// Verifies that a peer has the key of its certificate.
#[derive(Clone, Debug)]
pub(super) struct Signatures(Arc<CryptoProvider>);

impl Signatures {
    /// By the algorithms of a provider.
    pub(super) fn of(provider: &Arc<CryptoProvider>) -> Self {
        Self(Arc::clone(provider))
    }

    pub(super) fn verify_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    pub(super) fn verify_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    pub(super) fn schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
