//! Clusters: a service's port and subset with the policy that balances it.
//!
//! Only clusters that a route names are built. A cluster is kept from the previous snapshot unless one of its inputs
//! has changed. It is also kept if its inputs were read again and turned out to be the same, addresses of DNS names
//! included.

mod connecting;
mod endpoints;
mod making;
pub(in crate::compile) mod special;
mod stats;
mod workload_labels;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::{Changes, Readers, Tape, View};

use crate::compile::Inputs;
use crate::compile::policies::ClusterPolicy;
use crate::compile::policies::Policies;
use crate::compile::service::Service;
use crate::compile::service::Shift;
use crate::compile::service::federation;
use crate::compile::service::federation::Candidates;
use crate::compile::service::federation::POOLS_MAX;
use crate::compile::service::federation::Placed;
use crate::compile::service::federation::Resolved;
use crate::compile::service::federation::Viewer;
use crate::compile::service::federation::Wanted;
use crate::compile::service::port::Port;
use crate::compile::service::workload::Origin;
use crate::compile::service::workload::Workload;
use crate::compile::services::Services;
use crate::compile::services::Vips;
use crate::compile::update::host_reads::AllHostReads;
use crate::identity::Identity;
use crate::snapshot::{Destination, Direction, Missing, Renewal, Snapshot};
use crate::telemetry::{RouteStats, StatsRegistry, Workload as WorkloadLabels};
use crate::tls::Store;
use crate::upstream::Tunnel;
use traffic::balance::Policy;
use traffic::cluster::federation::Pool;
use traffic::cluster::{Absence, Cluster, Locality};
use traffic::filter::RetryPolicy;
use traffic::registry::{ClusterId, Moment, Registry};
use workload_labels::workload_labels;

/// Names a cluster as Istio does.
pub(in crate::compile) fn name(port: u16, subset: &str, host: &str) -> String {
    format!("outbound|{port}|{subset}|{host}")
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

/// Maximum number of hosts that are suggested to a client that named an unknown host.
const FEDERATED_MAX: usize = 20;

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
    mesh_retries: Arc<RetryPolicy>,
    service_retries: Arc<RetryPolicy>,
    /// Whether a route source of the listener that is being compiled has the host `*`.
    routes_every_host: bool,
    /// Clusters that were built so far.
    built: BuiltClusters,
    missing: BTreeMap<ClusterId, Missing>,
    dns_names: BTreeMap<Arc<str>, Renewal>,
}

impl<'a> Clusters<'a> {
    pub(in crate::compile) fn new(
        inputs: &'a Inputs<'a>,
        (services, policies): (&'a Services, &'a Policies<'a>),
        previous: &'a Snapshot,
        (reads, host_reads): (Readers<ClusterId>, AllHostReads),
        (changes, tape): (&'a Changes, &'a Tape),
    ) -> Self {
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
                format!("{identity:?}").hash(&mut hasher);
                hasher.finish()
            },
            locality: identity.locality().into(),
            now: inputs.now,
            member,
            service_retries: Arc::new(RetryPolicy {
                avoid_tried: Some(true),
                ..RetryPolicy::mesh_default(identity.mesh.compat_retry_503)
            }),
            mesh_retries: Arc::new(RetryPolicy::mesh_default(identity.mesh.compat_retry_503)),
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

    /// Returns the retries of a route without a retry policy.
    pub(in crate::compile) fn mesh_retries(&self) -> &Arc<RetryPolicy> {
        &self.mesh_retries
    }

    /// Returns the retries of a service without a route source: as in Istio, they avoid the endpoints of earlier
    /// attempts even with consistent hashing.
    pub(in crate::compile) fn service_retries(&self) -> &Arc<RetryPolicy> {
        &self.service_retries
    }

    /// Returns the full host of a destination in an object of `namespace`.
    pub(in crate::compile) fn destination<'h>(
        &self,
        host: &'h str,
        namespace: &str,
    ) -> Cow<'h, str> {
        self.services.destination(self.view, host, namespace)
    }

    /// Returns the target host of an alias, or the host itself if it is not an alias.
    pub(in crate::compile) fn behind_alias<'h>(&self, host: &'h str) -> Cow<'h, str> {
        match self.services.behind_alias(self.view, host) {
            Some(behind) => Cow::Owned(behind),
            None => Cow::Borrowed(host),
        }
    }

    /// Returns the service port that a destination resolves to.
    pub(in crate::compile) fn port(
        &self,
        host: &str,
        named: Option<u16>,
        listener_port: u16,
    ) -> u16 {
        match self.services.find_shape(self.view, host) {
            Some(service) => service.port(named, listener_port),
            None => named.unwrap_or(listener_port),
        }
    }

    /// Sets whether the listener that is compiled from here on has a route source with the host `*`.
    pub(in crate::compile) fn enter_listener(&mut self, routes_every_host: bool) {
        self.routes_every_host = routes_every_host;
    }

    /// Returns the traffic shift policies of a host; none on a listener with a route source for every host, which
    /// routes the requests of this host as well.
    pub(in crate::compile) fn shifts(&self, host: &str) -> &[Arc<Shift>] {
        let service = self.services.find_shape(self.view, host);
        let service = service.filter(|_| !self.routes_every_host);
        service.map_or(&[], |service| &service.shifts)
    }

    /// Returns the hosts by which other clusters know the `is_wanted` services of the local cluster, sorted; at most
    /// [`FEDERATED_MAX`].
    pub(in crate::compile) fn federated(
        &self,
        is_wanted: impl Fn(&str, &str) -> bool,
    ) -> Vec<Arc<str>> {
        let own = &self.services.members(self.view).own;
        let services = self.services.iter(self.view).filter(|service| {
            let stands_for = service.stands_for.as_ref();
            stands_for.is_some_and(|member| member.key == own.key)
                && is_wanted(&service.host, &service.namespace)
        });
        let mut hosts: Vec<_> = services.map(|service| Arc::clone(&service.host)).collect();
        hosts.sort_unstable();
        hosts.truncate(FEDERATED_MAX);
        hosts
    }

    /// Returns the cluster names of every mesh service whose host and namespace `is_wanted`: one for each port and
    /// subset, sorted. Hosts that represent other clusters are excluded.
    pub(in crate::compile) fn names_of_mesh(
        &self,
        is_wanted: impl Fn(&str, &str) -> bool,
    ) -> Vec<String> {
        let own = &self.services.members(self.view).own;
        let mut names = Vec::new();
        let services = self.services.iter(self.view).filter(|service| {
            let host = &*service.host;
            let stands_for = service.stands_for.as_ref();
            !service.external
                && !host.starts_with('*')
                && self.services.behind_alias(self.view, host).is_none()
                && stands_for.is_none_or(|member| member.key == own.key)
                && is_wanted(host, &service.namespace)
        });
        for service in services {
            let subsets = self.policies.subsets(&service.host, service);
            for port in &service.ports {
                let all = std::iter::once("").chain(subsets.iter().copied());
                names.extend(all.map(|subset| name(port.number, subset, &service.host)));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the number of the cluster with this name, `outbound|PORT|SUBSET|HOST`, which is built on first use. An
    /// unknown host or subset gets a number as well; the snapshot has no cluster with it.
    pub(in crate::compile) fn need(&mut self, name: &str) -> (Arc<str>, ClusterId) {
        let state = self.registry.cluster(name);
        if !self.built.has(state.id) {
            let cluster = self.unchanged(state.id).or_else(|| self.find(name));
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

    /// Keeps the cluster of an unchanged destination; rebuilds it only if the change touches it.
    pub(in crate::compile) fn need_again(&mut self, destination: &Destination) {
        let id = destination.cluster;
        if self.built.has(id) {
            return;
        }
        match self.unchanged(id) {
            Some(kept) => self.built.insert(id, Some(kept)),
            None => drop(self.need(&destination.name)),
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

    /// Differences from the compile before.
    pub(in crate::compile) fn changes(&self) -> &'a Changes {
        self.changes
    }

    /// The recorder of reads.
    pub(in crate::compile) fn tape(&self) -> &'a Tape {
        self.tape
    }

    /// Hashes what a virtual host is made from, with what it follows from at this proxy and listener.
    pub(in crate::compile) fn inputs(&self, inputs: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        (inputs, self.identity_hash, self.routes_every_host).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the resources; reads are recorded.
    pub(in crate::compile) fn view(&self) -> View<'a> {
        self.view
    }

    /// Returns the missing part of an unknown cluster: the cluster, its port or its subset.
    fn missing(&self, name: &str) -> Missing {
        let mut parts = name.splitn(4, '|').skip(1);
        let port = parts.next().and_then(|port| port.parse().ok());
        let host = parts.nth(1).unwrap_or_default();
        let Some((port, service)) = port.zip(self.services.find(self.view, host)) else {
            return Missing::Cluster;
        };
        if service.find_port(port).is_none() {
            return Missing::Port;
        }
        let policy = self.policies.find(host, service, port, "");
        Missing::Subset(policy.and_then(|policy| policy.balance.hash_key().cloned()))
    }

    /// Builds the cluster of a name, and records the resources that this reads.
    fn find(&mut self, name: &str) -> Option<Arc<Cluster>> {
        let (cluster, reads) = self.tape.part(|| self.make_named(name));
        if let Some(cluster) = &cluster {
            self.reads.insert(cluster.id(), reads);
        }
        cluster
    }

    fn make_named(&mut self, name: &str) -> Option<Arc<Cluster>> {
        let mut parts = name.splitn(4, '|');
        let kind = parts.next()?;
        let is_passed_on = kind == PASSED_ON;
        let port: u16 = parts.next()?.parse().ok()?;
        let (subset, host) = (parts.next()?, parts.next()?);
        let service = Arc::clone(self.services.find(self.view, host)?);
        let mut policy = self.policies.find(host, &service, port, subset)?;
        if kind != EXPORTED && !is_passed_on {
            return self.build(name, &service, port, policy);
        }
        if let Some(balancer) = service.export.filter(|_| !is_passed_on) {
            balancer.overrule(&mut policy.balance, policy.says_balancer);
        }
        let port = &*service.find_port(port)?;
        let state = self.registry.cluster(name);
        // requests from other clusters stay in the local cluster whatever the policies say, so that they cannot loop
        let home = &self.services.members(self.view).own;
        let subset = policy.subset.as_ref();
        let own = service.endpoints.iter().filter(|workload| {
            workload.member.is_none()
                && workload.origin == Origin::Native
                && workload.port(port).is_some()
                && subset.is_none_or(|labels| workload.is_in(labels, home))
        });
        let own: Vec<&Workload> = own.collect();
        let making = Making {
            service: &service,
            port,
            policy: &policy,
            base: &Arc::clone(&state.name),
            is_passed_on,
            dials: Dials::of_port(port, &policy),
            direction: Direction::Gateway,
        };
        Some(self.make(&making, state, &own, StandsFor::default()))
    }

    /// Returns the other hosts by which requests for a service of the local domain may arrive.
    pub(in crate::compile) fn aliases(&self, host: &str) -> Vec<String> {
        self.services
            .aliases(self.view, host, &self.identity.domain)
    }

    /// Returns every service that the proxy can see.
    pub(in crate::compile) fn services(&self) -> &'a Services {
        self.services
    }

    /// Returns the virtual addresses of services.
    pub(in crate::compile) fn vips(&self) -> &Vips {
        self.services.vips(self.view)
    }

    /// Whether a service has this port and its endpoints belong to the local cluster.
    pub(in crate::compile) fn exports(&self, host: &str, port: u16) -> bool {
        let service = self.services.find_shape(self.view, host);
        service.is_some_and(|service| service.is_exportable && service.find_port(port).is_some())
    }

    /// Returns the tunnel for connections to a cluster, if its DestinationRule has one; `whole` ignores the subset.
    pub(in crate::compile) fn tunnel(&self, name: &str, whole: bool) -> Option<Tunnel> {
        let mut parts = name.splitn(4, '|').skip(1);
        let port: u16 = parts.next()?.parse().ok()?;
        let (subset, host) = (parts.next()?, parts.next()?);
        let subset = if whole { "" } else { subset };
        let service = self.services.find(self.view, host)?;
        self.policies.tunnel(host, service, port, subset)
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

    /// Builds the cluster of this name, and one for each member if a policy distributes its traffic among members.
    fn build(
        &mut self,
        name: &str,
        service: &Service,
        port: u16,
        policy: ClusterPolicy,
    ) -> Option<Arc<Cluster>> {
        let port = &*service.find_port(port)?;
        let base = self.registry.cluster(name);
        let members = self.services.members(self.view);
        let viewer = Viewer::new(&members.own, self.identity);
        let subset = policy.subset.as_ref();
        let wanted = Wanted {
            service,
            port,
            subset,
        };
        let candidates = federation::candidates(wanted, viewer);
        let (resolved, absence) = federation::resolve(wanted, &candidates, &members.own.key);
        let make = Making {
            service,
            port,
            policy: &policy,
            base: &base.name,
            is_passed_on: false,
            dials: Dials::of_port(port, &policy),
            direction: Direction::Outbound,
        };
        let (workloads, pools) = match resolved {
            Resolved::Merged => {
                let all = candidates.by_member.values().flatten();
                (all.copied().collect(), None)
            }
            Resolved::Federated(placed) => {
                let pools = self.pools(&make, base.id, placed, &candidates);
                let own = candidates.by_member.get(&members.own.key);
                (own.cloned().unwrap_or_default(), Some(pools))
            }
        };
        let stands_for = StandsFor {
            is_pool: pools.is_some(),
            pools,
            absence,
        };
        Some(self.make(&make, base.clone(), &workloads, stands_for))
    }

    /// Returns the pools of a cluster, each with a cluster of its own; that of the local cluster is `base`.
    fn pools(
        &mut self,
        making: &Making<'_>,
        base: ClusterId,
        placed: Vec<Placed>,
        candidates: &Candidates<'_>,
    ) -> Vec<Pool> {
        let own = &self.services.members(self.view).own.key;
        let mut pools = Vec::with_capacity(placed.len().min(POOLS_MAX));
        for place in placed.into_iter().take(POOLS_MAX) {
            let cluster = if place.member == *own {
                base
            } else {
                let name = format!("{}@{}", making.base, place.member);
                let state = self.registry.cluster(&name);
                let id = state.id;
                let workloads = candidates.by_member.get(&place.member);
                let workloads = workloads.map_or(&[][..], Vec::as_slice);
                let alone = StandsFor {
                    is_pool: true,
                    ..StandsFor::default()
                };
                let built = self.make(making, state, workloads, alone);
                self.built.insert(id, Some(built));
                id
            };
            pools.push(Pool {
                member: place.member,
                cluster,
                tier: place.tier,
                weight: place.weight,
            });
        }
        pools
    }
}
