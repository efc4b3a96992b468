//! Ordering of EndpointSlices and Pods, which two independent watches report.
//!
//! An endpoint is held back until its pod is known: without the pod it has no labels and no identity, so that a subset
//! would miss it and a server that requires mutual TLS would get plain text. After a timeout the endpoint is used
//! without them. A deleted pod is kept as long as a slice names it. The clock is passed in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::Value;
use tokio::time::Instant;

use super::discovery::Resource;

/// Name of a document. For a pod it is `SERVER/NAMESPACE/pods/NAME`.
type Document = Arc<str>;

/// Known pods, and slices that name pods. Memory is bounded by a pointer per endpoint and pod, the names of unknown
/// pods, and the slices whose endpoints are held back.
#[derive(Debug)]
pub(super) struct PodGate {
    /// Server name: the prefix of its documents' names.
    server: String,
    /// Time that an endpoint is held back for its pod.
    wait: Duration,
    /// Namespaces whose pods are listed; `None` for all namespaces. Endpoints are held back only in these.
    lists: HashSet<Option<String>>,
    /// Known pods.
    known: HashSet<Document>,
    /// Pods that slices name, each with the number of slices.
    named: HashMap<Document, usize>,
    /// Deleted pods that a slice still names.
    gone: HashSet<Document>,
    /// Named pods that are not known: deadline of their endpoints, or `None` once it has passed.
    awaited: HashMap<Document, Option<Instant>>,
    slices: HashMap<Document, Slice>,
}

#[derive(Debug, Default)]
struct Slice {
    pods: Vec<Document>,
    /// The slice, while some of its endpoints are held back.
    held: Option<(DynamicObject, Resource)>,
}

/// Changes that take effect now.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Slices without the endpoints that are held back.
    pub(super) slices: Vec<(Document, DynamicObject, Resource)>,
    /// Documents of deleted pods that no slice names any more.
    pub(super) gone: Vec<Document>,
    /// Pods that were not reported before the deadline.
    pub(super) missing: Vec<Document>,
}

impl PodGate {
    /// Creates a gate for the pods of `server` that holds endpoints back for at most `wait`.
    pub(super) fn new(server: String, wait: Duration) -> PodGate {
        PodGate {
            server,
            wait,
            lists: HashSet::new(),
            known: HashSet::new(),
            named: HashMap::new(),
            gone: HashSet::new(),
            awaited: HashMap::new(),
            slices: HashMap::new(),
        }
    }

    /// Records that the pods of a namespace, or of all namespaces if `None`, are listed.
    pub(super) fn listed(&mut self, namespace: Option<&str>) {
        self.lists.insert(namespace.map(str::to_owned));
    }

    /// Records that the pods of a namespace, or of all if `None`, can no longer be read. Held endpoints keep their
    /// deadline.
    pub(super) fn unreadable(&mut self, namespace: Option<&str>) {
        self.lists.remove(&namespace.map(str::to_owned));
    }

    /// Whether the pods in the namespace of `pod` are listed.
    fn has_list_of(&self, pod: &str) -> bool {
        let namespace = pod.rsplit('/').nth(2).unwrap_or_default();
        self.lists.contains(&None) || self.lists.contains(&Some(namespace.to_owned()))
    }

    /// Records a pod. Returns the slices that it releases.
    pub(super) fn pod(&mut self, document: &Document) -> Released {
        self.gone.remove(document);
        let was_awaited = self.awaited.remove(document).is_some();
        self.known.insert(Arc::clone(document));
        match was_awaited {
            true => self.release(|slice| slice.pods.contains(document)),
            false => Released::default(),
        }
    }

    /// Records the deletion of a pod. Returns whether the deletion takes effect now.
    pub(super) fn pod_gone(&mut self, document: &Document) -> bool {
        self.known.remove(document);
        let is_named = self.named.contains_key(document);
        if is_named {
            self.gone.insert(Arc::clone(document));
        }
        !is_named
    }

    /// Records a new or changed slice.
    pub(super) fn slice(
        &mut self,
        document: &Document,
        object: DynamicObject,
        resource: &Resource,
        now: Instant,
    ) -> Released {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let named = endpoints(&object.data);
        let named = named.filter_map(|endpoint| self.pod_of(endpoint, namespace));
        let pods: Vec<Document> = named.map(|pod| self.share(&pod)).collect();
        for pod in &pods {
            *self.named.entry(Arc::clone(pod)).or_default() += 1;
            // a pod that is gone is behind the endpoints that the slice had before, not behind new ones
            let was_named = || {
                let before = self.slices.get(document);
                before.is_some_and(|before| before.pods.contains(pod))
            };
            let is_there = self.known.contains(pod) || self.gone.contains(pod) && was_named();
            if !is_there && self.has_list_of(pod) {
                let until = Some(now + self.wait);
                self.awaited.entry(Arc::clone(pod)).or_insert(until);
            }
        }
        let held = Some((object, resource.clone()));
        let slice = Slice { pods, held };
        let before = self.slices.insert(Arc::clone(document), slice);
        let mut released = self.forget(before);
        released.slices.extend(self.release_one(document));
        released
    }

    /// Records the deletion of a slice.
    pub(super) fn slice_gone(&mut self, document: &Document) -> Released {
        let before = self.slices.remove(document);
        self.forget(before)
    }

    /// Removes the pod references of a slice. Deleted pods that no other slice names are released.
    fn forget(&mut self, slice: Option<Slice>) -> Released {
        let mut released = Released::default();
        for pod in slice.into_iter().flat_map(|slice| slice.pods) {
            let Some(count) = self.named.get_mut(&pod) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.named.remove(&pod);
                self.awaited.remove(&pod);
                released.gone.extend(self.gone.take(&pod));
            }
        }
        released
    }

    /// Returns the earliest deadline of a held endpoint.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.awaited.values().flatten().min().copied()
    }

    /// Releases the endpoints whose deadline has passed.
    pub(super) fn expire(&mut self, now: Instant) -> Released {
        let mut missing = Vec::new();
        for (pod, until) in &mut self.awaited {
            if until.is_some_and(|until| until <= now) {
                *until = None;
                missing.push(Arc::clone(pod));
            }
        }
        if missing.is_empty() {
            return Released::default();
        }
        let mut released = self.release(|slice| slice.pods.iter().any(|pod| missing.contains(pod)));
        missing.sort_unstable();
        released.missing = missing;
        released
    }

    /// Returns the shared name of a pod, to store it only once.
    fn share(&self, key: &str) -> Document {
        let known = self.known.get(key);
        let named = || self.named.get_key_value(key).map(|(key, _)| key);
        known.or_else(named).map_or_else(|| key.into(), Arc::clone)
    }

    /// Returns the slices selected by `is_meant`, with the endpoints that may take effect now.
    fn release(&mut self, is_meant: impl Fn(&Slice) -> bool) -> Released {
        let meant = self.slices.iter().filter(|(_, slice)| is_meant(slice));
        let mut meant: Vec<Document> = meant.map(|(document, _)| Arc::clone(document)).collect();
        meant.sort_unstable();
        let slices = meant
            .iter()
            .filter_map(|document| self.release_one(document));
        Released {
            slices: slices.collect(),
            ..Released::default()
        }
    }

    /// Returns a slice without its held endpoints. The slice is stored as long as there are any.
    fn release_one(&mut self, document: &Document) -> Option<(Document, DynamicObject, Resource)> {
        let waits = |pod: &str| self.awaited.get(pod).is_some_and(Option::is_some);
        let slice = self.slices.get_mut(document)?;
        if !slice.pods.iter().any(|pod| waits(pod)) {
            let (object, resource) = slice.held.take()?;
            return Some((Arc::clone(document), object, resource));
        }
        let (mut object, resource) = slice.held.clone()?;
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        if let Some(Value::Array(endpoints)) = object.data.get_mut("endpoints") {
            let waits = |endpoint: &_| {
                self.pod_of(endpoint, &namespace)
                    .is_some_and(|pod| waits(&pod))
            };
            endpoints.retain(|endpoint| !waits(endpoint));
        }
        Some((Arc::clone(document), object, resource))
    }

    /// Returns the pod of an endpoint.
    fn pod_of(&self, endpoint: &Value, namespace: &str) -> Option<String> {
        let reference = endpoint.get("targetRef")?;
        let text = |name: &str| reference.get(name).and_then(Value::as_str);
        let namespace = text("namespace").unwrap_or(namespace);
        let name = text("name").filter(|_| text("kind") == Some("Pod"))?;
        Some(format!("{}/{namespace}/pods/{name}", self.server))
    }
}

fn endpoints(slice: &Value) -> impl Iterator<Item = &Value> {
    let endpoints = slice.get("endpoints").and_then(Value::as_array);
    endpoints.into_iter().flatten()
}

#[cfg(test)]
mod tests;
