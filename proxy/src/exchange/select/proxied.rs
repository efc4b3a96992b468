//! Requests of clients that use the sidecar as their HTTP proxy: the host and port that they name, and its address.

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
use crate::registry::Address;
use crate::route::normalize_host;
use crate::snapshot::{ListenerKey, Service, Snapshot};

/// How names are resolved that no resource has: the addresses, and how long they may be used.
pub type ResolveName = Arc<dyn Fn(Arc<str>) -> Resolving + Send + Sync>;

/// A name that is being resolved.
pub type Resolving = Pin<Box<dyn Future<Output = Result<(Vec<IpAddr>, Duration), String>> + Send>>;

/// Most names whose addresses a worker remembers. Beyond it, it forgets all of them.
pub const NAMES_MAX: usize = 1024;

/// Longest time that a name may take to be resolved.
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The host and port that a client of the HTTP proxy names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHost {
    /// In lower case, without brackets around an IPv6 address.
    pub name: Box<str>,
    /// The port; that of HTTP for a request that names none.
    pub port: u16,
}

impl NamedHost {
    /// The host of a request's authority.
    ///
    /// # Errors
    ///
    /// The reply for a request that names no host or no port that can be dialed, or whose URL is an https one.
    pub fn of_request<B>(request: &Request<B>, authority: &str) -> Result<Self, LocalReply> {
        let is_absolute = request.version() < Version::HTTP_2;
        if is_absolute && request.uri().scheme() == Some(&Scheme::HTTPS) {
            return Err(LocalReply::HTTPS_WITHOUT_CONNECT);
        }
        Self::parse(authority, Some(HTTP_PORT)).ok_or(LocalReply::BAD_URL)
    }

    /// The host and port that CONNECT names.
    ///
    /// # Errors
    ///
    /// The reply for a request that names none.
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

    /// The address, where the client names one.
    pub fn literal(&self) -> Option<IpAddr> {
        self.name.parse().ok().map(|ip: IpAddr| ip.to_canonical())
    }

    /// The address to dial for it: the one that it is, or that its name leads to.
    ///
    /// # Errors
    ///
    /// The reply for a name without address, and for an address of the proxy itself.
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
        match is_own(address, (snapshot, names)) {
            true => Err(LocalReply::PROXY_ITSELF),
            false => Ok(address),
        }
    }
}

/// The port of requests that name none.
const HTTP_PORT: u16 = 80;

/// Whether a connection to this address would come back to one of our listeners, or to the admin server, which trusts
/// everyone who reaches it.
fn is_own(address: SocketAddr, (snapshot, names): (&Snapshot, &Names)) -> bool {
    let listeners = snapshot.sockets().filter_map(|key| key.address.ip());
    let mut ours = listeners.chain(names.private.iter().copied());
    ours.any(|own| overlap(own, address)) && is_local(address.ip())
}

/// Whether an endpoint is the HTTP proxy itself, at an address of this machine that the configuration does not tell: a
/// request would come back, and go there again.
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

/// Whether this machine has the address: only then can a socket have it. Asked only for ports of our own.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

/// Names that clients of a worker named, with their addresses.
pub struct Names {
    resolve: Option<ResolveName>,
    /// Addresses of the proxy that are not those of listeners.
    private: Arc<[SocketAddr]>,
    known: RefCell<HashMap<Box<str>, (IpAddr, Instant)>>,
}

impl Names {
    /// Knows none yet. Without a way to resolve names, none has an address.
    pub fn new(resolve: Option<ResolveName>, private: Arc<[SocketAddr]>) -> Self {
        Self {
            resolve,
            private,
            known: RefCell::default(),
        }
    }

    /// The address of a name: the first of IPv4, else the first.
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
        // TEST-NET-1 is on no machine
        assert!(!is_local(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
