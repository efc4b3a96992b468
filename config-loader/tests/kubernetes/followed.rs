//! Configurations that a proxy would have in effect, now and before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use config_loader::resource::{Objects, Spec};
use config_loader::{
    ControlSettings, Fleet, KubernetesSettings, LoadOptions, ResourceSet, Sources, Update, Watch,
    WatchSettings, load_files,
};
use regex::Regex;
use serde_json::Value;

use crate::cluster::until;

/// Follows a server until it is dropped.
pub struct Followed {
    updates: Arc<Mutex<Vec<Update>>>,
    _watch: Watch,
}

impl Followed {
    pub fn start(settings: KubernetesSettings) -> Followed {
        let updates = Arc::new(Mutex::new(Vec::new()));
        let sources = Sources {
            paths: Vec::new(),
            control: Some(ControlSettings {
                kubernetes: settings,
                state: None,
                ..ControlSettings::default()
            }),
            ..Sources::default()
        };
        let sink = Arc::clone(&updates);
        let on_update = move |update| sink.lock().unwrap().push(update);
        let (_, watch) = config_loader::watch_for(
            Fleet::default,
            &sources,
            WatchSettings::default(),
            on_update,
        )
        .unwrap();
        Followed {
            updates,
            _watch: watch,
        }
    }

    /// Starts to follow, and waits until everything is listed.
    pub async fn ready(settings: KubernetesSettings) -> Followed {
        let followed = Followed::start(settings);
        followed
            .until("everything is listed", |update| update.waits_for.is_none())
            .await;
        followed
    }

    /// Waits until `condition` holds for the newest update.
    pub async fn until(&self, what: &str, condition: impl Fn(&Update) -> bool) {
        until(what, async || {
            self.updates.lock().unwrap().last().is_some_and(&condition)
        })
        .await;
    }

    /// Waits until the debug output of an object contains `text`, such as a host.
    pub async fn until_says(&self, text: &str) {
        self.until(&format!("it says {text}"), |update| says(&update.set, text))
            .await;
    }

    /// Waits until a diagnostic contains `text`.
    pub async fn until_found(&self, text: &str) {
        self.until(&format!("it finds {text}"), |update| {
            update
                .diagnostics
                .iter()
                .any(|found| format!("{} {}", found.code, found.message).contains(text))
        })
        .await;
    }

    /// Waits until no diagnostic contains `text`.
    pub async fn until_not_found(&self, text: &str) {
        self.until(&format!("it does not find {text}"), |update| {
            !update
                .diagnostics
                .iter()
                .any(|found| format!("{} {}", found.code, found.message).contains(text))
        })
        .await;
    }

    pub fn set(&self) -> Arc<ResourceSet> {
        Arc::clone(&self.updates.lock().unwrap().last().unwrap().set)
    }

    /// Returns the number of updates.
    pub fn count(&self) -> usize {
        self.updates.lock().unwrap().len()
    }

    /// Returns every set since the update with this number.
    pub fn since(&self, number: usize) -> Vec<Arc<ResourceSet>> {
        let updates = self.updates.lock().unwrap();
        updates[number..]
            .iter()
            .map(|update| Arc::clone(&update.set))
            .collect()
    }
}

/// Whether the debug output of an object in the set contains `text`.
pub fn says(set: &ResourceSet, text: &str) -> bool {
    described(set)
        .iter()
        .any(|(id, object)| id.contains(text) || object.contains(text))
}

/// Returns the descriptions of the same objects, loaded from files.
pub fn of_files(objects: &[Value]) -> BTreeMap<String, String> {
    let directory = tempfile::tempdir().unwrap();
    for (number, object) in objects.iter().enumerate() {
        std::fs::write(
            directory.path().join(format!("{number}.json")),
            object.to_string(),
        )
        .unwrap();
    }
    let paths = [directory.path().to_owned()];
    let loaded = load_files(&paths, LoadOptions::default());
    assert!(loaded.quarantined.is_empty(), "{:?}", loaded.diagnostics);
    described(&loaded.set)
}

/// Returns the description of each object, without its lines.
pub fn described(set: &ResourceSet) -> BTreeMap<String, String> {
    let places = Regex::new(r"Line\(\s*\d+,?\s*\)|Span \{[^}]*\}").unwrap();
    let mut all = BTreeMap::new();
    collect(&set.virtual_services, &mut all);
    collect(&set.destination_rules, &mut all);
    collect(&set.gateways, &mut all);
    collect(&set.peer_authentications, &mut all);
    collect(&set.sidecars, &mut all);
    collect(&set.service_entries, &mut all);
    collect(&set.workload_entries, &mut all);
    collect(&set.clusters, &mut all);
    collect(&set.global_traffic_policies, &mut all);
    collect(&set.service_imports, &mut all);
    collect(&set.service_exports, &mut all);
    collect(&set.multi_cluster_services, &mut all);
    collect(&set.destinations, &mut all);
    collect(&set.services, &mut all);
    collect(&set.endpoint_slices, &mut all);
    collect(&set.secrets, &mut all);
    collect(&set.config_maps, &mut all);
    collect(&set.gateway_classes, &mut all);
    collect(&set.kubernetes_gateways, &mut all);
    collect(&set.listener_sets, &mut all);
    collect(&set.http_routes, &mut all);
    collect(&set.grpc_routes, &mut all);
    collect(&set.tls_routes, &mut all);
    collect(&set.tcp_routes, &mut all);
    collect(&set.reference_grants, &mut all);
    collect(&set.backend_tls_policies, &mut all);
    for object in all.values_mut() {
        *object = places.replace_all(object, "_").into_owned();
    }
    all
}

fn collect<T: Spec>(objects: &Objects<T>, all: &mut BTreeMap<String, String>) {
    for object in objects.in_all_groups() {
        let text = format!(
            "{:?} {:?} {:?}",
            object.labels, object.annotations, object.spec
        );
        all.insert(format!("{:?}", object.id), text);
    }
}
