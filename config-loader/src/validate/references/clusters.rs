//! Known Kubernetes clusters, by key and by name.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{WrittenName, warning};
use crate::Fleet;
use crate::catalog::ClusterNames;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X308, X347};
use crate::resource::flomesh::ClusterKey;
use crate::resource::gloo::{Backing, Destination, MeshRef, ShiftTarget, SourceSelector};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

/// Known Kubernetes clusters.
pub(super) struct Clusters<'a> {
    /// Keys by their last part, the cluster's name.
    by_name: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Cluster names in the labels of endpoints.
    serving: BTreeSet<&'a str>,
    /// Remote clusters of `--clusters`, and whether the file has a gateway for each.
    told: BTreeMap<&'a str, bool>,
    /// Key of the local cluster, if known.
    pub(super) own: Option<&'a str>,
    /// DNS domain of the mesh's services.
    pub(super) domain: &'a str,
    /// Mesh of the proxy, if known.
    pub(super) mesh: Option<&'a MeshRef>,
}

impl<'a> Clusters<'a> {
    pub(super) fn new(set: &'a ResourceSet, fleet: &'a Fleet) -> Self {
        let told = fleet.told.iter();
        let told: BTreeMap<_, _> = told
            .map(|told| (told.key.as_str(), told.has_gateway))
            .collect();
        let mut all = Self {
            by_name: BTreeMap::new(),
            serving: BTreeSet::new(),
            told: BTreeMap::new(),
            own: fleet.own.as_ref().map(|key| key.as_str()),
            domain: &fleet.naming.domain,
            mesh: fleet.mesh.as_ref(),
        };
        for key in all.own.into_iter().chain(told.keys().copied()) {
            all.add(key);
        }
        all.told = told;
        let slices = set.endpoint_slices.values();
        let sources = slices.filter_map(|slice| slice.source_cluster());
        let named = ClusterNames::collect(set, sources);
        named.keys.into_iter().for_each(|key| all.add(key));
        all.serving = named.serving;
        all
    }

    fn add(&mut self, key: &'a str) {
        self.by_name.entry(last(key)).or_default().insert(key);
    }

    /// Whether a cluster with this name is known.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || self.serving.contains(name)
    }

    /// Whether `--clusters` names the cluster.
    pub(super) fn is_told(&self, key: &ClusterKey) -> bool {
        self.told.contains_key(key.as_str())
    }

    /// Returns the names of remote clusters with a gateway in `--clusters`.
    pub(super) fn with_gateway(&self) -> impl Iterator<Item = &'a str> {
        let told = self.told.iter().filter(|(_, has_gateway)| **has_gateway);
        told.map(|(key, _)| last(key))
    }

    /// Returns the names of all clusters.
    pub(super) fn names(&self) -> BTreeSet<&'a str> {
        let named = self.by_name.keys().chain(&self.serving);
        named.copied().filter(|name| !name.is_empty()).collect()
    }

    /// Returns the keys that a name may refer to, if there are several. Such a name refers to no cluster. A full key is
    /// never ambiguous.
    fn ambiguous(&self, name: &str) -> Option<&BTreeSet<&'a str>> {
        let keys = self.by_name.get(name)?;
        (keys.len() > 1).then_some(keys)
    }

    /// Warns of an ambiguous name, which refers to no cluster.
    pub(super) fn check_name<T>(
        &self,
        object: &Object<T>,
        named: WrittenName<'_>,
        what: &str,
        found: &mut Vec<Diagnostic>,
    ) {
        let name = named.name;
        let Some(keys) = self.ambiguous(name) else {
            return;
        };
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let message = format!(
            "`{name}` is the name of {} clusters, so it names none of them: {what}",
            keys.len()
        );
        let mut diagnostic = warning(object, X308, named.line, named.field, message);
        diagnostic.help(format!(
            "give one of the clusters another name: {}",
            keys.join(", ")
        ));
        found.push(diagnostic);
    }
}

/// Returns the last part of a key, the cluster's name.
pub(super) fn last(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}

/// Warns of unknown cluster names in access policies, and of ambiguous ones wherever only the name is written.
pub(super) fn check(set: &ResourceSet, clusters: &Clusters<'_>, found: &mut Vec<Diagnostic>) {
    for object in set.destinations.values() {
        check_access_policies(object, clusters, found);
    }
    if clusters.by_name.values().all(|keys| keys.len() < 2) {
        return;
    }
    for object in set.multi_cluster_services.values() {
        let spec = &object.spec;
        for named in spec.providers.iter().chain(&spec.consumers) {
            let at = WrittenName {
                name: &named.name,
                field: named.field.to_string(),
                line: named.line,
            };
            clusters.check_name(object, at, "this entry matches nothing", found);
        }
    }
    for object in set.destinations.values() {
        check_destination(object, clusters, found);
    }
    for slice in set.endpoint_slices.values() {
        if let Some(name) = slice.source_cluster() {
            let at = WrittenName {
                name,
                field: "metadata".to_owned(),
                line: Line(0),
            };
            clusters.check_name(slice, at, "its endpoints are not used", found);
        }
    }
}

fn check_access_policies(
    object: &Object<Destination>,
    clusters: &Clusters<'_>,
    found: &mut Vec<Diagnostic>,
) {
    const EFFECT: &str = "the access policy admits no client";
    let policies = object.spec.status.access_policies.iter().enumerate();
    for (index, applied) in policies {
        let sources = applied.spec.iter().flat_map(|spec| &spec.sources);
        for name in sources.flat_map(SourceSelector::cluster_names) {
            let field = format!("status.appliedAccessPolicies[{index}].spec.sourceSelector");
            if clusters.has(name) {
                let at = WrittenName {
                    name,
                    field,
                    line: applied.line,
                };
                clusters.check_name(object, at, EFFECT, found);
            } else if clusters.own.is_some() {
                let message = format!("cluster `{name}` is unknown: {EFFECT}");
                let mut diagnostic = warning(object, X347, applied.line, field, message);
                let known: Vec<&str> = clusters.names().into_iter().collect();
                let known = known.join(", ");
                diagnostic.help(format!(
                    "write a known cluster ({known}), or add it to the file of --clusters"
                ));
                found.push(diagnostic);
            }
        }
    }
}

fn check_destination(
    object: &Object<Destination>,
    clusters: &Clusters<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let Backing::Kube(kube) = &object.spec.backing else {
        return;
    };
    let field = "spec.kubeService.ref.clusterName".to_owned();
    let at = WrittenName {
        name: &kube.service.cluster,
        field,
        line: kube.line,
    };
    clusters.check_name(object, at, "the Destination is not used", found);
    let status = &object.spec.status;
    for (index, required) in status.required_subsets.iter().enumerate() {
        for (number, part) in required.shift.destinations.iter().enumerate() {
            let ShiftTarget::Kube { service, .. } = &part.target else {
                continue;
            };
            let field = format!(
                "status.requiredSubsets[{index}].trafficShift.destinations[{number}].kubeService.clusterName"
            );
            let at = WrittenName {
                name: &service.cluster,
                field,
                line: part.line,
            };
            clusters.check_name(object, at, "the shift is not followed", found);
        }
    }
    for (index, applied) in status.traffic_policies.iter().enumerate() {
        let sources = applied.target.as_ref().map(|target| &*target.sources);
        let names = sources
            .unwrap_or_default()
            .iter()
            .flat_map(|one| &one.clusters);
        for name in names {
            let field = format!("status.appliedTrafficPolicies[{index}].spec.sourceSelector");
            let at = WrittenName {
                name,
                field,
                line: Line(0),
            };
            clusters.check_name(object, at, "it selects nothing", found);
        }
    }
}
