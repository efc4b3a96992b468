//! Discovery of the files below the given paths.
//!
//! Directories are walked in the order of names. Entries whose names start with `..` are skipped: a mounted ConfigMap
//! keeps its versions in such directories and links to the current one. Symbolic links are followed. A directory that
//! is its own ancestor is not entered again, and a file that two paths lead to is read once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::codes::common::{SRC001, SRC002, SRC003, SRC005, SRC006};
use crate::diagnostic::{Code, Diagnostic, Severity};

/// Largest depth of nested directories.
const DEPTH_MAX: usize = 32;

/// Largest number of files.
pub(super) const FILES_MAX: usize = 100_000;

/// Message about a pipe, a socket or a device.
pub(super) const NO_FILE: &str = "this is neither a file nor a directory";

/// Metadata that identifies one state of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) modified_ns: i128,
    pub(super) changed_ns: i128,
    pub(super) size: u64,
    /// Number of hard links to the file.
    pub(super) links: u64,
    device: u64,
    inode: u64,
}

impl Stamp {
    pub(super) fn new(metadata: &Metadata) -> Stamp {
        let nanos =
            |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Stamp {
            modified_ns: nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanos(metadata.ctime(), metadata.ctime_nsec()),
            size: metadata.size(),
            links: metadata.nlink(),
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Whether both stamps are of the same file.
    pub(super) fn is_same_file(&self, other: &Stamp) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files, with their state.
    pub(super) files: BTreeMap<PathBuf, Stamp>,
    /// Directories to watch: walked directories, and directories of a file that was given or linked to. Keyed by device
    /// and inode, because another directory may replace one at the same path. Paths are absolute and without symbolic
    /// links, as in watch events, so that no directory is watched twice.
    pub(super) directories: BTreeMap<PathBuf, (u64, u64)>,
    /// Symbolic links to directories, by their own paths. Only the last component of such a path is a link.
    pub(super) directory_links: HashSet<PathBuf>,
    /// Walked directories, by their paths without symbolic links.
    pub(super) walked: HashMap<PathBuf, PathBuf>,
    /// Path in `files` for each path that an event may carry: the path with its directory resolved, and the target of a
    /// link.
    pub(super) names: HashMap<PathBuf, Name>,
    /// Paths that could not be walked, with the reason. Known files below them may still exist.
    pub(super) failed: BTreeMap<PathBuf, Diagnostic>,
    /// Entries that are not readable as files: broken links, pipes, sockets and devices. They matter only in place of a
    /// known file, whose last good version stays in effect. Others may be editor locks.
    pub(super) odd: BTreeMap<PathBuf, Diagnostic>,
    /// Diagnostics about given directories without resource files.
    pub(super) empty: Vec<Diagnostic>,
    /// Number of files found, counted once per path.
    found: usize,
    seen: HashSet<(u64, u64)>,
}

/// File that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Path of the file in `files`.
    pub(super) path: PathBuf,
    /// Whether the event is about the target of a link rather than the file itself.
    pub(super) is_target: bool,
}

/// Walks `roots`.
pub(super) fn scan(roots: &[PathBuf]) -> Scan {
    let mut scan = Scan::default();
    for root in roots {
        scan.root(root);
    }
    scan
}

impl Scan {
    fn root(&mut self, root: &Path) {
        match fs::metadata(root) {
            Ok(metadata) if metadata.is_dir() => {
                self.watch_link(root);
                let before = (self.found, self.failed.len(), self.odd.len());
                self.directory(root, &metadata, &mut Vec::new());
                if before == (self.found, self.failed.len(), self.odd.len()) {
                    self.empty.push(empty(root));
                }
            }
            Ok(metadata) if metadata.is_file() => {
                self.watch_parent(root);
                self.watch_link(root);
                self.file(root.to_owned(), own_path(root), &metadata);
            }
            Ok(_) => self.fail(root, SRC005, NO_FILE.to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // It may come, or come back.
                self.watch_parent(root);
                self.fail(
                    root,
                    SRC001,
                    "there is no such file or directory".to_owned(),
                );
            }
            Err(error) => self.fail_io(root, &error),
        }
    }

    /// Walks a directory. `ancestors` has the device and inode of each directory above it.
    fn directory(&mut self, path: &Path, metadata: &Metadata, ancestors: &mut Vec<(u64, u64)>) {
        let identity = (metadata.dev(), metadata.ino());
        if ancestors.contains(&identity) {
            return;
        }
        if ancestors.len() >= DEPTH_MAX {
            self.fail(
                path,
                SRC003,
                format!("directories are nested more than {DEPTH_MAX} levels deep"),
            );
            return;
        }
        let real = real_path(path);
        self.directories.insert(real.clone(), identity);
        // A file that two paths lead to is named by the first.
        self.walked
            .entry(real.clone())
            .or_insert_with(|| path.to_owned());
        let listed = fs::read_dir(path).and_then(|entries| {
            let name_and_link =
                |entry: fs::DirEntry| Ok((entry.file_name(), entry.file_type()?.is_symlink()));
            entries
                .map(|entry| entry.and_then(name_and_link))
                .collect::<Result<Vec<_>, _>>()
        });
        let mut names = match listed {
            Ok(names) => names,
            Err(error) => return self.fail_io(path, &error),
        };
        names.sort_unstable();
        ancestors.push(identity);
        for (name, is_link) in names {
            if name.as_encoded_bytes().starts_with(b"..") {
                continue;
            }
            let (path, real) = (path.join(&name), real.join(name));
            if is_link {
                self.watch_link(&path);
            }
            self.entry(path, real, ancestors);
        }
        ancestors.pop();
    }

    /// Watches both directories of a link: its own, and that of its target. A link can change in either.
    fn watch_link(&mut self, path: &Path) {
        if !path.is_symlink() {
            return;
        }
        self.watch_parent(path);
        if let Ok(target) = path.canonicalize() {
            self.watch_parent(&target);
            if target.is_dir() {
                self.directory_links.insert(own_path(path));
            }
        }
    }

    fn watch_parent(&mut self, path: &Path) {
        let parent = parent_of(path);
        if let Ok(metadata) = fs::metadata(parent) {
            self.directories
                .entry(real_path(parent))
                .or_insert((metadata.dev(), metadata.ino()));
        }
    }

    fn entry(&mut self, path: PathBuf, real: PathBuf, ancestors: &mut Vec<(u64, u64)>) {
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.directory(&path, &metadata, ancestors),
            Ok(metadata) if metadata.is_file() && is_resource_file(&path) => {
                self.file(path, real, &metadata)
            }
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => self.odd(path, SRC005, NO_FILE),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Without the link, it went away between the listing and now.
                if path.is_symlink() {
                    let message = "this link points to nothing";
                    // links with a dot in front are locks of editors
                    let is_hidden = path
                        .file_name()
                        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
                    match is_resource_file(&path) && !is_hidden {
                        true => self.fail(&path, SRC002, message.to_owned()),
                        false => self.odd(path, SRC002, message),
                    }
                }
            }
            Err(error) if is_resource_file(&path) => self.fail_io(&path, &error),
            Err(_) => {}
        }
    }

    /// Adds a file. `real` is its path with the directory resolved.
    fn file(&mut self, path: PathBuf, real: PathBuf, metadata: &Metadata) {
        self.found += 1;
        if self.files.len() >= FILES_MAX {
            self.fail(
                &path,
                SRC003,
                format!("there are more than {FILES_MAX} files"),
            );
            return;
        }
        if self.seen.insert((metadata.dev(), metadata.ino())) {
            if let Some(target) = path
                .is_symlink()
                .then(|| path.canonicalize().ok())
                .flatten()
            {
                self.name(target, &path, true);
            }
            self.name(real, &path, false);
            self.files.insert(path, Stamp::new(metadata));
        }
    }

    fn name(&mut self, event: PathBuf, path: &Path, is_target: bool) {
        let path = path.to_owned();
        self.names.insert(event, Name { path, is_target });
    }

    fn odd(&mut self, path: PathBuf, code: Code, message: &str) {
        let name = name_of(&path);
        let found = Diagnostic::about_file(Severity::Error, code, name, message);
        self.odd.insert(path, found);
    }

    fn fail_io(&mut self, path: &Path, error: &io::Error) {
        self.fail(
            path,
            SRC002,
            format!("cannot read this: {}", describe(error)),
        );
    }

    fn fail(&mut self, path: &Path, code: Code, message: String) {
        let found = Diagnostic::about_file(Severity::Error, code, name_of(path), message);
        self.failed.insert(path.to_owned(), found);
    }
}

/// Returns the directory of a path.
fn parent_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Returns the absolute path of a file or link, with only its directory resolved.
fn own_path(path: &Path) -> PathBuf {
    real_path(parent_of(path)).join(path.file_name().unwrap_or_default())
}

/// Returns the absolute path without links, or the path as far as it can be resolved.
fn real_path(path: &Path) -> PathBuf {
    let real = path.canonicalize().or_else(|_| std::path::absolute(path));
    real.unwrap_or_else(|_| path.to_owned())
}

/// Returns a diagnostic: a directory without resource files.
fn empty(root: &Path) -> Diagnostic {
    let message = "no file in this directory ends in .yaml, .yml or .json";
    let mut found = Diagnostic::about_file(Severity::Warning, SRC006, name_of(root), message);
    found.help("name the directory that holds the resources; directories below it are read, too");
    found
}

/// Returns the name of a file in messages.
pub(super) fn name_of(path: &Path) -> Arc<str> {
    Arc::from(&*path.to_string_lossy())
}

/// Returns the reason of an I/O error, without its number.
pub(super) fn describe(error: &io::Error) -> String {
    let text = error.to_string().to_lowercase();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Whether a file in a directory is read, by its extension. Files of `strait test` and `strait simulate` are not.
pub fn is_resource_file(path: &Path) -> bool {
    let is = |path: &Path, known: &[&str]| {
        let extension = path.extension();
        extension.is_some_and(|extension| known.iter().any(|one| extension == *one))
    };
    let stem = path.file_stem().map(Path::new);
    is(path, &["yaml", "yml", "json"]) && !stem.is_some_and(|stem| is(stem, &["scenario", "test"]))
}
