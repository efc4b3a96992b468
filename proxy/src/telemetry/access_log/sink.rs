//! Open target of the lines.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::settings::AccessLogTarget;

/// Open target of the lines.
#[derive(Debug)]
pub(super) enum Sink {
    File {
        path: PathBuf,
        /// `None` for a file that could not be opened yet.
        file: Option<File>,
    },
    Stderr,
    Stdout,
}

impl Sink {
    pub(super) fn open(target: &AccessLogTarget) -> io::Result<Self> {
        Ok(match target {
            AccessLogTarget::File(path) => Self::File {
                path: path.clone(),
                file: Some(open(path)?),
            },
            AccessLogTarget::Stderr => Self::Stderr,
            AccessLogTarget::Stdout => Self::Stdout,
            AccessLogTarget::Otlp(_) => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    /// Opens a target. A file that cannot be opened is tried again when its rotation is looked at.
    pub(super) fn open_or_retry(target: &AccessLogTarget) -> Self {
        Self::open(target).unwrap_or_else(|error| {
            tracing::error!(%error, file = %target, "the access log cannot be opened, its lines are dropped");
            let path = match target {
                AccessLogTarget::File(path) => path.clone(),
                _ => PathBuf::new(),
            };
            Self::File { path, file: None }
        })
    }

    pub(super) fn write_all(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::File { file, .. } => match file {
                Some(file) => file.write_all(lines),
                None => Err(io::ErrorKind::NotFound.into()),
            },
            Self::Stderr => io::stderr().lock().write_all(lines),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
        }
    }

    /// Opens the path again if it no longer refers to the open file, or always if `always`.
    pub(super) fn reopen(&mut self, always: bool) -> io::Result<()> {
        let Self::File { path, file } = self else {
            return Ok(());
        };
        let is_current = match file {
            Some(file) => names(path, file)?,
            None => false,
        };
        if always || !is_current {
            *file = Some(open(path)?);
        }
        Ok(())
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, .. } => write!(f, "{}", path.display()),
            Self::Stderr => f.write_str("standard error"),
            Self::Stdout => f.write_str("standard output"),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Whether a path refers to an open file, by device and inode.
fn names(path: &Path, file: &File) -> io::Result<bool> {
    let open = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
