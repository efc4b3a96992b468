//! What the management plane says of a destination.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{AppliedAccessPolicy, ClusterRef, MeshRef, PolicyTarget};
use crate::span::Line;

/// `status`.
#[derive(Clone, Debug, Default)]
pub struct DestinationStatus {
    /// The `metadata.generation` that the status is about.
    pub observed_generation: i64,
    /// The traffic policies in effect, as the management plane wrote them.
    pub traffic_policies: Vec<AppliedTrafficPolicy>,
    /// The access policies in effect.
    pub access_policies: Vec<AppliedAccessPolicy>,
    /// A host name that only proxies of the local cluster know.
    pub local_fqdn: Option<Arc<str>>,
    /// How other clusters reach it.
    pub federation: Option<Federation>,
    /// Traffic shifts that name subsets of this destination.
    pub required_subsets: Vec<RequiredSubsets>,
}

/// A traffic policy in effect. Its own API is none that we read, so its specification is kept as it was written.
#[derive(Clone, Debug)]
pub struct AppliedTrafficPolicy {
    /// The policy.
    pub policy: MeshRef,
    /// The generation of it that is in effect.
    pub observed_generation: i64,
    /// What it says.
    pub spec: serde_json::Value,
    /// Which requests it applies to, or why that is unknown.
    pub target: Result<PolicyTarget, String>,
}

/// `appliedFederation`: how other clusters reach a destination.
#[derive(Clone, Debug, Default)]
pub struct Federation {
    /// The host name by which members of the meshes reach it.
    pub hostname: Option<Arc<str>>,
    /// The meshes that may.
    pub meshes: Vec<MeshRef>,
    /// Whether workloads are reached directly; otherwise through the gateway of their cluster.
    pub flat_network: bool,
    /// The virtual mesh that federates it.
    pub virtual_mesh: Option<MeshRef>,
    /// Keepalive of connections between clusters.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Where it was written.
    pub line: Line,
}

/// TCP keepalive. What is absent is the operating system's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpKeepalive {
    /// How many probes without an answer make a connection dead.
    pub probes: Option<u32>,
    /// How long a connection idles before the first probe.
    pub time: Option<Duration>,
    /// How long between probes.
    pub interval: Option<Duration>,
}

/// A traffic shift that names subsets of a destination.
#[derive(Clone, Debug, Default)]
pub struct RequiredSubsets {
    /// The policy that says so.
    pub policy: MeshRef,
    /// The generation of it.
    pub observed_generation: i64,
    /// The shift.
    pub shift: TrafficShift,
    /// Where it was written.
    pub line: Line,
}

impl RequiredSubsets {
    /// Which requests to `own`, which has these policies, the shift is known to be for; none for every request. It is
    /// for those of its policy, if that is one of these; or for all, if every part of the shift is the same service.
    ///
    /// # Errors
    /// Why it is not known to be for any.
    pub fn target<'p>(
        &self,
        policies: &'p [AppliedTrafficPolicy],
        own: &ClusterRef,
    ) -> Result<Option<&'p PolicyTarget>, String> {
        let name = &self.policy.name;
        let mut known = policies.iter();
        if let Some(applied) = known.find(|applied| applied.policy == self.policy) {
            let target = applied.target.as_ref();
            return target
                .map(Some)
                .map_err(|why| format!("policy `{name}`: {why}"));
        }
        let is_own = |part: &WeightedDestination| match &part.target {
            ShiftTarget::Kube { service, .. } => {
                (&service.name, &service.namespace) == (&own.name, &own.namespace)
            }
            ShiftTarget::ClusterHeader(_)
            | ShiftTarget::Static(_)
            | ShiftTarget::Virtual { .. } => false,
        };
        match self.shift.destinations.iter().all(is_own) {
            true => Ok(None),
            false => Err(format!(
                "policy `{name}` may be attached to another service"
            )),
        }
    }
}

/// The name of a subset that no rule names: its labels, `key-value`, by key, joined with `-`.
pub fn subset_name(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}-{value}"))
        .collect();
    pairs.join("-")
}

/// Where a policy sends requests. The weights sum up to 100.
#[derive(Clone, Debug, Default)]
pub struct TrafficShift {
    /// In the order in which they were written.
    pub destinations: Vec<WeightedDestination>,
}

/// One destination of a shift.
#[derive(Clone, Debug)]
pub struct WeightedDestination {
    /// Its share, in percent.
    pub weight_percent: u32,
    /// What it is.
    pub target: ShiftTarget,
    /// Changes to headers when it is chosen.
    pub headers: HeaderManipulation,
    /// Where it was written.
    pub line: Line,
}

/// What a shift sends requests to.
#[derive(Clone, Debug)]
pub enum ShiftTarget {
    /// The cluster that a request header names. Not followed.
    ClusterHeader(Arc<str>),
    /// A service, or a subset of it.
    Kube {
        /// The service.
        service: ClusterRef,
        /// The labels of the workloads; empty for all.
        subset: BTreeMap<String, String>,
        /// The port, when the service has several.
        port: Option<u16>,
    },
    /// Something static. Not followed.
    Static(MeshRef),
    /// A virtual destination. Not followed.
    Virtual {
        /// The virtual destination.
        destination: MeshRef,
        /// The labels of the workloads; empty for all.
        subset: BTreeMap<String, String>,
    },
}

/// Changes to headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderManipulation {
    /// Added to the request.
    pub append_request: BTreeMap<String, String>,
    /// Added to the response.
    pub append_response: BTreeMap<String, String>,
    /// Taken from the request.
    pub remove_request: Vec<Arc<str>>,
    /// Taken from the response.
    pub remove_response: Vec<Arc<str>>,
}
