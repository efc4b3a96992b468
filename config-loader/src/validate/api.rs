//! Diagnostics in the wording of a Kubernetes API server, and checks that the service kinds share.
//!
//! The control server responds with the same wording after the field path.

use std::sync::Arc;
use std::time::Duration;

use super::{Check, scalar};
use crate::diagnostic::codes::common::{CM016, CM017, CM029};
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::raw::{self, Field};
use crate::resource::core::{Protocol, SessionAffinity};
use crate::resource::flomesh::{ClusterKey, ServiceAccount};
use crate::resource::shared_text;
use crate::span::Span;

/// Longest session affinity timeout: one day.
const AFFINITY_SECONDS_MAX: u64 = 86_400;

/// Reports the missing `field` of the mapping at `parent`. `why` adds a reason, or is empty.
pub(crate) fn required<'c>(
    parent: Span,
    field: &str,
    why: &str,
    code: Code,
    check: &'c mut Check<'_>,
) -> &'c mut Diagnostic {
    let colon = if why.is_empty() { "" } else { ": " };
    let found = check.error(code, parent, format!("Required value{colon}{why}"));
    found.field = field.to_owned();
    found
}

/// Reports a missing text field, as [`required`] does. An empty text counts as missing; a value of another type does
/// not.
pub(crate) fn require_text(
    field: &Field<String>,
    parent: Span,
    name: &str,
    code: Code,
    check: &mut Check<'_>,
) {
    match field.get() {
        Some(text) if text.is_empty() => {
            check.error(code, field.span(), "Required value");
        }
        None if !field.is_invalid() => {
            required(parent, name, "", code, check);
        }
        Some(_) | None => {}
    }
}

/// Reports an invalid text value.
pub(crate) fn invalid<'c>(
    field: &Field<String>,
    why: impl AsRef<str>,
    code: Code,
    check: &'c mut Check<'_>,
) -> &'c mut Diagnostic {
    let text = field.get().map_or("", String::as_str);
    let message = format!("Invalid value: {text:?}: {}", why.as_ref());
    check.error(code, field.span(), message)
}

/// Returns the error of a URL path that has characters which a request path never has.
pub(crate) fn not_of_a_path(path: &str) -> Option<&'static str> {
    let never = |byte: u8| byte <= b' ' || byte == 0x7f || byte == b'?' || byte == b'#';
    path.bytes()
        .any(never)
        .then_some("must not contain '?', '#', spaces or control characters: percent-encode them")
}

/// Reports a duplicate value. `first` is the location of its first occurrence.
pub(crate) fn duplicate(value: &str, span: Span, first: Span, code: Code, check: &mut Check<'_>) {
    let location = check.location(first);
    check
        .error(code, span, format!("Duplicate value: {value:?}"))
        .related(location, "first written here");
}

/// Returns the enum value with the name in `field`; `None` if it is missing or unknown.
pub(crate) fn enum_of<T: Copy>(
    field: &Field<String>,
    names: &[(&str, T)],
    check: &mut Check<'_>,
) -> Option<T> {
    let text = field.get().filter(|text| !text.is_empty())?;
    if let Some((_, value)) = names.iter().find(|(name, _)| name == text) {
        return Some(*value);
    }
    let known: Vec<String> = names.iter().map(|(name, _)| format!("{name:?}")).collect();
    let message = format!(
        "Unsupported value: {text:?}: supported values: {}",
        known.join(", ")
    );
    let found = check.error(CM017, field.span(), message);
    if let Some(name) = suggest::nearest(text, names.iter().map(|(name, _)| *name)) {
        found.help(format!("did you mean `{name}`?"));
    }
    None
}

/// Returns the transport protocol; TCP if missing.
pub(crate) fn protocol(field: &Field<String>, check: &mut Check<'_>) -> Protocol {
    let names = [
        ("SCTP", Protocol::Sctp),
        ("TCP", Protocol::Tcp),
        ("UDP", Protocol::Udp),
    ];
    enum_of(field, &names, check).unwrap_or_default()
}

/// Returns the port, if there is one.
pub(crate) fn port(field: &Field<i64>, check: &mut Check<'_>) -> Option<u16> {
    let value = *field.get()?;
    port_number(value, field.span(), check)
}

/// Converts a number to a port.
pub(crate) fn port_number(value: i64, span: Span, check: &mut Check<'_>) -> Option<u16> {
    let port = u16::try_from(value).ok().filter(|port| *port > 0);
    if port.is_none() {
        let message = format!("Invalid value: {value}: must be between 1 and 65535, inclusive");
        check.error(CM016, span, message);
    }
    port
}

/// Returns the port of a required field.
pub(crate) fn required_port(
    field: &Field<i64>,
    parent: Span,
    name: &str,
    code: Code,
    check: &mut Check<'_>,
) -> Option<u16> {
    if !field.is_set() {
        required(parent, name, "", code, check);
    }
    port(field, check)
}

/// Returns a 32-bit count; 0 if missing.
pub(crate) fn count(field: &Field<i64>, check: &mut Check<'_>) -> u32 {
    let Some(value) = field.get() else { return 0 };
    u32::try_from(*value).unwrap_or_else(|_| {
        let message =
            format!("Invalid value: {value}: must be between 0 and 4294967295, inclusive");
        check.error(CM029, field.span(), message);
        0
    })
}

/// Returns the text of a field; empty if missing.
pub(crate) fn text(field: &Field<String>) -> Arc<str> {
    Arc::from(field.get().map_or("", String::as_str))
}

/// Returns the text of a field; `None` if missing or empty.
pub(crate) fn some_text(field: &Field<String>) -> Option<Arc<str>> {
    let text = field.get().filter(|text| !text.is_empty())?;
    Some(shared_text(text))
}

/// Whether `text` is a lower-case DNS label in the form that Kubernetes requires.
pub(crate) fn is_label(text: &str) -> bool {
    scalar::is_dns_label(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Rule of DNS labels, in the wording of an API server.
pub(crate) const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
     or '-', and must start and end with an alphanumeric character";

/// Diagnostic codes for the names of ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortNameCodes {
    /// Code for a name that is not a DNS label.
    pub(crate) label: Code,
    /// Code for a missing or duplicate name.
    pub(crate) unique: Code,
}

/// Checks the names of ports: they are DNS labels, unique, and required if there are several ports. Each port has its
/// span and its name.
pub(crate) fn port_names<'f>(
    ports: impl ExactSizeIterator<Item = (Span, &'f Field<String>)>,
    codes: PortNameCodes,
    check: &mut Check<'_>,
) {
    let several = ports.len() > 1;
    let mut seen: Vec<(&str, Span)> = Vec::with_capacity(ports.len());
    for (port, field) in ports {
        let name = field.get().map_or("", String::as_str);
        if name.is_empty() {
            if several && !field.is_invalid() {
                required(port, "name", "", codes.unique, check)
                    .help("a service with several ports names them all");
            }
            continue;
        }
        if !is_label(name) {
            invalid(field, LABEL_RULE, codes.label, check);
        }
        match seen.iter().find(|(known, _)| *known == name) {
            Some((_, first)) => duplicate(name, field.span(), *first, codes.unique, check),
            None => seen.push((name, field.span())),
        }
    }
}

/// Checks that each combination of number and protocol is unique. Each port has its span, number and protocol.
pub(crate) fn port_numbers(ports: &[(Span, u16, Protocol)], code: Code, check: &mut Check<'_>) {
    for (index, &(span, number, protocol)) in ports.iter().enumerate() {
        let same = |other: &&(Span, u16, Protocol)| (other.1, other.2) == (number, protocol);
        if let Some(&(first, ..)) = ports[..index].iter().find(same) {
            duplicate(&format!("{number}/{protocol}"), span, first, code, check);
        }
    }
}

/// Returns a cluster key.
pub(crate) fn cluster_key(
    field: &Field<String>,
    code: Code,
    check: &mut Check<'_>,
) -> Option<ClusterKey> {
    let text = field.get()?;
    let key = ClusterKey::parse(text);
    if key.is_none() {
        let found = invalid(
            field,
            "must be in the form <region>/<zone>/<group>/<cluster>",
            code,
            check,
        );
        if !text.is_empty() && !text.contains('/') {
            found.help(format!("for a cluster without region, zone and group, write `default/default/default/{text}`"));
        }
    }
    key
}

/// Returns the session affinity with its timeout.
pub(crate) fn session_affinity(
    affinity: &Field<String>,
    config: &Field<raw::core::SessionAffinityConfig>,
    code: Code,
    check: &mut Check<'_>,
) -> SessionAffinity {
    let names = [("ClientIP", true), ("None", false)];
    let by_address = enum_of(affinity, &names, check).unwrap_or(false);
    let mut timeout = SessionAffinity::TIMEOUT_DEFAULT;
    let seconds = config
        .get()
        .and_then(|config| config.client_ip.get())
        .map(|client| &client.timeout_seconds);
    if let Some((field, &value)) = seconds.and_then(|field| Some((field, field.get()?))) {
        match u64::try_from(value) {
            Ok(seconds @ 1..=AFFINITY_SECONDS_MAX) => timeout = Duration::from_secs(seconds),
            _ => {
                let rule = "must be greater than 0 and less than or equal to 86400";
                check.error(
                    code,
                    field.span(),
                    format!("Invalid value: {value}: {rule}"),
                );
            }
        }
    }
    if by_address {
        SessionAffinity::ClientIp { timeout }
    } else {
        SessionAffinity::None
    }
}

/// Returns the service account of workloads.
pub(crate) fn service_account(
    field: &Field<String>,
    code: Code,
    check: &mut Check<'_>,
) -> Option<ServiceAccount> {
    match field.get()?.as_str() {
        "" => None,
        "*" => Some(ServiceAccount::Any),
        name => {
            if !scalar::is_dns_subdomain(name) {
                invalid(
                    field,
                    "must be `*` or the name of a ServiceAccount",
                    code,
                    check,
                );
            }
            Some(ServiceAccount::Named(Arc::from(name)))
        }
    }
}
