//! Parses PEM into checked certificates, keys, authorities and revocation lists.

pub(super) mod facts;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

pub use facts::date;
pub use traffic::certificate::{Facts, Name, UnixSeconds};

use super::chain::{self, Revocation};
use super::problem::{Problem, ProblemKind};

/// Maximum certificates in a file or secret.
const CERTIFICATES_MAX: usize = 1_000;

/// PEM of a certificate and its key, each with the name of its file or secret.
#[derive(Clone, Copy)]
pub struct IdentityPem<'a> {
    /// Name and content of the chain.
    pub chain: (&'a str, &'a [u8]),
    /// Name and content of the key.
    pub key: (&'a str, &'a [u8]),
}

/// PEM of authorities and revocation lists, each with the name of its file or secret.
#[derive(Clone, Copy)]
pub struct AuthoritiesPem<'a> {
    /// Name and content of the authorities.
    pub authorities: (&'a str, &'a [u8]),
    /// Name and content of the revocation lists.
    pub revoked: Option<(&'a str, &'a [u8])>,
    /// Whether certificates that cannot be used are skipped instead of being an error, and `facts` stays empty: an
    /// operating system trusts many certificates, old ones included.
    pub is_lenient: bool,
}

/// Certificate with its key.
pub struct Identity {
    /// Certificate and key for rustls.
    pub(super) certified: Arc<CertifiedKey>,
    /// Parsed certificate.
    pub facts: Facts,
    /// Problems that do not depend on the time.
    pub weaknesses: Vec<Problem>,
    /// Whether it identifies the workload: once expired it is not used, whatever else there is.
    pub(super) is_of_workload: bool,
    place: Arc<str>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Parses and checks a certificate and its key, except its validity period.
    ///
    /// # Errors
    ///
    /// First problem that makes them unusable.
    pub fn read(pem: IdentityPem<'_>) -> Result<Self, Problem> {
        let (place, bytes) = pem.chain;
        let chain = certificates(place, bytes, ProblemKind::Certificate)?;
        let broken = |text: String| Problem::new(ProblemKind::Certificate, place, text);
        let all: Result<Vec<Facts>, String> = chain.iter().map(facts::read).collect();
        let all = all.map_err(broken)?;
        let facts = all.first().cloned().ok_or_else(|| no_certificate(place))?;
        let key = key(pem.key.0, pem.key.1)?;
        let provider = aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| {
            let (key_place, _) = pem.key;
            match error {
                rustls::Error::InconsistentKeys(_) => Problem::new(
                    ProblemKind::Mismatch,
                    key_place,
                    format!("the key does not belong to the certificate in {place}"),
                ),
                rustls::Error::InvalidCertificate(_) => {
                    broken("the certificate cannot be used".to_owned())
                }
                _ => Problem::new(ProblemKind::Key, key_place, UNSUPPORTED_KEY),
            }
        })?;
        Ok(Self {
            certified: Arc::new(certified),
            weaknesses: weaknesses(place, &all),
            facts,
            is_of_workload: false,
            place: place.into(),
        })
    }

    /// Returns the problem with the validity period at this time, if any.
    pub fn untimely(&self, now: UnixSeconds) -> Option<Problem> {
        untimely("certificate", &self.place, &self.facts, now)
    }
}

const UNSUPPORTED_KEY: &str = "the key is not one that can be used: RSA of 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, or Ed25519";

/// Authorities for the peer's certificates, with revocation lists.
#[derive(Debug)]
pub struct Authorities {
    pub(super) roots: Arc<RootCertStore>,
    /// Authorities by trust domain: a peer is verified by those of the trust domain in its SPIFFE id. Empty if `roots`
    /// verify all peers.
    pub(super) bundles: BTreeMap<Arc<str>, Arc<RootCertStore>>,
    pub(super) revoked: Vec<CertificateRevocationListDer<'static>>,
    /// Parsed certificates, each once.
    pub facts: Vec<Facts>,
    renewals: Vec<UnixSeconds>,
    place: Arc<str>,
    revoked_place: Option<Arc<str>>,
}

impl Authorities {
    /// Whether these include all others, and revoke the same certificates.
    pub(super) fn cover(&self, others: &Self) -> bool {
        let covers = |own: &RootCertStore, others: &RootCertStore| {
            others.roots.iter().all(|root| own.roots.contains(root))
        };
        let has_bundle = |(domain, others): (&Arc<str>, &Arc<RootCertStore>)| {
            let own = self.bundles.get(domain);
            own.is_some_and(|own| covers(own, others))
        };
        self.revoked == others.revoked
            && self.bundles.is_empty() == others.bundles.is_empty()
            && covers(&self.roots, &others.roots)
            && others.bundles.iter().all(has_bundle)
    }

    /// Adds the authorities of each trust domain.
    ///
    /// # Errors
    ///
    /// First problem that makes them unusable.
    pub fn with_bundles(
        mut self,
        place: &str,
        bundles: &BTreeMap<Arc<str>, Vec<u8>>,
    ) -> Result<Self, Problem> {
        for (domain, pem) in bundles {
            let place = format!("{place} (bundle of {domain})");
            let (roots, _) = roots(&place, pem)?;
            self.bundles.insert(Arc::clone(domain), Arc::new(roots));
        }
        Ok(self)
    }

    /// Returns the revocation lists. Of several bundles, only some may have one.
    pub(super) fn revocation(&self) -> Revocation<'_> {
        Revocation {
            lists: &self.revoked,
            is_partial: !self.bundles.is_empty(),
        }
    }

    /// Returns the number of certificates of each trust domain; none if one bundle verifies all peers.
    pub fn bundle_sizes(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let bundles = self.bundles.iter();
        bundles.map(|(domain, roots)| (domain, roots.len()))
    }

    /// Parses and checks authorities and revocation lists, except validity periods.
    ///
    /// # Errors
    ///
    /// First problem that makes them unusable.
    pub fn read(pem: AuthoritiesPem<'_>) -> Result<Self, Problem> {
        let (place, bytes) = pem.authorities;
        let broken = |text: String| Problem::new(ProblemKind::Authorities, place, text);
        let (roots, facts) = if pem.is_lenient {
            let mut roots = RootCertStore::empty();
            let certificates = certificates(place, bytes, ProblemKind::Authorities)?;
            roots.add_parsable_certificates(certificates);
            if roots.is_empty() {
                return Err(broken("none of the certificates can be used".to_owned()));
            }
            (roots, Vec::new())
        } else {
            roots(place, bytes)?
        };
        let (revoked, renewals) = match pem.revoked {
            Some((place, bytes)) => revocations(place, bytes)?,
            None => (Vec::new(), Vec::new()),
        };
        let read = Self {
            roots: Arc::new(roots),
            bundles: BTreeMap::new(),
            revoked,
            facts,
            renewals,
            place: place.into(),
            revoked_place: pem.revoked.map(|(place, _)| place.into()),
        };
        // Readable material may still be useless for verification, such as a list of version 1.
        let provider = Arc::new(aws_lc_rs::default_provider());
        match chain::client_verifier(&read.roots, read.revocation(), &provider) {
            Ok(_) => Ok(read),
            Err(error) => {
                let (kind, place) = match &read.revoked_place {
                    Some(place) => (ProblemKind::Revoked, place),
                    None => (ProblemKind::Authorities, &read.place),
                };
                let text = format!("it cannot be used: {error}");
                Err(Problem::new(kind, Arc::clone(place), text))
            }
        }
    }

    /// Returns problems at this time: no authority within its validity period, or overdue revocation lists.
    pub fn untimely(&self, now: UnixSeconds) -> Vec<Problem> {
        let mut problems = Vec::new();
        let each = self.facts.iter();
        let each = each.map(|facts| untimely("authority", &self.place, facts, now));
        if let Some(all) = each.collect::<Option<Vec<Problem>>>() {
            // authorities of the operating system are not parsed, and never reported
            problems.extend(all.into_iter().next());
        }
        if let (Some(place), Some(renewal)) = (&self.revoked_place, self.renewals.iter().min())
            && *renewal < now
        {
            let text = format!(
                "the list of revoked certificates should have been renewed by {}; certificates that it is for are refused",
                date(*renewal)
            );
            problems.push(Problem::new(
                ProblemKind::RevokedStale,
                Arc::clone(place),
                text,
            ));
        }
        problems
    }
}

/// Parses certificates of authorities, each once.
fn roots(place: &str, bytes: &[u8]) -> Result<(RootCertStore, Vec<Facts>), Problem> {
    let broken = |text: String| Problem::new(ProblemKind::Authorities, place, text);
    let mut certificates = certificates(place, bytes, ProblemKind::Authorities)?;
    let mut known = HashSet::new();
    certificates.retain(|certificate| known.insert(certificate.clone()));
    let each: Result<Vec<Facts>, String> = certificates.iter().map(facts::read).collect();
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots
            .add(certificate)
            .map_err(|error| broken(format!("a certificate cannot be used: {error}")))?;
    }
    Ok((roots, each.map_err(broken)?))
}

fn no_certificate(place: &str) -> Problem {
    let text = "there is no certificate: a PEM block `-----BEGIN CERTIFICATE-----` is expected";
    Problem::new(ProblemKind::Certificate, place, text)
}

fn certificates(
    place: &str,
    bytes: &[u8],
    kind: ProblemKind,
) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(bytes) {
        let certificate = certificate
            .map_err(|error| Problem::new(kind, place, format!("PEM cannot be read: {error}")))?;
        if certificates.len() == CERTIFICATES_MAX {
            let text = format!("more than {CERTIFICATES_MAX} certificates");
            return Err(Problem::new(kind, place, text));
        }
        certificates.push(certificate);
    }
    if certificates.is_empty() {
        return Err(Problem {
            kind,
            ..no_certificate(place)
        });
    }
    Ok(certificates)
}

fn key(place: &str, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, Problem> {
    let wrong = |text: &str| Problem::new(ProblemKind::Key, place, text);
    // No error of the parser is passed on: it could contain a part of the key.
    let mut keys = PrivateKeyDer::pem_slice_iter(bytes);
    match (keys.next(), keys.next()) {
        (Some(Ok(key)), None) => Ok(key),
        (Some(Ok(_)), Some(_)) => Err(wrong("there is more than one key")),
        (Some(Err(_)), _) => Err(wrong("PEM cannot be read")),
        (None, _) if contains(bytes, b"BEGIN ENCRYPTED PRIVATE KEY") => {
            Err(wrong("the key is encrypted: write it without a passphrase"))
        }
        (None, _) => Err(wrong(
            "there is no key: a PEM block `-----BEGIN PRIVATE KEY-----` is expected",
        )),
    }
}

fn contains(bytes: &[u8], mark: &[u8]) -> bool {
    memchr::memmem::find(bytes, mark).is_some()
}

type Revocations = (Vec<CertificateRevocationListDer<'static>>, Vec<UnixSeconds>);

/// Parses revocation lists; also returns the times by which they should be renewed.
fn revocations(place: &str, bytes: &[u8]) -> Result<Revocations, Problem> {
    let broken = |text: String| Problem::new(ProblemKind::Revoked, place, text);
    let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(bytes).collect();
    let lists = lists.map_err(|error| broken(format!("PEM cannot be read: {error}")))?;
    if lists.is_empty() {
        return Err(broken(
            "there is no list of revoked certificates: a PEM block `-----BEGIN X509 CRL-----` is expected"
                .to_owned(),
        ));
    }
    let mut renewals = Vec::new();
    for list in &lists {
        let (_, parsed) = CertificateRevocationList::from_der(list)
            .map_err(|_| broken("the list of revoked certificates cannot be read".to_owned()))?;
        renewals.extend(parsed.next_update().map(|time| time.timestamp()));
    }
    Ok((lists, renewals))
}

fn untimely(what: &str, place: &Arc<str>, facts: &Facts, now: UnixSeconds) -> Option<Problem> {
    let (kind, text) = if now > facts.not_after {
        let text = format!("the {what} expired at {}", date(facts.not_after));
        (ProblemKind::Expired, text)
    } else if now < facts.not_before {
        let text = format!("the {what} is not valid before {}", date(facts.not_before));
        (ProblemKind::NotYetValid, text)
    } else {
        return None;
    };
    Some(Problem::new(kind, Arc::clone(place), text))
}

fn weaknesses(place: &str, chain: &[Facts]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut weak = |text: String| problems.push(Problem::new(ProblemKind::Weak, place, text));
    if let Some(facts) = chain.first()
        && facts.names.is_empty()
    {
        weak(
            "the certificate has no subjectAltName; clients do not look at its common name".into(),
        );
    }
    if chain.iter().any(|facts| facts.is_signed_with_sha1) {
        weak("a certificate is signed with SHA-1, which clients refuse".into());
    }
    for pair in chain.windows(2) {
        if pair[0].issuer != pair[1].subject {
            weak(format!(
                "the chain is out of order: the certificate of `{}` is followed by that of `{}`, not by its issuer `{}`",
                pair[0].subject, pair[1].subject, pair[0].issuer
            ));
            break;
        }
    }
    problems
}

#[cfg(test)]
mod tests;
