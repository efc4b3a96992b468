//! Picks the endpoint of an attempt: the first one, that of a retry, and the next one of a raw TCP connection.

use std::net::IpAddr;

use smallvec::SmallVec;
use tokio::time::Instant;

use super::target::{EndpointRef, PickedEndpoint, Target, endpoints_of};
use crate::balance::client_hash;
use crate::cluster::federation::Federation;
use crate::cluster::{Ask, Avoid, Cluster, Stay};
use crate::exchange::worker::Worker;
use crate::identity::Replay;
use crate::registry::Visit;
use crate::telemetry::ReplayCause;

/// Most endpoints that are tried for one TCP connection. Of a service of several Kubernetes clusters, this many in the
/// first tier and in the last, and one in each tier between them. Envoy's default is 1.
pub const CONNECT_ATTEMPTS_MAX: usize = 3;

/// Which endpoints a retry avoids, as far as it can.
#[derive(Clone, Copy, Debug)]
pub struct RetryChoice {
    /// Endpoints of earlier attempts.
    pub avoid_tried: bool,
    /// Priorities of earlier attempts.
    pub avoid_priorities: bool,
}

impl Target {
    /// Picks an endpoint; `None` when there is none that may be used.
    pub fn pick(&self, worker: &Worker) -> Option<PickedEndpoint> {
        let cluster = self.cluster();
        if cluster.dialed.is_some() {
            return self.at_dialed();
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
        cluster.remembers()?;
        Some(Visit {
            client: client_hash(client),
            at: cluster.state.journal.at(came),
        })
    }

    /// Picks the endpoint of the client's session affinity entry, if there is one; else as [`Target::pick`] does.
    pub fn pick_for(&self, visit: Option<Visit>, worker: &Worker) -> Option<PickedEndpoint> {
        match visit.and_then(|visit| self.cluster().stay(visit)) {
            None => self.pick(worker),
            Some(stay) => self.pick_staying(&stay, worker),
        }
    }

    fn pick_staying(&self, stay: &Stay<'_>, worker: &Worker) -> Option<PickedEndpoint> {
        let (cluster, ask) = (self.cluster(), self.ask());
        let Some(federation) = &cluster.federation else {
            let endpoint = worker.random(|rng| cluster.pick_for(stay, ask, rng))?;
            return Some(self.at(endpoint));
        };
        let snapshot = self.snapshot();
        let pools = (snapshot.generation, |id| snapshot.cluster(id));
        let choice = worker.random(|rng| federation.choose_for(stay, pools, ask, rng))?;
        Some(self.follow(federation, choice, worker))
    }

    /// Picks the next endpoint for a TCP connection, and adds it to `tried`; `None` when every endpoint was tried, or
    /// [`CONNECT_ATTEMPTS_MAX`] of them. The first one follows the client's session affinity.
    pub fn pick_for_connection(
        &self,
        worker: &Worker,
        visit: Option<Visit>,
        tried: &mut Vec<EndpointRef>,
    ) -> Option<PickedEndpoint> {
        let picked = match (&self.cluster().federation, tried.as_slice()) {
            (_, [_, ..]) if self.cluster().dialed.is_some() => None,
            (_, []) => self.pick_for(visit, worker),
            (None, _) if tried.len() < CONNECT_ATTEMPTS_MAX => {
                self.untried(self.cluster(), worker, tried)
            }
            (None, _) => None,
            (Some(federation), [first, ..]) => {
                let at = |of: &EndpointRef| self.at_pool(of.cluster, of.endpoint);
                let tier = |of: &EndpointRef| at(of).tier(federation);
                let last = tried.last().unwrap_or(first);
                let in_tier = tried.iter().filter(|of| tier(of) == tier(last));
                let more = in_tier.count() < CONNECT_ATTEMPTS_MAX;
                let is_first_tier = tier(last) == tier(first);
                let last = at(last);
                let same = match more && (is_first_tier || !last.has_next_tier()) {
                    true => last.of_same_tier(worker, tried),
                    false => None,
                };
                let same = same.and_then(|next| self.untried(next.cluster(), worker, tried));
                same.or_else(|| of_tier_after(&last, federation, worker))
            }
        }?;
        tried.push(picked.endpoint_ref());
        Some(picked)
    }

    /// Picks an endpoint of this cluster that has not been tried.
    fn untried(
        &self,
        cluster: &Cluster,
        worker: &Worker,
        tried: &[EndpointRef],
    ) -> Option<PickedEndpoint> {
        let here = endpoints_of(cluster.id(), tried);
        let ask = Ask {
            calm: !self.is_last_resort(cluster.id()),
            ..self.ask()
        };
        let avoid = Avoid {
            endpoints: &here,
            priorities: &[],
        };
        let endpoint = worker.random(|rng| cluster.pick_other(ask, &avoid, rng))?;
        (!here.contains(&endpoint)).then(|| self.at_pool(cluster.id(), endpoint))
    }
}

/// An endpoint of the next tier that has one, if connections may go there.
fn of_tier_after(
    last: &PickedEndpoint,
    federation: &Federation,
    worker: &Worker,
) -> Option<PickedEndpoint> {
    if federation.replay == Replay::Off {
        return None;
    }
    let next = last.of_next_tier(worker)?;
    last.moves_on(&next, ReplayCause::Connect, worker);
    Some(next)
}

impl PickedEndpoint {
    /// Picks the endpoint of a retry, which may be this one again if no other may be used. Of a service of several
    /// Kubernetes clusters, preferably in a cluster with an endpoint that was not tried.
    pub fn for_retry(
        &self,
        worker: &Worker,
        tried: &[EndpointRef],
        choice: RetryChoice,
    ) -> Option<Self> {
        if self.is_dialed() {
            return Some(self.clone());
        }
        let picked = match choice.avoid_tried && self.is_member() {
            true => self.of_same_tier(worker, tried)?,
            false => self.clone(),
        };
        let cluster = picked.cluster();
        let here = endpoints_of(cluster.id(), tried);
        let priorities = match choice.avoid_priorities {
            true => cluster.left_out(&here),
            false => SmallVec::new(),
        };
        let fits = match choice.avoid_tried {
            true => !here.contains(&picked.index()),
            false => picked.is_kept(),
        };
        if fits && !priorities.contains(&cluster.priority(picked.index())) {
            return Some(picked);
        }
        let avoid = Avoid {
            endpoints: if choice.avoid_tried { &here } else { &[] },
            priorities: &priorities,
        };
        let ask = Ask {
            calm: !picked.is_last_resort(),
            ..picked.target().ask()
        };
        let endpoint = worker.random(|rng| cluster.pick_other(ask, &avoid, rng))?;
        Some(picked.target().at_pool(cluster.id(), endpoint))
    }

    /// Whether session affinity keeps the client at this endpoint.
    fn is_kept(&self) -> bool {
        self.cluster().remembers().is_some() && self.endpoint().state.health.is_usable()
    }
}
