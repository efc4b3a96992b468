//! Tests that objects of other projects load to the same result after conversion to a body and back.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::testing::{differences, documents, loaded, round_trip};
use crate::kind::Kind;
use crate::kinds::rows;

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
}

/// Returns the kind of a document, if it is supported.
fn kind_of(document: &Value) -> Option<Kind> {
    let text = |key| document[key].as_str();
    let (kind, version) = (text("kind")?, text("apiVersion")?);
    let mut rows = rows().filter(|row| row.api_versions.contains(&version));
    rows.find(|row| row.kind.as_str() == kind)
        .map(|row| row.kind)
}

#[test]
fn examples_and_samples_load_to_the_same_objects() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["../examples", "tests/samples"] {
        yaml_files(&base.join(folder), &mut files);
    }
    let (mut with_messages, mut others) = (0, 0);
    let mut different = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for document in documents(&text) {
            let Some(kind) = kind_of(&document) else {
                continue;
            };
            let mut copy = document.clone();
            if document.get("spec").is_some() {
                copy["spec"] = round_trip(kind, &document["spec"]);
            } else {
                copy = round_trip(Kind::Secret, &document);
            }
            let (before, after) = (loaded(&document), loaded(&copy));
            if before != after {
                let lines = differences(&before.0, &after.0);
                different.push(format!("{}: {:?} {lines:?}", file.display(), after.1));
            }
            match crate::xds_body::from_json(kind, &document["spec"]) {
                Ok((url, _)) if url.contains("istio") => with_messages += 1,
                _ => others += 1,
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(with_messages > 100, "{with_messages}");
    assert!(others > 20, "{others}");
}
