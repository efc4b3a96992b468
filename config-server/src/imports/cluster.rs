//! What is known of one cluster: what it exports, and which ServiceImports it has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use config_loader::resource::flomesh::ClusterKey;
use config_loader::{Checker, Diagnostic, Fleet, Name, ReadOptions, ResourceSet};
use serde_json::Value;

use super::settings::{MANAGER, OWNER_LABEL};
use crate::object;

/// The API groups of ServiceExports and ServiceImports.
pub(super) const GROUPS: [&str; 2] = ["multicluster.flomesh.io", "flomesh.io"];

/// The objects of a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Its key.
    pub(super) key: ClusterKey,
    /// Whether all of its objects have been listed once. Before, nothing is known of what it exports.
    pub(super) is_listed: bool,
    /// The API groups in which it serves ServiceImports; none if that is not known.
    pub(super) groups: Option<BTreeSet<&'static str>>,
    /// What is wrong with its API server.
    pub(super) problems: Vec<Diagnostic>,
    /// Services, exports and gateways, checked.
    checker: Checker,
    exports: BTreeMap<Arc<str>, Export>,
    imports: BTreeMap<Arc<str>, Import>,
}

/// A ServiceExport as its API server has it.
#[derive(Clone, Debug)]
pub(super) struct Export {
    pub(super) group: &'static str,
    pub(super) name: Name,
    pub(super) revision: String,
    pub(super) generation: i64,
    pub(super) conditions: Vec<Value>,
}

/// A ServiceImport as its API server has it.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) group: &'static str,
    pub(super) name: Name,
    pub(super) uid: String,
    pub(super) revision: String,
    /// Whether it was written here.
    pub(super) is_ours: bool,
    pub(super) spec: Value,
}

impl Cluster {
    /// Of which nothing is known.
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

    /// Takes in what became of objects, each under a name of its own; none for one that is gone.
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
        // Conditions follow from findings: they must be about the objects of now.
        if self.checker.deadline(Instant::now()).is_some() {
            self.checker.catch_up();
        }
    }

    /// The objects that are good.
    pub(super) fn resources(&self) -> &Arc<ResourceSet> {
        self.checker.set()
    }

    /// Its ServiceExports, each with what is wrong with it.
    pub(super) fn exports(&self) -> impl Iterator<Item = (&Export, Vec<&Diagnostic>)> {
        let mut found: HashMap<&str, Vec<&Diagnostic>> = HashMap::new();
        for one in self.checker.findings() {
            found.entry(&one.location.file).or_default().push(one);
        }
        let exports = self.exports.iter();
        exports.map(move |(key, export)| (export, found.remove(&**key).unwrap_or_default()))
    }

    /// Its ServiceImports.
    pub(super) fn imports(&self) -> impl Iterator<Item = &Import> {
        self.imports.values()
    }

    /// The group in which it serves ServiceImports: this one, or else the other. None if it serves none.
    pub(super) fn group(&self, wanted: &'static str) -> Option<&'static str> {
        match &self.groups {
            None => Some(wanted),
            Some(groups) if groups.contains(wanted) => Some(wanted),
            Some(groups) => groups.first().copied(),
        }
    }
}

/// The API group of an object, if it is one of multi-cluster kinds.
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

/// The text that is checked: without what changes by itself, and without the conditions that are written here.
fn checked_text(mut object: Value) -> String {
    object::metadata_mut(&mut object).shift_remove("resourceVersion");
    object::remove(&mut object, "status");
    object.to_string()
}
