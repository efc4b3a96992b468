//! Session affinity of a request: its hash key, the cookie that its response sets, and its client.

use hyper::Request;
use hyper::header::HeaderValue;
use tokio::time::Instant;

use crate::balance::hash::{combine, xx_hash};
use crate::balance::{CookieKey, HashKey, Source};
use crate::cluster::{Ask, Split};
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::target::Target;
use crate::registry::Visit;

/// What a request brings to picks.
#[derive(Default)]
pub struct Affinity {
    /// For picks.
    pub ask: Ask,
    /// The cookie that its response issues.
    pub cookie: Option<Box<HeaderValue>>,
    /// The client, if the cluster remembers clients.
    pub visit: Option<Visit>,
}

impl Affinity {
    /// The affinity of a request for this target that arrived at this time. The keys of all destinations of a rule count, so
    /// that a client keeps its endpoint whichever destination is drawn.
    pub fn of<B>(
        context: &RequestContext<'_>,
        target: &Target,
        request: &Request<B>,
        came: Instant,
    ) -> Self {
        match target.cluster().hash_key() {
            None => Self::default(),
            Some(_) => Self {
                visit: target.visit(context.origin.client.ip(), came),
                ..Self::by_keys(context, request)
            },
        }
    }

    #[cold]
    fn by_keys<B>(context: &RequestContext<'_>, request: &Request<B>) -> Self {
        let source = Source {
            headers: request.headers(),
            query: request.uri().query(),
            client: context.origin.client.ip(),
        };
        let mut affinity = Self::default();
        let split = context.found.route().split.iter().flat_map(Split::entries);
        for (_, destination) in split {
            let cluster = context.snapshot.cluster(destination.cluster);
            let Some(key) = cluster.and_then(|cluster| cluster.hash_key()) else {
                continue;
            };
            let hash = key.hash(&source).or_else(|| affinity.issue(context, key));
            if let Some(hash) = hash {
                affinity.ask.hash = Some(combine(affinity.ask.hash, hash));
            }
        }
        affinity
    }

    /// Makes a cookie where the key is one that we issue; the first of a request counts.
    fn issue(&mut self, context: &RequestContext<'_>, key: &HashKey) -> Option<u64> {
        let HashKey::Cookie(cookie) = key else {
            return None;
        };
        cookie.ttl?;
        let ends = &context.connection.client;
        let (client, local) = (ends.source.to_string(), ends.destination.to_string());
        let value = CookieKey::new_value(&client, &local);
        if self.cookie.is_none() {
            let line = HeaderValue::try_from(cookie.set_cookie(&value)).ok();
            self.cookie = line.map(Box::new);
        }
        Some(xx_hash(value.as_bytes()))
    }
}
