//! Lists, oneofs, labels, selectors, and visibility (`exportTo`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::name::{is_dns_label, is_label_key, is_label_value};
use crate::diagnostic::Code;
use crate::diagnostic::codes::common::{
    CM004, CM005, CM006, CM007, CM008, CM011, CM012, CM013, CM014, CM015, CM018,
};
use crate::raw::{Field, Map};
use crate::resource::{DefaultExport, ExportTo};
use crate::span::Span;
use crate::validate::Check;

/// Help text about the characters of a label value.
const LABEL_FORM: &str =
    "write up to 63 letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends";

/// Returns the entries of a list. Null entries are errors.
pub fn items<'f, T>(
    list: &'f Field<Vec<Field<T>>>,
    check: &mut Check<'_>,
) -> Vec<(&'f Field<T>, &'f T)> {
    let Some(entries) = list.get() else {
        return Vec::new();
    };
    let mut present = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        match entry.get() {
            Some(value) => present.push((entry, value)),
            None if entry.is_null() => {
                check
                    .error(CM018, entry.span(), format!("entry {index} is null"))
                    .help("remove the entry");
            }
            None => {}
        }
    }
    present
}

/// Checks that at most one field of a oneof is set. Each has its name and its span, [`Span::NONE`] if it is not set.
/// Returns whether that is the case.
pub fn at_most_one(members: &[(&str, Span)], code: Code, check: &mut Check<'_>) -> bool {
    let mut set: Vec<&(&str, Span)> = members.iter().filter(|(_, span)| !span.is_none()).collect();
    let names: Vec<String> = set.iter().map(|(name, _)| format!("`{name}`")).collect();
    set.sort_by_key(|(_, span)| *span);
    let [first, second, ..] = set.as_slice() else {
        return true;
    };
    let location = check.location(first.1);
    let last = names.len() - 1;
    let message = format!(
        "only one of {} and {} may be set",
        names[..last].join(", "),
        names[last]
    );
    check
        .error(code, second.1, message)
        .help("keep the one that is meant, and remove the others")
        .related(location, format!("`{}` is set here", first.0));
    false
}

/// Returns a map of labels with valid keys and values.
pub fn labels(field: &Field<Map<String>>, check: &mut Check<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, key_field, value_field) in field.get().into_iter().flat_map(Map::iter) {
        // A null value is an empty text, as Kubernetes reads it.
        let value = value_field.get().map_or("", String::as_str);
        label(key, key_field.span(), value, value_field.span(), check);
        labels.insert(key.to_owned(), value.to_owned());
    }
    labels
}

/// Returns the labels of a selector. Wildcards are errors, and an empty selector gets a warning. See [`labels`].
pub fn selector(field: &Field<Map<String>>, check: &mut Check<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(map) = field.get() else {
        return labels;
    };
    if map.0.is_empty() {
        check.warning(
            CM013,
            field.span(),
            "selector without labels applies to the whole namespace",
        );
    }
    for (key, key_field, value_field) in map.iter() {
        let value = value_field.get().map_or("", String::as_str);
        let (key_span, value_span) = (key_field.span(), value_field.span());
        if key.is_empty() {
            check
                .error(CM011, key_span, "selector has an empty key")
                .help("write the name of a label, such as `app`");
        } else if key.contains('*') || value.contains('*') {
            let span = if key.contains('*') {
                key_span
            } else {
                value_span
            };
            check
                .error(
                    CM012,
                    span,
                    format!("selector `{key}: {value}` must not contain wildcards"),
                )
                .help("write the whole label; labels that may be any are left out");
        } else {
            label(key, key_span, value, value_span, check);
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    labels
}

fn label(key: &str, key_span: Span, value: &str, value_span: Span, check: &mut Check<'_>) {
    if !is_label_key(key) {
        check
            .error(CM014, key_span, format!("`{key}` is not a valid label key"))
            .help(LABEL_FORM);
    }
    if !is_label_value(value) {
        check
            .error(
                CM015,
                value_span,
                format!("`{value}` is not a valid label value"),
            )
            .help(LABEL_FORM);
    }
}

/// Returns the namespaces that a resource is visible to; `default` without any. `~` (no namespace) is accepted only if
/// `tilde_allowed` is set.
pub fn export_to(
    field: &Field<Vec<Field<String>>>,
    tilde_allowed: bool,
    default: DefaultExport,
    check: &mut Check<'_>,
) -> ExportTo {
    let entries = items(field, check);
    let alone = entries.len() == 1;
    let mut namespaces: BTreeMap<Arc<str>, Span> = BTreeMap::new();
    for (entry, text) in entries {
        let span = entry.span();
        export_to_entry(text, span, alone, tilde_allowed, check);
        let namespace: Arc<str> = if text == "." {
            Arc::from(check.namespace())
        } else {
            Arc::from(text.as_str())
        };
        if let Some(first) = namespaces.get(&namespace) {
            let location = check.location(*first);
            check
                .error(CM004, span, format!("exportTo names `{namespace}` twice"))
                .help("remove one of the two; `.` means the resource's own namespace")
                .related(location, "first named here");
            continue;
        }
        namespaces.insert(namespace, span);
    }
    if namespaces.is_empty() {
        return default.of(check.namespace());
    }
    if namespaces.contains_key("*") {
        return ExportTo::All;
    }
    if namespaces.contains_key("~") {
        return ExportTo::NoNamespace;
    }
    ExportTo::Namespaces(namespaces.into_keys().collect())
}

fn export_to_entry(
    text: &str,
    span: Span,
    alone: bool,
    tilde_allowed: bool,
    check: &mut Check<'_>,
) {
    match text {
        "*" if !alone => {
            check
                .error(
                    CM007,
                    span,
                    "exportTo `*` cannot be combined with other entries",
                )
                .help("`*` means every namespace: remove it, or the others");
        }
        "~" if !tilde_allowed => {
            check
                .error(CM006, span, "exportTo `~` is only allowed on ServiceEntry")
                .help("write `.` to keep it to its own namespace");
        }
        "~" if !alone => {
            check
                .error(
                    CM008,
                    span,
                    "exportTo `~` cannot be combined with other entries",
                )
                .help("`~` means no namespace: remove it, or the others");
        }
        "*" | "." | "~" => {}
        _ if is_dns_label(text) => {}
        _ => {
            check
                .error(
                    CM005,
                    span,
                    format!("exportTo entry `{text}` is not a namespace"),
                )
                .help("write `.`, `*` or the name of a namespace");
        }
    }
}
