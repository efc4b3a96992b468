//! The order in which EndpointSlices and Pods take effect, though two watches report them.
//!
//! An endpoint waits for its pod: without the pod it has no labels and no identity, so that a subset would miss it and a server
//! that demands mutual TLS would get plain text. After a while it is used as it is: an endpoint without labels is better than none.
//! A pod that is gone stays as long as a slice names it. The clock is passed in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::Value;
use tokio::time::Instant;

use super::discovery::Resource;

/// The name of a document: that of a pod is `SERVER/NAMESPACE/pods/NAME`.
type Document = Arc<str>;

/// Pods that are known, and slices that name them. The most that it holds is a pointer for each endpoint and for each pod,
/// names of pods that are not known, and the slices whose endpoints wait.
#[derive(Debug)]
pub(super) struct PodGate {
    /// The server, with which the names of its documents begin.
    server: String,
    /// Time that an endpoint waits for its pod.
    wait: Duration,
    /// The namespaces whose pods are listed, none for all of them: without a list, no endpoint waits.
    lists: HashSet<Option<String>>,
    /// The pods that are known.
    known: HashSet<Document>,
    /// The pods that slices name, with how many do.
    named: HashMap<Document, usize>,
    /// The pods that are gone and still named.
    gone: HashSet<Document>,
    /// The pods that are named and not known: until when their endpoints wait; none once they do not any more.
    awaited: HashMap<Document, Option<Instant>>,
    slices: HashMap<Document, Slice>,
}

#[derive(Debug, Default)]
struct Slice {
    pods: Vec<Document>,
    /// The slice, while some of its endpoints wait.
    held: Option<(DynamicObject, Resource)>,
}

/// What may take effect now.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Slices, without the endpoints that wait.
    pub(super) slices: Vec<(Document, DynamicObject, Resource)>,
    /// Documents of pods that no slice names any more.
    pub(super) gone: Vec<Document>,
    /// Pods that were waited for in vain.
    pub(super) missing: Vec<Document>,
}

impl PodGate {
    /// A gate for a server's pods, at which endpoints wait for so long.
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

    /// There is a list of the pods of a namespace, or of all if none is given.
    pub(super) fn listed(&mut self, namespace: Option<&str>) {
        self.lists.insert(namespace.map(str::to_owned));
    }

    /// The pods of a namespace, or all if none is given, cannot be read any more. The endpoints that wait go on to their deadline.
    pub(super) fn unreadable(&mut self, namespace: Option<&str>) {
        self.lists.remove(&namespace.map(str::to_owned));
    }

    /// Whether the pods of the namespace of a pod are listed.
    fn has_list_of(&self, pod: &str) -> bool {
        let namespace = pod.rsplit('/').nth(2).unwrap_or_default();
        self.lists.contains(&None) || self.lists.contains(&Some(namespace.to_owned()))
    }

    /// A pod is known, which has been reported.
    pub(super) fn pod(&mut self, document: &Document) -> Released {
        self.gone.remove(document);
        let was_awaited = self.awaited.remove(document).is_some();
        self.known.insert(Arc::clone(document));
        match was_awaited {
            true => self.release(|slice| slice.pods.contains(document)),
            false => Released::default(),
        }
    }

    /// A pod is gone. Returns whether that may take effect.
    pub(super) fn pod_gone(&mut self, document: &Document) -> bool {
        self.known.remove(document);
        let is_named = self.named.contains_key(document);
        if is_named {
            self.gone.insert(Arc::clone(document));
        }
        !is_named
    }

    /// A slice is new, or other than before.
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

    /// A slice is gone.
    pub(super) fn slice_gone(&mut self, document: &Document) -> Released {
        let before = self.slices.remove(document);
        self.forget(before)
    }

    /// A slice does not name its pods any more. Those that are gone and named by no other take effect as gone.
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

    /// When endpoints stop waiting next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.awaited.values().flatten().min().copied()
    }

    /// Lets endpoints pass that have waited long enough.
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

    /// The name of a pod as it is known already.
    fn share(&self, key: &str) -> Document {
        let known = self.known.get(key);
        let named = || self.named.get_key_value(key).map(|(key, _)| key);
        known.or_else(named).map_or_else(|| key.into(), Arc::clone)
    }

    /// The slices of which endpoints may take effect now.
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

    /// A slice without the endpoints that wait. It is kept as long as there are any.
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

    /// The pod behind an endpoint.
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
