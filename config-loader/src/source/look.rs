//! What a source found when it was looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::revision::SourceRevision;
use crate::diagnostic::Diagnostic;
use crate::load::FileReading;

/// Where what is read comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Files and directories.
    #[default]
    Files,
    /// The servers of `--control`.
    Servers,
}

/// Text of an object of a server, with its reading where the object was read to answer the server.
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

/// The reading of an object follows from its text.
impl PartialEq for ObjectText {
    fn eq(&self, other: &ObjectText) -> bool {
        self.text == other.text
    }
}

/// What became of one file.
#[derive(Clone, Debug)]
pub(crate) enum FileEvent {
    /// It is gone.
    Gone,
    /// It has these bytes.
    Bytes(Vec<u8>),
    /// It is an object of a server, which was read.
    Object(ObjectText),
    /// It has so many bytes, which is more than is read.
    TooLarge(u64),
    /// It is there, or may be, and cannot be read.
    Unreadable(Box<Diagnostic>),
}

/// What a look at the files found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// What was looked at.
    pub(crate) source: Source,
    /// What changed, by file.
    pub(crate) events: Vec<(Arc<str>, FileEvent)>,
    /// Last good texts of files that changed, as an earlier process had them: they are used where the new ones are rejected.
    pub(crate) last_good: BTreeMap<Arc<str>, String>,
    /// What is wrong with the source itself, such as with paths.
    pub(crate) problems: Vec<Diagnostic>,
    /// What has to come before what was found is complete.
    pub(crate) waits_for: Option<String>,
    /// Whether every resource of every server has been listed once.
    pub(crate) is_listed: bool,
    /// How far the source, or each of its servers, is with this.
    pub(crate) revisions: Vec<SourceRevision>,
    /// Files that should be looked at again soon.
    pub(crate) unsettled: BTreeSet<PathBuf>,
}
