//! Effects of health check results.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::balance::EndpointIdx;
use crate::cluster::{Cluster, Endpoint};
use crate::registry::{CheckResult, Checked, EventKind, Moment, exclusion};

impl Cluster {
    /// Records the result of a health check.
    pub fn record_check(&self, endpoint: EndpointIdx, result: CheckResult, now: Moment) {
        let Some(check) = &self.check else {
            return;
        };
        let endpoint = self.endpoint(endpoint);
        let state = &endpoint.state;
        let before = state.last_check();
        let checked = Checked::after(before.as_deref(), result, check.thresholds, now);
        let what = match checked.healthy {
            true => EventKind::Healthy,
            false => EventKind::Unhealthy {
                error: checked.to_string().into(),
            },
        };
        let healthy = checked.healthy;
        // store the details before the state that they explain
        state.set_checked(Some(Arc::new(checked)));
        let is_news = match healthy {
            true => state.health.admit(exclusion::UNHEALTHY, now),
            false => state.health.exclude(exclusion::UNHEALTHY),
        };
        if is_news {
            self.record_event(endpoint, what, now);
        }
    }

    /// Excludes endpoints without a health check result while other endpoints are healthy. Call it before the cluster
    /// takes effect.
    pub fn exclude_unchecked(&self) {
        let known_well = |endpoint: &Endpoint| {
            let checked = endpoint.state.last_check();
            checked.is_some_and(|checked| checked.healthy)
        };
        if self.check.is_none() || !self.endpoints().iter().any(known_well) {
            return;
        }
        for endpoint in self.endpoints() {
            if endpoint.state.last_check().is_none() {
                endpoint.state.health.exclude(exclusion::UNHEALTHY);
            }
        }
    }

    /// Number of endpoints that fail their health checks or wait for the first one.
    pub fn unhealthy(&self) -> usize {
        let fails =
            |endpoint: &&Endpoint| endpoint.state.health.reasons() & exclusion::UNHEALTHY != 0;
        self.endpoints().iter().filter(fails).count()
    }

    /// Clears the results of health checks that the configuration no longer has, and their exclusions.
    pub(in crate::cluster) fn clear_check_results(&self, now: Moment) {
        for endpoint in self.endpoints() {
            endpoint.state.set_checked(None);
            if endpoint.state.health.admit(exclusion::UNHEALTHY, now) {
                self.record_event(endpoint, EventKind::HealthCheckRemoved, now);
            }
        }
    }

    fn record_event(&self, endpoint: &Endpoint, what: EventKind, now: Moment) {
        let address = &*endpoint.address.to_string();
        let journal = &self.state.journal;
        journal.record(now, &self.state.name, Some(address), what);
        self.state.ejections.stale.store(true, Ordering::Release);
        journal.ring();
    }
}
