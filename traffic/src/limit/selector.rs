//! Conditions by which rules select requests, and tell them apart.

use std::net::IpAddr;

use http::Method;
use ipnet::IpNet;

use crate::route::query::first_value;
use crate::route::{HeaderKey, RequestHead, TextMatch, UriMatch};

/// Condition on requests.
#[derive(Clone, Debug)]
pub enum Selector {
    /// Header.
    Header(HeaderKey, ValueMatch),
    /// One of these methods; with `true`, any other method than this one.
    Methods(Box<[(Method, bool)]>),
    /// Path without query; with `true`, all others.
    Path(PathMatch, bool),
    /// First value of a query parameter.
    Query(Box<str>, ValueMatch),
    /// Address of the client.
    Source {
        /// Block of addresses.
        net: IpNet,
        /// Whether clients are told apart.
        is_distinct: bool,
    },
}

/// Condition on a value.
#[derive(Clone, Debug)]
pub enum ValueMatch {
    /// Any value, each with a bucket of its own.
    Distinct,
    /// Value that matches; with `true`, one that does not, or none.
    Matches(TextMatch, bool),
}

/// Condition on a path.
#[derive(Clone, Debug)]
pub enum PathMatch {
    /// Path that begins with these segments; no `/` at the end.
    Segments(Box<str>),
    /// Path that matches.
    Whole(UriMatch),
}

/// Request that is counted.
#[derive(Clone, Copy, Debug)]
pub struct CountedRequest<'a> {
    head: RequestHead<'a>,
    client: IpAddr,
    /// Address by which clients are told apart: of IPv6 that of the client's network.
    network: IpAddr,
}

impl CountedRequest<'_> {
    /// Address of the client.
    pub fn client(&self) -> IpAddr {
        self.client
    }
}

impl<'a> CountedRequest<'a> {
    /// A request of a client, its path normalized. `ipv6_prefix` is the length of the networks of clients with IPv6.
    pub fn new(head: RequestHead<'a>, client: IpAddr, ipv6_prefix: u8) -> Self {
        let client = client.to_canonical();
        let network = match client {
            IpAddr::V4(_) => client,
            IpAddr::V6(_) => IpNet::new(client, ipv6_prefix).map_or(client, |net| net.network()),
        };
        Self {
            head,
            client,
            network,
        }
    }
}

/// Returns the first condition that does not hold for a request; `None` if all do.
pub fn objection<'s>(
    selectors: &'s [Selector],
    request: &CountedRequest<'_>,
) -> Option<&'s Selector> {
    let mut selectors = selectors.iter();
    selectors.find(|selector| selector.distinct(request).is_none())
}

/// Whether each client has a limit of its own by one of these conditions.
pub fn is_distinct(selectors: &[Selector]) -> bool {
    selectors.iter().any(|selector| {
        matches!(
            selector,
            Selector::Header(_, ValueMatch::Distinct)
                | Selector::Query(_, ValueMatch::Distinct)
                | Selector::Source {
                    is_distinct: true,
                    ..
                }
        )
    })
}

/// Value by which a condition tells requests apart.
#[derive(Hash)]
pub(super) enum Distinct<'a> {
    Address(IpAddr),
    Text(&'a [u8]),
}

impl Selector {
    /// Returns the field of the configuration, with the header or parameter that it reads.
    pub fn field(&self) -> String {
        match self {
            Self::Header(key, _) => format!("headers[{}]", key.as_str()),
            Self::Methods(_) => "methods".to_owned(),
            Self::Path(..) => "path".to_owned(),
            Self::Query(name, _) => format!("queryParams[{name}]"),
            Self::Source { net, .. } => format!("sourceCIDR {net}"),
        }
    }

    /// Returns the value by which requests are told apart, if any; `None` if the condition does not hold.
    pub(super) fn distinct<'a>(
        &self,
        request: &CountedRequest<'a>,
    ) -> Option<Option<Distinct<'a>>> {
        let head = &request.head;
        let holds = |holds: bool| holds.then_some(None);
        match self {
            Self::Header(HeaderKey::Name(name), ValueMatch::Distinct) => {
                let value = head.headers.get(name)?;
                Some(Some(Distinct::Text(value.as_bytes())))
            }
            Self::Header(_, ValueMatch::Distinct) => {
                Some(Some(Distinct::Text(head.host.as_bytes())))
            }
            // another spelling of a host reaches the same routes, and must not get around a limit
            Self::Header(HeaderKey::Host, ValueMatch::Matches(wanted, inverted)) => {
                let mut spellings = [head.authority, head.host].into_iter();
                holds(spellings.any(|host| wanted.matches(host.as_bytes())) != *inverted)
            }
            Self::Header(key, ValueMatch::Matches(wanted, inverted)) => {
                holds(key.any_line(head, |line| wanted.matches(line)) != *inverted)
            }
            Self::Methods(methods) => holds(
                methods
                    .iter()
                    .any(|(method, inverted)| (method == head.method) != *inverted),
            ),
            Self::Path(wanted, inverted) => holds(wanted.matches(head.path) != *inverted),
            Self::Query(name, ValueMatch::Distinct) => {
                let value = first_value(head.query, name)?;
                Some(Some(Distinct::Text(value.as_bytes())))
            }
            Self::Query(name, ValueMatch::Matches(wanted, inverted)) => {
                let value = first_value(head.query, name);
                let matches = value.is_some_and(|value| wanted.matches(value.as_bytes()));
                holds(matches != *inverted)
            }
            Self::Source { net, is_distinct } if net.contains(&request.client) => {
                Some(is_distinct.then_some(Distinct::Address(request.network)))
            }
            Self::Source { .. } => None,
        }
    }
}

impl PathMatch {
    fn matches(&self, path: &str) -> bool {
        match self {
            Self::Segments(segments) => path
                .strip_prefix(&**segments)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Self::Whole(wanted) => wanted.matches(path.as_bytes()),
        }
    }
}
