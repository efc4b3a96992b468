//! `kubeService` of a Destination.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::values::{cluster_ref, list, texts};
use crate::diagnostic::codes::common::{CM017, CM029};
use crate::diagnostic::codes::multicluster::{GD003, GD004, GD005, GD006};
use crate::raw::gloo as raw;
use crate::raw::{Field, IntOrString, Map};
use crate::resource::core::Host;
use crate::resource::gloo::{
    ClusterRef, EndpointPort, EndpointSubset, KubeEndpoint, KubePort, KubeService, KubeServiceType,
    KubeTargetPort,
};
use crate::span::Span;
use crate::validate::{Check, api, scalar};

/// Service types by name, in the order of their protobuf numbers.
const TYPES: [(&str, KubeServiceType); 4] = [
    ("CLUSTER_IP", KubeServiceType::ClusterIp),
    ("NODE_PORT", KubeServiceType::NodePort),
    ("LOAD_BALANCER", KubeServiceType::LoadBalancer),
    ("EXTERNAL_NAME", KubeServiceType::ExternalName),
];

pub(super) fn kube_service(
    raw: &raw::KubeService,
    span: Span,
    check: &mut Check<'_>,
) -> KubeService {
    let service = reference(&raw.reference, span, check);
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(&raw.ports, check) {
        ports.extend(port(raw, entry.span(), check));
    }
    let mut endpoint_subsets = Vec::new();
    for (_, raw) in scalar::items(&raw.endpoint_subsets, check) {
        endpoint_subsets.push(EndpointSubset {
            endpoints: endpoints(&raw.endpoints, check),
            ports: endpoint_ports(&raw.ports, check),
        });
    }
    let mut external_addresses = Vec::new();
    for (entry, raw) in scalar::items(&raw.external_addresses, check) {
        external_addresses.extend(external_address(raw, entry.span(), check));
    }
    KubeService {
        service,
        selector: texts(&raw.workload_selector_labels),
        labels: texts(&raw.labels),
        ports,
        subsets: subsets(&raw.subsets, check),
        region: api::text(&raw.region),
        endpoint_subsets,
        external_addresses,
        service_type: service_type(&raw.service_type, check),
        line: check.line(span),
    }
}

fn reference(
    field: &Field<raw::ClusterObjectRef>,
    span: Span,
    check: &mut Check<'_>,
) -> ClusterRef {
    let Some(raw) = field.get() else {
        if !field.is_invalid() {
            api::required(span, "ref", "", GD003, check);
        }
        return ClusterRef::default();
    };
    for (name, part) in [
        ("name", &raw.name),
        ("namespace", &raw.namespace),
        ("clusterName", &raw.cluster_name),
    ] {
        api::require_text(part, field.span(), name, GD003, check);
    }
    cluster_ref(raw)
}

fn port(raw: &raw::KubeServicePort, span: Span, check: &mut Check<'_>) -> Option<KubePort> {
    let port = api::required_port(&raw.port, span, "port", GD003, check);
    let both = raw.target_port_name.is_set() && raw.target_port_number.is_set();
    if both {
        let location = check.location(raw.target_port_name.span());
        let message = "only one of `targetPortName` and `targetPortNumber` may be set";
        check
            .error(GD004, raw.target_port_number.span(), message)
            .related(location, "`targetPortName` is set here");
    }
    let number = some_port(&raw.target_port_number, check);
    let node_port = some_port(&raw.node_port, check);
    let protocol = api::text(&raw.protocol);
    let target = match (api::some_text(&raw.target_port_name), number) {
        (Some(name), _) => KubeTargetPort::Name(name),
        (None, Some(number)) => KubeTargetPort::Number(number),
        (None, None) => KubeTargetPort::Same,
    };
    Some(KubePort {
        port: port?,
        name: api::some_text(&raw.name).unwrap_or_else(|| Arc::clone(&protocol)),
        protocol,
        app_protocol: api::some_text(&raw.app_protocol),
        target,
        node_port,
        line: check.line(span),
    })
}

/// Returns a port; `None` for 0, which is how protobuf writes a missing number.
fn some_port(field: &Field<i64>, check: &mut Check<'_>) -> Option<u16> {
    let value = *field.get().filter(|value| **value != 0)?;
    api::port_number(value, field.span(), check)
}

fn endpoints(field: &Field<Vec<Field<raw::Endpoint>>>, check: &mut Check<'_>) -> Vec<KubeEndpoint> {
    let mut endpoints = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        api::require_text(&raw.ip_address, entry.span(), "ipAddress", GD003, check);
        let Some(text) = raw.ip_address.get().filter(|text| !text.is_empty()) else {
            continue;
        };
        let Some(ip) = scalar::ip(text) else {
            api::invalid(&raw.ip_address, "must be a valid IP address", GD005, check);
            continue;
        };
        let locality = raw.sub_locality.get();
        let part = |field: fn(&raw::SubLocality) -> &Field<String>| {
            locality.map_or_else(|| Arc::from(""), |locality| api::text(field(locality)))
        };
        endpoints.push(KubeEndpoint {
            ip,
            labels: texts(&raw.labels),
            zone: part(|locality| &locality.zone),
            sub_zone: part(|locality| &locality.sub_zone),
            line: check.line(entry.span()),
        });
    }
    endpoints
}

fn endpoint_ports(
    field: &Field<Vec<Field<raw::EndpointPort>>>,
    check: &mut Check<'_>,
) -> Vec<EndpointPort> {
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let span = entry.span();
        if let Some(port) = api::required_port(&raw.port, span, "port", GD003, check) {
            ports.push(EndpointPort {
                port,
                name: api::text(&raw.name),
                protocol: api::text(&raw.protocol),
                app_protocol: api::some_text(&raw.app_protocol),
                line: check.line(span),
            });
        }
    }
    ports
}

fn external_address(raw: &raw::ExternalAddress, span: Span, check: &mut Check<'_>) -> Option<Host> {
    let name = raw.dns_name.get().filter(|text| !text.is_empty());
    let ip = raw.ip.get().filter(|text| !text.is_empty());
    match (name, ip) {
        (Some(_), Some(_)) => {
            let location = check.location(raw.dns_name.span());
            check
                .error(
                    GD006,
                    raw.ip.span(),
                    "only one of `dnsName` and `ip` may be set",
                )
                .related(location, "`dnsName` is set here");
            None
        }
        (Some(name), None) => {
            if !scalar::is_fqdn(name) {
                api::invalid(&raw.dns_name, "must be a DNS name", GD006, check);
            }
            Some(Host::Dns(Arc::from(name.as_str())))
        }
        (None, Some(text)) => {
            let address = scalar::ip(text);
            if address.is_none() {
                api::invalid(&raw.ip, "must be a valid IP address", GD005, check);
            }
            address.map(Host::Ip)
        }
        (None, None) => {
            if !raw.dns_name.is_invalid() && !raw.ip.is_invalid() {
                check.error(GD006, span, "Required value: dnsName or ip is required");
            }
            None
        }
    }
}

fn subsets(
    field: &Field<Map<raw::Subset>>,
    check: &mut Check<'_>,
) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
    let mut subsets = BTreeMap::new();
    for (key, _, value) in field.get().into_iter().flat_map(Map::iter) {
        let values = value.get().map_or_else(Vec::new, |subset| {
            list(scalar::items(&subset.values, check))
        });
        subsets.insert(Arc::from(key), values);
    }
    subsets
}

/// Returns the service type by its name or number: the JSON mapping of protobuf allows both.
fn service_type(field: &Field<IntOrString>, check: &mut Check<'_>) -> KubeServiceType {
    let Some(written) = field.get() else {
        return KubeServiceType::default();
    };
    let names: Vec<String> = TYPES.iter().map(|(name, _)| format!("{name:?}")).collect();
    let known = names.join(", ");
    let (found, code, shown) = match written {
        IntOrString::Int(number) => {
            let index = usize::try_from(*number).ok();
            let found = index.and_then(|index| TYPES.get(index));
            (found, CM029, number.to_string())
        }
        IntOrString::String(text) => {
            let found = TYPES.iter().find(|(name, _)| name == text);
            (found, CM017, format!("{text:?}"))
        }
    };
    if found.is_none() {
        let message = format!("Unsupported value: {shown}: supported values: {known}");
        check.error(code, field.span(), message);
    }
    found.map_or_else(KubeServiceType::default, |(_, found)| *found)
}
