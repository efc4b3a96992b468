//! Encoded events of watches, shared by all watches with the same encoding: 1,000 watches of one change share its
//! bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use super::table::{self, Include};
use crate::object;
use crate::resources::Resource;
use crate::store::{Event, Revision};

/// Limits of the cache: number of changes, and bytes. Watches that are further behind encode events themselves.
const CHANGES_MAX: usize = 256;
const BYTES_MAX: usize = 32 << 20;

/// Representation of an object in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Complete object.
    Object,
    /// Row of a table.
    Table(Include),
    /// `PartialObjectMetadata`.
    MetadataOnly,
}

/// Encoding of an event: resource, version and representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Resource of the object.
    pub resource: &'static Resource,
    /// API version of the encoded object.
    pub version: &'static str,
    /// Representation of the object.
    pub form: Form,
    /// Whether a table includes its column definitions.
    pub has_columns: bool,
}

impl Encoding {
    /// Returns the encoded line of an event of type `kind`.
    pub fn line(&self, kind: &str, mut object: Value) -> Bytes {
        object["apiVersion"] = self.resource.api_version(self.version).into();
        let object = match self.form {
            Form::Object => object,
            Form::MetadataOnly => metadata_only(&object),
            Form::Table(include) => {
                let revision = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let rows = vec![table::row(&object, self.resource, include)];
                table::table(revision, rows, self.resource, self.has_columns)
            }
        };
        line(kind, &object)
    }
}

/// Returns an object as `PartialObjectMetadata`.
pub fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// Returns one encoded event of a watch.
pub fn line(kind: &str, object: &Value) -> Bytes {
    let mut line = json!({"type": kind}).to_string();
    line.pop();
    line.push_str(",\"object\":");
    line.push_str(&object.to_string());
    line.push_str("}\n");
    Bytes::from(line)
}

/// Cache of encoded events of recent changes.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    changes: BTreeMap<Revision, Arc<Change>>,
    bytes: usize,
}

/// Change with its decoded objects and its encoded lines.
#[derive(Debug)]
pub(super) struct Change {
    event: Arc<Event>,
    resource: &'static Resource,
    after: OnceLock<Option<Value>>,
    before: OnceLock<Option<Value>>,
    lines: Mutex<Vec<(Encoding, &'static str, Bytes)>>,
}

impl Lines {
    /// Returns the cached change of an event, and adds it if absent.
    pub(super) fn of(&self, event: &Arc<Event>, resource: &'static Resource) -> Arc<Change> {
        let make = || {
            Arc::new(Change {
                event: Arc::clone(event),
                resource,
                after: OnceLock::new(),
                before: OnceLock::new(),
                lines: Mutex::default(),
            })
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.changes.get(&event.revision) {
            // After a restore, the same revision may belong to another change.
            if Arc::ptr_eq(&known.event, event) {
                return Arc::clone(known);
            }
        }
        let oldest = kept.changes.keys().next().copied();
        let is_full = kept.changes.len() >= CHANGES_MAX;
        if is_full && oldest.is_some_and(|oldest| event.revision < oldest) {
            return make();
        }
        let change = make();
        kept.bytes += event.size();
        let replaced = kept.changes.insert(event.revision, Arc::clone(&change));
        kept.bytes -= replaced.map_or(0, |old| old.event.size());
        while kept.changes.len() > CHANGES_MAX || kept.bytes > BYTES_MAX && kept.changes.len() > 1 {
            let Some((_, dropped)) = kept.changes.pop_first() else {
                break;
            };
            kept.bytes -= dropped.event.size();
        }
        change
    }
}

impl Change {
    /// Returns the object after the change; `None` if it was deleted.
    pub(super) fn after(&self) -> Option<&Value> {
        let after = self
            .after
            .get_or_init(|| self.read(self.event.value.as_ref()));
        after.as_ref()
    }

    /// Returns the object before the change, with the revision of the change; `None` if it was created.
    pub(super) fn before(&self) -> Option<&Value> {
        let before = self
            .before
            .get_or_init(|| self.read(self.event.previous.as_ref()));
        before.as_ref()
    }

    fn read(&self, value: Option<&Bytes>) -> Option<Value> {
        let (resource, revision) = (self.resource, self.event.revision);
        value.map(|bytes| object::decode(bytes, revision, resource, resource.versions[0]))
    }

    /// Returns the change as an encoded event of type `kind`.
    pub(super) fn line(&self, kind: &'static str, encoding: Encoding) -> Bytes {
        // Hold the lock while encoding: other watches wait for the line instead of encoding it as well.
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lines.iter().find(|(e, k, _)| *e == encoding && *k == kind);
        if let Some((_, _, line)) = known {
            return line.clone();
        }
        let object = if kind == "DELETED" {
            self.before()
        } else {
            self.after()
        };
        let line = encoding.line(kind, object.cloned().unwrap_or_default());
        lines.push((encoding, kind, line.clone()));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(revision: Revision) -> Arc<Event> {
        Arc::new(Event {
            key: Arc::from("/core/services/a/b"),
            revision,
            value: Some(Bytes::from_static(
                b"{\"kind\":\"Service\",\"metadata\":{\"name\":\"b\"}}",
            )),
            previous: None,
        })
    }

    fn encoding(form: Form) -> Encoding {
        Encoding {
            resource: crate::resources::named("", "services").unwrap(),
            version: "v1",
            form,
            has_columns: false,
        }
    }

    #[test]
    fn watches_of_one_change_share_its_bytes() {
        let lines = Lines::default();
        let event = event(7);
        let line = |form| {
            let encoding = encoding(form);
            lines.of(&event, encoding.resource).line("ADDED", encoding)
        };
        let (first, second) = (line(Form::Object), line(Form::Object));
        assert_eq!(first.as_ptr(), second.as_ptr());
        assert_ne!(line(Form::MetadataOnly), first);
        let read: Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(read["type"], "ADDED");
        assert_eq!(read["object"]["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn number_of_changes_is_bounded() {
        let lines = Lines::default();
        let resource = encoding(Form::Object).resource;
        for revision in 1..=CHANGES_MAX as u64 + 10 {
            lines.of(&event(revision), resource);
        }
        lines.of(&event(1), resource);
        let kept = lines.0.lock().unwrap();
        assert_eq!(kept.changes.len(), CHANGES_MAX);
        assert_eq!(kept.changes.keys().next(), Some(&11));
    }
}
