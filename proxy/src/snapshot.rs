//! The snapshot: the compiled configuration that requests read, immutable and replaced as a whole.
//!
//! A request keeps the rules of the snapshot that it began with, and reads all of its data without a lock. Contains the
//! compiled types of `route`, `filter` and `cluster`. Unchanged virtual hosts and clusters are shared with the previous
//! snapshot; routes refer to clusters by number, so that a change of endpoints leaves every route table as it is.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

mod authentication;
mod detected;
mod direction;
mod http_hosts;
mod intake;
mod listener_policies;
mod logging;
mod opaque_routes;
mod provider;
mod service;
mod tracing;
mod virtual_host;

pub use authentication::{Authentication, RuleKeys, TokenLocation, TokenRule};
pub use detected::{Awaited, Detected, MeshTls, TlsBytes};
pub use direction::Direction;
pub use http_hosts::{Addresses, DialedServices, HttpHosts};
pub use intake::Intake;
pub use listener_policies::ListenerPolicies;
pub use logging::Logging;
pub use opaque_routes::{Federated, OpaqueRoute, OpaqueRoutes};
pub use provider::{Provider, ServiceCluster};
pub use service::{Admits, Chain, Chains, Handling, Security, Service, Then};
pub use tracing::{Collector, CollectorHeader, SideTracing, TagFormats, Traced, Tracing};
pub use virtual_host::{Destination, INVALID_BACKEND, Mirror, Route, VirtualHost};

use crate::jwks::RemoteKeys;
use crate::runtime::latest::Slot;
use crate::telemetry::{MetricChanges, RequestTags};
use traffic::balance::HashKey;
use traffic::cluster::Cluster;
use traffic::filter::Node;
use traffic::provenance::Provenance;
use traffic::registry::{ClusterId, Moment};
use traffic::route::PathNormalization;

/// Minimum interval between lookups of a DNS name with a short TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Renewal {
    /// Look up again when the TTL ends.
    AtOnce,
    /// Look up less often: the name only belongs to gateways of remote clusters.
    Unhurried,
}

/// Identity of a listener across snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerKey {
    /// Configured address; for a listener of captured connections, the address that the client dialed.
    pub address: ListenAddress,
    /// Source of the connections.
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
    pub fn for_captured(intake: Intake, dialed: SocketAddr) -> Self {
        Self {
            address: ListenAddress::Ip(dialed),
            intake,
        }
    }

    /// Whether the listener has its own socket.
    pub fn has_socket(&self) -> bool {
        matches!(self.intake, Intake::Socket | Intake::TransparentSocket)
    }

    /// The key of the listener whose policy applies now to an inbound connection to `local` that this listener
    /// accepted; `None` if that is this one. The listener for all ports may have accepted it before its port had one.
    pub fn of_port(&self, local: SocketAddr) -> Option<Self> {
        let is_for_all = self.intake == Intake::CapturedInbound && self.address.port() == 0;
        is_for_all.then(|| Self::for_captured(self.intake, local))
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

/// Address of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddress {
    /// Bind address and port.
    Ip(SocketAddr),
    /// Path of a Unix socket; one that begins with `@` is in the abstract namespace.
    Unix(Arc<str>),
}

impl ListenAddress {
    /// Port; 0 for a Unix socket, as Gateways write it.
    pub fn port(&self) -> u16 {
        match self {
            Self::Ip(address) => address.port(),
            Self::Unix(_) => 0,
        }
    }

    /// IP address and port; `None` for a Unix socket.
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Local address to report for a connection; the loopback address for a Unix socket.
    pub fn ip_or_loopback(&self) -> SocketAddr {
        self.ip().unwrap_or(UNIX_PEER)
    }
}

/// Address that represents both ends of a connection on a Unix socket where an IP address is needed.
pub const UNIX_PEER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix://{path}"),
        }
    }
}

/// One listening address with the configuration of its connections and requests.
#[derive(Debug)]
pub struct Listener {
    /// Key of the listener, with the address to bind.
    pub key: Arc<ListenerKey>,
    /// Direction of its traffic.
    pub direction: Direction,
    /// The Gateway servers that the listener was compiled from, oldest first; at a sidecar, the Sidecar if there is
    /// one.
    pub provenance: Vec<Provenance>,
    /// Protocols of these servers as spelled in the Gateway, without duplicates.
    pub protocols: Vec<&'static str>,
    /// Whether connections begin with a PROXY header.
    pub proxy_protocol: ProxyHeader,
    /// Servers for this address that are not used.
    pub skipped: Vec<Skipped>,
    /// Security policies, if they are others than those of the proxy: some are attached to its Gateway.
    pub policies: Option<Arc<ListenerPolicies>>,
    /// Handling of its connections.
    pub service: Service,
}

/// Handling of PROXY protocol headers on a listener.
///
/// Source: annotation `strait.io/proxy-protocol` of the oldest Gateway of the address that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    /// Reads the header if there is one.
    Accept,
    /// Does not look for a header.
    #[default]
    Off,
    /// Closes connections without a header.
    Require,
}

/// A Gateway server that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The server.
    pub provenance: Provenance,
    /// The reason, in words.
    pub reason: String,
}

impl Listener {
    /// The virtual hosts for the requests of a connection; `None` if the connection does not carry HTTP.
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

    /// All virtual host tables: one for plain text, and one for each server that terminates TLS.
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

    /// Rules of raw TCP connections: those of the listener, and those of each server that passes bytes on; not those by the
    /// names of clusters.
    pub fn all_opaque(&self) -> impl Iterator<Item = &OpaqueRoutes> {
        let (plain, chains) = match &self.service {
            Service::Opaque(routes) => (Some(&**routes), &[][..]),
            Service::Tls(chains) => (None, &chains.chains[..]),
            _ => (None, &[][..]),
        };
        let inside = chains.iter().filter_map(|chain| match &chain.handling {
            Handling::Passthrough(routes)
            | Handling::Terminate {
                then: Then::Opaque(routes),
                ..
            } => Some(&**routes),
            Handling::AutoPassthrough(_) | Handling::Terminate { .. } => None,
        });
        plain.into_iter().chain(inside)
    }
}

/// A compiled configuration.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Number of this snapshot; increases by one with every snapshot that takes effect.
    pub generation: u64,
    /// Listeners by address. Few; looked up once per request.
    pub listeners: BTreeMap<ListenerKey, Arc<Listener>>,
    /// Security policies of listeners that have no others: of a sidecar for inbound traffic only.
    pub policies: ListenerPolicies,
    /// Whether a listener, or a removed one with open connections, has others.
    pub has_attached_policies: bool,
    /// Number of AuthorizationPolicies: enforced, in dry run, and denying because they were never valid.
    pub policy_counts: [u64; 3],
    /// Providers of external authorization that policies name, by name.
    pub providers: BTreeMap<Arc<str>, Provider>,
    /// Services whose hosts URLs of key sets name, by URL; some may not be known.
    pub key_set_services: BTreeMap<Arc<str>, ServiceCluster>,
    /// Service that counts rate limits over all proxies.
    pub rate_limit_service: Option<ServiceCluster>,
    /// Settings of tracing; `None` if no request is traced.
    pub tracing: Option<Box<Tracing>>,
    /// Access log by resources; `None` if only flags say what is logged.
    pub logging: Option<Box<Logging>>,
    /// Changes of Istio's metrics.
    pub metrics: MetricChanges,
    /// The proxy itself, for the access log.
    pub node: Arc<Node>,
    /// Whether raw TCP connections without a route have no line in the access log.
    pub hides_unrouted: bool,
    /// Normalization of the paths of requests.
    pub path_normalization: PathNormalization,
    /// Clusters by [`ClusterId`]; `None` for numbers that this snapshot does not use.
    pub clusters: Box<[Option<Arc<Cluster>>]>,
    /// Numbers that routes refer to and that have no cluster.
    pub missing: BTreeMap<ClusterId, Missing>,
    /// DNS names whose addresses are endpoints of this snapshot.
    pub dns_names: BTreeMap<Arc<str>, Renewal>,
    /// Listeners that were removed recently: their open connections are served to the end.
    pub retired: Retired,
}

/// The part of a destination that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The service.
    Cluster,
    /// The port of a known service.
    Port,
    /// The subset of a known service, with the hash key of the service.
    Subset(Option<HashKey>),
}

/// Listeners that were removed, with the clusters that only they use. They are not part of the configuration, so that
/// nothing is compiled from them.
#[derive(Debug, Default)]
pub struct Retired {
    /// The last version of each listener, and the time of its removal.
    listeners: BTreeMap<ListenerKey, (Arc<Listener>, Moment)>,
    clusters: BTreeMap<ClusterId, Arc<Cluster>>,
}

impl Snapshot {
    /// The cluster with this number, including clusters that only removed listeners use.
    pub fn cluster(&self, id: ClusterId) -> Option<&Arc<Cluster>> {
        let current = self.current_cluster(id);
        current.or_else(|| self.retired.clusters.get(&id))
    }

    /// The cluster with this number in the current configuration.
    pub fn current_cluster(&self, id: ClusterId) -> Option<&Arc<Cluster>> {
        self.clusters.get(id.0 as usize)?.as_ref()
    }

    /// The part of a request that is hashed for a destination. A missing subset has the hash key of its service.
    pub fn hash_key(&self, id: ClusterId) -> Option<&HashKey> {
        match (self.cluster(id), self.missing.get(&id)) {
            (Some(cluster), _) => cluster.hash_key(),
            (None, Some(Missing::Subset(key))) => key.as_ref(),
            (None, _) => None,
        }
    }

    /// Whether the cluster is missing because its service does not have the port.
    pub fn lacks_port(&self, id: ClusterId) -> bool {
        self.missing.get(&id) == Some(&Missing::Port)
    }

    /// The listener for the requests of a connection to `local` that was accepted on `key`. If that listener is gone,
    /// the one that would accept the connection today: a Gateway that changes from all addresses to one, or back,
    /// disturbs no connected client.
    pub fn listener(&self, key: &ListenerKey, local: SocketAddr) -> Option<&Arc<Listener>> {
        let here = self.listeners.get(key);
        here.or_else(|| self.successor(key, local))
            .or_else(|| Some(&self.retired.listeners.get(key)?.0))
    }

    /// The direction of the requests of a connection to `local` that was accepted on `key`, if resources say what is logged, or
    /// read requests for metrics or spans.
    pub fn logged_direction(&self, key: &ListenerKey, local: SocketAddr) -> Option<Direction> {
        let has_formats = self.tracing.as_ref().is_some_and(|one| one.has_formats());
        if self.logging.is_none() && !self.metrics.has_tags() && !has_formats {
            return None;
        }
        Some(self.listener(key, local)?.direction)
    }

    /// Labels of metrics with values of requests, for traffic in this direction.
    pub fn request_tags(&self, direction: Direction) -> Option<&Arc<RequestTags>> {
        self.metrics.tags(direction.reporter())
    }

    /// Custom tags with operators of spans of traffic in this direction.
    pub fn tag_formats(&self, direction: Direction) -> Option<&TagFormats> {
        self.tracing.as_ref()?.side(direction)?.formats.as_deref()
    }

    /// The policies for the traffic of a listener; `None` if none apply.
    pub fn policies_of<'s>(&'s self, listener: &'s Listener) -> Option<&'s ListenerPolicies> {
        let policies = listener.policies.as_deref().unwrap_or(&self.policies);
        (!policies.is_empty() && listener.direction.is_judged()).then_some(policies)
    }

    /// The policies for the requests of a connection to `local` that was accepted on `key`; `None` if none apply.
    pub fn policies_at(&self, key: &ListenerKey, local: SocketAddr) -> Option<&ListenerPolicies> {
        if self.policies.is_empty() && !self.has_attached_policies {
            return None;
        }
        self.policies_of(self.listener(key, local)?)
    }

    /// The settings of tracing for the requests of a connection to `local` that was accepted on `key`; `None` if they
    /// are not traced.
    pub fn tracing_at(&self, key: &ListenerKey, local: SocketAddr) -> Option<Traced<'_>> {
        let tracing = self.tracing.as_deref()?;
        tracing.of(self.listener(key, local)?.direction)
    }

    /// The policies of the proxy, and those of listeners that have others.
    pub fn all_policies(&self) -> impl Iterator<Item = (Option<&ListenerKey>, &ListenerPolicies)> {
        let own = self.listeners.iter();
        let own = own.filter_map(|(key, one)| Some((Some(key), one.policies.as_deref()?)));
        [(None, &self.policies)].into_iter().chain(own)
    }

    /// The key sets of issuers, each URL once, with the longest time limit.
    pub fn key_sets(&self) -> impl Iterator<Item = &Arc<RemoteKeys>> {
        let all = self.all_policies();
        let all = all.flat_map(|(_, one)| one.authentication.iter());
        let mut by_url: BTreeMap<&str, &Arc<RemoteKeys>> = BTreeMap::new();
        for keys in all.flat_map(|one| &one.remote) {
            let known = by_url.entry(&keys.url).or_insert(keys);
            if keys.timeout > known.timeout {
                *known = keys;
            }
        }
        by_url.into_values()
    }

    /// The service that serves the key set at a URL, if it is a known one.
    pub fn key_set_service(&self, url: &str) -> Option<&ServiceCluster> {
        let service = self.key_set_services.get(url)?;
        self.cluster(service.cluster)?;
        Some(service)
    }

    /// The provider of external authorization with this name, if its service is known.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        let provider = self.providers.get(name)?;
        self.cluster(provider.service.cluster)?;
        Some(provider)
    }

    /// The listeners that have their own socket.
    pub fn sockets(&self) -> impl Iterator<Item = &ListenerKey> {
        self.listeners.keys().filter(|key| key.has_socket())
    }

    /// The listener for captured connections to `dialed`: by address and port, else by port, else the catch-all.
    pub fn captured_listener(&self, intake: Intake, dialed: SocketAddr) -> Option<&Arc<Listener>> {
        let dialed = SocketAddr::new(dialed.ip().to_canonical(), dialed.port());
        let all = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let of_port = SocketAddr::new(all, dialed.port());
        let candidates = [dialed, of_port, SocketAddr::new(all, 0)];
        let mut keys = candidates
            .map(|one| ListenerKey::for_captured(intake, one))
            .into_iter();
        keys.find_map(|key| self.listeners.get(&key))
    }

    /// The listener for requests to the HTTP proxy of a sidecar that name this port; else the catch-all.
    pub fn proxied(&self, port: u16) -> Option<&Arc<Listener>> {
        let named = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
        self.captured_listener(Intake::HttpProxy, named)
    }

    /// Keeps removed listeners of the previous snapshot for open connections, each for `time` from its removal, with
    /// their clusters. Clusters that the current configuration has, or reports as missing, are not kept.
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
        let mut retired = self.retired.listeners.values();
        self.has_attached_policies |= retired.any(|(listener, _)| listener.policies.is_some());
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
            return self.captured_listener(key.intake, local);
        }
        let port = key.address.ip()?.port();
        let all = [
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ];
        // the local address of a PROXY header need not be an address of the proxy
        let own = (local.port() == port).then_some(local.ip());
        let addresses = own.into_iter().chain(all);
        let mut successors = addresses.map(|ip| ListenerKey::from(SocketAddr::new(ip, port)));
        successors.find_map(|successor| self.listeners.get(&successor))
    }
}

/// The place where snapshots are published; workers read it through `arc_swap::Cache`.
pub type SnapshotSlot = Slot<Snapshot>;
