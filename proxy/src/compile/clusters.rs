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
use super::federation::{self, Resolved, Viewer, Wanted};
use super::policies::Policies;
use super::service::{Labels, Origin, Port, Service, Workload};
use super::services::Services;
use crate::cluster::federation::Pool;
use crate::cluster::locality::{self, Place};
use crate::cluster::{
    Absence, Balance, Cluster, Endpoint, Federation, HealthCheck, Locality, Parts, Plan, Probe,
    RetryLimit,
};
use crate::filter::RetryPolicy;
use crate::identity::Identity;
use crate::pool::PoolSettings;
use crate::provenance::Provenance;
use crate::registry::{Address, ClusterId, ClusterState, Moment, Registry, Thresholds};
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

/// What the clusters of one name have in common.
#[derive(Clone, Copy)]
struct Making<'a> {
    service: &'a Service,
    port: &'a Port,
    policy: &'a ClusterPolicy,
    /// The name.
    base: &'a Arc<str>,
}

/// What a cluster stands for besides its own endpoints.
#[derive(Default)]
struct StandsFor {
    pools: Option<Vec<Pool>>,
    absence: Option<Absence>,
}

/// Statistics by labels and member.
type StatsOf = HashMap<(*const BTreeMap<String, String>, Arc<str>), Arc<RequestStats>>;

/// Under which names the live state of endpoints is kept: the same whether a policy puts a member's endpoints into a
/// pool of their own or not, so that no ejection is lost when it comes or goes. The prefix of a gateway is part of it,
/// since one gateway stands for many services.
struct Scopes<'a> {
    base: &'a Arc<str>,
    known: HashMap<(Arc<str>, Arc<str>), Arc<str>>,
}

impl<'a> Scopes<'a> {
    fn new(base: &'a Arc<str>) -> Self {
        let known = HashMap::new();
        Self { base, known }
    }

    fn of(&mut self, workload: &Workload) -> &Arc<str> {
        let Some(member) = &workload.member else {
            return self.base;
        };
        let prefix = workload.path_prefix().cloned().unwrap_or_default();
        let key = (Arc::clone(&member.key), prefix);
        let base = self.base;
        self.known
            .entry(key)
            .or_insert_with_key(|(member, prefix)| format!("{base}@{member}{prefix}").into())
    }
}

/// What the name of a cluster begins with that serves other clusters.
const EXPORTED: &str = "exported";

/// Names the cluster of a service as it is served to other clusters.
pub(super) fn exported_name(port: u16, host: &str) -> String {
    format!("{EXPORTED}|{port}||{host}")
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
        let mut parts = name.splitn(4, '|');
        let is_exported = parts.next()? == EXPORTED;
        let port: u16 = parts.next()?.parse().ok()?;
        let (subset, host) = (parts.next()?, parts.next()?);
        let service = Arc::clone(self.services.find(host)?);
        let mut policy = self.policies.find(host, &service, port, subset)?;
        if !is_exported {
            return self.build(name, &service, port, policy);
        }
        if let Some(balancer) = service.export {
            policy.balance.policy = balancer.policy();
        }
        let port = service.find_port(port)?;
        let own = service.endpoints.iter().filter(|workload| {
            workload.member.is_none()
                && workload.origin == Origin::Native
                && workload.port(port).is_some()
        });
        let own: Vec<&Workload> = own.collect();
        let state = self.registry.cluster(name);
        let making = Making {
            service: &service,
            port,
            policy: &policy,
            base: &Arc::clone(&state.name),
        };
        Some(self.make(&making, state, &own, None))
    }

    /// Whether a service has this port, and is one whose endpoints are its own cluster's.
    pub(super) fn exports(&self, host: &str, port: u16) -> bool {
        let service = self.services.find(host);
        service.is_some_and(|service| service.is_exportable && service.find_port(port).is_some())
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

    /// Builds the cluster of this name, and those of its members where a policy shares its traffic among them.
    fn build(
        &mut self,
        name: &str,
        service: &Service,
        port: u16,
        policy: ClusterPolicy,
    ) -> Option<Arc<Cluster>> {
        let port = service.find_port(port)?;
        let members = self.services.members();
        let viewer = Viewer::new(&members.own, self.identity);
        let subset = policy.subset.as_ref();
        let wanted = Wanted {
            service,
            port,
            subset,
        };
        let candidates = federation::candidates(wanted, viewer);
        let (resolved, absence) = federation::resolve(wanted, &candidates, &members.own.key);
        let base = self.registry.cluster(name);
        let of = |member: &str| candidates.by_member.get(member).cloned();
        let make = Making {
            service,
            port,
            policy: &policy,
            base: &base.name,
        };
        let (workloads, pools) = match resolved {
            Resolved::Merged => {
                let all = candidates.by_member.values().flatten();
                (all.copied().collect(), None)
            }
            Resolved::Federated(placed) => {
                let mut pools = Vec::with_capacity(placed.len());
                for place in placed.into_iter().take(federation::POOLS_MAX) {
                    let pool = match place.member == members.own.key {
                        true => base.id,
                        false => {
                            let state = self.registry.cluster(&format!("{name}@{}", place.member));
                            let id = state.id;
                            let workloads = of(&place.member).unwrap_or_default();
                            let built = self.make(&make, state, &workloads, None);
                            self.built.insert(id, Some(built));
                            id
                        }
                    };
                    pools.push(Pool {
                        member: place.member,
                        cluster: pool,
                        tier: place.tier,
                        weight: place.weight,
                    });
                }
                (of(&members.own.key).unwrap_or_default(), Some(pools))
            }
        };
        let stands_for = StandsFor { pools, absence };
        Some(self.make(&make, base.clone(), &workloads, Some(stands_for)))
    }

    /// A cluster of these workloads: that which was before, if nothing of it has changed.
    fn make(
        &mut self,
        making: &Making<'_>,
        state: Arc<ClusterState>,
        members: &[&Workload],
        stands_for: Option<StandsFor>,
    ) -> Arc<Cluster> {
        let Making {
            service,
            port,
            policy,
            base,
        } = *making;
        let StandsFor { pools, absence } = stands_for.unwrap_or_default();
        let names = members.iter().filter_map(|workload| workload.host.name());
        self.dns_names.extend(names.cloned());
        let pool = self.pool_settings(making, members);
        let tls = pool.tls.as_ref().map(|tls| tls.serial);
        let fingerprint = self.fingerprint(making, members, (&pools, absence), tls);
        let previous = self.previous.cluster(state.id);
        if let Some(before) = previous
            && before.fingerprint == fingerprint
        {
            return Arc::clone(before);
        }
        let federation = pools.map(|pools| {
            let before = previous.and_then(|before| before.federation.as_ref());
            let turns = before.map_or_else(Arc::default, |before| Arc::clone(before.turns()));
            let replay = self.identity.mesh.failover_replay;
            Arc::new(Federation::build(pools, replay, turns))
        });
        let endpoints = self.endpoints(base, service, port, members);
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
            balance: policy.balance.clone(),
            endpoints,
            plan,
            unresolved: self.unresolved(port, members),
            stats: self.stats_of(service, &WorkloadLabels::default()),
            pool,
            retry_limit: policy.retry_limit,
            check: health_check(&policy.health_check, &service.health_check),
            federation,
            absence,
            provenance,
            fingerprint,
            state,
        };
        Arc::new(Cluster::build(parts, self.now))
    }

    /// How connections to these workloads are made, their TLS included.
    fn pool_settings(&self, making: &Making<'_>, members: &[&Workload]) -> PoolSettings {
        let Making {
            service,
            policy,
            base,
            ..
        } = *making;
        let purpose = Purpose {
            identity: self.identity,
            service,
            cluster: base,
            members,
        };
        // the mesh's TLS ends at workloads; what answers here is a gateway, which ends its own
        let is_hop = members.iter().any(|member| member.origin == Origin::Import);
        let asked = policy.tls.as_ref();
        let asked = asked.filter(|asked| !(is_hop && asked.is_of_mesh()));
        PoolSettings {
            tls: purpose.tls(asked, self.certificates),
            ..policy.pool.clone()
        }
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
                    member: endpoint.member.as_ref().unwrap_or(&self.member),
                };
                (place, endpoint.weight)
            })
            .collect();
        locality::plan(&balance.spread, &here, &places)
    }

    fn fingerprint(
        &self,
        making: &Making<'_>,
        members: &[&Workload],
        stands_for: (&Option<Vec<Pool>>, Option<Absence>),
        tls: Option<u64>,
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        (
            making.service.fingerprint,
            making.port.number,
            making.policy.fingerprint,
            &making.policy.subset,
            tls,
        )
            .hash(&mut hasher);
        stands_for.hash(&mut hasher);
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
        // two clusters may share a gateway's address, told apart by the prefix
        let mut by_address: BTreeMap<(Address, &str), (&Workload, Alternates)> = BTreeMap::new();
        for workload in members {
            let prefix = workload.path_prefix().map_or("", |prefix| &**prefix);
            for (address, alternates) in workload.addresses(port, self.registry) {
                let entry = by_address
                    .entry((address, prefix))
                    .or_insert_with(|| (workload, alternates.clone()));
                if workload.origin < entry.0.origin {
                    *entry = (workload, alternates);
                }
            }
        }
        let mut stats = StatsOf::new();
        let mut scopes = Scopes::new(cluster);
        by_address
            .into_iter()
            .map(|((address, _), (workload, alternates))| Endpoint {
                address_text: address.to_string().into(),
                alternates,
                weight: workload.weight.max(1),
                locality: workload.locality.clone(),
                network: Arc::clone(&workload.network),
                member: workload
                    .member
                    .as_ref()
                    .map(|member| Arc::clone(&member.name)),
                labels: Labels::clone(&workload.labels),
                hop: workload.hop.clone(),
                speaks_mesh_tls: workload.speaks_mesh_tls(),
                state: self.registry.endpoint(scopes.of(workload), &address),
                stats: self.stats_of_workload(&mut stats, service, workload),
                address,
            })
            .collect()
    }

    fn stats_of_workload(
        &self,
        known: &mut StatsOf,
        service: &Service,
        workload: &Workload,
    ) -> Arc<RequestStats> {
        let member = workload.member.as_ref();
        let member = member.map_or(&self.member, |member| &member.name);
        let key = (Arc::as_ptr(&workload.labels), Arc::clone(member));
        let stats = known.entry(key).or_insert_with(|| {
            let labels = workload_labels(&workload.labels, &service.namespace, member);
            self.stats_of(service, &labels)
        });
        Arc::clone(stats)
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
