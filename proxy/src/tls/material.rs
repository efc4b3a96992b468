//! PEM to checked certificates, keys, authorities and revocations.

pub(super) mod facts;

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

pub use facts::{Facts, Name, UnixSeconds, date};

use super::chain;
use super::problem::{Problem, ProblemKind};

/// The most certificates that a file or secret may hold.
const CERTIFICATES_MAX: usize = 1_000;

/// PEM of a certificate and its key, with the names of their places.
#[derive(Clone, Copy)]
pub struct IdentityPem<'a> {
    /// The chain, and where it was read.
    pub chain: (&'a str, &'a [u8]),
    /// The key, and where it was read.
    pub key: (&'a str, &'a [u8]),
}

/// PEM of authorities and what they revoked, with the names of their places.
#[derive(Clone, Copy)]
pub struct AuthoritiesPem<'a> {
    /// The authorities, and where they were read.
    pub authorities: (&'a str, &'a [u8]),
    /// Revoked certificates, and where they were read.
    pub revoked: Option<(&'a str, &'a [u8])>,
    /// Whether certificates that cannot be used are passed over, and what each says is of no interest.
    pub is_lenient: bool,
}

/// A certificate with its key.
pub struct Identity {
    /// For rustls.
    pub(super) certified: Arc<CertifiedKey>,
    /// What the certificate says.
    pub facts: Facts,
    /// What is wrong with it whatever the time.
    pub weaknesses: Vec<Problem>,
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
    /// Reads and checks a certificate and its key, whatever the time.
    ///
    /// # Errors
    ///
    /// The first thing that makes them unusable.
    pub fn read(pem: IdentityPem<'_>) -> Result<Self, Problem> {
        let (place, bytes) = pem.chain;
        let chain = certificates(place, bytes, ProblemKind::Certificate)?;
        let broken = |text: String| Problem::new(ProblemKind::Certificate, place, text);
        let all: Result<Vec<Facts>, String> = chain.iter().map(Facts::read).collect();
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
            place: place.into(),
        })
    }

    /// What is wrong with the certificate at this time, if anything.
    pub fn untimely(&self, now: UnixSeconds) -> Option<Problem> {
        untimely("certificate", &self.place, &self.facts, now)
    }
}

const UNSUPPORTED_KEY: &str = "the key is not one that can be used: RSA of 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, or Ed25519";

/// Authorities of the other side's certificates, and what they have revoked.
#[derive(Debug)]
pub struct Authorities {
    pub(super) roots: Arc<RootCertStore>,
    pub(super) revoked: Vec<CertificateRevocationListDer<'static>>,
    /// What their certificates say.
    pub facts: Vec<Facts>,
    renewals: Vec<UnixSeconds>,
    place: Arc<str>,
    revoked_place: Option<Arc<str>>,
}

impl Authorities {
    /// Reads and checks authorities and what they have revoked, whatever the time.
    ///
    /// # Errors
    ///
    /// The first thing that makes them unusable.
    pub fn read(pem: AuthoritiesPem<'_>) -> Result<Self, Problem> {
        let (place, bytes) = pem.authorities;
        let broken = |text: String| Problem::new(ProblemKind::Authorities, place, text);
        let certificates = certificates(place, bytes, ProblemKind::Authorities)?;
        let mut roots = RootCertStore::empty();
        let mut facts = Vec::new();
        if pem.is_lenient {
            roots.add_parsable_certificates(certificates);
            if roots.is_empty() {
                return Err(broken("none of the certificates can be used".to_owned()));
            }
        } else {
            let each: Result<Vec<Facts>, String> = certificates.iter().map(Facts::read).collect();
            facts = each.map_err(broken)?;
            for certificate in certificates {
                roots
                    .add(certificate)
                    .map_err(|error| broken(format!("a certificate cannot be used: {error}")))?;
            }
        }
        let (revoked, renewals) = match pem.revoked {
            Some((place, bytes)) => revocations(place, bytes)?,
            None => (Vec::new(), Vec::new()),
        };
        let read = Self {
            roots: Arc::new(roots),
            revoked,
            facts,
            renewals,
            place: place.into(),
            revoked_place: pem.revoked.map(|(place, _)| place.into()),
        };
        // What can be read may still be nothing to verify with, such as a list of version 1.
        let provider = Arc::new(aws_lc_rs::default_provider());
        match chain::client_verifier(&read.roots, &read.revoked, &provider) {
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

    /// What is wrong at this time: authorities of which none is valid, or revocations that should have been renewed.
    pub fn untimely(&self, now: UnixSeconds) -> Vec<Problem> {
        let mut problems = Vec::new();
        let each = self.facts.iter();
        let each = each.map(|facts| untimely("authority", &self.place, facts, now));
        if let Some(all) = each.collect::<Option<Vec<Problem>>>() {
            // of those of the operating system nothing is known, and nothing said
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
    // No error of the parser is passed on, so that nothing of a key can be.
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

/// Lists of revoked certificates, and when they should be renewed.
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
