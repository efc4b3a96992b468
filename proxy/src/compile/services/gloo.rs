//! Gloo Mesh: Destinations, which describe a Kubernetes service or a host outside the mesh.

mod endpoints;

mod gateways;

mod shifts;

use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use config_loader::catalog::View;
use config_loader::resource::Object;
use config_loader::resource::gloo::{
    Backing, Destination, ExternalPort, ExternalProtocol, Federation, KubeService, MeshRef,
};

use crate::compile::members::Member;
use crate::compile::service::port::Carries;
use crate::compile::service::port::Port;
use crate::compile::service::port::carries_paths;
use crate::compile::service::port::protocol;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Workload;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;
use crate::compile::services::gloo::endpoints::ByGateways;
use crate::compile::services::gloo::endpoints::Objects;
use crate::compile::services::gloo::endpoints::Remote;
use crate::compile::services::gloo::endpoints::Renamed;
use crate::compile::services::gloo::gateways::Gateways;
use crate::compile::services::gloo::shifts::Named;
use crate::compile::services::gloo::shifts::ShiftTargets;
use crate::compile::services::policies;
use crate::compile::services::slices::host;
use crate::upstream::{Protocol, TcpKeepalive};

/// Adds every service that Destinations describe under its hosts, the oldest first. Destinations of one service of one
/// cluster are joined. A host that another resource already describes keeps that description.
pub(in crate::compile) fn collect(collector: &mut Collector<'_>) {
    let all = by_age(collector.view);
    let services = services(collector, &all);
    let owners = owners(&services);
    let gateways = Gateways::collect(collector);
    let hosts = federated_hosts(&services, &owners);
    let known = ShiftTargets::collect(collector, hosts);
    for (number, service) in services.iter().enumerate() {
        let kube = Kube {
            service,
            is_its: &|host| owners.get(&lower(host)) == Some(&number),
            gateways: &gateways,
            known: &known,
        };
        kube.collect(collector);
    }
    let numbered = services.iter().enumerate();
    numbered.for_each(|(number, service)| allocate(collector, service, number, &owners));
}

/// Assigns the federated hosts of a service the addresses that Gloo assigns.
fn allocate(
    collector: &mut Collector<'_>,
    service: &Service<'_>,
    number: usize,
    owners: &HashMap<Arc<str>, usize>,
) {
    let address = service.by[0].kube.service.federated_address();
    for one in &service.by {
        let Some(host) = one.hostname().map(|host| lower(host)) else {
            continue;
        };
        // the host may belong to another resource
        let draft = collector.by_host.get(&host);
        let is_its = draft.is_some_and(|draft| draft.service.stands_for.is_some());
        if is_its && owners.get(&host) == Some(&number) {
            collector.claim(one.object.age(), 0, IpAddr::from(address).into(), &host);
        }
    }
}

fn by_age(view: View<'_>) -> Vec<&Arc<Object<Destination>>> {
    let mut all: Vec<_> = view.all::<Destination>().values().collect();
    all.sort_by(|a, b| a.age().cmp(&b.age()));
    all
}

/// Destination that describes a service of a cluster.
#[derive(Clone, Copy)]
struct Described<'a> {
    object: &'a Arc<Object<Destination>>,
    kube: &'a KubeService,
}

impl<'a> Described<'a> {
    fn federation(&self) -> Option<&'a Federation> {
        self.object.spec.status.federation.as_ref()
    }

    fn hostname(&self) -> Option<&'a Arc<str>> {
        self.federation()?.hostname.as_ref()
    }
}

/// Service of a cluster, with the Destinations that describe it: at least one, the oldest first.
struct Service<'a> {
    member: Arc<Member>,
    by: Vec<Described<'a>>,
}

/// Returns the services that Destinations describe and that this proxy may use. A cluster name that several clusters
/// have matches none. Services of other clusters are known only if they are federated to the proxy's mesh.
fn services<'a>(
    collector: &Collector<'_>,
    all: &[&'a Arc<Object<Destination>>],
) -> Vec<Service<'a>> {
    let meshes = own_meshes(collector);
    let own = &collector.members().own.key;
    let mut numbers: HashMap<Named<'_>, usize> = HashMap::new();
    let mut services: Vec<Service<'a>> = Vec::new();
    for object in all.iter().copied() {
        let Backing::Kube(kube) = &object.spec.backing else {
            continue;
        };
        let reference = &kube.service;
        let Some(member) = collector.members().find(&reference.cluster) else {
            continue;
        };
        let one = Described { object, kube };
        let is_for_us = |federation: &Federation| {
            let mut federated = federation.meshes.iter();
            federated.any(|mesh| meshes.contains(mesh))
        };
        if member.key != *own && !one.federation().is_some_and(is_for_us) {
            continue;
        }
        let key = (
            Arc::clone(&member.key),
            &*reference.namespace,
            &*reference.name,
        );
        let number = *numbers.entry(key).or_insert(services.len());
        match services.get_mut(number) {
            Some(service) => service.by.push(one),
            None => services.push(Service {
                member: Arc::clone(member),
                by: vec![one],
            }),
        }
    }
    services
}

/// Returns the service of each federated host: that of the oldest Destination with it.
fn owners(services: &[Service<'_>]) -> HashMap<Arc<str>, usize> {
    let numbered = services.iter().enumerate();
    let mut claims: Vec<_> = numbered
        .flat_map(|(number, service)| service.by.iter().map(move |one| (one, number)))
        .filter_map(|(one, number)| Some((one.object, lower(one.hostname()?), number)))
        .collect();
    claims.sort_by(|(a, ..), (b, ..)| a.age().cmp(&b.age()));
    let mut owners = HashMap::new();
    for (_, host, number) in claims {
        owners.entry(host).or_insert(number);
    }
    owners
}

/// Returns the host by which other clusters reach each service: the first one that it owns.
fn federated_hosts<'a>(
    services: &[Service<'a>],
    owners: &HashMap<Arc<str>, usize>,
) -> HashMap<Named<'a>, Arc<str>> {
    let named = services.iter().enumerate().filter_map(|(number, service)| {
        let mut hosts = service
            .by
            .iter()
            .filter_map(Described::hostname)
            .map(|host| lower(host));
        let host = hosts.find(|host| owners.get(host) == Some(&number))?;
        let reference = &service.by[0].kube.service;
        let key = Arc::clone(&service.member.key);
        Some(((key, &*reference.namespace, &*reference.name), host))
    });
    named.collect()
}

/// Returns the meshes of the proxy: the one of `--mesh`, else those of the Destinations of its cluster.
fn own_meshes(collector: &Collector<'_>) -> BTreeSet<MeshRef> {
    if let Some(told) = &collector.identity.gloo_mesh {
        let (name, namespace) = (&*told.name, &*told.namespace);
        return BTreeSet::from([MeshRef {
            name: name.into(),
            namespace: namespace.into(),
        }]);
    }
    let own = &collector.members().own;
    let destinations = collector.view.all::<Destination>().values();
    let of_own = destinations.filter(|object| match &object.spec.backing {
        Backing::Kube(kube) => {
            let member = collector.members().find(&kube.service.cluster);
            member.is_some_and(|member| member.key == own.key)
        }
        Backing::Denied(_) | Backing::External(_) | Backing::Nothing => false,
    });
    of_own
        .filter_map(|object| object.spec.mesh.clone())
        .collect()
}

/// Returns a host outside of all clusters, as a Destination describes it.
pub(in crate::compile) fn external(name: &str, object: &Arc<Object<Destination>>) -> Option<Draft> {
    let Backing::External(external) = &object.spec.backing else {
        return None;
    };
    let mut draft = Draft::new(name, name, &object.id.namespace);
    draft.saw(object);
    draft.service.external = true;
    draft.service.is_outside = true;
    draft.service.ports = external.ports.iter().map(external_port).collect();
    let federation = object.spec.status.federation.as_ref();
    let keepalive = federation
        .and_then(|found| found.tcp_keepalive)
        .map(keepalive);
    let endpoints = external.endpoints.iter().map(|endpoint| {
        let ports = endpoint.ports.iter();
        let facts = Facts {
            ports: ports
                .map(|(name, port)| (name.to_string(), *port))
                .collect(),
            keepalive,
            ..Facts::default()
        };
        Workload::new(host(&endpoint.address), facts)
    });
    draft.service.endpoints = endpoints.collect();
    if draft.service.endpoints.is_empty() && !name.starts_with('*') {
        let facts = Facts {
            keepalive,
            ..Facts::default()
        };
        let at = WorkloadHost::Name(name.into());
        draft.service.endpoints.push(Workload::new(at, facts));
    }
    Some(draft)
}

fn external_port(port: &ExternalPort) -> Port {
    Port {
        carries_paths: !matches!(
            port.protocol,
            ExternalProtocol::Tcp
                | ExternalProtocol::Tls
                | ExternalProtocol::Https
                | ExternalProtocol::Mongo
        ),
        carries: match port.protocol {
            ExternalProtocol::Tls | ExternalProtocol::Https => Carries::Tls,
            ExternalProtocol::Tcp | ExternalProtocol::Mongo => Carries::Bytes,
            _ => Carries::Http,
        },
        number: port.number,
        name: port.name.to_string(),
        protocol: match port.protocol {
            ExternalProtocol::Grpc | ExternalProtocol::Http2 => Protocol::Http2,
            _ => Protocol::Http1,
        },
        target: port.number,
        original_destination: false,
    }
}

/// Service of a cluster that is being collected.
struct Kube<'a> {
    service: &'a Service<'a>,
    /// Whether the service owns a federated host: no older Destination of another service has it.
    is_its: &'a dyn Fn(&str) -> bool,
    gateways: &'a Gateways<'a>,
    known: &'a ShiftTargets<'a>,
}

impl Kube<'_> {
    fn collect(&self, collector: &mut Collector<'_>) {
        let reference = &self.oldest().kube.service;
        let full = reference.host(&collector.identity.domain);
        match self.service.member.key == collector.members().own.key {
            true => self.own(collector, &full),
            false => self.foreign(collector, &full),
        }
    }

    fn oldest(&self) -> &Described<'_> {
        &self.service.by[0]
    }

    /// Returns the federated hosts, each once.
    fn federated(&self) -> Vec<&Arc<str>> {
        let mut hosts = Vec::new();
        for host in self.service.by.iter().filter_map(Described::hostname) {
            if (self.is_its)(host) && !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }

    /// Adds a service of the local cluster: Destinations add facts to its endpoints, and further hosts.
    fn own(&self, collector: &mut Collector<'_>, full: &str) {
        let mut service = match collector.take(full) {
            Some(mut known) => {
                self.saw(&mut known);
                known
            }
            None => {
                let mut draft = self.draft(full);
                policies::attach(collector, &mut draft);
                draft
            }
        };
        let known = std::mem::take(&mut service.service.endpoints);
        let objects = self.objects();
        let endpoints = &mut service.service.endpoints;
        endpoints.add(known.has_names(), move |listing| {
            endpoints::enrich(&known, &objects, listing);
        });
        self.require_subsets(&mut service);
        self.shift(collector, &mut service);
        let federated = self.federated();
        let local = self.service.by.iter();
        let local = local.filter_map(|one| one.object.spec.status.local_fqdn.as_ref());
        // a local name equal to the host needs no draft of its own
        let others = local.chain(federated.iter().copied());
        for host in others.filter(|host| !host.eq_ignore_ascii_case(full)) {
            let mut other = self.draft(host);
            other.service.ports = service.service.ports.clone();
            let all = service.service.endpoints.clone();
            let has_names = all.has_names();
            other.service.endpoints.add(has_names, move |listing| {
                let own = all.iter().filter(|workload| workload.member.is_none());
                own.for_each(|workload| listing.push(workload.clone()));
            });
            service.hasher.finish().hash(&mut other.hasher);
            self.shift(collector, &mut other);
            policies::expose(collector, &mut other);
            other.service.is_cluster_set = true;
            if federated.contains(&host) {
                other.service.stands_for = Some(Arc::clone(&collector.members().own));
            }
            collector.add(other);
        }
        collector.add(service);
    }

    /// Adds a service of another cluster, under hosts that represent that cluster alone, and under its own host, where
    /// its endpoints need a GlobalTrafficPolicy.
    fn foreign(&self, collector: &mut Collector<'_>, full: &str) {
        for host in self.federated() {
            let mut draft = self.draft(host);
            policies::expose(collector, &mut draft);
            self.remote(&mut draft, &Renamed::default());
            // the host represents one cluster, so it needs no policy
            draft.service.is_cluster_set = true;
            draft.service.stands_for = Some(Arc::clone(&self.service.member));
            self.shift(collector, &mut draft);
            collector.add(draft);
        }
        let mut draft = collector.take(full).unwrap_or_else(|| {
            let mut draft = self.unseen(full);
            policies::attach(collector, &mut draft);
            draft
        });
        self.saw(&mut draft);
        let renamed = self.join_ports(&mut draft);
        self.remote(&mut draft, &renamed);
        self.require_subsets(&mut draft);
        collector.add(draft);
    }

    fn draft(&self, host: &str) -> Draft {
        let mut draft = self.unseen(host);
        self.saw(&mut draft);
        draft
    }

    fn saw(&self, draft: &mut Draft) {
        let by = self.service.by.iter();
        by.for_each(|one| draft.saw(one.object));
    }

    fn objects(&self) -> Objects {
        let by = self.service.by.iter();
        by.map(|one| Arc::clone(one.object)).collect()
    }

    /// Adds the traffic shift policies of the Destinations, the oldest first.
    fn shift(&self, collector: &Collector<'_>, draft: &mut Draft) {
        draft.service.shifts.clear();
        for one in &self.service.by {
            shifts::attach(collector, self.known, one.object, one.kube, draft);
        }
        shifts::put_in_order(&mut draft.service.shifts);
        draft.service.shifts.hash(&mut draft.hasher);
    }

    /// Adds the required subsets. If several have the same name, that of the oldest Destination applies.
    fn require_subsets(&self, draft: &mut Draft) {
        for one in self.service.by.iter().rev() {
            let subsets = one.object.required_subsets();
            draft.service.subsets.extend(subsets);
        }
    }

    fn unseen(&self, host: &str) -> Draft {
        let reference = &self.oldest().kube.service;
        let mut draft = Draft::new(host, &reference.name, &reference.namespace);
        for port in self.service.by.iter().flat_map(|one| &one.kube.ports) {
            let mut known = draft.service.ports.iter();
            if !known.any(|known| known.number == port.port) {
                draft.service.ports.push(kube_port(port));
            }
        }
        self.require_subsets(&mut draft);
        draft
    }

    /// Adds the ports that the service lacks, matched by name or else by number; returns the ports that it has under
    /// another name.
    fn join_ports(&self, draft: &mut Draft) -> Renamed {
        let mut renamed = Renamed::new();
        for port in self.service.by.iter().flat_map(|one| &one.kube.ports) {
            let service = &mut draft.service;
            let mut ports = service.ports.iter();
            let by_name = ports.find(|known| *known.name == *port.name);
            match by_name.or_else(|| service.listed_port(port.port)) {
                None => service.ports.push(kube_port(port)),
                Some(known) if *known.name != *port.name => {
                    renamed.insert(Arc::clone(&port.name), known.name.clone());
                }
                Some(_) => {}
            }
        }
        renamed
    }

    /// Adds the endpoints as another cluster reaches them: the workloads, or the gateways of their cluster.
    fn remote(&self, draft: &mut Draft, renamed: &Renamed) {
        let federated = self.service.by.iter();
        let federated = federated.filter_map(|one| Some((one, one.federation()?)));
        let (flat, behind): (Vec<_>, Vec<_>) =
            federated.partition(|(_, federation)| federation.flat_network);
        if !flat.is_empty() {
            self.reached(&flat, None, renamed, draft);
        }
        // a gateway finds the service by its federated host
        let mut names = behind.iter().filter_map(|(one, _)| one.hostname());
        if let Some(name) = names.next() {
            let gateways = self.gateways.of(&self.service.member, draft);
            let by = Some((lower(name), gateways));
            self.reached(&behind, by, renamed, draft);
        }
    }

    /// Adds the endpoints of Destinations that are reached in the same way.
    fn reached(
        &self,
        by: &[(&Described<'_>, &Federation)],
        gateways: Option<ByGateways>,
        renamed: &Renamed,
        draft: &mut Draft,
    ) {
        let mut named = gateways.iter().flat_map(|(_, all)| all);
        let has_names = named.any(|(host, _)| host.name().is_some());
        let mut keepalives = by.iter().filter_map(|(_, found)| found.tcp_keepalive);
        let of = Remote {
            objects: by.iter().map(|(one, _)| Arc::clone(one.object)).collect(),
            member: Arc::clone(&self.service.member),
            keepalive: keepalives.next().map(keepalive),
            renamed: renamed.clone(),
            gateways,
        };
        let endpoints = &mut draft.service.endpoints;
        endpoints.add(has_names, move |listing| of.list(listing));
    }
}

fn lower(host: &str) -> Arc<str> {
    host.to_ascii_lowercase().into()
}

fn keepalive(asked: config_loader::resource::gloo::TcpKeepalive) -> TcpKeepalive {
    TcpKeepalive {
        time: asked.time,
        interval: asked.interval,
        probes: asked.probes,
    }
}

fn kube_port(port: &config_loader::resource::gloo::KubePort) -> Port {
    Port {
        number: port.port,
        name: port.name.to_string(),
        protocol: protocol(port.app_protocol.as_deref(), &port.name, &port.protocol),
        target: port.port,
        carries_paths: carries_paths(port.app_protocol.as_deref(), &port.name, &port.protocol),
        carries: Carries::of(
            port.app_protocol.as_deref(),
            &port.name,
            &port.protocol,
            port.port,
        ),
        original_destination: false,
    }
}
