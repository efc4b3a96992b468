//! State of one cluster: its exports and its ServiceImports.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use config_loader::resource::flomesh::ClusterKey;
use config_loader::{Checker, Diagnostic, Fleet, Name, ReadOptions, ResourceSet};
use serde_json::Value;

use super::settings::{MANAGER, OWNER_LABEL};
use crate::object;

/// API groups of ServiceExports and ServiceImports.
pub(super) const GROUPS: [&str; 2] = ["multicluster.flomesh.io", "flomesh.io"];

/// Objects of a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Key of the cluster.
    pub(super) key: ClusterKey,
    /// Whether all objects have been listed once. Until then the exports of the cluster are unknown.
    pub(super) is_listed: bool,
    /// API groups in which the cluster serves ServiceImports; `None` if unknown.
    pub(super) groups: Option<BTreeSet<&'static str>>,
    /// Problems of its API server.
    pub(super) problems: Vec<Diagnostic>,
    /// Validated Services, ServiceExports and Gateways.
    checker: Checker,
    exports: BTreeMap<Arc<str>, Export>,
    imports: BTreeMap<Arc<str>, Import>,
}

/// ServiceExport as stored by its API server.
#[derive(Clone, Debug)]
pub(super) struct Export {
    pub(super) group: &'static str,
    pub(super) name: Name,
    pub(super) revision: String,
    pub(super) generation: i64,
    pub(super) conditions: Vec<Value>,
}

/// ServiceImport as stored by its API server.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) group: &'static str,
    pub(super) name: Name,
    pub(super) uid: String,
    pub(super) revision: String,
    /// Whether Strait manages the ServiceImport.
    pub(super) is_ours: bool,
    pub(super) spec: Value,
}

impl Cluster {
    /// Returns a cluster without objects.
    pub(super) fn new(key: ClusterKey) -> Cluster {
        Cluster {
            key,
            is_listed: false,
            groups: None,
            problems: Vec::new(),
            checker: Checker::new(Fleet::default(), ReadOptions::default()),
            exports: BTreeMap::new(),
            imports: BTreeMap::new(),
        }
    }

    /// Applies changes of objects by key; `None` for a deleted object.
    pub(super) fn take_in(&mut self, changes: Vec<(Arc<str>, Option<Value>)>) {
        let mut texts = Vec::new();
        for (key, object) in changes {
            self.exports.remove(&key);
            if self.imports.remove(&key).is_none() && object.is_none() {
                texts.push((Arc::clone(&key), None));
            }
            let Some(object) = object else { continue };
            let group = group_of(&object);
            match (object["kind"].as_str(), group) {
                (Some("ServiceImport"), Some(group)) => {
                    self.imports.insert(key, import(group, &object));
                    continue;
                }
                (Some("ServiceExport"), Some(group)) => {
                    let export = export(group, &object);
                    self.exports.insert(Arc::clone(&key), export);
                }
                _ => {}
            }
            texts.push((key, Some(checked_text(object))));
        }
        if !texts.is_empty() {
            self.checker.change(texts);
        }
        // Update findings now: conditions must match the current objects.
        if self.checker.deadline(Instant::now()).is_some() {
            self.checker.catch_up();
        }
    }

    /// Returns the valid objects.
    pub(super) fn resources(&self) -> &Arc<ResourceSet> {
        self.checker.set()
    }

    /// Returns the ServiceExports, each with its findings.
    pub(super) fn exports(&self) -> impl Iterator<Item = (&Export, Vec<&Diagnostic>)> {
        let mut found: HashMap<&str, Vec<&Diagnostic>> = HashMap::new();
        for one in self.checker.findings() {
            found.entry(&one.location.file).or_default().push(one);
        }
        let exports = self.exports.iter();
        exports.map(move |(key, export)| (export, found.remove(&**key).unwrap_or_default()))
    }

    /// Returns the ServiceImports.
    pub(super) fn imports(&self) -> impl Iterator<Item = &Import> {
        self.imports.values()
    }

    /// Returns the group in which the cluster serves ServiceImports: `wanted` if possible, else the other; `None` if
    /// it serves neither.
    pub(super) fn group(&self, wanted: &'static str) -> Option<&'static str> {
        match &self.groups {
            None => Some(wanted),
            Some(groups) if groups.contains(wanted) => Some(wanted),
            Some(groups) => groups.first().copied(),
        }
    }
}

/// Returns the API group of an object of a multi-cluster kind; `None` for other objects.
fn group_of(object: &Value) -> Option<&'static str> {
    let (group, _) = object["apiVersion"].as_str()?.split_once('/')?;
    GROUPS.into_iter().find(|known| *known == group)
}

fn name_of(object: &Value) -> Name {
    Name {
        namespace: object::meta(object, "namespace").into(),
        name: object::meta(object, "name").into(),
    }
}

fn export(group: &'static str, object: &Value) -> Export {
    let conditions = object["status"]["conditions"].as_array().cloned();
    let generation = &object::metadata(object)["generation"];
    Export {
        group,
        name: name_of(object),
        revision: object::meta(object, "resourceVersion").to_owned(),
        generation: generation.as_i64().unwrap_or(0),
        conditions: conditions.unwrap_or_default(),
    }
}

fn import(group: &'static str, object: &Value) -> Import {
    Import {
        group,
        name: name_of(object),
        uid: object::meta(object, "uid").to_owned(),
        revision: object::meta(object, "resourceVersion").to_owned(),
        is_ours: object::metadata(object)["labels"][OWNER_LABEL] == MANAGER,
        spec: object["spec"].clone(),
    }
}

/// Returns the text that is checked, without `resourceVersion` and `status`, which change without a change of content.
fn checked_text(mut object: Value) -> String {
    object::metadata_mut(&mut object).shift_remove("resourceVersion");
    object::remove(&mut object, "status");
    object.to_string()
}
