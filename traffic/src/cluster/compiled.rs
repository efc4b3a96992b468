//! A compiled service: its endpoints and picks.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rand::Rng;
use smallvec::SmallVec;

use super::affinity::AffinitySettings;
use super::endpoint::{Endpoint, EndpointTls};
use super::live::{Avoid, Method, PickInput, PickTables};
use super::locality::{Group, Plan};
use super::parts::Parts;
use super::priorities;
use super::warmup::WarmupState;
use crate::balance::{EndpointIdx, HashKey, Policy};
use crate::connection::UpstreamTls;
use crate::error::Kind;
use crate::registry::{ClusterId, EndpointState, Moment, Recent};

/// The endpoints of a service port (and subset) with their load balancing policy.
#[derive(Debug)]
pub struct Cluster {
    pub(super) parts: Parts,
    /// Attempts that began recently; `None` unless the retry limit is a share of them.
    pub(super) recent: Option<Arc<Recent>>,
    /// Session affinity, if the policy has it.
    pub(super) memory: Option<Box<AffinitySettings>>,
    /// Priority of each endpoint; empty when all have the same.
    pub(super) priorities: Box<[u8]>,
    /// Picks an endpoint within a priority.
    pub(super) method: Method,
    pub(super) live: ArcSwap<PickTables>,
    /// Whether an endpoint is usable without panic mode, according to `live`.
    pub(super) available: AtomicBool,
}

impl Deref for Cluster {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Cluster {
    /// Builds the cluster, with the balancer's tables for the current health of its endpoints.
    pub fn build(mut parts: Parts, now: Moment) -> Self {
        let priorities = by_endpoint(&parts.plan, parts.endpoints.len());
        let method = Method::of(&parts);
        let stands_for_all = parts.federation.is_some() || !parts.is_pool;
        let memory = parts.balance.remember.map(|lifetime| {
            let affinity_table = stands_for_all.then(|| parts.state.affinity_table());
            AffinitySettings::build(lifetime, affinity_table, &parts.plan, &parts.endpoints)
        });
        if parts.balance.policy == Policy::Passthrough {
            // the client's address is dialed, none of these endpoints
            parts.plan = Plan::new();
        }
        let live = PickTables::build(&parts, &method, now);
        let interval = parts.retry_limit.interval();
        Self {
            memory,
            recent: interval.map(|interval| parts.state.recent(interval)),
            priorities,
            method,
            available: AtomicBool::new(live.is_available()),
            live: ArcSwap::from_pointee(live),
            parts,
        }
    }

    /// Number by which snapshots find this cluster.
    pub fn id(&self) -> ClusterId {
        self.state.id
    }

    /// Name of the cluster: `outbound|PORT|SUBSET|HOST`.
    pub fn name(&self) -> &Arc<str> {
        &self.state.name
    }

    /// All endpoints.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The endpoint with this number.
    pub fn endpoint(&self, index: EndpointIdx) -> &Endpoint {
        &self.endpoints[index.0 as usize]
    }

    /// Number in this cluster of an endpoint that had the number `before` in another snapshot; `None` if it is gone.
    pub fn number_of(
        &self,
        before: EndpointIdx,
        state: &Arc<EndpointState>,
    ) -> Option<EndpointIdx> {
        let is_same = |endpoint: &Endpoint| Arc::ptr_eq(&endpoint.state, state);
        if self.endpoints.get(before.0 as usize).is_some_and(is_same) {
            return Some(before);
        }
        let position = self.endpoints.iter().position(is_same)?;
        Some(EndpointIdx(position as u32))
    }

    /// The TLS settings of an endpoint; `None` for plain text.
    pub fn tls<'a>(&'a self, endpoint: &'a Endpoint) -> Option<&'a Arc<dyn UpstreamTls>> {
        match &endpoint.tls {
            EndpointTls::OfCluster => self.pool.tls.as_ref(),
            EndpointTls::Own(tls) => Some(tls),
            EndpointTls::Plain => None,
        }
    }

    /// The current tables.
    pub fn live(&self) -> Arc<PickTables> {
        self.live.load_full()
    }

    /// The priority of an endpoint, 0 first.
    pub fn priority(&self, endpoint: EndpointIdx) -> u32 {
        let priority = self.priorities.get(endpoint.0 as usize);
        u32::from(priority.copied().unwrap_or_default())
    }

    /// The error for a pick without an endpoint.
    pub fn no_endpoint_kind(&self) -> Kind {
        match self.balance.policy {
            Policy::Passthrough => Kind::NoOriginalDestination,
            Policy::Hash(_) | Policy::Simple(_) => Kind::NoHealthyUpstream,
        }
    }

    /// Localities of a priority with their weights; empty unless traffic is distributed by locality.
    pub fn localities(&self, priority: usize) -> Vec<(String, u32)> {
        let groups = match self.plan.get(priority).map(Vec::as_slice) {
            None | Some([_]) => &[],
            Some(groups) => groups,
        };
        // all endpoints of a group have the same locality
        let locality = |group: &Group| {
            let endpoint = self.endpoint(EndpointIdx(*group.indexes.first()?));
            Some((endpoint.locality.to_string(), group.weight))
        };
        groups.iter().filter_map(locality).collect()
    }

    /// Number of priorities, at least 1.
    pub fn priorities(&self) -> usize {
        self.plan.len().max(1)
    }

    /// Whether the cluster can never have an endpoint: no endpoint, no DNS name to resolve, and no other Kubernetes
    /// cluster.
    pub fn is_deserted(&self) -> bool {
        let members = self.federation.as_ref();
        self.endpoints.is_empty()
            && self.unresolved.is_empty()
            && members.is_none_or(|federation| federation.pools().is_empty())
    }

    /// Whether an endpoint is usable without panic mode.
    #[inline]
    pub fn is_available(&self) -> bool {
        self.available.load(Ordering::Relaxed)
    }

    /// The part of a request that is hashed; `None` for policies without a hash.
    pub fn hash_key(&self) -> Option<&HashKey> {
        self.balance.hash_key()
    }

    /// Picks an endpoint for one attempt; `None` when no endpoint is usable.
    #[inline]
    pub fn pick(&self, ask: PickInput, rng: &mut impl Rng) -> Option<EndpointIdx> {
        self.live.load().pick(&self.parts, ask, rng)
    }

    /// Picks an endpoint for a retry, and keeps clear of `avoid` if possible; `None` when no endpoint is usable.
    pub fn pick_other(
        &self,
        ask: PickInput,
        avoid: &Avoid<'_>,
        rng: &mut impl Rng,
    ) -> Option<EndpointIdx> {
        let live = self.live.load();
        live.pick_other(&self.parts, ask, avoid, rng)
    }

    /// Whether an endpoint outside of `than` is usable without panic mode.
    pub fn has_other(&self, than: &[EndpointIdx]) -> bool {
        self.live.load().has_other(&self.parts, than)
    }

    /// Priorities that the next retry leaves out (`retryRemoteLocalities`), given the endpoints `tried` so far.
    pub fn left_out(&self, tried: &[EndpointIdx]) -> SmallVec<[u32; 4]> {
        let priorities = tried.iter().map(|endpoint| self.priority(*endpoint));
        let priorities: SmallVec<[u32; 4]> = priorities.collect();
        priorities::left_out(&priorities, &self.live.load().health)
    }

    /// Probability of each endpoint to be picked next, in endpoint order, while all are equally busy.
    pub fn shares(&self) -> Vec<f64> {
        self.live.load().probabilities(&self.parts)
    }

    /// Warm-up state of an endpoint; `None` if it has its whole weight or is not usable. The tables follow in steps.
    pub fn warming(&self, endpoint: EndpointIdx, now: Moment) -> Option<WarmupState> {
        let simple = match &self.method {
            Method::Simple(simple) => *simple,
            Method::Hash(_) => return None,
        };
        let warmup = self.balance.warmup.filter(|_| simple.warms_up())?;
        let health = &self.endpoint(endpoint).state.health;
        let since = health.is_usable().then(|| health.fresh_since(now))?;
        warmup.warming(now.since(since))
    }
}

fn by_endpoint(plan: &Plan, endpoints: usize) -> Box<[u8]> {
    if plan.len() < 2 {
        return Box::default();
    }
    let mut priorities = vec![0; endpoints];
    for (priority, groups) in plan.iter().enumerate() {
        for index in groups.iter().flat_map(|group| &group.indexes) {
            priorities[*index as usize] = priority as u8;
        }
    }
    priorities.into()
}
