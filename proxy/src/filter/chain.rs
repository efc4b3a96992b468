//! Everything that one rule does to a request, gathered by the compiler and applied in one fixed order.

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

/// What a rule does, in the order of a request:
///
/// 1. *fault* of [`early`](Self::early): delay, then abort, drawn with the caller's rng
/// 2. *CORS* of [`early`](Self::early), which answers preflights and edits responses last of all
/// 3. [`action`](Self::action): a redirect or a direct response ends the request, with
///    [`edit_response`](Self::edit_response) of no destination
/// 4. the destination is picked (not here)
/// 5. [`edit_request`](Self::edit_request), then [`authority`](Self::authority), then
///    [`rewrite_path`](Self::rewrite_path)
/// 6. *mirror*: a field `mirrors` here, which yields a plan of copies of what step 5 made
/// 7. [`timeout`](Self::timeout) starts when the request has been read; [`retry`](Self::retry) says what is tried again
/// 8. [`edit_response`](Self::edit_response) on the response, local replies of this rule included
///
/// The slots in italics belong to features with files of their own; a rule without them costs nothing.
#[derive(Clone, Debug, Default)]
pub struct RouteFilters {
    /// How the rule answers.
    pub action: Action,
    /// What it does before a request goes anywhere; `None` for nothing, which costs nothing.
    pub early: Option<Box<Early>>,
    /// Request edits of the rule; with one destination, those of the destination too.
    request: HeaderOps,
    /// Response edits of the rule; with one destination, those of the destination too.
    response: HeaderOps,
    /// Edits of the destinations, by their position in the rule; empty when one scope holds all.
    destinations: Box<[DestinationFilters]>,
    /// New authority for every destination.
    authority: Option<HeaderValue>,
    /// New path.
    pub path: Option<PathRewrite>,
    /// From the end of the request to the end of the response; `None` for no limit.
    pub timeout: Option<Duration>,
    /// What is tried again; `None` for nothing.
    pub retry: Option<Arc<RetryPolicy>>,
}

/// Faults and CORS: what happens before a request goes anywhere. Only rules that forward have them.
#[derive(Clone, Debug, Default)]
pub struct Early {
    /// Failures to cause on purpose.
    pub fault: Option<Fault>,
    /// How cross-origin requests are answered.
    pub cors: Option<Cors>,
}

/// How a rule answers.
#[derive(Clone, Debug, Default)]
pub enum Action {
    /// By itself.
    DirectResponse(Box<DirectResponse>),
    /// By asking one of its destinations.
    #[default]
    Forward,
    /// By sending the client elsewhere.
    Redirect(Box<Redirect>),
}

/// Edits of one destination among several.
#[derive(Clone, Debug, Default)]
pub struct DestinationFilters {
    request: HeaderOps,
    response: HeaderOps,
    authority: Option<HeaderValue>,
}

/// Request and response operations of a rule or of a destination, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderScopes {
    /// `headers.request`.
    pub request: HeaderScope,
    /// `headers.response`.
    pub response: HeaderScope,
}

impl RouteFilters {
    /// A rule that forwards, with the header operations of the rule and of each of its destinations.
    ///
    /// `authority` is `rewrite.authority`; it counts before an authority among the rule's operations, which counts
    /// before one among the destination's. Path, timeout and action are set on the result.
    ///
    /// # Errors
    ///
    /// When a header name, a value or an operator in it cannot be used.
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

    /// Edits the headers of a response; `destination` is `None` for replies from before one was picked.
    ///
    /// Not for CORS preflights, nor where no rule matched.
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

    /// What the rule does to request headers, or what one of several destinations does before it; for explanations.
    pub fn request_edits(&self, destination: Option<usize>) -> Vec<HeaderEdit<'_>> {
        self.edits(destination, &self.request, |one| &one.request)
    }

    /// What the rule does to response headers, or what one of several destinations does before it; for explanations.
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

    /// The authority that the upstream sees for a destination; `None` when it stays as the client sent it.
    pub fn authority(&self, destination: usize) -> Option<&HeaderValue> {
        let of_destination = || self.destinations.get(destination)?.authority.as_ref();
        self.authority.as_ref().or_else(of_destination)
    }

    /// The path and query that the upstream sees; `None` when they stay. The old ones go into
    /// [`ORIGINAL_PATH`](super::rewrite::ORIGINAL_PATH).
    pub fn rewrite_path(&self, path: &str, query: Option<&str>) -> Option<PathAndQuery> {
        self.path.as_ref()?.apply(path, query)
    }

    /// Whether no request header is edited for any destination, so that no context need be made.
    pub fn leaves_request_headers(&self) -> bool {
        self.request.is_empty() && self.destinations.iter().all(|one| one.request.is_empty())
    }

    /// Whether no response header is edited, so that no context need be made.
    pub fn leaves_response_headers(&self) -> bool {
        self.response.is_empty() && self.destinations.iter().all(|one| one.response.is_empty())
    }
}

impl DestinationFilters {
    /// Compiles the scopes of all destinations; to nothing at all when none of them does anything.
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
