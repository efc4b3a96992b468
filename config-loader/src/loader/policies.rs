//! Deletion of all security policies of a source at once, which is more often a mistake than meant.
//!
//! It is logged, and with `keeps_policies` the policies stay in effect for some time. A source that has policies of the kind
//! again by then has deleted the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Held, HeldPolicies, Loader};
use crate::kind::{Kind, ObjectRef};
use crate::resource::{AnyObject, ResourceSet};
use crate::store::Delta;

/// Time for which policies stay in effect.
const HELD: Duration = Duration::from_secs(60);

/// Name of the source of files.
const FILES: &str = "files";

impl Loader {
    /// Holds or logs the policies of the set `before` that are the last ones of their source, and releases those whose
    /// source has policies again.
    pub(super) fn changed_policies(&mut self, before: &ResourceSet, delta: &mut Delta) {
        let removed = delta.removed.iter().filter(|id| id.kind.is_security());
        let mut gone: BTreeMap<_, Vec<Arc<dyn AnyObject>>> = BTreeMap::new();
        for id in removed {
            for object in before.named(id.kind, &id.to_name()) {
                let source = self.source_of(&object.provenance().file);
                gone.entry((source, id.kind)).or_default().push(object);
            }
        }
        if gone.is_empty() && self.held.is_empty() {
            return;
        }
        let remaining = self.sources_with_policies();
        for (key, objects) in gone {
            if remaining.contains(&key) {
                continue;
            }
            let ((source, kind), count) = (&key, objects.len());
            if !self.keeps_policies {
                tracing::warn!(%source, %kind, count, "all policies of a source are deleted");
                continue;
            }
            tracing::warn!(%source, %kind, count, "all policies of a source are deleted: they stay in effect for 60 s");
            let ids: BTreeSet<&ObjectRef> = objects.iter().map(|object| object.id()).collect();
            delta.removed.retain(|id| !ids.contains(id));
            self.store.put_back(&objects);
            let until = Instant::now() + HELD;
            self.held.insert(key, HeldPolicies { objects, until });
        }
        let ready = |key: &(Arc<str>, Kind), _: &HeldPolicies| remaining.contains(key);
        delta.extend(self.release(ready));
    }

    /// Returns the time at which the next policies are released.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held.values().map(|held| held.until).min()
    }

    /// Deletes the policies that were held long enough.
    pub(super) fn release_due(&mut self, now: Instant) -> Delta {
        self.release(|_, held| held.until <= now)
    }

    fn release(&mut self, is_ready: impl Fn(&(Arc<str>, Kind), &HeldPolicies) -> bool) -> Delta {
        let mut delta = Delta::default();
        let held = std::mem::take(&mut self.held).into_iter();
        let (ready, held) = held.partition(|(key, held)| is_ready(key, held));
        self.held = held;
        let ready: Held = ready;
        for ((source, kind), held) in ready {
            let released = self.store.delete(&held.objects);
            let count = released.removed.len();
            tracing::warn!(%source, %kind, count, "policies of a source that has deleted them end");
            delta.extend(released);
        }
        delta
    }

    /// Returns the sources that have policies, with their kinds; held ones do not count.
    fn sources_with_policies(&self) -> BTreeSet<(Arc<str>, Kind)> {
        let mut found = BTreeSet::new();
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_security()) {
            self.store.set().each(kind, |object| {
                let mut held = self.held.values().flat_map(|held| &held.objects);
                if !held.any(|held| std::ptr::addr_eq(Arc::as_ptr(held), object)) {
                    found.insert((self.source_of(&object.provenance().file), kind));
                }
            });
        }
        found
    }

    /// Returns the name of the source that a document comes from.
    fn source_of(&self, document: &Arc<str>) -> Arc<str> {
        let is_of = |source: &&Arc<str>| {
            let rest = document.strip_prefix(&***source);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let source = self.revisions.keys().find(is_of);
        source.cloned().unwrap_or_else(|| FILES.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{FileEvent, Look, Received, SourceRevision};

    fn policy(name: &str) -> String {
        format!(
            "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {{name: {name}}}\nspec: {{rules: [{{}}]}}\n"
        )
    }

    /// Changes files; a file without policies is deleted.
    fn write(loader: &mut Loader, files: &[(&str, &[&str])]) {
        let events = files.iter().map(|(file, names)| {
            let policies: Vec<String> = names.iter().map(|name| policy(name)).collect();
            let event = match names {
                [] => FileEvent::Gone,
                _ => FileEvent::Bytes(policies.join("---\n").into_bytes()),
            };
            (Arc::from(*file), event)
        });
        let revision = SourceRevision {
            source: "server".into(),
            revision: None,
            received: Received::now(),
            restored: None,
        };
        loader.absorb(Look {
            events: events.collect(),
            revisions: vec![revision],
            ..Look::default()
        });
    }

    fn names(loader: &Loader) -> Vec<&str> {
        let policies = loader.store.set().authorization_policies.values();
        policies.map(|policy| &*policy.id.name).collect()
    }

    fn keeping() -> Loader {
        Loader {
            keeps_policies: true,
            ..Loader::default()
        }
    }

    #[test]
    fn policies_of_a_source_that_has_deleted_all_stay_for_a_minute() {
        let mut loader = keeping();
        write(
            &mut loader,
            &[("a", &["one", "two"]), ("server/b", &["own"])],
        );
        write(&mut loader, &[("a", &[])]);
        assert_eq!(names(&loader), ["one", "own", "two"]);
        let began = Instant::now();
        let due = loader.held_until().unwrap();
        assert!(due <= began + HELD && due > began + HELD / 2);
        assert!(
            loader
                .release_due(due - Duration::from_millis(1))
                .is_empty()
        );
        let released = loader.release_due(due);
        assert_eq!(released.removed.len(), 2);
        assert_eq!(names(&loader), ["own"]);
        assert_eq!(loader.held_until(), None);

        write(&mut loader, &[("server/b", &[])]);
        assert_eq!(names(&loader), ["own"], "each server is a source");
    }

    #[test]
    fn other_policies_of_the_source_release_those_it_has_deleted() {
        let mut loader = keeping();
        write(&mut loader, &[("a", &["one", "two"])]);
        write(&mut loader, &[("a", &["one"])]);
        assert_eq!(names(&loader), ["one"], "the source has another one");
        write(&mut loader, &[("a", &[])]);
        assert_eq!(names(&loader), ["one"]);
        write(&mut loader, &[("b", &["three"])]);
        assert_eq!(names(&loader), ["three"]);
        write(&mut loader, &[("b", &[])]);
        write(&mut loader, &[("b", &["three"])]);
        assert_eq!(loader.held_until(), None, "it is back");
        assert_eq!(names(&loader), ["three"]);
    }

    #[test]
    fn without_the_setting_policies_end_at_once() {
        let mut loader = Loader::default();
        write(&mut loader, &[("a", &["one"])]);
        write(&mut loader, &[("a", &[])]);
        assert_eq!(names(&loader), [""; 0]);
    }
}
