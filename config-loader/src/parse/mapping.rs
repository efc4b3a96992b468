//! Completion of a mapping: duplicate keys and merge keys.

use std::collections::HashSet;
use std::sync::Arc;

use super::node::{Entry, Key, Node, Value};
use crate::diagnostic::codes::common::{YAML002, YAML009};
use crate::diagnostic::{Diagnostic, Locator, Severity};

/// Keeps the first of several entries with the same key, and reports the others.
pub(super) fn refuse_duplicates(
    entries: &mut Vec<Entry>,
    locator: &Locator<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&a, &b| {
        entries[a]
            .key
            .text
            .cmp(&entries[b].key.text)
            .then(a.cmp(&b))
    });
    let mut repeated = vec![false; entries.len()];
    let mut first = 0;
    for at in 1..order.len() {
        if entries[order[at]].key.text != entries[order[first]].key.text {
            first = at;
            continue;
        }
        let Key { span, text } = &entries[order[at]].key;
        let mut duplicate = Diagnostic::at(
            Severity::Error,
            YAML002,
            *span,
            format!("the key `{text}` is given twice"),
        );
        // The entry will not be in the tree: its mapping's path lacks it.
        duplicate.field = text.to_string();
        duplicate.related(
            locator.location(entries[order[first]].key.span),
            "first given here",
        );
        duplicate.help("remove one of the two");
        found.push(duplicate);
        repeated[order[at]] = true;
    }
    let mut repeated = repeated.into_iter();
    entries.retain(|_| !repeated.next().unwrap_or(false));
}

/// Adds entries of `<<` that the mapping does not have itself. If several have the same key, the first wins.
pub(super) fn merge(entries: &mut Vec<Entry>, merges: Vec<Node>, found: &mut Vec<Diagnostic>) {
    if merges.is_empty() {
        return;
    }
    let mut known: HashSet<Arc<str>> = entries.iter().map(|entry| entry.key.text.clone()).collect();
    for merged in merges {
        let span = merged.span;
        let maps = match merged.value {
            Value::List(items) => items,
            _ => vec![merged],
        };
        for map in maps {
            let Value::Map(more) = map.value else {
                let message = "`<<` takes a mapping or a list of mappings".to_owned();
                found.push(Diagnostic::at(Severity::Error, YAML009, span, message));
                continue;
            };
            for entry in more {
                if known.insert(entry.key.text.clone()) {
                    entries.push(entry);
                }
            }
        }
    }
}
