//! VirtualService: validation of the top-level fields. The rules have their own files.

mod action;
mod cors;
mod destination;
mod fault;
mod gateways;
mod head;
mod headers;
mod hosts;
mod http_match;
mod http_rule;
mod l4;
mod mirror;
mod reachability;
mod retries;
mod rewrite;
mod source;
mod string_match;

use super::{Check, shared};
use crate::diagnostic::Code;
use crate::diagnostic::codes::istio::{VS021, VS022, VS023, VS034};
use crate::raw;
use crate::resource::istio::VirtualService;
use crate::span::Span;
use crate::validate::scalar;

use head::Head;

pub(super) use destination::destination;
pub(crate) use reachability::{Earlier, Hidden, all_reached};
pub(super) use retries::retries;

/// Checks a VirtualService.
pub fn virtual_service(raw: &raw::istio::VirtualService, check: &mut Check<'_>) -> VirtualService {
    let delegate = !raw.hosts.is_invalid() && shared::list(&raw.hosts).is_none();
    let gateways = gateways::of_service(&raw.gateways, delegate, check);
    let mesh = gateways
        .iter()
        .any(|gateway| gateway.value == crate::resource::istio::GatewayRef::Mesh);
    let gateways_only = !mesh && !raw.gateways.is_invalid();
    let at_gateway = gateways.iter().any(|gateway| gateway.value.is_named());
    let with_tls = !shared::list(&raw.tls).is_none();
    let hosts = hosts::checked(&raw.hosts, gateways_only, with_tls, check);
    let lower: Vec<String> = hosts
        .iter()
        .map(|host| host.value.to_ascii_lowercase())
        .collect();
    let covering = hosts::Covering::new(&lower);
    let head = Head {
        delegate,
        gateways_only,
        at_gateway,
        hosts: &lower,
        covering: &covering,
    };
    if delegate {
        not_in_a_delegate(raw, check);
    }
    has_rules(raw, check);
    let http = http_rule::rules(&raw.http, head, check);
    let tls = l4::tls_rules(&raw.tls, head, check);
    let tcp = l4::tcp_rules(&raw.tcp, head, check);
    // What a rule with errors takes is not known.
    if !check.failed() {
        reachability::http(&raw.http, &http, check);
        reachability::tls(&tls, &raw.tls, check);
        reachability::tcp(&tcp, &raw.tcp, check);
    }
    let exported = check.options().exports.virtual_services;
    VirtualService {
        hosts,
        gateways,
        export_to: scalar::export_to(&raw.export_to, false, exported, check),
        http,
        tls,
        tcp,
    }
}

fn not_in_a_delegate(raw: &raw::istio::VirtualService, check: &mut Check<'_>) {
    let mut refuse = |span: Span, code: Code, message: &str| {
        if !span.is_none() {
            check.error(code, span, message).help(
                "a VirtualService without hosts is a delegate: write `hosts`, or remove this",
            );
        }
    };
    refuse(
        shared::list(&raw.gateways),
        VS021,
        "a delegate must not name gateways",
    );
    refuse(
        shared::list(&raw.tls),
        VS022,
        "a delegate cannot hold tls rules",
    );
    refuse(
        shared::list(&raw.tcp),
        VS023,
        "a delegate cannot hold tcp rules",
    );
}

fn has_rules(raw: &raw::istio::VirtualService, check: &mut Check<'_>) {
    let written = [
        shared::list(&raw.http),
        shared::list(&raw.tls),
        shared::list(&raw.tcp),
    ];
    if written.iter().all(|span| span.is_none()) {
        let span = shared::location(&raw.http, check.body());
        check
            .error(
                VS034,
                span,
                "the VirtualService has no http, tls or tcp rules",
            )
            .help("write at least one rule under `http`, `tls` or `tcp`");
    }
}

#[cfg(test)]
mod tests;
