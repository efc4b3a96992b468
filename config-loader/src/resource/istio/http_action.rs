//! What an HTTP rule does with a request that it takes.

use std::sync::Arc;

use super::Headers;
use crate::kind::Name;
use crate::span::Line;

/// What a rule does.
#[derive(Clone, Debug)]
pub enum HttpAction {
    /// Leaves the request to the rules of another VirtualService.
    Delegate(Delegate),
    /// Answers by itself.
    DirectResponse(DirectResponse),
    /// Sends the client elsewhere.
    Redirect(Redirect),
    /// Forwards the request to one of these, by weight. Never empty.
    Route(Vec<HttpDestination>),
}

/// `delegate`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegate {
    /// The VirtualService whose rules are used.
    pub name: Name,
    /// Where it was written.
    pub line: Line,
}

/// `directResponse`
#[derive(Clone, Debug)]
pub struct DirectResponse {
    /// 200 to 599.
    pub status: u16,
    /// At most 1 MiB.
    pub body: Arc<[u8]>,
    /// Where it was written.
    pub line: Line,
}

/// `redirect`
#[derive(Clone, Debug)]
pub struct Redirect {
    /// The new path.
    pub path: RedirectPath,
    /// The new host, which may have a port; none keeps the request's.
    pub authority: Option<Arc<str>>,
    /// The new scheme; none keeps the request's.
    pub scheme: Option<Scheme>,
    /// The new port.
    pub port: RedirectPort,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Where it was written.
    pub line: Line,
}

/// The path that a redirect leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RedirectPath {
    /// The request's.
    #[default]
    Keep,
    /// This, in place of the prefix that the rule matched.
    Prefix(Arc<str>),
    /// This, in place of the whole. If it has no query, the request's is appended.
    Replace(Arc<str>),
}

/// The port that a redirect leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectPort {
    /// None is added.
    #[default]
    Default,
    /// This one.
    Fixed(u16),
    /// The listener's.
    Request,
}

/// A scheme of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// The scheme as it stands in a URI.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// An entry of an HTTP rule's `route`.
#[derive(Clone, Debug)]
pub struct HttpDestination {
    /// Where.
    pub destination: Destination,
    /// Its share of the requests, relative to the others. With several destinations the sum is above 0; with one it
    /// does not matter.
    pub weight: u32,
    /// Header edits that only hold here.
    pub headers: Option<Box<Headers>>,
    /// Where it was written.
    pub line: Line,
}

/// A service, and the part of it that is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// The service's host, as written.
    pub host: Arc<str>,
    /// The subset; none for all endpoints.
    pub subset: Option<Arc<str>>,
    /// The service's port; none for its only one, or the listener's.
    pub port: Option<u16>,
    /// Where its host was written.
    pub line: Line,
    /// Where `subset` was written, if it was.
    pub subset_line: Line,
    /// Where the number of `port` was written, if it was.
    pub port_line: Line,
}
