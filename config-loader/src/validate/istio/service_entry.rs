//! ServiceEntry: validation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ipnet::IpNet;

use super::Check;
use super::gateway::{is_partial_wildcard, known_protocol};
use super::shared;
use super::workload_entry::endpoints;
use crate::diagnostic::codes::istio::{
    SE249, SE250, SE251, SE252, SE253, SE254, SE255, SE256, SE258, SE259, SE260, SE262, SE263,
    SE264, SE265, SE266, SE267, SE268, SE269, SE301, SE302, SE303, SE304,
};
use crate::raw::{self, Field, Map};
use crate::resource::istio::{
    EndpointAddress, Lined, Location, Protocol, Resolution, ServiceEntry, ServiceEntryPort,
    WorkloadEntry,
};
use crate::span::Span;
use crate::validate::{annotations, scalar};

/// Largest number of hosts of one object.
const HOSTS_MAX: usize = 256;

const RESOLUTIONS: [(&str, Resolution); 5] = [
    ("NONE", Resolution::None),
    ("STATIC", Resolution::Static),
    ("DNS", Resolution::Dns),
    ("DNS_ROUND_ROBIN", Resolution::DnsRoundRobin),
    ("DYNAMIC_DNS", Resolution::DynamicDns),
];

const LOCATIONS: [(&str, Location); 2] = [
    ("MESH_EXTERNAL", Location::MeshExternal),
    ("MESH_INTERNAL", Location::MeshInternal),
];

/// Checks a ServiceEntry.
pub fn service_entry(raw: &raw::istio::ServiceEntry, check: &mut Check<'_>) -> ServiceEntry {
    shared::exclude(
        [
            ("endpoints", shared::list(&raw.endpoints)),
            ("workloadSelector", shared::block(&raw.workload_selector)),
        ],
        SE249,
        "list the endpoints, or find them by labels",
        check,
    );
    let entry = ServiceEntry {
        hosts: hosts(&raw.hosts, check),
        addresses: shared::subnets(&raw.addresses, SE253, check),
        ports: ports(&raw.ports, check),
        location: scalar::enum_of(&raw.location, &LOCATIONS, check).unwrap_or_default(),
        resolution: scalar::enum_of(&raw.resolution, &RESOLUTIONS, check).unwrap_or_default(),
        endpoints: endpoints(&raw.endpoints, check),
        workload_selector: raw.workload_selector.get().map(|selector| {
            shared::selector(&selector.labels, raw.workload_selector.span(), check)
        }),
        export_to: scalar::export_to(
            &raw.export_to,
            true,
            check.options().exports.services,
            check,
        ),
        subject_alt_names: shared::texts(&raw.subject_alt_names, check),
        health_check: annotations::health_check(check),
    };
    if !raw.resolution.is_invalid() {
        fits_resolution(raw, &entry, check);
    }
    ports_of_endpoints(raw, &entry, check);
    sockets(raw, &entry, check);
    hosts_can_be_told_apart(raw, &entry, check);
    entry
}

fn hosts(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Lined<Arc<str>>> {
    if shared::list(field).is_none() {
        check
            .error(
                SE250,
                shared::location(field, check.body()),
                "the ServiceEntry has no hosts",
            )
            .help("write `hosts: [NAME]`");
    }
    let entries = scalar::items(field, check);
    if entries.len() > HOSTS_MAX {
        let message = format!("{} hosts are more than {HOSTS_MAX}", entries.len());
        check
            .error(SE250, field.span(), message)
            .help("split the ServiceEntry");
    }
    let mut hosts = Vec::new();
    for (entry, host) in entries {
        let span = entry.span();
        if host == "*" {
            check
                .error(SE251, span, "host `*` is not allowed")
                .help("name the hosts; to reach any host, see outboundTrafficPolicy of Sidecar");
        } else if !scalar::is_wildcard_domain(host) {
            check
                .error(SE252, span, format!("`{host}` is not a host"))
                .help("write a domain name; addresses belong under `addresses` or `endpoints`");
        } else if is_partial_wildcard(host) {
            check
                .warning(SE301, span, format!("partial wildcard `{host}`"))
                .help("a wildcard usually represents whole labels, as in `*.example.com`");
        }
        hosts.push(Lined {
            value: Arc::from(host.as_str()),
            line: check.line(span),
        });
    }
    hosts.shrink_to_fit();
    hosts
}

fn ports(
    field: &Field<Vec<Field<raw::istio::ServicePort>>>,
    check: &mut Check<'_>,
) -> Vec<ServiceEntryPort> {
    let mut names: HashMap<&str, Span> = HashMap::new();
    let mut numbers: HashMap<u16, Span> = HashMap::new();
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let name = shared::text(&raw.name).unwrap_or("");
        let name_place = shared::location(&raw.name, entry.span());
        if !scalar::is_dns_label(name) {
            let message = if name.is_empty() {
                "port without name".to_owned()
            } else {
                format!("`{name}` is not a port name")
            };
            check
                .error(SE255, name_place, message)
                .help("write for example `name: http`");
        } else if let Some(first) = names.insert(name, name_place) {
            let location = check.location(first);
            check
                .error(
                    SE255,
                    name_place,
                    format!("port name `{name}` is used twice"),
                )
                .help("give each port of the ServiceEntry its own name")
                .related(location, "first used here");
        }
        let number = number(raw, entry.span(), check);
        if let Some(first) = number.and_then(|number| numbers.insert(number, raw.number.span())) {
            let location = check.location(first);
            check
                .error(
                    SE256,
                    raw.number.span(),
                    format!("port {} is listed twice", number.unwrap_or(0)),
                )
                .help("remove one of the two")
                .related(location, "first listed here");
        }
        ports.push(ServiceEntryPort {
            number: number.unwrap_or(0),
            name: Arc::from(name),
            protocol: known_protocol(&raw.protocol, SE258, check).unwrap_or_default(),
            target_port: scalar::port(&raw.target_port, check),
            line: check.line(entry.span()),
        });
    }
    ports.shrink_to_fit();
    ports
}

fn number(raw: &raw::istio::ServicePort, around: Span, check: &mut Check<'_>) -> Option<u16> {
    if !raw.number.is_set() {
        check
            .error(
                SE256,
                shared::location(&raw.number, around),
                "port without number",
            )
            .help("write for example `number: 80`");
    }
    scalar::port(&raw.number, check)
}

/// Returns the endpoints with the spans of their addresses.
fn addresses<'a>(
    raw: &'a raw::istio::ServiceEntry,
    entry: &'a ServiceEntry,
) -> impl Iterator<Item = (&'a WorkloadEntry, &'a raw::istio::WorkloadEntry, Span)> {
    let raws = raw.endpoints.get().into_iter().flatten();
    let raws = raws.filter_map(|field| field.get().map(|raw| (raw, field.span())));
    entry
        .endpoints
        .iter()
        .zip(raws)
        .map(|(endpoint, (raw, span))| (&**endpoint, raw, shared::location(&raw.address, span)))
}

/// Checks that hosts, addresses and endpoints fit the resolution.
fn fits_resolution(raw: &raw::istio::ServiceEntry, entry: &ServiceEntry, check: &mut Check<'_>) {
    let resolution = entry.resolution;
    if !matches!(resolution, Resolution::None | Resolution::Static) {
        cidrs_are_refused(raw, check);
    }
    match resolution {
        Resolution::None => {
            let span = shared::list(&raw.endpoints);
            if !span.is_none() {
                check
                    .error(SE259, span, "resolution NONE takes no endpoints")
                    .help("write `resolution: STATIC` for addresses, or `DNS` for names");
            }
            without_effect_where_dialled(raw, check);
        }
        Resolution::Static => {
            for (endpoint, _, span) in addresses(raw, entry) {
                let name = match &endpoint.address {
                    EndpointAddress::Dns(name) if scalar::is_fqdn(name) => name,
                    _ => continue,
                };
                check
                    .error(SE260, span, format!("`{name}` is not an IP address"))
                    .help("write an IP address, or `resolution: DNS`");
            }
        }
        Resolution::Dns | Resolution::DnsRoundRobin => dns(raw, entry, check),
        Resolution::DynamicDns => dynamic_dns(raw, entry, check),
    }
}

/// Reports fields without effect. With resolution NONE, a connection goes to the address and port that its client
/// dialed.
fn without_effect_where_dialled(raw: &raw::istio::ServiceEntry, check: &mut Check<'_>) {
    let none = match shared::text(&raw.resolution) {
        Some(_) => "resolution NONE",
        None => "resolution NONE, which is the default",
    };
    let selector = shared::block(&raw.workload_selector);
    if !selector.is_none() {
        check
            .warning(
                SE303,
                selector,
                format!("workloadSelector has no effect with {none}"),
            )
            .help("write `resolution: STATIC` to send requests to the selected workloads");
    }
    let ports = raw.ports.get().into_iter().flatten();
    for port in ports.filter_map(Field::get) {
        let target = port.target_port.get();
        if target.is_some_and(|target| (1..=65_535).contains(target)) {
            check
                .warning(
                    SE304,
                    port.target_port.span(),
                    format!("targetPort has no effect with {none}"),
                )
                .help("write `resolution: DNS` or `STATIC`, or remove targetPort");
        }
    }
}

fn cidrs_are_refused(raw: &raw::istio::ServiceEntry, check: &mut Check<'_>) {
    for field in raw.addresses.get().into_iter().flatten() {
        let net = field
            .get()
            .and_then(|text| text.contains('/').then(|| scalar::subnet(text)).flatten());
        let is_block = |net: &IpNet| net.prefix_len() < net.max_prefix_len();
        if let Some(net) = net.filter(is_block) {
            check
                .error(
                    SE254,
                    field.span(),
                    format!("the CIDR `{net}` needs resolution NONE or STATIC"),
                )
                .help("name single addresses");
        }
    }
}

fn dns(raw: &raw::istio::ServiceEntry, entry: &ServiceEntry, check: &mut Check<'_>) {
    if entry.endpoints.is_empty() && entry.workload_selector.is_none() {
        for field in raw.hosts.get().into_iter().flatten() {
            let Some(host) = field
                .get()
                .filter(|host| host.starts_with('*') && *host != "*")
            else {
                continue;
            };
            check
                .error(SE263, field.span(), format!("`{host}` cannot be resolved"))
                .help("add endpoints, whose names are resolved, or write `resolution: NONE`");
        }
    }
    if entry.resolution == Resolution::DnsRoundRobin && entry.endpoints.len() > 1 {
        let message = format!(
            "DNS_ROUND_ROBIN takes one endpoint, not {}",
            entry.endpoints.len()
        );
        check
            .error(SE264, raw.endpoints.span(), message)
            .help("write `resolution: DNS` for several");
    }
    for (endpoint, _, span) in addresses(raw, entry) {
        if let EndpointAddress::Unix(path) = &endpoint.address {
            check
                .error(
                    SE265,
                    span,
                    format!("`{path}` is neither a name nor an address"),
                )
                .help("a socket needs `resolution: STATIC`");
        }
    }
}

fn dynamic_dns(raw: &raw::istio::ServiceEntry, entry: &ServiceEntry, check: &mut Check<'_>) {
    const HELP: &str = "DYNAMIC_DNS resolves the host of each request: it takes wildcard hosts, and ports of protocol HTTP, HTTP2, GRPC or TLS";
    for field in raw.hosts.get().into_iter().flatten() {
        if let Some(host) = field.get().filter(|host| !host.starts_with('*')) {
            let message = format!("host `{host}` does not fit DYNAMIC_DNS");
            check.error(SE267, field.span(), message).help(HELP);
        }
    }
    for (name, span) in [
        ("addresses", shared::list(&raw.addresses)),
        ("endpoints", shared::list(&raw.endpoints)),
    ] {
        if !span.is_none() {
            check
                .error(SE267, span, format!("`{name}` does not fit DYNAMIC_DNS"))
                .help(HELP);
        }
    }
    for (port, field) in entry
        .ports
        .iter()
        .zip(raw.ports.get().into_iter().flatten().filter_map(Field::get))
    {
        let fits = matches!(
            port.protocol,
            Protocol::Http | Protocol::Http2 | Protocol::Grpc | Protocol::Tls
        );
        let unknown = port.protocol == Protocol::Detect && field.protocol.is_written();
        if !fits && !unknown {
            let message = format!(
                "protocol `{}` of port {} does not fit DYNAMIC_DNS",
                port.protocol, port.number
            );
            check
                .error(
                    SE267,
                    shared::location(&field.protocol, raw.ports.span()),
                    message,
                )
                .help(HELP);
        }
    }
}

fn ports_of_endpoints(raw: &raw::istio::ServiceEntry, entry: &ServiceEntry, check: &mut Check<'_>) {
    let names: HashSet<&str> = entry.ports.iter().map(|port| &*port.name).collect();
    for (_, endpoint, _) in addresses(raw, entry) {
        for (name, key, _) in endpoint.ports.get().into_iter().flat_map(Map::iter) {
            if !names.contains(name) {
                let known: Vec<&str> = entry.ports.iter().map(|port| &*port.name).take(8).collect();
                check
                    .error(
                        SE266,
                        key.span(),
                        format!("port `{name}` is not defined by the ServiceEntry"),
                    )
                    .help(format!("its ports are named: {}", known.join(", ")));
            }
        }
    }
}

fn sockets(raw: &raw::istio::ServiceEntry, entry: &ServiceEntry, check: &mut Check<'_>) {
    let mut places = addresses(raw, entry)
        .filter(|(endpoint, _, _)| matches!(endpoint.address, EndpointAddress::Unix(_)))
        .map(|(_, _, span)| span);
    if let Some(span) = places.next().filter(|_| entry.ports.len() != 1) {
        let location = if shared::list(&raw.ports).is_none() {
            span
        } else {
            raw.ports.span()
        };
        let message = format!(
            "a socket endpoint needs exactly one service port, not {}",
            entry.ports.len()
        );
        check.error(SE262, location, message);
    }
}

/// Checks that traffic identifies its host. On a TCP port, only the address can.
fn hosts_can_be_told_apart(
    raw: &raw::istio::ServiceEntry,
    entry: &ServiceEntry,
    check: &mut Check<'_>,
) {
    let raws = raw
        .ports
        .get()
        .into_iter()
        .flatten()
        .filter(|field| field.get().is_some());
    let opaque = entry.ports.iter().zip(raws).filter(|(port, field)| {
        let wrong = field
            .get()
            .is_some_and(|raw| shared::text(&raw.protocol).is_some() || raw.protocol.is_invalid())
            && port.protocol == Protocol::Detect;
        !port.protocol.is_http() && !port.protocol.is_tls() && !wrong
    });
    let opaque: Vec<_> = opaque.collect();
    if entry.hosts.len() > 1 && entry.resolution != Resolution::None {
        if let Some((port, field)) = opaque.first() {
            let message = format!(
                "port {} ({}) cannot serve several hosts",
                port.number,
                spoken(port)
            );
            check.error(SE268, field.span(), message).help(
                "only HTTP and TLS tell which host is meant: write one ServiceEntry per host",
            );
            return;
        }
        one_address_of_several_hosts(raw, entry, check);
    }
    // Addresses that cannot be read have findings of their own.
    if raw
        .addresses
        .get()
        .is_some_and(|addresses| !addresses.is_empty())
    {
        return;
    }
    let dialled = opaque.into_iter();
    for (port, field) in dialled.filter(|(port, _)| port.protocol != Protocol::Udp) {
        let message = format!(
            "port {} ({}) without addresses takes the port for all addresses",
            port.number,
            spoken(port)
        );
        let help = match port.protocol {
            Protocol::Detect => "write `protocol`, or the `addresses` that clients dial",
            _ => "write the `addresses` that clients dial",
        };
        check.warning(SE269, field.span(), message).help(help);
    }
}

/// Returns the protocol of a port, for a message.
fn spoken(port: &ServiceEntryPort) -> &'static str {
    match port.protocol {
        Protocol::Detect => "no protocol",
        known => known.as_str(),
    }
}

/// Warns of an address that several hosts share: a connection does not tell which host it is for, because its TLS need
/// not name one.
fn one_address_of_several_hosts(
    raw: &raw::istio::ServiceEntry,
    entry: &ServiceEntry,
    check: &mut Check<'_>,
) {
    let by_name = matches!(
        entry.resolution,
        Resolution::Dns | Resolution::DnsRoundRobin
    );
    let Some(port) = entry.ports.iter().find(|port| port.protocol.is_tls()) else {
        return;
    };
    if !by_name || entry.addresses.is_empty() {
        return;
    }
    let hosts = raw.hosts.get().into_iter().flatten();
    for host in hosts.filter(|host| host.get().is_some()).skip(1) {
        let name = host.get().map_or("", String::as_str);
        let message = format!(
            "`{name}` shares its address with `{}`: a connection to port {} ({}) of it may not tell which host is meant",
            entry.hosts[0].value, port.number, port.protocol
        );
        check
            .warning(SE302, host.span(), message)
            .help("write a ServiceEntry for each host, with addresses of its own");
    }
}

#[cfg(test)]
mod tests;
