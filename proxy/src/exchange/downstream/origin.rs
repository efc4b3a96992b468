//! The client and scheme of a request: the one place that decides which headers to trust.
//!
//! Everything in a request's head is the client's own claim. Two things are not: the address of the connection's peer,
//! and what the trusted proxies in front of this one added (`--trusted-hops`).

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HeaderMap, HeaderName};
use ipnet::IpNet;

use crate::exchange::downstream::connection::Connection;
use crate::filter::Scheme;

/// Addresses of everyone on the way, the last hop last.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Scheme that the client used.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Most entries of `x-forwarded-for` that are looked at, from the right.
pub const TRUSTED_HOPS_MAX: u8 = 32;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Scheme that the client used.
    pub scheme: Scheme,
    /// Address of the client: the peer's, or what trusted hops say of it, then with port 0.
    pub client: SocketAddr,
}

/// Trust in the headers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Whether the request comes straight from an internal address, so that its `x-envoy-` controls count.
    pub internal: bool,
    /// Whether there are such controls among the headers that are left; those of others are removed unread.
    pub controls: bool,
    /// Whether another cluster sent it here.
    pub from_cluster: bool,
}

impl Origin {
    /// The origin of a request that passed this many trusted proxies.
    ///
    /// The client's address is the entry `trusted_hops` + 1 from the right of what `x-forwarded-for` becomes here; a list
    /// that is too short, or holds something else there, leaves the peer's. A gateway appends the peer, so that with no
    /// trusted hops it looks at nothing of the head. A sidecar passes the list and `x-forwarded-proto` on as they are.
    pub fn of(
        connection: &Connection,
        (trusted_hops, is_sidecar): (usize, bool),
        headers: &HeaderMap,
    ) -> Self {
        let mut origin = Self {
            scheme: connection.scheme(),
            client: connection.client.source,
        };
        if (trusted_hops > 0 || is_sidecar)
            && let Some(scheme) = forwarded_scheme(headers)
        {
            origin.scheme = scheme;
        }
        let place = trusted_hops + usize::from(is_sidecar);
        if place > 0
            && let Some(client) = entry_from_the_right(headers, place)
        {
            origin.client = SocketAddr::new(client, 0);
        }
        origin
    }
}

/// Most networks of `--internal-addresses`.
pub const INTERNAL_ADDRESSES_MAX: usize = 64;

/// Networks whose clients are internal: the proxy believes their request controls and request ids.
///
/// Default: none, as Envoy has it since 1.33 and Istio. Scope: process. Source: `--internal-addresses`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InternalAddresses(Box<[IpNet]>);

impl FromIterator<IpNet> for InternalAddresses {
    fn from_iter<T: IntoIterator<Item = IpNet>>(networks: T) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl InternalAddresses {
    /// Whether a request is internal: its connection comes from one of the networks, and no other hop was before that
    /// one (`passed_on`).
    pub fn include(&self, connection: &Connection, passed_on: bool) -> bool {
        !passed_on && !self.0.is_empty() && self.contain(connection.client.source.ip())
    }

    fn contain(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|network| network.contains(&ip))
    }
}

/// The scheme that the last hop reports, if it is valid.
fn forwarded_scheme(headers: &HeaderMap) -> Option<Scheme> {
    let mut lines = headers.get_all(X_FORWARDED_PROTO).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        // as in Envoy, two claims are none
        return None;
    };
    match line.as_bytes() {
        text if text.eq_ignore_ascii_case(b"https") => Some(Scheme::Https),
        text if text.eq_ignore_ascii_case(b"http") => Some(Scheme::Http),
        _ => None,
    }
}

/// The address at this place of `x-forwarded-for`, counted from 1 at its right end.
fn entry_from_the_right(headers: &HeaderMap, place: usize) -> Option<IpAddr> {
    let lines = headers.get_all(X_FORWARDED_FOR).iter();
    let entries = lines
        .rev()
        .flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
    let entry = entries
        .take(usize::from(TRUSTED_HOPS_MAX) + 1)
        .nth(place - 1)?;
    std::str::from_utf8(entry.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
