//! One proxy: its report, and what is known of it beside.

use std::time::{Duration, SystemTime};

use config_loader::proxy_state::{ProxySpec, ProxyStatus};

use crate::store::Revision;

/// The most proxies that are known at once.
pub const PROXIES_MAX: usize = 10_000;

/// Report of a proxy about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Its namespace.
    pub namespace: String,
    /// Its name, unique in the namespace.
    pub name: String,
    /// Identity and selection of the proxy.
    pub spec: ProxySpec,
    /// State that is in effect there.
    pub status: ProxyStatus,
}

/// A proxy as it is known now.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyView {
    /// Newest report.
    pub report: Report,
    /// When it was first heard of.
    pub created: SystemTime,
    /// When it was last heard of.
    pub seen: SystemTime,
    /// The newest revision that it should have.
    pub newest: Option<Revision>,
    /// Time of the newest change that it has, from the write to the report.
    pub last_change: Option<Duration>,
    /// The user who reports for it; empty if every user may.
    pub subject: String,
}

impl ProxyView {
    /// Checks that a user may report for this proxy, or have it forgotten.
    ///
    /// # Errors
    /// If another user reports for it.
    pub fn check_subject(&self, subject: Option<&str>) -> Result<(), NotTaken> {
        check_subject(&self.subject, subject)
    }

    /// Whether everything that it should have is in effect there.
    pub fn is_current(&self) -> bool {
        applied(&self.report) >= self.newest
    }
}

/// The revision that is in effect at a proxy, if revisions are numbers.
pub fn applied(report: &Report) -> Option<Revision> {
    report.status.revision.as_ref()?.parse().ok()
}

/// Why a report is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// There are [`PROXIES_MAX`] others.
    Full,
    /// Another user, of this name, reports for the proxy.
    OfAnother(String),
}

impl std::fmt::Display for NotTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotTaken::Full => write!(
                f,
                "there are {PROXIES_MAX} proxies already; a proxy that does not report for 60 s is forgotten"
            ),
            NotTaken::OfAnother(subject) => write!(
                f,
                "the user {subject:?} reports for this proxy: use its token, or give each proxy a name of its own; a proxy that \
                 does not report for 60 s is forgotten"
            ),
        }
    }
}

pub(super) fn check_subject(known: &str, subject: Option<&str>) -> Result<(), NotTaken> {
    match subject {
        Some(subject) if !known.is_empty() && known != subject => {
            Err(NotTaken::OfAnother(known.to_owned()))
        }
        _ => Ok(()),
    }
}
