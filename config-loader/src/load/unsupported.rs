//! Finds in a document what has no effect in this version.

use crate::diagnostic::codes::common::CM024;
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::Kind;
use crate::parse::{Entry, Node, Value};
use crate::span::Span;
use crate::validate::unsupported::{ROWS, When};

/// Warns of every written field that has no effect.
pub(super) fn report(kind: Kind, root: &Node, found: &mut Vec<Diagnostic>) {
    for row in ROWS.iter().filter(|row| row.kind == kind) {
        if row.path.is_empty() {
            let span = super::draft::key_span(root, "kind");
            warn(
                found,
                span,
                format!("not supported yet: {kind} has no effect"),
            );
            continue;
        }
        let segments: Vec<&str> = row.path.split('.').collect();
        walk(root, &segments, &mut |node, entry| {
            let name = segments
                .last()
                .copied()
                .unwrap_or("")
                .trim_end_matches("[]");
            match (row.when, node.text()) {
                (When::Written, _) => {
                    let span = entry.map_or(node.span, |entry| entry.key.span);
                    warn(
                        found,
                        span,
                        format!("not supported yet: `{name}` has no effect"),
                    );
                }
                (When::Is(values), Some(text)) if values.contains(&text) => {
                    warn(
                        found,
                        node.span,
                        format!("not supported yet: `{name}: {text}`"),
                    );
                }
                (When::IsNot(values), Some(text)) if !values.contains(&text) => {
                    warn(
                        found,
                        node.span,
                        format!("not supported yet: `{name}: {text}`"),
                    );
                }
                _ => {}
            }
        });
    }
}

fn warn(found: &mut Vec<Diagnostic>, span: Span, message: String) {
    found.push(Diagnostic::at(Severity::Warning, CM024, span, message));
}

/// Calls `visit` for every node at a path, with the entry that holds it. Nulls count as absent.
fn walk<'n>(node: &'n Node, path: &[&str], visit: &mut impl FnMut(&'n Node, Option<&'n Entry>)) {
    let Some((segment, rest)) = path.split_first() else {
        return;
    };
    let name = segment.trim_end_matches("[]");
    for entry in node.entries() {
        if (name != "*" && name != &*entry.key.text) || entry.value.value == Value::Null {
            continue;
        }
        if segment.ends_with("[]") {
            for item in entry.value.items() {
                if rest.is_empty() {
                    visit(item, None)
                } else {
                    walk(item, rest, visit)
                }
            }
        } else if rest.is_empty() {
            visit(&entry.value, Some(entry));
        } else {
            walk(&entry.value, rest, visit);
        }
    }
}
