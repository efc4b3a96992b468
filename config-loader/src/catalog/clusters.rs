//! Kubernetes clusters that resources name.

use std::collections::BTreeSet;

use crate::resource::ResourceSet;
use crate::resource::gloo::Backing;

/// Cluster names in resources.
#[derive(Clone, Debug, Default)]
pub struct ClusterNames<'a> {
    /// Keys, `REGION/ZONE/GROUP/NAME`, in Clusters, ServiceImports, GlobalTrafficPolicies and ServiceExports.
    pub keys: BTreeSet<&'a str>,
    /// Names of clusters with known endpoints, in Destinations and in EndpointSlices of remote clusters. Usually the
    /// last part of a key.
    pub serving: BTreeSet<&'a str>,
}

impl<'a> ClusterNames<'a> {
    /// Collects the cluster names in `set`.
    pub fn collect(set: &'a ResourceSet) -> Self {
        let mut names = Self::default();
        for import in set.service_imports.in_all_groups() {
            let endpoints = import.spec.ports.iter().flat_map(|port| &port.endpoints);
            let keys = endpoints.map(|endpoint| endpoint.cluster.as_str());
            names.keys.extend(keys);
        }
        for policy in set.global_traffic_policies.values() {
            let targets = policy.spec.targets.iter();
            names
                .keys
                .extend(targets.map(|target| target.cluster.as_str()));
        }
        for export in set.service_exports.values() {
            let targets = export.spec.target_clusters.iter();
            names.keys.extend(targets.map(|key| key.as_str()));
        }
        let clusters = set.clusters.in_all_groups();
        names
            .keys
            .extend(clusters.map(|cluster| cluster.spec.key.as_str()));
        let slices = set.endpoint_slices.values();
        names
            .serving
            .extend(slices.filter_map(|slice| slice.source_cluster()));
        for object in set.destinations.values() {
            if let Backing::Kube(kube) = &object.spec.backing {
                names.serving.insert(&kube.service.cluster);
            }
        }
        names
    }
}
