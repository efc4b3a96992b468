//! EndpointSlice: the checks of the Kubernetes API.
//!
//! Unlike Kubernetes, loopback and link-local addresses are accepted: a proxy next to its endpoints may use them.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::diagnostic::codes::core::{
    EPS001, EPS002, EPS003, EPS004, EPS005, EPS006, EPS007, EPS008,
};
use crate::raw::Field;
use crate::raw::core as raw;
use crate::resource::core::{
    AddressType, Conditions, EndpointSlice, Host, SliceEndpoint, SlicePort,
};
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const ADDRESS_TYPES: [(&str, AddressType); 3] = [
    ("FQDN", AddressType::Fqdn),
    ("IPv4", AddressType::Ipv4),
    ("IPv6", AddressType::Ipv6),
];

/// Label that names an endpoint's zone in older versions of the API.
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// Checks an EndpointSlice.
pub fn endpoint_slice(raw: &raw::EndpointSlice, check: &mut Check<'_>) -> EndpointSlice {
    belongs_to_service(check);
    api::require_text(
        &raw.address_type,
        check.body(),
        "addressType",
        EPS001,
        check,
    );
    let address_type = api::enum_of(&raw.address_type, &ADDRESS_TYPES, check);
    let mut endpoints = Vec::new();
    let mut hostnames = Vec::new();
    let mut names = Names::default();
    for (entry, raw) in scalar::items(&raw.endpoints, check) {
        let span = entry.span();
        let name = hostname(&raw.hostname, check);
        if let Some(endpoint) = endpoint(raw, span, address_type, &mut names, check) {
            let number = u32::try_from(endpoints.len()).unwrap_or(u32::MAX);
            hostnames.extend(name.map(|name| (number, name)));
            endpoints.push(endpoint);
        }
    }
    endpoints.shrink_to_fit();
    hostnames.shrink_to_fit();
    EndpointSlice {
        address_type: address_type.unwrap_or_default(),
        endpoints,
        hostnames,
        ports: ports(&raw.ports, check),
        ..EndpointSlice::default()
    }
}

fn belongs_to_service(check: &mut Check<'_>) {
    let [own, imported] = [
        EndpointSlice::SERVICE_NAME,
        EndpointSlice::IMPORTED_SERVICE_NAME,
    ];
    if check.label(own).is_none() && check.label(imported).is_none() {
        check
            .warning(EPS008, check.name_span(), "the slice belongs to no service")
            .help(format!("write the label `{own}: <service>`"));
    }
}

/// Cache of zone and node names, which many endpoints of a slice share.
#[derive(Default)]
struct Names(HashSet<Arc<str>>);

impl Names {
    fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = Arc::from(name);
        self.0.insert(Arc::clone(&name));
        name
    }

    fn share_text(&mut self, field: &Field<String>) -> Option<Arc<str>> {
        text(field).map(|text| self.share(text))
    }
}

/// Returns the pod of a reference, in the form of [`SliceEndpoint::pod`].
fn pod(field: &Field<raw::ObjectReference>, check: &Check<'_>) -> Option<Arc<str>> {
    let reference = field.get()?;
    let (kind, pod) = (text(&reference.kind)?, text(&reference.name)?);
    let namespace = text(&reference.namespace).unwrap_or(check.namespace());
    if kind != "Pod" {
        return None;
    }
    Some(match namespace == check.namespace() {
        true => pod.into(),
        false => format!("{namespace}/{pod}").into(),
    })
}

/// Returns a text that is not empty.
fn text(field: &Field<String>) -> Option<&str> {
    let text = field.get().filter(|text| !text.is_empty())?;
    Some(text)
}

fn endpoint(
    raw: &raw::SliceEndpoint,
    span: Span,
    address_type: Option<AddressType>,
    names: &mut Names,
    check: &mut Check<'_>,
) -> Option<SliceEndpoint> {
    let addresses = addresses(raw, span, address_type, check);
    let topology = scalar::labels(&raw.deprecated_topology, check);
    if let Some(hints) = raw.hints.get() {
        check_hints(&hints.for_zones, check);
        check_hints(&hints.for_nodes, check);
    }
    let by_topology = || topology.get(ZONE_LABEL);
    Some(SliceEndpoint {
        address: addresses.into_iter().next()?,
        conditions: raw.conditions.get().map(conditions).unwrap_or_default(),
        node_name: names.share_text(&raw.node_name),
        zone: match names.share_text(&raw.zone) {
            Some(zone) => Some(zone),
            None => by_topology().map(|zone| names.share(zone)),
        },
        pod: pod(&raw.target_ref, check),
        line: check.line(span),
    })
}

/// Returns the conditions with the defaults of Kubernetes: ready is true, serving is ready, terminating is false.
fn conditions(raw: &raw::EndpointConditions) -> Conditions {
    let ready = raw.ready.get().copied().unwrap_or(true);
    Conditions {
        ready,
        serving: raw.serving.get().copied().unwrap_or(ready),
        terminating: raw.terminating.get().copied().unwrap_or(false),
    }
}

fn addresses(
    raw: &raw::SliceEndpoint,
    span: Span,
    address_type: Option<AddressType>,
    check: &mut Check<'_>,
) -> Vec<Host> {
    let field = &raw.addresses;
    if field.get().is_none_or(Vec::is_empty) && !field.is_invalid() {
        let why = "must contain at least 1 address";
        if field.is_set() {
            check.error(EPS002, field.span(), format!("Required value: {why}"));
        } else {
            api::required(span, "addresses", why, EPS002, check);
        }
    }
    let mut hosts = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        let Some(address_type) = address_type else {
            continue;
        };
        match host(text, address_type) {
            Ok(host) => hosts.push(host),
            Err(why) => wrong_address(entry, text, why, check),
        }
    }
    hosts
}

fn wrong_address(entry: &Field<String>, text: &str, why: &str, check: &mut Check<'_>) {
    let other = match scalar::ip(text) {
        Some(IpAddr::V4(_)) => Some("IPv4"),
        Some(IpAddr::V6(_)) => Some("IPv6"),
        None => scalar::is_fqdn(text).then_some("FQDN"),
    };
    let found = api::invalid(entry, why, EPS003, check);
    if let Some(name) = other {
        found.help(format!(
            "a slice has addresses of one type: put it into one with `addressType: {name}`"
        ));
    }
}

/// Parses an address of the given type.
fn host(text: &str, address_type: AddressType) -> Result<Host, &'static str> {
    match (address_type, scalar::ip(text)) {
        (AddressType::Ipv4, Some(address @ IpAddr::V4(_)))
        | (AddressType::Ipv6, Some(address @ IpAddr::V6(_))) => Ok(Host::Ip(address)),
        (AddressType::Ipv4, _) => Err("must be a valid IPv4 address"),
        (AddressType::Ipv6, _) => Err("must be a valid IPv6 address"),
        (AddressType::Fqdn, None) if scalar::is_fqdn(text) => Ok(Host::Dns(Arc::from(text))),
        (AddressType::Fqdn, _) => Err("must be a fully qualified domain name"),
    }
}

fn hostname(field: &Field<String>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let name = api::some_text(field)?;
    if !api::is_label(&name) {
        api::invalid(field, api::LABEL_RULE, EPS004, check);
        return None;
    }
    Some(name)
}

fn check_hints(field: &Field<Vec<Field<raw::Hint>>>, check: &mut Check<'_>) {
    for (entry, hint) in scalar::items(field, check) {
        api::require_text(&hint.name, entry.span(), "name", EPS001, check);
    }
}

fn ports(field: &Field<Vec<Field<raw::SlicePort>>>, check: &mut Check<'_>) -> Vec<SlicePort> {
    let mut seen: Vec<(&str, Span)> = Vec::new();
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let name = raw.name.get().map_or("", String::as_str);
        if !name.is_empty() && !api::is_label(name) {
            api::invalid(&raw.name, api::LABEL_RULE, EPS005, check);
        }
        let span = if raw.name.is_set() {
            raw.name.span()
        } else {
            entry.span()
        };
        match seen.iter().find(|(known, _)| *known == name) {
            Some((_, first)) => api::duplicate(name, span, *first, EPS006, check),
            None => seen.push((name, span)),
        }
        let app_protocol = &raw.app_protocol;
        if app_protocol
            .get()
            .is_some_and(|text| !text.is_empty() && !scalar::is_label_key(text))
        {
            let why = "must be a name, or a domain, a slash and a name";
            api::invalid(app_protocol, why, EPS007, check);
        }
        ports.push(SlicePort {
            name: Arc::from(name),
            port: api::port(&raw.port, check),
            protocol: api::protocol(&raw.protocol, check),
            app_protocol: api::some_text(app_protocol),
            line: check.line(entry.span()),
        });
    }
    ports
}

#[cfg(test)]
mod tests;
