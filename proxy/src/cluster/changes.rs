//! What changes which endpoints a cluster uses: outcomes, ejections, and the time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::outlier::{Outcome, Verdict};
use super::{Cluster, Live, ejection};
use crate::balance::EndpointIdx;
use crate::registry::{EjectionTurn, Moment};

impl Cluster {
    /// Records the outcome of a request to an endpoint; a verdict if it has failed often enough to be ejected.
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
        _turn: &EjectionTurn<'_>,
        now: Moment,
    ) {
        if let Some(policy) = &self.balance.outlier {
            ejection::decide(self, policy, endpoint, verdict, now);
        }
    }

    /// Looks at who may come back, and at what is stale; to be called every `interval` of the policy, and when the
    /// journal has rung.
    pub fn refresh(&self, now: Moment) {
        let stale = &self.state.ejections.stale;
        let warms = || self.live.load().warms_at.is_some_and(|due| due <= now);
        if stale.swap(false, Ordering::AcqRel) || warms() {
            self.rebuild(now);
        }
    }

    /// Lets ejected endpoints back whose time is over.
    pub fn sweep(&self, _turn: &EjectionTurn<'_>, now: Moment) {
        if let Some(policy) = &self.balance.outlier {
            ejection::sweep(self, policy, now);
        }
        self.refresh(now);
    }

    /// Rebuilds the tables whatever they show: of a cluster that has just taken effect, something may have happened
    /// since it was compiled. Without outlier detection no endpoint stays ejected, since no sweep would uneject it, and
    /// without health checks no endpoint is unhealthy.
    pub fn adopt(&self, now: Moment) {
        if self.check.is_none() {
            self.pardon_unchecked(now);
        }
        if self.balance.outlier.is_none() {
            ejection::uneject_all(self, now);
        }
        self.rebuild(now);
    }

    /// Endpoints that are ejected.
    pub fn ejected(&self) -> usize {
        let endpoints = self.endpoints.iter();
        endpoints
            .filter(|endpoint| endpoint.state.health.is_ejected())
            .count()
    }

    fn rebuild(&self, now: Moment) {
        let live = Arc::new(Live::build(self, &self.method, now));
        let is_available = live.is_available();
        if self.available.swap(is_available, Ordering::Relaxed) != is_available {
            self.state.flips.note();
        }
        let before = self.live.swap(Arc::clone(&live));
        ejection::tell_shift(self, &before, &live, now);
    }
}
