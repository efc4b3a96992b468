//! Routes.

use super::extensions::extensions;
use super::reference::parents;
use super::rule::{default_rule, grpc_rule, http_rule, l4_rule};
use super::shared::{entries, hosts, unique};
use crate::diagnostic::codes::gateway_api::{GA105, GA118};
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{GRPCRoute, HTTPRoute, RouteRule, TCPRoute, TLSRoute};
use crate::validate::Check;

/// Hosts of a route for HTTP.
const HOSTS_MAX: usize = 16;
/// Hosts of a TLSRoute.
const TLS_HOSTS_MAX: usize = 1024;
/// Rules of a route for HTTP.
const RULES_MAX: usize = 16;
/// Matches of all rules of a route.
const MATCHES_MAX: usize = 128;

/// Checks an HTTPRoute.
pub fn http_route(raw: &raw::HttpRoute, check: &mut Check<'_>) -> HTTPRoute {
    let body = check.body();
    let mut rules = Vec::new();
    let least = usize::from(raw.rules.is_set());
    for (entry, raw) in entries(&raw.rules, "rules", body, least..=RULES_MAX, check) {
        rules.push(http_rule(raw, entry.span(), check));
    }
    if rules.is_empty() {
        rules.push(default_rule(check.line(body)));
    }
    count_matches(&raw.rules, &rules, check);
    let named = raw.rules.get().into_iter().flatten();
    let names = named.filter_map(|rule| Some(&rule.get()?.name));
    unique(names, GA105, check);
    let hostnames = hosts(&raw.hostnames, body, 0..=HOSTS_MAX, check);
    HTTPRoute {
        parents: parents(&raw.parent_refs, check),
        extensions: extensions(&hostnames, check),
        hostnames,
        rules,
    }
}

/// Checks a GRPCRoute.
pub fn grpc_route(raw: &raw::GrpcRoute, check: &mut Check<'_>) -> GRPCRoute {
    let body = check.body();
    let mut rules = Vec::new();
    for (entry, raw) in entries(&raw.rules, "rules", body, 0..=RULES_MAX, check) {
        rules.push(grpc_rule(raw, entry.span(), check));
    }
    count_matches(&raw.rules, &rules, check);
    let named = raw.rules.get().into_iter().flatten();
    let names = named.filter_map(|rule| Some(&rule.get()?.name));
    unique(names, GA105, check);
    GRPCRoute {
        parents: parents(&raw.parent_refs, check),
        hostnames: hosts(&raw.hostnames, body, 0..=HOSTS_MAX, check),
        rules,
    }
}

fn count_matches<R, M>(
    field: &Field<Vec<Field<R>>>,
    rules: &[RouteRule<M>],
    check: &mut Check<'_>,
) {
    let count: usize = rules.iter().map(|rule| rule.matches.len()).sum();
    if count > MATCHES_MAX {
        let message = format!("the rules have {count} matches");
        let found = check.error(GA118, field.span(), message);
        found.help(format!("write at most {MATCHES_MAX}, or several routes"));
    }
}

/// Checks a TLSRoute.
pub fn tls_route(raw: &raw::TlsRoute, check: &mut Check<'_>) -> TLSRoute {
    TLSRoute {
        parents: parents(&raw.parent_refs, check),
        hostnames: hosts(&raw.hostnames, check.body(), 1..=TLS_HOSTS_MAX, check),
        rule: l4_rule(&raw.rules, check).unwrap_or_default(),
    }
}

/// Checks a TCPRoute.
pub fn tcp_route(raw: &raw::TcpRoute, check: &mut Check<'_>) -> TCPRoute {
    TCPRoute {
        parents: parents(&raw.parent_refs, check),
        rule: l4_rule(&raw.rules, check).unwrap_or_default(),
    }
}
