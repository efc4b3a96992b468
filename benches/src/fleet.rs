//! Configurations of a service that several Kubernetes clusters serve, compiled as in the proxy.

use std::sync::Arc;

use config_loader::{Diagnostics, Severity, load_bytes};
use proxy::compile::{Inputs, compile};
use proxy::identity::Identity;
use proxy::snapshot::Snapshot;
use proxy::telemetry::StatsRegistry;
use proxy::tls::Store;
use traffic::cluster::Cluster;
use traffic::registry::{Moment, Registry};

/// State of one proxy that outlives its snapshots.
#[derive(Debug)]
pub struct Fleet {
    /// Identity of the proxy.
    pub identity: Identity,
    registry: Registry,
    stats: StatsRegistry,
    certificates: Store,
}

impl Fleet {
    /// Creates a proxy in the cluster with this name.
    pub fn seen_from(cluster: &str) -> Self {
        Self {
            identity: Identity {
                cluster: key(cluster),
                ..Identity::default()
            },
            registry: Registry::default(),
            stats: StatsRegistry::new(1),
            certificates: Store::default(),
        }
    }

    /// Compiles resources on top of a snapshot.
    ///
    /// # Panics
    /// When they are rejected.
    pub fn compile(&self, text: &str, previous: &Snapshot, now: Moment) -> Snapshot {
        let mut found = Diagnostics::default();
        let resources = load_bytes("fleet.yaml", text.as_bytes(), &mut found);
        let found = found.into_sorted();
        let refused = found.iter().find(|one| one.severity == Severity::Error);
        assert!(refused.is_none(), "{refused:?}\n{text}");
        let inputs = Inputs {
            now,
            resources: &resources,
            identity: &self.identity,
            registry: &self.registry,
            stats: &self.stats,
            certificates: &self.certificates,
        };
        compile(&inputs, previous)
    }
}

/// Returns the cluster key (`REGION/ZONE/GROUP/NAME`) of a cluster of which only the name is known.
pub fn key(cluster: &str) -> String {
    format!("default/default/default/{cluster}")
}

/// Returns the cluster with this name.
pub fn named<'s>(snapshot: &'s Snapshot, name: &str) -> Option<&'s Arc<Cluster>> {
    let mut clusters = snapshot.clusters.iter().flatten();
    clusters.find(|cluster| **cluster.name() == *name)
}

/// Returns a GlobalTrafficPolicy with these cluster weights, and an import with one gateway from each cluster.
pub fn shared(weights: &[(String, u32)]) -> String {
    let target = |(cluster, weight): &(String, u32)| {
        format!("{{clusterKey: {}, weight: {weight}}}", key(cluster))
    };
    let targets: Vec<String> = weights.iter().map(target).collect();
    let gateway = |(number, (cluster, _)): (usize, &(String, u32))| {
        format!(
            "{{clusterKey: {}, target: {{host: '', ip: 10.{}.0.1, port: 80, path: /{cluster}/web}}}}",
            key(cluster),
            number + 1
        )
    };
    let gateways: Vec<String> = weights.iter().enumerate().map(gateway).collect();
    format!(
        "{EDGE}---
apiVersion: flomesh.io/v1alpha1
kind: ServiceImport
metadata: {{namespace: ns1, name: web}}
spec: {{ports: [{{name: http, port: 80, endpoints: [{}]}}]}}
---
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata: {{namespace: ns1, name: web}}
spec: {{lbType: ActiveActive, targets: [{}]}}
",
        gateways.join(", "),
        targets.join(", ")
    )
}

/// Gateway on port 80 that routes `web.example` to the service ns1/web.
pub const EDGE: &str = "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {namespace: ns1, name: edge}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {namespace: ns1, name: web}
spec:
  hosts: [web.example]
  gateways: [edge]
  http: [{route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]}]
---
apiVersion: v1
kind: Service
metadata: {namespace: ns1, name: web}
spec: {ports: [{name: http, port: 80}]}
";

/// Name of the cluster that [`EDGE`] routes to.
pub const WEB: &str = "outbound|80||web.ns1.svc.cluster.local";
