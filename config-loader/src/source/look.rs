//! Result of a scan of a source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::revision::SourceRevision;
use crate::diagnostic::Diagnostic;
use crate::load::FileReading;

/// Source of the text that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Files and directories.
    #[default]
    Files,
    /// Servers of `--control`.
    Servers,
}

/// Text of an object from a server. Includes its reading if the object was already read to acknowledge it.
#[derive(Clone, Debug)]
pub(crate) struct ObjectText {
    pub(crate) text: String,
    pub(crate) reading: Option<Arc<FileReading>>,
}

impl From<String> for ObjectText {
    fn from(text: String) -> ObjectText {
        ObjectText {
            text,
            reading: None,
        }
    }
}

/// Two texts are equal if their bytes are; the reading follows from the text.
impl PartialEq for ObjectText {
    fn eq(&self, other: &ObjectText) -> bool {
        self.text == other.text
    }
}

/// Change of one file.
#[derive(Clone, Debug)]
pub(crate) enum FileEvent {
    /// The file was removed.
    Gone,
    /// Content of the file.
    Bytes(Vec<u8>),
    /// Object of a server, already read.
    Object(ObjectText),
    /// The file has this many bytes, which exceeds the limit.
    TooLarge(u64),
    /// The file exists, or may exist, and cannot be read.
    Unreadable(Box<Diagnostic>),
}

/// Result of a scan.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Source that was scanned.
    pub(crate) source: Source,
    /// Changes, by file.
    pub(crate) events: Vec<(Arc<str>, FileEvent)>,
    /// Last good text of changed files, saved by an earlier process. It is used if the new text is rejected.
    pub(crate) last_good: BTreeMap<Arc<str>, String>,
    /// Diagnostics about the source itself, such as missing paths.
    pub(crate) problems: Vec<Diagnostic>,
    /// Description of the resources that are still missing; `None` once the configuration is complete.
    pub(crate) waits_for: Option<String>,
    /// Whether every resource of every server has been listed once.
    pub(crate) is_listed: bool,
    /// Revisions of the source, or of each of its servers, that this scan includes.
    pub(crate) revisions: Vec<SourceRevision>,
    /// Files to scan again soon.
    pub(crate) unsettled: BTreeSet<PathBuf>,
}
