//! All filters of one rule, gathered by the compiler and applied in a fixed order.

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};

use super::cors::Cors;
use super::direct_response::DirectResponse;
use super::fault::Fault;
use super::headers::{HeaderEdit, HeaderError, HeaderOps, HeaderScope, RequestHeaderOps};
use super::redirect::Redirect;
use super::retry::RetryPolicy;
use super::rewrite::PathRewrite;
use super::template::TemplateContext;
use crate::authz::RouteCheck;
use crate::limit::RouteLimits;
use crate::registry::ClusterId;

/// Filters of a rule, in the order of a request:
///
/// 1. *fault* of [`early`](Self::early): delay, then abort, drawn with the caller's rng
/// 2. *CORS* of [`early`](Self::early), which answers preflights and edits responses last of all; then its *limits*,
///    and its *check* by another service
/// 3. [`action`](Self::action): a redirect or a direct response ends the request, with
///    [`edit_response`](Self::edit_response) of no destination
/// 4. the destination is picked (not here)
/// 5. [`edit_request`](Self::edit_request), then [`authority`](Self::authority), then
///    [`rewrite_path`](Self::rewrite_path)
/// 6. *mirror*: copies of the request as edited by step 5 are sent to the mirrors (not here)
/// 7. [`timeout`](Self::timeout) starts when the request has been read; [`retry`](Self::retry) is the retry policy
/// 8. [`edit_response`](Self::edit_response) on the response, local replies of this rule included
///
/// Steps in italics are described in files of their own; a rule without them costs nothing.
#[derive(Clone, Debug, Default)]
pub struct RouteFilters {
    /// Redirect, direct response or forwarding.
    pub action: Action,
    /// Faults, CORS, limits and a check; `None` for none of them.
    pub early: Option<Box<Early>>,
    /// Request header edits of the rule; with a single destination, including those of the destination.
    request: HeaderOps,
    /// Response header edits of the rule; with a single destination, including those of the destination.
    response: HeaderOps,
    /// Header edits of the destinations, by position in the rule; empty with a single destination or without edits.
    destinations: Box<[DestinationFilters]>,
    /// Authority that replaces the request's, for every destination.
    authority: Option<HeaderValue>,
    /// Path rewrite.
    pub path: Option<PathRewrite>,
    /// Time from the end of the request to the end of the response; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Time without a byte of the response after which the request is given up; `None` for no limit.
    pub idle_timeout: Option<Duration>,
    /// Retry policy; `None` for no retries.
    pub retry: Option<Arc<RetryPolicy>>,
    /// Whether destinations get HTTP/2, whatever their ports declare.
    ///
    /// Source: GRPCRoute.
    pub is_http2: bool,
}

/// Filters that run before a destination is picked: faults, CORS, limits and a check. No rule with a direct response has them.
#[derive(Clone, Debug, Default)]
pub struct Early {
    /// Fault injection.
    pub fault: Option<Fault>,
    /// CORS policy.
    pub cors: Option<Cors>,
    /// Limits on requests and their bodies.
    pub limits: Option<Arc<RouteLimits>>,
    /// Check by another service.
    pub check: Option<ClusterCheck>,
}

/// Check of requests by another service, with its cluster.
#[derive(Clone, Debug)]
pub struct ClusterCheck {
    /// Settings of the check.
    pub settings: Arc<RouteCheck>,
    /// Name of the cluster.
    pub name: Arc<str>,
    /// Number of the cluster. There is none with it if the service is unknown.
    pub cluster: ClusterId,
}

impl Early {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.fault.is_none() && self.cors.is_none() && self.limits.is_none() && self.check.is_none()
    }
}

/// Kinds of actions.
#[derive(Clone, Debug, Default)]
pub enum Action {
    /// Sends a fixed response.
    DirectResponse(Box<DirectResponse>),
    /// Forwards to one of the destinations.
    #[default]
    Forward,
    /// Redirects the client.
    Redirect(Box<Redirect>),
}

/// Header edits of one of several destinations.
#[derive(Clone, Debug, Default)]
pub struct DestinationFilters {
    request: HeaderOps,
    response: HeaderOps,
    authority: Option<HeaderValue>,
}

/// Header operations of a rule or of a destination, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderScopes {
    /// `headers.request`.
    pub request: HeaderScope,
    /// `headers.response`.
    pub response: HeaderScope,
}

impl RouteFilters {
    /// Creates a rule that forwards, with the header operations of the rule and of each destination.
    ///
    /// `authority` is `rewrite.authority`; it takes precedence over an authority among the rule's operations, and that
    /// one over the destination's. Path, timeout and action are set on the result.
    ///
    /// # Errors
    ///
    /// If a header name, a value or an operator in it is invalid.
    pub fn new(
        rule: &HeaderScopes,
        destinations: &[HeaderScopes],
        authority: Option<HeaderValue>,
    ) -> Result<Self, HeaderError> {
        if let [only] = destinations {
            let request = RequestHeaderOps::compile(&[&rule.request, &only.request])?;
            return Ok(Self {
                authority: authority.or(request.authority),
                request: request.ops,
                response: HeaderOps::compile_response(&[&rule.response, &only.response])?,
                ..Self::default()
            });
        }
        let request = RequestHeaderOps::compile(&[&rule.request])?;
        Ok(Self {
            authority: authority.or(request.authority),
            request: request.ops,
            response: HeaderOps::compile_response(&[&rule.response])?,
            destinations: DestinationFilters::compile(destinations)?,
            ..Self::default()
        })
    }

    /// Edits the headers of a request for a destination, given by its position in the rule.
    pub fn edit_request(
        &self,
        destination: usize,
        headers: &mut HeaderMap,
        context: &TemplateContext<'_>,
    ) {
        if let Some(destination) = self.destinations.get(destination) {
            destination.request.apply_to_request(headers, context);
        }
        self.request.apply_to_request(headers, context);
    }

    /// Edits the headers of a response; `destination` is `None` for replies before one was picked.
    ///
    /// Not applied to CORS preflights, or if no rule matched.
    pub fn edit_response(
        &self,
        destination: Option<usize>,
        headers: &mut HeaderMap,
        context: &TemplateContext<'_>,
    ) {
        if let Some(destination) = destination.and_then(|at| self.destinations.get(at)) {
            destination.response.apply_to_response(headers, context);
        }
        self.response.apply_to_response(headers, context);
    }

    /// Request header edits of the rule, or those of one of several destinations, which apply first; for explanations.
    pub fn request_edits(&self, destination: Option<usize>) -> Vec<HeaderEdit<'_>> {
        self.edits(destination, &self.request, |one| &one.request)
    }

    /// Response header edits of the rule, or those of one of several destinations, which apply first; for explanations.
    pub fn response_edits(&self, destination: Option<usize>) -> Vec<HeaderEdit<'_>> {
        self.edits(destination, &self.response, |one| &one.response)
    }

    fn edits<'a>(
        &'a self,
        destination: Option<usize>,
        rule: &'a HeaderOps,
        own: fn(&DestinationFilters) -> &HeaderOps,
    ) -> Vec<HeaderEdit<'a>> {
        let ops = match destination {
            None => Some(rule),
            Some(at) => self.destinations.get(at).map(own),
        };
        ops.map_or_else(Vec::new, |ops| ops.edits().collect())
    }

    /// The new authority for a destination; `None` to keep the client's.
    pub fn authority(&self, destination: usize) -> Option<&HeaderValue> {
        let of_destination = || self.destinations.get(destination)?.authority.as_ref();
        self.authority.as_ref().or_else(of_destination)
    }

    /// The new path and query; `None` to keep them. The caller stores the old ones in
    /// [`ORIGINAL_PATH`](super::rewrite::ORIGINAL_PATH).
    pub fn rewrite_path(&self, path: &str, query: Option<&str>) -> Option<PathAndQuery> {
        self.path.as_ref()?.apply(path, query)
    }

    /// Whether no request header is edited for any destination, so that no context is needed.
    pub fn leaves_request_headers(&self) -> bool {
        self.request.is_empty() && self.destinations.iter().all(|one| one.request.is_empty())
    }

    /// Whether no response header is edited, so that no context is needed.
    pub fn leaves_response_headers(&self) -> bool {
        self.response.is_empty() && self.destinations.iter().all(|one| one.response.is_empty())
    }
}

impl DestinationFilters {
    /// Compiles the scopes of all destinations; empty if none of them edits anything.
    fn compile(scopes: &[HeaderScopes]) -> Result<Box<[Self]>, HeaderError> {
        if scopes.iter().all(|scope| *scope == HeaderScopes::default()) {
            return Ok(Box::default());
        }
        let compile = |scope: &HeaderScopes| {
            let request = RequestHeaderOps::compile(&[&scope.request])?;
            Ok(Self {
                request: request.ops,
                response: HeaderOps::compile_response(&[&scope.response])?,
                authority: request.authority,
            })
        };
        scopes.iter().map(compile).collect()
    }
}

#[cfg(test)]
mod tests;
