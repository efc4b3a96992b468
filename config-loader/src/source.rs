//! Where bytes come from: files and directories, read and watched. Uses only `diagnostic`.

mod debounce;
mod file;
mod scan;
mod watch;

pub(crate) use file::{FileEvent, FileSource, Look};
pub use watch::WatchSettings;
pub(crate) use watch::{Follow, Stop, spawn};
