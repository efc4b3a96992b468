//! DestinationRule: validation of the top-level fields. Traffic policies have their own files.

mod client_tls;
mod connection_pool;
mod load_balancer;
mod locality;
mod outlier_detection;
mod traffic_policy;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Check;
use super::shared;
use crate::diagnostic::codes::common::{CM009, CM010};
use crate::diagnostic::codes::istio::{DR123, DR126, DR127};
use crate::raw::{self, Field};
use crate::resource::istio::{DestinationRule, Subset};
use crate::span::Span;
use crate::validate::{annotations, scalar};

pub(super) use connection_pool::{connection_pool, keepalive};
pub(super) use locality::locality_setting;
pub(super) use outlier_detection::outlier_detection;

/// Checks a DestinationRule.
pub fn destination_rule(
    raw: &raw::istio::DestinationRule,
    check: &mut Check<'_>,
) -> DestinationRule {
    let workload_selector = raw.workload_selector.get().map(|selector| {
        exports_nothing(&raw.export_to, check);
        shared::selector(&selector.match_labels, raw.workload_selector.span(), check)
    });
    let exported = check.options().exports.destination_rules;
    DestinationRule {
        host: host(&raw.host, check),
        host_line: check.line(shared::location(&raw.host, check.body())),
        traffic_policy: traffic_policy::traffic_policy(&raw.traffic_policy, false, check),
        subsets: subsets(&raw.subsets, check),
        export_to: scalar::export_to(&raw.export_to, false, exported, check),
        workload_selector,
        health_check: annotations::health_check(check),
    }
}

fn host(field: &Field<String>, check: &mut Check<'_>) -> Arc<str> {
    let host = shared::text(field).unwrap_or("");
    if host.is_empty() && !field.is_invalid() {
        check
            .error(
                DR123,
                shared::location(field, check.body()),
                "the DestinationRule has no host",
            )
            .help("write the name of a service");
    } else if !host.is_empty() && !scalar::is_wildcard_domain(host) {
        let found = check.error(DR123, field.span(), format!("`{host}` is not a host"));
        match host.rsplit_once(':') {
            Some((name, _)) if scalar::is_wildcard_domain(name) => {
                found.help(format!(
                    "write `{name}`; settings of one port go under `portLevelSettings`"
                ));
            }
            _ => {
                found.help("write a name such as `reviews` or `*.example.com`");
            }
        }
    }
    Arc::from(host)
}

/// Checks that a rule with a workload selector is exported only to its own namespace.
fn exports_nothing(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) {
    let entries: Vec<(&str, Span)> = field
        .get()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.get()?.as_str(), entry.span())))
        .collect();
    let own = |entry: &str| entry == "." || entry == check.namespace();
    let others: Vec<(&str, Span)> = entries
        .iter()
        .copied()
        .filter(|(entry, _)| !own(entry))
        .collect();
    for (entry, span) in others {
        check
            .error(
                CM009,
                span,
                format!("a rule with a workloadSelector cannot be exported to `{entry}`"),
            )
            .help("write `exportTo: [\".\"]`");
    }
    if entries.len() > 1 {
        check
            .error(
                CM010,
                field.span(),
                "a rule with a workloadSelector takes one exportTo entry",
            )
            .help("write `exportTo: [\".\"]`");
    }
}

fn subsets(field: &Field<Vec<Field<raw::istio::Subset>>>, check: &mut Check<'_>) -> Vec<Subset> {
    let mut names: HashMap<&str, Span> = HashMap::new();
    let mut subsets = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let span = shared::location(&raw.name, entry.span());
        let name = shared::text(&raw.name).unwrap_or("");
        if name.is_empty() && !raw.name.is_invalid() {
            check
                .error(DR126, span, "subset without name")
                .help("write for example `name: v1`");
        } else if !name.is_empty() && !scalar::is_dns_label(name) {
            check
                .error(DR126, span, format!("`{name}` is not a subset name"))
                .help("use letters, digits and inner `-`");
        } else if let Some(first) = names.insert(name, span).filter(|_| !name.is_empty()) {
            let location = check.location(first);
            check
                .error(DR127, span, format!("subset `{name}` is defined twice"))
                .help("give it another name, or remove one of the two")
                .related(location, "first defined here");
        }
        let labels: BTreeMap<String, String> = scalar::labels(&raw.labels, check);
        subsets.push(Subset {
            name: Arc::from(name),
            labels,
            // whether it inherits an outlier detection is for all rules of the host to say
            traffic_policy: traffic_policy::traffic_policy(&raw.traffic_policy, true, check),
            line: check.line(entry.span()),
        });
    }
    subsets.shrink_to_fit();
    subsets
}

#[cfg(test)]
mod tests;
