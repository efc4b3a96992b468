//! Known clusters of each service, with their numbers of endpoints.

use std::collections::{BTreeMap, HashMap};

use crate::kind::Name;
use crate::resource::ResourceSet;
use crate::resource::flomesh::ClusterKey;
use crate::resource::gloo::Backing;

/// Known clusters of a service.
#[derive(Default)]
pub(super) struct Served<'a> {
    /// Whether a resource describes the service.
    pub(super) exists: bool,
    /// Whether the local cluster may serve it.
    pub(super) is_native: bool,
    /// Number of endpoints in the local cluster.
    pub(super) native: usize,
    /// Endpoints by cluster key, or by cluster name if only that is known.
    pub(super) clusters: BTreeMap<&'a str, Endpoints>,
}

/// Numbers of endpoints in a remote cluster.
#[derive(Clone, Copy, Default)]
pub(super) struct Endpoints {
    /// Number of workloads that are reached directly.
    direct: usize,
    /// Number of imported endpoints, at the port that has the most. Not used if there are direct workloads.
    imported: usize,
}

/// Returns all services with their known clusters.
pub(super) fn served(set: &ResourceSet) -> HashMap<Name, Served<'_>> {
    let mut all: HashMap<Name, Served<'_>> = HashMap::new();
    for name in set.services.keys() {
        let service = all.entry(name.clone()).or_default();
        (service.exists, service.is_native) = (true, true);
    }
    let imports = &set.service_imports;
    for (name, import) in imports.iter().chain(imports.all_in_other_groups()) {
        let service = all.entry(name.clone()).or_default();
        service.exists = true;
        for port in &import.spec.ports {
            let mut here: BTreeMap<&str, usize> = BTreeMap::new();
            for endpoint in &port.endpoints {
                *here.entry(endpoint.cluster.as_str()).or_default() += 1;
            }
            for (cluster, count) in here {
                let of = service.clusters.entry(cluster).or_default();
                of.imported = of.imported.max(count);
            }
        }
    }
    for slice in set.endpoint_slices.values() {
        let Some(name) = &slice.spec.service else {
            continue;
        };
        let name = Name::new(slice.id.namespace.clone(), name.clone());
        let service = all.entry(name).or_default();
        match slice.source_cluster() {
            Some(cluster) => {
                let of = service.clusters.entry(cluster).or_default();
                of.direct += slice.spec.endpoints.len();
            }
            None => service.native += slice.spec.endpoints.len(),
        }
    }
    for object in set.destinations.values() {
        if let Backing::Kube(kube) = &object.spec.backing {
            let at = &kube.service;
            let name = Name::new(at.namespace.clone(), at.name.clone());
            let service = all.entry(name).or_default();
            service.exists = true;
            let of = service.clusters.entry(&at.cluster).or_default();
            let federation = object.spec.status.federation.as_ref();
            if federation.is_some_and(|federation| federation.flat_network) {
                let subsets = kube.endpoint_subsets.iter();
                of.direct += subsets.map(|one| one.endpoints.len()).sum::<usize>();
            }
        }
    }
    all
}

impl Served<'_> {
    /// Whether a cluster serves the service.
    pub(super) fn has(&self, key: &ClusterKey) -> bool {
        self.known(key).next().is_some()
    }

    /// Returns the number of endpoints in a remote cluster: direct workloads, or else imported endpoints.
    pub(super) fn count(&self, key: &ClusterKey) -> usize {
        let direct: usize = self.known(key).map(|of| of.direct).sum();
        match direct {
            0 => self.known(key).map(|of| of.imported).sum(),
            direct => direct,
        }
    }

    fn known(&self, key: &ClusterKey) -> impl Iterator<Item = &Endpoints> {
        let names = [key.as_str(), key.name()].into_iter();
        names.filter_map(|name| self.clusters.get(name))
    }
}
