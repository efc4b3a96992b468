//! Endpoints of a cluster, each with the live state that the registry has of it.

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

/// Under which names the live state of endpoints is kept: the same whether a policy puts a member's endpoints into a
/// pool of their own or not, so that no ejection is lost when it comes or goes. The prefix of a gateway is part of it,
/// since one gateway represents many services.
fn scope(base: &Arc<str>, facts: &Facts) -> Arc<str> {
    match &facts.member {
        None => Arc::clone(base),
        Some(member) => {
            let prefix = facts.path_prefix().map_or("", |prefix| &**prefix);
            format!("{base}@{}{prefix}", member.key).into()
        }
    }
}

/// A workload at one of its addresses.
struct Found<'a> {
    address: Address,
    alternates: Alternates,
    workload: &'a Workload,
}

impl<'a> Found<'a> {
    /// What tells endpoints apart: two clusters may share a gateway's address, and one may have several services behind
    /// it, told apart by the prefix.
    fn key(&self) -> (&Address, &'a str, &'a str) {
        let facts = &self.workload.facts;
        let prefix = facts.path_prefix().map_or("", |prefix| &**prefix);
        let member = facts.member.as_ref().map_or("", |member| &*member.key);
        (&self.address, prefix, member)
    }
}

impl Clusters<'_> {
    /// Endpoints in a fixed order, so that every worker and every proxy with the same ones numbers them alike. State
    /// that the cluster before has at hand is taken from there.
    pub(in crate::compile) fn endpoints(
        &self,
        making: &Making<'_>,
        (members, tls): (&[&Workload], &TlsOf),
        previous: Option<&Arc<Cluster>>,
    ) -> Vec<Endpoint> {
        let mut found: Vec<Found<'_>> = Vec::with_capacity(members.len());
        for &workload in members {
            workload.addresses(making.port, self.registry, |address, alternates| {
                // a request would come back to this proxy, and go there again
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
        // of several of a cluster with one address the one counts that is known best, else the first
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

    /// What endpoints have in common of which this is known.
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
                    (making.direction, making.service),
                    facts,
                ),
            })
        }));
        known.last = Some((key, Arc::clone(&common)));
        common
    }
}

/// What was made so far for endpoints of which the same is known. The facts are held by workloads meanwhile.
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

/// The endpoints of the cluster before, which are walked beside the new ones: both are in the same order.
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

    /// The state of an endpoint, if the cluster before has it under the same name. Addresses are asked for in order.
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
