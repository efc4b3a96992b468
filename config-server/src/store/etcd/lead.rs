//! Leader election: the leader holds a key with a lease that it renews. It compacts the history of etcd.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::calls::Outcome;
use super::client::Client;
use super::keys::Keys;
use crate::store::{Expected, History, Revision, StoreError};

/// TTL of the leader's lease after its last renewal.
const LEASE: Duration = Duration::from_secs(10);
/// Interval between renewals, and between checks of the other replicas.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// Time before the end of its lease at which a replica stops leading, since clocks differ in speed.
const MARGIN: Duration = Duration::from_secs(1);

/// Leadership state of this replica.
#[derive(Debug, Default)]
pub(super) struct Leadership {
    until: Mutex<Option<Instant>>,
    leads: watch::Sender<bool>,
}

impl Leadership {
    /// Whether this replica is the leader now. At most one replica is.
    pub(super) fn is_leader(&self) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns a receiver of whether this replica is the leader.
    pub(super) fn follow(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Sets the time until which this replica is the leader; `None` if it is not.
    fn set(&self, until: Option<Instant>) {
        let mut known = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() != until.is_none() {
            tracing::info!(leads = until.is_some(), "the leading replica changed");
        }
        *known = until;
        let leads = until.is_some();
        self.leads
            .send_if_modified(|known| std::mem::replace(known, leads) != leads);
    }
}

/// Participant of the election.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Client of the etcd cluster.
    pub client: Client,
    /// Keys below the prefix.
    pub keys: Keys,
    /// Offset that is added to the revisions of etcd.
    pub base: Revision,
    /// History that watches can resume from; older revisions are compacted in etcd.
    pub history: Arc<History>,
    /// Leadership state that the election updates.
    pub leadership: Arc<Leadership>,
    /// Revision up to which this replica has compacted etcd.
    pub compacted: Revision,
}

impl Candidate {
    /// Takes part in the election until the future is dropped.
    pub(super) async fn run(mut self) {
        let id = format!("{:032x}", rand::rng().random::<u128>());
        loop {
            if let Err(error) = self.campaign(&id).await {
                tracing::warn!(%error, "this replica cannot take part in choosing a leader");
            }
            self.leadership.set(None);
            sleep(RENEW_EVERY).await;
        }
    }

    /// Takes part in the election for as long as its lease lasts.
    async fn campaign(&mut self, id: &str) -> Result<(), StoreError> {
        let seconds = i64::try_from(LEASE.as_secs()).unwrap_or(i64::MAX);
        let lease = self.client.grant(seconds).await?;
        loop {
            let now = Instant::now();
            if !self.client.keep(lease).await? {
                return Ok(());
            }
            let leads = self.take_key(id, lease).await?;
            self.leadership.set(leads.then(|| now + LEASE - MARGIN));
            if leads {
                self.compact().await;
            }
            sleep(RENEW_EVERY).await;
        }
    }

    async fn take_key(&self, id: &str, lease: i64) -> Result<bool, StoreError> {
        let key = self.keys.leader();
        let value = bytes::Bytes::copy_from_slice(id.as_bytes());
        let written = self
            .client
            .write_if(&key, Expected::Absent, Some(value.clone()), lease)
            .await?;
        Ok(match written {
            Outcome::Done(_) => true,
            // A key under an earlier lease of this replica would expire with that lease.
            Outcome::Mismatch(found) => {
                found.is_some_and(|found| found.value == value && found.lease == lease)
            }
        })
    }

    async fn compact(&mut self) {
        let floor = self.history.floor() - self.base;
        if floor <= self.compacted {
            return;
        }
        match self.client.compact(floor).await {
            Ok(()) => self.compacted = floor,
            Err(error) => tracing::warn!(%error, "the history of etcd cannot be compacted"),
        }
    }
}
