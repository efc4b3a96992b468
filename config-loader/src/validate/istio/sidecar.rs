//! Sidecar: validation.

mod egress;
mod ingress;
mod values;

use super::destination_rule::connection_pool;
use super::virtual_service::destination;
use super::{Check, shared};
use crate::diagnostic::codes::istio::{SC222, SC246, SC247, SC248, SC301};
use crate::raw::{self, Field};
use crate::resource::istio::{OutboundPolicy, Sidecar};
use crate::span::Line;
use crate::validate::scalar;

/// Checks a Sidecar.
pub fn sidecar(raw: &raw::istio::Sidecar, check: &mut Check<'_>) -> Sidecar {
    let blocks = [
        shared::list(&raw.ingress),
        shared::list(&raw.egress),
        shared::block(&raw.outbound_traffic_policy),
        shared::block(&raw.inbound_connection_pool),
    ];
    if blocks.iter().all(|block| block.is_none()) {
        check
            .error(SC222, check.body(), "the Sidecar says nothing")
            .help("write `egress`, `ingress`, `outboundTrafficPolicy` or `inboundConnectionPool`");
    }
    let selector = raw.workload_selector.get();
    let has_egress = !shared::list(&raw.egress).is_none();
    let egress = egress::listeners(&raw.egress, check);
    Sidecar {
        workload_selector: selector.map(|selector| {
            shared::selector(&selector.labels, raw.workload_selector.span(), check)
        }),
        workload_selector_line: match selector {
            Some(_) => check.line(raw.workload_selector.span()),
            None => Line::default(),
        },
        ingress: ingress::listeners(&raw.ingress, check),
        egress: has_egress.then_some(egress),
        outbound: outbound(&raw.outbound_traffic_policy, check),
        inbound_connection_pool: connection_pool(&raw.inbound_connection_pool, check).map(Box::new),
    }
}

fn outbound(
    field: &Field<raw::istio::OutboundTrafficPolicy>,
    check: &mut Check<'_>,
) -> Option<OutboundPolicy> {
    let raw = field.get()?;
    let modes = [("REGISTRY_ONLY", false), ("ALLOW_ANY", true)];
    let mode = scalar::enum_of(&raw.mode, &modes, check);
    let allow_any = mode.unwrap_or(false);
    if let Some(proxy) = raw.egress_proxy.get() {
        check
            .warning(
                SC301,
                raw.egress_proxy.span(),
                "egressProxy is deprecated, and Istio ignores it",
            )
            .help("remove it; write a VirtualService that routes the hosts through the proxy");
        egress_proxy(proxy, &raw.egress_proxy, check);
        if !allow_any && !raw.mode.is_invalid() {
            check
                .error(
                    SC246,
                    raw.egress_proxy.span(),
                    "egressProxy needs mode ALLOW_ANY",
                )
                .help(
                    "write `mode: ALLOW_ANY`; with REGISTRY_ONLY unknown destinations are refused",
                );
        }
    }
    // What is wrong with the host has been said.
    let known = raw.egress_proxy.get().is_some_and(is_named);
    Some(OutboundPolicy {
        allow_any,
        egress_proxy: if known {
            destination(&raw.egress_proxy, check)
        } else {
            None
        },
        line: check.line(field.span()),
    })
}

fn is_named(proxy: &raw::istio::Destination) -> bool {
    shared::text(&proxy.host).is_some_and(scalar::is_fqdn)
}

fn egress_proxy(
    proxy: &raw::istio::Destination,
    field: &Field<raw::istio::Destination>,
    check: &mut Check<'_>,
) {
    if !is_named(proxy) && !proxy.host.is_invalid() {
        let host = shared::text(&proxy.host).unwrap_or("");
        check
            .error(
                SC247,
                shared::location(&proxy.host, field.span()),
                format!("`{host}` is not fully qualified"),
            )
            .help("write the full name of a service");
    }
    if !proxy.port.is_set() {
        check
            .error(
                SC248,
                shared::location(&proxy.port, field.span()),
                "egressProxy without port",
            )
            .help("write `port: {number: ...}`");
    }
}

#[cfg(test)]
mod tests;
