//! Listeners of a Gateway or a ListenerSet.

use std::sync::Arc;

use super::options::options;
use super::reference::{SECRET, group, kind, object, section};
use super::shared::{entries, host, limit_options, limit_text, missing, required_text};
use crate::diagnostic::codes::gateway_api::{GA101, GA105, GA106, GA107, GA108, GA109, GA138};
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{
    GROUP, LabelRequirement, LabelSelector, Listener, ListenerProtocol, ListenerTls,
    NamespaceSelection, ObjectReference, Requirement, RouteKind, Termination,
};
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const LISTENERS_MAX: usize = 64;
/// Certificates of a listener.
const CERTIFICATES_MAX: usize = 64;
/// Kinds of routes of a listener.
const KINDS_MAX: usize = 8;
/// Characters of a protocol.
const PROTOCOL_MAX: usize = 255;

/// Returns the listeners.
pub(super) fn listeners(
    field: &Field<Vec<Field<raw::Listener>>>,
    check: &mut Check<'_>,
) -> Vec<Listener> {
    let body = check.body();
    let mut listeners: Vec<(Listener, Span)> = Vec::new();
    for (entry, raw) in entries(field, "listeners", body, 1..=LISTENERS_MAX, check) {
        let Some(listener) = listener(raw, entry.span(), check) else {
            continue;
        };
        let key = |one: &Listener| {
            let protocol = Arc::<str>::from(one.protocol.as_str());
            (one.port, protocol, one.hostname.clone())
        };
        let mut known = listeners.iter();
        let same_name = known.clone().find(|(one, _)| one.name == listener.name);
        let same_key = known.find(|(one, _)| key(one) == key(&listener));
        if let Some((_, first)) = same_name {
            let location = check.location(*first);
            let message = format!("there are two listeners named `{}`", listener.name);
            let found = check.error(GA105, raw.name.span(), message);
            found.help("give each a name of its own");
            found.related(location, "the first one");
        }
        if let Some((_, first)) = same_key {
            let location = check.location(*first);
            let message = format!(
                "two listeners have port {}, protocol {} and the same host",
                listener.port,
                listener.protocol.as_str()
            );
            let found = check.error(GA106, entry.span(), message);
            found.help("give each another `hostname`, or remove one");
            found.related(location, "the first one");
        }
        listeners.push((listener, entry.span()));
    }
    listeners.into_iter().map(|(one, _)| one).collect()
}

fn listener(raw: &raw::Listener, span: Span, check: &mut Check<'_>) -> Option<Listener> {
    required_text(&raw.name, span, "name", check);
    let name = section(&raw.name, check);
    let port = api::port(&raw.port, check);
    if !raw.port.is_set() {
        missing(span, "port", check);
    }
    let hostname = host(&raw.hostname, true, check);
    let protocol = required_text(&raw.protocol, span, "protocol", check);
    limit_text(&raw.protocol, PROTOCOL_MAX, check);
    if protocol.as_ref().is_some_and(|name| !is_protocol(name)) {
        let found = check.error(
            GA138,
            raw.protocol.span(),
            "this is not a name of a protocol",
        );
        found.help("write `HTTP`, `HTTPS`, `TLS` or `TCP`, or a domain and a name");
    }
    let protocol = protocol.map(|name| protocol_of(&name, raw, check));
    let allowed = raw.allowed_routes.get().cloned().unwrap_or_default();
    let of_routes = [("All", "All"), ("Same", "Same"), ("Selector", "Selector")];
    let namespaces = namespaces(&allowed.namespaces, &of_routes, check);
    Some(Listener {
        name: name?,
        hostname,
        port: port?,
        protocol: protocol?,
        namespaces: namespaces.unwrap_or(NamespaceSelection::Same),
        kinds: kinds(&allowed.kinds, check),
        line: check.line(span),
    })
}

/// Whether a text is letters, digits and inner hyphens, or a domain and a name.
fn is_protocol(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_alphanumeric();
    match text.split_once('/') {
        Some((domain, name)) => {
            scalar::is_dns_subdomain(domain)
                && !name.is_empty()
                && name.bytes().all(is_alphanumeric)
        }
        None => {
            text.bytes()
                .all(|byte| is_alphanumeric(byte) || byte == b'-')
                && !text.starts_with('-')
                && !text.ends_with('-')
        }
    }
}

/// Returns the protocol, with TLS settings that fit to it.
fn protocol_of(name: &str, raw: &raw::Listener, check: &mut Check<'_>) -> ListenerProtocol {
    let has_no_tls = matches!(name, "HTTP" | "TCP" | "UDP");
    if has_no_tls && raw.tls.is_set() {
        let message = format!("a listener for {name} has no TLS settings");
        let found = check.error(GA107, raw.tls.span(), message);
        found.help("remove `tls`, or write protocol `HTTPS` or `TLS`");
    }
    if matches!(name, "TCP" | "UDP") && raw.hostname.is_set() {
        let message = format!("a listener for {name} has no host");
        let found = check.error(GA109, raw.hostname.span(), message);
        found.help("remove `hostname`, or write another protocol");
    }
    let tls = raw.tls.get().cloned().unwrap_or_default();
    let modes = [("Passthrough", false), ("Terminate", true)];
    let mode = scalar::enum_of(&tls.mode, &modes, check).unwrap_or(true);
    let settings = if has_no_tls || !raw.tls.is_set() {
        ListenerTls::Terminate(Termination::default())
    } else {
        tls_of(&tls, raw.tls.span(), mode, check)
    };
    match (name, settings) {
        ("HTTP", _) => ListenerProtocol::Http,
        ("TCP", _) => ListenerProtocol::Tcp,
        ("UDP", _) => ListenerProtocol::Udp,
        ("TLS", settings) => {
            if !tls.mode.is_set() && !raw.tls.is_invalid() {
                let at = if raw.tls.is_set() {
                    raw.tls.span()
                } else {
                    raw.protocol.span()
                };
                let found = check.error(GA107, at, "a listener for TLS has no mode");
                found.help(
                    "write `tls: {mode: Passthrough}`, or `mode: Terminate` with certificates",
                );
            }
            ListenerProtocol::Tls(settings)
        }
        ("HTTPS", ListenerTls::Terminate(termination)) => ListenerProtocol::Https(termination),
        ("HTTPS", ListenerTls::Passthrough) => {
            let found = check.error(
                GA107,
                tls.mode.span(),
                "a listener for HTTPS terminates TLS",
            );
            found.help("write `mode: Terminate`, or protocol `TLS` to pass TLS through");
            ListenerProtocol::Https(Termination::default())
        }
        (other, _) => ListenerProtocol::Other(Arc::from(other)),
    }
}

fn tls_of(
    raw: &raw::ListenerTls,
    span: Span,
    terminates: bool,
    check: &mut Check<'_>,
) -> ListenerTls {
    let mut certificates: Vec<ObjectReference> = Vec::new();
    for (entry, raw) in entries(
        &raw.certificate_refs,
        "certificateRefs",
        raw.certificate_refs.span(),
        0..=CERTIFICATES_MAX,
        check,
    ) {
        certificates.extend(object(raw.into(), SECRET, entry.span(), check));
    }
    limit_options(&raw.options, check);
    let has_options = raw
        .options
        .get()
        .is_some_and(|options| options.iter().next().is_some());
    let options = options(&raw.options, check);
    if !terminates {
        return ListenerTls::Passthrough;
    }
    let has_none = |count: Option<usize>| count.is_none_or(|count| count == 0);
    let refs = raw.certificate_refs.get().map(Vec::len);
    if has_none(refs) && !raw.certificate_refs.is_invalid() && !has_options {
        let message = "the listener terminates TLS, and has no certificate";
        let found = check.error(GA108, span, message);
        found.help("write `certificateRefs: [{name: SECRET}]`");
    }
    ListenerTls::Terminate(Termination {
        certificates,
        options,
    })
}

fn kinds(
    field: &Field<Vec<Field<raw::RouteKind>>>,
    check: &mut Check<'_>,
) -> Option<Vec<RouteKind>> {
    let listed = entries(field, "kinds", field.span(), 0..=KINDS_MAX, check);
    let mut kinds = Vec::new();
    for (entry, raw) in listed {
        let group = group(&raw.group, Some((GROUP, "")), entry.span(), check);
        let kind = kind(&raw.kind, entry.span(), check);
        if let (Some(group), Some(kind)) = (group, kind) {
            kinds.push(RouteKind { group, kind });
        }
    }
    (!kinds.is_empty()).then_some(kinds)
}

/// Returns a selection of namespaces; `None` for the default. `names` are the values of `from`.
pub(super) fn namespaces(
    field: &Field<raw::NamespaceSelection>,
    names: &[(&str, &'static str)],
    check: &mut Check<'_>,
) -> Option<NamespaceSelection> {
    let raw = field.get()?;
    let selector = selector(&raw.selector, check);
    Some(match scalar::enum_of(&raw.from, names, check)? {
        "All" => NamespaceSelection::All,
        "None" => NamespaceSelection::None,
        "Same" => NamespaceSelection::Same,
        _ => {
            if !raw.selector.is_set() {
                let found = missing(field.span(), "selector", check);
                found.help("write `selector: {matchLabels: {KEY: VALUE}}`");
            }
            NamespaceSelection::Selector(selector)
        }
    })
}

fn selector(field: &Field<raw::LabelSelector>, check: &mut Check<'_>) -> LabelSelector {
    let Some(raw) = field.get() else {
        return LabelSelector::default();
    };
    let labels = scalar::labels(&raw.match_labels, check).into_iter();
    let mut requirements: Vec<LabelRequirement> = labels
        .map(|(key, value)| LabelRequirement {
            key,
            requirement: Requirement::In(vec![value]),
        })
        .collect();
    for (entry, raw) in scalar::items(&raw.match_expressions, check) {
        let key = required_text(&raw.key, entry.span(), "key", check);
        let values = scalar::items(&raw.values, check).into_iter();
        let values: Vec<String> = values.map(|(_, value)| value.clone()).collect();
        let has_values = !values.is_empty();
        let operators = [
            ("In", (Requirement::In(values.clone()), true)),
            ("NotIn", (Requirement::NotIn(values), true)),
            ("Exists", (Requirement::Present, false)),
            ("DoesNotExist", (Requirement::Absent, false)),
        ];
        let names = operators.each_ref().map(|(name, _)| (*name, *name));
        required_text(&raw.operator, entry.span(), "operator", check);
        let Some(name) = scalar::enum_of(&raw.operator, &names, check) else {
            continue;
        };
        let mut operators = operators.into_iter();
        let Some((_, (requirement, takes_values))) = operators.find(|(known, _)| *known == name)
        else {
            continue;
        };
        if takes_values != has_values {
            let found = check.error(GA101, entry.span(), format!("`values` do not fit `{name}`"));
            found.help(match takes_values {
                true => "write at least one value",
                false => "remove `values`",
            });
        }
        requirements.extend(key.map(|key| LabelRequirement {
            key: key.to_string(),
            requirement,
        }));
    }
    LabelSelector(requirements)
}
