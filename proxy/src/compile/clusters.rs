//! Clusters: a service's port and subset with the policy that balances it.
//!
//! Only clusters that a route names are built. A cluster is kept from the snapshot before when its fingerprint, over
//! the service, the policy and the addresses of its names, is the same.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use config_loader::resource::{HealthChecked, Probe as AskedProbe};

use super::Inputs;
use super::client_tls::{Asked, Purpose};
use super::policies::Policies;
use super::service::{Labels, Port, Service, Workload};
use super::services::Services;
use crate::cluster::locality::{self, Place};
use crate::cluster::{
    Balance, Cluster, Endpoint, HealthCheck, Locality, Parts, Plan, Probe, RetryLimit,
};
use crate::filter::RetryPolicy;
use crate::identity::Identity;
use crate::pool::PoolSettings;
use crate::provenance::Provenance;
use crate::registry::{Address, ClusterId, Moment, Registry, Thresholds};
use crate::snapshot::Snapshot;
use crate::telemetry::{Reporter, RequestLabels, RequestStats, RouteStats, StatsRegistry, UNKNOWN};
use crate::telemetry::{Service as ServiceLabels, Workload as WorkloadLabels};
use crate::tls::Store;
use crate::upstream::{Alternates, Tunnel};

/// What balances a cluster: a DestinationRule's settings for one port and subset.
#[derive(Clone, Debug)]
pub(super) struct ClusterPolicy {
    pub balance: Balance,
    pub retry_limit: RetryLimit,
    pub pool: PoolSettings,
    /// What it says about health checks.
    pub health_check: HealthChecked,
    /// What a rule says of TLS.
    pub tls: Option<Asked>,
    /// Labels of the subset; `None` for the whole service.
    pub subset: Option<BTreeMap<String, String>>,
    pub provenance: Vec<Provenance>,
    pub fingerprint: u64,
}

/// Names a cluster as Istio does.
pub(super) fn name(port: u16, subset: &str, host: &str) -> String {
    format!("outbound|{port}|{subset}|{host}")
}

/// Clusters by number.
pub(super) type Numbered = Box<[Option<Arc<Cluster>>]>;

/// Builds the clusters that routes name.
pub(super) struct Clusters<'a> {
    services: &'a Services,
    policies: &'a Policies<'a>,
    registry: &'a Registry,
    certificates: &'a Store,
    stats: &'a StatsRegistry,
    previous: &'a Snapshot,
    source: Arc<WorkloadLabels>,
    identity: &'a Identity,
    locality: Locality,
    now: Moment,
    member: Arc<str>,
    mesh_retries: Arc<RetryPolicy>,
    /// Built so far; a name of which nothing is known has none.
    built: HashMap<ClusterId, Option<Arc<Cluster>>>,
    dns_names: BTreeSet<Arc<str>>,
}

impl<'a> Clusters<'a> {
    pub(super) fn new(
        inputs: &'a Inputs<'a>,
        services: &'a Services,
        policies: &'a Policies<'a>,
        previous: &'a Snapshot,
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
            source: Arc::new(source),
            identity,
            locality: identity.locality().into(),
            now: inputs.now,
            member,
            mesh_retries: Arc::new(RetryPolicy::mesh_default(identity.mesh.retry_503)),
            built: HashMap::new(),
            dns_names: BTreeSet::new(),
        }
    }

    /// Where a rule with this `statPrefix` counts its requests; nowhere without one.
    pub(super) fn route_stats(&self, prefix: &str) -> Option<Arc<RouteStats>> {
        (!prefix.is_empty()).then(|| self.stats.route_stats(prefix))
    }

    /// What is tried again of the requests of a rule that says nothing about it.
    pub(super) fn mesh_retries(&self) -> &Arc<RetryPolicy> {
        &self.mesh_retries
    }

    /// The service port that a destination means.
    pub(super) fn port(&self, host: &str, named: Option<u16>, listener_port: u16) -> u16 {
        match self.services.find(host) {
            Some(service) => service.port(named, listener_port),
            None => named.unwrap_or(listener_port),
        }
    }

    /// Names of the clusters of every service of the mesh whose host and namespace `is_wanted`: one for each port and
    /// subset, sorted.
    pub(super) fn names_of_mesh(&self, is_wanted: impl Fn(&str, &str) -> bool) -> Vec<String> {
        let mut names = Vec::new();
        let services = self.services.iter().filter(|service| {
            let host = &*service.host;
            !service.external && !host.starts_with('*') && is_wanted(host, &service.namespace)
        });
        for service in services {
            let subsets = self.policies.subsets(&service.host, &service.namespace);
            for port in &service.ports {
                let all = std::iter::once("").chain(subsets.iter().copied());
                names.extend(all.map(|subset| name(port.number, subset, &service.host)));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The number of the cluster with this name, `outbound|PORT|SUBSET|HOST`, which is built on first use. A number is
    /// given out for an unknown host or subset too; the snapshot has no cluster under it.
    pub(super) fn need(&mut self, name: &str) -> (Arc<str>, ClusterId) {
        let state = self.registry.cluster(name);
        if !self.built.contains_key(&state.id) {
            let cluster = self.find(name);
            self.built.insert(state.id, cluster);
        }
        (Arc::clone(&state.name), state.id)
    }

    fn find(&mut self, name: &str) -> Option<Arc<Cluster>> {
        let mut parts = name.splitn(4, '|').skip(1);
        let port: u16 = parts.next()?.parse().ok()?;
        let (subset, host) = (parts.next()?, parts.next()?);
        let service = Arc::clone(self.services.find(host)?);
        let policy = self.policies.find(host, &service, port, subset)?;
        self.build(name, &service, port, policy)
    }

    /// The tunnel that connections to a cluster go through, if its rule says so; `whole` if no subset has a say.
    pub(super) fn tunnel(&self, name: &str, whole: bool) -> Option<Tunnel> {
        let mut parts = name.splitn(4, '|').skip(1);
        let port: u16 = parts.next()?.parse().ok()?;
        let (subset, host) = (parts.next()?, parts.next()?);
        let subset = if whole { "" } else { subset };
        let service = self.services.find(host)?;
        self.policies.tunnel(host, service, port, subset)
    }

    /// All clusters by number, and the DNS names that their endpoints have.
    pub(super) fn finish(self) -> (Numbered, BTreeSet<Arc<str>>) {
        let mut clusters = vec![None; self.registry.cluster_count()];
        for (id, cluster) in self.built {
            clusters[id.0 as usize] = cluster;
        }
        (clusters.into_boxed_slice(), self.dns_names)
    }

    fn build(
        &mut self,
        name: &str,
        service: &Service,
        port: u16,
        mut policy: ClusterPolicy,
    ) -> Option<Arc<Cluster>> {
        let port = service.find_port(port)?;
        let members: Vec<&Workload> = service
            .endpoints
            .iter()
            .filter(|workload| {
                policy
                    .subset
                    .as_ref()
                    .is_none_or(|labels| workload.has_labels(labels))
            })
            .collect();
        let names = members.iter().filter_map(|workload| workload.host.name());
        self.dns_names.extend(names.cloned());
        let state = self.registry.cluster(name);
        let purpose = Purpose {
            identity: self.identity,
            service,
            cluster: name,
            members: &members,
        };
        policy.pool.tls = purpose.tls(policy.tls.as_ref(), self.certificates);
        let fingerprint = self.fingerprint(service, port, &policy, &members);
        if let Some(before) = self.previous.cluster(state.id)
            && before.fingerprint == fingerprint
        {
            return Some(Arc::clone(before));
        }
        let endpoints = self.endpoints(&state.name, service, port, &members);
        let plan = self.plan(&policy.balance, &endpoints);
        let provenance = service
            .provenance
            .iter()
            .chain(&policy.provenance)
            .cloned()
            .collect();
        let parts = Parts {
            host: Arc::clone(&service.host),
            protocol: port.protocol,
            balance: policy.balance,
            endpoints,
            plan,
            unresolved: self.unresolved(port, &members),
            stats: self.stats_of(service, &WorkloadLabels::default()),
            pool: policy.pool,
            retry_limit: policy.retry_limit,
            check: health_check(&policy.health_check, &service.health_check),
            provenance,
            fingerprint,
            state,
        };
        Some(Arc::new(Cluster::build(parts, self.now)))
    }

    /// Which endpoints come first for this proxy.
    fn plan(&self, balance: &Balance, endpoints: &[Endpoint]) -> Plan {
        let here = Place {
            locality: &self.locality,
            labels: &self.identity.labels,
            network: &self.identity.network,
            member: &self.member,
        };
        let places: Vec<(Place<'_>, u32)> = endpoints
            .iter()
            .map(|endpoint| {
                let place = Place {
                    locality: &endpoint.locality,
                    labels: &endpoint.labels,
                    network: &endpoint.network,
                    member: &self.member,
                };
                (place, endpoint.weight)
            })
            .collect();
        locality::plan(&balance.spread, &here, &places)
    }

    fn fingerprint(
        &self,
        service: &Service,
        port: &Port,
        policy: &ClusterPolicy,
        members: &[&Workload],
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        (
            service.fingerprint,
            port.number,
            policy.fingerprint,
            &policy.subset,
            policy.pool.tls.as_ref().map(|tls| tls.serial),
        )
            .hash(&mut hasher);
        for workload in members {
            if let Some(name) = workload.host.name() {
                self.registry
                    .resolution(name)
                    .map(|resolution| resolution.addresses.clone())
                    .hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Endpoints in a fixed order, so that every worker and every proxy with the same ones numbers them alike.
    fn endpoints(
        &self,
        cluster: &Arc<str>,
        service: &Service,
        port: &Port,
        members: &[&Workload],
    ) -> Vec<Endpoint> {
        let mut by_address: BTreeMap<Address, (&Workload, Alternates)> = BTreeMap::new();
        for workload in members {
            for (address, alternates) in workload.addresses(port, self.registry) {
                by_address.entry(address).or_insert((workload, alternates));
            }
        }
        let mut stats: HashMap<*const BTreeMap<String, String>, Arc<RequestStats>> = HashMap::new();
        by_address
            .into_iter()
            .map(|(address, (workload, alternates))| Endpoint {
                address_text: address.to_string().into(),
                alternates,
                weight: workload.weight.max(1),
                locality: workload.locality.clone(),
                network: Arc::clone(&workload.network),
                labels: Labels::clone(&workload.labels),
                speaks_mesh_tls: workload.speaks_mesh_tls(),
                state: self.registry.endpoint(cluster, &address),
                stats: Arc::clone(stats.entry(Arc::as_ptr(&workload.labels)).or_insert_with(
                    || {
                        let labels =
                            workload_labels(&workload.labels, &service.namespace, &self.member);
                        self.stats_of(service, &labels)
                    },
                )),
                address,
            })
            .collect()
    }

    /// The names among members that have no addresses yet.
    fn unresolved(&self, port: &Port, members: &[&Workload]) -> Vec<Box<str>> {
        let names = members.iter().filter_map(|workload| {
            let name = workload.host.name()?;
            let number = workload.port(port)?;
            let unresolved = self.registry.resolution(name).is_none();
            unresolved.then(|| format!("{name}:{number}").into())
        });
        names.collect()
    }

    fn stats_of(&self, service: &Service, destination: &WorkloadLabels) -> Arc<RequestStats> {
        self.stats.request_stats(&RequestLabels {
            reporter: Reporter::Source,
            source: Arc::clone(&self.source),
            destination: Arc::new(destination.clone()),
            service: Arc::new(ServiceLabels {
                host: Arc::clone(&service.host),
                name: Arc::clone(&service.name),
                namespace: Arc::clone(&service.namespace),
            }),
        })
    }
}

/// How endpoints are checked: as their policy says, else as their service says.
fn health_check(policy: &HealthChecked, service: &HealthChecked) -> Option<Arc<HealthCheck>> {
    let asked = match (policy, service) {
        (HealthChecked::By(asked), _) | (HealthChecked::Unsaid, HealthChecked::By(asked)) => asked,
        (HealthChecked::Never | HealthChecked::Unsaid, _) => return None,
    };
    Some(Arc::new(HealthCheck {
        probe: match asked.probe.clone() {
            AskedProbe::Grpc { service, host } => Probe::Grpc { service, host },
            AskedProbe::Http {
                path,
                host,
                statuses,
            } => Probe::Http {
                path,
                host,
                statuses,
            },
            AskedProbe::Tcp => Probe::Tcp,
        },
        port: asked.port,
        interval: asked.interval,
        timeout: asked.timeout,
        thresholds: Thresholds {
            healthy: asked.healthy_threshold,
            unhealthy: asked.unhealthy_threshold,
        },
    }))
}

/// What Istio's metrics say of a workload with these labels.
pub(super) fn workload_labels(
    labels: &BTreeMap<String, String>,
    namespace: &str,
    member: &Arc<str>,
) -> WorkloadLabels {
    let first = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| labels.get(*key))
            .map(|value| Arc::from(value.as_str()))
    };
    let unknown: Arc<str> = UNKNOWN.into();
    let app = first(&["app", "app.kubernetes.io/name"]);
    let version = first(&["version", "app.kubernetes.io/version"]);
    WorkloadLabels {
        name: first(&["service.istio.io/workload-name"])
            .or_else(|| app.clone())
            .unwrap_or_else(|| unknown.clone()),
        namespace: namespace.into(),
        principal: unknown.clone(),
        canonical_service: first(&["service.istio.io/canonical-name"])
            .or_else(|| app.clone())
            .unwrap_or_else(|| unknown.clone()),
        canonical_revision: first(&["service.istio.io/canonical-revision"])
            .or_else(|| version.clone())
            .unwrap_or_else(|| "latest".into()),
        app: app.unwrap_or_else(|| unknown.clone()),
        version: version.unwrap_or(unknown),
        cluster: Arc::clone(member),
    }
}
