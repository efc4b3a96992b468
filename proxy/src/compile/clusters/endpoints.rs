//! Endpoints of a cluster, each with the live state that the registry has of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Clusters;
use super::stats::StatsOf;
use crate::cluster::Endpoint;
use crate::compile::service::{Labels, Port, Service, Workload};
use crate::registry::Address;
use crate::upstream::Alternates;

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

impl Clusters<'_> {
    /// Endpoints in a fixed order, so that every worker and every proxy with the same ones numbers them alike.
    pub(super) fn endpoints(
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
}
