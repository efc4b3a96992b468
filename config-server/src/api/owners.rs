//! Index from owners to dependents: a delete finds them without a scan of the whole store.
//!
//! The first delete builds the index, which follows the history from then on.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::status::Failure;
use crate::store::pages::Pages;
use crate::store::{History, Revision, Store, StoreError};

/// Number of objects per scan.
const CHUNK: usize = 500;
/// Maximum number of index builds during one delete. A build is lost if the history moves past it.
const BUILDS_MAX: usize = 50;
/// Maximum time that a delete waits for the history to contain every earlier change.
const WAIT_FOR_HISTORY: Duration = Duration::from_secs(3);

/// Index of dependents by owner.
#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Revision of the index; `None` before the index is built.
    at: Option<Revision>,
    /// Keys of the dependents of each owner, by UID of the owner.
    dependents: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// UIDs of the owners of each object, by key of the object.
    owners: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl Known {
    fn set(&mut self, key: &Arc<str>, value: Option<&Bytes>) {
        for owner in self.owners.remove(key).unwrap_or_default() {
            if let Some(keys) = self.dependents.get_mut(&owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(&owner);
                }
            }
        }
        let owners = value.map_or_else(Vec::new, owners_in);
        for owner in &owners {
            let keys = self.dependents.entry(Arc::clone(owner)).or_default();
            keys.insert(Arc::clone(key));
        }
        if !owners.is_empty() {
            self.owners.insert(Arc::clone(key), owners);
        }
    }

    /// Applies all changes since the revision of the index. Returns false if the history no longer has them.
    fn follow(&mut self, history: &History) -> bool {
        while let Some(at) = self.at {
            let Ok(events) = history.since(at, CHUNK) else {
                *self = Known::default();
                return false;
            };
            for event in &events {
                self.set(&event.key, event.value.as_ref());
                self.at = Some(event.revision);
            }
            if events.len() < CHUNK {
                return true;
            }
        }
        false
    }
}

/// Whether a stored object may have owners, by a text search that avoids decoding: few objects have owners.
pub(super) fn names_owners(value: &Bytes) -> bool {
    const FIELD: &[u8] = b"\"ownerReferences\"";
    value.windows(FIELD.len()).any(|window| window == FIELD)
}

/// Returns the UIDs of the owners of a stored object.
fn owners_in(value: &Bytes) -> Vec<Arc<str>> {
    if !names_owners(value) {
        return Vec::new();
    }
    let object: Value = serde_json::from_slice(value).unwrap_or_default();
    let owners = object["metadata"]["ownerReferences"].as_array();
    let uids = owners.into_iter().flatten();
    uids.filter_map(|owner| owner["uid"].as_str().map(Arc::from))
        .collect()
}

impl Owners {
    /// Returns the keys of the dependents of the owner with that UID, at that revision or a later one.
    pub(super) async fn dependents(
        &self,
        store: &dyn Store,
        uid: &str,
        revision: Revision,
    ) -> Result<Vec<Arc<str>>, Failure> {
        let history = store.history();
        let mut latest = history.subscribe();
        let reached = latest.wait_for(|latest| *latest >= revision);
        // After the timeout, dependents that another replica has just written may remain.
        let _ = tokio::time::timeout(WAIT_FOR_HISTORY, reached).await;
        for _ in 0..BUILDS_MAX {
            {
                let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if known.follow(history) {
                    let keys = known.dependents.get(uid);
                    return Ok(keys.map_or_else(Vec::new, |keys| keys.iter().cloned().collect()));
                }
            }
            let built = read_owners(store).await?;
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = built;
        }
        Err(StoreError::Compacted.into())
    }
}

/// Builds the index from the store. The history has the changes that happen during the scan.
async fn read_owners(store: &dyn Store) -> Result<Known, Failure> {
    // Read before the scan: changes during the scan are read from the history.
    let mut known = Known {
        at: Some(store.history().latest()),
        ..Known::default()
    };
    let mut pages = Pages::of(store, CHUNK);
    while let Some(entries) = pages.next().await? {
        for entry in &entries {
            known.set(&entry.key, Some(&entry.value));
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Event;
    use crate::store::history::HistoryLimits;

    fn event(revision: Revision, key: &str, owner: Option<&str>) -> Event {
        let value = owner.map(|uid| {
            let object = serde_json::json!({"metadata": {"ownerReferences": [{"uid": uid}]}});
            Bytes::from(object.to_string())
        });
        Event {
            key: Arc::from(key),
            revision,
            value,
            previous: None,
        }
    }

    #[test]
    fn index_follows_the_history() {
        let limits = HistoryLimits {
            events: 3,
            bytes: 10_000,
        };
        let history = History::new(limits, 0);
        let mut known = Known {
            at: Some(0),
            ..Known::default()
        };
        let keys = |known: &Known, uid: &str| -> Vec<String> {
            let keys = known.dependents.get(uid);
            keys.into_iter()
                .flatten()
                .map(ToString::to_string)
                .collect()
        };
        history.push(vec![event(1, "a", Some("x")), event(2, "b", Some("x"))], 2);
        assert!(known.follow(&history));
        assert_eq!(keys(&known, "x"), ["a", "b"]);
        history.push(vec![event(3, "a", Some("y")), event(4, "b", None)], 4);
        assert!(known.follow(&history));
        assert_eq!(
            (keys(&known, "x"), keys(&known, "y")),
            (vec![], vec!["a".to_owned()])
        );
        assert!(!known.dependents.contains_key("x"));
        history.push((5..10).map(|at| event(at, "c", Some("z"))).collect(), 9);
        assert!(
            !known.follow(&history),
            "the index is built again when changes are missing"
        );
        assert_eq!(known.at, None);
    }
}
