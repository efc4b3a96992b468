//! Which key a request has for balancers by hash, and the cookie that a client without one is given.

use hyper::Request;
use hyper::header::HeaderValue;

use super::forward::Forward;
use super::request::Destined;
use crate::balance::hash::{combine, xx_hash};
use crate::balance::{CookieKey, HashKey, Source};
use crate::cluster::{Ask, Split};

/// What a request brings to balancers by hash.
#[derive(Default)]
pub struct Affinity {
    /// For picks.
    pub ask: Ask,
    /// The cookie that its response issues.
    pub cookie: Option<Box<HeaderValue>>,
}

impl Affinity {
    /// That of a request that is for this cluster. Where a rule has several destinations, the keys of all of them count,
    /// so that a client stays with its endpoint whichever of them is drawn.
    pub fn of<B>(forward: &Forward<'_>, destined: &Destined, request: &Request<B>) -> Self {
        match destined.cluster().hash_key() {
            None => Self::default(),
            Some(_) => Self::by_keys(forward, request),
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
