//! A service in one form, whatever kind of resource describes it.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use config_loader::ObjectRef;
use config_loader::resource::core::{EndpointSlice, SessionAffinity, TrafficDistribution};
use config_loader::resource::{HealthChecked, Object, port_protocol};

use crate::balance::{Policy, Simple};
use crate::cluster::Balance;
use crate::compile::balance;
use crate::compile::federation::{Exposure, Sharing};
use crate::compile::members::Member;
use crate::compile::services::provenance;
pub(super) use crate::compile::workload::{
    Behind, Facts, Origin, Workload, WorkloadHost, Workloads,
};
use crate::provenance::Provenance;
use crate::route::Conditions;
use crate::upstream::Protocol;

/// Labels of an endpoint, shared by all that were written together.
pub(super) type Labels = Arc<BTreeMap<String, String>>;

/// A host that requests can be sent to, with its ports and endpoints.
#[derive(Clone, Debug)]
pub(super) struct Service {
    /// Full host name, or a wildcard.
    pub host: Arc<str>,
    /// Name for metrics: the first label of a Kubernetes service, the host of any other.
    pub name: Arc<str>,
    /// Namespace of the resource.
    pub namespace: Arc<str>,
    /// Its ports, in the order of the resource.
    pub ports: Vec<Port>,
    /// Its endpoints, joined over all resources that add to it.
    pub endpoints: Workloads,
    /// Whether its requests go where their clients dialled.
    pub original_destination: bool,
    /// How long after the last one requests of a client stay with one endpoint, if they do and no rule says otherwise.
    pub affinity: Option<Duration>,
    /// Whether it is no part of the mesh.
    pub external: bool,
    /// Whether and how its endpoints are health-checked.
    pub health_check: HealthChecked,
    /// Which of its endpoints are preferred, where no rule says so.
    pub distribution: TrafficDistribution,
    /// Names of which the certificates of its endpoints carry one; empty where it says none.
    pub subject_alt_names: Vec<Arc<str>>,
    /// The identity of its workloads in other clusters, `ns/NAMESPACE/sa/ACCOUNT`, if an import says so.
    pub imported_account: Option<Arc<str>>,
    /// Whether its host is one under which clusters serve together (`clusterset.local`), or that represents one of
    /// them.
    pub is_cluster_set: bool,
    /// The cluster that its host represents alone, if it does for one.
    pub stands_for: Option<Arc<Member>>,
    /// How members share its traffic, when a policy says so.
    pub sharing: Option<Sharing>,
    /// Who may serve and use it, when that is limited.
    pub exposure: Option<Exposure>,
    /// Whether it is one of the proxy's own cluster, with endpoints of its own.
    pub is_exportable: bool,
    /// How requests of other clusters are balanced, where their ServiceExport says so.
    pub export: Option<ExportBalancer>,
    /// Where requests go that are for the whole of it, where policies shift them: the first that takes a request
    /// counts, and none is behind one that takes all.
    pub shifts: Vec<Arc<Shift>>,
    /// Subsets that no DestinationRule has to define, by name.
    pub subsets: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    /// The resources that describe it, the one that decides first.
    pub provenance: Vec<Written>,
    /// Hash over everything that it was made from.
    pub fingerprint: u64,
}

/// An object that describes a service, and where it was written.
#[derive(Clone, Debug)]
pub(super) enum Written {
    /// Any object.
    Object {
        object: ObjectRef,
        file: Arc<str>,
        /// Its line in the file.
        line: u32,
    },
    /// A slice, of which there may be very many.
    Slice(Arc<Object<EndpointSlice>>),
}

impl Written {
    /// As compiled parts say where they came from.
    pub(super) fn provenance(&self) -> Provenance {
        match self {
            Self::Object { object, file, line } => Provenance {
                object: object.to_string().into(),
                file: Arc::clone(file),
                line: *line,
            },
            Self::Slice(slice) => provenance(slice, 0),
        }
    }
}

/// Where requests for a service go instead.
///
/// Source: Destination `status.requiredSubsets[].trafficShift`.
#[derive(Clone, Debug)]
pub(super) struct Shift {
    /// The requests that it takes, any one is enough; empty for all.
    pub requests: Box<[Conditions]>,
    /// Its parts; their weights sum up to 100.
    pub parts: Vec<Part>,
    /// Where it was written.
    pub provenance: Provenance,
    /// Hash of the object that says so.
    pub fingerprint: u64,
}

impl Hash for Shift {
    /// The requests follow from the object.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.parts, &self.provenance, self.fingerprint).hash(hasher);
    }
}

/// A part of a shift.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    /// Its share, in percent.
    pub weight_percent: u32,
    /// The host that it goes to.
    pub host: Arc<str>,
    /// A subset of it; empty for the whole.
    pub subset: Arc<str>,
    /// A port of it; none for that of the request.
    pub port: Option<u16>,
}

/// How requests of other clusters are balanced.
///
/// Source: ServiceExport `spec.loadBalancer` and `spec.sessionSticky`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExportBalancer {
    /// By the hash of a client's address.
    ByClient,
    /// The endpoint with the fewest active requests.
    LeastRequest,
    /// Equal turns, unless a rule says something else.
    RoundRobin,
    /// A client stays with the endpoint that it was sent to.
    Sticky,
}

impl ExportBalancer {
    /// How long after its last request a client stays.
    const LIFETIME: Duration = Duration::from_secs(3600);

    /// Puts it in the place of what a rule or the service says, unless that is a key of a rule; `is_said` tells whether
    /// a rule says anything.
    pub(super) fn overrule(self, balance: &mut Balance, is_said: bool) {
        if matches!(balance.policy, Policy::Hash(_)) && balance.remember.is_none() {
            return;
        }
        (balance.policy, balance.remember) = match self {
            ExportBalancer::ByClient => (balance::by_client(), None),
            ExportBalancer::LeastRequest => (Policy::Simple(Simple::LeastRequest), None),
            ExportBalancer::RoundRobin if is_said || balance.remember.is_some() => return,
            ExportBalancer::RoundRobin => (Policy::Simple(Simple::RoundRobin), None),
            ExportBalancer::Sticky => (balance::by_client(), Some(Self::LIFETIME)),
        };
    }
}

/// How long after its last request a client stays with its endpoint, if a service has it so.
pub(super) fn affinity(asked: SessionAffinity) -> Option<Duration> {
    match asked {
        SessionAffinity::ClientIp { timeout } => Some(timeout),
        SessionAffinity::None => None,
    }
}

/// A port that clients address.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// Number that clients use.
    pub number: u16,
    /// Name; endpoints may map it to a port of their own.
    pub name: String,
    /// What its endpoints speak.
    pub protocol: Protocol,
    /// Port of endpoints that do not map the name.
    pub target: u16,
    /// Whether its requests have paths, to which a gateway's prefix can be put.
    pub carries_paths: bool,
}

impl Service {
    /// The port that a destination means: the one that it names, else the only one, else the listener's.
    pub(super) fn port(&self, named: Option<u16>, listener_port: u16) -> u16 {
        match (named, &*self.ports) {
            (Some(number), _) => number,
            (None, [only]) => only.number,
            (None, _) => listener_port,
        }
    }

    /// Whether its ports have the numbers of those of another one.
    pub(super) fn has_ports_of(&self, other: &Self) -> bool {
        let numbers =
            |service: &Self| -> Vec<u16> { service.ports.iter().map(|port| port.number).collect() };
        numbers(self) == numbers(other)
    }

    /// The port with this number.
    pub(super) fn find_port(&self, number: u16) -> Option<&Port> {
        self.ports.iter().find(|port| port.number == number)
    }
}

/// What the endpoints of a port of a Service, or of what represents one, speak: by `appProtocol`, else by the prefix of
/// the port's name, else by the protocol that the port declares; HTTP/1.1 when nothing is said.
pub(super) fn protocol(app_protocol: Option<&str>, name: &str, declared: &str) -> Protocol {
    match port_protocol::is_http2(port_protocol::named(app_protocol, name, declared)) {
        true => Protocol::Http2,
        false => Protocol::Http1,
    }
}

/// Whether what a port speaks has paths; the same sources count as for [`protocol`].
pub(super) fn carries_paths(app_protocol: Option<&str>, name: &str, declared: &str) -> bool {
    port_protocol::has_paths(port_protocol::named(app_protocol, name, declared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_is_chosen_by_app_protocol_then_name_then_declaration() {
        let rows: &[(Option<&str>, &str, &str, Protocol)] = &[
            (None, "http", "TCP", Protocol::Http1),
            (None, "http2", "TCP", Protocol::Http2),
            (None, "http2-web", "", Protocol::Http2),
            (None, "grpc", "", Protocol::Http2),
            (None, "grpc-api", "", Protocol::Http2),
            (None, "grpc-web", "", Protocol::Http2),
            (None, "GRPC-Web-api", "", Protocol::Http2),
            (None, "http-grpc", "", Protocol::Http1),
            (None, "web", "HTTP2", Protocol::Http2),
            (None, "web", "GRPC", Protocol::Http2),
            (None, "web", "", Protocol::Http1),
            (Some("http"), "grpc", "GRPC", Protocol::Http1),
            (Some("kubernetes.io/h2c"), "web", "TCP", Protocol::Http2),
            (Some("grpc"), "web", "TCP", Protocol::Http2),
            (Some("grpc-web"), "http", "", Protocol::Http2),
            (Some("http2-api"), "http", "", Protocol::Http2),
            (Some("kubernetes.io/ws"), "http2", "", Protocol::Http1),
            (Some("other"), "http2", "HTTP2", Protocol::Http1),
        ];
        for (app_protocol, name, declared, expected) in rows {
            assert_eq!(
                protocol(*app_protocol, name, declared),
                *expected,
                "{app_protocol:?} {name} {declared}"
            );
        }
    }
}
