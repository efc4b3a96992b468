//! Stream of the objects in this server's store.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::object;
use crate::resources;
use crate::store::{Revision, Scan, Store, StoreError};

/// Message about objects.
#[derive(Debug)]
pub enum Feed {
    /// New, changed and deleted objects by key; `None` for a deleted object.
    Changes(Vec<(Arc<str>, Option<Value>)>),
    /// End of the initial list: every existing object has been sent.
    Complete,
}

/// Maximum number of changes in one message.
const CHANGES_MAX: usize = 500;
/// Delay before a failed store is read again.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Sends every object in the store and every later change, until the receiver is dropped.
pub async fn follow(store: Arc<dyn Store>, feed: mpsc::Sender<Feed>) {
    let mut known = HashSet::new();
    loop {
        let ended = match list(&*store, &mut known, &feed).await {
            Ok(Some(revision)) => changes(&*store, revision, &mut known, &feed).await,
            Ok(None) => return,
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => return,
            // Behind the history: list all objects again.
            Err(StoreError::Compacted) => {}
            Err(error) => {
                tracing::warn!(%error, "the store cannot be followed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Sends all objects. Returns their revision; `None` if the receiver was dropped.
async fn list(
    store: &dyn Store,
    known: &mut HashSet<Arc<str>>,
    feed: &mpsc::Sender<Feed>,
) -> Result<Option<Revision>, StoreError> {
    let scan = Scan {
        prefix: "/".to_owned(),
        ..Scan::default()
    };
    let page = store.scan(scan).await?;
    let mut gone = std::mem::take(known);
    for entries in page.entries.chunks(CHANGES_MAX) {
        let mut batch = Vec::new();
        for entry in entries {
            gone.remove(&entry.key);
            known.insert(Arc::clone(&entry.key));
            batch.push((
                Arc::clone(&entry.key),
                read(&entry.key, &entry.value, entry.revision),
            ));
        }
        if feed.send(Feed::Changes(batch)).await.is_err() {
            return Ok(None);
        }
    }
    let gone = gone.into_iter().map(|key| (key, None)).collect();
    let is_heard =
        feed.send(Feed::Changes(gone)).await.is_ok() && feed.send(Feed::Complete).await.is_ok();
    Ok(is_heard.then_some(page.revision))
}

/// Sends changes until the receiver is dropped.
async fn changes(
    store: &dyn Store,
    mut revision: Revision,
    known: &mut HashSet<Arc<str>>,
    feed: &mpsc::Sender<Feed>,
) -> Result<(), StoreError> {
    let mut latest = store.history().subscribe();
    loop {
        let events = store.history().since(revision, CHANGES_MAX)?;
        let Some(last) = events.last() else {
            tokio::select! {
                changed = latest.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
                () = feed.closed() => return Ok(()),
            }
            continue;
        };
        revision = last.revision;
        let mut batch = Vec::new();
        for event in &events {
            match &event.value {
                Some(_) => known.insert(Arc::clone(&event.key)),
                None => known.remove(&event.key),
            };
            let value = event.value.as_ref();
            let object = value.and_then(|value| read(&event.key, value, event.revision));
            batch.push((Arc::clone(&event.key), object));
        }
        if feed.send(Feed::Changes(batch)).await.is_err() {
            return Ok(());
        }
    }
}

fn read(key: &str, value: &bytes::Bytes, revision: Revision) -> Option<Value> {
    let resource = resources::of_key(key)?;
    let version = resource.versions.first()?;
    Some(object::decode(value, revision, resource, version))
}
