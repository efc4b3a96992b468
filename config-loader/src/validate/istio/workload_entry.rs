//! WorkloadEntry: raw to checked.

use std::sync::Arc;

use super::Check;
use super::shared::{text, text_or_empty};
use crate::raw;
use crate::resource::istio::{EndpointAddress, Locality, WorkloadEntry};
use crate::validate::scalar;

/// Checks a WorkloadEntry.
pub fn workload_entry(raw: &raw::istio::WorkloadEntry, check: &mut Check<'_>) -> WorkloadEntry {
    entry(raw, check, check.body())
}

pub(super) fn entry(
    raw: &raw::istio::WorkloadEntry,
    check: &mut Check<'_>,
    span: crate::span::Span,
) -> WorkloadEntry {
    let address = text(&raw.address).unwrap_or("");
    let ports = raw.ports.get().map(|ports| {
        let ports = ports.iter();
        let pairs =
            ports.filter_map(|(name, _, port)| Some((Arc::from(name), scalar::port(port, check)?)));
        pairs.collect()
    });
    WorkloadEntry {
        address: match (address.parse(), address.strip_prefix("unix://")) {
            (Ok(ip), _) => EndpointAddress::Ip(ip),
            (_, Some(path)) => EndpointAddress::Unix(path.into()),
            _ => EndpointAddress::Dns(address.into()),
        },
        ports: ports.unwrap_or_default(),
        labels: scalar::labels(&raw.labels, check),
        network: text_or_empty(&raw.network),
        locality: Locality::parse(text(&raw.locality).unwrap_or("")),
        weight: raw
            .weight
            .get()
            .and_then(|weight| u32::try_from(*weight).ok())
            .unwrap_or(1),
        service_account: text_or_empty(&raw.service_account),
        line: check.line(span),
    }
}
