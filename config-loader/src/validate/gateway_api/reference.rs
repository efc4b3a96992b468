//! References to other objects.

use std::sync::Arc;

use super::shared::{NAME_MAX, entries, limit_text, missing, required_text};
use crate::diagnostic::codes::gateway_api::{GA103, GA115, GA116, GA117};
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{Backend, BackendRef, GROUP, ObjectReference, ParentRef};
use crate::resource::shared_text;
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const WEIGHT_MAX: u32 = 1_000_000;
/// Parents of a route.
const PARENTS_MAX: usize = 32;
/// Backends of a rule.
pub(super) const BACKENDS_MAX: usize = 16;

/// Fields of a reference.
#[derive(Clone, Copy)]
pub(super) struct Written<'f> {
    pub(super) group: &'f Field<String>,
    pub(super) kind: &'f Field<String>,
    /// Namespace; `None` if the reference has no such field.
    pub(super) namespace: Option<&'f Field<String>>,
    pub(super) name: &'f Field<String>,
}

impl<'f> From<&'f raw::ObjectReference> for Written<'f> {
    fn from(raw: &'f raw::ObjectReference) -> Written<'f> {
        Written {
            group: &raw.group,
            kind: &raw.kind,
            namespace: Some(&raw.namespace),
            name: &raw.name,
        }
    }
}

impl<'f> From<&'f raw::LocalReference> for Written<'f> {
    fn from(raw: &'f raw::LocalReference) -> Written<'f> {
        Written {
            group: &raw.group,
            kind: &raw.kind,
            namespace: None,
            name: &raw.name,
        }
    }
}

/// Group and kind of references without them; `None` if both must be written.
pub(super) type Default = Option<(&'static str, &'static str)>;

/// Group and kind of a reference to a certificate.
pub(super) const SECRET: Default = Some(("", "Secret"));
const SERVICE: Default = Some(("", "Service"));
pub(super) const GATEWAY: Default = Some((GROUP, "Gateway"));

/// Returns the reference at `span`.
pub(super) fn object(
    written: Written<'_>,
    default: Default,
    span: Span,
    check: &mut Check<'_>,
) -> Option<ObjectReference> {
    let group = group(written.group, default, span, check);
    let kind = match default {
        Some((_, kind)) if !written.kind.is_set() => Some(Arc::from(kind)),
        _ => kind(written.kind, span, check),
    };
    let namespace = match written.namespace {
        Some(field) if field.is_set() => namespace(field, span, check),
        _ => Some(shared_text(check.namespace())),
    };
    let name = required_text(written.name, span, "name", check);
    limit_text(written.name, NAME_MAX, check);
    Some(ObjectReference {
        group: group?,
        kind: kind?,
        namespace: namespace?,
        name: name?,
        line: check.line(span),
    })
}

/// Returns an API group, which may be empty.
pub(super) fn group(
    field: &Field<String>,
    default: Default,
    parent: Span,
    check: &mut Check<'_>,
) -> Option<Arc<str>> {
    let help = "write a group such as `gateway.networking.k8s.io`, or `\"\"` for the core group";
    match (field.get(), default) {
        (Some(text), _) if text.is_empty() || scalar::is_dns_subdomain(text) => {
            return Some(shared_text(text));
        }
        (Some(text), _) => {
            let message = format!("`{text}` is not an API group");
            check.error(GA103, field.span(), message).help(help);
        }
        (None, Some((group, _))) => return Some(Arc::from(group)),
        (None, None) if field.is_invalid() => {}
        (None, None) => _ = missing(parent, "group", check).help(help),
    }
    None
}

/// Returns a kind.
pub(super) fn kind(field: &Field<String>, parent: Span, check: &mut Check<'_>) -> Option<Arc<str>> {
    let kind = required_text(field, parent, "kind", check)?;
    if scalar::is_dns_label(&kind) && kind.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some(kind);
    }
    let found = check.error(GA103, field.span(), format!("`{kind}` is not a kind"));
    found.help("write a kind such as `Service`");
    None
}

/// Returns a namespace.
pub(super) fn namespace(
    field: &Field<String>,
    parent: Span,
    check: &mut Check<'_>,
) -> Option<Arc<str>> {
    let namespace = required_text(field, parent, "namespace", check)?;
    if api::is_label(&namespace) {
        return Some(namespace);
    }
    let message = format!("`{namespace}` is not a namespace");
    let found = check.error(GA103, field.span(), message);
    found.help("use lower-case letters, digits and `-`");
    None
}

/// Returns the name of a section: a listener, a rule or a port.
pub(super) fn section(field: &Field<String>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let name = field.get()?;
    if scalar::is_dns_subdomain(name) {
        return Some(shared_text(name));
    }
    let message = format!("`{name}` is not a name of a section");
    let found = check.error(GA103, field.span(), message);
    found.help("use lower-case letters, digits, `-` and `.`");
    None
}

/// Returns the parents of a route.
pub(super) fn parents(
    field: &Field<Vec<Field<raw::ParentReference>>>,
    check: &mut Check<'_>,
) -> Vec<ParentRef> {
    let body = check.body();
    let mut parents: Vec<(ParentRef, Span)> = Vec::new();
    for (entry, raw) in entries(field, "parentRefs", body, 0..=PARENTS_MAX, check) {
        let written = Written {
            group: &raw.group,
            kind: &raw.kind,
            namespace: Some(&raw.namespace),
            name: &raw.name,
        };
        let object = object(written, GATEWAY, entry.span(), check);
        let (section, port) = (
            section(&raw.section_name, check),
            api::port(&raw.port, check),
        );
        let Some(object) = object else {
            continue;
        };
        let parent = ParentRef {
            object,
            has_namespace: raw.namespace.is_set(),
            section,
            port,
        };
        let same = parents
            .iter()
            .find(|(known, _)| is_repeated(known, &parent));
        if let Some((_, first)) = same {
            let location = check.location(*first);
            let message = format!("`{}` is a parent twice", parent.object.name);
            let found = check.error(GA115, entry.span(), message);
            found.help("write a `sectionName` or a `port` in each, and another one in each");
            found.related(location, "first written here");
        }
        parents.push((parent, entry.span()));
    }
    parents.into_iter().map(|(parent, _)| parent).collect()
}

/// Whether two references to a parent differ neither in section nor in port, or only one of them has these fields.
fn is_repeated(one: &ParentRef, other: &ParentRef) -> bool {
    let is_same = |a: &ObjectReference, b: &ObjectReference| {
        (&a.group, &a.kind, &a.namespace, &a.name) == (&b.group, &b.kind, &b.namespace, &b.name)
    };
    let has = |parent: &ParentRef| (parent.section.is_some(), parent.port.is_some());
    is_same(&one.object, &other.object)
        && ((&one.section, one.port) == (&other.section, other.port) || has(one) != has(other))
}

/// Returns the reference to a backend.
pub(super) fn backend_ref(
    raw: &raw::BackendObject,
    span: Span,
    check: &mut Check<'_>,
) -> Option<BackendRef> {
    let written = Written {
        group: &raw.group,
        kind: &raw.kind,
        namespace: Some(&raw.namespace),
        name: &raw.name,
    };
    let object = object(written, SERVICE, span, check);
    let port = api::port(&raw.port, check);
    let object = object?;
    if object.is("", "Service") && !raw.port.is_set() {
        let message = format!("the reference to Service `{}` has no port", object.name);
        let found = check.error(GA116, span, message);
        found.help("write `port`, a port of the Service");
    }
    Some(BackendRef { object, port })
}

/// Returns a weighted backend without filters.
pub(super) fn backend(
    raw: &raw::BackendReference,
    span: Span,
    check: &mut Check<'_>,
) -> Option<Backend> {
    let target = backend_ref(&raw.object(), span, check);
    let weight = raw.weight.get().map_or(Some(1), |weight| {
        let weight = u32::try_from(*weight).ok();
        weight.filter(|weight| *weight <= WEIGHT_MAX)
    });
    if weight.is_none() {
        let message = format!("the weight is outside 0..{WEIGHT_MAX}");
        let found = check.error(GA117, raw.weight.span(), message);
        found.help(format!("write a weight from 0 to {WEIGHT_MAX}"));
    }
    Some(Backend {
        target: target?,
        weight: weight?,
        filters: Vec::new(),
    })
}
