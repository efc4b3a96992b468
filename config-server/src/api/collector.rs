//! Garbage collector: deletes objects whose owners are all deleted, and terminating namespaces once they are empty.
//!
//! A deletion also deletes the dependents of its object. The collector finds the rest: dependents that were written
//! after the deletion of their owner or that name an owner that never existed, and namespaces held by finalizers.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use super::Api;
use super::owners::names_owners;
use crate::object;
use crate::resources::{self, Resource};
use crate::status::Failure;
use crate::store::pages::Pages;
use crate::store::{Revision, StoreError};

/// Number of objects or changes per read.
const CHUNK: usize = 500;
/// Delay before a failed store is read again.
const PAUSE: Duration = Duration::from_secs(1);

/// Collects while this server is the leader, until the future is dropped.
pub async fn collect(api: Api, mut is_leader: watch::Receiver<bool>) {
    let mut latest = api.store.history().subscribe();
    let mut at = None;
    let mut has_failed = false;
    loop {
        if !*is_leader.borrow_and_update() {
            at = None;
            if is_leader.changed().await.is_err() {
                return;
            }
            continue;
        }
        let done = match at {
            None => api.collect_all().await.map(Some),
            Some(at) => api.collect_since(at).await,
        };
        match done {
            Ok(Some(next)) => (at, has_failed) = (Some(next), false),
            Ok(None) => tokio::select! {
                changed = latest.changed() => if changed.is_err() { return },
                Ok(()) = is_leader.changed() => {}
            },
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::warn!(
                        error = error.message,
                        "objects without owners are not deleted"
                    );
                }
                at = None;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl Api {
    /// Collects among all objects. Returns the revision after which changes have to be examined.
    async fn collect_all(&self) -> Result<Revision, Failure> {
        // Read before the scan: changes during the scan are read from the history.
        let start = self.store.history().latest();
        let mut pages = Pages::of(&*self.store, CHUNK);
        while let Some(entries) = pages.next().await? {
            for entry in &entries {
                self.collect_one(&entry.key, &entry.value, entry.revision)
                    .await?;
            }
        }
        Ok(start)
    }

    /// Collects among the changes after `revision`. Returns the revision of the last one; `None` without changes.
    async fn collect_since(&self, revision: Revision) -> Result<Option<Revision>, Failure> {
        let events = match self.store.history().since(revision, CHUNK) {
            Err(StoreError::Compacted) => return self.collect_all().await.map(Some),
            other => other?,
        };
        let mut left = BTreeSet::new();
        for event in &events {
            match &event.value {
                Some(value) => self.collect_one(&event.key, value, event.revision).await?,
                None => left.extend(namespace_of(&event.key)),
            }
        }
        for namespace in left {
            self.finish_terminating(namespace).await?;
        }
        Ok(events.last().map(|last| last.revision))
    }

    async fn collect_one(
        &self,
        key: &str,
        value: &Bytes,
        revision: Revision,
    ) -> Result<(), Failure> {
        let of_namespaces = Resource::namespaces().prefix(None);
        if let Some(namespace) = key.strip_prefix(&of_namespaces) {
            return self.finish_terminating(namespace).await;
        }
        if !names_owners(value) {
            return Ok(());
        }
        let object: Value = serde_json::from_slice(value).unwrap_or_default();
        let owners = object::metadata(&object)["ownerReferences"].as_array();
        let owners = owners.map_or(&[][..], Vec::as_slice);
        for owner in owners {
            if !self.is_gone(owner, namespace_of(key)).await? {
                return Ok(());
            }
        }
        if owners.is_empty() || object::is_deleting(&object) {
            return Ok(());
        }
        tracing::info!(
            object = key,
            "an object is deleted, since its owners are gone"
        );
        self.delete_at(key, revision).await
    }

    /// Whether an owner is deleted. False for owners of unserved kinds and in other namespaces, whose state is
    /// unknown.
    async fn is_gone(&self, owner: &Value, namespace: Option<&str>) -> Result<bool, Failure> {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let Some((resource, _)) = resources::of_kind(text("apiVersion"), text("kind")) else {
            return Ok(false);
        };
        let namespace = namespace.filter(|_| resource.api.is_namespaced);
        if resource.is_report() || resource.api.is_namespaced && namespace.is_none() {
            return Ok(false);
        }
        let (found, _) = self
            .store
            .get(&resource.key(namespace, text("name")))
            .await?;
        Ok(found.is_none_or(|found| {
            let object: Value = serde_json::from_slice(&found.value).unwrap_or_default();
            object::meta(&object, "uid") != text("uid")
        }))
    }
}

/// Returns the namespace of the object with that key.
fn namespace_of(key: &str) -> Option<&str> {
    let resource = resources::of_key(key)?;
    let namespace = key.rsplit('/').nth(1)?;
    resource.api.is_namespaced.then_some(namespace)
}
