//! BackendTLSPolicy.

use std::sync::Arc;

use super::filter::is_its_member;
use super::reference::{Written, object, section};
use super::shared::{NAME_MAX, entries, host, limit_options, limit_text, missing, required_text};
use crate::diagnostic::codes::gateway_api::{GA061, GA133, GA134, GA135};
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{
    Authorities, BackendTLSPolicy, BackendVerification, PolicyService, SubjectAltName,
};
use crate::span::Span;
use crate::validate::{Check, scalar};

/// Services of a policy.
const TARGETS_MAX: usize = 16;
/// References to CA certificates.
const AUTHORITIES_MAX: usize = 8;
const NAMES_MAX: usize = 5;

/// Checks a BackendTLSPolicy.
pub fn backend_tls_policy(raw: &raw::BackendTlsPolicy, check: &mut Check<'_>) -> BackendTLSPolicy {
    limit_options(&raw.options, check);
    if raw.options.is_set() {
        let found = check.warning(GA061, raw.options.span(), "`options` have no effect");
        found.help("remove them");
    }
    BackendTLSPolicy {
        targets: targets(&raw.target_refs, check),
        verification: verification(&raw.validation, check).unwrap_or_default(),
    }
}

/// Returns the services; none if one of them cannot be read, so that its stand-in leaves none out.
fn targets(
    field: &Field<Vec<Field<raw::PolicyTarget>>>,
    check: &mut Check<'_>,
) -> Vec<PolicyService> {
    let body = check.body();
    let mut targets: Vec<(PolicyService, Span)> = Vec::new();
    let mut all = true;
    for (entry, raw) in entries(field, "targetRefs", body, 1..=TARGETS_MAX, check) {
        let written = Written {
            group: &raw.group,
            kind: &raw.kind,
            namespace: None,
            name: &raw.name,
        };
        let object = object(written, None, entry.span(), check);
        let section = section(&raw.section_name, check);
        let Some(object) = object.filter(|_| section.is_some() || !raw.section_name.is_set())
        else {
            all = false;
            continue;
        };
        let target = PolicyService { object, section };
        if let Some((_, first)) = targets
            .iter()
            .find(|(known, _)| is_repeated(known, &target))
        {
            let location = check.location(*first);
            let message = format!("`{}` is a target twice", target.object.name);
            let found = check.error(GA133, entry.span(), message);
            found.help("write a `sectionName` in each, and another one in each");
            found.related(location, "first written here");
        }
        targets.push((target, entry.span()));
    }
    let targets = targets.into_iter().filter(|_| all);
    targets.map(|(target, _)| target).collect()
}

fn is_repeated(one: &PolicyService, other: &PolicyService) -> bool {
    let of = |target: &PolicyService| {
        let object = &target.object;
        (
            object.group.clone(),
            object.kind.clone(),
            object.name.clone(),
        )
    };
    of(one) == of(other)
        && (one.section == other.section || one.section.is_some() != other.section.is_some())
}

fn verification(
    field: &Field<raw::BackendValidation>,
    check: &mut Check<'_>,
) -> Option<BackendVerification> {
    let Some(raw) = field.get() else {
        if !field.is_invalid() {
            missing(check.body(), "validation", check);
        }
        return None;
    };
    let authorities = authorities(raw, field.span(), check);
    required_text(&raw.hostname, field.span(), "hostname", check);
    let hostname = host(&raw.hostname, false, check);
    let mut subject_alt_names = Vec::new();
    for (entry, raw) in entries(
        &raw.subject_alt_names,
        "subjectAltNames",
        raw.subject_alt_names.span(),
        0..=NAMES_MAX,
        check,
    ) {
        subject_alt_names.extend(subject_alt_name(raw, entry.span(), check));
    }
    Some(BackendVerification::Tls {
        authorities: authorities?,
        hostname: hostname?,
        subject_alt_names,
        line: check.line(field.span()),
    })
}

fn authorities(
    raw: &raw::BackendValidation,
    span: Span,
    check: &mut Check<'_>,
) -> Option<Authorities> {
    let mut objects = Vec::new();
    for (entry, raw) in entries(
        &raw.ca_certificate_refs,
        "caCertificateRefs",
        raw.ca_certificate_refs.span(),
        0..=AUTHORITIES_MAX,
        check,
    ) {
        objects.extend(object(raw.into(), None, entry.span(), check));
    }
    let has_objects = raw
        .ca_certificate_refs
        .get()
        .is_some_and(|refs| !refs.is_empty());
    let well_known = &raw.well_known_ca_certificates;
    let names_system = well_known.get().is_some_and(|name| !name.is_empty());
    match (has_objects, names_system) {
        (true, true) => {
            let message = "the policy has CA certificates of two sources";
            let found = check.error(GA134, well_known.span(), message);
            found.help("remove `wellKnownCACertificates`, or `caCertificateRefs`");
            None
        }
        (true, false) => Some(Authorities::Objects(objects)),
        (false, true) => {
            scalar::enum_of(well_known, &[("System", ())], check)?;
            Some(Authorities::System)
        }
        (false, false) => {
            let is_wrong = well_known.is_invalid() || raw.ca_certificate_refs.is_invalid();
            if !is_wrong {
                let found = check.error(GA134, span, "the policy has no CA certificates");
                found.help("write `caCertificateRefs`, or `wellKnownCACertificates: System`");
            }
            None
        }
    }
}

fn subject_alt_name(
    raw: &raw::SubjectAltName,
    span: Span,
    check: &mut Check<'_>,
) -> Option<SubjectAltName> {
    let of = required_text(&raw.name_type, span, "type", check)?;
    scalar::enum_of(&raw.name_type, &[("Hostname", ()), ("URI", ())], check)?;
    let set = |field: &Field<String>| match field.get() {
        Some(text) if text.is_empty() => Span::NONE,
        _ => field.span(),
    };
    let members = [
        ("Hostname", "hostname", set(&raw.hostname)),
        ("URI", "uri", set(&raw.uri)),
    ];
    if !is_its_member(&members, &of, span, check) {
        return None;
    }
    if &*of == "Hostname" {
        return host(&raw.hostname, true, check).map(SubjectAltName::Dns);
    }
    limit_text(&raw.uri, NAME_MAX, check);
    let uri = raw.uri.get()?;
    let is_absolute = uri
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !uri.contains(' '));
    if !is_absolute {
        let found = check.error(
            GA135,
            raw.uri.span(),
            format!("`{uri}` is not an absolute URI"),
        );
        found.help("write a URI such as `spiffe://cluster.local/ns/a/sa/b`");
    }
    Some(SubjectAltName::Uri(Arc::from(uri.as_str())))
}
