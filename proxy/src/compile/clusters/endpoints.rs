//! Endpoints of a cluster, each with its live state in the registry.

use std::collections::HashMap;
use std::sync::Arc;

use crate::compile::clusters::Clusters;
use crate::compile::clusters::Making;
use crate::compile::clusters::connecting::TlsOf;
use crate::compile::clusters::stats::RequestStatsByLabels;
use crate::compile::service::port::Labels;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Workload;
use crate::upstream::Alternates;
use traffic::cluster::{Cluster, Endpoint, SharedProperties};
use traffic::registry::{Address, EndpointState};

/// Returns the name under which the live state of endpoints is kept. It is the same whether or not a policy puts a
/// member's endpoints into a pool of their own, so that a policy change loses no ejection. It includes the path prefix
/// of a gateway, since one gateway represents many services.
fn scope(base: &Arc<str>, facts: &Facts) -> Arc<str> {
    match &facts.member {
        None => Arc::clone(base),
        Some(member) => {
            let prefix = facts.path_prefix().map_or("", |prefix| &**prefix);
            format!("{base}@{}{prefix}", member.key).into()
        }
    }
}

/// Workload at one of its addresses.
struct Found<'a> {
    address: Address,
    alternates: Alternates,
    workload: &'a Workload,
}

impl<'a> Found<'a> {
    /// Returns the key of an endpoint: two clusters may share a gateway's address, and a gateway may have several
    /// services behind it, distinguished by path prefix.
    fn key(&self) -> (&Address, &'a str, &'a str) {
        let facts = &self.workload.facts;
        let prefix = facts.path_prefix().map_or("", |prefix| &**prefix);
        let member = facts.member.as_ref().map_or("", |member| &*member.key);
        (&self.address, prefix, member)
    }
}

impl Clusters<'_> {
    /// Returns the endpoints in a fixed order, so that every worker and every proxy with the same endpoints numbers
    /// them alike. Live state is taken from the previous cluster where possible.
    pub(in crate::compile) fn endpoints(
        &self,
        making: &Making<'_>,
        members: &[&Workload],
        tls: &TlsOf,
        previous: Option<&Arc<Cluster>>,
    ) -> Vec<Endpoint> {
        let mut found: Vec<Found<'_>> = Vec::with_capacity(members.len());
        for &workload in members {
            workload.addresses(making.port, self.registry, |address, alternates| {
                // a request to the proxy's own HTTP proxy would loop
                let socket = address.socket();
                if socket.is_some_and(|at| self.identity.sockets.is_http_proxy(at)) {
                    return;
                }
                found.push(Found {
                    address,
                    alternates,
                    workload,
                });
            });
        }
        // of several workloads of a cluster with one address, the one with the best origin is used, else the first
        found.sort_by(|a, b| {
            let by_key = a.key().cmp(&b.key());
            by_key.then_with(|| a.workload.origin.cmp(&b.workload.origin))
        });
        found.dedup_by(|later, first| later.key() == first.key());
        let mut before = Before::of(previous);
        let mut common = CommonOf::of(tls);
        found
            .into_iter()
            .map(|found| {
                let facts = &found.workload.facts;
                let common = self.common(&mut common, making, facts);
                let state = before.state(&found.address, &common.scope);
                let state =
                    state.unwrap_or_else(|| self.registry.endpoint(&common.scope, &found.address));
                Endpoint {
                    address: found.address,
                    alternates: match found.alternates {
                        Alternates::None => None,
                        some => Some(Box::new(some)),
                    },
                    weight: found.workload.weight.max(1),
                    common,
                    state,
                }
            })
            .collect()
    }

    /// Returns the settings shared by endpoints with the same facts.
    fn common(
        &self,
        known: &mut CommonOf<'_>,
        making: &Making<'_>,
        facts: &Arc<Facts>,
    ) -> Arc<SharedProperties> {
        let key = Arc::as_ptr(facts);
        if let Some((last, common)) = &known.last
            && *last == key
        {
            return Arc::clone(common);
        }
        let entry = known.by_facts.entry(key);
        let common = Arc::clone(entry.or_insert_with(|| {
            let member = facts.member.as_ref();
            Arc::new(SharedProperties {
                locality: facts.locality.clone(),
                network: Arc::clone(&facts.network),
                member: member.map(|member| Arc::clone(&member.name)),
                labels: Labels::clone(&facts.labels),
                labels_from: facts.labels_from,
                node: facts.node.clone(),
                hostname: facts.hostname.clone(),
                tls: known.tls.get(&key).cloned().unwrap_or_default(),
                hop: facts.hop.clone(),
                scope: scope(making.base, facts),
                stats: self.stats_of_workload(
                    &mut known.stats,
                    making.direction,
                    making.service,
                    facts,
                ),
            })
        }));
        known.last = Some((key, Arc::clone(&common)));
        common
    }
}

/// Settings that were built so far for endpoints with the same facts. Workloads keep the facts alive.
struct CommonOf<'a> {
    tls: &'a TlsOf,
    last: Option<(*const Facts, Arc<SharedProperties>)>,
    by_facts: HashMap<*const Facts, Arc<SharedProperties>>,
    stats: RequestStatsByLabels,
}

impl<'a> CommonOf<'a> {
    fn of(tls: &'a TlsOf) -> Self {
        Self {
            tls,
            last: None,
            by_facts: HashMap::new(),
            stats: RequestStatsByLabels::new(),
        }
    }
}

/// Endpoints of the previous cluster, iterated in parallel with the new ones: both are in the same order.
struct Before<'a> {
    rest: std::iter::Peekable<std::slice::Iter<'a, Endpoint>>,
}

impl<'a> Before<'a> {
    fn of(previous: Option<&'a Arc<Cluster>>) -> Self {
        let endpoints = previous.map_or(&[][..], |cluster| cluster.endpoints());
        Self {
            rest: endpoints.iter().peekable(),
        }
    }

    /// Returns the state of an endpoint, if the previous cluster has it under the same name. Calls must be in address
    /// order.
    fn state(&mut self, address: &Address, scope: &Arc<str>) -> Option<Arc<EndpointState>> {
        while self
            .rest
            .next_if(|known| known.address < *address)
            .is_some()
        {}
        let same = self
            .rest
            .clone()
            .take_while(|known| known.address == *address);
        let mut same = same.filter(|known| known.common.scope == *scope);
        same.next().map(|known| Arc::clone(&known.state))
    }
}
