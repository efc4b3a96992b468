//! Verifies client certificates: by authority and revocation, by name, by pins.
//!
//! Invariant: with `skip` neither the chain nor the names are looked at, but pins are; that a client has the key of the
//! certificate that it shows is always verified.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::digest::{Sha256, sha256};
use super::{Authorities, Clients, Facts};

/// Verifies client certificates as a server's settings want it.
pub struct Verifier {
    /// Verifies the chain; `None` if it is not to be.
    chain: Option<Arc<dyn ClientCertVerifier>>,
    provider: Arc<CryptoProvider>,
    required: bool,
    names: Vec<Arc<str>>,
    spki: Vec<Sha256>,
    hashes: Vec<Sha256>,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

impl Verifier {
    /// A verifier by these settings.
    ///
    /// # Errors
    ///
    /// When there are no authorities although the chain is to be verified, or revocations cannot be read.
    pub fn new(
        clients: &Clients,
        authorities: Option<&Authorities>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let chain = if clients.skip_verify {
            None
        } else {
            let authorities = authorities.ok_or("there are no authorities")?;
            Some(chain_verifier(authorities, provider)?)
        };
        Ok(Self {
            chain,
            provider: Arc::clone(provider),
            required: clients.required,
            names: clients.names.clone(),
            spki: clients.spki.clone(),
            hashes: clients.hashes.clone(),
        })
    }

    /// Whether the certificate has one of the names or pins that are asked for.
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let refused = |error| Err(Error::InvalidCertificate(error));
        if self.chain.is_some() && !self.names.is_empty() {
            let Ok(facts) = Facts::read(certificate) else {
                return refused(CertificateError::BadEncoding);
            };
            let has = |wanted: &Arc<str>| facts.names.iter().any(|name| name.is(wanted));
            if !self.names.iter().any(has) {
                return refused(CertificateError::NotValidForName);
            }
        }
        if self.spki.is_empty() && self.hashes.is_empty() {
            return Ok(());
        }
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            return refused(CertificateError::BadEncoding);
        };
        let pinned = self.hashes.contains(&sha256(certificate))
            || self.spki.contains(&sha256(parsed.public_key().raw));
        if pinned {
            Ok(())
        } else {
            refused(CertificateError::ApplicationVerificationFailure)
        }
    }
}

/// Verifies chains by these authorities.
///
/// # Errors
///
/// Why they cannot be used, or what they have revoked.
pub(super) fn chain_verifier(
    authorities: &Authorities,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let roots = Arc::clone(&authorities.roots);
    // As Istio has it: only the client's own certificate is looked up, and a list that is out of date, or none of its
    // issuer, accepts no peer.
    WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
        .with_crls(authorities.revoked.iter().cloned())
        .only_check_end_entity_revocation()
        .enforce_revocation_expiration()
        .build()
        .map_err(|error| error.to_string())
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain
            .as_ref()
            .map_or(&[], |chain| chain.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Some(chain) = &self.chain {
            chain.verify_client_cert(certificate, others, now)?;
        }
        self.check(certificate)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
