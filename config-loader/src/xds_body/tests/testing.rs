//! Helpers that the tests share.

use std::sync::Arc;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Locator, Severity};
use crate::kind::Kind;
use crate::kinds::rows;
use crate::parse::{self, Chunk, Node};
use crate::span::Lines;
use crate::xds_body::{Decoded, from_json, to_json};
use crate::{Diagnostics, load_bytes};

/// Converts a body to protobuf and back. Checks that the result converts to the same bytes.
pub(super) fn round_trip(kind: Kind, spec: &Value) -> Value {
    let (type_url, bytes) = from_json(kind, spec).unwrap_or_else(|error| panic!("{error}: {spec}"));
    let Decoded { spec, unknown } = to_json(&type_url, &bytes).unwrap();
    assert!(unknown.is_empty(), "{unknown:?}");
    let again = from_json(kind, &spec).unwrap();
    assert_eq!(again, (type_url, bytes), "{spec}");
    spec
}

/// Returns the documents of a file, as JSON.
pub(super) fn documents(text: &str) -> Vec<Value> {
    let file: Arc<str> = "test.yaml".into();
    let mut documents = Vec::new();
    for chunk in parse::split(text) {
        let lines = Lines::new(chunk.text);
        let Chunk {
            text, first_line, ..
        } = chunk;
        let locator = Locator {
            file: &file,
            text,
            lines: &lines,
            first_line,
            secret: false,
            bool_keys: false,
        };
        documents.extend(parse::tree(&locator, &mut Vec::new()).map(|node| json_of(&node)));
    }
    documents
}

fn json_of(node: &Node) -> Value {
    match &node.value {
        parse::Value::Null => Value::Null,
        parse::Value::Bool(value) => json!(value),
        parse::Value::Int(value) => json!(value),
        parse::Value::Float(value) => json!(value),
        parse::Value::Text(value) => json!(value),
        parse::Value::List(items) => items.iter().map(json_of).collect(),
        parse::Value::Map(entries) => entries
            .iter()
            .map(|entry| (entry.key.text.to_string(), json_of(&entry.value)))
            .collect(),
    }
}

/// Creates an object with this spec and the first apiVersion of its kind.
pub(super) fn object(kind: Kind, spec: Value) -> Value {
    let row = rows().find(|row| row.kind == kind).unwrap();
    json!({
        "apiVersion": row.api_versions[0],
        "kind": kind.as_str(),
        "metadata": {"name": "tested", "namespace": "prod"},
        "spec": spec,
    })
}

/// Loads a document. Returns the object without its lines, and the errors.
pub(super) fn loaded(document: &Value) -> (String, Vec<String>) {
    let text = serde_json::to_string_pretty(&sorted(document)).unwrap();
    let mut diagnostics = Diagnostics::default();
    let set = load_bytes("test.json", text.as_bytes(), &mut diagnostics);
    let lines =
        Regex::new(r"Line\(\s*\d+,?\s*\)|[a-z_]*line: \d+|fingerprint: \d+|places: \[[^\]]*\]")
            .unwrap();
    let found = diagnostics.into_sorted();
    let found = found
        .iter()
        .filter(|found| found.severity == Severity::Error);
    let says = |found: &Diagnostic| format!("{} {}", found.code, found.message);
    (
        lines.replace_all(&format!("{set:#?}"), "_").into_owned(),
        found.map(says).collect(),
    )
}

/// Returns the value with the keys of all mappings sorted.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            let entries = entries
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        value => value.clone(),
    }
}

/// Returns the lines in which two texts differ.
pub(super) fn differences(one: &str, other: &str) -> Vec<String> {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let (one, other) = (lines(one), lines(other));
    let only = |sign: char, lines: &[String], others: &[String]| -> Vec<String> {
        let lines = lines.iter().filter(|line| !others.contains(line));
        lines
            .map(|line| format!("{sign}{}", line.trim_start()))
            .collect()
    };
    [only('-', &one, &other), only('+', &other, &one)].concat()
}
