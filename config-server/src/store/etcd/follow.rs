//! Watch of every change below the prefix, which fills the history.
//!
//! One etcd watch serves all watches of this replica. It begins with the oldest change that etcd still has, so that a
//! restarted replica can resume earlier watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::calls::number;
use super::client::Client;
use super::keys::{Keys, Place, end_of};
use super::messages::{
    RangeRequest, WatchCreateRequest, WatchEvent, WatchRequest, WatchResponse, revision,
};
use super::mirror::Mirror;
use crate::store::{Event, History, Revision, StoreError};

/// Initial and maximum delay before a broken watch is restarted.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Number of `Event.DELETE` in the etcd API.
const DELETED: i32 = 1;

/// Watch of etcd.
#[derive(Debug)]
pub(super) struct Follower {
    /// Client of the etcd cluster.
    pub client: Client,
    /// Keys below the prefix.
    pub keys: Keys,
    /// Offset that is added to the revisions of etcd.
    pub base: Revision,
    /// History that receives the changes.
    pub history: Arc<History>,
    /// Mirror that receives the tokens.
    pub tokens: Arc<Mirror>,
    /// First revision that has not been received.
    pub next: Revision,
}

/// Reason why a watch ended.
enum End {
    /// Compaction: changes before this revision are no longer available.
    Compacted(Revision),
    /// Broken connection, or a watch canceled by etcd.
    Broken(String),
}

impl Follower {
    /// Follows changes until the future is dropped.
    pub(super) async fn run(mut self) {
        let mut pause = PAUSE;
        loop {
            let before = self.next;
            match self.follow().await {
                End::Compacted(floor) => {
                    tracing::info!(
                        floor,
                        "the history of etcd begins later, which ends older watches"
                    );
                    self.history.forget(self.base + floor);
                    self.next = floor + 1;
                    if let Err(error) = load_tokens(&self.client, &self.keys, &self.tokens).await {
                        tracing::warn!(%error, "tokens cannot be read from etcd");
                    }
                    continue;
                }
                End::Broken(why) => {
                    tracing::warn!(error = why, "the watch of etcd ended and starts again");
                    self.client.leave();
                }
            }
            pause = match self.next > before {
                true => PAUSE,
                false => (pause * 2).min(PAUSE_MAX),
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow(&mut self) -> End {
        let create = WatchCreateRequest {
            key: self.keys.all().into(),
            range_end: end_of(&self.keys.all()),
            start_revision: i64::try_from(self.next).unwrap_or(i64::MAX),
            progress_notify: true,
            prev_kv: true,
            fragment: true,
        };
        let request = WatchRequest {
            create: Some(create),
        };
        let mut responses = match self.client.watch(request).await {
            Ok(responses) => responses,
            Err(status) => return End::Broken(status.message().to_owned()),
        };
        loop {
            match responses.message().await {
                Ok(Some(response)) => {
                    if let Some(end) = self.take(response) {
                        return end;
                    }
                }
                Ok(None) => return End::Broken("etcd closed it".to_owned()),
                Err(status) => return End::Broken(status.message().to_owned()),
            }
        }
    }

    fn take(&mut self, response: WatchResponse) -> Option<End> {
        if response.canceled {
            return Some(match response.compact_revision {
                0 => End::Broken(response.cancel_reason),
                floor => End::Compacted(number(floor)),
            });
        }
        if response.created {
            return None;
        }
        let last = response.events.last().and_then(|event| event.kv.as_ref());
        // A response without events confirms that there were none up to its revision.
        let latest = last.map_or_else(|| revision(&response.header), |kv| number(kv.mod_revision));
        let events = response.events;
        let events = events.into_iter().filter_map(|event| self.event(event));
        self.history.push(events.collect(), self.base + latest);
        self.next = self.next.max(latest + 1);
        None
    }

    /// Returns the change of an object. Applies changes of tokens here.
    fn event(&self, event: WatchEvent) -> Option<Event> {
        let kv = event.kv?;
        let value = (event.kind != DELETED).then_some(kv.value);
        match self.keys.place(&kv.key) {
            Place::Object(key) => Some(Event {
                key: Arc::from(key),
                revision: self.base + number(kv.mod_revision),
                value,
                previous: event.prev_kv.map(|previous| previous.value),
            }),
            Place::Token(name) => {
                self.tokens.set(name, value, number(kv.mod_revision));
                None
            }
            Place::Other => None,
        }
    }
}

/// Reads all tokens into the mirror.
///
/// # Errors
/// If etcd fails.
pub(super) async fn load_tokens(
    client: &Client,
    keys: &Keys,
    tokens: &Mirror,
) -> Result<(), StoreError> {
    let prefix = keys.token("");
    let request = RangeRequest {
        range_end: end_of(&prefix),
        key: prefix.into(),
        ..RangeRequest::default()
    };
    let found = client.range(&request).await?;
    let at = revision(&found.header);
    let values = found.kvs.into_iter().filter_map(|kv| {
        let place = keys.place(&kv.key);
        match place {
            Place::Token(name) => Some((name.to_owned(), kv.value)),
            _ => None,
        }
    });
    tokens.replace(values.collect::<BTreeMap<String, Bytes>>(), at);
    Ok(())
}
