//! Traffic shifts for selected requests that meet at one rule.

use std::collections::BTreeMap;

use super::finding::warning;
use super::resolver::Resolver;
use crate::catalog::{RoutedHosts, SHIFT_VARIANTS_MAX};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::X322;
use crate::resource::ResourceSet;
use crate::resource::gloo::Backing;
use crate::resource::istio::HttpAction;

/// Warns of too many variants of a rule. Each rule is split into one variant per combination of the request matchers of
/// its destinations' shifts.
pub(super) fn check(set: &ResourceSet, resolver: Resolver<'_>, found: &mut Vec<Diagnostic>) {
    let choices = choices(set, &resolver.naming.domain);
    if choices.is_empty() {
        return;
    }
    for object in set.virtual_services.values() {
        for (index, rule) in object.spec.http.iter().enumerate() {
            let HttpAction::Route(routes) = &rule.action else {
                continue;
            };
            let whole = routes.iter().map(|route| &route.destination);
            let whole = whole.filter(|destination| destination.subset.is_none());
            let hosts = whole.map(|destination| resolver.host(object, destination).into_owned());
            let counts: BTreeMap<String, usize> = hosts
                .filter_map(|host| Some((choices.get(&host).copied()?, host)))
                .map(|(count, host)| (host, count))
                .collect();
            let count = counts
                .values()
                .fold(1, |all: usize, one| all.saturating_mul(*one));
            if count > SHIFT_VARIANTS_MAX {
                let message = format!(
                    "{count} combinations of matchers of traffic shifts meet at this rule: policies for some requests are not followed"
                );
                let mut diagnostic = warning(
                    object,
                    X322,
                    rule.line,
                    format!("spec.http[{index}]"),
                    message,
                );
                diagnostic.help("let policies match fewer kinds of requests, or write one rule for each destination");
                found.push(diagnostic);
            }
        }
    }
}

/// Returns the number of request variants by host, for hosts whose shifts apply to selected requests.
fn choices(set: &ResourceSet, domain: &str) -> BTreeMap<String, usize> {
    let mut choices = BTreeMap::new();
    if set.destinations.is_empty() {
        return choices;
    }
    let routed = RoutedHosts::collect(set, domain);
    for object in set.destinations.values() {
        let Backing::Kube(kube) = &object.spec.backing else {
            continue;
        };
        let status = &object.spec.status;
        let requests = status.required_subsets.iter().filter_map(|required| {
            let target = required.target(&status.traffic_policies, &kube.service);
            target.ok()?.map(|target| target.requests.len())
        });
        let count: usize = requests.sum();
        for host in object.hosts(domain) {
            if count > 0 && routed.by(&host).is_none() {
                *choices.entry(host).or_insert(1) += count;
            }
        }
    }
    choices
}
