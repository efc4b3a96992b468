//! Clusters for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::locality::{self, Locality, TopologyLabels};
use super::{Balance, Endpoint, EndpointTls, LabelSource, Parts, RetryLimit, SharedProperties};
use crate::connection::PoolSettings;
use crate::connection::Protocol;
use crate::provenance::Sources;
use crate::registry::{Address, Registry};
use crate::telemetry::{Reporter, RequestLabels, StatsRegistry};

const HERE: &str = "r/a";

/// Parts of a cluster with endpoints `10.0.0.N:80`, given by `N` and locality, for a proxy in `r/a`.
pub(crate) fn parts(
    registry: &Registry,
    name: &str,
    balance: Balance,
    endpoints: &[(u32, &str)],
) -> Parts {
    let state = registry.cluster(name);
    let stats = StatsRegistry::new(1).request_stats(&RequestLabels {
        reporter: Reporter::Source,
        source: Arc::default(),
        destination: Arc::default(),
        service: Arc::default(),
    });
    let labels = Arc::default();
    let endpoints: Box<[Endpoint]> = endpoints
        .iter()
        .map(|(number, locality)| {
            let [.., high, low] = number.to_be_bytes();
            let address = Address::Ip(([10, 0, high, low], 80).into());
            Endpoint {
                state: registry.endpoint(&state.name, &address),
                address,
                alternates: None,
                weight: 1,
                common: Arc::new(SharedProperties {
                    locality: Locality::new(*locality),
                    network: Arc::default(),
                    member: None,
                    labels: Arc::clone(&labels),
                    labels_from: LabelSource::default(),
                    node: None,
                    hostname: None,
                    tls: EndpointTls::OfCluster,
                    hop: None,
                    scope: Arc::clone(&state.name),
                    stats: Arc::clone(&stats),
                }),
            }
        })
        .collect();
    let here = Locality::new(HERE);
    let own = BTreeMap::new();
    let place = |locality| topology(locality, &own);
    let places: Vec<(TopologyLabels<'_>, u32)> = endpoints
        .iter()
        .map(|endpoint| (place(&endpoint.locality), 1))
        .collect();
    let plan = locality::plan(&balance.spread, &place(&here), &places);
    Parts {
        state,
        host: "a.test".into(),
        dialed: None,
        protocol: Protocol::Http1,
        balance,
        endpoints,
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
    }
}

fn topology<'a>(
    locality: &'a Locality,
    labels: &'a BTreeMap<String, String>,
) -> TopologyLabels<'a> {
    TopologyLabels {
        locality,
        labels,
        network: "",
        member: "",
        node: "",
    }
}
