//! Active health checks of a cluster's endpoints: the requests and how their results count. Pure.
//!
//! Who asks is the control thread, once for all workers. Invariant: only an endpoint of a cluster that is checked is
//! out for failing checks.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Cluster, Endpoint};
use crate::balance::EndpointIdx;
use crate::registry::{Checked, EventKind, Moment, Thresholds, why};

/// How endpoints are health-checked.
///
/// Source: annotations `strait.io/health-check...` of a DestinationRule, else of the ServiceEntry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// What is asked.
    pub probe: Probe,
    /// The port that is asked; none for the one that takes the traffic.
    pub port: Option<u16>,
    /// Time from the end of one check to the next.
    pub interval: Duration,
    /// How long a check may take.
    pub timeout: Duration,
    /// How many checks it takes.
    pub thresholds: Thresholds,
}

/// What an endpoint is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// The standard health service of gRPC; passed when the service is SERVING.
    Grpc {
        /// Name of the gRPC service, empty for the whole server.
        service: Arc<str>,
        /// The authority that is asked for; none for the host of the cluster.
        host: Option<Arc<str>>,
    },
    /// GET; passed by the status of the response.
    Http {
        /// Path and query.
        path: Arc<str>,
        /// The host that is asked for; none for the host of the cluster.
        host: Option<Arc<str>>,
        /// Statuses that pass.
        statuses: Vec<RangeInclusive<u16>>,
    },
    /// A connection; passed when it is made.
    Tcp,
}

impl fmt::Display for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.probe {
            Probe::Grpc { service, .. } if service.is_empty() => f.write_str("gRPC"),
            Probe::Grpc { service, .. } => write!(f, "gRPC service {service}"),
            Probe::Http { path, .. } => write!(f, "GET {path}"),
            Probe::Tcp => f.write_str("TCP connection"),
        }?;
        if let Some(port) = self.port {
            write!(f, " on port {port}")?;
        }
        let (interval, timeout) = (self.interval, self.timeout);
        let Thresholds { healthy, unhealthy } = self.thresholds;
        write!(f, " every {interval:?}, timeout {timeout:?}")?;
        write!(f, ", unhealthy after {unhealthy}, healthy after {healthy}")
    }
}

impl Cluster {
    /// Notes what a check of an endpoint came to: whether it passed, and what was said.
    pub fn checked(&self, endpoint: EndpointIdx, result: (bool, Box<str>), now: Moment) {
        let Some(check) = &self.check else {
            return;
        };
        let endpoint = self.endpoint(endpoint);
        let state = &endpoint.state;
        let before = state.checked();
        let checked = Checked::after(before.as_deref(), result, check.thresholds, now);
        let what = match checked.healthy {
            true => EventKind::Healthy,
            false => EventKind::Unhealthy {
                error: checked.to_string().into(),
            },
        };
        let healthy = checked.healthy;
        // what is shown comes before what it shows
        state.set_checked(Some(Arc::new(checked)));
        let is_news = match healthy {
            true => state.health.admit(why::UNHEALTHY, now),
            false => state.health.exclude(why::UNHEALTHY),
        };
        if is_news {
            self.turned(endpoint, what, now);
        }
    }

    /// Endpoints that nobody has asked yet take no traffic while others have said that they are well. To be called
    /// before the cluster takes effect.
    pub fn hold_new(&self) {
        let known_well = |endpoint: &Endpoint| {
            let checked = endpoint.state.checked();
            checked.is_some_and(|checked| checked.healthy)
        };
        if self.check.is_none() || !self.endpoints().iter().any(known_well) {
            return;
        }
        for endpoint in self.endpoints() {
            if endpoint.state.checked().is_none() {
                endpoint.state.health.exclude(why::UNHEALTHY);
            }
        }
    }

    /// Endpoints that fail their health checks, or wait for the first.
    pub fn unhealthy(&self) -> usize {
        let fails = |endpoint: &&Endpoint| endpoint.state.health.reasons() & why::UNHEALTHY != 0;
        self.endpoints().iter().filter(fails).count()
    }

    /// Lets back who failed checks that are not made any more.
    pub(super) fn pardon_unchecked(&self, now: Moment) {
        for endpoint in self.endpoints() {
            endpoint.state.set_checked(None);
            if endpoint.state.health.admit(why::UNHEALTHY, now) {
                self.turned(endpoint, EventKind::HealthCheckRemoved, now);
            }
        }
    }

    fn turned(&self, endpoint: &Endpoint, what: EventKind, now: Moment) {
        let address = &*endpoint.address.to_string();
        let journal = &self.state.journal;
        journal.note(now, &self.state.name, Some(address), what);
        self.state.ejections.stale.store(true, Ordering::Release);
        journal.ring();
    }
}
