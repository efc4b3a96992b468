//! Checked object: its reference, origin and content.

use std::sync::Arc;

use super::text_map::TextMap;
use crate::kind::{Kind, ObjectRef};
use crate::span::Line;

/// Origin of an object: file and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Name of the file, as given by the user.
    pub file: Arc<str>,
    /// Line of the file on which the object starts, counted from 1: of its document, or of its item in a `List`.
    pub line: u32,
    /// Line of the file on which the object's document starts, counted from 1.
    pub document_line: u32,
    /// Object that this one was translated from; `None` for an object that is written.
    pub written_as: Option<Arc<ObjectRef>>,
}

/// Position of an object in its file: the document, then the item of a `List`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// Index of the document, counted from 0.
    pub document: u32,
    /// Index of the item, counted from 0.
    pub item: u32,
}

/// Sort key for the age of objects of any kinds: creation time, name, namespace, kind.
pub type Age<'a> = (i64, &'a str, &'a str, Kind);

/// Checked object of one kind.
#[derive(Clone, Debug)]
pub struct Object<T> {
    /// Reference of the object: kind, namespace and name.
    pub id: ObjectRef,
    /// `metadata.labels`
    pub labels: TextMap,
    /// `metadata.annotations`
    pub annotations: TextMap,
    /// `metadata.creationTimestamp`, in seconds since 1970.
    pub created: Option<i64>,
    /// Position in its file.
    pub order: Order,
    /// Origin: file and lines.
    pub provenance: Provenance,
    /// Hash of the object's text and its position within its document. Equal for objects with equal content.
    pub fingerprint: u64,
    /// Checked content of the object.
    pub spec: Arc<T>,
}

impl<T> Object<T> {
    /// Returns a copy with this content.
    pub(crate) fn with_spec(&self, spec: Arc<T>) -> Self {
        Self {
            id: self.id.clone(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            created: self.created,
            order: self.order,
            provenance: self.provenance.clone(),
            fingerprint: self.fingerprint,
            spec,
        }
    }

    /// Whether the object comes from a server (`--control`), and not from a file.
    pub fn is_from_server(&self) -> bool {
        self.provenance.file.contains("://")
    }

    /// Returns the line of the file, counted from 1, for a line of the object's document. The first line of the
    /// document represents the whole object.
    pub fn line_of(&self, line: Line) -> u32 {
        match line {
            Line(0) => self.provenance.line,
            Line(line) => self.provenance.document_line.saturating_add(line),
        }
    }

    /// Returns the sort key for age, oldest first: creation time (a missing one is the oldest), then name, then
    /// namespace, as in Istio's `sortConfigByCreationTime`. Creation times have a resolution of seconds, so ties are
    /// common. The origin of an object has no effect.
    pub fn age(&self) -> Age<'_> {
        let created = self.created.unwrap_or(i64::MIN);
        let (name, namespace) = (&*self.id.name, &*self.id.namespace);
        (created, name, namespace, self.id.kind)
    }
}
