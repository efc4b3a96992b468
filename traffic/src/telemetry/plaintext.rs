//! Plain-text connections to workloads that also accept mutual TLS of the mesh, by their source: the clients that
//! STRICT would reject.
//!
//! Counting a connection takes a lock; a request does not. [`SOURCES_MAX`] limits the number of sources.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

/// Maximum number of separately counted sources; connections of further sources are counted together, as `other`.
pub const SOURCES_MAX: usize = 200;

/// Label value for sources beyond [`SOURCES_MAX`].
const OTHER: &str = "other";

/// Workload of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceWorkload {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

/// Source of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Source {
    Workload(SourceWorkload),
    /// An address without a known workload.
    Address(IpAddr),
}

/// Plain-text connections by source.
#[derive(Debug, Default)]
pub struct PlaintextStats {
    workloads: ArcSwap<HashMap<IpAddr, SourceWorkload>>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    by_source: BTreeMap<Source, u64>,
    other: u64,
}

/// Connections of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaintextCount {
    /// Name of the workload, `unknown`, or `other` for sources beyond `SOURCES_MAX`.
    pub workload: Arc<str>,
    /// Namespace of the workload, `unknown` or `other`.
    pub namespace: Arc<str>,
    /// Address of a source without a known workload; else `unknown`.
    pub address: String,
    /// Number of connections.
    pub connections: u64,
}

impl PlaintextStats {
    /// Replaces the known workloads, by address.
    pub fn set_workloads(&self, workloads: HashMap<IpAddr, SourceWorkload>) {
        self.workloads.store(Arc::new(workloads));
    }

    /// Counts a connection from this address.
    pub fn count(&self, address: IpAddr) {
        let address = address.to_canonical();
        let known = self.workloads.load().get(&address).cloned();
        let source = known.map_or(Source::Address(address), Source::Workload);
        let mut counts = self.lock();
        if let Some(count) = counts.by_source.get_mut(&source) {
            *count += 1;
        } else if counts.by_source.len() < SOURCES_MAX {
            counts.by_source.insert(source, 1);
        } else {
            counts.other += 1;
        }
    }

    /// Counts by source, with `other` last.
    pub fn counts(&self) -> Vec<PlaintextCount> {
        let counts = self.lock();
        let each = counts.by_source.iter().map(|(source, count)| match source {
            Source::Workload(workload) => PlaintextCount {
                workload: Arc::clone(&workload.name),
                namespace: Arc::clone(&workload.namespace),
                address: super::UNKNOWN.to_owned(),
                connections: *count,
            },
            Source::Address(address) => PlaintextCount {
                workload: super::UNKNOWN.into(),
                namespace: super::UNKNOWN.into(),
                address: address.to_string(),
                connections: *count,
            },
        });
        let other = (counts.other > 0).then(|| PlaintextCount {
            workload: OTHER.into(),
            namespace: OTHER.into(),
            address: OTHER.to_owned(),
            connections: counts.other,
        });
        each.chain(other).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_workload_else_by_address() {
        let stats = PlaintextStats::default();
        let workload = SourceWorkload {
            namespace: "shop".into(),
            name: "cart".into(),
        };
        let addresses = ["10.0.0.1", "10.0.0.2"].map(|one| one.parse().unwrap());
        stats.set_workloads(addresses.map(|one| (one, workload.clone())).into());
        for address in ["10.0.0.1", "::ffff:10.0.0.2", "10.0.0.3"] {
            stats.count(address.parse().unwrap());
        }
        let counts: Vec<_> = stats
            .counts()
            .into_iter()
            .map(|one| {
                (
                    one.workload.to_string(),
                    one.namespace.to_string(),
                    one.address,
                    one.connections,
                )
            })
            .collect();
        let row = |workload: &str, namespace: &str, address: &str, count| {
            (
                workload.to_owned(),
                namespace.to_owned(),
                address.to_owned(),
                count,
            )
        };
        assert_eq!(
            counts,
            [
                row("cart", "shop", "unknown", 2),
                row("unknown", "unknown", "10.0.0.3", 1)
            ]
        );
    }

    #[test]
    fn sources_beyond_the_limit_are_counted_as_other() {
        let stats = PlaintextStats::default();
        for number in 0..SOURCES_MAX + 5 {
            let [.., high, low] = number.to_be_bytes();
            stats.count([10, 0, high, low].into());
        }
        let counts = stats.counts();
        assert_eq!(counts.len(), SOURCES_MAX + 1);
        let last = counts.last().unwrap();
        assert_eq!((&*last.workload, last.connections), ("other", 5));
    }
}
