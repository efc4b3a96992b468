//! `tls` and `tcp` rules, which route connections.

use std::sync::Arc;

use super::head::Head;
use super::source::source_namespace;
use super::{destination, gateways, hosts};
use crate::diagnostic::codes::istio::{
    VS108, VS109, VS110, VS111, VS112, VS113, VS115, VS118, VS310,
};
use crate::raw::{self, Field};
use crate::resource::istio::{GatewayRef, L4Destination, TcpMatch, TcpRule, TlsMatch, TlsRule};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the `tls` rules, in order.
pub(super) fn tls_rules(
    field: &Field<Vec<Field<raw::istio::TlsRoute>>>,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Vec<TlsRule> {
    let mut rules = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        if shared::list(&raw.r#match).is_none() {
            check
                .error(
                    VS108,
                    shared::location(&raw.r#match, entry.span()),
                    "tls rule without match",
                )
                .help("write `match: [{sniHosts: [...]}]`");
        }
        let blocks = scalar::items(&raw.r#match, check);
        let matches = blocks
            .into_iter()
            .map(|(block, raw)| tls_match(block, raw, head, check));
        rules.push(TlsRule {
            matches: matches.collect(),
            route: route(&raw.route, entry.span(), check),
            line: check.line(entry.span()),
        });
    }
    rules
}

fn tls_match(
    block: &Field<raw::istio::TlsMatchAttributes>,
    raw: &raw::istio::TlsMatchAttributes,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> TlsMatch {
    if shared::list(&raw.sni_hosts).is_none() {
        check
            .error(
                VS109,
                shared::location(&raw.sni_hosts, block.span()),
                "tls match without sniHosts",
            )
            .help("list the hosts that the connections are for");
    }
    let (gateways, gateway_lines) = gateways::of_match(&raw.gateways, check);
    TlsMatch {
        sni_hosts: sni_hosts(&raw.sni_hosts, head, check),
        destination_subnets: shared::subnets(&raw.destination_subnets, VS113, check),
        port: scalar::port(&raw.port, check),
        source_labels: scalar::labels(&raw.source_labels, check),
        source_namespace: source_namespace(&raw.source_namespace, check),
        gateways,
        gateway_lines,
        line: check.line(block.span()),
    }
}

fn sni_hosts(
    field: &Field<Vec<Field<String>>>,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Vec<Arc<str>> {
    let mut sni_hosts = Vec::new();
    for (entry, sni) in scalar::items(field, check) {
        let span = entry.span();
        let lower = sni.to_ascii_lowercase();
        if scalar::ip(sni).is_some() {
            check
                .warning(
                    VS112,
                    span,
                    format!("SNI `{sni}` is an IP address, which clients do not send"),
                )
                .help("write the names that clients ask for");
            sni_hosts.push(Arc::from(sni.as_str()));
            continue;
        } else if !hosts::sni_is_valid(sni) {
            check
                .error(VS110, span, format!("`{sni}` is not an SNI host"))
                .help("write a domain name, or a wildcard such as `*.example.com`");
        }
        if !head.hosts.is_empty() && !head.covering.covers(&lower) {
            check
                .error(
                    VS111,
                    span,
                    format!("SNI `{sni}` is not covered by the hosts"),
                )
                .help(format!(
                    "add it to `hosts`, or match one of: {}",
                    shorten(head.hosts)
                ));
        }
        sni_hosts.push(Arc::from(sni.as_str()));
    }
    sni_hosts
}

/// Returns the first few of many names.
fn shorten(names: &[String]) -> String {
    let mut text = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 5 {
        text.push_str(", ...");
    }
    text
}

/// Returns the `tcp` rules, in order.
pub(super) fn tcp_rules(
    field: &Field<Vec<Field<raw::istio::TcpRoute>>>,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Vec<TcpRule> {
    let mut rules = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let blocks = scalar::items(&raw.r#match, check);
        let matches = blocks
            .into_iter()
            .map(|(block, raw)| tcp_match(block, raw, head, check));
        rules.push(TcpRule {
            matches: matches.collect(),
            route: route(&raw.route, entry.span(), check),
            line: check.line(entry.span()),
        });
    }
    rules
}

fn tcp_match(
    block: &Field<raw::istio::L4MatchAttributes>,
    raw: &raw::istio::L4MatchAttributes,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> TcpMatch {
    let source = shared::text(&raw.source_subnet);
    let counts = check.options().enforce_source_subnet;
    if source.is_some() && !counts {
        check
            .warning(
                VS118,
                raw.source_subnet.span(),
                "sourceSubnet is not evaluated",
            )
            .help(
                "Istio ignores it too: the block matches clients at every address; \
                 with `--enforce-source-subnet` it counts",
            );
    }
    let source_subnet = source.and_then(|text| {
        let net = scalar::subnet(text);
        if net.is_none() {
            check.error(
                VS113,
                raw.source_subnet.span(),
                format!("`{text}` is not a subnet"),
            );
        }
        net
    });
    let (gateways, gateway_lines) = gateways::of_match(&raw.gateways, check);
    if at_gateway(&gateways, head) {
        without_effect_at_gateway(raw, check);
    }
    TcpMatch {
        destination_subnets: shared::subnets(&raw.destination_subnets, VS113, check),
        source_subnet: source_subnet.filter(|_| counts),
        port: scalar::port(&raw.port, check),
        source_labels: scalar::labels(&raw.source_labels, check),
        source_namespace: source_namespace(&raw.source_namespace, check),
        gateways,
        gateway_lines,
        line: check.line(block.span()),
    }
}

/// Whether a block applies to a gateway, by its own `gateways` or by default those of the VirtualService.
fn at_gateway(gateways: &[GatewayRef], head: Head<'_>) -> bool {
    match gateways.is_empty() {
        true => head.at_gateway,
        false => gateways.iter().any(GatewayRef::is_named),
    }
}

/// Reports conditions without effect at a gateway. As in Istio, a gateway selects `tcp` rules by port and gateway only.
fn without_effect_at_gateway(raw: &raw::istio::L4MatchAttributes, check: &mut Check<'_>) {
    let conditions = [
        ("destinationSubnets", shared::list(&raw.destination_subnets)),
        ("sourceLabels", shared::map_span(&raw.source_labels)),
        ("sourceNamespace", shared::text_span(&raw.source_namespace)),
    ];
    for (name, span) in conditions.into_iter().filter(|(_, span)| !span.is_none()) {
        check
            .warning(
                VS310,
                span,
                format!("`{name}` has no effect at a gateway: the block matches without it"),
            )
            .help("match by `port`, or write `gateways: [mesh]` if the block is for sidecars");
    }
}

fn route(
    field: &Field<Vec<Field<raw::istio::RouteDestination>>>,
    around: Span,
    check: &mut Check<'_>,
) -> Vec<L4Destination> {
    if shared::list(field).is_none() {
        check
            .error(VS115, shared::location(field, around), "rule without route")
            .help("write `route: [{destination: {host: SERVICE}}]`");
    }
    let mut route = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        route.push(L4Destination {
            destination: destination::required(&raw.destination, entry.span(), check),
            weight: destination::weight(&raw.weight, check),
            line: check.line(entry.span()),
        });
    }
    destination::weights(field, route.iter().map(|entry| entry.weight), check);
    route
}
