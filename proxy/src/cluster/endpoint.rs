//! One address that takes traffic, with what it is chosen by.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use http::HeaderValue;

use super::{Locality, OutlierPolicy};
use crate::registry::{Address, EndpointState, Moment, why};
use crate::telemetry::RequestStats;
use crate::tls::ClientTls;
use crate::upstream::Alternates;

/// One address and port of a cluster. Reads as what it has in common with others, too.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it accepts connections.
    pub address: Address,
    /// Where else a connection may be made to when the address takes none; none for an address without alternatives.
    pub alternates: Option<Box<Alternates>>,
    /// Relative share of traffic, at least 1.
    pub weight: u32,
    /// What others have, too.
    pub common: Arc<Common>,
    /// Live state shared by all workers.
    pub state: Arc<EndpointState>,
}

/// What endpoints of a cluster have in common that were written together.
#[derive(Clone, Debug)]
pub struct Common {
    /// `region/zone/subzone`, empty when not known.
    pub locality: Locality,
    /// Network that they are on, empty for the default one.
    pub network: Arc<str>,
    /// Name of the Kubernetes cluster that they are in; none for the proxy's own.
    pub member: Option<Arc<str>>,
    /// Labels that subsets select by.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Source of the labels.
    pub labels_from: LabelSource,
    /// The node that they run on, if that is known.
    pub node: Option<Arc<str>>,
    /// The name that DNS has of the pod under its headless service, if it has one of its own.
    pub hostname: Option<Arc<str>>,
    /// Their TLS settings.
    pub tls: EndpointTls,
    /// How their gateway is asked for them; none for endpoints that are reached directly.
    pub hop: Option<Arc<Hop>>,
    /// Under which name the registry has their state.
    pub scope: Arc<str>,
    /// Where their requests are counted.
    pub stats: Arc<RequestStats>,
}

impl Deref for Endpoint {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// Source of the labels of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelSource {
    /// The pod behind it.
    Pod,
    /// The resource that names it, or nothing.
    #[default]
    Resource,
    /// The EndpointSlice that names it, whose labels stand in for those of a pod that is not known.
    Slice,
}

impl LabelSource {
    /// The word for answers; none for the resource that names the endpoint.
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
    /// That of its cluster, if that has one.
    #[default]
    OfCluster,
    /// One of its own, whatever its cluster has.
    Own(Arc<ClientTls>),
    /// None, whatever its cluster has.
    Plain,
}

impl EndpointTls {
    /// What it is, for pages; nothing where it is that of the cluster.
    pub fn text(&self) -> Option<String> {
        match self {
            EndpointTls::OfCluster => None,
            EndpointTls::Own(tls) => Some(tls.to_string()),
            EndpointTls::Plain => Some("plain text".to_owned()),
        }
    }
}

/// How a workload is reached that is behind the gateway of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hop {
    /// What is put in front of a request's path: empty, or with a leading and without a trailing slash.
    ///
    /// Source: ServiceImport `spec.ports[].endpoints[].target.path`.
    pub path_prefix: Arc<str>,
    /// The gateway's name, for SNI and the check of its certificate; never the request's host.
    ///
    /// Source: ServiceImport `spec.ports[].endpoints[].target.host`.
    pub server_name: Option<Arc<str>>,
    /// Key of the proxy's own cluster, by which the gateway knows where a request comes from.
    pub from: Option<HeaderValue>,
}

impl Endpoint {
    /// Where else a connection may be made to when the address takes none.
    pub fn alternates(&self) -> &Alternates {
        self.alternates.as_deref().unwrap_or(&Alternates::None)
    }

    /// What balancers by hash know it as: its address, or the path of a Unix socket.
    pub fn hash_key(&self) -> String {
        match &self.address {
            Address::Unix(path) => path.display().to_string(),
            address => address.to_string(),
        }
    }

    /// Why it may not be used, in words; `None` if it may.
    pub fn why_out(&self, policy: Option<&OutlierPolicy>, now: Moment) -> Option<String> {
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
                // its time is over, or the policy that ejected it is gone
                true => format!("ejected until the next sweep{cause}, {times} so far"),
                false => format!("ejected for {left:.0?} more{cause}, {times} so far"),
            });
        }
        if health.reasons() & why::UNHEALTHY != 0 {
            reasons.push(match self.state.checked() {
                Some(_) => "fails its health checks".to_owned(),
                None => "waits for its first health check".to_owned(),
            });
        }
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// What its health checks came to, in words; `None` before the first, and where none are made.
    pub fn check_results(&self, now: Moment) -> Option<String> {
        let checked = self.state.checked()?;
        let ago = now.since(checked.at);
        Some(format!("{checked}, {ago:.1?} ago"))
    }
}
