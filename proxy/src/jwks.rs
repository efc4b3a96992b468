//! Key sets of issuers at URLs, with their last good keys. They outlive snapshots: a policy that keeps its URL keeps its
//! keys. `control` fetches them, and requests read them without waiting.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};
use jwt::Keys;
use tokio::sync::{Notify, watch};

/// Key set at a URL.
#[derive(Clone, Debug)]
pub struct RemoteKeys {
    /// URL to fetch.
    pub url: Arc<str>,
    /// Whether the URL has an OpenID configuration, which names the key set.
    pub is_discovery: bool,
    /// Time limit of one fetch.
    pub timeout: Duration,
    /// Keys, shared by all versions of the policies that name the URL.
    pub state: Arc<KeyState>,
}

/// Last good keys of a URL.
#[derive(Debug, Default)]
pub struct KeyState {
    keys: ArcSwapOption<Keys>,
    was_tried: watch::Sender<bool>,
    unknown_key: Notify,
}

impl KeyState {
    /// Returns the last good keys; none before the first fetch succeeded.
    pub fn keys(&self) -> Guard<Option<Arc<Keys>>> {
        self.keys.load()
    }

    /// Replaces the keys after a fetch; `None` after one that failed, which keeps them.
    pub fn fetched(&self, keys: Option<Keys>) {
        if let Some(keys) = keys {
            self.keys.store(Some(Arc::new(keys)));
        }
        self.was_tried.send_replace(true);
    }

    /// Waits until a fetch has ended, with or without keys.
    pub async fn tried(&self) {
        // fails only without a sender, which is here
        let _ = self.was_tried.subscribe().wait_for(|tried| *tried).await;
    }

    /// Reports a token with a key that is not in the set: the issuer may have new keys.
    pub fn key_is_unknown(&self) {
        self.unknown_key.notify_one();
    }

    /// Waits for a token with a key that is not in the set.
    pub async fn unknown_key(&self) {
        self.unknown_key.notified().await;
    }
}
