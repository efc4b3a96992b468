//! Everything that differs between two configurations.

use config_loader::Diagnostic;

use crate::difference::report::Report;

/// Differences of one proxy.
pub(super) struct OfProxy {
    /// Name in the file of `--for`; empty for the proxy of the flags.
    pub name: String,
    pub report: Report,
}

/// Everything that differs.
pub(super) struct Differences {
    pub proxies: Vec<OfProxy>,
    /// Findings that appear.
    pub appeared: Vec<Diagnostic>,
    /// Findings that go.
    pub gone: Vec<Diagnostic>,
}

impl Differences {
    pub(super) fn is_empty(&self) -> bool {
        let mut reports = self.proxies.iter();
        reports.all(|one| one.report.is_empty()) && self.appeared.is_empty() && self.gone.is_empty()
    }
}
