//! The client address and scheme of a request: the only place that decides which headers to trust.
//!
//! Everything in a request's head may be forged by the client, except what the trusted proxies in front of this one
//! added (`--trusted-hops`). The address of the connection's peer is always known.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HeaderMap, HeaderName};
use ipnet::IpNet;

use crate::exchange::downstream::connection::Connection;
use traffic::filter::Scheme;

/// Addresses of all hops, the last hop last.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Scheme of the client.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Maximum number of `x-forwarded-for` entries that are read, from the right.
pub const TRUSTED_HOPS_MAX: u8 = 32;

/// Client address and scheme of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Scheme of the client.
    pub scheme: Scheme,
    /// Address of the client: the peer's, or the one reported by trusted hops, with port 0.
    pub client: SocketAddr,
}

/// Trust in the headers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Whether the request comes directly from an internal address, so that its `x-envoy-` controls apply.
    pub internal: bool,
    /// Whether the remaining headers contain such controls; those of other clients are removed unread.
    pub controls: bool,
    /// Whether another cluster sent the request.
    pub from_cluster: bool,
}

impl Origin {
    /// Determines the origin of a request that passed `trusted_hops` trusted proxies.
    ///
    /// The client's address is entry `trusted_hops` + 1 from the right of the `x-forwarded-for` that the proxy sends;
    /// the peer's address if the list is too short or the entry is no address. A gateway appends the peer, so that
    /// without trusted hops it reads nothing of the head. A sidecar forwards the list and `x-forwarded-proto`
    /// unchanged.
    pub fn of(
        connection: &Connection,
        trusted_hops: usize,
        is_sidecar: bool,
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

/// Maximum number of networks in `--internal-addresses`.
pub const INTERNAL_ADDRESSES_MAX: usize = 64;

/// Networks whose clients are internal: the proxy trusts their request controls and request ids.
///
/// Default: none, like Envoy since 1.33 and Istio. Scope: process. Source: `--internal-addresses`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InternalAddresses(Box<[IpNet]>);

impl FromIterator<IpNet> for InternalAddresses {
    fn from_iter<T: IntoIterator<Item = IpNet>>(networks: T) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl InternalAddresses {
    /// Whether a request is internal: its connection comes from one of the networks, and no other hop came before
    /// (`passed_on`).
    pub fn include(&self, connection: &Connection, passed_on: bool) -> bool {
        !passed_on && !self.0.is_empty() && self.contain(connection.client.source.ip())
    }

    fn contain(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|network| network.contains(&ip))
    }
}

/// Scheme reported by the last hop, if it is valid.
fn forwarded_scheme(headers: &HeaderMap) -> Option<Scheme> {
    let mut lines = headers.get_all(X_FORWARDED_PROTO).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        // like Envoy, ignores the header if it is repeated
        return None;
    };
    match line.as_bytes() {
        text if text.eq_ignore_ascii_case(b"https") => Some(Scheme::Https),
        text if text.eq_ignore_ascii_case(b"http") => Some(Scheme::Http),
        _ => None,
    }
}

/// The address at this position of `x-forwarded-for`, counted from 1 at the right end.
fn entry_from_the_right(headers: &HeaderMap, place: usize) -> Option<IpAddr> {
    let lines = headers.get_all(X_FORWARDED_FOR).iter();
    // an empty line adds no entry, as where lines are joined
    let lines = lines.filter(|line| !line.as_bytes().trim_ascii().is_empty());
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
