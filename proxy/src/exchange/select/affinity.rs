//! Which key a request has for balancers by hash, the cookie that a client without one is given, and clients that stay with
//! the endpoint that they were sent to.

use std::net::IpAddr;

use hyper::Request;
use hyper::header::HeaderValue;
use tokio::time::Instant;

use crate::balance::hash::{combine, xx_hash};
use crate::balance::{CookieKey, HashKey, Source, client_hash};
use crate::cluster::{Ask, Split, Stay};
use crate::exchange::forward::Forward;
use crate::exchange::select::target::{PickedEndpoint, RequestTarget};
use crate::exchange::worker::Worker;
use crate::registry::Visit;

/// What a request brings to balancers by hash.
#[derive(Default)]
pub struct Affinity {
    /// For picks.
    pub ask: Ask,
    /// The cookie that its response issues.
    pub cookie: Option<Box<HeaderValue>>,
    /// Its client, where that stays with an endpoint.
    pub visit: Option<Visit>,
}

impl Affinity {
    /// That of a request that is for this cluster, and came then. Where a rule has several destinations, the keys of all of
    /// them count, so that a client stays with its endpoint whichever of them is drawn.
    pub fn of<B>(
        forward: &Forward<'_>,
        target: &RequestTarget,
        request: &Request<B>,
        came: Instant,
    ) -> Self {
        match target.cluster().hash_key() {
            None => Self::default(),
            Some(_) => Self {
                visit: target.visit(forward.origin.client.ip(), came),
                ..Self::by_keys(forward, request)
            },
        }
    }

    #[cold]
    fn by_keys<B>(forward: &Forward<'_>, request: &Request<B>) -> Self {
        let source = Source {
            headers: request.headers(),
            query: request.uri().query(),
            client: forward.origin.client.ip(),
        };
        let mut affinity = Self::default();
        let split = forward.found.route().split.iter().flat_map(Split::entries);
        for (_, destination) in split {
            let cluster = forward.snapshot.cluster(destination.cluster);
            let Some(key) = cluster.and_then(|cluster| cluster.hash_key()) else {
                continue;
            };
            let hash = key.hash(&source).or_else(|| affinity.issue(forward, key));
            if let Some(hash) = hash {
                affinity.ask.hash = Some(combine(affinity.ask.hash, hash));
            }
        }
        affinity
    }

    /// Makes a cookie where the key is one that we issue; the first of a request counts.
    fn issue(&mut self, forward: &Forward<'_>, key: &HashKey) -> Option<u64> {
        let HashKey::Cookie(cookie) = key else {
            return None;
        };
        cookie.ttl?;
        let ends = &forward.connection.client;
        let (client, local) = (ends.source.to_string(), ends.destination.to_string());
        let value = CookieKey::new_value(&client, &local);
        if self.cookie.is_none() {
            let line = HeaderValue::try_from(cookie.set_cookie(&value)).ok();
            self.cookie = line.map(Box::new);
        }
        Some(xx_hash(value.as_bytes()))
    }
}

impl RequestTarget {
    /// A request or a connection of a client that came then, where the cluster remembers clients.
    pub(in crate::exchange) fn visit(&self, client: IpAddr, came: Instant) -> Option<Visit> {
        let cluster = self.cluster();
        cluster.remembers()?;
        Some(Visit {
            client: client_hash(client),
            at: cluster.state.journal.at(came),
        })
    }

    /// Picks the endpoint that a client stays with, where the cluster remembers that; else as [`RequestTarget::pick`] does.
    pub(in crate::exchange) fn pick_for(
        &self,
        visit: Option<Visit>,
        worker: &Worker,
    ) -> Option<PickedEndpoint> {
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
}
