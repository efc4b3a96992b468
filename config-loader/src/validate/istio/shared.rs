//! Helpers that the Istio validators share: texts that count as missing if empty, mutually exclusive fields, host
//! names, and references to other objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::Check;
use crate::diagnostic::Code;
use crate::diagnostic::codes::common::{CM013, CM016};
use crate::kind::Name;
use crate::raw::{self, Field, Map};
use crate::span::{Line, Span};
use crate::validate::scalar;

/// Returns the text of a field; `None` if it is empty, which counts as missing in these kinds.
pub(super) fn text(field: &Field<String>) -> Option<&str> {
    field
        .get()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
}

/// Returns the text of a field as an `Arc`; see [`text`].
pub(super) fn text_arc(field: &Field<String>) -> Option<Arc<str>> {
    text(field).map(Arc::from)
}

/// Returns the text of a field; empty if missing.
pub(super) fn text_or_empty(field: &Field<String>) -> Arc<str> {
    text_arc(field).unwrap_or_default()
}

/// Whether a flag is set; false if missing.
pub(super) fn flag(field: &Field<bool>) -> bool {
    field.get().copied().unwrap_or(false)
}

/// Returns the span of a block; [`Span::NONE`] if it is missing.
pub(super) fn block<T>(field: &Field<T>) -> Span {
    if field.is_set() {
        field.span()
    } else {
        Span::NONE
    }
}

/// Returns the span of a list; [`Span::NONE`] if it is missing or empty.
pub(super) fn list<T>(field: &Field<Vec<T>>) -> Span {
    match field.get() {
        Some(entries) if entries.is_empty() => Span::NONE,
        _ => block(field),
    }
}

/// Returns the span of a text; [`Span::NONE`] if it is missing or empty.
pub(super) fn text_span(field: &Field<String>) -> Span {
    match field.get() {
        Some(text) if text.is_empty() => Span::NONE,
        _ => block(field),
    }
}

/// Returns the span of a map; [`Span::NONE`] if it is missing or empty.
pub(super) fn map_span<T>(field: &Field<Map<T>>) -> Span {
    match field.get() {
        Some(map) if !map.0.is_empty() => field.span(),
        _ => Span::NONE,
    }
}

/// Returns the span for a diagnostic about a missing value: that of `field` if it is present, else `around`.
pub(super) fn location<T>(field: &Field<T>, around: Span) -> Span {
    if field.is_written() {
        field.span()
    } else {
        around
    }
}

/// Returns the line of a field, or of the whole object if the field is missing.
pub(super) fn line<T>(field: &Field<T>, check: &Check<'_>) -> Line {
    if field.is_written() {
        check.line(field.span())
    } else {
        Line::default()
    }
}

/// Returns the texts of a list.
pub(super) fn texts(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Arc<str>> {
    let entries = scalar::items(field, check);
    entries
        .into_iter()
        .map(|(_, text)| Arc::from(text.as_str()))
        .collect()
}

/// Reports two mutually exclusive fields that are both set. Each has its name and its span, [`Span::NONE`] if it is not
/// set. Returns whether they conflict.
pub(super) fn exclude(
    fields: [(&str, Span); 2],
    code: Code,
    help: &str,
    check: &mut Check<'_>,
) -> bool {
    let [a, b] = fields;
    if a.1.is_none() || b.1.is_none() {
        return false;
    }
    let (first, second) = if a.1 <= b.1 { (a, b) } else { (b, a) };
    let location = check.location(first.1);
    check
        .error(
            code,
            second.1,
            format!("`{}` and `{}` exclude each other", a.0, b.0),
        )
        .help(help)
        .related(location, format!("`{}` is set here", first.0));
    true
}

/// Returns the labels of the workload selector at the span `around`.
pub(super) fn selector(
    labels: &Field<Map<String>>,
    around: Span,
    check: &mut Check<'_>,
) -> BTreeMap<String, String> {
    if !labels.is_set() {
        check
            .warning(
                CM013,
                around,
                "selector without labels applies to the whole namespace",
            )
            .help("write labels, or remove the selector");
    }
    scalar::selector(labels, check)
}

/// Returns the port of a port selector, which is required.
pub(super) fn port_selector(
    field: &Field<raw::istio::PortSelector>,
    check: &mut Check<'_>,
) -> Option<u16> {
    let selector = field.get()?;
    if !selector.number.is_written() || selector.number.is_null() {
        check
            .error(CM016, field.span(), "the port has no number")
            .help("write `number: 80`, or remove the port");
        return None;
    }
    scalar::port(&selector.number, check)
}

/// Returns a list of IP addresses and CIDR blocks.
pub(super) fn subnets(
    field: &Field<Vec<Field<String>>>,
    code: Code,
    check: &mut Check<'_>,
) -> Vec<IpNet> {
    let mut nets = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        match scalar::subnet(text) {
            Some(net) => nets.push(net),
            None => {
                check
                    .error(code, entry.span(), format!("`{text}` is not a subnet"))
                    .help("write an IP address, or a CIDR such as `10.0.0.0/8`");
            }
        }
    }
    nets
}

/// Returns the name of an object from its namespace and name.
pub(super) fn name_of(namespace: &str, name: &str) -> Name {
    Name {
        namespace: Arc::from(namespace),
        name: Arc::from(name),
    }
}

/// Returns the path after `unix://`, if `text` has that form.
pub(super) fn unix_path(text: &str) -> Option<&str> {
    text.strip_prefix("unix://")
}

/// Whether `path` is the path of a Unix socket: absolute and without a trailing slash, or `@` and a name.
pub(super) fn is_socket_path(path: &str) -> bool {
    match path.strip_prefix('@') {
        Some(name) => !name.is_empty(),
        None => path.starts_with('/') && !path.ends_with('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_paths_must_be_absolute_or_abstract() {
        for (path, wanted) in [
            ("/run/a.sock", true),
            ("@a", true),
            ("@", false),
            ("", false),
            ("/run/", false),
            ("run/a", false),
        ] {
            assert_eq!(is_socket_path(path), wanted, "{path}");
        }
    }
}
