//! Test files below a directory.

use std::fs;
use std::path::{Path, PathBuf};

/// Largest depth of directories that are searched.
const DEPTH_MAX: usize = 32;

/// Endings of the names of test files.
const ENDINGS: [&str; 3] = [".test.yaml", ".test.yml", ".test.json"];

/// Returns the test files below a directory, sorted. Hidden directories and links to directories are passed over.
pub(super) fn test_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    search(directory, DEPTH_MAX, &mut found);
    found.sort_unstable();
    found
}

fn search(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && depth > 0 && !name.starts_with('.') {
            search(&path, depth - 1, found);
        } else if !is_directory && ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            // as other tools name a path below the current directory
            found.push(path.strip_prefix("./").unwrap_or(&path).to_owned());
        }
    }
}
