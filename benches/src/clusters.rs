//! Clusters for benches and simulations, built without configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use proxy::pool::PoolSettings;
use proxy::telemetry::{Reporter, RequestLabels, RequestStats, StatsRegistry};
use proxy::upstream::Protocol;
use traffic::balance::{EndpointIdx, HashAlgorithm, HashKey, HashPolicy, Policy, Simple};
use traffic::cluster::locality::{self, TopologyLabels};
use traffic::cluster::{
    Balance, Cluster, Endpoint, EndpointTls, LabelSource, Locality, Outcome, OutlierPolicy, Parts,
    RetryLimit, SharedProperties,
};
use traffic::provenance::Sources;
use traffic::registry::{Address, Moment, Registry};

/// Load balancers, by name.
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

/// Returns the policy that hashes the client's address, as `sessionAffinity` does.
pub fn by_client() -> Policy {
    hash(HashAlgorithm::RingHash { size_min: 1024 })
}

/// Returns a balancer with default outlier detection.
pub fn balance(policy: Policy) -> Balance {
    Balance {
        policy,
        outlier: Some(OutlierPolicy::default()),
        ..Balance::default()
    }
}

/// Returns a cluster of endpoints with these localities and weights, for a proxy in `region/zone-0`.
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

/// Returns endpoints with these localities and weights, each at an address of its own.
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
                common: Arc::new(SharedProperties {
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

/// Records an outcome, and ejects the endpoint if it has failed often enough, as in a request.
pub fn report(cluster: &Cluster, endpoint: EndpointIdx, outcome: Outcome, now: Moment) {
    if let Some(verdict) = cluster.report(endpoint, outcome) {
        cluster.decide(endpoint, verdict, &cluster.state.ejections.lock(), now);
    }
}

/// Returns endpoints in three zones, with equal or different weights.
pub fn endpoints(count: usize, equal: bool) -> Vec<(String, u32)> {
    let weight = |number: usize| if equal { 1 } else { 1 + number as u32 % 5 };
    (0..count)
        .map(|number| (format!("region/zone-{}", number % 3), weight(number)))
        .collect()
}
