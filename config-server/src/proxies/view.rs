//! Proxy: its report, and the server's state of it.

use std::time::{Duration, SystemTime};

use config_loader::proxy_state::{ProxySpec, ProxyStatus};

use crate::store::Revision;

/// Maximum number of proxies in the table.
pub const PROXIES_MAX: usize = 10_000;

/// Report of a proxy about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Namespace of the proxy.
    pub namespace: String,
    /// Name of the proxy, unique in the namespace.
    pub name: String,
    /// Identity and selection of the proxy.
    pub spec: ProxySpec,
    /// State that is in effect at the proxy.
    pub status: ProxyStatus,
}

/// Current state of a proxy in the table.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyView {
    /// Newest report.
    pub report: Report,
    /// Time of the first report.
    pub created: SystemTime,
    /// Time of the last report.
    pub seen: SystemTime,
    /// Newest revision that the proxy should have.
    pub newest: Option<Revision>,
    /// Propagation time of the proxy's newest change, from the write to the report.
    pub last_change: Option<Duration>,
    /// User who owns the proxy; empty if every user may report for it.
    pub subject: String,
}

impl ProxyView {
    /// Checks that a user may report for this proxy or remove it.
    ///
    /// # Errors
    /// If another user owns the proxy.
    pub fn check_subject(&self, subject: Option<&str>) -> Result<(), NotTaken> {
        check_subject(&self.subject, subject)
    }

    /// Whether the proxy has its newest expected revision in effect.
    pub fn is_current(&self) -> bool {
        applied(&self.report) >= self.newest
    }
}

/// Returns the revision that is in effect at a proxy; `None` if it is not a number.
pub fn applied(report: &Report) -> Option<Revision> {
    report.status.revision.as_ref()?.parse().ok()
}

/// Reason why a report is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Full table: there are [`PROXIES_MAX`] other proxies.
    Full,
    /// Proxy owned by another user, of this name.
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
