//! Objects of a server with their findings, and the objects whose conditions have to be written.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use config_loader::source::content::{self, Reader};
use config_loader::{Checker, Diagnostic, Fleet, ReadOptions};
use serde_json::{Value, json};

use super::merge::merged;
use super::programmed::{Followers, Subject, identity};
use super::wanted::{Wanted, has_conditions, wanted};
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
    resource: &'static Resource,
    version: &'static str,
    namespace: Option<String>,
    name: String,
    revision: String,
    generation: i64,
    conditions: Vec<Value>,
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
    /// Returns an engine without objects. Findings are those of a proxy in this fleet.
    pub fn new(fleet: Fleet) -> Engine {
        Engine {
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
            let read = object.and_then(read);
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
        if !texts.is_empty() && self.checker.change(texts) {
            self.regroup();
        }
    }

    /// Replaces the proxy reports, and marks the objects whose `Programmed` condition they change.
    pub fn set_followers(&mut self, followers: Followers) {
        let objects = self.objects.iter();
        let differ = objects.filter(|(_, known)| {
            let is_written = has_conditions(known.resource)
                && !self.not_kept.contains(&known.resource.qualified());
            is_written && known.programmed != Some(identity(&followers.programmed(known.subject())))
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
            let mut wanted = wanted(known.resource, &found);
            let followers = self.followers.as_ref();
            wanted.extend(followers.map(|followers| known.programmed(followers)));
            let conditions = merged(&known.conditions, &wanted, known.generation, time);
            if conditions.is_some() && known.rests_until.is_some_and(|until| until > now) {
                continue;
            }
            done.push(Arc::clone(key));
            let Some(conditions) = conditions else {
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
                conditions,
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

    fn writes(&self, resource: &Resource) -> bool {
        has_conditions(resource) && !self.not_kept.contains(&resource.qualified())
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
    fn programmed(&mut self, followers: &Followers) -> Wanted {
        let wanted = followers.programmed(self.subject());
        self.programmed = Some(identity(&wanted));
        wanted
    }
}

/// Returns the state of an object and the text that is checked; `None` if the object is being deleted or is of an
/// unknown kind.
fn read(mut object: Value) -> Option<(Known, String)> {
    if object::is_deleting(&object) {
        return None;
    }
    let api_version = object["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str()?;
    let named = |resource: &&Resource| resource.group == group && resource.kind == kind;
    let resource = resources::all().iter().find(named)?;
    let version = *resource.versions.iter().find(|known| **known == version)?;
    let row = resource.row?;
    let conditions = object["status"]["conditions"].as_array().cloned();
    let text = |field| object::meta(&object, field).to_owned();
    let mut known = Known {
        resource,
        version,
        namespace: Some(text("namespace")).filter(|namespace| !namespace.is_empty()),
        name: text("name"),
        revision: text("resourceVersion"),
        generation: object::metadata(&object)["generation"]
            .as_i64()
            .unwrap_or(0),
        conditions: conditions.unwrap_or_default(),
        checked: 0,
        labels: json!({"metadata": {"labels": object::metadata(&object)["labels"]}}),
        changed: object::meta(&object, "resourceVersion")
            .parse()
            .unwrap_or(0),
        programmed: None,
        rests_until: None,
    };
    content::strip(row.kind, Reader::StatusWriter, &mut object);
    let text = object.to_string();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    known.checked = hasher.finish();
    Some((known, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxies::{Proxies, Report};

    fn route() -> Value {
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
            "metadata": {"name": "shop", "namespace": "a", "generation": 3, "resourceVersion": "7"},
            "spec": {"hosts": ["shop.example"], "http": [{"route": [{"destination": {"host": "shop"}}]}]},
        })
    }

    fn service() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop", "namespace": "a"},
            "spec": {"ports": [{"port": 80}]},
        })
    }

    /// Returns the writes after a change, once no object has to wait.
    fn change(
        engine: &mut Engine,
        key: &str,
        object: Option<Value>,
        now: &mut Instant,
    ) -> Vec<Write> {
        engine.take_in(vec![(Arc::from(key), object)]);
        *now += Duration::from_secs(60);
        engine.refresh_findings(*now);
        engine.due(*now, 10, "t1")
    }

    #[test]
    fn conditions_follow_other_objects_and_end() {
        let (mut engine, mut now) = (Engine::new(Fleet::default()), Instant::now());
        let writes = change(&mut engine, "vs", Some(route()), &mut now);
        let [write] = &*writes else {
            panic!("{writes:?}")
        };
        assert_eq!((&*write.name, &*write.revision), ("shop", "7"));
        assert_eq!(write.conditions[0]["reason"], "X275");
        assert_eq!(write.conditions[0]["observedGeneration"], 3);
        assert_eq!(engine.deadline(now), None);

        let mut written = route();
        written["metadata"]["resourceVersion"] = json!("8");
        written["status"] = json!({"conditions": write.conditions});
        let again = change(&mut engine, "vs", Some(written), &mut now);
        assert!(again.is_empty(), "{again:?}");

        let writes = change(&mut engine, "svc", Some(service()), &mut now);
        let [write] = &*writes else {
            panic!("{writes:?}")
        };
        assert_eq!(write.conditions[0]["reason"], "Accepted");
        assert_eq!(&*write.revision, "8");
        assert!(change(&mut engine, "vs", None, &mut now).is_empty());
        assert_eq!(engine.deadline(now), None);
    }

    /// Returns the reports of proxies that have these revisions in effect.
    fn followers(revisions: &[&str]) -> Followers {
        let table = Proxies::default();
        for (number, revision) in revisions.iter().enumerate() {
            let mut report = Report {
                name: format!("p{number}"),
                ..Report::default()
            };
            report.status.revision = Some((*revision).to_owned());
            table.report(report, Instant::now()).unwrap();
        }
        Followers::new(table.list(None))
    }

    #[test]
    fn what_proxies_report_is_written_once() {
        let (mut engine, mut now) = (Engine::new(Fleet::default()), Instant::now());
        engine.set_followers(followers(&["6"]));
        let writes = change(&mut engine, "vs", Some(route()), &mut now);
        assert_eq!(writes[0].conditions[1]["type"], "Programmed");
        assert_eq!(writes[0].conditions[1]["status"], "False");
        let mut written = route();
        written["metadata"]["resourceVersion"] = json!("8");
        written["status"] = json!({"conditions": writes[0].conditions});
        assert!(change(&mut engine, "vs", Some(written.clone()), &mut now).is_empty());

        // The status write raises the revision of the object, which the proxy has not read yet.
        engine.set_followers(followers(&["7"]));
        now += Duration::from_secs(60);
        let writes = engine.due(now, 10, "t2");
        assert_eq!(writes[0].conditions[1]["status"], "True");
        assert_eq!(writes[0].conditions[1]["message"], "1 of 1 proxies");
        written["metadata"]["resourceVersion"] = json!("9");
        written["status"] = json!({"conditions": writes[0].conditions});
        assert!(change(&mut engine, "vs", Some(written.clone()), &mut now).is_empty());
        for more in [&["8"][..], &["9", "9"], &["9", "7", "7"]] {
            engine.set_followers(followers(more));
            assert_eq!(engine.deadline(now), None, "{more:?} changes nothing");
        }

        engine.set_followers(followers(&[]));
        assert_eq!(
            engine.due(now, 10, "t3")[0].conditions[1]["status"],
            "Unknown"
        );
        written["spec"]["hosts"] = json!(["other.example"]);
        written["metadata"]["resourceVersion"] = json!("12");
        written["metadata"]["generation"] = json!(4);
        engine.set_followers(followers(&["11"]));
        let writes = change(&mut engine, "vs", Some(written), &mut now);
        assert_eq!(writes[0].conditions[1]["reason"], "Pending");
        assert_eq!(writes[0].conditions[1]["observedGeneration"], 4);
    }

    #[test]
    fn object_rests_between_writes() {
        let (mut engine, mut now) = (Engine::new(Fleet::default()), Instant::now());
        assert_eq!(change(&mut engine, "vs", Some(route()), &mut now).len(), 1);
        let mut wiped = route();
        wiped["metadata"]["resourceVersion"] = json!("9");
        engine.take_in(vec![("vs".into(), Some(wiped))]);
        assert!(engine.due(now, 10, "t2").is_empty());
        assert_eq!(engine.deadline(now), Some(now + WRITE_PAUSE));
        let writes = engine.due(now + WRITE_PAUSE, 10, "t2");
        assert_eq!(writes.len(), 1);
        engine.record_outcome("vs".into(), &Outcome::Failed, now);
        assert_eq!(engine.deadline(now), Some(now + RETRY_PAUSE));
    }
}
