//! DestinationRule: raw to checked.

use super::Check;
use super::shared::text_or_empty;
use crate::raw;
use crate::raw::Field;
use crate::resource::istio::{
    Algorithm, ConnectionPool, DestinationRule, LoadBalancer, Subset, TrafficPolicy,
};
use crate::validate::scalar;

/// Checks a DestinationRule.
pub fn destination_rule(
    raw: &raw::istio::DestinationRule,
    check: &mut Check<'_>,
) -> DestinationRule {
    let subsets = scalar::items(&raw.subsets, check);
    DestinationRule {
        host: text_or_empty(&raw.host),
        host_line: check.line(raw.host.span()),
        traffic_policy: policy(&raw.traffic_policy, check),
        subsets: subsets
            .into_iter()
            .map(|(field, subset)| Subset {
                name: text_or_empty(&subset.name),
                labels: scalar::labels(&subset.labels, check),
                traffic_policy: policy(&subset.traffic_policy, check),
                line: check.line(field.span()),
            })
            .collect(),
        export_to: scalar::export_to(&raw.export_to, false, check),
        workload_selector: None,
    }
}

fn policy(raw: &Field<raw::istio::TrafficPolicy>, check: &mut Check<'_>) -> TrafficPolicy {
    let Some(raw) = raw.get() else {
        return TrafficPolicy::default();
    };
    let simple = [
        ("UNSPECIFIED", Algorithm::LeastRequest),
        ("LEAST_CONN", Algorithm::LeastRequest),
        ("LEAST_REQUEST", Algorithm::LeastRequest),
        ("PASSTHROUGH", Algorithm::Passthrough),
        ("RANDOM", Algorithm::Random),
        ("ROUND_ROBIN", Algorithm::RoundRobin),
    ];
    let load_balancer = raw.load_balancer.get().map(|balancer| {
        let name = balancer.simple.get().map_or("", String::as_str);
        let found = simple.into_iter().find(|(known, _)| *known == name);
        Box::new(LoadBalancer {
            algorithm: found.map_or(Algorithm::default(), |(_, algorithm)| algorithm),
            ..LoadBalancer::default()
        })
    });
    let connection_pool = raw.connection_pool.get().map(|pool| {
        let mut checked = ConnectionPool::default();
        if let Some(tcp) = pool.tcp.get()
            && let Some(timeout) = scalar::duration(&tcp.connect_timeout, check)
        {
            checked.tcp.connect_timeout = timeout;
        }
        if let Some(http) = pool.http.get()
            && let Some(timeout) = scalar::duration(&http.idle_timeout, check)
        {
            checked.http.idle_timeout = Some(timeout);
        }
        Box::new(checked)
    });
    TrafficPolicy {
        load_balancer,
        connection_pool,
        ..TrafficPolicy::default()
    }
}
