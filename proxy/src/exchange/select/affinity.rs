//! Session affinity of a request: its hash key, the cookie that its response sets, and its client.
//!
//! Hash keys are taken of the request as its rule makes it, as in Envoy, so that all proxies find the same endpoint.

use std::borrow::Cow;
use std::net::IpAddr;

use http::HeaderMap;
use http::uri::PathAndQuery;
use hyper::header::HeaderValue;
use hyper::{Method, Request};
use tokio::time::Instant;

use crate::balance::hash::{combine, xx_hash};
use crate::balance::{CookieKey, HashKey, Source};
use crate::cluster::{Ask, Split};
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::find_route::authority;
use crate::exchange::select::target::Target;
use crate::filter::{RouteFilters, Scheme, TemplateContext};
use crate::registry::Visit;
use crate::snapshot::{Destination, Snapshot};

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

/// The part of a request that hash keys are taken of, as the rule makes it for a destination.
pub struct HashedHead<'a> {
    method: &'a Method,
    headers: Cow<'a, HeaderMap>,
    authority: Cow<'a, [u8]>,
    path: Cow<'a, str>,
}

impl<'a> HashedHead<'a> {
    /// The head of a request that no rule edits.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        let path = request.uri().path_and_query();
        Self {
            method: request.method(),
            headers: Cow::Borrowed(request.headers()),
            authority: Cow::Borrowed(authority(request).unwrap_or_default().as_bytes()),
            path: Cow::Borrowed(path.map_or("/", PathAndQuery::as_str)),
        }
    }

    /// The head of a request with the edits that a rule makes for one of its destinations; `template` is what their values
    /// may speak of, of which the endpoint is not known yet.
    pub fn edited<B>(
        request: &'a Request<B>,
        (filters, destination): (&RouteFilters, &Destination),
        template: &TemplateContext<'_>,
    ) -> Self {
        let mut head = Self::of(request);
        let position = destination.position;
        if !filters.leaves_request_headers() {
            filters.edit_request(position, head.headers.to_mut(), template);
        }
        if let Some(set) = filters.authority(position) {
            head.authority = Cow::Owned(set.as_bytes().to_vec());
        }
        if let Some(path) = filters.rewrite_path(request.uri().path(), request.uri().query()) {
            head.path = Cow::Owned(path.as_str().to_owned());
        }
        head
    }

    /// Source of keys, for a client that came by this scheme.
    pub fn source(&self, scheme: Scheme, client: IpAddr) -> Source<'_> {
        Source {
            headers: &self.headers,
            authority: &self.authority,
            method: self.method.as_str(),
            path: &self.path,
            scheme: scheme.as_str(),
            client,
        }
    }
}

/// The hash keys of a request: those of all destinations of its rule that take requests, so that a client keeps its endpoint
/// whichever destination is drawn.
pub fn keys<'a>(
    split: Option<&'a Split<Destination>>,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = &'a HashKey> {
    let entries = split.into_iter().flat_map(Split::entries);
    let used = entries.filter(|(weight, _)| *weight > 0);
    used.filter_map(|(_, destination)| snapshot.hash_key(destination.cluster))
}

impl Affinity {
    /// The affinity of a request for this target that arrived at this time; `head` is what hash keys are taken of, if the
    /// target's cluster has one.
    pub fn of(
        context: &RequestContext<'_>,
        target: &Target,
        head: Option<HashedHead<'_>>,
        came: Instant,
    ) -> Self {
        match head {
            None => Self::default(),
            Some(head) => Self {
                visit: target.visit(context.origin.client.ip(), came),
                ..Self::by_keys(context, &head)
            },
        }
    }

    #[cold]
    fn by_keys(context: &RequestContext<'_>, head: &HashedHead<'_>) -> Self {
        let source = head.source(context.origin.scheme, context.origin.client.ip());
        let mut affinity = Self::default();
        for key in keys(context.found.route().split.as_ref(), context.snapshot) {
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
