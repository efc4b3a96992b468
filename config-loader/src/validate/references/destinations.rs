//! Gloo Destinations that are unreachable, or whose traffic shift has no effect.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::clusters::{Clusters, last};
use super::finding::{location, warning};
use crate::catalog::RoutedHosts;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X304, X305, X306};
use crate::kind::Name;
use crate::resource::gloo::{
    Backing, ClusterRef, Destination, Federation, KubeService, KubeServiceType, MeshRef,
    RequiredSubsets, ShiftTarget,
};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, clusters: &Clusters<'_>, found: &mut Vec<Diagnostic>) {
    if set.destinations.is_empty() {
        return;
    }
    let mut with_gateway = clusters_with_gateway(set);
    with_gateway.extend(clusters.with_gateway());
    let checker = Checker {
        set,
        clusters,
        with_gateway,
        meshes: Meshes::new(set, clusters),
        routed: RoutedHosts::collect(set, clusters.domain),
    };
    let mut hosts: HashMap<String, &Object<Destination>> = HashMap::new();
    for object in by_age(set) {
        let Backing::Kube(kube) = &object.spec.backing else {
            continue;
        };
        check_host(object, kube, &mut hosts, found);
        if clusters
            .own
            .is_none_or(|own| last(own) != last(&kube.service.cluster))
        {
            checker.check_gateway(object, kube, found);
        }
        for (index, required) in object.spec.status.required_subsets.iter().enumerate() {
            if let Some(why) = checker.idle(object, kube, required) {
                let field = format!("status.requiredSubsets[{index}].trafficShift");
                let message = format!("the shift is not followed: {why}");
                let mut diagnostic = warning(object, X305, required.line, field, message);
                diagnostic.help("a VirtualService for the host says what goes where: write one, or change the one that has it");
                found.push(diagnostic);
            }
        }
    }
}

/// Returns the subsets that Destinations require, by host.
pub(super) fn required_subsets(
    set: &ResourceSet,
    domain: &str,
) -> HashMap<String, BTreeSet<Arc<str>>> {
    let mut all: HashMap<String, BTreeSet<Arc<str>>> = HashMap::new();
    for object in set.destinations.values() {
        let names = object.required_subsets();
        if !names.is_empty() {
            for host in object.hosts(domain) {
                all.entry(host).or_default().extend(names.keys().cloned());
            }
        }
    }
    all
}

fn by_age(set: &ResourceSet) -> Vec<&Object<Destination>> {
    let mut all: Vec<_> = set.destinations.values().map(|object| &**object).collect();
    all.sort_by(|a, b| a.age().cmp(&b.age()));
    all
}

/// Warns of a host that an older Destination of another service already has.
fn check_host<'a>(
    object: &'a Object<Destination>,
    kube: &KubeService,
    hosts: &mut HashMap<String, &'a Object<Destination>>,
    found: &mut Vec<Diagnostic>,
) {
    let Some(federation) = &object.spec.status.federation else {
        return;
    };
    let Some(host) = &federation.hostname else {
        return;
    };
    if let Some(older) = hosts.get(&host.to_ascii_lowercase()) {
        if matches!(&older.spec.backing, Backing::Kube(other) if other.service == kube.service) {
            return;
        }
        let field = "status.appliedFederation.federatedHostname".to_owned();
        let message = format!("`{host}` is not used: {} has that host", older.id);
        let mut diagnostic = warning(object, X306, federation.line, field, message);
        diagnostic.help("give each Destination a host of its own");
        diagnostic.related(location(older, Line(0)), "this one is older");
        found.push(diagnostic);
        return;
    }
    hosts.insert(host.to_ascii_lowercase(), object);
}

/// Returns the names of clusters with a known gateway.
fn clusters_with_gateway(set: &ResourceSet) -> BTreeSet<&str> {
    let all = set.destinations.values();
    let gateways = all.filter_map(|object| match &object.spec.backing {
        Backing::Kube(kube) => Some(kube),
        Backing::Denied(_) | Backing::External(_) | Backing::Nothing => None,
    });
    let usable = gateways.filter(|kube| {
        let is_gateway = kube
            .labels
            .get("istio")
            .is_some_and(|label| label == "ingressgateway");
        let mut ports = kube.ports.iter();
        let has_port = ports.any(|port| {
            &*port.name == "tls"
                && (kube.service_type != KubeServiceType::NodePort || port.node_port.is_some())
        });
        is_gateway && has_port && !kube.external_addresses.is_empty()
    });
    let of_clusters = set
        .clusters
        .in_all_groups()
        .filter(|cluster| cluster.spec.gateway.is_some());
    let of_clusters = of_clusters.map(|cluster| last(cluster.spec.key.as_str()));
    let named = usable.map(|kube| &*kube.service.cluster);
    named.chain(of_clusters).collect()
}

/// Resources that Destinations are checked against.
struct Checker<'a> {
    set: &'a ResourceSet,
    clusters: &'a Clusters<'a>,
    /// Names of clusters with a known gateway.
    with_gateway: BTreeSet<&'a str>,
    meshes: Meshes<'a>,
    routed: RoutedHosts<'a>,
}

impl Checker<'_> {
    /// Warns of a cluster without a known gateway. The local cluster needs none; if it is unknown, a cluster whose Service
    /// is present may be the local one.
    fn check_gateway(
        &self,
        object: &Object<Destination>,
        kube: &KubeService,
        found: &mut Vec<Diagnostic>,
    ) {
        let clusters = self.clusters;
        let Some(federation) = &object.spec.status.federation else {
            return;
        };
        let at = &kube.service;
        let name = Name::new(at.namespace.clone(), at.name.clone());
        let is_for_others = !federation.flat_network && !federation.meshes.is_empty();
        let may_be_own = clusters.own.is_none() && self.set.services.get(&name).is_some();
        if !is_for_others || may_be_own || self.with_gateway.contains(&*at.cluster) {
            return;
        }
        let cluster = &at.cluster;
        let field = "status.appliedFederation.flatNetwork".to_owned();
        let message = format!(
            "no resource names a gateway of cluster `{cluster}`: nothing is reached, unless --clusters names one"
        );
        let mut diagnostic = warning(object, X304, federation.line, field, message);
        diagnostic.help(
        "add the cluster's Destination with label `istio: ingressgateway`, its externalAddresses and a port named `tls`, \
         name its gateway by --clusters, or write flatNetwork: true",
    );
        found.push(diagnostic);
    }

    /// Returns the reason for which a shift has no effect, if any. Parse errors of its parts were reported before.
    fn idle(
        &self,
        object: &Object<Destination>,
        kube: &KubeService,
        required: &RequiredSubsets,
    ) -> Option<String> {
        let status = &object.spec.status;
        let parts = &required.shift.destinations;
        if parts.is_empty()
            || !parts
                .iter()
                .all(|part| matches!(part.target, ShiftTarget::Kube { .. }))
        {
            return None;
        }
        if let Err(why) = required.target(&status.traffic_policies, &kube.service) {
            return Some(why);
        }
        // each host is routed for itself
        for host in object.hosts(self.clusters.domain) {
            if let Some(by) = self.routed.by(&host) {
                return Some(format!("{by} routes `{host}`"));
            }
        }
        if let Some(by) = self.routed.every() {
            return Some(format!("{by} routes every host at its gateways"));
        }
        parts.iter().find_map(|part| match &part.target {
            ShiftTarget::Kube { service, .. } => self.unknown(kube, service),
            _ => None,
        })
    }

    /// Checks that a target in another cluster is a Destination that is federated to the proxies' mesh. Targets in their
    /// own cluster are not checked.
    fn unknown(&self, own: &KubeService, service: &ClusterRef) -> Option<String> {
        let meshes = &self.meshes;
        let home = meshes.home(own);
        if last(&service.cluster) == home {
            return None;
        }
        let all = self.set.destinations.values();
        let federated = all.filter_map(|object| match &object.spec.backing {
            Backing::Kube(kube) if kube.service == *service => {
                let federation = object.spec.status.federation.as_ref();
                let federation = federation.filter(|federation| federation.hostname.is_some());
                Some((kube, federation?))
            }
            _ => None,
        });
        let federated: Vec<_> = federated.collect();
        let (name, cluster) = (&service.name, &service.cluster);
        if federated.is_empty() {
            return Some(format!(
                "`{name}` in cluster `{cluster}` is no federated Destination"
            ));
        }
        let mut known = federated.iter();
        if known.any(|(kube, federation)| meshes.know(home, kube, Some(federation))) {
            return None;
        }
        let there = format!("`{name}` in cluster `{cluster}` is");
        let own = meshes.of(home).unwrap_or_default();
        let own = own
            .iter()
            .map(|mesh| format!("`{}.{}`", mesh.name, mesh.namespace));
        let own: Vec<String> = own.collect();
        Some(match own.is_empty() {
            _ if federated.iter().all(|(_, one)| one.meshes.is_empty()) => {
                format!("{there} federated to no mesh")
            }
            true => format!(
                "{there} federated to meshes, and nothing says which one cluster `{home}` is in"
            ),
            false => format!(
                "{there} not federated to {}, the mesh of cluster `{home}`",
                own.join(" or ")
            ),
        })
    }
}

/// Meshes of the proxies, by cluster.
pub(super) struct Meshes<'a> {
    said: Option<&'a MeshRef>,
    /// Name of the local cluster, if known.
    own: Option<&'a str>,
    /// Meshes that the Destinations of each cluster name.
    of_clusters: HashMap<&'a str, BTreeSet<&'a MeshRef>>,
}

impl<'a> Meshes<'a> {
    pub(super) fn new(set: &'a ResourceSet, clusters: &Clusters<'a>) -> Self {
        let mut of_clusters: HashMap<&str, BTreeSet<&MeshRef>> = HashMap::new();
        for object in set.destinations.values() {
            if let (Backing::Kube(kube), Some(mesh)) = (&object.spec.backing, &object.spec.mesh) {
                let of = of_clusters.entry(last(&kube.service.cluster));
                of.or_default().insert(mesh);
            }
        }
        Self {
            said: clusters.mesh,
            own: clusters.own.map(last),
            of_clusters,
        }
    }

    /// Returns the cluster of the proxies that a Destination is for. Default: the local cluster.
    fn home<'b>(&self, kube: &'b KubeService) -> &'b str
    where
        'a: 'b,
    {
        self.own.unwrap_or_else(|| last(&kube.service.cluster))
    }

    /// Returns the meshes of a cluster's proxies; `None` if unknown.
    fn of(&self, cluster: &str) -> Option<Vec<&'a MeshRef>> {
        if let Some(said) = self.said {
            return Some(vec![said]);
        }
        let of = self.of_clusters.get(cluster);
        of.map(|all| all.iter().copied().collect())
    }

    /// Whether proxies of a cluster use a Destination: it is in their cluster, or federated to their mesh.
    fn know(&self, home: &str, kube: &KubeService, federation: Option<&Federation>) -> bool {
        if last(&kube.service.cluster) == home {
            return true;
        }
        let Some(federation) = federation.filter(|federation| !federation.meshes.is_empty()) else {
            return false;
        };
        match self.of(home) {
            Some(meshes) => meshes.iter().any(|mesh| federation.meshes.contains(*mesh)),
            // a proxy of that cluster has no mesh; elsewhere it may be said by what is not read here
            None => self.own.is_none(),
        }
    }
}

/// Returns the hosts of Destinations, in lower case, each with the oldest Destination that has it.
pub(super) fn owners<'a>(
    set: &'a ResourceSet,
    clusters: &Clusters<'_>,
) -> HashMap<String, &'a Object<Destination>> {
    let mut owners = HashMap::new();
    if set.destinations.is_empty() {
        return owners;
    }
    let meshes = Meshes::new(set, clusters);
    for object in by_age(set) {
        let Backing::Kube(kube) = &object.spec.backing else {
            continue;
        };
        let federation = object.spec.status.federation.as_ref();
        let home = meshes.home(kube);
        if !meshes.know(home, kube, federation) {
            continue;
        }
        for host in object.hosts(clusters.domain) {
            owners.entry(host).or_insert(object);
        }
    }
    owners
}

#[cfg(test)]
mod tests;
