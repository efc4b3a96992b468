//! Verifiers of chains by trust domain: a peer is verified by the authorities of the trust domain in its own SPIFFE id.
//!
//! Invariant: authorities of one trust domain never verify a peer of another one, so that none can issue an identity of
//! ours.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::chain::{self, refused};
use super::material::UnixSeconds;
use super::{Authorities, Identity, Problem, ProblemKind, spiffe};

/// Verifiers of the peers of some authorities.
pub(super) struct Bundles<V> {
    /// Verifier by all authorities; used if there are no bundles.
    pub(super) all: V,
    by_domain: BTreeMap<Arc<str>, V>,
}

impl<V> Bundles<V> {
    /// Returns the verifiers that `make` builds from these authorities and a part of their roots.
    ///
    /// # Errors
    ///
    /// First error of `make`.
    pub(super) fn new(
        authorities: &Authorities,
        make: impl Fn(&Arc<RootCertStore>) -> Result<V, String>,
    ) -> Result<Self, String> {
        let bundles = authorities.bundles.iter();
        let by_domain = bundles.map(|(domain, roots)| Ok((Arc::clone(domain), make(roots)?)));
        Ok(Self {
            all: make(&authorities.roots)?,
            by_domain: by_domain.collect::<Result<_, String>>()?,
        })
    }

    /// Returns the verifier of a peer.
    ///
    /// # Errors
    ///
    /// If there are bundles, and the peer has no SPIFFE id, more than one, or one of a trust domain without a bundle.
    pub(super) fn of(&self, peer: &CertificateDer<'_>) -> Result<&V, Error> {
        if self.by_domain.is_empty() {
            return Ok(&self.all);
        }
        let facts = chain::facts(peer)?;
        let domain = spiffe::only_id(&facts).and_then(spiffe::trust_domain);
        match domain {
            Some(domain) => match self.by_domain.get(domain) {
                Some(verifier) => Ok(verifier),
                None => refused(CertificateError::UnknownIssuer),
            },
            None => refused(CertificateError::NotValidForName),
        }
    }
}

impl Authorities {
    /// Checks that the authorities of its trust domain have signed a certificate that is valid at this time.
    ///
    /// # Errors
    ///
    /// Problem with the reason.
    pub fn check_issuer(
        &self,
        identity: &Identity,
        place: &str,
        now: UnixSeconds,
    ) -> Result<(), Problem> {
        let unsigned = |error: &dyn fmt::Display| {
            let text =
                format!("the certificate is not signed by the CA of its trust domain: {error}");
            Problem::new(ProblemKind::UnknownIssuer, place, text)
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let make = |roots: &_| chain::client_verifier(roots, self.revocation(), &provider);
        let verifiers = Bundles::new(self, make).map_err(|error| unsigned(&error))?;
        let Some((own, others)) = identity.certified.cert.split_first() else {
            return Err(unsigned(&"there is no certificate"));
        };
        let seconds = u64::try_from(now).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let verifier = verifiers.of(own).map_err(|error| unsigned(&error))?;
        let verified = verifier.verify_client_cert(own, others, now);
        verified.map(|_| ()).map_err(|error| unsigned(&error))
    }
}

#[cfg(test)]
mod tests;
