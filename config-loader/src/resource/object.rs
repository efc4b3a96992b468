//! One checked object: who it is, where it came from, what it says.

use std::sync::Arc;

use super::text_map::TextMap;
use crate::kind::{Kind, ObjectRef};
use crate::span::Line;

/// Where an object was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The file, as it was named to us.
    pub file: Arc<str>,
    /// The line of the file on which the object starts, counted from 1: that of its document, or its own in a `List`.
    pub line: u32,
    /// The line of the file on which the object's document starts, counted from 1.
    pub document_line: u32,
}

/// Where in its file an object stands: the document, then the item of a `List`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// Counted from 0.
    pub document: u32,
    /// Counted from 0.
    pub item: u32,
}

/// How old an object is, among those of whatever kinds: creation time, name, namespace, kind.
pub type Age<'a> = (i64, &'a str, &'a str, Kind);

/// A checked object of one kind.
#[derive(Clone, Debug)]
pub struct Object<T> {
    /// Who it is.
    pub id: ObjectRef,
    /// `metadata.labels`
    pub labels: TextMap,
    /// `metadata.annotations`
    pub annotations: TextMap,
    /// `metadata.creationTimestamp`, in seconds since 1970.
    pub created: Option<i64>,
    /// Where in its file it stands.
    pub order: Order,
    /// Where it was read.
    pub provenance: Provenance,
    /// A hash of its text and of its place within its document. Equal for objects that say the same.
    pub fingerprint: u64,
    /// What it says.
    pub spec: Arc<T>,
}

impl<T> Object<T> {
    /// The line of the file that a line of the object's document is, counted from 1. The first line of the document
    /// represents the object as a whole.
    pub fn line_of(&self, line: Line) -> u32 {
        match line {
            Line(0) => self.provenance.line,
            Line(line) => self.provenance.document_line.saturating_add(line),
        }
    }

    /// The key by which objects are compared in age, the oldest first: creation time, where a missing one is the
    /// oldest, then the name, then the namespace, as Istio's `sortConfigByCreationTime` has it. Times have seconds, so
    /// ties are common; where an object was read decides nothing.
    pub fn age(&self) -> Age<'_> {
        let created = self.created.unwrap_or(i64::MIN);
        let (name, namespace) = (&*self.id.name, &*self.id.namespace);
        (created, name, namespace, self.id.kind)
    }
}
