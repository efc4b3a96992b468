//! What is wrong with a certificate, a key or their place, as data.

use std::fmt;
use std::sync::Arc;

/// A finding about material.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// What kind of mistake it is.
    pub kind: ProblemKind,
    /// The file, or the secret with its key, that is wrong.
    pub place: Arc<str>,
    /// What is wrong: lower case, no full stop. Never holds a key.
    pub text: String,
    /// How to fix it, where that is more than what is wrong says.
    pub fix: Option<String>,
}

impl Problem {
    /// A finding.
    pub fn new(kind: ProblemKind, place: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self {
            kind,
            place: place.into(),
            text: text.into(),
            fix: None,
        }
    }

    /// The finding with how to fix it, if that is known.
    pub fn with_fix(mut self, fix: Option<String>) -> Self {
        self.fix = fix;
        self
    }
}

impl Problem {
    /// What is wrong, and how to fix it.
    pub fn with_its_fix(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{self}; {fix}"),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Kinds of findings, each with what it means for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// There are no authorities to verify clients with.
    Authorities,
    /// No certificate can be read.
    Certificate,
    /// The certificate is no longer valid.
    Expired,
    /// The secret is not one that may be used.
    Foreign,
    /// No key can be read, or it is of a kind that is not supported.
    Key,
    /// The key is not that of the certificate.
    Mismatch,
    /// The file or secret is not there.
    Missing,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is that of another workload.
    OtherWorkload,
    /// The list of revoked certificates cannot be read.
    Revoked,
    /// The list of revoked certificates should have been renewed.
    RevokedStale,
    /// The file cannot be read.
    Unreadable,
    /// What clients no longer trust.
    Weak,
}

impl ProblemKind {
    /// Whether material with this finding is used when there is nothing better.
    pub fn is_usable(self) -> bool {
        matches!(
            self,
            ProblemKind::Expired
                | ProblemKind::NotYetValid
                | ProblemKind::RevokedStale
                | ProblemKind::Weak
        )
    }

    /// Whether the last valid material is kept instead of material with this problem.
    pub fn is_untimely(self) -> bool {
        matches!(
            self,
            ProblemKind::Expired | ProblemKind::NotYetValid | ProblemKind::RevokedStale
        )
    }
}
