//! What requests read: the compiled configuration, immutable and swapped as a whole.
//!
//! A worker loads the snapshot once per request; everything that a request decides by is reachable from it without
//! a lock. Gathers the compiled types of `route`, `filter` and `cluster`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::cluster::Cluster;
use crate::provenance::Provenance;
use crate::registry::ClusterId;

/// The address that a listener accepts on; its identity across snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerKey {
    /// Bind address and port, as configured.
    pub address: SocketAddr,
}

/// One accepting address with everything that its requests are routed by.
#[derive(Debug)]
pub struct Listener {
    /// Address to bind.
    pub key: ListenerKey,
    /// The Gateway servers that this listener was made from, oldest first.
    pub provenance: Vec<Provenance>,
}

/// A compiled configuration.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Number of this snapshot; rises by one with every snapshot that is put in force.
    pub generation: u64,
    /// Listeners by address. Few; looked up once per request.
    pub listeners: BTreeMap<ListenerKey, Arc<Listener>>,
    /// Clusters by [`ClusterId`]; `None` where the number is not in use by this snapshot.
    pub clusters: Box<[Option<Arc<Cluster>>]>,
}

impl Snapshot {
    /// The cluster with this number, if this snapshot has it.
    pub fn cluster(&self, id: ClusterId) -> Option<&Arc<Cluster>> {
        self.clusters.get(id.0 as usize)?.as_ref()
    }
}

/// The one place that a snapshot is published to; workers read it through `arc_swap::Cache`.
pub type SnapshotSlot = Arc<ArcSwap<Snapshot>>;
