//! Parts of `status` that several kinds share.

use std::sync::Arc;

use super::{Check, api, scalar};
use crate::diagnostic::Code;
use crate::diagnostic::codes::common::{CM029, CM035};
use crate::raw::{self, Field};
use crate::resource::core::{Condition, ConditionStatus, Host, Ingress, IngressMode, IngressPort};
use crate::span::Span;

const STATUSES: [(&str, ConditionStatus); 3] = [
    ("False", ConditionStatus::False),
    ("True", ConditionStatus::True),
    ("Unknown", ConditionStatus::Unknown),
];

const MODES: [(&str, IngressMode); 2] = [("Proxy", IngressMode::Proxy), ("VIP", IngressMode::Vip)];

/// Warns of a part of `status` that describes an older generation of the object. It is still used.
pub(super) fn warn_if_stale(observed: i64, span: Span, check: &mut Check<'_>) {
    let Some(generation) = check.generation().filter(|now| observed < *now) else {
        return;
    };
    let message = format!(
        "stale: this is about generation {observed} of the object, which is at {generation}; it is used all the same"
    );
    check
        .warning(CM035, span, message)
        .help("if it stays so, look whether what writes the status still runs");
}

/// Returns the entries of `conditions`.
pub(super) fn conditions(
    field: &Field<Vec<Field<raw::core::Condition>>>,
    code: Code,
    check: &mut Check<'_>,
) -> Vec<Condition> {
    let mut seen: Vec<(&str, Span)> = Vec::new();
    let mut conditions = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let parent = entry.span();
        for (name, field) in [
            ("type", &raw.condition_type),
            ("status", &raw.status),
            ("reason", &raw.reason),
            ("lastTransitionTime", &raw.last_transition_time),
        ] {
            api::require_text(field, parent, name, code, check);
        }
        if !raw.message.is_set() {
            api::required(parent, "message", "", code, check);
        }
        if let Some(name) = raw.condition_type.get() {
            let span = raw.condition_type.span();
            match seen.iter().find(|(known, _)| known == name) {
                Some((_, first)) => api::duplicate(name, span, *first, code, check),
                None => seen.push((name, span)),
            }
        }
        if let Some(value) = raw.observed_generation.get().filter(|value| **value < 0) {
            let message = format!("Invalid value: {value}: must be greater than or equal to 0");
            check.error(CM029, raw.observed_generation.span(), message);
        } else if let Some(observed) = raw.observed_generation.get() {
            warn_if_stale(*observed, raw.observed_generation.span(), check);
        }
        let status = api::enum_of(&raw.status, &STATUSES, check);
        conditions.push(Condition {
            condition_type: api::text(&raw.condition_type),
            status: status.unwrap_or(ConditionStatus::Unknown),
            reason: api::text(&raw.reason),
            message: api::text(&raw.message),
            last_transition_time: api::text(&raw.last_transition_time),
            observed_generation: raw.observed_generation.get().copied(),
        });
    }
    conditions
}

/// Returns the entries of `loadBalancer.ingress` that have an address.
pub(super) fn ingress(
    field: &Field<raw::core::LoadBalancerStatus>,
    code: Code,
    check: &mut Check<'_>,
) -> Vec<Ingress> {
    let Some(status) = field.get() else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for (_, raw) in scalar::items(&status.ingress, check) {
        let host = ingress_host(raw, code, check);
        if api::some_text(&raw.ip_mode).is_some() && api::some_text(&raw.ip).is_none() {
            let why = "may not be specified when `ip` is not set";
            api::invalid(&raw.ip_mode, why, code, check);
        }
        let mode = api::enum_of(&raw.ip_mode, &MODES, check).unwrap_or_default();
        let ports = ingress_ports(&raw.ports, code, check);
        if let Some(host) = host {
            entries.push(Ingress { host, mode, ports });
        }
    }
    entries
}

fn ingress_host(
    raw: &raw::core::LoadBalancerIngress,
    code: Code,
    check: &mut Check<'_>,
) -> Option<Host> {
    let mut host = None;
    if let Some(name) = raw.hostname.get().filter(|name| !name.is_empty()) {
        if scalar::ip(name).is_some() {
            api::invalid(
                &raw.hostname,
                "must be a DNS name, not an IP address",
                code,
                check,
            );
        } else if !scalar::is_dns_subdomain(name) {
            api::invalid(&raw.hostname, "must be a DNS name", code, check);
        }
        host = Some(Host::Dns(Arc::from(name.as_str())));
    }
    if let Some(text) = raw.ip.get().filter(|text| !text.is_empty()) {
        match scalar::ip(text) {
            Some(address) => host = Some(Host::Ip(address)),
            None => {
                api::invalid(&raw.ip, "must be a valid IP address", code, check);
            }
        }
    }
    host
}

fn ingress_ports(
    field: &Field<Vec<Field<raw::core::PortStatus>>>,
    code: Code,
    check: &mut Check<'_>,
) -> Vec<IngressPort> {
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        api::require_text(&raw.protocol, entry.span(), "protocol", code, check);
        let protocol = api::protocol(&raw.protocol, check);
        if let Some(port) = api::required_port(&raw.port, entry.span(), "port", code, check) {
            ports.push(IngressPort {
                port,
                protocol,
                error: api::some_text(&raw.error),
            });
        }
    }
    ports
}
