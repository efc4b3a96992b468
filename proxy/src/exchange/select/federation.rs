//! Picks for services with several Kubernetes clusters: a pool, then an endpoint in it.

use std::sync::Arc;

use super::target::{EndpointRef, PickedEndpoint, Target, endpoints_of};
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::worker::Worker;
use crate::runtime::clock;
use crate::snapshot::Snapshot;
use crate::telemetry::{ReplayCause, ShiftReason};
use traffic::cluster::Cluster;
use traffic::cluster::federation::{Choice, Federation, Pool, PoolSet};
use traffic::error::Kind;
use traffic::registry::{ClusterId, EventKind, exclusion};

impl Target {
    /// Picks a pool, and an endpoint in it.
    pub(super) fn pick_member(
        &self,
        federation: &Federation,
        worker: &Worker,
    ) -> Option<PickedEndpoint> {
        let snapshot = self.snapshot();
        let (generation, cluster) = (snapshot.generation, |id| snapshot.cluster(id));
        let choice =
            worker.random(|rng| federation.choose(generation, cluster, self.ask(), rng))?;
        Some(self.follow(federation, choice, worker))
    }

    /// Uses a choice for a first attempt; logs and counts it if it changes the tier in use.
    pub(super) fn follow(
        &self,
        federation: &Federation,
        choice: Choice,
        worker: &Worker,
    ) -> PickedEndpoint {
        if let Some(from) = choice.shifted_from {
            self.log_shift(federation, from, choice.at, worker);
        }
        self.take(federation, choice)
    }

    /// Picks an endpoint of the local cluster for a request from a remote cluster. Such requests stay here, also for
    /// retries and replays. `None` if the local cluster does not serve the service.
    pub(in crate::exchange) fn at_home(&self, worker: &Worker) -> Option<PickedEndpoint> {
        let cluster = self.cluster();
        let federation = cluster.federation.as_ref()?;
        federation.position(cluster.id())?;
        let endpoint = worker.random(|rng| cluster.pick(self.ask(), rng))?;
        Some(self.clone().local_only().at(endpoint))
    }

    /// The federation of the service, if it has one.
    pub(super) fn federation(&self) -> Option<&Arc<Federation>> {
        let federation = self.cluster().federation.as_ref();
        federation.filter(|_| !self.is_local_only())
    }

    /// The cluster of a pool, or the cluster itself if it has no pools.
    pub(super) fn pool(&self, pool: ClusterId) -> Option<&Arc<Cluster>> {
        let has_pool = match &self.cluster().federation {
            Some(federation) => federation.position(pool).is_some(),
            None => self.cluster().id() == pool,
        };
        self.snapshot().cluster(pool).filter(|_| has_pool)
    }

    /// Whether the request has no other pool; only then may the pool use panic mode.
    pub(super) fn is_last_resort(&self, pool: ClusterId) -> bool {
        self.federation().is_none_or(|federation| {
            let available = federation.available(|id| self.snapshot().cluster(id));
            federation.last_resorts(available).any(|last| last == pool)
        })
    }

    /// The tier of one of its pools.
    pub(super) fn tier_of(&self, pool: ClusterId) -> Option<u8> {
        let federation = self.cluster().federation.as_ref()?;
        let at = federation.position(pool)?;
        Some(federation.pools()[at].tier)
    }

    /// Picks for a retry in this tier: an endpoint of an untried pool, else of a pool with an untried endpoint, if
    /// there is one.
    pub(super) fn of_same_tier(
        &self,
        tier: u8,
        worker: &Worker,
        tried: &[EndpointRef],
    ) -> Option<PickedEndpoint> {
        let federation = self.cluster().federation.as_ref()?;
        let is_untried = |cluster: &Cluster| cluster.has_other(&endpoints_of(cluster, tried));
        let candidates = PoolSet::of(federation.pools(), |pool| {
            let cluster = self.snapshot().cluster(pool.cluster);
            pool.tier == tier && cluster.is_some_and(|cluster| is_untried(cluster))
        });
        // all endpoints of a failing cluster may be unusable
        let fresh = PoolSet::of(federation.pools(), |pool| {
            !tried.iter().any(|before| before.cluster == pool.cluster)
        });
        let candidates = match candidates.and(fresh) {
            none if none.is_empty() => candidates,
            fresh => fresh,
        };
        self.pick_among(federation, candidates, worker)
    }

    /// Picks an endpoint of the next tier with a usable endpoint.
    pub(super) fn of_tier_after(&self, tier: u8, worker: &Worker) -> Option<PickedEndpoint> {
        let federation = self.federation()?;
        let (cluster, ask) = (|id| self.snapshot().cluster(id), self.ask());
        let choice = worker.random(|rng| federation.choose_after(tier, cluster, ask, rng))?;
        Some(self.take(federation, choice))
    }

    /// Whether a later tier has a usable endpoint.
    pub(super) fn has_tier_after(&self, tier: u8) -> bool {
        self.federation().is_some_and(|federation| {
            let later = federation.available_after(tier, |id| self.snapshot().cluster(id));
            !later.is_empty()
        })
    }

    /// The reply to a request without an endpoint; its details give the reason.
    pub(in crate::exchange) fn no_endpoint_reply(&self) -> LocalReply {
        let cluster = self.cluster();
        let reply = LocalReply::from_kind(cluster.no_endpoint_kind());
        let details = match (cluster.absence, &cluster.federation) {
            (Some(absence), _) => absence.details().into(),
            (None, federation) => {
                let pools = federation.iter().flat_map(|one| one.pools());
                let pools = pools.filter_map(|pool| self.snapshot().cluster(pool.cluster));
                let own = federation.is_none().then_some(cluster);
                self.exclusion_reason(pools.chain(own))
                    .map_or(reply.details, Into::into)
            }
        };
        LocalReply { details, ..reply }
    }

    /// The reply for a missing cluster; its details say whether only the port is missing.
    #[cold]
    pub(in crate::exchange) fn unknown(snapshot: &Snapshot, cluster: ClusterId) -> LocalReply {
        let reply = LocalReply::from_kind(Kind::NoCluster);
        match snapshot.lacks_port(cluster) {
            true => LocalReply {
                details: "cluster_not_found{port_not_exported}".into(),
                ..reply
            },
            false => reply,
        }
    }

    /// The reason why none of these endpoints is usable, for the log. `None` if one is usable by now, or if no endpoint
    /// was to be picked.
    #[cold]
    fn exclusion_reason<'c>(
        &self,
        mut clusters: impl Iterator<Item = &'c Arc<Cluster>> + Clone,
    ) -> Option<&'static str> {
        if self.cluster().no_endpoint_kind() != Kind::NoHealthyUpstream {
            return None;
        }
        match exclusions(clusters.clone()) {
            out if out & exclusion::EJECTED != 0 => Some("no_healthy_upstream{all_ejected}"),
            out if out & exclusion::UNHEALTHY != 0 => Some("no_healthy_upstream{unhealthy}"),
            _ => clusters
                .any(|cluster| !cluster.unresolved.is_empty())
                .then_some("no_healthy_upstream{unresolved}"),
        }
    }

    /// Converts a choice to a picked endpoint.
    fn take(&self, federation: &Federation, choice: Choice) -> PickedEndpoint {
        let pool = federation.pools()[choice.at].cluster;
        self.at_pool(pool, choice.endpoint)
    }

    /// Logs a change of the tier in use with its reason.
    #[cold]
    fn log_shift(&self, federation: &Federation, from: u8, to: usize, worker: &Worker) {
        let to = federation.pools()[to].tier;
        let reason = if to < from {
            ShiftReason::Recovered
        } else {
            let pools = federation.pools().iter().filter(|pool| pool.tier == from);
            let clusters = pools.filter_map(|pool| self.snapshot().cluster(pool.cluster));
            match exclusions(clusters) {
                out if out & exclusion::EJECTED != 0 => ShiftReason::Ejected,
                out if out & exclusion::UNHEALTHY != 0 => ShiftReason::Unhealthy,
                _ => ShiftReason::NoEndpoints,
            }
        };
        federation.count_shift(worker.id, reason);
        let cluster = self.cluster().name();
        let reason = reason.as_str();
        let (journal, shifted) = (
            &self.cluster().state.journal,
            EventKind::TierShifted { from, to, reason },
        );
        journal.record(journal.at(clock::now()), cluster, None, shifted);
        tracing::info!(%cluster, from, to, reason, "another tier of clusters is in use");
    }

    /// Picks a random endpoint of these pools.
    fn pick_among(
        &self,
        federation: &Federation,
        candidates: PoolSet,
        worker: &Worker,
    ) -> Option<PickedEndpoint> {
        let cluster = |id| self.snapshot().cluster(id);
        let ask = self.ask();
        let choice = worker.random(|rng| federation.choose_among(cluster, candidates, ask, rng))?;
        Some(self.take(federation, choice))
    }
}

/// Bits of [`why`]: all reasons that exclude an endpoint of these clusters.
fn exclusions<'c>(clusters: impl Iterator<Item = &'c Arc<Cluster>>) -> u32 {
    let endpoints = clusters.flat_map(|cluster| cluster.endpoints());
    let reasons = endpoints.map(|endpoint| endpoint.state.health.reasons());
    reasons.fold(0, |all, reasons| all | reasons)
}

impl PickedEndpoint {
    /// Whether the endpoint is one of a federated service.
    pub(in crate::exchange) fn is_member(&self) -> bool {
        self.federation().is_some()
    }

    /// The federation of the service, if it has one.
    pub(in crate::exchange) fn federation(&self) -> Option<&Arc<Federation>> {
        self.target().federation()
    }

    /// Counts an attempt with this status, 0 for none, if the service is federated.
    pub(in crate::exchange) fn attempted(&self, code: u16, worker: &Worker) {
        if let Some((federation, at)) = self.place() {
            federation.count_try(worker.id, at, code);
        }
    }

    /// The pool of the endpoint, if the service is federated.
    pub fn pool(&self) -> Option<&Pool> {
        let (federation, at) = self.place()?;
        federation.pools().get(at)
    }

    fn place(&self) -> Option<(&Federation, usize)> {
        let federation = self.target().cluster().federation.as_ref()?;
        let at = federation.position(self.pool_id())?;
        Some((federation, at))
    }

    /// Tier of its pool for this target, which may be of a newer snapshot; the previous tier if that has no such pool.
    pub(super) fn tier_for(&self, target: &Target) -> u8 {
        let pool = self.pool_id();
        let tier = target.tier_of(pool);
        tier.or_else(|| self.target().tier_of(pool))
            .unwrap_or_default()
    }

    /// Picks for a failover replay: an endpoint of the next tier with a usable endpoint.
    pub(in crate::exchange) fn of_next_tier(&self, worker: &Worker) -> Option<Self> {
        let target = self.target().newest(worker)?;
        target.of_tier_after(self.tier_for(&target), worker)
    }

    /// Whether a later tier has a usable endpoint now.
    pub(in crate::exchange) fn has_next_tier(&self, worker: &Worker) -> bool {
        let target = self.target().newest(worker);
        target.is_some_and(|target| target.has_tier_after(self.tier_for(&target)))
    }

    /// Counts a failover replay from this cluster, which is of an earlier tier.
    pub(in crate::exchange) fn came_from(
        &self,
        before: ClusterId,
        cause: ReplayCause,
        worker: &Worker,
    ) {
        let Some(federation) = self.federation() else {
            return;
        };
        let at = |pool| federation.position(pool);
        if let (Some(from), Some(to)) = (at(before), at(self.pool_id())) {
            federation.count_replay(worker.id, from, to, cause);
        }
    }
}
