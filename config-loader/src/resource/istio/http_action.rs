//! Actions of an HTTP rule.

use std::sync::Arc;

use super::Headers;
use crate::kind::Name;
use crate::span::Line;

/// Action of an HTTP rule.
#[derive(Clone, Debug)]
pub enum HttpAction {
    /// Delegates the request to the rules of another VirtualService.
    Delegate(Delegate),
    /// Responds with a local reply.
    DirectResponse(DirectResponse),
    /// Redirects the client.
    Redirect(Redirect),
    /// Forwards the request to one of the destinations, by weight. Never empty.
    Route(Vec<HttpDestination>),
}

/// Delegation to another VirtualService (`delegate`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegate {
    /// VirtualService whose rules apply.
    pub name: Name,
    /// Source line within the document.
    pub line: Line,
}

/// Local reply (`directResponse`).
#[derive(Clone, Debug)]
pub struct DirectResponse {
    /// HTTP status, 200 to 599.
    pub status: u16,
    /// Body of the response, at most 1 MiB.
    pub body: Arc<[u8]>,
    /// Source line within the document.
    pub line: Line,
}

/// Redirect (`redirect`).
#[derive(Clone, Debug)]
pub struct Redirect {
    /// New path.
    pub path: RedirectPath,
    /// New host, which may include a port; `None` keeps the request's host.
    pub authority: Option<Arc<str>>,
    /// New scheme; `None` keeps the request's scheme.
    pub scheme: Option<Scheme>,
    /// New port.
    pub port: RedirectPort,
    /// HTTP status: 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Source line within the document.
    pub line: Line,
}

/// Path of a redirect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RedirectPath {
    /// Keeps the request's path.
    #[default]
    Keep,
    /// Replaces the prefix that the rule matched.
    Prefix(Arc<str>),
    /// Replaces the whole path. If the new path has no query, the request's query is appended.
    Replace(Arc<str>),
}

/// Port of a redirect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectPort {
    /// Adds no port.
    #[default]
    Default,
    /// Uses this port.
    Fixed(u16),
    /// Uses the listener's port.
    Request,
}

/// HTTP scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// Returns the scheme as in a URI.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// Weighted destination: an entry of an HTTP rule's `route`.
#[derive(Clone, Debug)]
pub struct HttpDestination {
    /// Service and subset to forward to.
    pub destination: Destination,
    /// Weight relative to the other destinations. With several destinations the sum is above 0; with one it has no
    /// effect.
    pub weight: u32,
    /// Header edits for requests to this destination.
    pub headers: Option<Box<Headers>>,
    /// Source line within the document.
    pub line: Line,
}

/// Service, or a subset of it, to which requests are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// Host of the service, as written.
    pub host: Arc<str>,
    /// Name of the subset; `None` for all endpoints.
    pub subset: Option<Arc<str>>,
    /// Port of the service; `None` for its only port, or the listener's port.
    pub port: Option<u16>,
    /// Source line of `host`.
    pub line: Line,
    /// Source line of `subset`, if it is set.
    pub subset_line: Line,
    /// Source line of the number of `port`, if it is set.
    pub port_line: Line,
}
