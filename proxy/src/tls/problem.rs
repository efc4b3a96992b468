//! Problems with certificates, keys and their files or secrets, as data.

use std::fmt;
use std::sync::Arc;

/// A problem with a certificate, a key or revocation lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// File, or secret and key in it, with the problem.
    pub place: Arc<str>,
    /// Message: lower case, no full stop. Never contains a key.
    pub text: String,
    /// Fix, if the message does not imply it.
    pub fix: Option<String>,
}

impl Problem {
    /// Returns a problem without a fix.
    pub fn new(kind: ProblemKind, place: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self {
            kind,
            place: place.into(),
            text: text.into(),
            fix: None,
        }
    }

    /// Adds the fix, if known.
    pub fn with_fix(mut self, fix: Option<String>) -> Self {
        self.fix = fix;
        self
    }
}

impl Problem {
    /// Returns the message with the fix.
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

/// Kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// Two identities of which one is meant.
    Ambiguous,
    /// No authorities to verify peers with.
    Authorities,
    /// Identity that its source has failed to deliver or to renew.
    Awaited,
    /// Unreadable certificate.
    Certificate,
    /// Credentials that the source of an identity refused.
    Denied,
    /// Certificate after its validity period.
    Expired,
    /// Secret that must not be used.
    Foreign,
    /// Message of a source of identities that lacks something.
    Incomplete,
    /// Unreadable or unsupported key.
    Key,
    /// Key of another certificate.
    Mismatch,
    /// Missing file or secret.
    Missing,
    /// Identities of a source of which none is that of the workload.
    NoneFits,
    /// Identity that its source is asked for, without a failure so far.
    NotYetIssued,
    /// Certificate before its validity period.
    NotYetValid,
    /// Certificate of another workload.
    OtherWorkload,
    /// Unreadable revocation list.
    Revoked,
    /// Overdue revocation list.
    RevokedStale,
    /// Certificate that no CA of its trust domain has signed.
    UnknownIssuer,
    /// Unreadable file.
    Unreadable,
    /// Certificate that clients no longer trust.
    Weak,
    /// Identity that its source has taken away: it is not used any more.
    Withdrawn,
}

impl ProblemKind {
    /// Whether material with this problem is used if there is nothing better.
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
