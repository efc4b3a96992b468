//! Objects of the mirror, with their recent changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::store::history::HistoryLimits;
use crate::store::{Entry, Event, History, Page, Revision, Scan, StoreError};

/// Value, and the revision of the change that set it.
type Versioned = (Revision, Bytes);

/// Objects by key, with their recent changes.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) history: History,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    latest: Revision,
    entries: BTreeMap<Arc<str>, Versioned>,
    /// Key, and the entry before, of each change in the history.
    log: BTreeMap<Revision, (Arc<str>, Option<Versioned>)>,
}

impl Objects {
    /// Returns no objects, at the revision `start`.
    pub(super) fn new(limits: HistoryLimits, start: Revision) -> Objects {
        Objects {
            history: History::new(limits, start),
            kept: Mutex::new(Kept {
                latest: start,
                entries: BTreeMap::new(),
                log: BTreeMap::new(),
            }),
        }
    }

    /// Applies new values by key; `None` for a deleted object. Values that are there already are no change.
    pub(super) fn apply(&self, changes: impl IntoIterator<Item = (Arc<str>, Option<Bytes>)>) {
        let mut kept = self.lock();
        let mut events = Vec::new();
        for (key, value) in changes {
            let before = kept.entries.get(&key).cloned();
            let previous = before.as_ref().map(|(_, value)| value.clone());
            if previous == value {
                continue;
            }
            kept.latest += 1;
            let revision = kept.latest;
            match &value {
                Some(value) => {
                    let entry = (revision, value.clone());
                    kept.entries.insert(Arc::clone(&key), entry)
                }
                None => kept.entries.remove(&key),
            };
            kept.log.insert(revision, (Arc::clone(&key), before));
            events.push(Event {
                key,
                revision,
                value,
                previous,
            });
        }
        if !events.is_empty() {
            self.history.push(events, kept.latest);
            kept.log = kept.log.split_off(&(self.history.floor() + 1));
        }
    }

    /// Replaces the objects with a prefix of keys by others.
    pub(super) fn replace(&self, prefix: &str, values: BTreeMap<Arc<str>, Bytes>) {
        let kept = self.lock();
        let known = kept.entries.range::<str, _>(from(prefix, None));
        let known = known.take_while(|(key, _)| key.starts_with(prefix));
        let gone = known.filter(|(key, _)| !values.contains_key(*key));
        let gone: Vec<_> = gone.map(|(key, _)| (Arc::clone(key), None)).collect();
        drop(kept);
        let values = values.into_iter().map(|(key, value)| (key, Some(value)));
        self.apply(gone.into_iter().chain(values));
    }

    /// Returns the entry of a key, and the latest revision.
    pub(super) fn get(&self, key: &str) -> (Option<Entry>, Revision) {
        let kept = self.lock();
        let found = kept.entries.get_key_value(key);
        (found.map(entry), kept.latest)
    }

    /// Returns entries by prefix.
    ///
    /// # Errors
    /// If the revision of the scan is below the history, or in the future.
    pub(super) fn scan(&self, scan: &Scan) -> Result<Page, StoreError> {
        let kept = self.lock();
        let current = kept.latest;
        let revision = scan.at.unwrap_or(current);
        if revision > current {
            return Err(StoreError::Future { current });
        }
        if revision < current && revision < self.history.floor() {
            return Err(StoreError::Compacted);
        }
        let range = from(&scan.prefix, scan.after.as_deref());
        let is_in = |key: &str| {
            key.starts_with(&scan.prefix) && scan.after.as_deref().is_none_or(|after| key > after)
        };
        let rows = kept.entries.range::<str, _>(range);
        let rows = rows.take_while(|(key, _)| key.starts_with(&scan.prefix));
        let mut page = Page {
            revision,
            ..Page::default()
        };
        let limit = scan.limit.unwrap_or(usize::MAX);
        let mut add = |row| match page.entries.len() < limit {
            true => page.entries.push(entry(row)),
            false => page.remaining += 1,
        };
        if revision == current {
            rows.for_each(add);
        } else {
            let mut state: BTreeMap<&Arc<str>, &Versioned> = rows.collect();
            for (key, before) in kept.log.range(revision + 1..).rev().map(|(_, one)| one) {
                match before {
                    _ if !is_in(key) => {}
                    Some(before) => _ = state.insert(key, before),
                    None => _ = state.remove(key),
                }
            }
            state.into_iter().for_each(&mut add);
        }
        Ok(page)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry((key, (revision, value)): (&Arc<str>, &Versioned)) -> Entry {
    Entry {
        key: Arc::clone(key),
        revision: *revision,
        value: value.clone(),
    }
}

/// Returns the range of the keys from a prefix on, after a key of it.
fn from<'a>(prefix: &'a str, after: Option<&'a str>) -> (Bound<&'a str>, Bound<&'a str>) {
    let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
    (start, Bound::Unbounded)
}
