//! Workloads that serve a service's ports, before the port is known, and lists of them.
//!
//! Workloads that were written together share their facts. The list of a service is built on first use, when a cluster
//! of the service is built, which happens only after a change.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use config_loader::resource::core::PodOwner;

use crate::compile::members::Member;
use crate::compile::service::port::Labels;
use crate::compile::service::port::Port;
use crate::upstream::{Alternates, TcpKeepalive};
use traffic::cluster::{LabelSource, Locality, RemoteGateway};
use traffic::registry::{Address, Registry};

/// Number of recently listed facts that are searched for equal ones.
const RECENT_MAX: usize = 16;

/// Workload that serves a service's ports.
#[derive(Clone, Debug)]
pub(in crate::compile) struct Workload {
    /// Address of the workload.
    pub host: WorkloadHost,
    /// Relative share of traffic; 0 counts as 1.
    pub weight: u32,
    /// Facts other than the address and weight.
    pub facts: Arc<Facts>,
}

/// Facts about a workload, without its address; shared by workloads with the same facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::compile) struct Facts {
    /// Ports of the workload by service port name.
    pub ports: BTreeMap<String, u16>,
    /// Whether the workload serves no other ports than `ports`.
    pub only_ports: bool,
    /// Ports of the ServiceEntry, if several describe the host: the workload serves these, by their names and targets.
    pub entry_ports: Option<Arc<[Port]>>,
    /// Labels that subsets select by.
    pub labels: Labels,
    /// Owner of the workload's pod, if a resource names the pod.
    pub owner: Option<Arc<PodOwner>>,
    /// Node that the workload runs on, if a resource names it.
    pub node: Option<Arc<str>>,
    /// DNS hostname of the pod below its headless service, if it has one.
    pub hostname: Option<Arc<str>>,
    /// Locality `region/zone/subzone`; empty if unknown.
    pub locality: Locality,
    /// Network of the workload; empty for the default one.
    pub network: Arc<str>,
    /// Mesh identity of the workload, `ns/NAMESPACE/sa/ACCOUNT`, if it is known.
    pub account: Option<Arc<str>>,
    /// Source of the labels. A known pod has an identity, whether it accepts mesh mTLS or not.
    pub labels_from: LabelSource,
    /// Member of the workload; `None` for the local cluster.
    pub member: Option<Arc<Member>>,
    /// Kind of resource that names the workload.
    pub origin: Origin,
    /// Changes to requests through the gateway; `None` for a workload that is reached directly.
    pub hop: Option<Arc<RemoteGateway>>,
    /// Workloads behind it, if it is a gateway that passes TLS through to them.
    pub behind: Option<Arc<Behind>>,
    /// TCP keepalive settings if no rule has any.
    pub keepalive: Option<TcpKeepalive>,
}

/// Service that a gateway reaches by passing the TLS of its cluster's workloads through.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::compile) struct Behind {
    /// Host of the service in the gateway's cluster.
    pub host: Arc<str>,
    /// Ports of the service there, by name and number.
    pub ports: Vec<(Arc<str>, u16)>,
    /// Labels of the workloads there.
    pub labels: Vec<Labels>,
}

impl Behind {
    /// Returns the number of a port there.
    pub(in crate::compile) fn port(&self, port: &Port) -> u16 {
        let named = |(name, _): &&(Arc<str>, u16)| !name.is_empty() && **name == *port.name;
        let found = self.ports.iter().find(named);
        found.map_or(port.number, |(_, number)| *number)
    }
}

impl Deref for Workload {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

/// Kind of resource that names an endpoint; the most precise one comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::compile) enum Origin {
    /// Resource of the local cluster, or a ServiceEntry.
    #[default]
    Native,
    /// EndpointSlice that was copied from another cluster.
    Slice,
    /// Destination of another cluster.
    Gloo,
    /// ServiceImport.
    Import,
}

impl Origin {
    /// Whether the service's own host uses the endpoint only by a GlobalTrafficPolicy.
    pub(in crate::compile) fn waits_for_policy(self) -> bool {
        matches!(self, Origin::Gloo | Origin::Import)
    }
}

/// Address of a workload before its port is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::compile) enum WorkloadHost {
    /// IP address.
    Ip(IpAddr),
    /// DNS name that is one endpoint; a connection goes to the first of its addresses that accepts it.
    Logical(Arc<str>),
    /// DNS name; each of its addresses is an endpoint.
    Name(Arc<str>),
    /// Path of a Unix socket.
    Unix(Arc<Path>),
}

impl WorkloadHost {
    /// Returns the DNS name that has to be resolved, if there is one.
    pub(in crate::compile) fn name(&self) -> Option<&Arc<str>> {
        match self {
            WorkloadHost::Logical(name) | WorkloadHost::Name(name) => Some(name),
            WorkloadHost::Ip(_) | WorkloadHost::Unix(_) => None,
        }
    }
}

impl Facts {
    /// Whether the workload has all labels of `wanted`, including the labels that follow from its location.
    pub(in crate::compile) fn is_in(
        &self,
        wanted: &BTreeMap<String, String>,
        member: &Member,
    ) -> bool {
        let [region, zone, subzone] = self.locality.parts();
        let follows = |key: &str| match key {
            "topology.istio.io/cluster" => Some(&*member.name),
            "topology.istio.io/network" => Some(&*self.network),
            "topology.istio.io/subzone" => Some(subzone),
            "topology.kubernetes.io/region" => Some(region),
            "topology.kubernetes.io/zone" => Some(zone),
            "kubernetes.io/hostname" => self.node.as_deref(),
            _ => None,
        };
        let has = |labels: &Labels| {
            wanted.iter().all(|(key, value)| {
                let own = labels.get(key).map(String::as_str);
                own.or_else(|| follows(key)) == Some(value)
            })
        };
        match &self.behind {
            None => has(&self.labels),
            Some(behind) => behind.labels.iter().any(has),
        }
    }

    /// Returns the distance to the workloads: 0 for a workload itself, 1 for a gateway that leads only to them, 2 for a
    /// gateway that terminates TLS for them.
    pub(in crate::compile) fn remoteness(&self) -> u8 {
        match (self.origin, &self.behind) {
            (Origin::Import, _) => 2,
            (_, Some(_)) => 1,
            _ => 0,
        }
    }

    /// Returns the prefix that is added to a request's path, if there is one.
    pub(in crate::compile) fn path_prefix(&self) -> Option<&Arc<str>> {
        let prefix = &self.hop.as_ref()?.path_prefix;
        (!prefix.is_empty()).then_some(prefix)
    }

    /// Returns the port that receives a service port's traffic; `None` if the workload does not serve it.
    pub(in crate::compile) fn port(&self, port: &Port) -> Option<u16> {
        let port = match &self.entry_ports {
            Some(ports) => ports.iter().find(|own| own.number == port.number)?,
            None => port,
        };
        let own = self.ports.get(&port.name).copied();
        own.or_else(|| (!self.only_ports).then_some(port.target))
    }
}

impl Workload {
    /// Returns a workload with this address and these facts.
    pub(in crate::compile) fn new(host: WorkloadHost, facts: impl Into<Arc<Facts>>) -> Self {
        Self {
            host,
            weight: 1,
            facts: facts.into(),
        }
    }

    /// Returns a workload with this address and no facts.
    pub(in crate::compile) fn at(host: WorkloadHost) -> Self {
        Self::new(host, Facts::default())
    }

    /// Passes the addresses for a service port to `take`, each with its alternates; none for a name that has not been
    /// resolved yet.
    pub(in crate::compile) fn addresses(
        &self,
        port: &Port,
        registry: &Registry,
        mut take: impl FnMut(Address, Alternates),
    ) {
        let Some(number) = self.port(port) else {
            return;
        };
        match &self.host {
            WorkloadHost::Ip(ip) => {
                take(Address::Ip(SocketAddr::new(*ip, number)), Alternates::None);
            }
            WorkloadHost::Unix(path) => take(Address::Unix(Arc::clone(path)), Alternates::None),
            WorkloadHost::Name(name) => {
                let Some(resolution) = registry.resolution(name) else {
                    return;
                };
                let ips = resolution.addresses.iter();
                let all: Arc<[SocketAddr]> = ips.map(|ip| SocketAddr::new(*ip, number)).collect();
                for address in all.iter() {
                    let alternates = Alternates::SameName(Arc::clone(&all));
                    take(Address::Ip(*address), alternates);
                }
            }
            WorkloadHost::Logical(name) => {
                let Some(resolution) = registry.resolution(name) else {
                    return;
                };
                let address = Address::Name {
                    name: Arc::clone(name),
                    port: number,
                };
                let port = number;
                take(address, Alternates::Name { resolution, port });
            }
        }
    }
}

/// Workloads during listing. Equal workloads share their facts.
#[derive(Debug, Default)]
pub(in crate::compile) struct Listing {
    all: Vec<Workload>,
    recent: Vec<Arc<Facts>>,
}

impl Listing {
    /// Adds a workload.
    pub(in crate::compile) fn push(&mut self, workload: Workload) {
        self.all.push(workload);
    }

    /// Returns the workloads that were added.
    pub(in crate::compile) fn all(&self) -> &[Workload] {
        &self.all
    }

    /// Returns equal facts of a recently listed workload, else these.
    pub(in crate::compile) fn share(&mut self, facts: Facts) -> Arc<Facts> {
        let same = self.recent.iter().rev().find(|known| ***known == facts);
        if let Some(same) = same {
            return Arc::clone(same);
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.remove(0);
        }
        let facts = Arc::new(facts);
        self.recent.push(Arc::clone(&facts));
        facts
    }
}

/// Part of a service's workloads.
#[derive(Clone)]
enum Part {
    /// Workloads in a list.
    Listed(Vec<Workload>),
    /// Workloads that are listed on first use.
    Unlisted {
        has_names: bool,
        list: Arc<dyn Fn(&mut Listing) + Send + Sync>,
    },
}

/// Workloads of a service, joined from all resources that add to it. Dereferences to a slice.
#[derive(Clone, Default)]
pub(in crate::compile) struct Workloads {
    parts: Vec<Part>,
    all: OnceLock<Vec<Workload>>,
}

impl Workloads {
    /// Adds the workloads of `list`, which is called on demand. `has_names` says beforehand whether it has DNS names.
    pub(in crate::compile) fn add(
        &mut self,
        has_names: bool,
        list: impl Fn(&mut Listing) + Send + Sync + 'static,
    ) {
        self.all.take();
        let list = Arc::new(list);
        self.parts.push(Part::Unlisted { has_names, list });
    }

    /// Adds a workload.
    pub(in crate::compile) fn push(&mut self, workload: Workload) {
        self.extend([workload]);
    }

    /// Returns the workloads that were added one by one.
    pub(in crate::compile) fn listed(&self) -> impl Iterator<Item = &Workload> {
        let listed = self.parts.iter().filter_map(|part| match part {
            Part::Listed(listed) => Some(listed),
            Part::Unlisted { .. } => None,
        });
        listed.flatten()
    }

    /// Drops the cached list.
    pub(in crate::compile) fn forget_list(&mut self) {
        self.all.take();
    }

    /// Whether some workloads have DNS names, whose addresses come from DNS.
    pub(in crate::compile) fn has_names(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Listed(listed) => listed.iter().any(|one| one.host.name().is_some()),
            Part::Unlisted { has_names, .. } => *has_names,
        })
    }
}

impl Extend<Workload> for Workloads {
    fn extend<I: IntoIterator<Item = Workload>>(&mut self, workloads: I) {
        self.all.take();
        if let Some(Part::Listed(listed)) = self.parts.last_mut() {
            return listed.extend(workloads);
        }
        self.parts
            .push(Part::Listed(workloads.into_iter().collect()));
    }
}

impl FromIterator<Workload> for Workloads {
    fn from_iter<I: IntoIterator<Item = Workload>>(workloads: I) -> Self {
        let mut all = Self::default();
        all.extend(workloads);
        all
    }
}

impl Deref for Workloads {
    type Target = [Workload];

    fn deref(&self) -> &[Workload] {
        self.all.get_or_init(|| {
            let mut listing = Listing::default();
            for part in &self.parts {
                match part {
                    Part::Listed(listed) => listing.all.extend_from_slice(listed),
                    Part::Unlisted { list, .. } => list(&mut listing),
                }
            }
            listing.all
        })
    }
}

impl<'a> IntoIterator for &'a Workloads {
    type Item = &'a Workload;
    type IntoIter = std::slice::Iter<'a, Workload>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Workloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
