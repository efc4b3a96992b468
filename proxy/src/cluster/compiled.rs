//! A compiled service: its endpoints and picks.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rand::Rng;
use smallvec::SmallVec;

use super::affinity::AffinitySettings;
use super::endpoint::{Endpoint, EndpointTls};
use super::live::{Ask, Avoid, Live, Method};
use super::locality::{Group, Plan};
use super::parts::Parts;
use super::priorities;
use super::warmup::Warming;
use crate::balance::{EndpointIdx, HashKey, Policy};
use crate::error::Kind;
use crate::registry::{ClusterId, EndpointState, Moment, Recent};
use crate::tls::ClientTls;

/// A service port (and subset) with its endpoints and the policy that balances them.
#[derive(Debug)]
pub struct Cluster {
    pub(super) parts: Parts,
    /// Attempts that began recently, if the retry limit is a share of them.
    pub(super) recent: Option<Arc<Recent>>,
    /// Clients that stay with an endpoint, if they do.
    pub(super) memory: Option<Box<AffinitySettings>>,
    /// Priority of each endpoint; empty when all have the same.
    pub(super) priorities: Box<[u8]>,
    /// How endpoints of a priority are picked.
    pub(super) method: Method,
    pub(super) live: ArcSwap<Live>,
    /// Whether an endpoint may be used, as of the tables.
    pub(super) available: AtomicBool,
}

impl Deref for Cluster {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Cluster {
    /// Builds the balancer's tables for these parts, as things are now.
    pub fn build(mut parts: Parts, now: Moment) -> Self {
        let priorities = by_endpoint(&parts.plan, parts.endpoints.len());
        let method = Method::of(&parts);
        let stands_for_all = parts.federation.is_some() || !parts.is_pool;
        let memory = parts.balance.remember.map(|lifetime| {
            let affinity_table = stands_for_all.then(|| parts.state.affinity_table());
            AffinitySettings::build(lifetime, affinity_table, &parts.plan, &parts.endpoints)
        });
        if parts.balance.policy == Policy::Passthrough {
            // not one of them is dialled
            parts.plan = Plan::new();
        }
        let live = Live::build(&parts, &method, now);
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

    /// The number under which snapshots hold this cluster.
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

    /// The number of an endpoint that had this number in another snapshot; `None` if it is not one of this cluster.
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
    pub fn tls<'a>(&'a self, endpoint: &'a Endpoint) -> Option<&'a Arc<ClientTls>> {
        match &endpoint.tls {
            EndpointTls::OfCluster => self.pool.tls.as_ref(),
            EndpointTls::Own(tls) => Some(tls),
            EndpointTls::Plain => None,
        }
    }

    /// The tables as they are now.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// The priority of an endpoint, 0 first.
    pub fn priority(&self, endpoint: EndpointIdx) -> u32 {
        let priority = self.priorities.get(endpoint.0 as usize);
        u32::from(priority.copied().unwrap_or_default())
    }

    /// Why a pick comes to nothing.
    pub fn why_none(&self) -> Kind {
        match self.balance.policy {
            Policy::Passthrough => Kind::NoOriginalDestination,
            Policy::Hash(_) | Policy::Simple(_) => Kind::NoHealthyUpstream,
        }
    }

    /// The localities of a priority with their weights, where traffic is distributed by locality; none otherwise.
    pub fn localities(&self, priority: usize) -> Vec<(String, u32)> {
        let groups = match self.plan.get(priority).map(Vec::as_slice) {
            None | Some([_]) => &[],
            Some(groups) => groups,
        };
        // it is the same for all endpoints of a group
        let locality = |group: &Group| {
            let endpoint = self.endpoint(EndpointIdx(*group.members.first()?));
            Some((endpoint.locality.to_string(), group.weight))
        };
        groups.iter().filter_map(locality).collect()
    }

    /// How many priorities there are.
    pub fn priorities(&self) -> usize {
        self.plan.len().max(1)
    }

    /// Whether no endpoint can ever serve it: no endpoint, no DNS name to resolve, and no other Kubernetes cluster.
    pub fn is_deserted(&self) -> bool {
        let members = self.federation.as_ref();
        self.endpoints.is_empty()
            && self.unresolved.is_empty()
            && members.is_none_or(|federation| federation.pools().is_empty())
    }

    /// Whether an endpoint may be used without panic.
    #[inline]
    pub fn is_available(&self) -> bool {
        self.available.load(Ordering::Relaxed)
    }

    /// What is hashed of requests for this cluster, if anything is.
    pub fn hash_key(&self) -> Option<&HashKey> {
        self.balance.hash_key()
    }

    /// Picks an endpoint for one attempt; `None` when there is none that may be used.
    #[inline]
    pub fn pick(&self, ask: Ask, rng: &mut impl Rng) -> Option<EndpointIdx> {
        self.live.load().pick(&self.parts, ask, rng)
    }

    /// Picks an endpoint for another attempt, which avoids what it may; `None` when there is none that may be used.
    pub fn pick_other(
        &self,
        ask: Ask,
        avoid: &Avoid<'_>,
        rng: &mut impl Rng,
    ) -> Option<EndpointIdx> {
        let live = self.live.load();
        live.pick_other(&self.parts, ask, avoid, rng)
    }

    /// Whether an endpoint other than these may be picked, without panic.
    pub fn has_other(&self, than: &[EndpointIdx]) -> bool {
        self.live.load().has_other(&self.parts, than)
    }

    /// The priorities that another attempt leaves out if it is to widen, after those on these endpoints.
    pub fn left_out(&self, tried: &[EndpointIdx]) -> SmallVec<[u32; 4]> {
        let priorities = tried.iter().map(|endpoint| self.priority(*endpoint));
        let priorities: SmallVec<[u32; 4]> = priorities.collect();
        priorities::left_out(&priorities, &self.live.load().health)
    }

    /// Probability that each endpoint is picked next while all are equally busy, in endpoint order.
    pub fn shares(&self) -> Vec<f64> {
        self.live.load().probabilities(&self.parts)
    }

    /// How warm an endpoint is; `None` when it is warm, or may not be used at all. The tables follow in steps.
    pub fn warming(&self, endpoint: EndpointIdx, now: Moment) -> Option<Warming> {
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
        for member in groups.iter().flat_map(|group| &group.members) {
            priorities[*member as usize] = priority as u8;
        }
    }
    priorities.into()
}
