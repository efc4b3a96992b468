//! Verifies client certificates: by authority and revocation, by name, by pins.
//!
//! Invariant: `skip_verify` skips the chain and the names but not the pins; the client's ownership of the certificate's
//! key is always verified.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::bundles::Bundles;
use super::chain::{self, Signatures, refused};
use super::digest::{Sha256, sha256};
use super::spiffe;
use super::{Authorities, ClientCertRequirements};

/// Verifies client certificates by the settings of a server.
pub(crate) struct Verifier {
    /// Verifier of the chain; `None` to skip verification.
    chain: Option<Bundles<Arc<dyn ClientCertVerifier>>>,
    signatures: Signatures,
    required: bool,
    serves_invalid: bool,
    names: Vec<Arc<str>>,
    trust_domains: Vec<Arc<str>>,
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
    /// Returns a verifier with these settings.
    ///
    /// # Errors
    ///
    /// If the chain is to be verified and authorities are missing, or revocation lists are unreadable.
    pub(crate) fn new(
        clients: &ClientCertRequirements,
        authorities: Option<&Authorities>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let chain = if clients.skip_verify {
            None
        } else {
            let authorities = authorities.ok_or("there are no authorities")?;
            let make =
                |roots: &_| chain::client_verifier(roots, authorities.revocation(), provider);
            Some(Bundles::new(authorities, make)?)
        };
        Ok(Self {
            chain,
            signatures: Signatures::of(provider),
            required: clients.required,
            serves_invalid: clients.serves_invalid,
            names: clients.names.clone(),
            trust_domains: clients.trust_domains.clone(),
            spki: clients.spki.clone(),
            hashes: clients.hashes.clone(),
        })
    }

    /// Whether the certificates of a client, its own first, are invalid.
    pub(crate) fn refuses(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((certificate, others)) = chain.split_first() else {
            return false;
        };
        self.verify(certificate, others, UnixTime::now()).is_err()
    }

    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if let Some(chain) = &self.chain {
            chain
                .of(certificate)?
                .verify_client_cert(certificate, others, now)?;
        }
        self.check(certificate)
    }

    /// Checks that the certificate has one of the required names, and one of the pins.
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        if self.chain.is_some()
            && !self.names.is_empty()
            && !chain::facts(certificate)?.have_one_of(&self.names)
        {
            return refused(CertificateError::NotValidForName);
        }
        if self.chain.is_some()
            && !self.trust_domains.is_empty()
            && !spiffe::is_of_trust_domain(&chain::facts(certificate)?, &self.trust_domains)
        {
            return refused(CertificateError::NotValidForName);
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

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain
            .as_ref()
            .map_or(&[], |chain| chain.all.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if !self.serves_invalid {
            self.verify(certificate, others, now)?;
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}
