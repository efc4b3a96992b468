//! Whose endpoints a request goes to where several members serve it.

use std::sync::Arc;

use super::reply::LocalReply;
use super::request::{Destined, Picked, Spot, Worker};
use crate::cluster::federation::{Chosen, Federation, PoolSet};
use crate::cluster::{Ask, Cluster};

impl Destined {
    /// Picks a member, and an endpoint of it. A pool whose last endpoint has just gone is passed over.
    pub(super) fn pick_member(&self, federation: &Federation, worker: &Worker) -> Option<Picked> {
        let mut available = self.available(federation);
        while let Some(chosen) = federation.pick(available, self.ask().hash) {
            if let Some(picked) = self.pick_of(federation, chosen, worker) {
                return Some(picked);
            }
            available = available.without(PoolSet::default().with(chosen.at));
        }
        self.pick_in_panic(federation, worker)
    }

    /// The reply where there is no endpoint for a request; its details say why.
    pub(super) fn nobody(&self) -> LocalReply {
        let cluster = self.cluster();
        let reply = LocalReply::from_kind(cluster.why_none());
        let details = match (cluster.absence, &cluster.federation) {
            (Some(absence), _) => absence.details(),
            (None, Some(_)) => "no_healthy_upstream{all_ejected}",
            (None, None) => reply.details,
        };
        LocalReply { details, ..reply }
    }

    /// The pools that have an endpoint that may be used.
    pub(super) fn available(&self, federation: &Federation) -> PoolSet {
        PoolSet::of(federation.pools(), |pool| {
            let cluster = self.snapshot().cluster(pool.cluster);
            cluster.is_some_and(|cluster| cluster.is_available())
        })
    }

    /// An endpoint of a pool.
    fn pick_of(&self, federation: &Federation, chosen: Chosen, worker: &Worker) -> Option<Picked> {
        let pool = federation.pools().get(chosen.at)?;
        let cluster = self.snapshot().cluster(pool.cluster)?;
        let ask = Ask {
            calm: !chosen.is_last,
            ..self.ask()
        };
        let endpoint = worker.random(|rng| cluster.pick(ask, rng))?;
        Some(self.at_pool(pool.cluster, endpoint))
    }

    /// Where no pool has an endpoint that may be used: those of the first tier, if they panic.
    #[cold]
    fn pick_in_panic(&self, federation: &Federation, worker: &Worker) -> Option<Picked> {
        let first = federation.pools().iter().map(|pool| pool.tier).min()?;
        let mut left = PoolSet::of(federation.pools(), |pool| pool.tier == first);
        while !left.is_empty() {
            let none = PoolSet::default();
            let chosen = worker.random(|rng| federation.another(none, left, rng))?;
            if let Some(picked) = self.pick_of(federation, chosen, worker) {
                return Some(picked);
            }
            left = left.without(none.with(chosen.at));
        }
        None
    }

    /// Another endpoint of those pools that may be asked, by chance; none that was tried, if that can be.
    fn pick_among(
        &self,
        federation: &Federation,
        candidates: PoolSet,
        worker: &Worker,
    ) -> Option<Picked> {
        let available = self.available(federation);
        let chosen = worker.random(|rng| federation.another(available, candidates, rng))?;
        self.pick_of(federation, chosen, worker)
    }
}

impl Picked {
    /// Whether several members serve what the request is for.
    pub(super) fn is_member(&self) -> bool {
        self.federation().is_some()
    }

    /// The members that serve what the request is for, where there are several.
    pub(super) fn federation(&self) -> Option<&Arc<Federation>> {
        self.destined().cluster().federation.as_ref()
    }

    /// The tier of its pool.
    fn tier(&self, federation: &Federation) -> u8 {
        let at = federation.position(self.spot().cluster);
        at.map_or(0, |at| federation.pools()[at].tier)
    }

    /// For a retry: an endpoint of the same tier, of a pool that has one that was not tried, if there is such a pool.
    pub(super) fn of_same_tier(&self, worker: &Worker, tried: &[Spot]) -> Option<Self> {
        let destined = self.destined();
        let Some(federation) = &destined.cluster().federation else {
            return self.again(worker, 0);
        };
        let tier = self.tier(federation);
        let is_untried = |cluster: &Cluster| {
            let mut endpoints = (0..).zip(cluster.endpoints());
            endpoints.any(|(number, endpoint)| {
                let was_tried =
                    |spot: &Spot| spot.cluster == cluster.id() && spot.endpoint.0 == number;
                endpoint.state.health.is_usable() && !tried.iter().any(was_tried)
            })
        };
        let candidates = PoolSet::of(federation.pools(), |pool| {
            let cluster = destined.snapshot().cluster(pool.cluster);
            pool.tier == tier && cluster.is_some_and(|cluster| is_untried(cluster))
        });
        destined
            .pick_among(federation, candidates, worker)
            .or_else(|| self.again(worker, 0))
    }

    /// For a request that its tier has failed: an endpoint of the next tier that has one that may be used.
    pub(super) fn of_next_tier(&self, worker: &Worker) -> Option<Self> {
        let federation = self.federation()?;
        let destined = self.destined();
        let chosen = federation.pick_later(self.later(federation), destined.ask().hash)?;
        destined.pick_of(federation, chosen, worker)
    }

    /// Whether a later tier has an endpoint that may be used.
    pub(super) fn has_next_tier(&self) -> bool {
        let federation = self.federation();
        federation.is_some_and(|federation| !self.later(federation).is_empty())
    }

    /// The pools of later tiers that have an endpoint that may be used.
    fn later(&self, federation: &Federation) -> PoolSet {
        let after = federation.after(self.tier(federation));
        match after.is_empty() {
            true => after,
            false => after.and(self.destined().available(federation)),
        }
    }
}
