//! Gloo Mesh: Destinations, which describe a Kubernetes service or a host outside the mesh.

mod gateways;

mod shifts;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::gloo::{
    Backing, Destination, ExternalProtocol, ExternalService, Federation, KubeService, MeshRef,
};

use self::gateways::{Gateway, Gateways};
use self::shifts::Routed;
use super::kube::host;
use super::{Collector, Draft, policies};
use crate::cluster::Locality;
use crate::compile::members::Member;
use crate::compile::service::{
    Behind, Facts, Origin, Port, Workload, WorkloadHost, Workloads, carries_paths, protocol,
};
use crate::compile::workload::Listing;
use crate::upstream::{Protocol, TcpKeepalive};

/// Adds every Destination under the hosts that it answers to, the oldest first. A host that something else already
/// describes keeps that description.
pub(super) fn collect(collector: &mut Collector<'_>) {
    let mut all: Vec<_> = collector.resources.destinations.values().collect();
    all.sort_by(|a, b| a.age().cmp(&b.age()));
    let meshes = own_meshes(collector);
    let gateways = Gateways::collect(collector);
    let routed = Routed::collect(collector);
    for object in all {
        match &object.spec.backing {
            Backing::External(external) => external_service(collector, object, external),
            Backing::Kube(kube) => {
                let kube = Kube {
                    object,
                    kube,
                    meshes: &meshes,
                    gateways: &gateways,
                    routed: &routed,
                };
                kube.collect(collector);
            }
            Backing::Nothing => (),
        }
    }
}

/// The meshes that the proxy is in: the one that it was told, else those of the Destinations of its cluster.
fn own_meshes(collector: &Collector<'_>) -> BTreeSet<MeshRef> {
    if let Some(told) = &collector.identity.gloo_mesh {
        let (name, namespace) = (&*told.name, &*told.namespace);
        return BTreeSet::from([MeshRef {
            name: name.into(),
            namespace: namespace.into(),
        }]);
    }
    let own = &collector.members.own;
    let destinations = collector.resources.destinations.values();
    let of_own = destinations.filter(|object| match &object.spec.backing {
        Backing::Kube(kube) => {
            let member = collector.members.find(&kube.service.cluster);
            member.is_some_and(|member| member.key == own.key)
        }
        Backing::External(_) | Backing::Nothing => false,
    });
    of_own
        .filter_map(|object| object.spec.mesh.clone())
        .collect()
}

fn external_service(
    collector: &mut Collector<'_>,
    object: &Arc<Object<Destination>>,
    external: &ExternalService,
) {
    for name in external.hosts.iter() {
        let mut draft = Draft::new(name, name, &object.id.namespace);
        draft.saw(object);
        draft.service.external = true;
        draft.service.ports = external
            .ports
            .iter()
            .map(|port| Port {
                carries_paths: !matches!(
                    port.protocol,
                    ExternalProtocol::Tcp
                        | ExternalProtocol::Tls
                        | ExternalProtocol::Https
                        | ExternalProtocol::Mongo
                ),
                number: port.number,
                name: port.name.to_string(),
                protocol: match port.protocol {
                    ExternalProtocol::Grpc | ExternalProtocol::Http2 => Protocol::Http2,
                    _ => Protocol::Http1,
                },
                target: port.number,
            })
            .collect();
        let federation = object.spec.status.federation.as_ref();
        let keepalive = federation
            .and_then(|found| found.tcp_keepalive)
            .map(keepalive);
        draft.service.endpoints = external
            .endpoints
            .iter()
            .map(|endpoint| {
                let ports = endpoint.ports.iter();
                let facts = Facts {
                    ports: ports
                        .map(|(name, port)| (name.to_string(), *port))
                        .collect(),
                    keepalive,
                    ..Facts::default()
                };
                Workload::new(host(&endpoint.address), facts)
            })
            .collect();
        if draft.service.endpoints.is_empty() && !name.starts_with('*') {
            let facts = Facts {
                keepalive,
                ..Facts::default()
            };
            let at = WorkloadHost::Name(Arc::clone(name));
            draft.service.endpoints.push(Workload::new(at, facts));
        }
        collector.add(draft);
    }
}

/// A Destination that is a service of some cluster.
struct Kube<'a> {
    object: &'a Arc<Object<Destination>>,
    kube: &'a KubeService,
    /// The meshes that the proxy is in.
    meshes: &'a BTreeSet<MeshRef>,
    gateways: &'a Gateways<'a>,
    routed: &'a Routed,
}

impl Kube<'_> {
    fn collect(&self, collector: &mut Collector<'_>) {
        let reference = &self.kube.service;
        let member = collector.members.find(&reference.cluster).cloned();
        let own = &collector.members.own;
        let is_own = member.as_ref().is_some_and(|member| member.key == own.key);
        let (name, namespace) = (&reference.name, &reference.namespace);
        let full = format!("{name}.{namespace}.svc.{}", collector.domain);
        match member {
            _ if is_own => self.own(collector, &full),
            Some(member) if self.is_for_us() => self.foreign(collector, &member, &full),
            // a name that several clusters have, or a service for others
            _ => {}
        }
    }

    fn federation(&self) -> Option<&Federation> {
        self.object.spec.status.federation.as_ref()
    }

    /// Whether it is federated to a mesh that the proxy is in.
    fn is_for_us(&self) -> bool {
        let federation = self.federation();
        federation.is_some_and(|federation| {
            let mut meshes = federation.meshes.iter();
            meshes.any(|mesh| self.meshes.contains(mesh))
        })
    }

    /// A service of the proxy's own cluster: what is known of its endpoints is added to them, and it has more hosts.
    fn own(&self, collector: &mut Collector<'_>, full: &str) {
        let mut service = match collector.take(full) {
            Some(mut known) => {
                known.saw(self.object);
                known
            }
            None => self.draft(full),
        };
        let known = std::mem::take(&mut service.service.endpoints);
        let object = Arc::clone(self.object);
        let endpoints = &mut service.service.endpoints;
        endpoints.add(known.has_names(), move |listing| {
            if let Backing::Kube(kube) = &object.spec.backing {
                enrich(&known, kube, listing);
            }
        });
        service
            .service
            .subsets
            .extend(shifts::subsets(&self.object.spec));
        self.shift(collector, &mut service);
        let federated = self.federation().and_then(|found| found.hostname.as_ref());
        let local = self.object.spec.status.local_fqdn.as_ref();
        for host in [local, federated].into_iter().flatten() {
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
            other.service.is_cluster_set = true;
            if Some(host) == federated {
                other.service.stands_for = Some(Arc::clone(&collector.members.own));
            }
            collector.add(other);
        }
        collector.add(service);
    }

    /// A service of another cluster: it has a host that stands for that cluster alone, and under its own host it waits for
    /// a GlobalTrafficPolicy.
    fn foreign(&self, collector: &mut Collector<'_>, member: &Arc<Member>, full: &str) {
        if let Some(host) = self.federation().and_then(|found| found.hostname.as_ref()) {
            let mut draft = self.draft(host);
            self.remote(member, &mut draft);
            // it stands for the one cluster: no policy has to let it
            draft.service.is_cluster_set = true;
            draft.service.stands_for = Some(Arc::clone(member));
            self.shift(collector, &mut draft);
            collector.add(draft);
        }
        let mut draft = collector.take(full).unwrap_or_else(|| {
            let mut draft = self.unseen(full);
            policies::attach(collector, &mut draft);
            draft
        });
        if draft.service.sharing.is_some() {
            draft.saw(self.object);
            self.remote(member, &mut draft);
            draft
                .service
                .subsets
                .extend(shifts::subsets(&self.object.spec));
            collector.add(draft);
        } else if !draft.service.provenance.is_empty() {
            collector.add(draft);
        }
    }

    fn draft(&self, host: &str) -> Draft {
        let mut draft = self.unseen(host);
        draft.saw(self.object);
        draft
    }

    /// Lets requests for the host go where the Destination says that they are shifted to.
    fn shift(&self, collector: &Collector<'_>, draft: &mut Draft) {
        shifts::attach(collector, self.routed, (self.object, self.kube), draft);
        draft.service.shift.hash(&mut draft.hasher);
    }

    fn unseen(&self, host: &str) -> Draft {
        let reference = &self.kube.service;
        let mut draft = Draft::new(host, &reference.name, &reference.namespace);
        draft.service.ports = self.kube.ports.iter().map(kube_port).collect();
        draft.service.subsets = shifts::subsets(&self.object.spec);
        draft
    }

    /// Adds its endpoints as another cluster reaches them: the workloads, or the gateways of theirs.
    fn remote(&self, member: &Arc<Member>, draft: &mut Draft) {
        let Some(federation) = self.federation() else {
            return;
        };
        let gateways = match &federation.hostname {
            _ if federation.flat_network => None,
            Some(host) => Some((lower(host), self.gateways.of(member, draft))),
            // there is no name to ask a gateway for
            None => return,
        };
        let is_name = |(host, _): &Gateway| host.name().is_some();
        let named = gateways.as_ref().map(|(_, all)| all.iter().any(is_name));
        let of = Remote {
            object: Arc::clone(self.object),
            member: Arc::clone(member),
            keepalive: federation.tcp_keepalive.map(keepalive),
            gateways,
        };
        let endpoints = &mut draft.service.endpoints;
        endpoints.add(named.unwrap_or_default(), move |listing| of.list(listing));
    }
}

fn lower(host: &str) -> Arc<str> {
    host.to_ascii_lowercase().into()
}

/// A service of another cluster.
struct Remote {
    object: Arc<Object<Destination>>,
    member: Arc<Member>,
    keepalive: Option<TcpKeepalive>,
    /// The host by which its cluster knows it, and the gateways there; none where workloads are reached directly.
    gateways: Option<(Arc<str>, Vec<Gateway>)>,
}

impl Remote {
    fn list(&self, listing: &mut Listing) {
        let Backing::Kube(kube) = &self.object.spec.backing else {
            return;
        };
        match &self.gateways {
            None => list(kube, Some(&self.member), self.keepalive, listing),
            Some((host, gateways)) => self.list_gateways(kube, host, gateways, listing),
        }
    }

    /// One endpoint for each gateway, which together weigh as much as the workloads behind them.
    fn list_gateways(
        &self,
        kube: &KubeService,
        host: &Arc<str>,
        gateways: &[Gateway],
        listing: &mut Listing,
    ) {
        let subsets = kube.endpoint_subsets.iter();
        let workloads = subsets.flat_map(|subset| &subset.endpoints);
        let behind = Arc::new(Behind {
            host: Arc::clone(host),
            ports: kube
                .ports
                .iter()
                .map(|port| (Arc::clone(&port.name), port.port))
                .collect(),
            labels: workloads
                .map(|workload| Arc::new(workload.labels.clone()))
                .collect(),
        });
        let (count, of) = (behind.labels.len(), gateways.len());
        if count == 0 {
            return;
        }
        for (number, (at, port)) in gateways.iter().enumerate() {
            let facts = listing.share(Facts {
                ports: kube
                    .ports
                    .iter()
                    .map(|own| (own.name.to_string(), *port))
                    .collect(),
                only_ports: true,
                locality: match &*kube.region {
                    "" => self.member.locality.clone(),
                    region => Locality::new(region),
                },
                network: Arc::clone(&self.member.network),
                origin: Origin::Gloo,
                member: Some(Arc::clone(&self.member)),
                behind: Some(Arc::clone(&behind)),
                keepalive: self.keepalive,
                ..Facts::default()
            });
            let weight = count / of + usize::from(number < count % of);
            listing.push(Workload {
                weight: u32::try_from(weight).unwrap_or(u32::MAX),
                ..Workload::new(at.clone(), facts)
            });
        }
    }
}

/// Lists endpoints that are known with what a Destination says of those at the same addresses. Where the own cluster has
/// none, those that it says are all that there is.
fn enrich(known: &Workloads, kube: &KubeService, listing: &mut Listing) {
    if !known.iter().any(|workload| workload.member.is_none()) {
        let others = known.iter();
        others.for_each(|workload| listing.push(workload.clone()));
        return list(kube, None, None, listing);
    }
    let mut said = Listing::default();
    list(kube, None, None, &mut said);
    let mut by_host: HashMap<&WorkloadHost, Vec<&Workload>> = HashMap::new();
    for workload in said.all() {
        by_host.entry(&workload.host).or_default().push(workload);
    }
    for workload in known {
        let said = by_host.get(&workload.host);
        let said = said.filter(|_| workload.member.is_none());
        let said = match said.map(Vec::as_slice) {
            Some([only]) => Some(*only),
            // those that share an address are told apart by their ports
            Some(several) => several.iter().copied().find(|said| {
                let mut ports = said.ports.values();
                ports.any(|port| workload.ports.values().any(|own| own == port))
            }),
            None => None,
        };
        let Some(said) = said else {
            listing.push(workload.clone());
            continue;
        };
        let mut labels = BTreeMap::clone(&said.labels);
        labels.extend(BTreeMap::clone(&workload.labels));
        let facts = listing.share(Facts {
            labels: Arc::new(labels),
            locality: match said.locality.as_str() {
                "" => workload.locality.clone(),
                _ => said.locality.clone(),
            },
            ..Facts::clone(&workload.facts)
        });
        listing.push(Workload {
            facts,
            ..workload.clone()
        });
    }
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
    }
}

/// Lists the workloads of a service of this member, or of the own cluster.
fn list(
    kube: &KubeService,
    member: Option<&Arc<Member>>,
    keepalive: Option<TcpKeepalive>,
    listing: &mut Listing,
) {
    for subset in &kube.endpoint_subsets {
        let ports: BTreeMap<String, u16> = kube
            .ports
            .iter()
            .filter_map(|port| {
                Some((
                    port.name.to_string(),
                    kube.endpoint_port(port, subset)?.port,
                ))
            })
            .collect();
        for endpoint in &subset.endpoints {
            let locality = format!("{}/{}/{}", kube.region, endpoint.zone, endpoint.sub_zone);
            let facts = Facts {
                ports: ports.clone(),
                labels: Arc::new(endpoint.labels.clone()),
                locality: match (locality.trim_end_matches('/'), member) {
                    ("", Some(member)) => member.locality.clone(),
                    (text, _) => Locality::new(text),
                },
                network: member.map_or_else(Arc::default, |member| Arc::clone(&member.network)),
                origin: member.map_or(Origin::Native, |_| Origin::Gloo),
                member: member.cloned(),
                keepalive,
                ..Facts::default()
            };
            let facts = listing.share(facts);
            listing.push(Workload::new(WorkloadHost::Ip(endpoint.ip), facts));
        }
    }
}
