//! Picks the endpoint of an attempt: the first one, that of a retry, and the next one of a raw TCP connection.

use std::net::IpAddr;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::time::Instant;

use super::target::{EndpointRef, PickedEndpoint, Target, Tried, endpoints_of};
use crate::exchange::worker::Worker;
use crate::identity::Replay;
use crate::telemetry::ReplayCause;
use traffic::balance::client_hash;
use traffic::cluster::federation::Federation;
use traffic::cluster::{AffinityLookup, Avoid, Cluster, PickInput, PoolClusters};
use traffic::registry::Visit;

/// Maximum number of endpoints that are tried for one TCP connection. With several Kubernetes clusters, this many in
/// the first tier and in the last, and one in each tier between them. Envoy's default is 1.
pub const CONNECT_ATTEMPTS_MAX: usize = 3;

/// Endpoints that a retry avoids if possible.
#[derive(Clone, Copy, Debug)]
pub struct RetryChoice {
    /// Endpoints of earlier attempts.
    pub avoid_tried: bool,
    /// Priorities of earlier attempts.
    pub avoid_priorities: bool,
}

impl Target {
    /// Picks an endpoint; `None` if no endpoint is usable.
    pub fn pick(&self, worker: &Worker) -> Option<PickedEndpoint> {
        let cluster = self.cluster();
        if cluster.dialed.is_some() {
            return self.at_dialed();
        }
        if let Some(chosen) = self.chosen() {
            return chosen;
        }
        if let Some(federation) = &cluster.federation {
            return self.pick_member(federation, worker);
        }
        let endpoint = worker.random(|rng| cluster.pick(self.ask(), rng))?;
        Some(self.at(endpoint))
    }

    /// The visit of a client at this time, if the cluster has session affinity.
    pub(in crate::exchange) fn visit(&self, client: IpAddr, came: Instant) -> Option<Visit> {
        let cluster = self.cluster();
        cluster.affinity_lifetime()?;
        Some(Visit {
            client: client_hash(client),
            at: cluster.state.journal.at(came),
        })
    }

    /// Picks the endpoint of the client's session affinity entry, if there is one; else like [`Target::pick`].
    pub fn pick_for(&self, visit: Option<Visit>, worker: &Worker) -> Option<PickedEndpoint> {
        let visit = visit.filter(|_| self.chosen().is_none());
        match visit.and_then(|visit| self.cluster().stay(visit)) {
            None => self.pick(worker),
            Some(stay) => self.pick_staying(&stay, worker),
        }
    }

    fn pick_staying(&self, stay: &AffinityLookup<'_>, worker: &Worker) -> Option<PickedEndpoint> {
        let (cluster, ask) = (self.cluster(), self.ask());
        let Some(federation) = &cluster.federation else {
            let endpoint = worker.random(|rng| cluster.pick_for(stay, ask, rng))?;
            return Some(self.at(endpoint));
        };
        let snapshot = self.snapshot();
        let pools = PoolClusters {
            generation: snapshot.generation,
            cluster: |id| snapshot.cluster(id),
        };
        let choice = worker.random(|rng| federation.choose_for(stay, pools, ask, rng))?;
        Some(self.follow(federation, choice, worker))
    }

    /// Picks the next endpoint for a TCP connection, and adds it to `tried`; `None` after all endpoints, or
    /// [`CONNECT_ATTEMPTS_MAX`] of them. The first pick follows session affinity.
    pub fn pick_for_connection(
        &self,
        worker: &Worker,
        visit: Option<Visit>,
        tried: &mut Tried,
    ) -> Option<PickedEndpoint> {
        let cluster = self.cluster();
        let picked = match (&cluster.federation, tried.as_slice()) {
            (_, [_, ..]) if cluster.dialed.is_some() || self.chosen().is_some() => None,
            (_, []) => self.pick_for(visit, worker),
            (None, _) if tried.len() < CONNECT_ATTEMPTS_MAX => self.untried(cluster, worker, tried),
            (None, _) => None,
            (Some(federation), [first, ..]) => {
                let tier = |of: &EndpointRef| self.tier_of(of.cluster).unwrap_or_default();
                let last = tried.last().unwrap_or(first);
                let in_tier = tried.iter().filter(|of| tier(of) == tier(last));
                let more = in_tier.count() < CONNECT_ATTEMPTS_MAX;
                let is_first_tier = tier(last) == tier(first);
                let same = match more && (is_first_tier || !self.has_tier_after(tier(last))) {
                    true => self.untried_of_tier(last, worker, tried),
                    false => None,
                };
                same.or_else(|| self.after(last, federation, worker))
            }
        }?;
        tried.push(picked.endpoint_ref());
        Some(picked)
    }

    /// Picks an untried endpoint in the tier of `last`.
    fn untried_of_tier(
        &self,
        last: &EndpointRef,
        worker: &Worker,
        tried: &[EndpointRef],
    ) -> Option<PickedEndpoint> {
        let tier = self.tier_of(last.cluster).unwrap_or_default();
        let next = self.of_same_tier(tier, worker, tried);
        let pool = next.map_or(last.cluster, |next| next.pool_id());
        self.untried(self.pool(pool)?, worker, tried)
    }

    /// Picks an untried endpoint of this cluster.
    fn untried(
        &self,
        cluster: &Cluster,
        worker: &Worker,
        tried: &[EndpointRef],
    ) -> Option<PickedEndpoint> {
        let here = endpoints_of(cluster, tried);
        let ask = PickInput {
            ignore_panic: !self.is_last_resort(cluster.id()),
            ..self.ask()
        };
        let avoid = Avoid {
            endpoints: &here,
            priorities: &[],
        };
        let endpoint = worker.random(|rng| cluster.pick_other(ask, &avoid, rng))?;
        (!here.contains(&endpoint)).then(|| self.at_pool(cluster.id(), endpoint))
    }

    /// Picks an endpoint in the tier after that of `last`, if replays are enabled.
    fn after(
        &self,
        last: &EndpointRef,
        federation: &Federation,
        worker: &Worker,
    ) -> Option<PickedEndpoint> {
        if federation.replay == Replay::Off {
            return None;
        }
        let tier = self.tier_of(last.cluster).unwrap_or_default();
        let next = self.of_tier_after(tier, worker)?;
        next.came_from(last.cluster, ReplayCause::Connect, worker);
        Some(next)
    }
}

impl PickedEndpoint {
    /// Picks the endpoint of a retry from the newest snapshot; it may be this one again if no other is usable. With
    /// several Kubernetes clusters, prefers a cluster with an untried endpoint.
    pub fn for_retry(
        &self,
        worker: &Worker,
        tried: &[EndpointRef],
        choice: RetryChoice,
    ) -> Option<Self> {
        let target = self.target().newest(worker)?;
        let mut picked = self.as_of(&target);
        if self.is_dialed() && picked.is_some() {
            return picked;
        }
        if let Some(chosen) = target.chosen() {
            return chosen;
        }
        let is_federated = target.federation().is_some();
        if is_federated && (choice.avoid_tried || picked.is_none()) {
            let other = target.of_same_tier(self.tier_for(&target), worker, tried);
            picked = Some(other.or(picked)?);
        }
        let cluster = picked.as_ref().map_or(target.cluster(), Self::cluster);
        let here = endpoints_of(cluster, tried);
        let priorities = match choice.avoid_priorities {
            true => cluster.left_out(&here),
            false => SmallVec::new(),
        };
        if let Some(picked) = &picked {
            let fits = match choice.avoid_tried {
                true => !here.contains(&picked.index()),
                false => picked.is_kept(),
            };
            if fits && !priorities.contains(&cluster.priority(picked.index())) {
                return Some(picked.clone());
            }
        }
        let avoid = Avoid {
            endpoints: if choice.avoid_tried { &here } else { &[] },
            priorities: &priorities,
        };
        let ask = PickInput {
            ignore_panic: !target.is_last_resort(cluster.id()),
            ..target.ask()
        };
        let endpoint = worker.random(|rng| cluster.pick_other(ask, &avoid, rng))?;
        Some(target.at_pool(cluster.id(), endpoint))
    }

    /// Picks another endpoint for a pending connect if this one was removed or has become unusable; `reasons` are those
    /// that excluded it when the connect began. `None` if nothing has changed, or there is no other endpoint.
    pub fn instead(&self, worker: &Worker, reasons: u32, tried: Option<&Tried>) -> Option<Self> {
        let target = self.target().newest(worker)?;
        let state = &self.endpoint().state;
        let has_left = self.as_of(&target).is_none();
        if !has_left && state.health.reasons() & !reasons == 0 {
            return None;
        }
        let mut tried = tried.cloned().unwrap_or_default();
        tried.push(self.endpoint_ref());
        let choice = RetryChoice {
            avoid_tried: true,
            avoid_priorities: false,
        };
        let is_other = |next: &Self| {
            let other = &next.endpoint().state;
            !Arc::ptr_eq(other, state) && (has_left || other.health.is_usable())
        };
        let of_tier = self.for_retry(worker, &tried, choice).filter(is_other);
        of_tier.or_else(|| target.pick(worker).filter(is_other))
    }

    /// Whether session affinity keeps the client at this endpoint.
    fn is_kept(&self) -> bool {
        self.cluster().affinity_lifetime().is_some() && self.endpoint().state.health.is_usable()
    }
}
