//! Changes of the endpoints that a cluster uses: by outcomes, by ejections, and over time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::outlier::{Outcome, Verdict};
use super::{Cluster, Endpoint, PickTables, ejection};
use crate::balance::EndpointIdx;
use crate::registry::{EjectionLock, Moment, exclusion};

impl Cluster {
    /// Records the outcome of a request to an endpoint. Returns a verdict if the endpoint has failed often enough to be
    /// ejected.
    #[inline]
    pub fn report(&self, endpoint: EndpointIdx, outcome: Outcome) -> Option<Verdict> {
        let policy = self.balance.outlier.as_ref()?;
        policy.count(&self.endpoint(endpoint).state.health, outcome)
    }

    /// Ejects an endpoint that has failed often enough, if the limit of ejections allows it.
    #[cold]
    pub fn decide(
        &self,
        endpoint: EndpointIdx,
        verdict: Verdict,
        _turn: &EjectionLock<'_>,
        now: Moment,
    ) {
        if let Some(policy) = &self.balance.outlier {
            ejection::decide(self, policy, endpoint, verdict, now);
        }
    }

    /// Rebuilds the tables if they are stale or a warm-up step is due. Call it whenever the journal has rung;
    /// [`Cluster::sweep`] calls it at every `interval` of the policy.
    pub fn refresh(&self, now: Moment) {
        let stale = &self.state.ejections.stale;
        let warms = || self.live.load().warms_at.is_some_and(|due| due <= now);
        if stale.swap(false, Ordering::AcqRel) || warms() {
            self.rebuild(now);
        }
    }

    /// Excludes endpoints as an active health check would that has failed. For what is not traffic: nothing admits them.
    pub fn exclude(&self, is_out: impl Fn(&Endpoint) -> bool, now: Moment) {
        for endpoint in self.endpoints().iter().filter(|one| is_out(one)) {
            endpoint.state.health.exclude(exclusion::UNHEALTHY);
        }
        self.rebuild(now);
    }

    /// Unejects endpoints whose ejection time is over.
    pub fn sweep(&self, _turn: &EjectionLock<'_>, now: Moment) {
        if let Some(policy) = &self.balance.outlier {
            ejection::sweep(self, policy, now);
        }
        self.refresh(now);
    }

    /// Takes over the live state for a newly compiled cluster: rebuilds the tables in any case, since events after the
    /// compile may have made them stale. Without outlier detection,
    /// unejects all endpoints, since no sweep would do it; without health checks, clears their results.
    pub fn adopt(&self, now: Moment) {
        if self.check.is_none() {
            self.clear_check_results(now);
        }
        if self.balance.outlier.is_none() {
            ejection::uneject_all(self, now);
        }
        self.rebuild(now);
    }

    /// Number of ejected endpoints.
    pub fn ejected(&self) -> usize {
        let endpoints = self.endpoints.iter();
        endpoints
            .filter(|endpoint| endpoint.state.health.is_ejected())
            .count()
    }

    fn rebuild(&self, now: Moment) {
        let live = Arc::new(PickTables::build(self, &self.method, now));
        let is_available = live.is_available();
        if self.available.swap(is_available, Ordering::Relaxed) != is_available {
            self.state.flips.increment();
        }
        let before = self.live.swap(Arc::clone(&live));
        ejection::note_load_changes(self, &before, &live, now);
    }
}
