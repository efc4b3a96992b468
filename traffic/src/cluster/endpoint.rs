//! One endpoint: its address and the properties that picks depend on.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use http::HeaderValue;

use super::{Locality, OutlierPolicy};
use crate::connection::Alternates;
use crate::connection::UpstreamTls;
use crate::registry::{Address, EndpointState, Moment, exclusion};
use crate::telemetry::RequestStats;

/// One address and port of a cluster. Dereferences to the properties that it shares with other endpoints.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Address that accepts connections.
    pub address: Address,
    /// Other addresses to try when connecting to `address` fails; `None` without alternatives.
    pub alternates: Option<Box<Alternates>>,
    /// Relative share of the traffic, at least 1.
    pub weight: u32,
    /// Properties shared with other endpoints.
    pub common: Arc<SharedProperties>,
    /// Runtime state, shared by all workers.
    pub state: Arc<EndpointState>,
}

/// Properties shared by endpoints that were configured together.
#[derive(Clone, Debug)]
pub struct SharedProperties {
    /// `region/zone/subzone`, empty if unknown.
    pub locality: Locality,
    /// Network, empty for the default one.
    pub network: Arc<str>,
    /// Name of the Kubernetes cluster; `None` for the proxy's own.
    pub member: Option<Arc<str>>,
    /// Labels that subsets select by.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Source of the labels.
    pub labels_from: LabelSource,
    /// Name of the Kubernetes node, if known.
    pub node: Option<Arc<str>>,
    /// DNS name of the pod under its headless service, if it has one.
    pub hostname: Option<Arc<str>>,
    /// TLS settings.
    pub tls: EndpointTls,
    /// Gateway of the remote cluster that forwards to the endpoint; `None` if it is reached directly.
    pub hop: Option<Arc<RemoteGateway>>,
    /// Scope under which the registry keeps the state.
    pub scope: Arc<str>,
    /// Request metrics.
    pub stats: Arc<RequestStats>,
}

impl Deref for Endpoint {
    type Target = SharedProperties;

    fn deref(&self) -> &SharedProperties {
        &self.common
    }
}

/// Source of the labels of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelSource {
    /// The pod behind the endpoint.
    Pod,
    /// The resource that lists the endpoint. Also used when it has no labels.
    #[default]
    Resource,
    /// The EndpointSlice that lists the endpoint, because its pod is unknown.
    Slice,
}

impl LabelSource {
    /// The name in admin and explain output; `None` for [`LabelSource::Resource`].
    pub fn word(self) -> Option<&'static str> {
        match self {
            LabelSource::Pod => Some("pod"),
            LabelSource::Resource => None,
            LabelSource::Slice => Some("slice"),
        }
    }
}

/// The TLS settings of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EndpointTls {
    /// The TLS settings of the cluster, if it has any.
    #[default]
    OfCluster,
    /// Its own TLS settings, which replace those of the cluster.
    Own(Arc<dyn UpstreamTls>),
    /// Plain text, whatever the cluster has.
    Plain,
}

impl EndpointTls {
    /// Text for pages; `None` where the settings of the cluster apply.
    pub fn text(&self) -> Option<String> {
        match self {
            EndpointTls::OfCluster => None,
            EndpointTls::Own(tls) => Some(tls.to_string()),
            EndpointTls::Plain => Some("plain text".to_owned()),
        }
    }
}

/// The gateway of a remote cluster, in front of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoteGateway {
    /// Prefix for the request's path: empty, or with a leading and without a trailing slash.
    ///
    /// Source: ServiceImport `spec.ports[].endpoints[].target.path`.
    pub path_prefix: Arc<str>,
    /// The gateway's name, for SNI and certificate verification; never the request's host.
    ///
    /// Source: ServiceImport `spec.ports[].endpoints[].target.host`.
    pub server_name: Option<Arc<str>>,
    /// Key of the local cluster, by which the gateway knows the origin of a request.
    pub from: Option<HeaderValue>,
}

impl Endpoint {
    /// Other addresses to try when connecting to `address` fails.
    pub fn alternates(&self) -> &Alternates {
        self.alternates.as_deref().unwrap_or(&Alternates::None)
    }

    /// Key in the tables of hash balancers: the address, or the path of a Unix socket.
    pub fn hash_key(&self) -> String {
        match &self.address {
            Address::Unix(path) => path.display().to_string(),
            address => address.to_string(),
        }
    }

    /// The reason why the endpoint is not usable, in words; `None` if it is usable.
    pub fn exclusion_reason(&self, policy: Option<&OutlierPolicy>, now: Moment) -> Option<String> {
        let health = &self.state.health;
        let mut reasons = Vec::new();
        if health.is_ejected() {
            let time =
                policy.map_or_else(Default::default, |policy| policy.time(health.multiplier()));
            let left = time.saturating_sub(now.since(health.ejected_at()));
            let times = match health.ejections() {
                1 => "once".to_owned(),
                count => format!("{count} times"),
            };
            let cause = health
                .cause()
                .map_or_else(String::new, |cause| format!(" after {}", cause.in_words()));
            reasons.push(match left.is_zero() {
                // the time is over, or the policy that ejected it is gone
                true => format!("ejected until the next sweep{cause}, {times} so far"),
                false => format!("ejected for {left:.0?} more{cause}, {times} so far"),
            });
        }
        if health.reasons() & exclusion::UNHEALTHY != 0 {
            reasons.push(match self.state.last_check() {
                Some(_) => "fails its health checks".to_owned(),
                None => "waits for its first health check".to_owned(),
            });
        }
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// Health check results in words; `None` before the first check and without health checks.
    pub fn check_results(&self, now: Moment) -> Option<String> {
        let checked = self.state.last_check()?;
        let ago = now.since(checked.at);
        Some(format!("{checked}, {ago:.1?} ago"))
    }
}
