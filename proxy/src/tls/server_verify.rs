//! Verifies server certificates: by authority and revocation, and by name if names are required.
//!
//! Invariant: without authorities, only the server's ownership of the certificate's key is verified.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::bundles::Bundles;
use super::chain::{self, Signatures, refused};
use super::{Authorities, Facts, Name, spiffe};

/// Requirements for the names in a server certificate.
#[derive(Clone, Copy, Default)]
pub(super) struct AcceptedNames<'a> {
    /// Names, of which it must carry one.
    pub names: &'a [Arc<str>],
    /// Trust domains, of which it must have a SPIFFE id if `names` is empty.
    pub trust_domains: &'a [Arc<str>],
}

/// Verifies server certificates by the settings of a rule.
pub(super) struct ServerVerifier {
    /// Verifier of the chain; `None` to skip verification.
    chain: Option<Bundles<Arc<WebPkiServerVerifier>>>,
    signatures: Signatures,
    /// Accepted names, of which the certificate must carry one; empty for any.
    names: Vec<Arc<str>>,
    /// Trust domains, of which the certificate must have a SPIFFE id if `names` is empty; empty for any certificate.
    trust_domains: Vec<Arc<str>>,
    /// Whether the certificate must be valid for the requested server name.
    by_host: bool,
}

impl fmt::Debug for ServerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerVerifier")
            .field("names", &self.names)
            .field("by_host", &self.by_host)
            .finish_non_exhaustive()
    }
}

impl ServerVerifier {
    /// Returns a verifier with these authorities, or one that verifies no chain; `by_host` if the certificate must be
    /// valid for the requested name.
    ///
    /// # Errors
    ///
    /// Reason that the authorities or the revocation lists are unusable.
    pub(super) fn new(
        authorities: Option<&Authorities>,
        accepted: AcceptedNames<'_>,
        by_host: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let chain = |authorities: &Authorities| {
            let make =
                |roots: &_| chain::server_verifier(roots, authorities.revocation(), provider);
            Bundles::new(authorities, make)
        };
        Ok(Self {
            chain: authorities.map(chain).transpose()?,
            signatures: Signatures::of(provider),
            names: accepted.names.to_vec(),
            trust_domains: accepted.trust_domains.to_vec(),
            by_host,
        })
    }

    fn has_a_name(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        if self.names.is_empty() && self.trust_domains.is_empty() {
            return Ok(());
        }
        let facts = chain::facts(certificate)?;
        let is_accepted = match &*self.names {
            [] => spiffe::is_of_trust_domain(&facts, &self.trust_domains),
            names => names.iter().any(|name| facts.covers(name)),
        };
        if is_accepted {
            return Ok(());
        }
        let workloads = self.trust_domains.iter();
        let workloads = workloads.map(|domain| format!("workloads of {domain}").into());
        let wanted: Vec<Arc<str>> = match &*self.names {
            [] => workloads.collect(),
            names => names.to_vec(),
        };
        let other = WrongNames::of(&facts, &wanted);
        refused(CertificateError::Other(OtherError(Arc::new(other))))
    }
}

/// Maximum names of a certificate in the error message.
const NAMES_TOLD_MAX: usize = 5;

/// Error: a certificate carries none of the required names.
#[derive(Debug)]
pub struct WrongNames {
    carries: Vec<Name>,
    more: usize,
    wanted: Vec<Arc<str>>,
}

impl WrongNames {
    fn of(facts: &Facts, wanted: &[Arc<str>]) -> Self {
        let told = facts.names.len().min(NAMES_TOLD_MAX);
        Self {
            carries: facts.names[..told].to_vec(),
            more: facts.names.len() - told,
            wanted: wanted[..wanted.len().min(NAMES_TOLD_MAX)].to_vec(),
        }
    }
}

impl fmt::Display for WrongNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the certificate is for ")?;
        if self.carries.is_empty() {
            f.write_str("no name")?;
        }
        for (number, name) in self.carries.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}{name}")?;
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        write!(f, ", not for {}", self.wanted.join(" or "))
    }
}

impl std::error::Error for WrongNames {}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let chain = chain.of(certificate)?;
        match chain.verify_server_cert(certificate, others, name, ocsp, now) {
            // rustls checks the name last, after everything else
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.by_host => {}
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        self.has_a_name(certificate)?;
        Ok(ServerCertVerified::assertion())
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
