//! Service: the checks of the Kubernetes API.

mod address;
mod service_type;

use std::sync::Arc;

use service_type::Type;

use crate::diagnostic::codes::core::{
    SVC001, SVC002, SVC003, SVC004, SVC005, SVC006, SVC007, SVC011, SVC012, SVC013, SVC014, SVC015,
    SVC016,
};
use crate::raw::core as raw;
use crate::raw::{Field, IntOrString};
use crate::resource::core::{
    ExternalAddress, Host, Service, ServicePort, ServiceType, TargetPort, TrafficDistribution,
    TrafficPolicy,
};
use crate::span::Span;
use crate::validate::{Check, api, api_status, scalar};

const TYPES: [(&str, Type); 4] = [
    ("ClusterIP", Type::ClusterIp),
    ("ExternalName", Type::ExternalName),
    ("LoadBalancer", Type::LoadBalancer),
    ("NodePort", Type::NodePort),
];

/// Values of `internalTrafficPolicy` and `externalTrafficPolicy`.
pub(in crate::validate) const TRAFFIC_POLICIES: [(&str, TrafficPolicy); 2] = [
    ("Cluster", TrafficPolicy::Cluster),
    ("Local", TrafficPolicy::Local),
];

/// Values of `trafficDistribution`.
pub(in crate::validate) const DISTRIBUTIONS: [(&str, TrafficDistribution); 3] = [
    ("PreferClose", TrafficDistribution::PreferSameZone),
    ("PreferSameNode", TrafficDistribution::PreferSameNode),
    ("PreferSameZone", TrafficDistribution::PreferSameZone),
];

/// Checks a Service.
pub fn service(raw: &raw::Service, check: &mut Check<'_>) -> Service {
    let empty = raw::ServiceSpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    name(check);
    let kind = api::enum_of(&spec.service_type, &TYPES, check).unwrap_or(Type::ClusterIp);
    let addresses = address::addresses(spec, kind, check);
    if !raw.spec.is_invalid() {
        needs_ports(
            spec,
            raw.spec.span(),
            kind == Type::ExternalName || addresses.headless,
            check,
        );
    }
    let ports = ports(spec, kind, check);
    let config = &spec.session_affinity_config;
    let session_affinity = api::session_affinity(&spec.session_affinity, config, SVC011, check);
    let none = spec
        .session_affinity
        .get()
        .is_none_or(|text| text == "None" || text.is_empty());
    if none && config.get().is_some_and(|config| config.client_ip.is_set()) {
        let message = "Forbidden: must not be set when session affinity is None";
        check
            .error(SVC014, config.span(), message)
            .help("write `sessionAffinity: ClientIP` beside it");
    }
    let status = raw.status.get();
    Service {
        service_type: service_type(spec, raw.spec.span(), kind, check),
        ports,
        selector: scalar::labels(&spec.selector, check),
        cluster_ips: addresses.cluster_ips,
        headless: addresses.headless,
        external_ips: addresses.external_ips,
        session_affinity,
        traffic_distribution: api::enum_of(&spec.traffic_distribution, &DISTRIBUTIONS, check)
            .unwrap_or_default(),
        internal_traffic_policy: api::enum_of(
            &spec.internal_traffic_policy,
            &TRAFFIC_POLICIES,
            check,
        )
        .unwrap_or_default(),
        external_traffic_policy: api::enum_of(
            &spec.external_traffic_policy,
            &TRAFFIC_POLICIES,
            check,
        )
        .unwrap_or_default(),
        publish_not_ready_addresses: spec
            .publish_not_ready_addresses
            .get()
            .copied()
            .unwrap_or(false),
        ingress: status.map_or_else(Vec::new, |status| {
            api_status::ingress(&status.load_balancer, SVC016, check)
        }),
        conditions: status.map_or_else(Vec::new, |status| {
            api_status::conditions(&status.conditions, SVC015, check)
        }),
        default_export: check.options().exports.services,
    }
}

/// Checks that the name is a DNS label, since it is part of the service's host name.
fn name(check: &mut Check<'_>) {
    let name = check.name().to_owned();
    if !api::is_label(&name) && !name.is_empty() {
        let message = format!("Invalid value: {name:?}: {}", api::LABEL_RULE);
        check.error(SVC013, check.name_span(), message);
    }
}

fn needs_ports(spec: &raw::ServiceSpec, body: Span, optional: bool, check: &mut Check<'_>) {
    let ports = &spec.ports;
    if body.is_none() {
        api::required(body, "spec", "", SVC001, check);
    } else if !optional && !ports.is_set() {
        api::required(body, "ports", "", SVC001, check);
    } else if !optional && ports.get().is_some_and(Vec::is_empty) {
        check.error(SVC001, ports.span(), "Required value");
    }
}

fn service_type(
    spec: &raw::ServiceSpec,
    body: Span,
    kind: Type,
    check: &mut Check<'_>,
) -> ServiceType {
    match kind {
        Type::ClusterIp => ServiceType::ClusterIp,
        Type::LoadBalancer => ServiceType::LoadBalancer,
        Type::NodePort => ServiceType::NodePort,
        Type::ExternalName => {
            api::require_text(&spec.external_name, body, "externalName", SVC007, check);
            let text = spec.external_name.get().map_or("", String::as_str);
            let text = text.strip_suffix('.').unwrap_or(text);
            if !text.is_empty() && scalar::ip(text).is_none() && !scalar::is_dns_subdomain(text) {
                let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                            '-' or '.', and must start and end with an alphanumeric character";
                api::invalid(&spec.external_name, rule, SVC007, check);
            }
            let host = scalar::ip(text).map_or_else(|| Host::Dns(Arc::from(text)), Host::Ip);
            let line = check.line(spec.external_name.span());
            ServiceType::ExternalName(ExternalAddress { host, line })
        }
    }
}

fn ports(spec: &raw::ServiceSpec, kind: Type, check: &mut Check<'_>) -> Vec<ServicePort> {
    let entries = scalar::items(&spec.ports, check);
    let codes = api::PortNameCodes {
        label: SVC002,
        unique: SVC003,
    };
    let names = entries.iter().map(|(entry, raw)| (entry.span(), &raw.name));
    api::port_names(names, codes, check);
    let mut numbers = Vec::with_capacity(entries.len());
    let mut ports = Vec::with_capacity(entries.len());
    for (entry, raw) in entries {
        let span = entry.span();
        let protocol = api::protocol(&raw.protocol, check);
        let number = api::required_port(&raw.port, span, "port", SVC001, check);
        let node_port = node_port(&raw.node_port, kind, check);
        let target = target_port(&raw.target_port, number.unwrap_or(0), check);
        app_protocol(&raw.app_protocol, check);
        let Some(port) = number else { continue };
        numbers.push((span, port, protocol));
        ports.push(ServicePort {
            name: api::text(&raw.name),
            port,
            target,
            protocol,
            app_protocol: api::some_text(&raw.app_protocol),
            node_port,
            line: check.line(span),
        });
    }
    api::port_numbers(&numbers, SVC004, check);
    ports
}

fn app_protocol(field: &Field<String>, check: &mut Check<'_>) {
    if field
        .get()
        .is_some_and(|text| !text.is_empty() && !scalar::is_label_key(text))
    {
        api::invalid(
            field,
            "must be a name, or a domain, a slash and a name",
            SVC006,
            check,
        );
    }
}

/// Returns the port on every node. 0 lets Kubernetes choose it.
fn node_port(field: &Field<i64>, kind: Type, check: &mut Check<'_>) -> Option<u16> {
    let value = *field.get().filter(|value| **value != 0)?;
    if matches!(kind, Type::ClusterIp | Type::ExternalName) {
        let name = if kind == Type::ClusterIp {
            "ClusterIP"
        } else {
            "ExternalName"
        };
        let message = format!("Forbidden: may not be used when `type` is '{name}'");
        check
            .error(SVC012, field.span(), message)
            .help("write `type: NodePort`");
        return None;
    }
    api::port_number(value, field.span(), check)
}

fn target_port(field: &Field<IntOrString>, own: u16, check: &mut Check<'_>) -> TargetPort {
    match field.get() {
        // Kubernetes reads 0 and an empty text as if nothing were written.
        None | Some(IntOrString::Int(0)) => TargetPort::Number(own),
        Some(IntOrString::Int(number)) => {
            TargetPort::Number(api::port_number(*number, field.span(), check).unwrap_or(own))
        }
        Some(IntOrString::String(name)) if name.is_empty() => TargetPort::Number(own),
        Some(IntOrString::String(name)) => {
            if let Some(why) = port_name_problem(name) {
                let message = format!("Invalid value: {name:?}: {why}");
                let found = check.error(SVC005, field.span(), message);
                if name.bytes().all(|byte| byte.is_ascii_digit()) {
                    found.help("remove the quotes");
                }
            }
            TargetPort::Name(Arc::from(name.as_str()))
        }
    }
}

/// Returns the error of a pod port name that is not an IANA service name.
fn port_name_problem(name: &str) -> Option<&'static str> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() > 15 {
        Some("must be no more than 15 characters")
    } else if !name.bytes().all(plain) {
        Some("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    } else if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Some("must contain at least one letter (a-z)")
    } else if name.contains("--") {
        Some("must not contain consecutive hyphens")
    } else if name.starts_with('-') || name.ends_with('-') {
        Some("must not begin or end with a hyphen")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
