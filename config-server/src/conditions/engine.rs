//! Objects of a server with their findings, and the objects whose conditions have to be written.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use config_loader::catalog::gateway_api::status::Condition;
use config_loader::source::content::{self, Reader};
use config_loader::{Checker, Diagnostic, Fleet, Kind, ObjectRef, ReadOptions};
use serde_json::{Value, json};

use super::gateways::{GatewayController, GatewayStatuses, held_addresses};
use super::ingresses::IngressStatuses;
use super::merge::merged;
use super::programmed::{Followers, Subject, identity};
use super::wanted::{has_conditions, wanted};
use super::write::{Outcome, Write};
use crate::object;
use crate::resources::{self, Resource};
use crate::store::Revision;

/// Minimum time between two writes to one object. It bounds the load if another client overwrites the same conditions.
const WRITE_PAUSE: Duration = Duration::from_secs(1);
/// Delay before a failed write is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Objects with their findings and conditions.
#[derive(Debug)]
pub struct Engine {
    checker: Checker,
    /// Domain of the cluster.
    domain: Arc<str>,
    gateways: GatewayStatuses,
    /// Status of Ingresses; `None` if it belongs to another controller.
    ingresses: Option<IngressStatuses>,
    /// Whether objects have changed since the status of the Gateway API and of Ingresses was looked at.
    gateways_are_stale: bool,
    objects: HashMap<Arc<str>, Known>,
    /// Findings by object; objects without findings are absent.
    found: HashMap<Arc<str>, Vec<Diagnostic>>,
    /// Objects whose conditions have to be compared with the desired ones.
    dirty: BTreeSet<Arc<str>>,
    /// Reports of proxies; `None` if they produce no condition.
    followers: Option<Followers>,
    /// Resources whose API server does not store conditions.
    not_kept: HashSet<String>,
}

/// State of an object.
#[derive(Debug)]
struct Known {
    id: ObjectRef,
    resource: &'static Resource,
    version: &'static str,
    namespace: Option<String>,
    name: String,
    revision: String,
    generation: i64,
    status: Value,
    /// Hash of the text that is checked.
    checked: u64,
    /// Stub of the object with only its labels.
    labels: Value,
    /// Revision of the last change of the checked text.
    changed: Revision,
    /// Identity of the last `Programmed` condition.
    programmed: Option<(&'static str, Option<String>)>,
    /// Time before which the object is not written.
    rests_until: Option<Instant>,
}

impl Engine {
    /// Returns an engine without objects. Findings are those of a proxy that serves the Gateways of the controller.
    pub fn new(controller: GatewayController) -> Engine {
        let fleet = Fleet {
            gateway_controller: Some(controller.name.as_str().into()),
            root_namespace: Some(controller.root_namespace.as_str().into()),
            has_gateway_pool: !controller.pool.is_empty(),
            ..Fleet::default()
        };
        Engine {
            domain: fleet.naming.domain.clone(),
            ingresses: controller.ingress.clone().map(IngressStatuses::new),
            gateways: GatewayStatuses::new(controller),
            gateways_are_stale: false,
            checker: Checker::new(fleet, ReadOptions::default()),
            objects: HashMap::new(),
            found: HashMap::new(),
            dirty: BTreeSet::new(),
            followers: None,
            not_kept: HashSet::new(),
        }
    }

    /// Applies changes of objects by key; `None` for a deleted object.
    pub fn take_in(&mut self, changes: Vec<(Arc<str>, Option<Value>)>) {
        let mut texts = Vec::new();
        for (key, object) in changes {
            let read = object.and_then(|object| self.read(object));
            match read {
                Some((mut known, text)) => {
                    let before = self.objects.remove(&key);
                    if before.as_ref().is_none_or(|b| b.checked != known.checked) {
                        texts.push((Arc::clone(&key), Some(text)));
                    }
                    if let Some(before) = before {
                        known.continues(before);
                    }
                    if self.writes(known.resource) {
                        self.dirty.insert(Arc::clone(&key));
                    }
                    self.objects.insert(key, known);
                }
                None => {
                    self.dirty.remove(&key);
                    if self.objects.remove(&key).is_some() {
                        texts.push((key, None));
                    }
                }
            }
        }
        if texts.is_empty() {
            return;
        }
        self.gateways_are_stale = true;
        if self.checker.change(texts) {
            self.regroup();
        }
    }

    /// Replaces the proxy reports, and marks the objects whose `Programmed` condition they change.
    pub fn set_followers(&mut self, followers: Followers) {
        let objects = self.objects.iter();
        let differ = objects.filter(|(_, known)| {
            self.writes(known.resource)
                && reports_count(known.id.kind)
                && known.programmed != Some(identity(&followers.programmed(known.subject())))
        });
        let differ: Vec<Arc<str>> = differ.map(|(key, _)| Arc::clone(key)).collect();
        self.dirty.extend(differ);
        self.followers = Some(followers);
    }

    /// Recomputes the findings if they are due.
    pub fn refresh_findings(&mut self, now: Instant) {
        let is_due = self.checker.deadline(now).is_some_and(|due| due <= now);
        if is_due && self.checker.catch_up() {
            self.regroup();
        }
    }

    /// Returns the time of the next work; `None` if there is none.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let rests = |key| self.objects.get(key).and_then(|known| known.rests_until);
        let writes = self.dirty.iter().map(|key| rests(key).unwrap_or(now));
        match self.checker.deadline(now) {
            Some(due) => Some(due),
            None if self.gateways_are_stale => Some(now),
            None => writes.min(),
        }
    }

    /// Returns the writes that are due, at most `limit`. The result is empty while findings lag
    /// behind the known objects.
    pub fn due(&mut self, now: Instant, limit: usize, time: &str) -> Vec<Write> {
        let mut writes = Vec::new();
        if self.checker.deadline(now).is_some() {
            return writes;
        }
        self.refresh_gateways();
        let mut done = Vec::new();
        for key in &self.dirty {
            if writes.len() >= limit {
                break;
            }
            let Some(known) = self.objects.get_mut(key) else {
                done.push(Arc::clone(key));
                continue;
            };
            let found: Vec<&Diagnostic> = self.found.get(key).into_iter().flatten().collect();
            let reported = self
                .followers
                .as_ref()
                .filter(|_| reports_count(known.id.kind));
            let reported = reported.map(|followers| known.programmed(followers));
            let status = match known.id.kind {
                Kind::Ingress => (self.ingresses.as_ref())
                    .and_then(|ingresses| ingresses.status(&known.id, &known.status)),
                kind if kind.is_gateway_api() => {
                    known.gateway_status(&self.gateways, reported.as_ref(), &found, time)
                }
                _ => known.conditions(reported, &found, time),
            };
            if status.is_some() && known.rests_until.is_some_and(|until| until > now) {
                continue;
            }
            done.push(Arc::clone(key));
            let Some(status) = status else {
                continue;
            };
            known.rests_until = Some(now + WRITE_PAUSE);
            writes.push(Write {
                key: Arc::clone(key),
                resource: known.resource,
                version: known.version,
                namespace: known.namespace.clone(),
                name: known.name.clone(),
                revision: known.revision.clone(),
                status,
            });
        }
        for key in done {
            self.dirty.remove(&key);
        }
        writes
    }

    /// Records the outcome of a write. A conflicting write arrives as a change instead.
    pub fn record_outcome(&mut self, key: Arc<str>, outcome: &Outcome, now: Instant) {
        let Some(known) = self.objects.get_mut(&key) else {
            return;
        };
        match outcome {
            Outcome::Done => {}
            Outcome::Failed => {
                known.rests_until = Some(now + RETRY_PAUSE);
                self.dirty.insert(key);
            }
            Outcome::NotKept => {
                let resource = known.resource;
                self.not_kept.insert(resource.qualified());
                let of_it = |key: &Arc<str>| {
                    let known = self.objects.get(key);
                    known.is_some_and(|known| std::ptr::eq(known.resource, resource))
                };
                self.dirty.retain(|key| !of_it(key));
            }
        }
    }

    /// Groups findings by object, and marks the objects whose findings have changed.
    fn regroup(&mut self) {
        let mut found: HashMap<Arc<str>, Vec<Diagnostic>> = HashMap::new();
        for one in self.checker.findings() {
            let of_object = found.entry(Arc::clone(&one.location.file)).or_default();
            of_object.push(one.clone());
        }
        let before = std::mem::replace(&mut self.found, found);
        let keys = before.keys().chain(self.found.keys());
        let differs = |key: &&Arc<str>| before.get(*key) != self.found.get(*key);
        let has = |key: &&Arc<str>| {
            let known = self.objects.get(*key);
            known.is_some_and(|known| self.writes(known.resource))
        };
        let keys: Vec<_> = keys.filter(differs).filter(has).cloned().collect();
        self.dirty.extend(keys);
    }

    /// Returns the state of an object and the text that is checked; `None` if the object is being deleted or is of an
    /// unknown kind.
    fn read(&mut self, mut object: Value) -> Option<(Known, String)> {
        if object::is_deleting(&object) {
            return None;
        }
        let api_version = object["apiVersion"].as_str()?;
        let (resource, version) = resources::of_kind(api_version, object["kind"].as_str()?)?;
        let kind = match resource.row {
            Some(row) => row.kind,
            None => (resource.kind == Kind::Namespace.as_str()).then_some(Kind::Namespace)?,
        };
        let text = |field| object::meta(&object, field).to_owned();
        let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
        let mut known = Known {
            id: ObjectRef::new(
                kind,
                namespace.as_deref().unwrap_or("default"),
                text("name"),
            ),
            resource,
            version,
            namespace,
            name: text("name"),
            revision: text("resourceVersion"),
            generation: object::metadata(&object)["generation"]
                .as_i64()
                .unwrap_or(0),
            status: object["status"].clone(),
            checked: 0,
            labels: json!({"metadata": {"labels": object::metadata(&object)["labels"]}}),
            changed: object::meta(&object, "resourceVersion")
                .parse()
                .unwrap_or(0),
            programmed: None,
            rests_until: None,
        };
        self.gateways_are_stale |= self.gateways.observe(&known.id, &object);
        content::strip(kind, Reader::StatusWriter, &mut object);
        let text = object.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        known.checked = hasher.finish();
        Some((known, text))
    }

    /// Computes the status of Ingresses and of the objects of the Gateway API if it may have changed, and marks those whose
    /// status has.
    fn refresh_gateways(&mut self) {
        if !std::mem::take(&mut self.gateways_are_stale) {
            return;
        }
        let set = Arc::clone(self.checker.set());
        let addresses = self.gateways.known_shared();
        let ingresses = self.ingresses.as_mut();
        if let Some(changed) = ingresses.map(|ingresses| ingresses.update(&set, addresses)) {
            let objects = self.objects.iter();
            let changed = objects
                .filter(|(_, known)| changed.contains(&known.id) && self.writes(known.resource));
            let changed: Vec<Arc<str>> = changed.map(|(key, _)| Arc::clone(key)).collect();
            self.dirty.extend(changed);
        }
        let gateways = self.objects.values();
        let gateways = gateways.filter(|known| known.id.kind == Kind::KubernetesGateway);
        let held = gateways.map(|known| (known.id.to_name(), held_addresses(&known.status)));
        let Some(before) = (self.gateways).compute(&set, &self.domain, held.collect()) else {
            return;
        };
        let objects = self.objects.iter();
        let ours = objects.filter(|(_, known)| {
            self.writes(known.resource) && before.get(&known.id) != self.gateways.get(&known.id)
        });
        let ours: Vec<Arc<str>> = ours.map(|(key, _)| Arc::clone(key)).collect();
        self.dirty.extend(ours);
    }

    fn writes(&self, resource: &Resource) -> bool {
        let is_ingress = resource.row.is_some_and(|row| row.kind == Kind::Ingress);
        (has_conditions(resource) || (is_ingress && self.ingresses.is_some()))
            && !self.not_kept.contains(&resource.qualified())
    }
}

impl Known {
    /// Carries over the state from before a change of the same object.
    fn continues(&mut self, before: Known) {
        self.rests_until = before.rests_until;
        if before.checked == self.checked {
            self.changed = before.changed;
            self.programmed = before.programmed;
        }
    }

    /// Returns the fields of the status with the conditions that follow from findings; `None` if nothing changes.
    fn conditions(
        &self,
        reported: Option<Condition>,
        found: &[&Diagnostic],
        time: &str,
    ) -> Option<Value> {
        let mut wanted = wanted(self.resource, found);
        wanted.extend(reported);
        let existing = self.status["conditions"].as_array();
        let existing = existing.map_or(&[][..], |conditions| conditions);
        let conditions = merged(existing, &wanted, self.generation, time)?;
        Some(json!({"conditions": conditions}))
    }

    /// Returns the fields of the status of an object of the Gateway API; `None` if nothing changes.
    fn gateway_status(
        &self,
        gateways: &GatewayStatuses,
        reported: Option<&Condition>,
        found: &[&Diagnostic],
        time: &str,
    ) -> Option<Value> {
        let status = gateways.reported(&self.id, found, reported);
        let merge = gateways.merge(self.generation, time);
        merge.status(&self.status, status.as_ref())
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            resource: self.resource,
            namespace: self.namespace.as_deref(),
            name: &self.name,
            labels: &self.labels,
            changed: self.changed,
        }
    }

    /// Returns the `Programmed` condition of the object, and remembers its identity.
    fn programmed(&mut self, followers: &Followers) -> Condition {
        let wanted = followers.programmed(self.subject());
        self.programmed = Some(identity(&wanted));
        wanted
    }
}

/// Whether the reports of proxies produce a condition of objects of a kind.
fn reports_count(kind: Kind) -> bool {
    kind != Kind::Ingress && (!kind.is_gateway_api() || kind == Kind::KubernetesGateway)
}

#[cfg(test)]
mod tests;
