//! Documents as plain JSON values, for those who keep fields that they do not know.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::builder::tree;
use super::node::{Node, Value as Tree};
use super::path::place_all;
use crate::diagnostic::{Diagnostic, Location, Locator, Severity};
use crate::span::Lines;

impl Node {
    /// Returns the tree as JSON, without positions.
    pub fn to_json(&self) -> Value {
        match &self.value {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Int(value) => (*value).into(),
            Tree::Float(value) => (*value).into(),
            Tree::Text(text) => Value::String(text.to_string()),
            Tree::List(items) => items.iter().map(Node::to_json).collect(),
            Tree::Map(entries) => {
                let entries = entries.iter();
                let map: Map<String, Value> = entries
                    .map(|entry| (entry.key.text.to_string(), entry.value.to_json()))
                    .collect();
                map.into()
            }
        }
    }
}

/// Parses the only document of a text, which starts at a line of a file. An empty text is null.
///
/// # Errors
///
/// Returns all diagnostics, with their locations, if any of them is an error.
pub fn json(file: &Arc<str>, text: &str, first_line: u32) -> Result<Value, Vec<Diagnostic>> {
    let (lines, mut found) = (Lines::new(text), Vec::new());
    let locator = locator(file, text, &lines, first_line);
    let root = tree(&locator, &mut found);
    place_all(&mut found, root.as_ref(), &locator);
    match found.iter().any(|one| one.severity == Severity::Error) {
        true => Err(found),
        false => Ok(root.map_or(Value::Null, |root| root.to_json())),
    }
}

/// Returns the location of a key in the only document of a text.
pub fn location_of(file: &Arc<str>, text: &str, keys: &[String]) -> Location {
    let lines = Lines::new(text);
    let locator = locator(file, text, &lines, 1);
    let root = tree(&locator, &mut Vec::new());
    let mut node = root.as_ref();
    let mut span = crate::span::Span::NONE;
    for key in keys {
        span = node.map_or(span, |node| node.key_span(key));
        node = node.and_then(|node| node.get(key));
    }
    locator.location(span)
}

fn locator<'a>(
    file: &'a Arc<str>,
    text: &'a str,
    lines: &'a Lines,
    first_line: u32,
) -> Locator<'a> {
    Locator {
        file,
        text,
        lines,
        first_line,
        secret: false,
        bool_keys: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_read_with_locations_of_their_errors() {
        let file = Arc::from("a.yaml");
        let read = json(&file, "a: [1, x]\nb: &b {c: 1.5}\nd: *b\n", 3);
        assert_eq!(
            read,
            Ok(json!({"a": [1, "x"], "b": {"c": 1.5}, "d": {"c": 1.5}}))
        );
        let found = json(&file, "a: 1\nb: [\n", 3).unwrap_err();
        assert!(found[0].location.line >= 4, "{found:?}");
        let at = location_of(
            &file,
            "a: 1\nb:\n  c: 1\n",
            &["b".to_owned(), "c".to_owned()],
        );
        assert_eq!((at.line, at.column), (3, 3));
    }
}
