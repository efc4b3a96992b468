//! What the control thread reports: reloads, generation, quarantined resources, build.
//!
//! Never touched by a request, hence a plain lock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// What is running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version of the binary.
    pub version: String,
    /// Source revision that it was built from; empty when unknown.
    pub revision: String,
}

/// How one configuration update went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// A new snapshot is in effect.
    Succeeded {
        /// Its number.
        generation: u64,
        /// When it took effect.
        at: SystemTime,
        /// From having the resources to having it in effect.
        took: Duration,
    },
    /// Nothing took effect.
    Failed,
}

/// A certificate that a server uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateState {
    /// The file or secret that it comes from.
    pub source: String,
    /// When the one in effect expires, in seconds since 1970; `None` if none is.
    pub expires: Option<i64>,
    /// Whether its newest version is not in effect.
    pub is_refused: bool,
}

/// Reloads and resources, as the control thread saw them last.
#[derive(Debug)]
pub struct ControlStats {
    build: BuildInfo,
    state: Mutex<ControlState>,
}

/// One consistent look at [`ControlStats`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ControlState {
    pub(super) reloads_succeeded: u64,
    pub(super) reloads_failed: u64,
    pub(super) last_success: Option<SystemTime>,
    pub(super) last_took: Duration,
    pub(super) generation: u64,
    /// By kind. Kinds that once had one stay, at zero, so that an alert sees them recover.
    pub(super) quarantined: BTreeMap<String, u64>,
    /// Security policies that are not enforced.
    pub(super) unenforced: u64,
    /// By source, as they are now.
    pub(super) certificates: Vec<CertificateState>,
}

impl ControlStats {
    /// Nothing reported yet.
    pub fn new(build: BuildInfo) -> Self {
        Self {
            build,
            state: Mutex::default(),
        }
    }

    /// Reports a configuration update.
    pub fn reloaded(&self, reload: Reload) {
        let mut state = self.lock();
        match reload {
            Reload::Succeeded {
                generation,
                at,
                took,
            } => {
                state.reloads_succeeded += 1;
                state.generation = generation;
                state.last_success = Some(at);
                state.last_took = took;
            }
            Reload::Failed => state.reloads_failed += 1,
        }
    }

    /// Reports which resources are held at their last good version: the kind of each one.
    pub fn set_quarantined<'a>(&self, kinds: impl IntoIterator<Item = &'a str>) {
        let mut state = self.lock();
        state.quarantined.values_mut().for_each(|count| *count = 0);
        for kind in kinds {
            match state.quarantined.get_mut(kind) {
                Some(count) => *count += 1,
                None => drop(state.quarantined.insert(kind.to_owned(), 1)),
            }
        }
    }

    /// Reports how many security policies the configuration has that are not enforced.
    pub fn set_unenforced(&self, policies: u64) {
        self.lock().unenforced = policies;
    }

    /// Reports the certificates of all servers.
    pub fn set_certificates(&self, certificates: Vec<CertificateState>) {
        self.lock().certificates = certificates;
    }

    /// What is running.
    pub fn build(&self) -> &BuildInfo {
        &self.build
    }

    /// A copy of everything reported so far.
    pub(super) fn state(&self) -> ControlState {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_reload_keeps_the_last_success_time() {
        let stats = ControlStats::new(BuildInfo::default());
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        stats.reloaded(Reload::Succeeded {
            generation: 7,
            at,
            took: Duration::from_millis(3),
        });
        stats.reloaded(Reload::Failed);
        let state = stats.state();
        assert_eq!((state.reloads_succeeded, state.reloads_failed), (1, 1));
        assert_eq!(state.generation, 7);
        assert_eq!(state.last_success, Some(at));
        assert_eq!(state.last_took, Duration::from_millis(3));
    }

    #[test]
    fn a_recovered_kind_is_exposed_as_zero() {
        let stats = ControlStats::new(BuildInfo::default());
        stats.set_quarantined(["VirtualService", "Gateway", "VirtualService"]);
        stats.set_quarantined(["Gateway"]);
        let quarantined = stats.state().quarantined;
        assert_eq!(quarantined["VirtualService"], 0);
        assert_eq!(quarantined["Gateway"], 1);
    }
}
