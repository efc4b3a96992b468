//! Endpoints of a service that Destinations describe. The endpoints of all Destinations of one service are joined; the
//! oldest one decides about an endpoint that several have.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::gloo::{
    Backing, Destination, EndpointSubset, KubeEndpoint, KubePort, KubeService,
};

use crate::compile::members::Member;
use crate::compile::service::workload::Behind;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Listing;
use crate::compile::service::workload::Origin;
use crate::compile::service::workload::Workload;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::service::workload::Workloads;
use crate::compile::services::gloo::gateways::Gateway;
use crate::upstream::TcpKeepalive;
use traffic::cluster::Locality;

/// Destinations that describe one service, the oldest first.
pub(in crate::compile) type Objects = Box<[Arc<Object<Destination>>]>;

/// Host of a service within its remote cluster, and the gateways of that cluster.
pub(in crate::compile) type ByGateways = (Arc<str>, Vec<Gateway>);

/// Ports of Destinations that the service has under another name.
pub(in crate::compile) type Renamed = HashMap<Arc<str>, String>;

/// Service of another cluster.
pub(in crate::compile) struct Remote {
    pub objects: Objects,
    pub member: Arc<Member>,
    pub keepalive: Option<TcpKeepalive>,
    pub renamed: Renamed,
    /// Gateways of the cluster; `None` if workloads are reached directly.
    pub gateways: Option<ByGateways>,
}

impl Remote {
    /// Lists the workloads, or the gateways of their cluster.
    pub(in crate::compile) fn list(&self, listing: &mut Listing) {
        match &self.gateways {
            None => list(&self.objects, Some(self), listing),
            Some((host, gateways)) => self.list_gateways(host, gateways, listing),
        }
    }

    /// Returns the name of a port in the service.
    fn name_of<'a>(&'a self, port: &'a KubePort) -> &'a str {
        let renamed = self.renamed.get(&port.name);
        renamed.map_or(&port.name, |name| name)
    }

    /// Adds one endpoint for each gateway; their total weight is the number of workloads behind them.
    fn list_gateways(&self, host: &Arc<str>, gateways: &[Gateway], listing: &mut Listing) {
        let mut ports: Vec<(Arc<str>, u16)> = Vec::new();
        for port in services(&self.objects).flat_map(|kube| &kube.ports) {
            if !ports.iter().any(|(_, known)| *known == port.port) {
                ports.push((self.name_of(port).into(), port.port));
            }
        }
        let behind = Arc::new(Behind {
            host: Arc::clone(host),
            labels: described(&self.objects)
                .map(|(_, _, endpoint)| Arc::new(endpoint.labels.clone()))
                .collect(),
            ports,
        });
        let (count, of) = (behind.labels.len(), gateways.len());
        if count == 0 {
            return;
        }
        let region = region(&self.objects);
        for (number, (at, port)) in gateways.iter().enumerate() {
            let own = behind.ports.iter();
            let facts = listing.share(Facts {
                ports: own.map(|(name, _)| (name.to_string(), *port)).collect(),
                only_ports: true,
                locality: match region {
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

/// Adds the facts of Destinations about endpoints at the same addresses to known endpoints. If the local cluster has
/// none, the endpoints of Destinations are the only ones.
pub(in crate::compile) fn enrich(
    known: &Workloads,
    objects: &[Arc<Object<Destination>>],
    listing: &mut Listing,
) {
    if !known.iter().any(|workload| workload.member.is_none()) {
        let others = known.iter();
        others.for_each(|workload| listing.push(workload.clone()));
        return list(objects, None, listing);
    }
    let mut said = Listing::default();
    list(objects, None, &mut said);
    let mut by_host: HashMap<&WorkloadHost, Vec<&Workload>> = HashMap::new();
    for workload in said.all() {
        by_host.entry(&workload.host).or_default().push(workload);
    }
    for workload in known {
        let said = by_host.get(&workload.host);
        let said = said.filter(|_| workload.member.is_none());
        let said = match said.map(Vec::as_slice) {
            Some([only]) => Some(*only),
            // endpoints that share an address differ in their ports
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

fn services(objects: &[Arc<Object<Destination>>]) -> impl Iterator<Item = &KubeService> {
    objects
        .iter()
        .filter_map(|object| match &object.spec.backing {
            Backing::Kube(kube) => Some(kube),
            Backing::Denied(_) | Backing::External(_) | Backing::Nothing => None,
        })
}

/// Returns every endpoint with its group, and the service as its Destination describes it. An endpoint that several
/// Destinations have, at the same ports, is returned once.
fn described(
    objects: &[Arc<Object<Destination>>],
) -> impl Iterator<Item = (&KubeService, &EndpointSubset, &KubeEndpoint)> {
    let mut seen: HashSet<(IpAddr, Vec<u16>)> = HashSet::new();
    let may_repeat = objects.len() > 1;
    services(objects)
        .flat_map(|kube| kube.endpoint_subsets.iter().map(move |group| (kube, group)))
        .flat_map(|(kube, group)| {
            let endpoints = group.endpoints.iter();
            endpoints.map(move |endpoint| (kube, group, endpoint))
        })
        .filter(move |(_, group, endpoint)| {
            if !may_repeat {
                return true;
            }
            let mut ports: Vec<u16> = group.ports.iter().map(|port| port.port).collect();
            ports.sort_unstable();
            seen.insert((endpoint.ip, ports))
        })
}

/// Returns the region of the service: that of the oldest Destination with one; else empty.
fn region(objects: &[Arc<Object<Destination>>]) -> &str {
    let mut regions = services(objects).map(|kube| &*kube.region);
    regions
        .find(|region| !region.is_empty())
        .unwrap_or_default()
}

/// Lists the workloads of a service of another cluster, or of the local one.
fn list(objects: &[Arc<Object<Destination>>], remote: Option<&Remote>, listing: &mut Listing) {
    let member = remote.map(|remote| &remote.member);
    let region = region(objects);
    let mut group_before = None;
    let mut ports: BTreeMap<String, u16> = BTreeMap::new();
    for (kube, group, endpoint) in described(objects) {
        if group_before.replace(std::ptr::from_ref(group)) != Some(std::ptr::from_ref(group)) {
            let named = kube.ports.iter().filter_map(|port| {
                let at = kube.endpoint_port(port, group)?.port;
                let name = remote.map_or(&*port.name, |remote| remote.name_of(port));
                Some((name.to_owned(), at))
            });
            ports = named.collect();
        }
        let locality = format!("{region}/{}/{}", endpoint.zone, endpoint.sub_zone);
        let facts = Facts {
            ports: ports.clone(),
            // a remote endpoint serves only the ports that its Destination lists
            only_ports: remote.is_some(),
            labels: Arc::new(endpoint.labels.clone()),
            locality: match (locality.trim_end_matches('/'), member) {
                ("", Some(member)) => member.locality.clone(),
                (text, _) => Locality::new(text),
            },
            network: member.map_or_else(Arc::default, |member| Arc::clone(&member.network)),
            origin: member.map_or(Origin::Native, |_| Origin::Gloo),
            member: member.cloned(),
            keepalive: remote.and_then(|remote| remote.keepalive),
            ..Facts::default()
        };
        let facts = listing.share(facts);
        listing.push(Workload::new(WorkloadHost::Ip(endpoint.ip), facts));
    }
}
