//! Store in an etcd cluster, which several replicas of the config server share.
//!
//! Revisions of objects are those of etcd; a write is a transaction that compares them. One watch (`follow`) receives
//! the changes of all replicas, and one replica is the leader (`lead`).

mod calls;
mod client;
mod follow;
mod keys;
mod lead;
mod messages;
mod mirror;
mod shared;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::history::HistoryLimits;
use super::{Entry, Expected, History, Page, Reply, Revision, Scan, Store, StoreError, Written};
use calls::{Outcome, number};
use client::Client;
use follow::Follower;
use keys::{Keys, Place, end_of};
use lead::{Candidate, Leadership};
use messages::{KeyValue, RangeRequest, revision};

pub use client::EtcdSettings;
pub use mirror::Mirror;
pub use shared::Shared;

/// Number of keys per read.
const CHUNK: usize = 500;

/// Store in etcd.
#[derive(Debug)]
pub struct EtcdStore {
    client: Client,
    keys: Keys,
    /// Offset that is added to the revisions of etcd, so that they are above those before a restore.
    base: Revision,
    history: Arc<History>,
    leadership: Arc<Leadership>,
    tasks: Vec<JoinHandle<()>>,
}

impl EtcdStore {
    /// Connects and starts to follow changes. `tokens` mirrors the tokens that the replicas share.
    ///
    /// # Errors
    /// If etcd cannot be reached or is older than 3.4.
    pub async fn open(
        settings: &EtcdSettings,
        limits: HistoryLimits,
        tokens: &Arc<Mirror>,
    ) -> Result<EtcdStore, String> {
        let mut store = EtcdStore::connect(settings, limits).await?;
        let unreachable = |error: StoreError| format!("{}: {error}", settings.urls.join(","));
        follow::load_tokens(&store.client, &store.keys, tokens)
            .await
            .map_err(unreachable)?;
        let follower = Follower {
            client: store.client.clone(),
            keys: store.keys.clone(),
            base: store.base,
            history: Arc::clone(&store.history),
            tokens: Arc::clone(tokens),
            next: 1,
        };
        let candidate = Candidate {
            client: store.client.clone(),
            keys: store.keys.clone(),
            base: store.base,
            history: Arc::clone(&store.history),
            leadership: Arc::clone(&store.leadership),
            compacted: 0,
        };
        store.tasks = vec![tokio::spawn(follower.run()), tokio::spawn(candidate.run())];
        Ok(store)
    }

    /// Connects for reads and writes only, without a watch and without leader election.
    ///
    /// # Errors
    /// If etcd cannot be reached or is older than 3.4.
    pub async fn open_for_command(settings: &EtcdSettings) -> Result<EtcdStore, String> {
        EtcdStore::connect(settings, HistoryLimits::default()).await
    }

    async fn connect(settings: &EtcdSettings, limits: HistoryLimits) -> Result<EtcdStore, String> {
        let client = Client::new(settings)?;
        let keys = Keys::below(&settings.prefix);
        let unreachable = |error: StoreError| format!("{}: {error}", settings.urls.join(","));
        check_version(&client.version().await.map_err(unreachable)?)?;
        let (found, _) = client.read(keys.base()).await.map_err(unreachable)?;
        let base = match found {
            None => 0,
            Some(found) => std::str::from_utf8(&found.value)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| format!("{} in etcd is no number", keys.base()))?,
        };
        Ok(EtcdStore {
            client,
            keys,
            base,
            history: Arc::new(History::new(limits, base)),
            leadership: Arc::new(Leadership::default()),
            tasks: Vec::new(),
        })
    }

    /// Returns a receiver of whether this replica is the leader.
    pub fn follow_leadership(&self) -> watch::Receiver<bool> {
        self.leadership.follow()
    }

    async fn scan_all(&self, scan: Scan) -> Result<Page, StoreError> {
        let prefix = self.keys.object(&scan.prefix);
        let mut start = match &scan.after {
            Some(after) => after_key(self.keys.object(after).as_bytes()),
            None => Bytes::copy_from_slice(prefix.as_bytes()),
        };
        let end = end_of(&prefix);
        let at = match scan.at {
            // Revisions before a restore are not in this etcd.
            Some(at) if at <= self.base => return Err(StoreError::Compacted),
            Some(at) => at - self.base,
            None => 0,
        };
        let mut page = Page {
            revision: at,
            ..Page::default()
        };
        let limit = scan.limit.unwrap_or(usize::MAX);
        loop {
            let wanted = (limit - page.entries.len()).min(CHUNK);
            let request = RangeRequest {
                key: start.clone(),
                range_end: end.clone(),
                limit: i64::try_from(wanted).unwrap_or(i64::MAX),
                revision: i64::try_from(page.revision).unwrap_or(i64::MAX),
                count_only: wanted == 0,
            };
            let found = self.client.range(&request).await?;
            if page.revision == 0 {
                page.revision = revision(&found.header);
            }
            if let Some(last) = found.kvs.last() {
                start = after_key(&last.key);
            }
            let count = usize::try_from(found.count).unwrap_or(0);
            page.remaining = count.saturating_sub(found.kvs.len());
            let entries = found.kvs.into_iter().filter_map(|kv| self.entry(kv));
            page.entries.extend(entries);
            if !found.more || page.entries.len() >= limit {
                page.revision += self.base;
                return Ok(page);
            }
        }
    }

    fn entry(&self, kv: KeyValue) -> Option<Entry> {
        match self.keys.place(&kv.key) {
            Place::Object(key) => Some(Entry {
                key: Arc::from(key),
                revision: self.base + number(kv.mod_revision),
                value: kv.value,
            }),
            _ => None,
        }
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Store for EtcdStore {
    fn get<'a>(&'a self, key: &'a str) -> Reply<'a, (Option<Entry>, Revision)> {
        Box::pin(async move {
            let (found, revision) = self.client.read(self.keys.object(key)).await?;
            let entry = found.and_then(|kv| self.entry(kv));
            Ok((entry, self.base + revision))
        })
    }

    fn scan(&self, scan: Scan) -> Reply<'_, Page> {
        Box::pin(async move {
            match self.scan_all(scan).await {
                Err(StoreError::Future { .. }) => Err(StoreError::Future {
                    current: self.latest().await?,
                }),
                other => other,
            }
        })
    }

    fn write(&self, key: String, expected: Expected, value: Option<Bytes>) -> Reply<'_, Written> {
        Box::pin(async move {
            let key = self.keys.object(&key);
            let expected = match expected {
                // No key in this etcd has a revision from before a restore.
                Expected::At(revision) if revision <= self.base => return Ok(Written::Mismatch),
                Expected::At(revision) => Expected::At(revision - self.base),
                Expected::Absent => Expected::Absent,
            };
            let outcome = self.client.write_if(&key, expected, value, 0).await?;
            Ok(match outcome {
                Outcome::Done(revision) => Written::Done(self.base + revision),
                Outcome::Mismatch(_) => Written::Mismatch,
            })
        })
    }

    fn history(&self) -> &History {
        &self.history
    }

    fn latest(&self) -> Reply<'_, Revision> {
        Box::pin(async move {
            let (_, revision) = self.client.read(self.keys.leader()).await?;
            Ok(self.base + revision)
        })
    }

    fn is_leader(&self) -> bool {
        self.leadership.is_leader()
    }
}

/// Returns the first key after this one.
fn after_key(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}

/// Checks that etcd is version 3.4 or newer.
fn check_version(version: &str) -> Result<(), String> {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next().flatten(), parts.next().flatten());
    match (major, minor) {
        (Some(major), Some(minor)) if (major, minor) >= (3, 4) => Ok(()),
        _ => Err(format!(
            "etcd has version {version:?}, and 3.4 or newer is needed"
        )),
    }
}
