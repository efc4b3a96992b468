//! GatewayClass, Gateway and ListenerSet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::listener::{listeners, namespaces};
use super::reference::{GATEWAY, SECRET, object};
use super::shared::{NAME_MAX, entries, limit_entries, limit_text, missing, required_text};
use crate::diagnostic::codes::gateway_api::{
    GA010, GA012, GA035, GA110, GA111, GA112, GA113, GA138,
};
use crate::raw::gateway_api as raw;
use crate::raw::{Field, Map};
use crate::resource::gateway_api::{
    AddressType, ClientValidation, FrontendTls, GROUP, GatewayAddress, GatewayClass,
    KubernetesGateway, ListenerSet, NamespaceSelection, ObjectReference,
};
use crate::span::{Line, Span};
use crate::validate::{Check, api, scalar};

const ADDRESSES_MAX: usize = 16;
/// Types of addresses that the API knows.
const ADDRESS_TYPES: [&str; 3] = ["Hostname", "IPAddress", "NamedAddress"];
/// Ports with TLS settings of their own.
const PORTS_MAX: usize = 64;
/// CA certificates of a validation.
const AUTHORITIES_MAX: usize = 16;
/// Bytes of a controller's name.
const CONTROLLER_BYTES_MAX: usize = 253;
/// Characters of a class's description.
const DESCRIPTION_MAX: usize = 64;
/// Labels and annotations of what is created, and characters of an annotation.
const LABELS_MAX: usize = 8;
const ANNOTATIONS_MAX: usize = 16;
const ANNOTATION_MAX: usize = 4096;

/// Checks a GatewayClass.
pub fn gateway_class(raw: &raw::GatewayClass, check: &mut Check<'_>) -> GatewayClass {
    let field = &raw.controller_name;
    let name = required_text(field, check.body(), "controllerName", check);
    if let Some(name) = name.as_ref().filter(|name| !is_controller(name)) {
        let message = format!("`{name}` is not a name of a controller");
        let found = check.error(GA113, field.span(), message);
        found.help("write a domain and a path, such as `strait.io/gateway-controller`");
    }
    limit_text(&raw.description, DESCRIPTION_MAX, check);
    if let Some(parameters) = raw.parameters_ref.get() {
        let span = raw.parameters_ref.span();
        object(parameters.into(), None, span, check);
        no_parameters(span, check);
    }
    GatewayClass {
        controller: name.unwrap_or_default(),
        controller_line: check.line(field.span()),
        parameters: line_of(&raw.parameters_ref, check),
    }
}

fn is_controller(name: &str) -> bool {
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    name.len() <= CONTROLLER_BYTES_MAX
        && name.split_once('/').is_some_and(|(domain, path)| {
            scalar::is_dns_subdomain(domain) && !path.is_empty() && path.bytes().all(is_path)
        })
}

fn no_parameters(span: Span, check: &mut Check<'_>) {
    let message = "no parameters are supported: the object is not accepted";
    let found = check.warning(GA010, span, message);
    found.help("remove `parametersRef`");
}

fn line_of<T>(field: &Field<T>, check: &Check<'_>) -> Option<Line> {
    field.is_set().then(|| check.line(field.span()))
}

/// Checks a Gateway.
pub fn gateway(raw: &raw::Gateway, check: &mut Check<'_>) -> KubernetesGateway {
    let body = check.body();
    let class = required_text(&raw.gateway_class_name, body, "gatewayClassName", check);
    limit_text(&raw.gateway_class_name, NAME_MAX, check);
    let infrastructure = raw.infrastructure.get().cloned().unwrap_or_default();
    limit_entries(&infrastructure.labels, LABELS_MAX, check);
    scalar::labels(&infrastructure.labels, check);
    annotations(&infrastructure.annotations, check);
    for (name, field) in [
        ("labels", &infrastructure.labels),
        ("annotations", &infrastructure.annotations),
    ] {
        if field.is_set() {
            let message = format!("`{name}` have no effect: nothing is created for a Gateway");
            let found = check.note(GA012, field.span(), message);
            found.help("remove them, or label what you have created");
        }
    }
    if infrastructure.parameters_ref.is_set() {
        let span = infrastructure.parameters_ref.span();
        if let Some(parameters) = infrastructure.parameters_ref.get() {
            object(parameters.into(), None, span, check);
        }
        no_parameters(span, check);
    }
    let of_sets = ["All", "None", "Same", "Selector"].map(|name| (name, name));
    let allowed = raw.allowed_listeners.get().cloned().unwrap_or_default();
    let tls = raw.tls.get().cloned().unwrap_or_default();
    KubernetesGateway {
        class: class.unwrap_or_default(),
        class_line: check.line(raw.gateway_class_name.span()),
        listeners: listeners(&raw.listeners, check),
        addresses: addresses(&raw.addresses, check),
        assigned: check.assigned_addresses().map(<[_]>::to_vec),
        parameters: line_of(&infrastructure.parameters_ref, check),
        allowed_listeners: namespaces(&allowed.namespaces, &of_sets, check)
            .unwrap_or(NamespaceSelection::None),
        frontend: frontend(&tls.frontend, check).map(Box::new),
        client_certificate: client_certificate(&tls.backend, check),
    }
}

/// Checks a ListenerSet.
pub fn listener_set(raw: &raw::ListenerSet, check: &mut Check<'_>) -> ListenerSet {
    let parent = match raw.parent_ref.get() {
        Some(parent) => object(parent.into(), GATEWAY, raw.parent_ref.span(), check),
        None => {
            if !raw.parent_ref.is_invalid() {
                missing(check.body(), "parentRef", check);
            }
            None
        }
    };
    if parent
        .as_ref()
        .is_some_and(|parent| !parent.is(GROUP, "Gateway"))
    {
        let message = "the parent is not a Gateway";
        let found = check.error(GA112, raw.parent_ref.span(), message);
        found.help(format!(
            "write `kind: Gateway` and `group: {GROUP}`, or remove both"
        ));
    }
    ListenerSet {
        parent,
        listeners: listeners(&raw.listeners, check),
    }
}

fn annotations(field: &Field<Map<String>>, check: &mut Check<'_>) {
    limit_entries(field, ANNOTATIONS_MAX, check);
    for (key, key_field, value) in field.get().into_iter().flat_map(Map::iter) {
        if !scalar::is_label_key(key) {
            let message = format!("`{key}` is not a key of an annotation");
            let found = check.error(GA138, key_field.span(), message);
            found.help("write a domain, `/` and a name, or only a name of at most 63 characters");
        }
        limit_text(value, ANNOTATION_MAX, check);
    }
}

fn addresses(
    field: &Field<Vec<Field<raw::Address>>>,
    check: &mut Check<'_>,
) -> Vec<GatewayAddress> {
    let mut addresses: Vec<GatewayAddress> = Vec::new();
    for (entry, raw) in entries(field, "addresses", field.span(), 0..=ADDRESSES_MAX, check) {
        let of = raw.address_type.get().map_or("IPAddress", String::as_str);
        if !ADDRESS_TYPES.contains(&of) && !is_controller(of) {
            let message = format!("`{of}` is not a type of addresses");
            let found = check.error(GA110, raw.address_type.span(), message);
            found.help("write `IPAddress`, or a domain and a path");
        }
        limit_text(&raw.value, NAME_MAX, check);
        let value = raw.value.get().filter(|value| !value.is_empty());
        let is_host = |name: &str| scalar::is_dns_subdomain(name.trim_start_matches("*."));
        let address = match (of, value) {
            ("IPAddress", None) if raw.value.is_set() => {
                wrong_address("", "an IP address", raw.value.span(), check);
                continue;
            }
            ("IPAddress", None) => AddressType::Ip(None),
            ("IPAddress", Some(value)) => match scalar::ip(value) {
                Some(ip) => AddressType::Ip(Some(ip)),
                None => {
                    wrong_address(value, "an IP address", raw.value.span(), check);
                    continue;
                }
            },
            ("Hostname", Some(value)) if !is_host(value) => {
                wrong_address(value, "a host", raw.value.span(), check);
                continue;
            }
            (other, value) => {
                let value = value.map_or("", String::as_str);
                AddressType::Other(Arc::from(format!("{other} {value}")))
            }
        };
        let is_repeated = value.is_some()
            && ["IPAddress", "Hostname"].contains(&of)
            && addresses.iter().any(|known| known.address == address);
        if is_repeated {
            let found = check.error(GA110, entry.span(), "the address is there twice");
            found.help("remove one of the entries");
        }
        addresses.push(GatewayAddress {
            address,
            line: check.line(entry.span()),
        });
    }
    addresses
}

fn wrong_address(value: &str, what: &str, span: Span, check: &mut Check<'_>) {
    let found = check.error(GA110, span, format!("`{value}` is not {what}"));
    found.help("write an IP address, or no `value` for one that is assigned");
}

fn frontend(field: &Field<raw::FrontendTls>, check: &mut Check<'_>) -> Option<FrontendTls> {
    let raw = field.get()?;
    if !raw.default.is_set() {
        let found = missing(field.span(), "default", check);
        found.help("write `default: {}` for ports without client certificates");
    }
    let mut per_port = BTreeMap::new();
    for (entry, raw) in entries(
        &raw.per_port,
        "perPort",
        raw.per_port.span(),
        0..=PORTS_MAX,
        check,
    ) {
        if !raw.port.is_set() {
            missing(entry.span(), "port", check);
        }
        if !raw.tls.is_set() {
            missing(entry.span(), "tls", check);
        }
        let validation = validation(&raw.tls, check);
        let Some(port) = api::port(&raw.port, check) else {
            continue;
        };
        if per_port.insert(port, validation).is_some() {
            let message = format!("port {port} is listed twice");
            let found = check.error(GA111, raw.port.span(), message);
            found.help("remove one of the entries");
        }
    }
    Some(FrontendTls {
        default: validation(&raw.default, check),
        per_port,
    })
}

fn validation(field: &Field<raw::TlsSettings>, check: &mut Check<'_>) -> Option<ClientValidation> {
    let field = &field.get()?.validation;
    let raw = field.get()?;
    let mut authorities = Vec::new();
    for (entry, raw) in entries(
        &raw.ca_certificate_refs,
        "caCertificateRefs",
        field.span(),
        1..=AUTHORITIES_MAX,
        check,
    ) {
        authorities.extend(object(raw.into(), None, entry.span(), check));
    }
    let modes = [("AllowInsecureFallback", true), ("AllowValidOnly", false)];
    let is_insecure = scalar::enum_of(&raw.mode, &modes, check).unwrap_or(false);
    if is_insecure {
        let message = "clients without a valid certificate are served";
        let found = check.warning(GA035, raw.mode.span(), message);
        found.help("write `mode: AllowValidOnly`");
    }
    Some(ClientValidation {
        authorities,
        is_insecure,
        line: check.line(field.span()),
    })
}

fn client_certificate(
    field: &Field<raw::BackendTls>,
    check: &mut Check<'_>,
) -> Option<ObjectReference> {
    let reference = &field.get()?.client_certificate_ref;
    object(reference.get()?.into(), SECRET, reference.span(), check)
}
