//! Fuzz target: arbitrary bytes as a configuration file. Loading never panics, is deterministic, and its result can be
//! printed.

use config_loader::diagnostic::render::{Style, github, json, text};
use config_loader::{Diagnostic, Diagnostics, ResourceSet, load_bytes};

const FILE: &str = "fuzz.yaml";

/// Loads the bytes and checks the result.
pub fn run(bytes: &[u8]) {
    let (set, found) = load(bytes);
    let (again, found_again) = load(bytes);
    assert_eq!(
        set.len(),
        again.len(),
        "the same bytes give the same objects"
    );
    assert_eq!(found, found_again, "the same bytes give the same findings");

    let lines = bytes
        .iter()
        .filter(|byte| matches!(byte, b'\n' | b'\r'))
        .count()
        + 1;
    for diagnostic in &found {
        assert_eq!(
            &*diagnostic.location.file, FILE,
            "findings are about the file"
        );
        assert!(
            diagnostic.location.line as usize <= lines,
            "a place lies in the file: {diagnostic:?}"
        );
        assert!(
            !diagnostic.message.is_empty(),
            "a finding says something: {diagnostic:?}"
        );
    }
    let listed = json(&found);
    assert_eq!(
        listed.as_array().map(Vec::len),
        Some(found.len()),
        "JSON lists every finding"
    );
    assert_eq!(
        github(&found).lines().count(),
        found.len(),
        "an annotation is one line"
    );
    if !found.is_empty() {
        assert!(
            !text(&found, Style::Plain).is_empty(),
            "findings are printed"
        );
    }
}

fn load(bytes: &[u8]) -> (ResourceSet, Vec<Diagnostic>) {
    let mut diagnostics = Diagnostics::default();
    let set = load_bytes(FILE, bytes, &mut diagnostics);
    (set, diagnostics.into_sorted())
}
