//! Fetches the key sets of issuers: one task for each URL that the snapshot in effect names.
//!
//! A set is fetched at once, then every 5 minutes or as its server says, and earlier when a token has an unknown key. A
//! fetch that fails keeps the last good keys. No request waits for a fetch.

mod fetch;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rand::RngExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use self::fetch::Fetcher;
pub use self::fetch::{KeySetSettings, MakeWorker};
use super::Control;
use crate::jwks::RemoteKeys;
use crate::snapshot::SnapshotSlot;
use crate::telemetry::{Counter, Telemetry, WorkerId};

/// Pause after the first failed fetch; it doubles up to [`RETRY_MAX`].
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Minimum time between a fetch and one for a token with an unknown key.
const UNKNOWN_KEY_MIN: Duration = Duration::from_secs(30);

/// Fetches the key sets of the snapshot in effect.
pub struct KeySets {
    slot: SnapshotSlot,
    generations: watch::Receiver<u64>,
    fetcher: Rc<Fetcher>,
    telemetry: Arc<Telemetry>,
    tasks: HashMap<Arc<str>, (Arc<RemoteKeys>, JoinHandle<()>)>,
}

impl KeySets {
    /// Fetches the key sets of the snapshots that a control task publishes in this slot; those of known services by the
    /// connections of a worker without listeners.
    ///
    /// # Errors
    ///
    /// The authorities cannot be read.
    pub fn of(
        control: &Control,
        slot: &SnapshotSlot,
        settings: &KeySetSettings,
        make_worker: MakeWorker,
    ) -> Result<Self, String> {
        Ok(Self {
            slot: Arc::clone(slot),
            generations: control.publisher.generations(),
            fetcher: Rc::new(Fetcher::new(settings, slot, make_worker)?),
            telemetry: Arc::clone(&control.telemetry),
            tasks: HashMap::new(),
        })
    }

    /// Fetches the key sets of the first snapshot once, for at most this time.
    pub async fn tried(&mut self, at_most: Duration) {
        self.follow();
        let all = async {
            for (keys, _) in self.tasks.values() {
                keys.state.tried().await;
            }
        };
        if timeout(at_most, all).await.is_err() {
            tracing::warn!(
                "key sets of issuers are not there yet: their tokens are refused until they are"
            );
        }
    }

    /// Runs until the future is dropped.
    pub async fn run(mut self) {
        loop {
            self.follow();
            if self.generations.changed().await.is_err() {
                return;
            }
        }
    }

    fn follow(&mut self) {
        let mut before = std::mem::take(&mut self.tasks);
        let snapshot = self.slot.load_full();
        for keys in snapshot.key_sets() {
            let task = match before.remove(&keys.url) {
                Some(known) if Arc::ptr_eq(&known.0, keys) => known,
                other => {
                    other.inspect(|(_, task)| task.abort());
                    let (fetcher, telemetry) =
                        (Rc::clone(&self.fetcher), Arc::clone(&self.telemetry));
                    let task = renew(Arc::clone(keys), fetcher, telemetry);
                    (Arc::clone(keys), tokio::task::spawn_local(task))
                }
            };
            self.tasks.insert(Arc::clone(&keys.url), task);
        }
        for (url, (_, task)) in before {
            task.abort();
            self.telemetry.control.forget_key_set(&url);
        }
    }
}

impl Drop for KeySets {
    fn drop(&mut self) {
        self.tasks.values().for_each(|(_, task)| task.abort());
    }
}

/// Fetches one key set again and again.
async fn renew(keys: Arc<RemoteKeys>, fetcher: Rc<Fetcher>, telemetry: Arc<Telemetry>) {
    let mut pause = RETRY_FIRST;
    loop {
        let url = &keys.url;
        let fetched = timeout(keys.timeout, fetcher.keys(&keys)).await;
        let fetched =
            fetched.unwrap_or_else(|_| Err(format!("no answer within {:?}", keys.timeout)));
        let (counter, wait) = match fetched {
            Ok((set, renewal)) => {
                for remark in &set.remarks {
                    tracing::debug!(%url, "{remark}");
                }
                if keys.state.keys().is_none() {
                    tracing::info!(%url, "key set fetched");
                }
                keys.state.fetched(Some(set));
                telemetry.control.fetched_key_set(url, SystemTime::now());
                pause = RETRY_FIRST;
                (Counter::KeySetsFetched, jittered(renewal))
            }
            Err(error) => {
                let is_kept = keys.state.keys().is_some();
                tracing::warn!(%url, is_kept, "key set not fetched: {error}");
                keys.state.fetched(None);
                let wait = jittered(pause);
                pause = RETRY_MAX.min(pause * 2);
                (Counter::KeySetsFailed, wait)
            }
        };
        telemetry.counters.increment(WorkerId::CONTROL, counter);
        let now = Instant::now();
        let unknown = async {
            sleep_until(now + UNKNOWN_KEY_MIN).await;
            keys.state.unknown_key().await;
        };
        tokio::select! {
            () = sleep_until(now + wait) => {}
            () = unknown => {}
        }
    }
}

/// Changes a time by up to a tenth, so that proxies do not ask at the same time.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(rand::rng().random_range(0.9..1.1))
}
