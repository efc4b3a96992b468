//! Runtime state that outlives snapshots, by identity of endpoints, clusters and names.
//!
//! Requests use only the atomics behind the `Arc`s that compile() put into the snapshot. The maps here are read and
//! written by the control thread when the configuration changes. Imports nothing above row 0.

mod affinity_table;
mod buckets;
mod checked;
mod cluster;
mod connection_permits;
mod connections;
mod events;
mod health;
mod journal;
mod moment;
mod permits;
mod recent;
mod tally;

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use dashmap::DashMap;

pub use affinity_table::{
    AFFINITY_ENTRIES_MAX, AffinityEntry, AffinityTable, EndpointNumber, Visit,
};
pub use buckets::{BUCKETS_MAX, Buckets, Exhausted, Rate, Taken, Time};
pub use checked::{CheckResult, Checked, Thresholds};
pub use cluster::{
    AvailabilityChanges, CURSORS, ClusterId, ClusterState, Cursor, EjectionLock, Ejections,
};
pub use connection_permits::{ConnectionPermit, IdleMark, QueueTicket, Turn};
pub use connections::{Closing, Connections, Offer, PASSED_OVER_MAX, WakeSignal};
pub use events::{EVENT_KINDS, EventCounts};
pub use health::{Health, Streak, exclusion};
pub use journal::{Cause, EVENTS_MAX, Event, EventKind, Journal};
pub use moment::Moment;
pub use permits::{PendingPermit, Permit, RequestPermit, RetryPermit, Sort};
pub use recent::Recent;
pub use tally::Tally;

/// Address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IP address and port.
    Ip(SocketAddr),
    /// A DNS name that is a single endpoint, whatever addresses it resolves to.
    Name {
        /// The name.
        name: Arc<str>,
        /// Port, for every address.
        port: u16,
    },
    /// Path of a Unix socket; one that begins with `@` is in the abstract namespace.
    Unix(Arc<Path>),
}

impl Address {
    /// The address of a socket, if it is one already.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            Address::Ip(address) => Some(*address),
            Address::Name { .. } | Address::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => write!(f, "{address}"),
            Address::Name { name, port } => write!(f, "{name}:{port}"),
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// The key of an endpoint within its scope: an [`Address`] in compact form.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The common case.
    V4(Ipv4Addr, u16),
    Other(Box<Address>),
}

impl From<&Address> for Key {
    fn from(address: &Address) -> Self {
        match address {
            Address::Ip(SocketAddr::V4(address)) => Self::V4(*address.ip(), address.port()),
            other => Self::Other(Box::new(other.clone())),
        }
    }
}

/// Runtime state of one endpoint, shared by workers: on its own cache line, since every request writes to it.
#[derive(Debug)]
#[repr(align(64))]
pub struct EndpointState {
    /// Number of the endpoint, unique in the process; key of the workers' pools.
    pub id: u64,
    requests: AtomicU64,
    active: AtomicU32,
    /// Health; determines whether picks use the endpoint.
    pub health: Health,
}

// there may be a million endpoints
#[cfg(all(target_pointer_width = "64", not(feature = "models")))]
const _: () = assert!(size_of::<EndpointState>() == 64);

impl EndpointState {
    fn new(id: u64) -> Self {
        Self {
            id,
            requests: AtomicU64::new(0),
            active: AtomicU32::new(0),
            health: Health::default(),
        }
    }

    /// Requests in flight at this endpoint, over all workers.
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// Requests sent to this endpoint since the process started.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The health check results; `None` before the first check and without health checks.
    pub fn last_check(&self) -> Option<Arc<Checked>> {
        self.health.last_check()
    }

    /// Stores the health check results.
    pub fn set_checked(&self, checked: Option<Arc<Checked>>) {
        self.health.set_checked(checked);
    }

    /// Counts the start of a request; [`EndpointState::leave`] counts its end.
    pub fn enter(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a request.
    pub fn leave(&self) {
        let before = self.active.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "leave without enter");
    }
}

/// Addresses of a DNS name, as of its last successful lookup.
#[derive(Debug)]
pub struct Resolution {
    /// The addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// The addresses in the order of the last answer, by which name servers distribute their clients.
    latest: ArcSwap<Vec<IpAddr>>,
}

impl Resolution {
    /// The addresses in the order of the last answer.
    pub fn latest(&self) -> Arc<Vec<IpAddr>> {
        self.latest.load_full()
    }
}

/// Runtime state by identity, shared by compile() and the control tasks.
#[derive(Debug, Default)]
pub struct Registry {
    /// By scope: the name of a cluster, such as `outbound|80||reviews.default.svc.cluster.local`, or of a part of it.
    endpoints: DashMap<Arc<str>, HashMap<Key, Arc<EndpointState>>>,
    clusters: DashMap<Arc<str>, Arc<ClusterState>>,
    names: DashMap<Arc<str>, Arc<Resolution>>,
    buckets: DashMap<Box<str>, Weak<Buckets>>,
    journal: Arc<Journal>,
    flips: Arc<AvailabilityChanges>,
    endpoint_ids: AtomicU64,
    cluster_ids: AtomicU32,
    /// Seed of the first turns of rotations; 0 to start all rotations with their first member.
    seed: u64,
}

impl Registry {
    /// Creates a registry whose rotations over clusters start at positions derived from the seed, so that proxies that
    /// start together do not all begin with the same cluster.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// The first turn of the rotation with this name.
    pub fn first_turn(&self, name: &str) -> u32 {
        if self.seed == 0 {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        (self.seed, name).hash(&mut hasher);
        hasher.finish() as u32
    }

    /// The state of an endpoint, created on first use.
    pub fn endpoint(&self, scope: &Arc<str>, address: &Address) -> Arc<EndpointState> {
        let mut endpoints = self.endpoints.entry(Arc::clone(scope)).or_default();
        let entry = endpoints.entry(address.into());
        let state = entry.or_insert_with(|| {
            Arc::new(EndpointState::new(
                self.endpoint_ids.fetch_add(1, Ordering::Relaxed),
            ))
        });
        Arc::clone(state)
    }

    /// Numbers of the endpoints of a scope that have requests in flight.
    pub fn busy(&self, scope: &str) -> Vec<u64> {
        let endpoints = self.endpoints.get(scope);
        let states = endpoints.iter().flat_map(|endpoints| endpoints.values());
        let busy = states.filter(|state| state.active() > 0);
        busy.map(|state| state.id).collect()
    }

    /// The state of a cluster, created on first use.
    pub fn cluster(&self, name: &str) -> Arc<ClusterState> {
        if let Some(state) = self.clusters.get(name) {
            return Arc::clone(&state);
        }
        let name: Arc<str> = Arc::from(name);
        let state = self.clusters.entry(Arc::clone(&name)).or_insert_with(|| {
            let id = ClusterId(self.cluster_ids.fetch_add(1, Ordering::Relaxed));
            let (journal, flips) = (Arc::clone(&self.journal), Arc::clone(&self.flips));
            Arc::new(ClusterState::new(id, name, journal, flips))
        });
        Arc::clone(&state)
    }

    /// The buckets of a rate limit with this name, created on first use. They last as long as a snapshot has them.
    pub fn buckets(&self, name: &str, rate: Rate) -> Arc<Buckets> {
        if let Some(known) = self.buckets.get(name).and_then(|known| known.upgrade()) {
            return known;
        }
        if self.buckets.len().is_power_of_two() {
            self.buckets.retain(|_, known| known.strong_count() > 0);
        }
        let buckets = Arc::new(Buckets::new(rate));
        self.buckets.insert(name.into(), Arc::downgrade(&buckets));
        buckets
    }

    /// The journal of endpoint events.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// One more than the highest cluster number given out so far.
    pub fn cluster_count(&self) -> usize {
        self.cluster_ids.load(Ordering::Relaxed) as usize
    }

    /// Addresses of a DNS name, or `None` before its first successful lookup.
    pub fn resolution(&self, name: &str) -> Option<Arc<Resolution>> {
        self.names.get(name).map(|found| Arc::clone(&found))
    }

    /// Stores the answer of a lookup; returns whether the set of addresses has changed.
    pub fn set_resolution(&self, name: &str, answer: Vec<IpAddr>) -> bool {
        let mut addresses = answer.clone();
        addresses.sort_unstable();
        addresses.dedup();
        if let Some(current) = self.names.get(name)
            && current.addresses == addresses
        {
            current.latest.store(Arc::new(answer));
            return false;
        }
        let latest = ArcSwap::from_pointee(answer);
        let next = Resolution { addresses, latest };
        self.names.insert(Arc::from(name), Arc::new(next));
        true
    }

    /// Removes endpoints that no snapshot, request or pool uses, and affinity tables without a user; returns the number
    /// of removed endpoints.
    pub fn sweep(&self) -> usize {
        self.clusters.iter().for_each(|cluster| cluster.sweep());
        let mut forgotten = 0;
        self.endpoints.retain(|_, endpoints| {
            let before = endpoints.len();
            endpoints.retain(|_, state| Arc::strong_count(state) > 1);
            forgotten += before - endpoints.len();
            if endpoints.len() < before {
                endpoints.shrink_to_fit();
            }
            !endpoints.is_empty()
        });
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_start_depends_on_name_and_seed() {
        assert_eq!(Registry::default().first_turn("web"), 0);
        let first = |seed, name: &str| Registry::seeded(seed).first_turn(name);
        assert_eq!(first(7, "web"), first(7, "web"));
        assert_ne!(first(7, "web"), first(8, "web"));
        assert_ne!(first(7, "web"), first(7, "api"));
    }
}
