//! Clusters by their names: each that of a service's port and subset, with those of its members.

use std::sync::Arc;

use config_loader::Name;
use config_loader::resource::gateway_api::BackendTLSPolicy;

use crate::compile::clusters::{Clusters, Dials, EXPORTED, Making, PASSED_ON, SECURED, StandsFor};
use crate::compile::policies::ClusterPolicy;
use crate::compile::policies::client_tls::backend_policy;
use crate::compile::provenance::provenance_of;
use crate::compile::service::Service;
use crate::compile::service::federation::{
    self, Candidates, POOLS_MAX, Placed, Resolved, Viewer, Wanted,
};
use crate::compile::service::workload::{Origin, Workload};
use crate::snapshot::{Direction, Missing};
use crate::tls::IdentitySource;
use traffic::cluster::Cluster;
use traffic::cluster::federation::Pool;
use traffic::registry::ClusterId;

impl Clusters<'_> {
    /// Returns the missing part of an unknown cluster: the cluster, its port or its subset.
    pub(super) fn missing(&self, name: &str) -> Missing {
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

    pub(super) fn make_named(&mut self, name: &str) -> Option<Arc<Cluster>> {
        let mut parts = name.splitn(4, '|');
        let kind = parts.next()?;
        let is_passed_on = kind == PASSED_ON;
        let port: u16 = parts.next()?.parse().ok()?;
        let (subset, host) = (parts.next()?, parts.next()?);
        let service = Arc::clone(self.services.find(self.view, host)?);
        let mut policy = self.policies.find(host, &service, port, subset)?;
        if let Some(names) = kind.strip_prefix(SECURED) {
            self.secure(names, &mut policy)?;
        }
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

    /// Replaces TLS settings by those of a BackendTLSPolicy, `NAMESPACE/NAME[:NAMESPACE/NAME]` with the Secret of the Gateway.
    fn secure(&self, names: &str, policy: &mut ClusterPolicy) -> Option<()> {
        let (own, secret) = names.split_once(':').unzip();
        let parsed = |text: &str| {
            let (namespace, name) = text.split_once('/')?;
            Some(Name::new(namespace, name))
        };
        let own = self
            .view
            .get::<BackendTLSPolicy>(&parsed(own.unwrap_or(names))?)?;
        let secret = secret.and_then(parsed);
        let identity =
            secret.map(|Name { namespace, name }| IdentitySource::Referred { namespace, name });
        policy.tls = Some(backend_policy::settings(self.view, own, identity)?.into());
        policy.provenance.push(provenance_of(own.as_ref(), 0));
        Some(())
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
