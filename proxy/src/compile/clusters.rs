//! Clusters: a service's port and subset with the policy that balances it.
//!
//! Only clusters that a route names are built. A cluster is kept from the previous snapshot unless one of its inputs
//! has changed. It is also kept if its inputs were read again and turned out to be the same, addresses of DNS names
//! included.

mod connecting;
mod endpoints;
mod lookups;
mod making;
mod named;
pub(in crate::compile) mod special;
mod stats;
mod workload_labels;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::gateway_api::BackendHost;
use config_loader::catalog::{Changes, Readers, Tape, View};
use config_loader::resource::gateway_api::ObjectReference;

use crate::compile::Inputs;
use crate::compile::policies::ClusterPolicy;
use crate::compile::policies::Policies;
use crate::compile::policies::retries;
use crate::compile::service::Service;
use crate::compile::service::port::Port;
use crate::compile::services::Services;
use crate::compile::update::host_reads::AllHostReads;
use crate::identity::Identity;
use crate::snapshot::{Direction, Missing, Renewal, Snapshot};
use crate::telemetry::{RouteStats, RuleStats, StatsRegistry, Workload as WorkloadLabels};
use crate::tls::Store;
use traffic::balance::Policy;
use traffic::cluster::federation::Pool;
use traffic::cluster::{Absence, Cluster, Locality};
use traffic::filter::RetryPolicy;
use traffic::registry::{Buckets, ClusterId, Moment, Rate, Registry};
use workload_labels::workload_labels;

/// Names a cluster as Istio does.
pub(in crate::compile) fn name(port: u16, subset: &str, host: &str) -> String {
    format!("outbound|{port}|{subset}|{host}")
}

/// First part of the names of clusters of backends with a BackendTLSPolicy: the namespace and name of the policy follow, and
/// those of the Secret that the Gateway shows, so that connections with another certificate are not shared.
const SECURED: &str = "tls:";

/// Names the cluster of a backend for routes of a Gateway, which shows the certificate of this Secret to backends.
pub(in crate::compile) fn name_of_backend(
    backend: &BackendHost,
    client: Option<&ObjectReference>,
) -> String {
    let BackendHost {
        host,
        port,
        tls_policy,
    } = backend;
    let Some(policy) = tls_policy else {
        return name(*port, "", host);
    };
    let (namespace, policy) = (&policy.namespace, &policy.name);
    let client = client.map(|secret| format!(":{}/{}", secret.namespace, secret.name));
    let client = client.unwrap_or_default();
    format!("{SECURED}{namespace}/{policy}{client}|{port}||{host}")
}

/// Settings shared by all clusters of one name.
#[derive(Clone, Copy)]
pub(in crate::compile) struct Making<'a> {
    service: &'a Service,
    port: &'a Port,
    policy: &'a ClusterPolicy,
    /// Name of the clusters, without the suffix of a member.
    base: &'a Arc<str>,
    /// Whether the clients' TLS is passed through unchanged.
    is_passed_on: bool,
    /// Changes to the address that the client dialed, which the proxy connects to; `None` for clusters with endpoints.
    dials: Option<Dials>,
    /// Direction of the traffic.
    direction: Direction,
}

/// Parts of the address that a client dialed that are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::compile) struct Dials {
    port: Option<u16>,
}

impl Dials {
    /// Returns the changes for a service whose clients dial the endpoints; `None` for other services.
    fn of_port(port: &Port, policy: &ClusterPolicy) -> Option<Self> {
        let target = port.original_destination && port.target != port.number;
        (policy.balance.policy == Policy::Passthrough).then(|| Self {
            port: target.then_some(port.target),
        })
    }
}

/// Pools that a cluster represents, in addition to its own endpoints.
#[derive(Default)]
pub(in crate::compile) struct StandsFor {
    /// Whether its own endpoints are one of several pools.
    is_pool: bool,
    pools: Option<Vec<Pool>>,
    absence: Option<Absence>,
}

/// First part of the names of clusters that serve requests from other Kubernetes clusters.
const EXPORTED: &str = "exported";

/// First part of the names of clusters to which the clients' TLS is passed through.
const PASSED_ON: &str = "passthrough";

/// Returns the name of the TLS passthrough cluster for the cluster `outbound|PORT|SUBSET|HOST`.
pub(in crate::compile) fn passed_on_name(cluster: &str) -> String {
    let rest = cluster.split_once('|').map_or(cluster, |(_, rest)| rest);
    format!("{PASSED_ON}|{rest}")
}

/// Returns the name of the cluster through which a service is exported to other clusters.
pub(in crate::compile) fn exported_name(port: u16, host: &str) -> String {
    format!("{EXPORTED}|{port}||{host}")
}

/// Result of building the clusters that routes name.
pub(in crate::compile) struct Built {
    /// Clusters by number.
    pub clusters: Box<[Option<Arc<Cluster>>]>,
    /// Numbers of clusters without a service, port or subset, with the missing part.
    pub missing: BTreeMap<ClusterId, Missing>,
    /// DNS names of endpoints, with their renewal.
    pub dns_names: BTreeMap<Arc<str>, Renewal>,
    /// Recorded reads of the clusters.
    pub reads: Readers<ClusterId>,
    /// Reads of virtual hosts.
    pub host_reads: AllHostReads,
}

/// Clusters by number. A cluster that was requested and has no service, port or subset is `Some(None)`.
#[derive(Default)]
struct BuiltClusters(Vec<Option<Option<Arc<Cluster>>>>);

impl BuiltClusters {
    fn has(&self, id: ClusterId) -> bool {
        matches!(self.0.get(id.0 as usize), Some(Some(_)))
    }

    fn insert(&mut self, id: ClusterId, cluster: Option<Arc<Cluster>>) {
        let number = id.0 as usize;
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        self.0[number] = Some(cluster);
    }

    fn finish(mut self, count: usize) -> Box<[Option<Arc<Cluster>>]> {
        self.0.resize(count, None);
        self.0.into_iter().map(Option::flatten).collect()
    }
}

/// Inputs of all clusters.
pub(in crate::compile) struct Sources<'a> {
    pub inputs: &'a Inputs<'a>,
    pub services: &'a Services,
    pub policies: &'a Policies<'a>,
    pub previous: &'a Snapshot,
    pub changes: &'a Changes,
    pub tape: &'a Tape,
    /// Reads of the clusters of the previous snapshot.
    pub reads: Readers<ClusterId>,
    /// Reads of its virtual hosts.
    pub host_reads: AllHostReads,
}

/// Builds the clusters that routes name.
pub(in crate::compile) struct Clusters<'a> {
    services: &'a Services,
    policies: &'a Policies<'a>,
    registry: &'a Registry,
    certificates: &'a Store,
    stats: &'a StatsRegistry,
    previous: &'a Snapshot,
    changes: &'a Changes,
    view: View<'a>,
    tape: &'a Tape,
    /// Reads of the clusters of the previous snapshot, replaced as clusters are built.
    reads: Readers<ClusterId>,
    /// Reads of virtual hosts.
    pub host_reads: AllHostReads,
    /// Clusters that the change rebuilds, each with the resource that caused it; `None` if it rebuilds all.
    touched: Option<HashMap<ClusterId, Arc<str>>>,
    /// Resource whose change rebuilds the current cluster.
    cause: Option<Arc<str>>,
    source: Arc<WorkloadLabels>,
    identity: &'a Identity,
    /// Hash of the identity.
    identity_hash: u64,
    locality: Locality,
    now: Moment,
    member: Arc<str>,
    inbound_retries: Arc<RetryPolicy>,
    mesh_retries: Option<Arc<RetryPolicy>>,
    service_retries: Option<Arc<RetryPolicy>>,
    /// Whether a route source of the listener that is being compiled has the host `*`.
    routes_every_host: bool,
    /// Clusters that were built so far.
    built: BuiltClusters,
    missing: BTreeMap<ClusterId, Missing>,
    dns_names: BTreeMap<Arc<str>, Renewal>,
}

impl<'a> Clusters<'a> {
    pub(in crate::compile) fn new(sources: Sources<'a>) -> Self {
        let Sources {
            inputs,
            services,
            policies,
            previous,
            changes,
            tape,
            reads,
            host_reads,
        } = sources;
        let identity = inputs.identity;
        let member: Arc<str> = identity.member().into();
        let source = workload_labels(&identity.labels, &identity.namespace, &member);
        Self {
            services,
            policies,
            registry: inputs.registry,
            certificates: inputs.certificates,
            stats: inputs.stats,
            previous,
            changes,
            view: View::new(inputs.resources, tape),
            tape,
            host_reads,
            touched: (!changes.are_everything()).then(|| reads.touched(changes)),
            reads,
            cause: None,
            source: Arc::new(source),
            identity,
            identity_hash: {
                let mut hasher = DefaultHasher::new();
                format!("{:?}", identity.of_parts()).hash(&mut hasher);
                hasher.finish()
            },
            locality: identity.locality().into(),
            now: inputs.now,
            member,
            service_retries: retries::of_mesh(identity).map(|policy| {
                Arc::new(RetryPolicy {
                    avoid_tried: policy.avoid_tried.or(Some(true)),
                    ..policy
                })
            }),
            mesh_retries: retries::of_mesh(identity).map(Arc::new),
            inbound_retries: Arc::new(RetryPolicy::mesh_default(identity.mesh.compat_retry_503)),
            routes_every_host: false,
            built: BuiltClusters::default(),
            missing: BTreeMap::new(),
            dns_names: BTreeMap::new(),
        }
    }

    /// Returns the statistics of rules with this `statPrefix`; `None` without a prefix.
    pub(in crate::compile) fn route_stats(&self, prefix: &str) -> Option<Arc<RouteStats>> {
        (!prefix.is_empty()).then(|| self.stats.route_stats(prefix))
    }

    /// Returns the statistics of a rule; `None` if rules are not counted.
    pub(in crate::compile) fn rule_stats(
        &self,
        label: impl FnOnce(View<'_>) -> Arc<str>,
    ) -> Option<Arc<RuleStats>> {
        let is_counted = self.identity.counts_rules;
        is_counted.then(|| self.stats.rule_stats(&label(self.view())))
    }

    /// Returns the buckets of a rate limit with this name.
    pub(in crate::compile) fn buckets(&self, name: &str, rate: Rate) -> Arc<Buckets> {
        self.registry.buckets(name, rate)
    }

    /// Returns the retries of a route without a retry policy.
    pub(in crate::compile) fn mesh_retries(&self) -> Option<&Arc<RetryPolicy>> {
        self.mesh_retries.as_ref()
    }

    /// Returns the retries of requests to the workload, which the mesh configuration does not change.
    pub(in crate::compile) fn inbound_retries(&self) -> &Arc<RetryPolicy> {
        &self.inbound_retries
    }

    /// Returns the retries of a service without a route source: as in Istio, they avoid the endpoints of earlier
    /// attempts even with consistent hashing.
    pub(in crate::compile) fn service_retries(&self) -> Option<&Arc<RetryPolicy>> {
        self.service_retries.as_ref()
    }

    /// Sets whether the listener that is compiled from here on has a route source with the host `*`.
    pub(in crate::compile) fn enter_listener(&mut self, routes_every_host: bool) {
        self.routes_every_host = routes_every_host;
    }

    /// Returns the number of the cluster with this name, `outbound|PORT|SUBSET|HOST`, which is built on first use. An
    /// unknown host or subset gets a number as well; the snapshot has no cluster with it.
    pub(in crate::compile) fn need(&mut self, name: &str) -> (Arc<str>, ClusterId) {
        let state = self.registry.cluster(name);
        if !self.built.has(state.id) {
            let cluster = self
                .unchanged(state.id)
                .or_else(|| self.build_and_record(name));
            if cluster.is_none() {
                // looked up at each compile, and no part of what asks for it
                let (missing, _) = self.tape.part(|| self.missing(name));
                self.missing.insert(state.id, missing);
                self.reads.remove(&state.id);
            }
            self.built.insert(state.id, cluster);
        }
        (Arc::clone(&state.name), state.id)
    }

    /// Keeps the cluster of an unchanged route; rebuilds it only if the change touches it.
    pub(in crate::compile) fn need_again(&mut self, name: &str, id: ClusterId) {
        if self.built.has(id) {
            return;
        }
        match self.unchanged(id) {
            Some(kept) => self.built.insert(id, Some(kept)),
            None => drop(self.need(name)),
        }
    }

    /// Returns the unchanged cluster of this number, with those of its members; `None` if one of its inputs has
    /// changed.
    fn unchanged(&mut self, id: ClusterId) -> Option<Arc<Cluster>> {
        self.cause = None;
        // clusters of removed listeners are not kept up to date
        let before = self.previous.current_cluster(id)?;
        self.cause = self.touched.as_ref()?.get(&id).cloned();
        if self.cause.is_some() {
            return None;
        }
        let pools = before.federation.iter().flat_map(|one| one.pools());
        for pool in pools.filter(|pool| pool.cluster != id) {
            let cluster = self.previous.cluster(pool.cluster).cloned();
            self.built.insert(pool.cluster, cluster);
        }
        Some(Arc::clone(before))
    }

    /// Returns the changes since the previous compile.
    pub(in crate::compile) fn changes(&self) -> &'a Changes {
        self.changes
    }

    /// Returns the recorder of reads.
    pub(in crate::compile) fn tape(&self) -> &'a Tape {
        self.tape
    }

    /// Hashes the inputs of a virtual host together with the proxy's identity and the state of the current listener.
    pub(in crate::compile) fn inputs(&self, inputs: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        (inputs, self.identity_hash, self.routes_every_host).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the resources; reads are recorded.
    pub(in crate::compile) fn view(&self) -> View<'a> {
        self.view
    }

    /// Builds the cluster of a name, and records the resources that this reads.
    fn build_and_record(&mut self, name: &str) -> Option<Arc<Cluster>> {
        let (cluster, reads) = self.tape.part(|| self.make_named(name));
        if let Some(cluster) = &cluster {
            self.reads.insert(cluster.id(), reads);
        }
        cluster
    }

    /// Returns every service that the proxy can see.
    pub(in crate::compile) fn services(&self) -> &'a Services {
        self.services
    }

    /// Returns all clusters by number, with their missing parts, DNS names and reads.
    pub(in crate::compile) fn finish(mut self) -> Built {
        let before = self.previous.clusters.iter().flatten();
        for gone in before.filter(|cluster| !self.built.has(cluster.id())) {
            self.reads.remove(&gone.id());
        }
        Built {
            clusters: self.built.finish(self.registry.cluster_count()),
            missing: self.missing,
            dns_names: self.dns_names,
            reads: self.reads,
            host_reads: self.host_reads.finish(),
        }
    }
}
