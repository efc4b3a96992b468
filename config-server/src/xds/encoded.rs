//! Cache of encoded resources, shared by all streams that send the same version of an object.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use config_loader::source::content;
use config_loader::xds::{ResourceType, resource_of};

use super::form::Sent;
use crate::api::route::Target;
use crate::object;
use crate::proxies;
use crate::store::{Event, Revision};

/// Maximum size of the cache, in bytes of objects and resources. The least recently used entries are dropped first.
const BYTES_MAX: usize = 64 << 20;

/// Number of recent writes for which the cache records whether they have an effect.
const EFFECTS_MAX: usize = 4_096;

/// Approximate overhead of an entry, in bytes.
const ENTRY_BYTES: usize = 256;

/// Cache of recently sent resources.
#[derive(Debug, Default)]
pub(super) struct Encoded(Mutex<Kept>);

/// Cache contents in two generations: entries in use move to the recent one. The older one is dropped when the recent
/// one reaches half of the limit.
#[derive(Debug, Default)]
struct Kept {
    recent: HashMap<String, Entry>,
    recent_bytes: usize,
    older: HashMap<String, Entry>,
    /// Whether a write has an effect, by revision.
    effects: BTreeMap<Revision, bool>,
}

/// Object as the store has it.
pub(super) struct Stored<'a> {
    pub(super) key: &'a str,
    pub(super) revision: Revision,
    pub(super) value: &'a Bytes,
}

#[derive(Clone, Debug)]
struct Entry {
    revision: Revision,
    /// Value of the object. After a restore of the store, another object may have the same revision.
    value: Bytes,
    sent: Option<Arc<Sent>>,
}

impl Entry {
    /// Memory of the entry, in bytes.
    fn size(&self) -> usize {
        let sent = self.sent.as_ref();
        let sent = sent.map_or(0, |sent| sent.resource.value.len() + sent.name.len());
        ENTRY_BYTES + self.value.len() + sent
    }
}

impl Encoded {
    /// Returns the resource to send for an object; `None` if the object is being deleted or cannot be encoded.
    pub(super) fn of(
        &self,
        of: &ResourceType,
        target: &Target,
        stored: Stored<'_>,
    ) -> Option<Arc<Sent>> {
        let Stored {
            key,
            revision,
            value,
        } = stored;
        let id = format!("{} {key}", of.url);
        if let Some(known) = self.get(&id)
            && known.revision == revision
            && known.value == *value
        {
            return known.sent;
        }
        let object = object::decode(value, revision, target.resource, target.version);
        let sent = encode(of, &object).map(Arc::new);
        self.put(
            id,
            Entry {
                revision,
                value: value.clone(),
                sent: sent.clone(),
            },
        );
        sent
    }

    /// Whether a write changes the resource of an object. Condition updates do not.
    pub(super) fn has_effect(&self, event: &Event, of: &ResourceType) -> bool {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().effects.get(&event.revision) {
            return *known;
        }
        let has_effect = proxies::has_effect(event, of.kind());
        let effects = &mut lock().effects;
        effects.insert(event.revision, has_effect);
        if effects.len() > EFFECTS_MAX {
            effects.pop_first();
        }
        has_effect
    }

    fn get(&self, id: &str) -> Option<Entry> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.recent.get(id) {
            return Some(entry.clone());
        }
        let (id, entry) = kept.older.remove_entry(id)?;
        kept.put(id, entry.clone());
        Some(entry)
    }

    fn put(&self, id: String, entry: Entry) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put(id, entry);
    }
}

impl Kept {
    fn put(&mut self, id: String, entry: Entry) {
        self.older.remove(&id);
        self.recent_bytes += entry.size();
        if let Some(replaced) = self.recent.insert(id, entry) {
            self.recent_bytes -= replaced.size();
        }
        if self.recent_bytes > BYTES_MAX / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.recent_bytes = 0;
        }
    }
}

fn encode(of: &ResourceType, object: &serde_json::Value) -> Option<Sent> {
    if object::is_deleting(object) {
        return None;
    }
    match resource_of(of, object) {
        Ok((name, resource)) => Some(Sent {
            version: format!("{:016x}", content::of(of.kind(), object)),
            name,
            resource,
        }),
        Err(reason) => {
            let (namespace, name) = (
                object::meta(object, "namespace"),
                object::meta(object, "name"),
            );
            tracing::warn!(
                kind = of.name,
                namespace,
                name,
                reason,
                "an object cannot be sent over xDS"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::session::served;
    use super::*;

    fn value(host: &str, padding: usize) -> Bytes {
        let object = json!({
            "metadata": {"name": "a", "namespace": "shop", "annotations": {"padding": "x".repeat(padding)}},
            "spec": {"hosts": [host]},
        });
        object.to_string().into()
    }

    #[test]
    fn same_version_is_encoded_once_and_the_memory_is_bounded() {
        let (of, target) = served("networking.istio.io/v1/VirtualService", None).unwrap();
        let encoded = Encoded::default();
        let get = |key: &str, revision: Revision, value: &Bytes| {
            let stored = Stored {
                key,
                revision,
                value,
            };
            encoded.of(&of, &target, stored).unwrap()
        };
        let first = get("/a", 1, &value("a", 0));
        assert!(Arc::ptr_eq(&first, &get("/a", 1, &value("a", 0))));
        let other = get("/a", 1, &value("b", 0));
        assert!(!Arc::ptr_eq(&first, &other), "of another history");
        let next = get("/a", 2, &value("b", 0));
        assert_eq!(&*next.name, "shop/a");
        assert_eq!(next.version, other.version, "the content is the same");
        assert_ne!(next.version, first.version);
        let large = value("a", 1 << 20);
        for number in 0..200 {
            get(&format!("/{number}"), 3, &large);
            get("/a", 2, &value("b", 0));
        }
        assert!(
            Arc::ptr_eq(&next, &get("/a", 2, &value("b", 0))),
            "used all the time"
        );
        let kept = encoded.0.lock().unwrap();
        let entries = kept.recent.values().chain(kept.older.values());
        let bytes: usize = entries.map(Entry::size).sum();
        assert!(
            (BYTES_MAX / 4..=BYTES_MAX + (4 << 20)).contains(&bytes),
            "{bytes}"
        );
    }
}
