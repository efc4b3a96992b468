//! Clusters made by hand, to pick from.

use std::collections::BTreeMap;
use std::sync::Arc;

use proxy::balance::{EndpointIdx, HashAlgorithm, HashKey, HashPolicy, Policy, Simple};
use proxy::cluster::locality::{self, TopologyLabels};
use proxy::cluster::{
    Balance, Cluster, Common, Endpoint, EndpointTls, LabelSource, Locality, Outcome, OutlierPolicy,
    Parts, RetryLimit,
};
use proxy::pool::PoolSettings;
use proxy::provenance::Sources;
use proxy::registry::{Address, Moment, Registry};
use proxy::telemetry::{Reporter, RequestLabels, RequestStats, StatsRegistry};
use proxy::upstream::Protocol;

/// Every balancer, by name.
pub fn policies() -> [(&'static str, Policy); 5] {
    [
        ("LEAST_REQUEST", Policy::Simple(Simple::LeastRequest)),
        ("RANDOM", Policy::Simple(Simple::Random)),
        ("ROUND_ROBIN", Policy::Simple(Simple::RoundRobin)),
        ("maglev", hash(HashAlgorithm::Maglev { size: 65_537 })),
        ("ringHash", by_client()),
    ]
}

fn hash(algorithm: HashAlgorithm) -> Policy {
    Policy::Hash(HashPolicy {
        key: HashKey::SourceIp,
        algorithm,
    })
}

/// By the client's address, as `sessionAffinity` has it.
pub fn by_client() -> Policy {
    hash(HashAlgorithm::RingHash { size_min: 1024 })
}

/// A balancer with outlier detection at its defaults.
pub fn balance(policy: Policy) -> Balance {
    Balance {
        policy,
        outlier: Some(OutlierPolicy::default()),
        ..Balance::default()
    }
}

/// A cluster of endpoints with these localities and weights, for a proxy in `region/zone-0`.
pub fn cluster(balance: Balance, of: &[(String, u32)]) -> Cluster {
    let registry = Registry::default();
    let state = registry.cluster("outbound|80||a.test");
    let stats = StatsRegistry::new(1).request_stats(&RequestLabels {
        reporter: Reporter::Source,
        source: Arc::default(),
        destination: Arc::default(),
        service: Arc::default(),
    });
    let endpoints = registered_endpoints(&registry, &state.name, &stats, of);
    let (here, own) = (Locality::new("region/zone-0"), BTreeMap::new());
    let place = |locality| TopologyLabels {
        locality,
        labels: &own,
        network: "",
        member: "",
        node: "",
    };
    let places: Vec<(TopologyLabels<'_>, u32)> = endpoints
        .iter()
        .map(|endpoint| (place(&endpoint.locality), endpoint.weight))
        .collect();
    let plan = locality::plan(&balance.spread, &place(&here), &places);
    let parts = Parts {
        dialed: None,
        state,
        host: "a.test".into(),
        protocol: Protocol::Http1,
        balance,
        endpoints: endpoints.into(),
        plan,
        unresolved: Box::default(),
        stats,
        pool: PoolSettings::default(),
        retry_limit: RetryLimit::default(),
        check: None,
        federation: None,
        absence: None,
        pods: None,
        is_pool: false,
        sources: Sources::default(),
        cause: None,
        fingerprint: 0,
    };
    Cluster::build(parts, Moment(1))
}

/// Endpoints with these localities and weights, at addresses of their own.
fn registered_endpoints(
    registry: &Registry,
    cluster: &Arc<str>,
    stats: &Arc<RequestStats>,
    of: &[(String, u32)],
) -> Vec<Endpoint> {
    let labels = Arc::default();
    of.iter()
        .enumerate()
        .map(|(number, (locality, weight))| {
            let [_, high, middle, low] = (number as u32 + 1).to_be_bytes();
            let address = Address::Ip(([10, high, middle, low], 80).into());
            Endpoint {
                state: registry.endpoint(cluster, &address),
                address,
                alternates: None,
                weight: *weight,
                common: Arc::new(Common {
                    locality: Locality::new(locality.as_str()),
                    network: Arc::default(),
                    member: None,
                    labels: Arc::clone(&labels),
                    labels_from: LabelSource::default(),
                    node: None,
                    hostname: None,
                    tls: EndpointTls::OfCluster,
                    hop: None,
                    scope: Arc::clone(cluster),
                    stats: Arc::clone(stats),
                }),
            }
        })
        .collect()
}

/// Records an outcome, and ejects the endpoint if it has failed often enough, as requests do.
pub fn report(cluster: &Cluster, endpoint: EndpointIdx, outcome: Outcome, now: Moment) {
    if let Some(verdict) = cluster.report(endpoint, outcome) {
        cluster.decide(endpoint, verdict, &cluster.state.ejections.turn(), now);
    }
}

/// Endpoints over three zones, of equal weights or not.
pub fn endpoints(count: usize, equal: bool) -> Vec<(String, u32)> {
    let weight = |number: usize| if equal { 1 } else { 1 + number as u32 % 5 };
    (0..count)
        .map(|number| (format!("region/zone-{}", number % 3), weight(number)))
        .collect()
}
