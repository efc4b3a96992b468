//! Tests of directory entries that cannot be read as a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::{Watched, names, secret, show};
use crate::{LoadOptions, load_files};

/// Tests a file that is replaced by an entry with the same name that cannot be read as a file.
#[test]
fn file_replaced_by_something_unreadable_keeps_its_last_good_version() {
    type Replace = fn(&Path);
    let dangling: Replace = |path| symlink("/nowhere/at-all", path).expect("a link");
    let fifo: Replace = |path| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).expect("a pipe");
    };
    let socket: Replace = |path| drop(UnixListener::bind(path).expect("a socket"));
    for (what, replaced, replace) in [
        ("a dangling link", "a.yaml", dangling),
        ("a FIFO", "a.yaml", fifo),
        ("a socket", "a.yaml", socket),
        ("a dangling link above it", "sub", dangling),
        ("a FIFO above it", "sub", fifo),
    ] {
        let path = if replaced == "sub" {
            "sub/a.yaml"
        } else {
            "a.yaml"
        };
        let mut watched = Watched::new(|folder| {
            fs::create_dir(folder.join("sub")).expect("a folder");
            fs::write(folder.join(path), secret("a", "x")).expect("written");
        });
        assert_eq!(names(&watched.set), ["a=x"]);
        // As a deployment does it: the new one is made elsewhere and moved into its place.
        let other = tempfile::tempdir().expect("a folder");
        replace(&other.path().join("new"));
        // In one step, or the store may see the moment at which there is nothing.
        let exchange = rustix::fs::RenameFlags::EXCHANGE;
        let (new, old) = (other.path().join("new"), watched.path(replaced));
        rustix::fs::renameat_with(rustix::fs::CWD, &new, rustix::fs::CWD, &old, exchange)
            .expect("exchanged");
        let update = watched.until(what, |update| !update.diagnostics.is_empty());
        assert_eq!(names(&update.set), ["a=x"], "{what}");
        assert_eq!(update.quarantined.len(), 1, "{what}");
        fs::remove_file(watched.path(replaced)).expect("removed");
        watched.until_names(&[]);
        fs::create_dir_all(watched.path(path).parent().expect("a folder")).expect("a folder");
        watched.write(path, &secret("a", "w"));
        watched.until_names(&["a=w"]);
    }
}

/// Tests dangling links, which editors use as locks, and other entries that never were a file.
#[test]
fn entry_that_was_never_a_file_is_ignored() {
    let watched = Watched::new(|folder| {
        fs::write(folder.join("a.yaml"), secret("a", "x")).expect("written");
        symlink("me@host.1", folder.join(".#a.yaml")).expect("a link");
    });
    assert_eq!(names(&watched.set), ["a=x"]);
    let loaded = load_files(&[watched.folder.path().to_owned()], LoadOptions::default());
    assert_eq!(show(&loaded.diagnostics), "");
    // a volume whose files are not there yet
    symlink("..data/b.yaml", watched.path("b.yaml")).expect("a link");
    let loaded = load_files(&[watched.folder.path().to_owned()], LoadOptions::default());
    assert_eq!(
        show(&loaded.diagnostics),
        "error SRC002 b.yaml:0:0 this link points to nothing"
    );
}
