//! What requests read: the compiled configuration, immutable and swapped as a whole.
//!
//! A request keeps the rules of the snapshot that it began with; everything that it decides by is reachable without a lock.
//! Gathers the compiled types of `route`, `filter` and `cluster`. Virtual hosts and clusters are shared with
//! the snapshot before where nothing of them changed; routes name clusters by number, so that a change of endpoints
//! leaves every route table as it is.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

mod detected;
mod direction;
mod http_hosts;
mod intake;
mod opaque_routes;
mod service;
mod virtual_host;

pub use detected::{Awaited, Detected, MeshTls, TlsBytes};
pub use direction::Direction;
pub use http_hosts::{Addresses, HttpHosts};
pub use intake::Intake;
pub use opaque_routes::{Federated, OpaqueRoute, OpaqueRoutes};
pub use service::{Admits, Chain, Chains, Handling, Security, Service, Then};
pub use virtual_host::{Destination, Route, VirtualHost};

use crate::balance::HashKey;
use crate::cluster::Cluster;
use crate::provenance::Provenance;
use crate::registry::{ClusterId, Moment};

/// How soon the addresses of a DNS name are looked up again whose lifetime is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Renewal {
    /// When it is over.
    AtOnce,
    /// Not so soon: only gateways of other clusters have the name.
    Unhurried,
}

/// What a listener takes; its identity across snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerKey {
    /// Where, as configured. Of a listener for captured connections: what the client dialed.
    pub address: ListenAddress,
    /// How connections get there.
    pub intake: Intake,
}

impl From<SocketAddr> for ListenerKey {
    fn from(address: SocketAddr) -> Self {
        ListenAddress::Ip(address).into()
    }
}

impl From<ListenAddress> for ListenerKey {
    fn from(address: ListenAddress) -> Self {
        Self {
            address,
            intake: Intake::Socket,
        }
    }
}

impl ListenerKey {
    /// The key of the listener for captured connections to `dialed`.
    pub fn captured(intake: Intake, dialed: SocketAddr) -> Self {
        Self {
            address: ListenAddress::Ip(dialed),
            intake,
        }
    }

    /// Whether a socket is open for it.
    pub fn has_socket(&self) -> bool {
        matches!(self.intake, Intake::Socket | Intake::TransparentSocket)
    }
}

impl fmt::Display for ListenerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.has_socket() {
            write!(f, "{} ", self.intake.name())?;
        }
        write!(f, "{}", self.address)
    }
}

/// Where a listener accepts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddress {
    /// Bind address and port.
    Ip(SocketAddr),
    /// Path of a Unix socket; one that begins with `@` is in the abstract namespace.
    Unix(Arc<str>),
}

impl ListenAddress {
    /// The port; 0 for a Unix socket, as Gateways write it.
    pub fn port(&self) -> u16 {
        match self {
            Self::Ip(address) => address.port(),
            Self::Unix(_) => 0,
        }
    }

    /// The IP address; none for a Unix socket.
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// What represents our address on a connection: a Unix socket has none, and is on this machine.
    pub fn ip_or_loopback(&self) -> SocketAddr {
        self.ip().unwrap_or(UNIX_PEER)
    }
}

/// The address that represents both ends of a connection on a Unix socket, where one is needed: the peer is on this
/// machine.
pub const UNIX_PEER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix://{path}"),
        }
    }
}

/// One accepting address with everything that its connections and requests are routed by.
#[derive(Debug)]
pub struct Listener {
    /// Address to bind.
    pub key: Arc<ListenerKey>,
    /// Whose traffic it takes.
    pub direction: Direction,
    /// The Gateway servers that this listener was made from, oldest first; of a sidecar, the Sidecar if there is one.
    pub provenance: Vec<Provenance>,
    /// Protocols of these servers as Gateway spells them, each once.
    pub protocols: Vec<&'static str>,
    /// Whether connections begin with a PROXY header.
    pub proxy_protocol: ProxyHeader,
    /// Servers that wanted this address and did not get it.
    pub skipped: Vec<Skipped>,
    /// What its connections are.
    pub service: Service,
}

/// Whether the connections of a listener begin with the header of the PROXY protocol.
///
/// Source: annotation `strait.io/proxy-protocol` of the oldest Gateway of the address that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    /// It is taken if it is there.
    Accept,
    /// It is not looked for.
    #[default]
    Off,
    /// A connection without it is closed.
    Require,
}

/// A server that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The server.
    pub provenance: Provenance,
    /// Why, in words.
    pub reason: String,
}

impl Listener {
    /// The virtual hosts that serve the requests of a connection, if it is one that carries requests.
    pub fn http(&self, security: Security<'_>) -> Option<&Arc<HttpHosts>> {
        match (&self.service, security) {
            (Service::Http(hosts), Security::Plain) => Some(hosts),
            (Service::Detected(detected), _) => detected.http.as_ref(),
            (Service::Tls(chains), Security::Tls(sni)) => match &chains.find(sni)?.handling {
                Handling::Terminate {
                    then: Then::Http(hosts),
                    ..
                } => Some(hosts),
                _ => None,
            },
            _ => None,
        }
    }

    /// The tables of virtual hosts: one in plain text, one for each server with TLS that ends here.
    pub fn all_http(&self) -> impl Iterator<Item = &Arc<HttpHosts>> {
        let (plain, chains) = match &self.service {
            Service::Http(hosts) => (Some(hosts), &[][..]),
            Service::Detected(detected) => (detected.http.as_ref(), &[][..]),
            Service::Captured(_) | Service::HttpProxy | Service::Opaque(_) => (None, &[][..]),
            Service::Tls(chains) => (None, &chains.chains[..]),
        };
        let inside = chains.iter().filter_map(|chain| match &chain.handling {
            Handling::Terminate {
                then: Then::Http(hosts),
                ..
            } => Some(hosts),
            _ => None,
        });
        plain.into_iter().chain(inside)
    }
}

/// A compiled configuration.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Number of this snapshot; rises by one with every snapshot that is put into effect.
    pub generation: u64,
    /// Listeners by address. Few; looked up once per request.
    pub listeners: BTreeMap<ListenerKey, Arc<Listener>>,
    /// Clusters by [`ClusterId`]; `None` where the number is not in use by this snapshot.
    pub clusters: Box<[Option<Arc<Cluster>>]>,
    /// Numbers that routes name and under which there is no cluster.
    pub missing: BTreeMap<ClusterId, Missing>,
    /// DNS names whose addresses are endpoints of this snapshot.
    pub dns_names: BTreeMap<Arc<str>, Renewal>,
    /// Listeners that went away recently: connections that they accepted are served to their end.
    pub retired: Retired,
}

/// The part of a destination that no resource describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The service.
    Cluster,
    /// The port of a known service.
    Port,
    /// The subset of a known service, with what is hashed of requests for the service.
    Subset(Option<HashKey>),
}

/// Listeners that accept no more, with the clusters that no listener in effect names. They are no part of what the
/// resources describe, so that nothing is compiled from them.
#[derive(Debug, Default)]
pub struct Retired {
    /// Each as it was last, and when it went away.
    listeners: BTreeMap<ListenerKey, (Arc<Listener>, Moment)>,
    clusters: BTreeMap<ClusterId, Arc<Cluster>>,
}

impl Snapshot {
    /// The cluster with this number, if this snapshot has it; also one that only listeners lead to that went away.
    pub fn cluster(&self, id: ClusterId) -> Option<&Arc<Cluster>> {
        let current = self.current_cluster(id);
        current.or_else(|| self.retired.clusters.get(&id))
    }

    /// The cluster with this number, as the resources in effect describe it.
    pub fn current_cluster(&self, id: ClusterId) -> Option<&Arc<Cluster>> {
        self.clusters.get(id.0 as usize)?.as_ref()
    }

    /// The part that is hashed of requests for a destination with this number. Without such a subset, it is as for the service.
    pub fn hash_key(&self, id: ClusterId) -> Option<&HashKey> {
        match (self.cluster(id), self.missing.get(&id)) {
            (Some(cluster), _) => cluster.hash_key(),
            (None, Some(Missing::Subset(key))) => key.as_ref(),
            (None, _) => None,
        }
    }

    /// Whether there is no cluster with this number because its service does not have the port.
    pub fn lacks_port(&self, id: ClusterId) -> bool {
        self.missing.get(&id) == Some(&Missing::Port)
    }

    /// The listener that a connection to `local`, accepted on `key`, belongs to now: where that one is gone, the one
    /// that would accept it today. A Gateway that goes from all addresses to one, or back, disturbs no client that is
    /// connected.
    pub fn listener(&self, key: &ListenerKey, local: SocketAddr) -> Option<&Arc<Listener>> {
        let here = self.listeners.get(key);
        here.or_else(|| self.successor(key, local))
            .or_else(|| Some(&self.retired.listeners.get(key)?.0))
    }

    /// The listeners that a socket is open for.
    pub fn sockets(&self) -> impl Iterator<Item = &ListenerKey> {
        self.listeners.keys().filter(|key| key.has_socket())
    }

    /// The listener for captured connections to `dialed`: that of the address and port, else that of the port, else that
    /// of everything.
    pub fn captured(&self, intake: Intake, dialed: SocketAddr) -> Option<&Arc<Listener>> {
        let dialed = SocketAddr::new(dialed.ip().to_canonical(), dialed.port());
        let all = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let of_port = SocketAddr::new(all, dialed.port());
        let candidates = [dialed, of_port, SocketAddr::new(all, 0)];
        let mut keys = candidates
            .map(|one| ListenerKey::captured(intake, one))
            .into_iter();
        keys.find_map(|key| self.listeners.get(&key))
    }

    /// The listener for requests to the HTTP proxy of a sidecar that name this port: that of the port, else that of everything.
    pub fn proxied(&self, port: u16) -> Option<&Arc<Listener>> {
        let named = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
        self.captured(Intake::HttpProxy, named)
    }

    /// Keeps what the snapshot before had and this one does not, for connections that are open: each listener for this
    /// long from when it went away. A cluster that a listener in effect names is what resources say now, or missing.
    pub fn retire(&mut self, previous: &Snapshot, now: Moment, time: Duration) {
        let gone = previous.listeners.iter();
        let gone = gone.map(|(key, listener)| (key, listener, now));
        let before = previous.retired.listeners.iter();
        let before = before.map(|(key, (listener, since))| (key, listener, *since));
        for (key, listener, since) in gone.chain(before) {
            if now.since(since) < time && !self.listeners.contains_key(key) {
                let retired = self.retired.listeners.entry(key.clone());
                retired.or_insert_with(|| (Arc::clone(listener), since));
            }
        }
        if self.retired.listeners.is_empty() {
            return;
        }
        let before = previous.clusters.iter().flatten();
        for cluster in before.chain(previous.retired.clusters.values()) {
            let id = cluster.id();
            if self.current_cluster(id).is_none() && !self.missing.contains_key(&id) {
                self.retired.clusters.insert(id, Arc::clone(cluster));
            }
        }
    }

    #[cold]
    fn successor(&self, key: &ListenerKey, local: SocketAddr) -> Option<&Arc<Listener>> {
        if !key.has_socket() {
            return self.captured(key.intake, local);
        }
        let port = key.address.ip()?.port();
        let all = [
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ];
        // what a PROXY header says of our address need not be one of ours
        let own = (local.port() == port).then_some(local.ip());
        let addresses = own.into_iter().chain(all);
        let mut successors = addresses.map(|ip| ListenerKey::from(SocketAddr::new(ip, port)));
        successors.find_map(|successor| self.listeners.get(&successor))
    }
}

/// The one place that a snapshot is published to; workers read it through `arc_swap::Cache`.
pub type SnapshotSlot = Arc<ArcSwap<Snapshot>>;
