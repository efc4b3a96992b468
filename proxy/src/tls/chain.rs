//! Verification shared by both sides: certificate chains and revocation, parsed certificates, and signatures.
//!
//! As in Istio, revocation is checked only for the peer's own certificate; a revocation list that is out of date, or no
//! list of its issuer, rejects the peer. Where each trust domain has its own authorities, only some may have a list.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};

use super::material::facts;
use traffic::certificate::Facts;

/// Revocation lists of authorities.
#[derive(Clone, Copy)]
pub(super) struct Revocation<'a> {
    /// Lists.
    pub(super) lists: &'a [CertificateRevocationListDer<'static>],
    /// Whether a certificate without a list of its issuer is accepted.
    pub(super) is_partial: bool,
}

/// Returns a verifier of client certificate chains.
///
/// # Errors
///
/// Reason that the authorities or the revocation lists are unusable.
pub(super) fn client_verifier(
    roots: &Arc<RootCertStore>,
    revocation: Revocation<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .with_crls(revocation.lists.iter().cloned())
            .only_check_end_entity_revocation()
            .enforce_revocation_expiration();
    let builder = match revocation.is_partial {
        true => builder.allow_unknown_revocation_status(),
        false => builder,
    };
    builder.build().map_err(|error| error.to_string())
}

/// Returns a verifier of server certificate chains.
///
/// # Errors
///
/// Reason that the authorities or the revocation lists are unusable.
pub(super) fn server_verifier(
    roots: &Arc<RootCertStore>,
    revocation: Revocation<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .with_crls(revocation.lists.iter().cloned())
            .only_check_end_entity_revocation()
            .enforce_revocation_expiration();
    let builder = match revocation.is_partial {
        true => builder.allow_unknown_revocation_status(),
        false => builder,
    };
    builder.build().map_err(|error| error.to_string())
}

/// Returns the rejection of a certificate as an error.
pub(super) fn refused<T>(error: CertificateError) -> Result<T, Error> {
    Err(Error::InvalidCertificate(error))
}

/// Parses the certificate of a peer.
pub(super) fn facts(certificate: &CertificateDer<'_>) -> Result<Facts, Error> {
    facts::read(certificate).or_else(|_| refused(CertificateError::BadEncoding))
}

/// Verifies that a peer owns the key of its certificate.
#[derive(Clone, Debug)]
pub(super) struct Signatures(Arc<CryptoProvider>);

impl Signatures {
    /// Returns a verifier with the algorithms of a provider.
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
