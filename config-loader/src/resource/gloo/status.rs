//! Status of a Destination, reported by the management plane.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{AppliedAccessPolicy, ClusterRef, MeshRef, PolicyTarget};
use crate::span::Line;

/// `status`.
#[derive(Clone, Debug, Default)]
pub struct DestinationStatus {
    /// `metadata.generation` that the status describes.
    pub observed_generation: i64,
    /// Traffic policies in effect, as the management plane wrote them.
    pub traffic_policies: Vec<AppliedTrafficPolicy>,
    /// Access policies in effect.
    pub access_policies: Vec<AppliedAccessPolicy>,
    /// Whether access policies are written, even if they cannot be read. Then clients that no access policy admits are
    /// denied.
    pub is_restricted: bool,
    /// Host name that only proxies of the local cluster know.
    pub local_fqdn: Option<Arc<str>>,
    /// Federation settings, for access from other clusters.
    pub federation: Option<Federation>,
    /// Traffic shifts that name subsets of this destination.
    pub required_subsets: Vec<RequiredSubsets>,
}

/// Traffic policy in effect. Its API is not supported, so its content is kept as JSON.
#[derive(Clone, Debug)]
pub struct AppliedTrafficPolicy {
    /// Reference of the policy.
    pub policy: MeshRef,
    /// Generation of the policy that is in effect.
    pub observed_generation: i64,
    /// Content of the policy.
    pub spec: serde_json::Value,
    /// Requests that the policy applies to; an error message if they cannot be determined.
    pub target: Result<PolicyTarget, String>,
}

/// Federation settings (`appliedFederation`), for access from other clusters.
#[derive(Clone, Debug, Default)]
pub struct Federation {
    /// Host name for clients in other clusters of the meshes.
    pub hostname: Option<Arc<str>>,
    /// Meshes that may access the destination.
    pub meshes: Vec<MeshRef>,
    /// Whether workloads are reached directly; otherwise through the gateway of their cluster.
    pub flat_network: bool,
    /// Virtual mesh that federates the destination.
    pub virtual_mesh: Option<MeshRef>,
    /// TCP keepalive of connections between clusters.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Source line within the document.
    pub line: Line,
}

/// TCP keepalive. Unset values use the operating system's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpKeepalive {
    /// Number of unanswered probes after which a connection is dead.
    pub probes: Option<u32>,
    /// Idle time of a connection before the first probe.
    pub time: Option<Duration>,
    /// Interval between probes.
    pub interval: Option<Duration>,
}

/// Traffic shift that names subsets of a destination.
#[derive(Clone, Debug, Default)]
pub struct RequiredSubsets {
    /// Reference of the policy with the shift.
    pub policy: MeshRef,
    /// Generation of the policy.
    pub observed_generation: i64,
    /// Destinations of the shift.
    pub shift: TrafficShift,
    /// Source line within the document.
    pub line: Line,
}

impl RequiredSubsets {
    /// Returns the requests to `own` that the shift applies to; `None` for every request. These are the requests of the
    /// shift's policy, if it is among `policies`; or all requests, if every destination of the shift is the same
    /// service.
    ///
    /// # Errors
    /// Returns a message if the requests cannot be determined.
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

/// Returns the name of a generated subset: its labels as `key-value`, sorted by key, joined with `-`.
pub fn subset_name(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}-{value}"))
        .collect();
    pairs.join("-")
}

/// Weighted destinations of a policy. The weights add up to 100.
#[derive(Clone, Debug, Default)]
pub struct TrafficShift {
    /// Destinations in document order.
    pub destinations: Vec<WeightedDestination>,
}

/// Destination of a traffic shift.
#[derive(Clone, Debug)]
pub struct WeightedDestination {
    /// Share of the traffic, in percent.
    pub weight_percent: u32,
    /// Target of the requests.
    pub target: ShiftTarget,
    /// Header edits for requests to this destination.
    pub headers: HeaderManipulation,
    /// Source line within the document.
    pub line: Line,
}

/// Target of a traffic shift.
#[derive(Clone, Debug)]
pub enum ShiftTarget {
    /// Cluster named by a request header. Not supported.
    ClusterHeader(Arc<str>),
    /// Service or a subset of it.
    Kube {
        /// Reference of the service.
        service: ClusterRef,
        /// Labels of the subset's workloads; empty for all.
        subset: BTreeMap<String, String>,
        /// Port number; set if the service has several ports.
        port: Option<u16>,
    },
    /// Static destination. Not supported.
    Static(MeshRef),
    /// Virtual destination. Not supported.
    Virtual {
        /// Reference of the virtual destination.
        destination: MeshRef,
        /// Labels of the subset's workloads; empty for all.
        subset: BTreeMap<String, String>,
    },
}

/// Header edits of requests and responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderManipulation {
    /// Headers added to the request.
    pub append_request: BTreeMap<String, String>,
    /// Headers added to the response.
    pub append_response: BTreeMap<String, String>,
    /// Headers removed from the request.
    pub remove_request: Vec<Arc<str>>,
    /// Headers removed from the response.
    pub remove_response: Vec<Arc<str>>,
}
