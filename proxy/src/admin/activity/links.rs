//! Rates between the parts of a configuration: from listeners over hosts, services and clusters to endpoints.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Activity;
use super::rates::{ClusterRate, RateRow, Rates};

/// Maximum number of rules whose links are shown, and of services without rules: those with most requests.
const RULES_MAX: usize = 30;

/// Maximum number of endpoints of each service and cluster.
const ENDPOINTS_MAX: usize = 10;

/// Kind and name of a part: `listener`, `host`, `service`, `cluster` or `endpoint`.
pub type Node = (&'static str, String);

/// Requests from one part to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Part that the requests come from.
    pub from: Node,
    /// Part that they go to.
    pub to: Node,
    /// Requests per second.
    pub rate: f64,
    /// Failed requests per second.
    pub failed: f64,
}

/// Links of the rules whose name, hosts or services contain a text, and of services without rules, and whether there are more.
/// Requests of a rule with several services are split by weight.
pub fn links(rates: &Rates, after: &Activity, search: &str) -> (Vec<Link>, bool) {
    let rows: BTreeMap<&str, &RateRow> = rates.rules.iter().map(|row| (&*row.name, row)).collect();
    let mut rules: Vec<_> = after
        .rules
        .iter()
        .filter(|rule| {
            let services = rule.destinations.iter().map(|(host, _)| host);
            let mut texts = rule.hosts.iter().chain(services).chain([&rule.rule]);
            texts.any(|text| text.contains(search))
        })
        .filter_map(|rule| Some((rule, *rows.get(&*rule.rule)?)))
        .collect();
    rules.sort_by(|(_, a), (_, b)| b.rate.total_cmp(&a.rate));
    let is_cut = rules.len() > RULES_MAX;
    let mut sums = Sums::default();
    for (rule, row) in rules.into_iter().take(RULES_MAX) {
        let (rate, failed) = (row.rate, row.failed.unwrap_or(0.0));
        let host = ("host", rule.hosts.join(", "));
        let listener = ("listener", rule.listeners.join(", "));
        sums.add(listener, host.clone(), rate, failed);
        for (service, share) in &rule.destinations {
            let service = ("service", service.clone());
            sums.add(host.clone(), service, rate * share, failed * share);
        }
    }
    let (services, has_more) = services(&sums, rates, search);
    for row in &rates.by_cluster {
        if services.contains(&row.host) {
            let (from, to) = (
                ("service", row.host.clone()),
                ("cluster", row.cluster.clone()),
            );
            sums.add(from, to, row.rate, row.failed);
        }
    }
    let mut shown: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in &rates.endpoints {
        let (host, cluster) = row.about.split_once(' ').unwrap_or((&row.about, ""));
        let count = shown.entry((host, cluster)).or_default();
        if services.iter().any(|service| service == host) && *count < ENDPOINTS_MAX {
            *count += 1;
            let (from, to) = (
                ("cluster", cluster.to_owned()),
                ("endpoint", row.name.clone()),
            );
            sums.add(from, to, row.rate, 0.0);
        }
    }
    (sums.links(), is_cut || has_more)
}

/// Services of the rules, and others whose host contains the text, since many services have no rules; whether there are more.
fn services(sums: &Sums, rates: &Rates, search: &str) -> (Vec<String>, bool) {
    let mut services = sums.names_of("service");
    let mut others: Vec<&ClusterRate> = rates
        .by_cluster
        .iter()
        .filter(|row| row.rate > 0.0 && row.host.contains(search) && !services.contains(&row.host))
        .collect();
    others.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    for row in others {
        if services.contains(&row.host) {
            continue;
        }
        if services.len() >= RULES_MAX {
            return (services, true);
        }
        services.push(row.host.clone());
    }
    (services, false)
}

#[derive(Default)]
struct Sums(BTreeMap<(Node, Node), (f64, f64)>);

impl Sums {
    fn add(&mut self, from: Node, to: Node, rate: f64, failed: f64) {
        let sum = self.0.entry((from, to)).or_default();
        sum.0 += rate;
        sum.1 += failed;
    }

    /// Names of the parts of a kind that links lead to.
    fn names_of(&self, kind: &str) -> Vec<String> {
        let nodes = self.0.keys().map(|(_, to)| to);
        let of_kind = nodes.filter(|(of, _)| *of == kind);
        of_kind.map(|(_, name)| name.clone()).collect()
    }

    fn links(self) -> Vec<Link> {
        let links = self.0.into_iter();
        links
            .map(|((from, to), (rate, failed))| Link {
                from,
                to,
                rate,
                failed,
            })
            .collect()
    }
}
