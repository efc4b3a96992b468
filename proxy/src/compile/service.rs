//! Service in one form, independent of the kind of resource that describes it.

pub(in crate::compile) mod federation;
pub(in crate::compile) mod port;
pub(in crate::compile) mod selections;
pub(in crate::compile) mod sharing;
pub(in crate::compile) mod workload;
pub(in crate::compile) mod workload_entry;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use config_loader::ObjectRef;
use config_loader::resource::core::{EndpointSlice, SessionAffinity, TrafficDistribution};
use config_loader::resource::{HealthChecked, Object};
use ipnet::IpNet;

use crate::compile::members::Member;
use crate::compile::provenance::provenance_of;
use crate::compile::service::port::Port;
use crate::compile::service::selections::Selection;
use crate::compile::service::sharing::Exposure;
use crate::compile::service::sharing::Sharing;
pub(in crate::compile) use crate::compile::service::workload::Workloads;
use traffic::provenance::Provenance;
use traffic::route::Conditions;

/// Host that requests can be sent to, with its ports and endpoints.
#[derive(Clone, Debug)]
pub(in crate::compile) struct Service {
    /// Full host name, or a wildcard.
    pub host: Arc<str>,
    /// Name for metrics: the first label of the host of a Kubernetes service, the host of any other.
    pub name: Arc<str>,
    /// Namespace of the resource.
    pub namespace: Arc<str>,
    /// Addresses that clients dial for the service.
    pub addresses: Vec<IpNet>,
    /// Whether clients dial the endpoints, whose addresses they learn by DNS.
    pub is_headless: bool,
    /// Ports in the order of the resource.
    pub ports: Vec<Port>,
    /// Endpoints of all resources that add to the service.
    pub endpoints: Workloads,
    /// Target host, if the service is an alias.
    pub alias_of: Option<Arc<str>>,
    /// Lifetime of an affinity entry by client address after its last request; `None` without session affinity. A
    /// rule's setting takes precedence.
    pub affinity: Option<Duration>,
    /// Whether the service is outside of the mesh.
    pub external: bool,
    /// Whether a ServiceEntry or a Destination describes the service as a host outside of all clusters.
    pub is_outside: bool,
    /// Active health checking of the endpoints.
    pub health_check: HealthChecked,
    /// Preference among the endpoints if no rule sets one.
    pub distribution: TrafficDistribution,
    /// Names of which an endpoint's certificate must carry one; empty if the resource has none.
    pub subject_alt_names: Vec<Arc<str>>,
    /// Identity of the workloads in other clusters, `ns/NAMESPACE/sa/ACCOUNT`, if an import names it.
    pub imported_account: Option<Arc<str>>,
    /// Whether the host is served by several clusters together (`clusterset.local`), or represents one of them.
    pub is_cluster_set: bool,
    /// Cluster that the host represents alone, if any.
    pub stands_for: Option<Arc<Member>>,
    /// Distribution of traffic among members, if a policy sets one.
    pub sharing: Option<Sharing>,
    /// Clusters that may serve and use the service, if a policy limits them.
    pub exposure: Option<Exposure>,
    /// Whether the service belongs to the local cluster and has endpoints there.
    pub is_exportable: bool,
    /// Load balancing of requests from other clusters, if their ServiceExport sets it.
    pub export: Option<ExportBalancer>,
    /// Traffic shift policies for the service as a whole. The first one that takes a request applies; none follows one
    /// that takes all requests.
    pub shifts: Vec<Arc<Shift>>,
    /// Subsets that exist without a DestinationRule, by name.
    pub subsets: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    /// Resources that describe the service; the first one takes precedence.
    pub provenance: Arc<Vec<Written>>,
    /// Hash of all inputs of the service.
    pub fingerprint: u64,
}

/// Object that describes a service, with its location.
#[derive(Clone, Debug)]
pub(in crate::compile) enum Written {
    /// Any object.
    Object {
        object: ObjectRef,
        file: Arc<str>,
        /// Line of the object in the file.
        line: u32,
    },
    /// EndpointSlice, shared because there may be very many.
    Slice(Arc<Object<EndpointSlice>>),
    /// Workloads that a selector matches.
    Selection(Arc<Selection>),
}

impl Written {
    /// Returns the locations in the form that compiled parts carry.
    pub(in crate::compile) fn provenances(&self) -> Vec<Provenance> {
        match self {
            Self::Object { object, file, line } => vec![Provenance {
                object: object.to_string().into(),
                file: Arc::clone(file),
                line: *line,
            }],
            Self::Slice(slice) => vec![provenance_of(slice, 0)],
            Self::Selection(selection) => {
                let objects = selection.objects();
                objects.map(|object| provenance_of(object, 0)).collect()
            }
        }
    }
}

/// Traffic shift policy of a service: other destinations for its requests.
///
/// Source: Destination `status.requiredSubsets[].trafficShift`.
#[derive(Clone, Debug)]
pub(in crate::compile) struct Shift {
    /// Conditions on the requests, of which one must hold; empty for all requests.
    pub requests: Box<[Conditions]>,
    /// Parts of the shift; their weights sum up to 100.
    pub parts: Vec<Part>,
    /// Location of the policy.
    pub provenance: Provenance,
    /// Hash of the object with the policy.
    pub fingerprint: u64,
}

impl Hash for Shift {
    /// Hashes all but the requests, which follow from the object.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.parts, &self.provenance, self.fingerprint).hash(hasher);
    }
}

/// Part of a traffic shift.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::compile) struct Part {
    /// Share of the traffic, in percent.
    pub weight_percent: u32,
    /// Host that the part goes to.
    pub host: Arc<str>,
    /// Subset of the host; empty for the whole.
    pub subset: Arc<str>,
    /// Port of the host; `None` for that of the request.
    pub port: Option<u16>,
}

/// Load balancing of requests from other clusters.
///
/// Source: ServiceExport `spec.loadBalancer` and `spec.sessionSticky`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compile) enum ExportBalancer {
    /// Hash of the client's address.
    ByClient,
    /// Endpoint with the fewest active requests.
    LeastRequest,
    /// Endpoints in turn, unless a rule sets a balancer.
    RoundRobin,
    /// Session affinity by the client's address.
    Sticky,
}

/// Returns the lifetime of a client's affinity entry after its last request; `None` without session affinity.
pub(in crate::compile) fn affinity(asked: SessionAffinity) -> Option<Duration> {
    match asked {
        SessionAffinity::ClientIp { timeout } => Some(timeout),
        SessionAffinity::None => None,
    }
}

impl Service {
    /// Returns the port of a destination: the one that it names, else the only one, else the listener's.
    pub(in crate::compile) fn port(&self, named: Option<u16>, listener_port: u16) -> u16 {
        match (named, &*self.ports) {
            (Some(number), _) => number,
            (None, [only]) => only.number,
            (None, _) => listener_port,
        }
    }

    /// Returns the location of the resource that takes precedence; `None` if no resource describes the service.
    pub(in crate::compile) fn written(&self) -> Option<Provenance> {
        self.provenance.first()?.provenances().into_iter().next()
    }

    /// Returns the port with this number. An alias without listed ports has every port.
    pub(in crate::compile) fn find_port(&self, number: u16) -> Option<Cow<'_, Port>> {
        let any =
            || (self.alias_of.is_some() && self.ports.is_empty()).then(|| Port::undeclared(number));
        let listed = self.listed_port(number).map(Cow::Borrowed);
        listed.or_else(|| any().map(Cow::Owned))
    }

    /// Returns the port with this number among the listed ones.
    pub(in crate::compile) fn listed_port(&self, number: u16) -> Option<&Port> {
        self.ports.iter().find(|port| port.number == number)
    }

    /// Facts that routes to it follow from: the numbers of its ports, its target host, its shifts, and whether other
    /// clusters may use it.
    pub(in crate::compile) fn shape(&self) -> impl Hash + PartialEq + use<> {
        let ports: Vec<u16> = self.ports.iter().map(|port| port.number).collect();
        let mut shifts = DefaultHasher::new();
        self.shifts.hash(&mut shifts);
        (
            ports,
            self.alias_of.clone(),
            shifts.finish(),
            self.is_exportable,
        )
    }
}
