//! The lines of watches, encoded once for all watches that send the same: 1,000 watches of one change share its bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use super::table::{self, Include};
use crate::object;
use crate::resources::Resource;
use crate::store::{Event, Revision};

/// The most changes whose lines are kept, and the most bytes of them. Watches that are further behind encode by themselves.
const CHANGES_MAX: usize = 256;
const BYTES_MAX: usize = 32 << 20;

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Object,
    /// As rows of a table.
    Table(Include),
    /// With their metadata only.
    MetadataOnly,
}

/// In which of all ways an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// The resource of the object.
    pub resource: &'static Resource,
    /// The version at which it is shown.
    pub version: &'static str,
    /// The form.
    pub form: Form,
    /// Whether a table names its columns.
    pub has_columns: bool,
}

impl Encoding {
    /// The line of an event of that type.
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

/// An object with its metadata only.
pub fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// One line of a watch.
pub fn line(kind: &str, object: &Value) -> Bytes {
    let mut line = json!({"type": kind}).to_string();
    line.pop();
    line.push_str(",\"object\":");
    line.push_str(&object.to_string());
    line.push_str("}\n");
    Bytes::from(line)
}

/// The lines of recent changes.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    changes: BTreeMap<Revision, Arc<Change>>,
    bytes: usize,
}

/// A change with what watches have made of it.
#[derive(Debug)]
pub(super) struct Change {
    event: Arc<Event>,
    resource: &'static Resource,
    after: OnceLock<Option<Value>>,
    before: OnceLock<Option<Value>>,
    lines: Mutex<Vec<(Encoding, &'static str, Bytes)>>,
}

impl Lines {
    /// A change of an object of that resource.
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
            // Revisions of another history, after it was restored, are other changes.
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
    /// The object after the change; none if it was deleted.
    pub(super) fn after(&self) -> Option<&Value> {
        let after = self
            .after
            .get_or_init(|| self.read(self.event.value.as_ref()));
        after.as_ref()
    }

    /// The object before the change, with the revision of the change; none if it was made.
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

    /// The change as an event of that type, encoded.
    pub(super) fn line(&self, kind: &'static str, encoding: Encoding) -> Bytes {
        // Held while it is encoded: the others wait for the line instead of encoding it as well.
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
