//! Exchange of proxy reports between replicas: each replica writes its own reports to etcd under a lease, and reads
//! the others'.
//!
//! Reports are written in chunks, at most once a second, and only chunks that have changed. Their keys are outside the
//! prefix of the etcd watch, so that they do not wake watches of objects.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use config_loader::proxy_state::{ProxySpec, ProxyStatus};
use serde::{Deserialize, Serialize};

use super::view::{ProxyView, Report};
use super::{Proxies, TTL};
use crate::object;
use crate::store::StoreError;
use crate::store::etcd::Shared;

/// Interval between exchanges.
const EVERY: Duration = Duration::from_secs(1);
/// Interval between renewals of the lease.
const KEEP_EVERY: Duration = Duration::from_secs(15);
/// Number of chunks of a replica.
const CHUNKS: u64 = 32;
/// Maximum size of a chunk, in bytes; etcd accepts requests of up to 1.5 MiB.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Report as stored in etcd.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    namespace: String,
    name: String,
    spec: ProxySpec,
    status: ProxyStatus,
    /// Time of creation, in seconds since 1970.
    created: u64,
    seen: u64,
    /// Propagation time of the last change, in seconds.
    last_change: Option<f64>,
    #[serde(default)]
    subject: String,
}

/// State of this replica's chunks in etcd.
#[derive(Debug)]
struct Put {
    shared: Shared,
    replica: String,
    lease: Option<(i64, Instant)>,
    chunks: BTreeMap<u64, Bytes>,
}

/// Exchanges reports with the other replicas until the future is dropped.
pub async fn share(shared: Shared, proxies: Arc<Proxies>) {
    let mut put = Put {
        shared,
        replica: object::random_suffix() + &object::random_suffix(),
        lease: None,
        chunks: BTreeMap::new(),
    };
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = put.exchange(&proxies).await {
            tracing::debug!(%error, "reports of proxies are not shared with other replicas");
        }
    }
}

impl Put {
    async fn exchange(&mut self, proxies: &Proxies) -> Result<(), StoreError> {
        let chunks = chunks(proxies.own());
        let gone = self
            .chunks
            .keys()
            .filter(|chunk| !chunks.contains_key(chunk));
        let gone: Vec<u64> = gone.copied().collect();
        if !chunks.is_empty() || !gone.is_empty() {
            let lease = self.lease().await?;
            for chunk in gone {
                self.put(chunk, None, lease).await?;
            }
            for (chunk, value) in chunks {
                self.put(chunk, Some(value), lease).await?;
            }
        }
        let others = self.shared.reports(&self.replica).await?;
        proxies.set_remote(others.iter().flat_map(|value| read(value)).collect());
        Ok(())
    }

    /// Returns the lease, and creates or renews it if needed. The chunks expire with the lease when this replica
    /// stops.
    async fn lease(&mut self) -> Result<i64, StoreError> {
        if let Some((lease, kept)) = self.lease {
            if kept.elapsed() < KEEP_EVERY {
                return Ok(lease);
            }
            if self.shared.keep_lease(lease).await? {
                self.lease = Some((lease, Instant::now()));
                return Ok(lease);
            }
        }
        // Chunks under an older lease have expired or will expire with it.
        self.chunks.clear();
        let seconds = i64::try_from(TTL.as_secs()).unwrap_or(i64::MAX);
        let lease = self.shared.lease(seconds).await?;
        self.lease = Some((lease, Instant::now()));
        Ok(lease)
    }

    async fn put(
        &mut self,
        chunk: u64,
        value: Option<Bytes>,
        lease: i64,
    ) -> Result<(), StoreError> {
        if value.as_ref() == self.chunks.get(&chunk) {
            return Ok(());
        }
        let name = format!("{}/{chunk}", self.replica);
        self.shared.put_report(&name, value.clone(), lease).await?;
        match value {
            Some(value) => _ = self.chunks.insert(chunk, value),
            None => _ = self.chunks.remove(&chunk),
        }
        Ok(())
    }
}

/// Groups reports into encoded chunks by a hash of namespace and name.
fn chunks(own: Vec<ProxyView>) -> BTreeMap<u64, Bytes> {
    let mut chunks: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for view in own {
        let mut hasher = DefaultHasher::new();
        (&view.report.namespace, &view.report.name).hash(&mut hasher);
        let chunk = chunks.entry(hasher.finish() % CHUNKS).or_default();
        chunk.push(record(view));
    }
    let written = chunks.into_iter().map(|(chunk, mut records)| {
        let mut value = serde_json::to_vec(&records).unwrap_or_default();
        if value.len() > CHUNK_BYTES_MAX {
            // Drop the rejected objects; their count stays in the report.
            records
                .iter_mut()
                .for_each(|one| one.status.rejected.clear());
            value = serde_json::to_vec(&records).unwrap_or_default();
        }
        (chunk, Bytes::from(value))
    });
    written.collect()
}

fn record(view: ProxyView) -> Record {
    let seconds = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    };
    Record {
        created: seconds(view.created),
        seen: seconds(view.seen),
        last_change: view.last_change.map(|took| took.as_secs_f64()),
        subject: view.subject,
        namespace: view.report.namespace,
        name: view.report.name,
        spec: view.report.spec,
        status: view.report.status,
    }
}

/// Decodes a chunk; empty if it is from an incompatible version.
fn read(value: &[u8]) -> Vec<ProxyView> {
    let records: Vec<Record> = serde_json::from_slice(value).unwrap_or_default();
    let views = records.into_iter().map(|record| ProxyView {
        created: UNIX_EPOCH + Duration::from_secs(record.created.min(u64::from(u32::MAX))),
        seen: UNIX_EPOCH + Duration::from_secs(record.seen.min(u64::from(u32::MAX))),
        newest: None,
        last_change: record
            .last_change
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        subject: record.subject,
        report: Report {
            namespace: record.namespace,
            name: record.name,
            spec: record.spec,
            status: record.status,
        },
    });
    views.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_as_they_are_put() {
        let proxies = Proxies::default();
        for number in 0..100 {
            let report = Report {
                namespace: "edge".to_owned(),
                name: format!("p{number}"),
                ..Report::default()
            };
            proxies.report(report, Instant::now()).unwrap();
        }
        let chunks = chunks(proxies.own());
        assert!((2..=32).contains(&chunks.len()), "{}", chunks.len());
        let other = Proxies::default();
        other.set_remote(chunks.values().flat_map(|value| read(value)).collect());
        assert_eq!(other.list(None).len(), 100);
        assert_eq!(other.own().len(), 0);
        assert!(other.get("edge", "p7").is_some());
        assert_eq!(read(b"of another version").len(), 0);
        let told = other.subscribe();
        let again = chunks.values().flat_map(|value| read(value)).collect();
        other.set_remote(again);
        assert_eq!(*told.borrow(), 1, "nothing new");
        other.set_remote(Vec::new());
        assert_eq!(*told.borrow(), 2);
    }
}
