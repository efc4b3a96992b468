//! A service in one form, whatever kind of resource describes it.

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

/// A host that requests can be sent to, with its ports and endpoints.
#[derive(Clone, Debug)]
pub(in crate::compile) struct Service {
    /// Full host name, or a wildcard.
    pub host: Arc<str>,
    /// Name for metrics: the first label of a Kubernetes service, the host of any other.
    pub name: Arc<str>,
    /// Namespace of the resource.
    pub namespace: Arc<str>,
    /// Addresses that clients dial for it.
    pub addresses: Vec<IpNet>,
    /// Whether clients dial its endpoints, whose addresses they learn by DNS.
    pub is_headless: bool,
    /// Its ports, in the order of the resource.
    pub ports: Vec<Port>,
    /// Its endpoints, joined over all resources that add to it.
    pub endpoints: Workloads,
    /// The target host, if it is an alias.
    pub alias_of: Option<Arc<str>>,
    /// How long after the last one requests of a client stay with one endpoint, if they do and no rule says otherwise.
    pub affinity: Option<Duration>,
    /// Whether it is no part of the mesh.
    pub external: bool,
    /// Whether a ServiceEntry or a Destination describes it as a host outside of all clusters.
    pub is_outside: bool,
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
    pub provenance: Arc<Vec<Written>>,
    /// Hash over everything that it was made from.
    pub fingerprint: u64,
}

/// An object that describes a service, and where it was written.
#[derive(Clone, Debug)]
pub(in crate::compile) enum Written {
    /// Any object.
    Object {
        object: ObjectRef,
        file: Arc<str>,
        /// Its line in the file.
        line: u32,
    },
    /// A slice, of which there may be very many.
    Slice(Arc<Object<EndpointSlice>>),
    /// The workloads that a selector takes in.
    Selection(Arc<Selection>),
}

impl Written {
    /// As compiled parts say where they came from.
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

/// Where requests for a service go instead.
///
/// Source: Destination `status.requiredSubsets[].trafficShift`.
#[derive(Clone, Debug)]
pub(in crate::compile) struct Shift {
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
pub(in crate::compile) struct Part {
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
pub(in crate::compile) enum ExportBalancer {
    /// By the hash of a client's address.
    ByClient,
    /// The endpoint with the fewest active requests.
    LeastRequest,
    /// Equal turns, unless a rule says something else.
    RoundRobin,
    /// A client stays with the endpoint that it was sent to.
    Sticky,
}

/// How long after its last request a client stays with its endpoint, if a service has it so.
pub(in crate::compile) fn affinity(asked: SessionAffinity) -> Option<Duration> {
    match asked {
        SessionAffinity::ClientIp { timeout } => Some(timeout),
        SessionAffinity::None => None,
    }
}

impl Service {
    /// The port that a destination means: the one that it names, else the only one, else the listener's.
    pub(in crate::compile) fn port(&self, named: Option<u16>, listener_port: u16) -> u16 {
        match (named, &*self.ports) {
            (Some(number), _) => number,
            (None, [only]) => only.number,
            (None, _) => listener_port,
        }
    }

    /// Where the resource was written that decides; none if no resource describes it.
    pub(in crate::compile) fn written(&self) -> Option<Provenance> {
        self.provenance.first()?.provenances().into_iter().next()
    }

    /// The port with this number. An alias that says no ports has every one.
    pub(in crate::compile) fn find_port(&self, number: u16) -> Option<Cow<'_, Port>> {
        let any =
            || (self.alias_of.is_some() && self.ports.is_empty()).then(|| Port::undeclared(number));
        let listed = self.listed_port(number).map(Cow::Borrowed);
        listed.or_else(|| any().map(Cow::Owned))
    }

    /// The port with this number among the listed ones.
    pub(in crate::compile) fn listed_port(&self, number: u16) -> Option<&Port> {
        self.ports.iter().find(|port| port.number == number)
    }

    /// Facts that routes to it follow from: the numbers of its ports, its target host and its shifts.
    pub(in crate::compile) fn shape(&self) -> impl Hash + PartialEq + use<> {
        let ports: Vec<u16> = self.ports.iter().map(|port| port.number).collect();
        let mut shifts = DefaultHasher::new();
        self.shifts.hash(&mut shifts);
        (ports, self.alias_of.clone(), shifts.finish())
    }
}
