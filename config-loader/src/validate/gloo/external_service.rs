//! `externalService` of a Destination.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::values::list;
use crate::diagnostic::codes::multicluster::{
    GD003, GD005, GD006, GD007, GD008, GD009, GD010, GD016,
};
use crate::raw::gloo as raw;
use crate::raw::{Field, Map};
use crate::resource::core::Host;
use crate::resource::gloo::{ExternalEndpoint, ExternalPort, ExternalProtocol, ExternalService};
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const PROTOCOLS: [(&str, ExternalProtocol); 7] = [
    ("GRPC", ExternalProtocol::Grpc),
    ("HTTP", ExternalProtocol::Http),
    ("HTTP2", ExternalProtocol::Http2),
    ("HTTPS", ExternalProtocol::Https),
    ("MONGO", ExternalProtocol::Mongo),
    ("TCP", ExternalProtocol::Tcp),
    ("TLS", ExternalProtocol::Tls),
];

pub(super) fn external_service(
    raw: &raw::ExternalService,
    span: Span,
    check: &mut Check<'_>,
) -> ExternalService {
    let hosts = scalar::items(&raw.hosts, check);
    for (entry, text) in &hosts {
        let exact_or_leading =
            scalar::is_fqdn(text) || text.strip_prefix("*.").is_some_and(scalar::is_fqdn);
        if !exact_or_leading {
            let why = "must be a DNS name, exact or with a leading '*.'";
            api::invalid(entry, why, GD008, check);
        }
    }
    let mut addresses = Vec::new();
    for (entry, text) in scalar::items(&raw.addresses, check) {
        match scalar::subnet(text) {
            Some(subnet) => addresses.push(subnet),
            None => {
                api::invalid(
                    entry,
                    "must be a valid IP address or CIDR block",
                    GD005,
                    check,
                );
            }
        }
    }
    let none = |field: &Field<Vec<Field<String>>>| {
        !field.is_invalid() && field.get().is_none_or(Vec::is_empty)
    };
    if none(&raw.hosts) && none(&raw.addresses) {
        api::required(span, "hosts", "", GD007, check)
            .help("write `hosts` or `addresses`: by them the service is found");
    }
    if none(&raw.hosts) && !none(&raw.addresses) {
        let message = "no route can lead here: a destination is named by a host";
        check
            .warning(GD016, raw.addresses.span(), message)
            .help("write `hosts`; a VirtualService for one of them holds for the addresses");
    }
    let ports = ports(&raw.ports, check);
    ExternalService {
        name: api::text(&raw.name),
        hosts: list(hosts),
        addresses,
        endpoints: endpoints(&raw.endpoints, &ports, check),
        ports,
        line: check.line(span),
    }
}

fn ports(
    field: &Field<Vec<Field<raw::ExternalServicePort>>>,
    check: &mut Check<'_>,
) -> Vec<ExternalPort> {
    let mut names: Vec<(&str, Span)> = Vec::new();
    let mut numbers: Vec<(u16, Span)> = Vec::new();
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let span = entry.span();
        let number = api::required_port(&raw.number, span, "number", GD003, check);
        api::require_text(&raw.protocol, span, "protocol", GD003, check);
        let protocol = api::enum_of(&raw.protocol, &PROTOCOLS, check);
        if let Some(name) = raw.name.get().filter(|name| !name.is_empty()) {
            match names.iter().find(|(known, _)| known == name) {
                Some((_, first)) => api::duplicate(name, raw.name.span(), *first, GD009, check),
                None => names.push((name, raw.name.span())),
            }
        }
        let (Some(number), Some(protocol)) = (number, protocol) else {
            continue;
        };
        match numbers.iter().find(|(known, _)| *known == number) {
            Some((_, first)) => {
                api::duplicate(&number.to_string(), raw.number.span(), *first, GD009, check);
            }
            None => numbers.push((number, raw.number.span())),
        }
        ports.push(ExternalPort {
            number,
            name: api::text(&raw.name),
            protocol,
            line: check.line(span),
        });
    }
    ports
}

fn endpoints(
    field: &Field<Vec<Field<raw::ExternalEndpoint>>>,
    ports: &[ExternalPort],
    check: &mut Check<'_>,
) -> Vec<ExternalEndpoint> {
    let mut endpoints = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        api::require_text(&raw.address, entry.span(), "address", GD003, check);
        let numbers = endpoint_ports(&raw.ports, ports, check);
        let Some(text) = raw.address.get().filter(|text| !text.is_empty()) else {
            continue;
        };
        let address = match scalar::ip(text) {
            Some(address) => Host::Ip(address),
            None => Host::Dns(Arc::from(text.as_str())),
        };
        if matches!(address, Host::Dns(_)) && !scalar::is_fqdn(text) {
            let why = "must be a DNS name or an IP address";
            api::invalid(&raw.address, why, GD006, check);
        }
        endpoints.push(ExternalEndpoint {
            address,
            ports: numbers,
            line: check.line(entry.span()),
        });
    }
    endpoints
}

fn endpoint_ports(
    field: &Field<Map<i64>>,
    ports: &[ExternalPort],
    check: &mut Check<'_>,
) -> BTreeMap<Arc<str>, u16> {
    let mut numbers = BTreeMap::new();
    for (name, key, value) in field.get().into_iter().flat_map(Map::iter) {
        if !ports.iter().any(|port| &*port.name == name) {
            let message = format!("Invalid value: {name:?}: no port with this name");
            check.warning(GD010, key.span(), message);
        }
        if let Some(number) = api::port(value, check) {
            numbers.insert(Arc::from(name), number);
        }
    }
    numbers
}
