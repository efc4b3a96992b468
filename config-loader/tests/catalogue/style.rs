//! Form of diagnostics: message, location and fix. Checked on the cases of this catalogue, and on the examples and
//! samples after each of their lines was damaged in several ways.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use config_loader::Diagnostic;

use super::tables;

/// Collects every YAML file below the directory.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "yaml") {
            found.push(path);
        }
    }
}

/// Returns variants of the text: one line removed, or with another value or key. Lines in `seen` are skipped.
fn damaged(text: &str, seen: &mut BTreeSet<String>) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let kind = lines.iter().find(|line| line.starts_with("kind: "));
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let key = line.split_once(": ").map_or(*line, |(key, _)| key);
        if !seen.insert(format!("{kind:?} {key}")) {
            continue;
        }
        let mut with = |new: Option<String>| {
            let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            match new {
                Some(new) => changed[number] = new,
                None => drop(changed.remove(number)),
            }
            all.push(changed.join("\n") + "\n");
        };
        with(None);
        let Some((key, value)) = line.split_once(": ") else {
            continue;
        };
        for junk in ["-1", "[]", "a/b c"] {
            with(Some(format!("{key}: {junk}")));
        }
        with(Some(format!("{key}x: {value}")));
        with(Some(format!("{line}\n{line}")));
    }
    all
}

fn load(text: &str) -> Vec<Diagnostic> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("case.yaml");
    std::fs::write(&path, text).unwrap();
    config_loader::load_files(&[path], config_loader::LoadOptions::default()).diagnostics
}

/// Codes whose diagnostics need no fix, with the reason.
const WITHOUT_FIX: [(&str, &str); 2] = [
    ("CM026", "a note: nothing is wrong"),
    ("YAML001", "the YAML parser says what it expects where"),
];

/// Message parts of Kubernetes API errors that state the allowed or the duplicate value, which is the fix.
const STATES_ALLOWED_VALUES: [&str; 5] = [
    "Duplicate value: ",
    "must ",
    "Required value",
    "supported values: ",
    "is required",
];

/// Returns the error in the form of a diagnostic.
fn complaint(found: &Diagnostic) -> Option<&'static str> {
    let message = found.message.as_str();
    let first = message.split([' ', ':', '=']).next().unwrap_or_default();
    // a constant, a kind or a form of the Kubernetes APIs may begin with a capital letter
    let is_name = first.chars().skip(1).any(char::is_uppercase)
        || [
            "Gateway",
            "Namespace",
            "Secret",
            "Service",
            "Invalid",
            "Required",
            "Unsupported",
            "Duplicate",
            "Valid",
        ]
        .contains(&first);
    let without_fix = WITHOUT_FIX.iter().any(|(code, _)| found.code.0 == *code)
        || STATES_ALLOWED_VALUES
            .iter()
            .any(|form| message.contains(form));
    let help = found.help.as_deref().unwrap_or_default();
    if message.is_empty() {
        Some("has no message")
    } else if message.ends_with(['.', '!']) {
        Some("has a message that ends with a full stop")
    } else if message.starts_with(char::is_uppercase) && !is_name {
        Some("has a message that begins with a capital letter")
    } else if found.location.line == 0
        || found.location.column == 0
        || found.location.file.is_empty()
    {
        Some("has no location")
    } else if help.is_empty() && !without_fix {
        Some("has no fix")
    } else {
        None
    }
}

#[test]
fn every_diagnostic_has_message_location_and_fix() {
    let mut texts: Vec<String> = Vec::new();
    for table in tables() {
        texts.extend(table.cases.iter().map(|case| (table.around)(case.1)));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    files(&root.join("../examples"), &mut paths);
    files(&root.join("tests/samples"), &mut paths);
    paths.sort();
    let mut lines = BTreeSet::new();
    for path in paths {
        let text = std::fs::read_to_string(path).unwrap();
        texts.extend(damaged(&text, &mut lines));
    }
    let mut codes = BTreeSet::new();
    let mut complaints = BTreeMap::new();
    for found in texts.iter().flat_map(|text| load(text)) {
        codes.insert(found.code.to_string());
        if let Some(what) = complaint(&found) {
            complaints.insert(format!("{} {what}", found.code), found.message);
        }
    }
    assert!(codes.len() > 250, "{} {codes:?}", codes.len());
    assert!(complaints.is_empty(), "{complaints:#?}");
}
