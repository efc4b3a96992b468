//! Limits of a rule in words, and which of them count a request.

use std::time::Duration;

use ipnet::IpNet;

use super::duration::duration;
use traffic::limit::{CountedRequest, RouteLimits, Selector, is_distinct, objection};
use traffic::provenance::Provenance;

/// Rule in words.
struct Words<'a> {
    rate: (u32, Duration),
    selectors: &'a [Selector],
    is_shadow: bool,
    /// Whether the rate limit service counts.
    is_global: bool,
    provenance: &'a Provenance,
}

/// Describes the limits, one line each.
pub(super) fn words(limits: &RouteLimits, request: &CountedRequest<'_>) -> Vec<String> {
    let local = limits.rules.iter().map(|rule| {
        let rate = rule.buckets.rate();
        Words {
            rate: (rate.tokens, rate.unit),
            selectors: &rule.selectors,
            is_shadow: rule.is_shadow,
            is_global: false,
            provenance: &rule.provenance,
        }
    });
    let global = limits.global.iter().map(|rule| Words {
        rate: (rule.requests, rule.unit),
        selectors: &rule.selectors,
        is_shadow: rule.is_shadow,
        is_global: true,
        provenance: &rule.provenance,
    });
    let rules = local.chain(global).map(|rule| rule_words(&rule, request));
    let body = limits.body_max.map(|bytes| {
        let policy = &limits.provenance;
        format!("body of at most {bytes} bytes, unless it is gRPC  {policy}")
    });
    let sources = &limits.sources;
    let networks = |nets: &[IpNet]| {
        let nets: Vec<String> = nets.iter().map(ToString::to_string).collect();
        nets.join(", ")
    };
    let verdict = match sources.admits(request.client()) {
        true => "serves this client",
        false => "refuses this client with status 403",
    };
    let clients = (!sources.is_empty()).then(|| {
        let allowed = match sources.allowed.is_empty() {
            true => "all".to_owned(),
            false => networks(&sources.allowed),
        };
        let denied = match sources.denied.is_empty() {
            true => String::new(),
            false => format!(" without {}", networks(&sources.denied)),
        };
        format!(
            "clients of {allowed}{denied}: {verdict}  {}",
            limits.provenance
        )
    });
    clients.into_iter().chain(rules).chain(body).collect()
}

fn rule_words(rule: &Words<'_>, request: &CountedRequest<'_>) -> String {
    let (requests, unit) = (rule.rate.0, duration(rule.rate.1));
    let mut text = format!("{requests} per {unit}");
    for (holds, word) in [
        (is_distinct(rule.selectors), " for each client"),
        (rule.is_global, " over all proxies"),
        (rule.is_shadow, ", in shadow mode"),
    ] {
        text.push_str(if holds { word } else { "" });
    }
    let verdict = match objection(rule.selectors, request) {
        None => "counts this request".to_owned(),
        Some(selector) => format!("does not: {}", selector.field()),
    };
    let at = rule.provenance;
    format!("{text}: {verdict}  {at}")
}
