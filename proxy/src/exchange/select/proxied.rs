//! Hosts and ports named by clients that use the sidecar as their HTTP proxy, and their addresses.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::Version;
use http::uri::Scheme;
use hyper::Request;
use tokio::time::Instant;

use crate::exchange::message::local_reply::LocalReply;
use crate::identity::overlap;
use crate::snapshot::{ListenerKey, Service, Snapshot};
use traffic::registry::Address;
use traffic::route::normalize_host;

/// Resolver for names without a resource: returns the addresses, and how long they may be cached.
pub type ResolveName = Arc<dyn Fn(Arc<str>) -> Resolving + Send + Sync>;

/// A pending lookup.
pub type Resolving = Pin<Box<dyn Future<Output = Result<(Vec<IpAddr>, Duration), String>> + Send>>;

/// Maximum number of names whose addresses a worker caches; beyond it, the cache is cleared.
pub const NAMES_MAX: usize = 1024;

/// Timeout of a lookup.
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Host and port named by a client of the HTTP proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHost {
    /// Host in lower case, without brackets around an IPv6 address.
    pub name: Box<str>,
    /// Port; 80 for a request without one.
    pub port: u16,
}

impl NamedHost {
    /// Parses the host of a request's authority.
    ///
    /// # Errors
    ///
    /// The reply for a request without a host or with an invalid port, or with an https URL.
    pub fn of_request<B>(request: &Request<B>, authority: &str) -> Result<Self, LocalReply> {
        let is_absolute = request.version() < Version::HTTP_2;
        if is_absolute && request.uri().scheme() == Some(&Scheme::HTTPS) {
            return Err(LocalReply::HTTPS_WITHOUT_CONNECT);
        }
        Self::parse(authority, Some(HTTP_PORT)).ok_or(LocalReply::BAD_URL)
    }

    /// Parses the host and port of a CONNECT.
    ///
    /// # Errors
    ///
    /// The reply for a request without them.
    pub fn of_connect<B>(request: &Request<B>) -> Result<Self, LocalReply> {
        let authority = request.uri().authority();
        let named = authority.and_then(|authority| Self::parse(authority.as_str(), None));
        named.ok_or(LocalReply::BAD_CONNECT)
    }

    fn parse(authority: &str, default: Option<u16>) -> Option<Self> {
        let host = normalize_host(authority);
        let digits = authority.rsplit_once(':').map(|(_, after)| after);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let port = match digits {
            Some("") | None => default?,
            Some(digits) => digits.parse().ok().filter(|port| *port != 0)?,
        };
        let bare = host.strip_prefix('[');
        let bare = bare.and_then(|rest| rest.strip_suffix(']'));
        let name = bare.unwrap_or(&host);
        (!name.is_empty()).then(|| Self {
            name: name.into(),
            port,
        })
    }

    /// The address, if the host is an IP address.
    pub fn literal(&self) -> Option<IpAddr> {
        self.name.parse().ok().map(|ip: IpAddr| ip.to_canonical())
    }

    /// The address to dial: the host itself, or the address that its name resolves to.
    ///
    /// # Errors
    ///
    /// The reply for a name without an address, and for an address of the proxy itself.
    pub async fn address(
        &self,
        names: &Names,
        snapshot: &Snapshot,
    ) -> Result<SocketAddr, LocalReply> {
        let ip = match self.literal() {
            Some(ip) => ip,
            None => names.resolve(&self.name).await?,
        };
        let address = SocketAddr::new(ip, self.port);
        match is_own(address, snapshot, names) {
            true => Err(LocalReply::PROXY_ITSELF),
            false => Ok(address),
        }
    }
}

/// Default port of requests.
const HTTP_PORT: u16 = 80;

/// Whether a connection to this address would reach a listener of the proxy, or the admin server, which trusts everyone
/// who reaches it.
fn is_own(address: SocketAddr, snapshot: &Snapshot, names: &Names) -> bool {
    let listeners = snapshot.sockets().filter_map(|key| key.address.ip());
    let mut ours = listeners.chain(names.private.iter().copied());
    ours.any(|own| overlap(own, address)) && is_local(address.ip())
}

/// Whether an endpoint is the HTTP proxy itself, at a local address that the configuration does not contain: the
/// request would loop.
pub fn is_loop(endpoint: &Address, snapshot: &Snapshot) -> bool {
    let Some(address) = endpoint.socket() else {
        return false;
    };
    let takes = |key: &&ListenerKey| {
        let own = key.address.ip();
        own.is_some_and(|own| overlap(own, address))
    };
    let mut ours = snapshot.sockets().filter(takes);
    let is_proxy = |key: &ListenerKey| {
        let listener = snapshot.listeners.get(key);
        listener.is_some_and(|listener| matches!(listener.service, Service::HttpProxy))
    };
    ours.any(is_proxy) && is_local(address.ip())
}

/// Whether the address belongs to this machine: only then can a socket be bound to it. Called only for the proxy's
/// ports.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

/// Cache of the addresses of names, per worker.
pub struct Names {
    resolve: Option<ResolveName>,
    /// Addresses of the proxy besides its listeners.
    private: Arc<[SocketAddr]>,
    known: RefCell<HashMap<Box<str>, (IpAddr, Instant)>>,
}

impl Names {
    /// Creates an empty cache. Without a resolver, no name has an address.
    pub fn new(resolve: Option<ResolveName>, private: Arc<[SocketAddr]>) -> Self {
        Self {
            resolve,
            private,
            known: RefCell::default(),
        }
    }

    /// Resolves a name to the first IPv4 address, else the first address.
    async fn resolve(&self, name: &str) -> Result<IpAddr, LocalReply> {
        let now = Instant::now();
        if let Some((ip, until)) = self.known.borrow().get(name)
            && now < *until
        {
            return Ok(*ip);
        }
        let resolve = self.resolve.as_ref().ok_or(LocalReply::NO_ADDRESS)?;
        let found = tokio::time::timeout(RESOLVE_TIMEOUT, resolve(name.into())).await;
        let (addresses, ttl) = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::debug!(name, error, "cannot resolve the name that a client named");
                return Err(LocalReply::NO_ADDRESS);
            }
            Err(_) => return Err(LocalReply::NO_ADDRESS),
        };
        let v4 = addresses.iter().find(|ip| ip.is_ipv4());
        let ip = *v4.or(addresses.first()).ok_or(LocalReply::NO_ADDRESS)?;
        let mut known = self.known.borrow_mut();
        if known.len() >= NAMES_MAX {
            known.clear();
        }
        known.insert(name.into(), (ip, now + ttl));
        Ok(ip)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn named(authority: &str, default: Option<u16>) -> Option<(String, u16)> {
        let named = NamedHost::parse(authority, default)?;
        Some((named.name.into(), named.port))
    }

    #[test]
    fn host_and_port_come_from_the_authority() {
        for (authority, default, expected) in [
            ("a.test", Some(80), Some(("a.test", 80))),
            ("A.Test.:8080", Some(80), Some(("a.test", 8080))),
            ("a.test:", Some(80), Some(("a.test", 80))),
            ("a.test", None, None),
            ("a.test:0", None, None),
            ("a.test:65536", None, None),
            ("[::1]:443", None, Some(("::1", 443))),
            ("[::1]", Some(80), Some(("::1", 80))),
            ("10.0.0.1:443", None, Some(("10.0.0.1", 443))),
            (":80", None, None),
        ] {
            let expected = expected.map(|(name, port)| (name.to_owned(), port));
            assert_eq!(named(authority, default), expected, "{authority}");
        }
    }

    #[test]
    fn only_local_addresses_are_our_own() {
        assert!(is_local(Ipv4Addr::LOCALHOST.into()));
        assert!(is_local(Ipv6Addr::UNSPECIFIED.into()));
        // no machine has an address of TEST-NET-1
        assert!(!is_local(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
