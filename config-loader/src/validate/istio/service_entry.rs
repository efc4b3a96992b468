//! ServiceEntry: raw to checked.

use std::sync::Arc;

use super::Check;
use super::shared::{text, text_or_empty};
use super::workload_entry::entry;
use crate::raw;
use crate::resource::istio::{
    Lined, Location, Protocol, Resolution, ServiceEntry, ServiceEntryPort,
};
use crate::validate::scalar;

/// Checks a ServiceEntry.
pub fn service_entry(raw: &raw::istio::ServiceEntry, check: &mut Check<'_>) -> ServiceEntry {
    let hosts = scalar::items(&raw.hosts, check);
    let ports = scalar::items(&raw.ports, check);
    let endpoints = scalar::items(&raw.endpoints, check);
    let resolutions = [
        ("DNS", Resolution::Dns),
        ("DNS_ROUND_ROBIN", Resolution::DnsRoundRobin),
        ("DYNAMIC_DNS", Resolution::DynamicDns),
        ("NONE", Resolution::None),
        ("STATIC", Resolution::Static),
    ];
    let selector = raw.workload_selector.get();
    ServiceEntry {
        hosts: hosts
            .into_iter()
            .map(|(field, host)| Lined {
                value: Arc::from(host.as_str()),
                line: check.line(field.span()),
            })
            .collect(),
        addresses: Vec::new(),
        ports: ports
            .into_iter()
            .map(|(field, port)| ServiceEntryPort {
                number: scalar::port(&port.number, check).unwrap_or(0),
                name: text_or_empty(&port.name),
                protocol: text(&port.protocol)
                    .and_then(Protocol::from_name)
                    .unwrap_or_default(),
                target_port: scalar::port(&port.target_port, check),
                line: check.line(field.span()),
            })
            .collect(),
        location: Location::default(),
        resolution: scalar::enum_of(&raw.resolution, &resolutions, check).unwrap_or_default(),
        endpoints: endpoints
            .into_iter()
            .map(|(field, endpoint)| entry(endpoint, check, field.span()))
            .collect(),
        workload_selector: selector.map(|selector| scalar::selector(&selector.labels, check)),
        export_to: scalar::export_to(&raw.export_to, true, check),
        subject_alt_names: Vec::new(),
    }
}
