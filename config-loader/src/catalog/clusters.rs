//! Kubernetes clusters that resources name.

use std::collections::BTreeSet;

use super::View;
use crate::resource::flomesh::{Cluster, GlobalTrafficPolicy, ServiceExport, ServiceImport};
use crate::resource::gloo::{Backing, Destination};

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
    /// Collects the cluster names in the resources. `sources` are the clusters that EndpointSlices were copied from.
    pub fn collect(view: impl Into<View<'a>>, sources: impl IntoIterator<Item = &'a str>) -> Self {
        let view = view.into();
        let mut names = Self::default();
        for import in view.all::<ServiceImport>().in_all_groups() {
            let endpoints = import.spec.ports.iter().flat_map(|port| &port.endpoints);
            let keys = endpoints.map(|endpoint| endpoint.cluster.as_str());
            names.keys.extend(keys);
        }
        for policy in view.all::<GlobalTrafficPolicy>().values() {
            let targets = policy.spec.targets.iter();
            names
                .keys
                .extend(targets.map(|target| target.cluster.as_str()));
        }
        for export in view.all::<ServiceExport>().values() {
            let targets = export.spec.target_clusters.iter();
            names.keys.extend(targets.map(|key| key.as_str()));
        }
        let clusters = view.all::<Cluster>().in_all_groups();
        names
            .keys
            .extend(clusters.map(|cluster| cluster.spec.key.as_str()));
        names.serving.extend(sources);
        for object in view.all::<Destination>().values() {
            if let Backing::Kube(kube) = &object.spec.backing {
                names.serving.insert(&kube.service.cluster);
            }
        }
        names
    }
}
