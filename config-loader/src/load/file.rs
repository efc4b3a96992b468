//! Reading of one file. Unchanged documents are taken from the previous reading.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;

use twox_hash::XxHash64;

use super::changed::read_changed;
use super::document::{Reading, Source, read_document, sole_object};
use super::layout::Layout;
use crate::ReadOptions;
use crate::diagnostic::{Diagnostic, Location, Severity};
use crate::kinds::DocumentObject;
use crate::parse::{self, Chunk, Expansion};
use crate::resource::{AnyObject, Order, Provenance};

/// Result of reading one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileReading {
    /// Documents in file order.
    pub(crate) documents: Box<[Document]>,
    /// Error of the last attempt to read the file; `documents` is then the result of the last successful one.
    pub(crate) failure: Option<Box<Diagnostic>>,
}

impl FileReading {
    /// Iterates over the diagnostics that are errors.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics()
            .filter(|found| found.severity == Severity::Error)
    }

    /// Iterates over the diagnostics.
    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let documents = self.documents.iter();
        let found = documents.flat_map(|document| document.reading.diagnostics());
        self.failure.as_deref().into_iter().chain(found)
    }

    /// Whether the file has diagnostics.
    pub(crate) fn has_findings(&self) -> bool {
        self.diagnostics().next().is_some()
    }
}

/// Document of the previous reading, identified by hash and length of its text.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Hash of the text.
    hash: u64,
    /// Length of the text, in bytes.
    len: u32,
    first_line: u32,
    pub(crate) reading: KeptReading,
    /// Size of the expanded aliases of earlier documents, and of this one. `None` for a document without aliases, which
    /// reads the same after any others.
    expansions: Option<Box<[Expansion; 2]>>,
    /// Positions of its list items, if a changed version can be read without parsing all of them.
    layout: Option<Arc<Layout>>,
}

impl Document {
    /// Whether the document reads the same after documents whose aliases expand to `expanded`.
    fn reads_same_after(&self, expanded: Expansion) -> bool {
        let expansions = self.expansions.as_deref();
        expansions.is_none_or(|[before, _]| *before == expanded)
    }

    /// Returns the size of its own expanded aliases.
    fn expansion(&self) -> Expansion {
        let expansions = self.expansions.as_deref();
        expansions.map_or_else(Expansion::default, |[_, own]| *own)
    }
}

/// Reading of a document in compact form. An accepted object without diagnostics, the common case, needs only its slot.
#[derive(Clone, Debug)]
pub(crate) enum KeptReading {
    Good(DocumentObject),
    Other(Arc<Reading>),
}

impl KeptReading {
    fn new(mut reading: Reading) -> KeptReading {
        let is_good = !reading.unreadable && sole_object(&reading).is_some();
        match reading.slots.pop() {
            Some(slot) if is_good => KeptReading::Good(slot),
            slot => {
                reading.slots.extend(slot);
                reading.slots.shrink_to_fit();
                KeptReading::Other(Arc::new(reading))
            }
        }
    }

    /// Returns the objects of the document, accepted or rejected.
    pub(crate) fn slots(&self) -> &[DocumentObject] {
        match self {
            KeptReading::Good(slot) => slice::from_ref(slot),
            KeptReading::Other(reading) => &reading.slots,
        }
    }

    /// Returns the diagnostics.
    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            KeptReading::Good(_) => &[],
            KeptReading::Other(reading) => &reading.diagnostics,
        }
    }

    /// Whether the document could not be parsed.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            KeptReading::Good(_) => false,
            KeptReading::Other(reading) => reading.unreadable,
        }
    }

    /// Whether both are the same reading (by pointer, not by content).
    pub(crate) fn is_same(&self, other: &KeptReading) -> bool {
        match (self, other) {
            (KeptReading::Good(one), KeptReading::Good(other)) => {
                one.at == other.at
                    && matches!((one.good(), other.good()), (Some(one), Some(other)) if Arc::ptr_eq(one, other))
            }
            (KeptReading::Other(one), KeptReading::Other(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Returns the object of a document that has exactly one accepted object and no diagnostics.
    fn sole_object(&self) -> Option<&Arc<dyn AnyObject>> {
        match self {
            KeptReading::Good(slot) => slot.good(),
            KeptReading::Other(_) => None,
        }
    }
}

/// Reads a file. Documents whose text equals one in `previous` are not parsed again.
pub(crate) fn read_file(
    file: &Arc<str>,
    text: &str,
    previous: Option<&FileReading>,
    options: ReadOptions,
) -> FileReading {
    let known = previous.map_or(&[][..], |previous| &previous.documents);
    let mut elsewhere: Option<HashMap<(u64, u32), Vec<usize>>> = None;
    let mut documents = Vec::with_capacity(known.len());
    let mut expanded = Expansion::default();
    for (at, chunk) in parse::split(text).into_iter().enumerate() {
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let hash = XxHash64::oneshot(0, chunk.text.as_bytes());
        let len = u32::try_from(chunk.text.len()).unwrap_or(u32::MAX);
        let in_place = known
            .get(at)
            .filter(|document| (document.hash, document.len) == (hash, len))
            .map(|_| at);
        // Most documents stay where they were: only when one did not is it looked for.
        let known_at = in_place.or_else(|| {
            let places = elsewhere.get_or_insert_with(|| places(known));
            places.get_mut(&(hash, len)).and_then(Vec::pop)
        });
        let same = known_at.and_then(|at| Some((at, known.get(at)?)));
        let same = same.filter(|(_, same)| same.reads_same_after(expanded));
        let source = Source {
            file,
            index,
            options,
            expanded,
        };
        let document = match same {
            Some((known_at, same)) => Document {
                first_line: chunk.first_line,
                reading: reuse(same, known_at, chunk, index),
                ..same.clone()
            },
            None => read_safely(&source, hash, len, chunk, known),
        };
        expanded = expanded.and(document.expansion());
        documents.push(document);
    }
    FileReading {
        documents: documents.into(),
        failure: None,
    }
}

/// Reads a document, which may be a changed version of one of the `known` ones. If the parser or a validator panics,
/// only this document is rejected.
fn read_safely(
    source: &Source<'_>,
    hash: u64,
    len: u32,
    chunk: Chunk<'_>,
    known: &[Document],
) -> Document {
    let in_source = known.iter().skip(source.index as usize).take(1);
    let elsewhere = known.iter().enumerate();
    let elsewhere =
        elsewhere.filter_map(|(at, document)| (at != source.index as usize).then_some(document));
    let mut candidates = in_source.chain(elsewhere).filter_map(|document| {
        Some((document.reading.sole_object()?, document.layout.as_deref()?))
    });
    let read = || {
        let changed =
            candidates.find_map(|(known, layout)| read_changed(source, chunk, known, layout));
        match changed {
            Some((reading, layout)) => (reading, Some(layout)),
            None => read_document(source, chunk),
        }
    };
    let (reading, layout) = catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| (Reading::fault(source.file, chunk), None));
    let has_none = reading.expansion == Expansion::default() && !reading.unreadable;
    let expansions = [source.expanded, reading.expansion];
    Document {
        hash,
        len,
        first_line: chunk.first_line,
        expansions: (!has_none).then(|| Box::new(expansions)),
        reading: KeptReading::new(reading),
        layout: layout.map(Arc::new),
    }
}

/// Returns the indexes of the known documents by hash and length of their text.
fn places(known: &[Document]) -> HashMap<(u64, u32), Vec<usize>> {
    let mut places: HashMap<(u64, u32), Vec<usize>> = HashMap::new();
    for (at, document) in known.iter().enumerate().rev() {
        places
            .entry((document.hash, document.len))
            .or_default()
            .push(at);
    }
    places
}

/// Returns the reading of an unchanged document at its possibly different position.
fn reuse(document: &Document, old_index: usize, chunk: Chunk<'_>, index: u32) -> KeptReading {
    if document.first_line == chunk.first_line && old_index == index as usize {
        return document.reading.clone();
    }
    let slots = document.reading.slots().iter().map(|slot| DocumentObject {
        at: slot.at.moved(document.first_line, chunk.first_line),
        object: slot.object.clone().map(|object| {
            let provenance = Provenance {
                file: Arc::clone(&object.provenance().file),
                line: object.provenance().line + chunk.first_line - document.first_line,
                document_line: chunk.first_line,
                written_as: None,
            };
            let item = object.order().item;
            let order = Order {
                document: index,
                item,
            };
            object.moved(provenance, order)
        }),
    });
    let shift = |location: &Location| {
        let line = location.line + chunk.first_line - document.first_line.min(location.line);
        Location {
            line,
            ..location.clone()
        }
    };
    let diagnostics = document.reading.diagnostics().iter().map(|found| {
        let mut found = found.clone();
        found.location = shift(&found.location);
        for (location, _) in &mut found.related {
            *location = shift(location);
        }
        found
    });
    KeptReading::new(Reading {
        slots: slots.collect(),
        diagnostics: diagnostics.collect(),
        unreadable: document.reading.is_unreadable(),
        ..Reading::default()
    })
}

#[cfg(test)]
mod tests;
