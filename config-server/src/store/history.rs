//! The changes of late, in memory, from which every watch is served.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::{Event, Revision, StoreError};

/// How much history is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// At most so many changes.
    pub events: usize,
    /// At most so many bytes of keys and values.
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

/// The changes of late.
#[derive(Debug)]
pub struct History {
    limits: HistoryLimits,
    kept: Mutex<Kept>,
    latest: watch::Sender<Revision>,
}

#[derive(Debug)]
struct Kept {
    /// Every change after this revision is kept.
    floor: Revision,
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

impl History {
    /// A history without changes: none after `latest` is known yet.
    pub fn new(limits: HistoryLimits, latest: Revision) -> History {
        History {
            limits,
            kept: Mutex::new(Kept {
                floor: latest,
                events: VecDeque::new(),
                bytes: 0,
            }),
            latest: watch::Sender::new(latest),
        }
    }

    /// A history with the changes that a store kept; all of them are after `floor`.
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

    /// The revision up to which changes are dropped once `events` are added.
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

    /// Adds changes, drops what is too much, and wakes watches.
    pub fn push(&self, events: Vec<Event>, latest: Revision) {
        let floor = self.floor_with(&events);
        let mut kept = self.lock();
        for event in events {
            kept.bytes += event.size();
            kept.events.push_back(Arc::new(event));
        }
        while kept.events.front().is_some_and(|e| e.revision <= floor) {
            let dropped = kept.events.pop_front();
            kept.bytes -= dropped.map_or(0, |event| event.size());
        }
        kept.floor = floor;
        drop(kept);
        self.latest.send_if_modified(|known| {
            let is_newer = latest > *known;
            *known = latest.max(*known);
            is_newer
        });
    }

    /// Drops everything: there were changes that are not known.
    pub fn forget(&self, latest: Revision) {
        let mut kept = self.lock();
        kept.events.clear();
        kept.bytes = 0;
        kept.floor = latest;
        drop(kept);
        self.latest.send_replace(latest);
    }

    /// At most `limit` changes after `revision`, in order.
    ///
    /// # Errors
    /// If some of them are no longer kept.
    pub fn since(&self, revision: Revision, limit: usize) -> Result<Vec<Arc<Event>>, StoreError> {
        let kept = self.lock();
        if revision < kept.floor {
            return Err(StoreError::Compacted);
        }
        let start = kept.events.partition_point(|e| e.revision <= revision);
        Ok(kept.events.range(start..).take(limit).cloned().collect())
    }

    /// The latest revision whose change is here.
    pub fn latest(&self) -> Revision {
        *self.latest.borrow()
    }

    /// Every change after this revision is kept.
    pub fn floor(&self) -> Revision {
        self.lock().floor
    }

    /// Tells of newer revisions.
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
}
