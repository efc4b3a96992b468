//! Planned writes, computed from the state of all clusters. Without I/O.

use std::collections::{BTreeMap, BTreeSet};

use config_loader::catalog::gateway_api::status::Condition;
use config_loader::imports::{self, Conflict, Imported, Importing, Source, conflicts, object};
use config_loader::resource::flomesh::ClusterKey;
use config_loader::{ClusterSettings, Diagnostic, Name, Severity};
use serde_json::{Value, json};

use super::cluster::{Cluster, Export, Import};
use super::findings::Finding;
use super::kept;
use super::settings::{MANAGER, OWNER_LABEL};
use crate::conditions::{merged, valid};

/// Written object: its cluster, and its path there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Target {
    /// Number of the cluster.
    pub(super) cluster: usize,
    /// API path of the object, with group, namespace and name.
    pub(super) path: String,
}

/// Write to an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// Creates a ServiceImport. No ServiceImport of that name is known.
    Create(Value),
    /// Updates a managed ServiceImport, unless its revision has changed.
    Update(Value),
    /// Deletes a managed ServiceImport, unless its UID or revision has changed.
    Delete { uid: String, revision: String },
    /// Sets the conditions of a ServiceExport at this revision.
    Conditions {
        revision: String,
        conditions: Vec<Value>,
    },
}

/// Planned write.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Write {
    pub(super) target: Target,
    pub(super) change: Change,
}

/// All planned writes, and problems.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    pub(super) findings: BTreeSet<Finding>,
}

/// Returns the writes to the clusters, in their order; `time` is the current time.
pub(super) fn plan(clusters: &[Cluster], told: &[ClusterSettings], time: &str) -> Plan {
    let listed = clusters.iter().filter(|cluster| cluster.is_listed);
    let sources: Vec<Source> = listed
        .map(|cluster| Source {
            cluster: cluster.key.clone(),
            resources: cluster.resources().clone(),
        })
        .collect();
    let unlisted = clusters.iter().filter(|cluster| !cluster.is_listed);
    let planning = Planning {
        sources: &sources,
        told,
        time,
        unlisted: unlisted.map(|cluster| &cluster.key).collect(),
        rejected: clusters.iter().flat_map(rejected).collect(),
    };
    let mut plan = Plan::default();
    let conflicts = conflicts(&sources);
    for (number, cluster) in clusters.iter().enumerate() {
        let problems = cluster.problems.iter().map(finding);
        plan.findings.extend(problems);
        if cluster.is_listed {
            planning.imports_of(number, cluster, &mut plan);
            planning.conditions_of(number, cluster, &conflicts, &mut plan);
        }
    }
    plan
}

/// Inputs of a plan.
struct Planning<'a> {
    sources: &'a [Source],
    told: &'a [ClusterSettings],
    /// Time of the plan, for changed conditions.
    time: &'a str,
    /// Clusters whose exports are unknown.
    unlisted: BTreeSet<&'a ClusterKey>,
    /// Invalid exports without a last good version.
    rejected: BTreeSet<(Name, ClusterKey)>,
}

fn rejected(cluster: &Cluster) -> impl Iterator<Item = (Name, ClusterKey)> {
    let good = &cluster.resources().service_exports;
    let exports = cluster.exports().map(|(export, _)| export.name.clone());
    let rejected = exports.filter(move |name| !good.contains_key(name));
    rejected.map(|name| (name, cluster.key.clone()))
}

/// ServiceImport that should exist.
struct Desired {
    group: &'static str,
    spec: Value,
}

impl Planning<'_> {
    fn imports_of(&self, number: usize, cluster: &Cluster, plan: &mut Plan) {
        let imported = imports::imports(&Importing {
            importer: &cluster.key,
            sources: self.sources,
            told: self.told,
        });
        plan.findings.extend(imported.found.iter().map(finding));
        let desired = self.desired(cluster, &imported, plan);
        let mut known = BTreeSet::new();
        for import in cluster.imports() {
            let wanted = desired.get(&import.name);
            let wanted = wanted.filter(|wanted| wanted.group == import.group);
            if wanted.is_some() {
                known.insert(&import.name);
            }
            match (wanted, import.is_ours) {
                (Some(wanted), true) if !kept::is_same(&wanted.spec, &import.spec) => {
                    let object = full(&import.name, wanted, Some(&import.revision));
                    plan.write(number, import.group, &import.name, Change::Update(object));
                }
                (Some(_), true) | (None, false) => {}
                (Some(_), false) => _ = plan.findings.insert(foreign(cluster, import)),
                (None, true) if self.unlisted.is_empty() => {
                    let change = Change::Delete {
                        uid: import.uid.clone(),
                        revision: import.revision.clone(),
                    };
                    plan.write(number, import.group, &import.name, change);
                }
                (None, true) => _ = plan.findings.insert(self.waits(cluster, import)),
            }
        }
        for (name, wanted) in &desired {
            if !known.contains(name) {
                let object = full(name, wanted, None);
                plan.write(number, wanted.group, name, Change::Create(object));
            }
        }
    }

    /// Returns the imports that a cluster should have. Endpoints stay unchanged for clusters whose exports or gateway
    /// are unknown, and for invalid exports.
    fn desired(
        &self,
        cluster: &Cluster,
        imported: &Imported,
        plan: &mut Plan,
    ) -> BTreeMap<Name, Desired> {
        let mut desired = BTreeMap::new();
        for import in &imported.imports {
            match cluster.group(import.group) {
                Some(group) => {
                    let spec = object(import)["spec"].take();
                    desired.insert(import.name.clone(), Desired { group, spec });
                }
                None => _ = plan.findings.insert(not_served(cluster)),
            }
        }
        for import in cluster.imports().filter(|import| import.is_ours) {
            let is_held = |key: &str| {
                let Some(key) = ClusterKey::parse(key) else {
                    return false;
                };
                let export = (import.name.clone(), key);
                self.unlisted.contains(&export.1)
                    || self.rejected.contains(&export)
                    || imported.without_gateway.contains(&export)
            };
            let before: Option<Desired> = desired.remove(&import.name);
            let group = before.as_ref().map_or(import.group, |before| before.group);
            let spec = kept::carry_over(before.map(|before| before.spec), &import.spec, is_held);
            if let Some(spec) = spec {
                desired.insert(import.name.clone(), Desired { group, spec });
            }
        }
        desired
    }

    /// Returns the finding that an import is kept, although no known cluster exports its service.
    fn waits(&self, cluster: &Cluster, import: &Import) -> Finding {
        let names: Vec<String> = self.unlisted.iter().map(|key| format!("`{key}`")).collect();
        Finding::new(
            format!(
                "ServiceImport {} of cluster `{}` is not deleted yet: what {} exports is not known",
                import.name,
                cluster.key,
                names.join(", ")
            ),
            "make every API server reachable, or leave a cluster that is gone out of --imports-between",
        )
    }

    fn conditions_of(
        &self,
        number: usize,
        cluster: &Cluster,
        conflicts: &[Conflict],
        plan: &mut Plan,
    ) {
        for (export, found) in cluster.exports() {
            let is_about = |conflict: &&Conflict| {
                conflict.cluster == cluster.key
                    && conflict.export.group == export.group
                    && conflict.export.to_name() == export.name
            };
            let mut wanted = vec![valid(&found)];
            wanted.extend(self.conflict(export, conflicts.iter().find(is_about)));
            if let Some(conditions) =
                merged(&export.conditions, &wanted, export.generation, self.time)
            {
                let change = Change::Conditions {
                    revision: export.revision.clone(),
                    conditions,
                };
                let path = path(export.group, "serviceexports", &export.name);
                plan.writes.push(Write {
                    target: Target {
                        cluster: number,
                        path: format!("{path}/status"),
                    },
                    change,
                });
            }
        }
    }

    /// Returns the `Conflict` condition; `None` to keep an existing one, which may concern a cluster that is still
    /// unknown.
    fn conflict(&self, export: &Export, found: Option<&Conflict>) -> Option<Condition> {
        let stands =
            |condition: &Value| condition["type"] == "Conflict" && condition["status"] == "True";
        if found.is_none() && !self.unlisted.is_empty() && export.conditions.iter().any(stands) {
            return None;
        }
        let reason = found.map_or("NoConflicts", |conflict| conflict.reason);
        let message = found.map_or("no older ServiceExport differs", |found| &found.message);
        Some(Condition::new("Conflict", found.is_some(), reason).because(message))
    }
}

impl Plan {
    fn write(&mut self, cluster: usize, group: &str, name: &Name, change: Change) {
        let path = path(group, "serviceimports", name);
        self.writes.push(Write {
            target: Target { cluster, path },
            change,
        });
    }
}

fn path(group: &str, plural: &str, name: &Name) -> String {
    let Name { namespace, name } = name;
    format!("/apis/{group}/v1alpha1/namespaces/{namespace}/{plural}/{name}")
}

/// Returns the object to write, with its revision if it exists.
fn full(name: &Name, wanted: &Desired, revision: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": format!("{}/v1alpha1", wanted.group),
        "kind": "ServiceImport",
        "metadata": {
            "name": &*name.name, "namespace": &*name.namespace, "labels": {OWNER_LABEL: MANAGER},
        },
        "spec": wanted.spec,
    });
    if let Some(revision) = revision {
        object["metadata"]["resourceVersion"] = json!(revision);
    }
    object
}

fn finding(found: &Diagnostic) -> Finding {
    let mut text = format!("{}: {}", found.location.file, found.message);
    if found.severity == Severity::Warning {
        text.insert_str(0, "warning: ");
    }
    Finding::new(text, found.help.as_deref().unwrap_or_default())
}

fn foreign(cluster: &Cluster, import: &Import) -> Finding {
    Finding::new(
        format!(
            "ServiceImport {} of cluster `{}` was not written by `strait control`: it stays as it is, though other clusters \
             export the service",
            import.name, cluster.key
        ),
        format!("delete it, or label it {OWNER_LABEL}={MANAGER} to have it kept up to date"),
    )
}

fn not_served(cluster: &Cluster) -> Finding {
    Finding::new(
        format!("cluster `{}` serves no ServiceImports (404)", cluster.key),
        "install their CustomResourceDefinition, serviceimports.multicluster.flomesh.io or serviceimports.flomesh.io",
    )
}

#[cfg(test)]
mod tests;
