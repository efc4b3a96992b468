//! Something that serves a service's ports, before the port is known, and lists of it.
//!
//! What workloads have in common that were written together is held once. A service's list is worked out when somebody
//! asks for it: that is when a cluster of the service is made, which happens only after a change.

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

/// What a list looks back to for workloads that are alike.
const RECENT_MAX: usize = 16;

/// Something that serves a service's ports.
#[derive(Clone, Debug)]
pub(in crate::compile) struct Workload {
    /// Where it is.
    pub host: WorkloadHost,
    /// Relative share of traffic; 0 counts as 1.
    pub weight: u32,
    /// What else is known of it.
    pub facts: Arc<Facts>,
}

/// What is known of a workload apart from where it is; shared by those of which the same is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::compile) struct Facts {
    /// Its own ports by service port name.
    pub ports: BTreeMap<String, u16>,
    /// Whether it serves no other ports than `ports`.
    pub only_ports: bool,
    /// The ports of its ServiceEntry, where several describe the host: it serves these, by their names and targets.
    pub entry_ports: Option<Arc<[Port]>>,
    /// Labels that subsets select by.
    pub labels: Labels,
    /// The workload that its pod belongs to, if a resource names the pod.
    pub owner: Option<Arc<PodOwner>>,
    /// The node that it runs on, if a resource says so.
    pub node: Option<Arc<str>>,
    /// The name that DNS has of the pod under its headless service, if it has one of its own.
    pub hostname: Option<Arc<str>>,
    /// `region/zone/subzone`, empty when not known.
    pub locality: Locality,
    /// Network that it is on, empty for the default one.
    pub network: Arc<str>,
    /// Its identity within the mesh, `ns/NAMESPACE/sa/ACCOUNT`, if it says one.
    pub account: Option<Arc<str>>,
    /// Source of its labels. A known pod has an identity, whether it speaks the mesh's TLS or not.
    pub labels_from: LabelSource,
    /// The member that it belongs to; none for the proxy's own.
    pub member: Option<Arc<Member>>,
    /// What kind of resource it is from.
    pub origin: Origin,
    /// How its gateway is asked for it; none for one that is reached directly.
    pub hop: Option<Arc<RemoteGateway>>,
    /// The workload behind it, where it is a gateway that passes the workloads' own TLS on.
    pub behind: Option<Arc<Behind>>,
    /// Probes of the kernel on silent connections, where no rule says so.
    pub keepalive: Option<TcpKeepalive>,
}

/// What a gateway is asked for that passes the TLS of its cluster's workloads on as it is.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::compile) struct Behind {
    /// The host by which its cluster knows the service.
    pub host: Arc<str>,
    /// The ports that the service has there, by name and number.
    pub ports: Vec<(Arc<str>, u16)>,
    /// Labels of the workloads there.
    pub labels: Vec<Labels>,
}

impl Behind {
    /// The number that a port has there.
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

/// What kind of resource names an endpoint; what knows it best comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::compile) enum Origin {
    /// The proxy's own cluster, or a ServiceEntry.
    #[default]
    Native,
    /// An EndpointSlice that was copied from another cluster.
    Slice,
    /// A Destination of another cluster.
    Gloo,
    /// A ServiceImport.
    Import,
}

impl Origin {
    /// Whether it is not used on the service's own host until a GlobalTrafficPolicy says so.
    pub(in crate::compile) fn waits_for_policy(self) -> bool {
        matches!(self, Origin::Gloo | Origin::Import)
    }
}

/// Address of a workload before its port is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::compile) enum WorkloadHost {
    /// An IP address.
    Ip(IpAddr),
    /// A DNS name that is one endpoint; a connection goes to the first of its addresses that takes it.
    Logical(Arc<str>),
    /// A DNS name; its addresses are all endpoints.
    Name(Arc<str>),
    /// Path of a Unix socket.
    Unix(Arc<Path>),
}

impl WorkloadHost {
    /// The name that has to be resolved, if it is one.
    pub(in crate::compile) fn name(&self) -> Option<&Arc<str>> {
        match self {
            WorkloadHost::Logical(name) | WorkloadHost::Name(name) => Some(name),
            WorkloadHost::Ip(_) | WorkloadHost::Unix(_) => None,
        }
    }
}

impl Facts {
    /// Whether it carries all of `wanted`, those labels included that follow from where it is.
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

    /// How far it is from the workloads: 0 for one of them, 1 for a gateway that leads to nothing but them, 2 for one
    /// that answers for them.
    pub(in crate::compile) fn remoteness(&self) -> u8 {
        match (self.origin, &self.behind) {
            (Origin::Import, _) => 2,
            (_, Some(_)) => 1,
            _ => 0,
        }
    }

    /// What is put in front of a request's path, if anything is.
    pub(in crate::compile) fn path_prefix(&self) -> Option<&Arc<str>> {
        let prefix = &self.hop.as_ref()?.path_prefix;
        (!prefix.is_empty()).then_some(prefix)
    }

    /// The port that it takes a service port's traffic on; none if it does not serve it.
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
    /// One at this place of which this is known.
    pub(in crate::compile) fn new(host: WorkloadHost, facts: impl Into<Arc<Facts>>) -> Self {
        Self {
            host,
            weight: 1,
            facts: facts.into(),
        }
    }

    /// One of which nothing is known but where it is.
    pub(in crate::compile) fn at(host: WorkloadHost) -> Self {
        Self::new(host, Facts::default())
    }

    /// Hands on its addresses for a service port, each with what else may be tried in its place; none for a name that
    /// has not been resolved yet.
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

/// Workloads that are being listed. Equal workloads share their facts.
#[derive(Debug, Default)]
pub(in crate::compile) struct Listing {
    all: Vec<Workload>,
    recent: Vec<Arc<Facts>>,
}

impl Listing {
    /// Adds one.
    pub(in crate::compile) fn push(&mut self, workload: Workload) {
        self.all.push(workload);
    }

    /// The workloads that were added.
    pub(in crate::compile) fn all(&self) -> &[Workload] {
        &self.all
    }

    /// What others have that are known to be the same, if it was lately listed.
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

/// Some workloads of a service.
#[derive(Clone)]
enum Part {
    /// They are listed.
    Listed(Vec<Workload>),
    /// They are listed on first use.
    Unlisted {
        has_names: bool,
        list: Arc<dyn Fn(&mut Listing) + Send + Sync>,
    },
}

/// The workloads of a service, joined over all resources that add to it. Reads as a slice.
#[derive(Clone, Default)]
pub(in crate::compile) struct Workloads {
    parts: Vec<Part>,
    all: OnceLock<Vec<Workload>>,
}

impl Workloads {
    /// Adds the workloads of `list`, which is called on demand. Whether there is a DNS name among them is
    /// known before.
    pub(in crate::compile) fn add(
        &mut self,
        has_names: bool,
        list: impl Fn(&mut Listing) + Send + Sync + 'static,
    ) {
        self.all.take();
        let list = Arc::new(list);
        self.parts.push(Part::Unlisted { has_names, list });
    }

    /// Adds one.
    pub(in crate::compile) fn push(&mut self, workload: Workload) {
        self.extend([workload]);
    }

    /// The workloads that were added one by one.
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

    /// Whether some of them are DNS names, whose addresses no resource tells.
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
