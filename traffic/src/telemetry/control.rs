//! Metrics of the control thread: reloads, generation, rejected resources, certificates, build.
//!
//! Uses a plain lock, since requests never access it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Version of the running binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version of the binary.
    pub version: String,
    /// Source revision of the build; empty if unknown.
    pub revision: String,
}

/// Outcome of one configuration update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// A new snapshot took effect.
    Succeeded {
        /// Generation of the snapshot.
        generation: u64,
        /// Time when it took effect.
        at: SystemTime,
        /// Time from the receipt of the resources to the effect.
        took: Duration,
    },
    /// No snapshot took effect.
    Failed,
}

/// State of a server's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateState {
    /// File or Secret of the certificate.
    pub source: String,
    /// Expiration of the certificate in effect, in seconds since 1970; `None` if none is.
    pub expires: Option<i64>,
    /// Whether the newest version was rejected.
    pub is_refused: bool,
}

/// State of the workload's identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityState {
    /// Whether the proxy has a source of an identity.
    pub has_source: bool,
    /// Expiration of the certificate in effect, in seconds since 1970; `None` if none is.
    pub expires: Option<i64>,
    /// Number of CA certificates by trust domain.
    pub bundles: BTreeMap<String, usize>,
}

/// Latest reports about reloads and resources.
#[derive(Debug)]
pub struct ControlStats {
    build: BuildInfo,
    state: Mutex<ControlState>,
}

/// A consistent copy of [`ControlStats`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControlState {
    /// Reloads that were applied.
    pub reloads_succeeded: u64,
    /// Reloads that were rejected.
    pub reloads_failed: u64,
    /// Time of the last applied reload.
    pub last_success: Option<SystemTime>,
    /// Duration of the last reload.
    pub last_took: Duration,
    /// Number of the snapshot.
    pub generation: u64,
    /// Number of rejected resources by kind. Kinds stay, at zero, so that an alert sees them recover.
    pub quarantined: BTreeMap<String, u64>,
    /// Number of security policies that are not enforced.
    pub unenforced: u64,
    /// Number of expressions and operators that are left out.
    pub unsupported: u64,
    /// Number of AuthorizationPolicies that apply to the proxy: enforced, in dry run, and denying because they were never
    /// valid.
    pub policies: [u64; 3],
    /// Number of these whose newest version is rejected.
    pub quarantined_policies: u64,
    /// Whether settings that are read at the start have changed since.
    pub restart_pending: bool,
    /// Current certificates by source.
    pub certificates: Vec<CertificateState>,
    /// Identity of the workload.
    pub identity: IdentityState,
    /// Requests for an identity, by source and result.
    pub identity_requests: BTreeMap<[&'static str; 2], u64>,
    /// Time of the last fetch of each key set in use, by URL without query.
    pub key_sets: BTreeMap<String, SystemTime>,
}

impl ControlStats {
    /// Creates statistics without any report.
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

    /// Reports the kind of each resource that is held at its last good version.
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

    /// Reports the number of expressions and operators that are left out.
    pub fn set_unsupported(&self, count: u64) {
        self.lock().unsupported = count;
    }

    /// Reports the number of security policies that are configured and not enforced.
    pub fn set_unenforced(&self, policies: u64) {
        self.lock().unenforced = policies;
    }

    /// Reports whether settings that are read at the start have changed since.
    pub fn set_restart_pending(&self, is_pending: bool) {
        self.lock().restart_pending = is_pending;
    }

    /// Reports the AuthorizationPolicies that apply to the proxy: enforced, in dry run, and denying.
    pub fn set_policies(&self, policies: [u64; 3]) {
        self.lock().policies = policies;
    }

    /// Reports the number of AuthorizationPolicies that apply to the proxy and whose newest version is rejected.
    pub fn set_quarantined_policies(&self, policies: u64) {
        self.lock().quarantined_policies = policies;
    }

    /// Reports the certificates of all servers.
    pub fn set_certificates(&self, certificates: Vec<CertificateState>) {
        self.lock().certificates = certificates;
    }

    /// Reports the identity of the workload.
    pub fn set_identity(&self, identity: IdentityState) {
        self.lock().identity = identity;
    }

    /// Reports a request for an identity.
    pub fn identity_requested(&self, source: &'static str, result: &'static str) {
        let mut state = self.lock();
        let count = state.identity_requests.entry([source, result]);
        *count.or_default() += 1;
    }

    /// Reports that a key set was fetched.
    pub fn fetched_key_set(&self, url: &str, at: SystemTime) {
        self.lock().key_sets.insert(bare(url), at);
    }

    /// Forgets the key set of a URL that is not in use any more.
    pub fn forget_key_set(&self, url: &str) {
        self.lock().key_sets.remove(&bare(url));
    }

    /// Version of the running binary.
    pub fn build(&self) -> &BuildInfo {
        &self.build
    }

    /// Returns a copy of all reports.
    pub fn state(&self) -> ControlState {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a URL without its query, which may have secrets.
fn bare(url: &str) -> String {
    url.split('?').next().unwrap_or(url).to_owned()
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
