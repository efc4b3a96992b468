//! Cluster of given workloads: that of the previous snapshot if its inputs have not changed, else rebuilt.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use config_loader::resource::{HealthChecked, Probe as AskedProbe};

use crate::compile::clusters::Clusters;
use crate::compile::clusters::Making;
use crate::compile::clusters::StandsFor;
use crate::compile::clusters::connecting::Connecting;
use crate::compile::policies::ClusterPolicy;
use crate::compile::service::Service;
use crate::compile::service::Written;
use crate::compile::service::port::Port;
use crate::compile::service::workload::Origin;
use crate::compile::service::workload::Workload;
use crate::compile::services::reads::{ADDRESSES, CERTIFICATES};
use crate::identity::Mode;
use crate::snapshot::{Direction, Renewal};
use crate::telemetry::Workload as WorkloadLabels;
use traffic::cluster::federation::{Pool, RotationCursors};
use traffic::cluster::locality::{self, TopologyLabels};
use traffic::cluster::{
    Balance, Cluster, Dialed, Endpoint, EndpointTls, Federation, HealthCheck, LabelSource,
    Locality, Parts, Plan, Pods, Probe, SharedProperties,
};
use traffic::provenance::Sources;
use traffic::registry::{ClusterState, Thresholds};

impl Clusters<'_> {
    /// Returns a cluster of these workloads: the previous one if its inputs have not changed.
    pub(in crate::compile) fn make(
        &mut self,
        making: &Making<'_>,
        state: Arc<ClusterState>,
        members: &[&Workload],
        stands_for: StandsFor,
    ) -> Arc<Cluster> {
        let Making {
            service,
            port,
            policy,
            ..
        } = *making;
        self.note_names(members);
        // the serial of the TLS settings stands in for the certificates
        self.view.read(CERTIFICATES, || 0);
        let Connecting { pool, tls, serial } = self.connecting(making, members);
        let fingerprint = self.fingerprint(making, members, &stands_for, serial);
        let previous = self.previous.cluster(state.id);
        if let Some(before) = previous
            && before.fingerprint == fingerprint
        {
            return Arc::clone(before);
        }
        let StandsFor {
            is_pool,
            pools,
            absence,
        } = stands_for;
        let before = previous.and_then(|before| before.federation.as_deref());
        let federation = pools.map(|pools| self.federation(pools, before, &state, &service.host));
        let endpoints = self.endpoints(making, members, &tls, previous);
        let plan = self.plan(&policy.balance, &endpoints, is_pool);
        let has_pods = service.is_headless
            && making.direction == Direction::Outbound
            && self.identity.mode == Mode::Sidecar;
        let parts = Parts {
            pods: has_pods.then(|| Pods::of(&endpoints)),
            host: Arc::clone(&service.host),
            protocol: port.protocol,
            balance: policy.balance.clone(),
            endpoints: endpoints.into(),
            dialed: self.dialed(making),
            plan,
            unresolved: self.unresolved(port, members).into(),
            stats: self.stats_of(making.direction, service, &WorkloadLabels::default()),
            pool,
            retry_limit: policy.retry_limit,
            check: health_check(&policy.health_check, &service.health_check),
            federation,
            absence,
            is_pool,
            sources: sources(service, policy),
            cause: self.cause.clone(),
            fingerprint,
            state,
        };
        Arc::new(Cluster::build(parts, self.now))
    }

    /// Returns the federation of these pools, which continues the state of the previous one.
    fn federation(
        &self,
        pools: Vec<Pool>,
        before: Option<&Federation>,
        state: &ClusterState,
        host: &Arc<str>,
    ) -> Arc<Federation> {
        let begin = || {
            Arc::new(RotationCursors::starting_at(
                self.registry.first_turn(&state.name),
            ))
        };
        let turns = before.map_or_else(begin, |before| Arc::clone(before.turns()));
        let replay = self.identity.mesh.failover_replay;
        let federation = Federation::build(pools, replay, turns)
            .following(&state.flips)
            .counting(host, &self.member, self.stats);
        Arc::new(match before {
            Some(before) => federation.after_change(before),
            None => federation,
        })
    }

    /// Returns the endpoint at the address that the client dialed.
    fn dialed(&self, making: &Making<'_>) -> Option<Dialed> {
        let dials = making.dials?;
        let common = SharedProperties {
            locality: Locality::default(),
            network: Arc::default(),
            member: None,
            labels: Arc::default(),
            labels_from: LabelSource::default(),
            node: None,
            hostname: None,
            tls: EndpointTls::OfCluster,
            hop: None,
            scope: Arc::clone(making.base),
            stats: self.stats_of(making.direction, making.service, &WorkloadLabels::default()),
        };
        Some(Dialed {
            common: Arc::new(common),
            port: dials.port,
        })
    }

    /// Records the DNS names among workloads, each with the most urgent renewal that it needs.
    fn note_names(&mut self, members: &[&Workload]) {
        for workload in members {
            let Some(name) = workload.host.name() else {
                continue;
            };
            let renewal = match workload.origin {
                Origin::Import => Renewal::Unhurried,
                _ => Renewal::AtOnce,
            };
            let known = self.dns_names.entry(Arc::clone(name)).or_insert(renewal);
            *known = renewal.min(*known);
        }
    }

    /// Returns the order in which this proxy prefers the endpoints.
    fn plan(&self, balance: &Balance, endpoints: &[Endpoint], is_pool: bool) -> Plan {
        let here = TopologyLabels {
            locality: &self.locality,
            labels: &self.identity.labels,
            network: &self.identity.network,
            member: &self.member,
            node: "",
        };
        let places: Vec<(TopologyLabels<'_>, u32)> = endpoints
            .iter()
            .map(|endpoint| {
                let place = TopologyLabels {
                    locality: &endpoint.locality,
                    labels: &endpoint.labels,
                    network: self.network_of(endpoint),
                    member: endpoint.member.as_ref().unwrap_or(&self.member),
                    node: endpoint.node.as_deref().unwrap_or_default(),
                };
                (place, endpoint.weight)
            })
            .collect();
        match is_pool {
            true => locality::plan_within_member(&balance.spread, &here, &places),
            false => locality::plan(&balance.spread, &here, &places),
        }
    }

    /// Returns the network of an endpoint: its own, else that of its address in the mesh configuration.
    fn network_of<'e>(&'e self, endpoint: &'e Endpoint) -> &'e str {
        let address = endpoint.address.socket();
        match address.filter(|_| endpoint.network.is_empty()) {
            Some(address) => (self.identity.mesh_config).network_of(address.ip().to_canonical()),
            None => &endpoint.network,
        }
    }

    fn fingerprint(
        &self,
        making: &Making<'_>,
        members: &[&Workload],
        stands_for: &StandsFor,
        tls: u64,
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        (
            making.service.fingerprint,
            making.port.number,
            self.tape.answers(),
            self.identity_hash,
            tls,
            making.dials,
        )
            .hash(&mut hasher);
        (&stands_for.pools, stands_for.absence).hash(&mut hasher);
        for workload in members {
            if let Some(name) = workload.host.name() {
                self.view.read(ADDRESSES, || 0);
                self.registry
                    .resolution(name)
                    .map(|resolution| resolution.addresses.clone())
                    .hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Returns the DNS names among workloads that have no address yet.
    fn unresolved(&self, port: &Port, members: &[&Workload]) -> Vec<Box<str>> {
        let names = members.iter().filter_map(|workload| {
            let name = workload.host.name()?;
            let number = workload.port(port)?;
            let unresolved = self.registry.resolution(name).is_none();
            unresolved.then(|| format!("{name}:{number}").into())
        });
        names.collect()
    }
}

/// Returns the resources that contributed to the cluster: the service first, then its policy.
fn sources(service: &Service, policy: &ClusterPolicy) -> Sources {
    let of_service = Arc::clone(&service.provenance);
    let of_policy = policy.provenance.clone();
    Sources::new(move || {
        let mut noted = HashSet::new();
        let mut all: Vec<_> = of_service.iter().flat_map(Written::provenances).collect();
        // several selectors may match one workload
        all.retain(|one| noted.insert(one.clone()));
        all.extend(of_policy.iter().cloned());
        all
    })
}

/// Returns the active health check of endpoints: that of their policy, else that of their service.
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
