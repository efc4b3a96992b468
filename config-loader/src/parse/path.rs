//! Conversion of spans to field paths.

use std::fmt::Write as _;

use super::node::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, Locator};
use crate::span::Span;

/// Computes locations and paths. A field that is already set is relative to the mapping at the location.
pub(crate) fn place_all(found: &mut [Diagnostic], root: Option<&Node>, locator: &Locator<'_>) {
    for diagnostic in found {
        let (mut field, marked) = match root {
            Some(root) if !diagnostic.span.is_none() => locate(root, diagnostic.span),
            _ => (String::new(), diagnostic.span),
        };
        if !diagnostic.field.is_empty() {
            push_key(&mut field, &diagnostic.field);
        }
        diagnostic.field = field;
        diagnostic.location = locator.location(marked);
    }
}

/// Returns the path of the node at `span`, and the part of the span to mark: the key, if the value is a block of
/// several lines.
///
/// A path has the form `spec.http[2].match[0].uri`; it is empty for the whole document.
pub fn locate(root: &Node, span: Span) -> (String, Span) {
    let mut path = String::new();
    let mut node = root;
    let mut key = None;
    loop {
        if node.span == span {
            let block = matches!(node.value, Value::Map(_) | Value::List(_));
            return (path, key.filter(|_| block).unwrap_or(span));
        }
        match &node.value {
            Value::Map(entries) => {
                let holds = |found: Span| found.contains(span);
                let here = |entry: &&Entry| holds(entry.key.span) || holds(entry.value.span);
                // Entries are in order, except entries from an alias or a merge key.
                let after = entries.partition_point(|entry| entry.key.span.start <= span.start);
                let likely = entries[..after].last().filter(here);
                let Some(entry) = likely.or_else(|| entries.iter().find(here)) else {
                    return (path, span);
                };
                push_key(&mut path, &entry.key.text);
                if holds(entry.key.span) {
                    return (path, span);
                }
                key = Some(entry.key.span);
                node = &entry.value;
            }
            Value::List(items) => {
                let after = items.partition_point(|item| item.span.start <= span.start);
                let likely = after
                    .checked_sub(1)
                    .filter(|&index| items[index].span.contains(span));
                let found =
                    likely.or_else(|| items.iter().position(|item| item.span.contains(span)));
                let Some(index) = found else {
                    return (path, span);
                };
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
                key = None;
                node = &items[index];
            }
            _ => return (path, span),
        }
    }
}

/// Appends a key to a path.
pub(crate) fn push_key(path: &mut String, key: &str) {
    let plain = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if plain {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
    } else {
        let _ = write!(path, "[{key:?}]");
    }
}
