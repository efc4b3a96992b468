//! DestinationRules of services that several clusters share under a policy, and their settings without an effect within
//! the endpoints of one cluster.

use super::clusters::Clusters;
use super::finding::{location, warning};
use super::rules::{Rules, Sent};
use super::served::Served;
use crate::catalog::{PossibleClient, hostname};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X296, X312};
use crate::resource::Object;
use crate::resource::flomesh::{ClusterBalancing, GlobalTrafficPolicy};
use crate::resource::istio::{
    DestinationRule, FailoverLabel, LoadBalancer, OutlierDetection, TrafficPolicy,
};
use crate::span::Line;

type Policy = Object<GlobalTrafficPolicy>;

/// Labels that have the same value for all endpoints of a cluster.
const OF_CLUSTERS: [&str; 2] = ["topology.istio.io/cluster", "topology.istio.io/network"];

pub(super) fn check(
    rules: &Rules,
    client: PossibleClient<'_>,
    policy: &Policy,
    service: &Served<'_>,
    clusters: &Clusters<'_>,
) -> Vec<Diagnostic> {
    let (name, namespace) = (&policy.id.name, &policy.id.namespace);
    let host = hostname::of_service(name, namespace, clusters.domain);
    let together = hostname::of_cluster_set_service(name, namespace);
    let followed = followed(policy, service, clusters);
    let mut seen: Vec<&Object<DestinationRule>> = Vec::new();
    let mut found = Vec::new();
    for host in [&host, &together] {
        let sent = Sent {
            host,
            service_namespace: Some(namespace),
            client,
        };
        for rule in rules.may_apply(sent) {
            if seen.iter().any(|known| std::ptr::eq(*known, rule)) {
                continue;
            }
            seen.push(rule);
            check_ejections(rule, policy, host, &followed, &mut found);
            check_labels(rule, policy, host, &mut found);
        }
    }
    found
}

/// Returns the failover tiers with several endpoints that are followed by another tier: number of endpoints, and
/// cluster.
fn followed(
    policy: &Policy,
    service: &Served<'_>,
    clusters: &Clusters<'_>,
) -> Vec<(usize, String)> {
    let spec = &policy.spec;
    if spec.balancing != ClusterBalancing::FailOver {
        return Vec::new();
    }
    let mut pools = vec![(service.native, "the local cluster".to_owned())];
    if spec.is_ordered {
        let targets = spec.targets.iter().map(|target| &target.cluster);
        let others = targets.filter(|key| clusters.own != Some(key.as_str()));
        let mut backups: Vec<_> = others.filter(|key| service.has(key)).collect();
        backups.pop();
        let backups = backups.into_iter();
        pools.extend(backups.map(|key| (service.count(key), format!("`{key}`"))));
    }
    pools.retain(|(count, _)| *count > 1);
    pools
}

/// Warns of a tier whose endpoints cannot all be ejected: it stays in use even if all of them fail.
fn check_ejections(
    rule: &Object<DestinationRule>,
    policy: &Policy,
    host: &str,
    pools: &[(usize, String)],
    found: &mut Vec<Diagnostic>,
) {
    let pools: Vec<String> = pools
        .iter()
        .map(|(count, cluster)| format!("of {count} endpoints in {cluster}"))
        .collect();
    for (path, outliers) in ejections(&rule.spec) {
        if pools.is_empty() || outliers.ejection_percent_max >= 100 {
            continue;
        }
        let field = format!("{path}.outlierDetection.maxEjectionPercent");
        let message = format!(
            "FailoverIneffective: {} at most {} % are ejected, never all, so that `{host}` does not fail over",
            pools.join(" and "),
            outliers.ejection_percent_max
        );
        let mut diagnostic = warning(rule, X296, outliers.line, field, message);
        diagnostic.help("write 100, or let each failed request be replayed in the next cluster");
        diagnostic.related(location(policy, Line(0)), "the policy");
        found.push(diagnostic);
    }
}

/// Returns the outlier detection blocks of a rule, except those of subsets.
fn ejections(rule: &DestinationRule) -> impl Iterator<Item = (String, &OutlierDetection)> {
    let policy = &rule.traffic_policy;
    let base = policy.outlier_detection.as_deref();
    let base = base.map(|outliers| ("spec.trafficPolicy".to_owned(), outliers));
    let ports = policy.ports.iter().enumerate();
    let ports = ports.filter_map(|(index, port)| {
        let path = format!("spec.trafficPolicy.portLevelSettings[{index}]");
        Some((path, port.outlier_detection.as_deref()?))
    });
    base.into_iter().chain(ports)
}

/// Warns of labels that are the same for all endpoints of a cluster, and therefore order nothing within it.
fn check_labels(
    rule: &Object<DestinationRule>,
    policy: &Policy,
    host: &str,
    found: &mut Vec<Diagnostic>,
) {
    let subsets = rule.spec.subsets.iter().enumerate().map(|(index, subset)| {
        let path = format!("spec.subsets[{index}].trafficPolicy");
        (path, &subset.traffic_policy)
    });
    let base = ("spec.trafficPolicy".to_owned(), &rule.spec.traffic_policy);
    for (path, traffic) in [base].into_iter().chain(subsets) {
        for (path, balancer) in balancers(path, traffic) {
            for (path, labels, line) in labels(&path, balancer) {
                let known = |label: &&FailoverLabel| OF_CLUSTERS.contains(&&*label.key);
                for label in labels.iter().filter(known) {
                    let message = format!(
                        "`{}` is skipped: GlobalTrafficPolicy {} says which cluster serves `{host}`, and within one all \
                         endpoints have it alike",
                        label.key, policy.id.name
                    );
                    let mut diagnostic = warning(rule, X312, line, path.clone(), message);
                    diagnostic.help(
                        "remove the label: `lbType: FailOver` prefers the local cluster, and other labels order endpoints \
                         within each",
                    );
                    diagnostic.related(location(policy, Line(0)), "the policy");
                    found.push(diagnostic);
                }
            }
        }
    }
}

/// Returns the load balancers of a policy and of its ports.
fn balancers(
    path: String,
    policy: &TrafficPolicy,
) -> impl Iterator<Item = (String, &LoadBalancer)> {
    let ports = policy.ports.iter().enumerate().map({
        let path = path.clone();
        move |(index, port)| {
            let path = format!("{path}.portLevelSettings[{index}]");
            (path, &port.load_balancer)
        }
    });
    let all = [(path, &policy.load_balancer)].into_iter().chain(ports);
    all.filter_map(|(path, balancer)| Some((format!("{path}.loadBalancer"), balancer.as_deref()?)))
}

/// Returns the lists of failover labels of a load balancer, each with its field and its line.
fn labels<'b>(
    path: &str,
    balancer: &'b LoadBalancer,
) -> impl Iterator<Item = (String, &'b [FailoverLabel], Line)> {
    let locality = balancer.locality.as_deref().map(|setting| {
        let path = format!("{path}.localityLbSetting.failoverPriority");
        (path, &*setting.failover_priority, setting.line)
    });
    let zones = balancer.zone_aware.as_deref().map(|setting| {
        let path = format!("{path}.zoneAwareLbSetting.failoverPriority");
        (path, &*setting.failover_priority, setting.line)
    });
    locality.into_iter().chain(zones)
}
