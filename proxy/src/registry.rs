//! Live state that outlives snapshots, by endpoint identity.
//!
//! Requests touch only the atomics behind the `Arc`s that compile() put into the snapshot; the maps here are read
//! and written by the control thread when configuration changes. Uses nothing above row 0.

mod affinity_table;
mod checked;
mod connections;
mod health;
mod journal;
mod recent;
mod tally;

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use crossbeam_utils::CachePadded;
use dashmap::DashMap;

pub use affinity_table::{
    AFFINITY_ENTRIES_MAX, AffinityEntry, AffinityTable, EndpointNumber, Visit,
};
pub use checked::{Checked, Thresholds};
pub use connections::{
    Closing, ConnectionPermit, Connections, IdleMark, Offer, PASSED_OVER_MAX, QueueTicket, Turn,
    WakeSignal,
};
pub use health::{Health, Moment, Streak, why};
pub use journal::{Cause, EVENTS_MAX, Event, EventKind, Journal};
pub use recent::Recent;
pub use tally::{PendingPermit, Permit, RequestPermit, RetryPermit, Tally};

/// Where an endpoint accepts connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IP address and port.
    Ip(SocketAddr),
    /// A DNS name that is one endpoint, whatever addresses it has at the time.
    Name {
        /// The name.
        name: Arc<str>,
        /// Port of every address.
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

/// Number of a cluster name, stable while any snapshot names it: route tables hold this number, so that a change
/// of endpoints leaves them untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(pub u32);

/// What endpoints of one scope are told apart by: an [`Address`] in little space.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    /// Most of them are like this.
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

/// What workers share about one endpoint: on a cache line of its own, since every request writes there.
#[derive(Debug)]
#[repr(align(64))]
pub struct EndpointState {
    /// Number of this endpoint, unique in the process; keys the workers' pools.
    pub id: u64,
    requests: AtomicU64,
    active: AtomicU32,
    /// Whether it may be used.
    pub health: Health,
}

// there may be a million of them
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

    /// What active health checks came to; nothing before the first, or where none are made.
    pub fn checked(&self) -> Option<Arc<Checked>> {
        self.health.checked()
    }

    /// Notes what active health checks came to.
    pub fn set_checked(&self, checked: Option<Arc<Checked>>) {
        self.health.set_checked(checked);
    }

    /// Counts one request in; [`EndpointState::leave`] counts it out again.
    pub fn enter(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one request out.
    pub fn leave(&self) {
        let before = self.active.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "leave without enter");
    }
}

/// Whose turn it is in a rotation that all workers share.
#[derive(Debug, Default)]
pub struct Cursor(CachePadded<AtomicU64>);

impl Cursor {
    /// Begins with this turn.
    pub fn starting_at(turn: u32) -> Self {
        // so many turns are left that it never wraps around where that would cut a rotation short
        Self(CachePadded::new(AtomicU64::new(turn.into())))
    }

    /// Takes the next turn; wraps around after 2^64.
    #[inline]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Rotations of one cluster that have a turn of their own.
pub const CURSORS: usize = 4;

/// How often a cluster began or ceased to have an endpoint that may be used, over all clusters: while it stands still,
/// what was found out about them holds.
#[derive(Debug, Default)]
pub struct Flips(CachePadded<AtomicU64>);

impl Flips {
    /// Notes one, after what it is about can be seen.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// How many there were; what they were about can be seen.
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What decides about ejections in one cluster. The lock is taken when an endpoint has failed often enough, and by
/// sweeps; never by a request that goes well.
#[derive(Debug, Default)]
pub struct Ejections {
    /// One decision at a time, so that the cap holds exactly.
    pub deciding: Mutex<()>,
    /// Whether something happened that the tables do not show yet.
    pub stale: AtomicBool,
    /// Whether an ejection overflow was reported since the last sweep.
    pub spared: AtomicBool,
}

/// What workers share about one cluster.
#[derive(Debug)]
pub struct ClusterState {
    /// The number under which snapshots hold this cluster.
    pub id: ClusterId,
    /// Name of the cluster.
    pub name: Arc<str>,
    /// Turns of the cluster's rotations; groups of endpoints beyond these share them.
    pub cursors: [Cursor; CURSORS],
    /// Endpoints that are ejected, and how the tables are to be rebuilt.
    pub ejections: Ejections,
    /// Where events are noted.
    pub journal: Arc<Journal>,
    /// Where it is noted that the cluster begins or ceases to have an endpoint that may be used.
    pub flips: Arc<Flips>,
    /// Requests that are being tried again.
    pub retries: Tally,
    /// Attempts that began recently, where a retry limit needs them.
    recent: ArcSwapOption<Recent>,
    /// Where its clients stay, if they do.
    affinity_table: ArcSwapOption<AffinityTable>,
    /// Requests in flight, where their number has a limit.
    pub requests: Tally,
    /// Requests that wait for a connection or a stream, where their number has a limit.
    pub pending: Tally,
    /// Open connections, and the requests that wait for one.
    pub connections: Connections,
}

impl ClusterState {
    /// The counter of attempts for this interval. Counts for another interval are dropped.
    pub fn recent(&self, interval: Duration) -> Arc<Recent> {
        let kept = self.recent.load_full();
        kept.filter(|recent| recent.interval() == interval)
            .unwrap_or_else(|| {
                let recent = Arc::new(Recent::new(interval));
                self.recent.store(Some(Arc::clone(&recent)));
                recent
            })
    }

    /// Its session affinity entries, kept from the first use until the last user is gone.
    pub fn affinity_table(&self) -> Arc<AffinityTable> {
        self.affinity_table.load_full().unwrap_or_else(|| {
            let affinity_table = Arc::<AffinityTable>::default();
            self.affinity_table.store(Some(Arc::clone(&affinity_table)));
            affinity_table
        })
    }

    /// Forgets where clients stay, if no snapshot holds that any more.
    fn sweep(&self) {
        let is_alone = |affinity_table: &Arc<AffinityTable>| Arc::strong_count(affinity_table) == 1;
        if self.affinity_table.load().as_ref().is_some_and(is_alone) {
            self.affinity_table.store(None);
        }
    }
}

/// Addresses that a DNS name resolved to, as of its last successful lookup.
#[derive(Debug)]
pub struct Resolution {
    /// The addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// The same ones in the order of the last answer, by which name servers spread their clients.
    latest: ArcSwap<Vec<IpAddr>>,
}

impl Resolution {
    /// The addresses in the order of the last answer.
    pub fn latest(&self) -> Arc<Vec<IpAddr>> {
        self.latest.load_full()
    }
}

/// Live state by identity, shared by compile() and the control tasks.
#[derive(Debug, Default)]
pub struct Registry {
    /// By scope: the name of a cluster, as in `outbound|80||reviews.default.svc.cluster.local`, or of a part of it.
    endpoints: DashMap<Arc<str>, HashMap<Key, Arc<EndpointState>>>,
    clusters: DashMap<Arc<str>, Arc<ClusterState>>,
    names: DashMap<Arc<str>, Arc<Resolution>>,
    journal: Arc<Journal>,
    flips: Arc<Flips>,
    endpoint_ids: AtomicU64,
    cluster_ids: AtomicU32,
    /// What rotations begin with; 0 lets all begin with their first.
    seed: u64,
}

impl Registry {
    /// A registry whose rotations over clusters begin anywhere, as the seed has it: proxies that start together do not
    /// all begin with the same cluster.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// The turn that a rotation of this name begins with.
    pub fn first_turn(&self, name: &str) -> u32 {
        if self.seed == 0 {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        (self.seed, name).hash(&mut hasher);
        hasher.finish() as u32
    }

    /// The state of an endpoint, made on first use.
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

    /// The state of a cluster, made on first use.
    pub fn cluster(&self, name: &str) -> Arc<ClusterState> {
        if let Some(state) = self.clusters.get(name) {
            return Arc::clone(&state);
        }
        let name: Arc<str> = Arc::from(name);
        let state = self.clusters.entry(Arc::clone(&name)).or_insert_with(|| {
            let id = ClusterId(self.cluster_ids.fetch_add(1, Ordering::Relaxed));
            Arc::new(ClusterState {
                id,
                name,
                cursors: Default::default(),
                ejections: Ejections::default(),
                journal: Arc::clone(&self.journal),
                flips: Arc::clone(&self.flips),
                retries: Tally::default(),
                recent: ArcSwapOption::empty(),
                affinity_table: ArcSwapOption::empty(),
                requests: Tally::default(),
                pending: Tally::default(),
                connections: Connections::default(),
            })
        });
        Arc::clone(&state)
    }

    /// What happened to endpoints.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// One more than the highest cluster number given out so far.
    pub fn cluster_count(&self) -> usize {
        self.cluster_ids.load(Ordering::Relaxed) as usize
    }

    /// What a DNS name resolved to, or `None` before its first successful lookup.
    pub fn resolution(&self, name: &str) -> Option<Arc<Resolution>> {
        self.names.get(name).map(|found| Arc::clone(&found))
    }

    /// Records a lookup's answer; returns whether the set of addresses differs from the one before.
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

    /// Forgets endpoints that no snapshot, request or pool holds any more, and where clients of services stayed for
    /// which that does not matter any more; returns how many endpoints.
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
