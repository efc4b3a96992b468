//! Session affinity of a request: its hash key, the cookie in its response, and its client.
//!
//! Hash keys are computed after the edits of the request's rule, as in Envoy, so that all proxies find the same
//! endpoint.

use std::borrow::Cow;
use std::net::IpAddr;

use http::HeaderMap;
use http::uri::PathAndQuery;
use hyper::header::HeaderValue;
use hyper::{Method, Request};
use tokio::time::Instant;

use crate::exchange::select::context::RequestContext;
use crate::exchange::select::find_route::authority;
use crate::exchange::select::target::Target;
use crate::snapshot::{Destination, Snapshot};
use traffic::balance::hash::{combine, xx_hash};
use traffic::balance::{CookieKey, HashKey, Source};
use traffic::cluster::{PickInput, Split};
use traffic::filter::{RouteFilters, Scheme, TemplateContext};
use traffic::registry::Visit;

/// Session affinity of a request.
#[derive(Default)]
pub struct Affinity {
    /// Inputs of picks, with the hash.
    pub ask: PickInput,
    /// Cookie to set in the response.
    pub cookie: Option<Box<HeaderValue>>,
    /// The client, if the cluster has affinity entries.
    pub visit: Option<Visit>,
}

/// The head that hash keys are computed from, after the rule's edits for a destination.
pub struct HashedHead<'a> {
    method: &'a Method,
    headers: Cow<'a, HeaderMap>,
    authority: Cow<'a, [u8]>,
    path: Cow<'a, str>,
}

impl<'a> HashedHead<'a> {
    /// The head of a request without edits.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        let path = request.uri().path_and_query();
        Self {
            method: request.method(),
            headers: Cow::Borrowed(request.headers()),
            authority: Cow::Borrowed(authority(request).unwrap_or_default().as_bytes()),
            path: Cow::Borrowed(path.map_or("/", PathAndQuery::as_str)),
        }
    }

    /// The head of a request with a rule's edits for one of its destinations; `template` has the values of their
    /// templates, still without an endpoint.
    pub fn edited<B>(
        request: &'a Request<B>,
        filters: &RouteFilters,
        destination: &Destination,
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

    /// Input of hash keys, for a client with this scheme.
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

/// Hash keys of a request: those of all destinations of its rule with a weight, so that a client keeps its endpoint
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
    /// Computes the affinity of a request for this target, received at `came`; `head` is the input of hash keys, if the
    /// target's cluster has any.
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

    /// Creates a cookie if the key is one that the proxy issues; only the first one of a request.
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
