//! `--watch`: the tests again at each change of a file.

use std::path::PathBuf;
use std::sync::mpsc;

use super::args::TestArgs;
use crate::command::{EXIT_INTERNAL, report};

/// Runs the tests at the start and after each change below the directories of the test files and of the configuration.
pub(super) fn run(args: &TestArgs, files: &[PathBuf], once: fn(&TestArgs, &[PathBuf]) -> u8) -> u8 {
    let (changed, changes) = mpsc::channel();
    let watch = config_loader::watch_changes(&watched(args, files), move || {
        // the receiver is there until the process ends
        _ = changed.send(());
    });
    let _watch = match watch {
        Ok(watch) => watch,
        Err(error) => {
            report(&format!("--watch: {error}"));
            return EXIT_INTERNAL;
        }
    };
    // the first change is reported at the start
    while changes.recv().is_ok() {
        once(args, files);
    }
    EXIT_INTERNAL
}

fn watched(args: &TestArgs, files: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = args.config.clone();
    for file in files {
        if let Ok((test, _)) = config_loader::read_settings::<config_loader::TestFile>(file) {
            all.extend(super::runner::config_of(&test, file, &args.config));
        }
        all.push(file.clone());
    }
    all.sort();
    all.dedup();
    all
}
