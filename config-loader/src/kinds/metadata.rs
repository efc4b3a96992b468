//! Checks of `metadata`: names, labels and age.

use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::codes::common::{CM020, CM030, CM031};
use crate::diagnostic::{Diagnostic, Locator};
use crate::kind::{Kind, ObjectRef, UNREADABLE_NAMESPACE};
use crate::parse::Node;
use crate::raw::{Field, Map, ObjectMeta};
use crate::resource::shared_text;
use crate::span::Span;
use crate::validate::{Annotations, Check, scalar};

/// Checked metadata.
#[derive(Debug)]
pub(super) struct Metadata {
    /// Name; `None` if it is missing or invalid.
    pub(super) name: Option<Arc<str>>,
    pub(super) name_span: Span,
    /// Whether name and namespace are valid.
    pub(super) has_good_name: bool,
    pub(super) namespace: Arc<str>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Annotations that Strait reads, as written.
    pub(super) own_annotations: Annotations,
    pub(super) created: Option<i64>,
    /// `metadata.generation` of the object.
    pub(super) generation: Option<i64>,
}

/// Namespace of objects without `metadata.namespace`.
const DEFAULT_NAMESPACE: &str = "default";

pub(super) fn check(
    kind: Kind,
    field: &Field<ObjectMeta>,
    node: &Node,
    locator: Locator<'_>,
    found: &mut Vec<Diagnostic>,
) -> Metadata {
    let unnamed = ObjectRef::new(kind, DEFAULT_NAMESPACE, "");
    let mut check = Check::new(&unnamed, locator, node.key_span("kind"));
    let empty = ObjectMeta::default();
    let meta = field.get().unwrap_or(&empty);
    let metadata_key = node.key_span(if field.is_written() {
        "metadata"
    } else {
        "kind"
    });
    let name = name(meta, metadata_key, &mut check);
    let namespace = match field.is_invalid() || meta.namespace.is_invalid() {
        true => shared_text(UNREADABLE_NAMESPACE),
        false => namespace(&meta.namespace, kind, &mut check),
    };
    let is_readable = *namespace != *UNREADABLE_NAMESPACE;
    let metadata = Metadata {
        has_good_name: name.is_some() && is_readable && !check.failed(),
        name,
        name_span: if meta.name.is_written() {
            meta.name.span()
        } else {
            metadata_key
        },
        namespace,
        labels: scalar::labels(&meta.labels, &mut check),
        annotations: annotations(&meta.annotations),
        own_annotations: Annotations::of(&meta.annotations),
        created: created(&meta.creation_timestamp, &mut check),
        generation: meta.generation.get().and_then(generation),
    };
    found.append(&mut check.into_found());
    metadata
}

fn name(meta: &ObjectMeta, metadata_key: Span, check: &mut Check<'_>) -> Option<Arc<str>> {
    let Some(name) = meta.name.get().filter(|name| !name.is_empty()) else {
        if !meta.name.is_invalid() {
            let span = if meta.name.is_written() {
                meta.name.span()
            } else {
                metadata_key
            };
            let found = check.error(CM020, span, "the object has no name");
            if meta.generate_name.is_written() {
                found.help("a file cannot use generateName: write metadata.name");
            } else {
                found.help("write metadata.name");
            }
        }
        return None;
    };
    if !scalar::is_object_name(name) {
        let message = format!("`{name}` is not a name of an object");
        let found = check.error(CM030, meta.name.span(), message);
        match name.len() {
            254.. => found.help("use 253 characters at most"),
            _ => found.help("use lower-case letters, digits, `-` and `.`"),
        };
    }
    Some(Arc::from(name.as_str()))
}

/// Returns the namespace. An invalid one is that of other kinds than security policies as written, for messages.
fn namespace(field: &Field<String>, kind: Kind, check: &mut Check<'_>) -> Arc<str> {
    match field.get().map(String::as_str) {
        None | Some("") => shared_text(DEFAULT_NAMESPACE),
        Some(namespace) => {
            if !scalar::is_dns_label(namespace)
                || namespace.bytes().any(|byte| byte.is_ascii_uppercase())
            {
                check
                    .error(
                        CM030,
                        field.span(),
                        format!("`{namespace}` is not a namespace"),
                    )
                    .help("use lower-case letters, digits and `-`");
                if kind.is_security() {
                    return shared_text(UNREADABLE_NAMESPACE);
                }
            }
            shared_text(namespace)
        }
    }
}

fn annotations(field: &Field<Map<String>>) -> BTreeMap<String, String> {
    let entries = field.get().into_iter().flat_map(Map::iter);
    entries
        .map(|(key, _, value)| (key.to_owned(), value.get().cloned().unwrap_or_default()))
        .collect()
}

/// Reads a number or its text; nothing else is checked.
fn generation(value: &serde_json::Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn created(field: &Field<String>, check: &mut Check<'_>) -> Option<i64> {
    let text = field.get()?;
    let seconds = rfc3339_seconds(text);
    if seconds.is_none() {
        check
            .warning(
                CM031,
                field.span(),
                format!("`{text}` is not a time; the object counts as the oldest"),
            )
            .help("write for example `2024-01-31T12:00:00Z`");
    }
    seconds
}

/// Returns the seconds since 1970 of a time such as `2024-01-31T12:00:00Z`.
fn rfc3339_seconds(text: &str) -> Option<i64> {
    Some(text.parse::<Timestamp>().ok()?.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_parsed() {
        for (text, wanted) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:34:56Z", Some(951_827_696)),
            ("2024-01-31T12:00:00.5+02:00", Some(1_706_695_200)),
            ("2024-01-31 12:00:00Z", Some(1_706_702_400)),
            ("2024-01-31", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-02-30T00:00:00Z", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(rfc3339_seconds(text), wanted, "{text}");
        }
    }
}
