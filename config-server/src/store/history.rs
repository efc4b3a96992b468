//! Recent changes, in memory, which serve every watch.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::event::{Event, Revision, StoreError};

/// Limits of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Maximum number of changes.
    pub events: usize,
    /// Maximum size of keys and values, in bytes.
    pub bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> HistoryLimits {
        HistoryLimits {
            events: 20_000,
            bytes: 128 << 20,
        }
    }
}

/// Recent changes of a store.
#[derive(Debug)]
pub struct History {
    limits: HistoryLimits,
    kept: Mutex<Kept>,
    latest: watch::Sender<Revision>,
}

#[derive(Debug)]
struct Kept {
    /// Floor: every change after this revision is in the history.
    floor: Revision,
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Same changes by resource, so that a watch neither reads nor wakes up for changes of other resources.
    resources: HashMap<Box<str>, OfResource>,
}

/// Recent changes of one resource.
#[derive(Debug)]
struct OfResource {
    /// Floor of the resource: every change of it after this revision is in the history.
    floor: Revision,
    events: VecDeque<Arc<Event>>,
    latest: watch::Sender<Revision>,
}

impl OfResource {
    fn new(floor: Revision) -> OfResource {
        OfResource {
            floor,
            events: VecDeque::new(),
            latest: watch::Sender::new(floor),
        }
    }
}

/// Returns the prefix of the keys of an object's resource: `/group/plural/`.
fn resource_of(key: &str) -> &str {
    let slashes = key.match_indices('/').nth(2);
    slashes.map_or(key, |(at, _)| &key[..=at])
}

impl Kept {
    fn of(&mut self, prefix: &str) -> &mut OfResource {
        let name = resource_of(prefix);
        if !self.resources.contains_key(name) {
            let new = OfResource::new(self.floor);
            self.resources.insert(name.into(), new);
        }
        let known = self.resources.get_mut(name);
        known.expect("it was inserted if it was absent")
    }
}

impl History {
    /// Returns an empty history whose floor is `latest`.
    pub fn new(limits: HistoryLimits, latest: Revision) -> History {
        History {
            limits,
            kept: Mutex::new(Kept {
                floor: latest,
                events: VecDeque::new(),
                bytes: 0,
                resources: HashMap::new(),
            }),
            latest: watch::Sender::new(latest),
        }
    }

    /// Returns a history with stored changes, all of which are after `floor`.
    pub fn with_events(
        limits: HistoryLimits,
        floor: Revision,
        latest: Revision,
        events: Vec<Event>,
    ) -> History {
        let history = History::new(limits, floor);
        history.push(events, latest);
        history
    }

    /// Returns the floor of the history once `events` are added.
    pub fn floor_with(&self, events: &[Event]) -> Revision {
        let kept = self.lock();
        let mut count = kept.events.len() + events.len();
        let mut bytes = kept.bytes + events.iter().map(Event::size).sum::<usize>();
        let mut floor = kept.floor;
        let known = kept.events.iter().map(|event| &**event).chain(events);
        for event in known {
            if count <= self.limits.events && bytes <= self.limits.bytes {
                break;
            }
            count -= 1;
            bytes -= event.size();
            floor = event.revision;
        }
        floor
    }

    /// Adds changes, drops the oldest ones beyond the limits, and wakes watches.
    pub fn push(&self, events: Vec<Event>, latest: Revision) {
        let floor = self.floor_with(&events);
        let mut kept = self.lock();
        let mut changed: Vec<Arc<Event>> = Vec::with_capacity(events.len());
        for event in events {
            let event = Arc::new(event);
            kept.bytes += event.size();
            kept.events.push_back(Arc::clone(&event));
            kept.of(&event.key).events.push_back(Arc::clone(&event));
            changed.push(event);
        }
        while kept.events.front().is_some_and(|e| e.revision <= floor) {
            if let Some(dropped) = kept.events.pop_front() {
                kept.bytes -= dropped.size();
                let resource = kept.of(&dropped.key);
                resource.events.pop_front();
                resource.floor = dropped.revision;
            }
        }
        kept.floor = floor;
        for event in &changed {
            kept.of(&event.key).latest.send_replace(event.revision);
        }
        drop(kept);
        self.latest.send_if_modified(|known| {
            let is_newer = latest > *known;
            *known = latest.max(*known);
            is_newer
        });
    }

    /// Drops all changes, because some were missed.
    pub fn forget(&self, latest: Revision) {
        let mut kept = self.lock();
        kept.events.clear();
        kept.bytes = 0;
        kept.floor = latest;
        for resource in kept.resources.values_mut() {
            resource.events.clear();
            resource.floor = latest;
            resource.latest.send_replace(latest);
        }
        drop(kept);
        self.latest.send_replace(latest);
    }

    /// Returns at most `limit` changes after `revision`, in order.
    ///
    /// # Errors
    /// If `revision` is below the floor.
    pub fn since(&self, revision: Revision, limit: usize) -> Result<Vec<Arc<Event>>, StoreError> {
        let kept = self.lock();
        if revision < kept.floor {
            return Err(StoreError::Compacted);
        }
        let start = kept.events.partition_point(|e| e.revision <= revision);
        Ok(kept.events.range(start..).take(limit).cloned().collect())
    }

    /// Returns at most `limit` changes after `revision` of keys with this prefix, which must be of one resource.
    ///
    /// # Errors
    /// If `revision` is below the floor of the resource.
    pub fn since_in(
        &self,
        prefix: &str,
        revision: Revision,
        limit: usize,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        let mut kept = self.lock();
        let resource = kept.of(prefix);
        if revision < resource.floor {
            return Err(StoreError::Compacted);
        }
        let start = resource.events.partition_point(|e| e.revision <= revision);
        Ok(resource
            .events
            .range(start..)
            .take(limit)
            .cloned()
            .collect())
    }

    /// Returns a receiver that wakes at changes of the resource with this key prefix.
    pub fn subscribe_to(&self, prefix: &str) -> watch::Receiver<Revision> {
        self.lock().of(prefix).latest.subscribe()
    }

    /// Returns the latest revision in the history.
    pub fn latest(&self) -> Revision {
        *self.latest.borrow()
    }

    /// Returns the floor: every change after this revision is in the history.
    pub fn floor(&self) -> Revision {
        self.lock().floor
    }

    /// Returns a receiver of the latest revision.
    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.latest.subscribe()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(revision: Revision) -> Event {
        Event {
            key: Arc::from("k"),
            revision,
            value: None,
            previous: None,
        }
    }

    #[test]
    fn oldest_changes_are_dropped_first() {
        let limits = HistoryLimits {
            events: 3,
            bytes: 100,
        };
        let history = History::new(limits, 10);
        history.push((11..=15).map(event).collect(), 15);
        assert_eq!(history.floor(), 12);
        assert_eq!(history.since(11, 9), Err(StoreError::Compacted));
        let revisions = |after| {
            let events = history.since(after, 9).unwrap();
            events.iter().map(|e| e.revision).collect::<Vec<_>>()
        };
        assert_eq!(revisions(12), [13, 14, 15]);
        assert_eq!(revisions(14), [15]);
        assert!(revisions(15).is_empty());
        assert_eq!(history.latest(), 15);
    }

    #[test]
    fn changes_of_other_resources_neither_wake_nor_expire_a_watch() {
        let limits = HistoryLimits {
            events: 3,
            bytes: 1000,
        };
        let history = History::new(limits, 10);
        let of = |revision, key: &str| Event {
            key: Arc::from(key),
            ..event(revision)
        };
        history.push(vec![of(11, "/core/services/a/b")], 11);
        let quiet = history.subscribe_to("/core/services/a/");
        history.push((12..20).map(|at| of(at, "/core/secrets/a/b")).collect(), 19);
        assert!(!quiet.has_changed().unwrap());
        assert_eq!(history.since_in("/core/services/", 11, 9), Ok(vec![]));
        let lost = Err(StoreError::Compacted);
        assert_eq!(
            history.since_in("/core/services/", 10, 9),
            lost,
            "11 was dropped"
        );
        assert_eq!(history.since_in("/core/secrets/", 15, 9), lost);
        let secrets = history.since_in("/core/secrets/", 17, 9).unwrap();
        assert_eq!(secrets.len(), 2);
        // Changes of a resource may have been dropped before its first watch.
        assert_eq!(history.since_in("/x/y/", 11, 9), Err(StoreError::Compacted));
        assert_eq!(history.since_in("/x/y/", history.floor(), 9), Ok(vec![]));
        history.forget(30);
        assert!(quiet.has_changed().unwrap());
        assert_eq!(
            history.since_in("/core/services/", 29, 9),
            Err(StoreError::Compacted)
        );
    }
}
