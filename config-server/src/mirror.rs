//! Mirror of the objects of an API server: a read-only store in memory, fed by the source of proxies.
//!
//! Revisions are counted here, from a start that differs by process. A revision of another replica is below
//! the history or in the future, so that no watch resumes from it: REST clients list again, and xDS compares contents.
//! Objects stay while the API server is away. Until each kind is listed once, reads fail.

mod objects;
mod secrets;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use config_loader::source::{FollowedObjects, follow_objects};
use config_loader::{ApiServer, ControlSettings, Kind, KubernetesSettings};
use kube::Client;
use rand::RngExt;
use serde_json::Value;
use tokio::sync::watch;

use crate::clock;
use crate::object;
use crate::resources;
use crate::store::history::HistoryLimits;
use crate::store::{
    Entry, Expected, History, Page, Reply, Revision, Scan, Store, StoreError, Written,
};
use objects::Objects;
use secrets::Secrets;

/// Reason why reads fail before each kind is listed.
const NOT_LISTED: &str = "the objects of the API server are not listed yet";

/// Prefix of the keys of Pods.
const PODS: &str = "/core/pods/";

/// Longest time that an endpoint is held back until its pod is known.
const WORKLOAD_WAIT: Duration = Duration::from_secs(2);

/// Limits of the history: it is in memory beside the objects, and clients that are behind it compare contents.
const HISTORY: HistoryLimits = HistoryLimits {
    events: 20_000,
    bytes: 32 << 20,
};

/// Mirror of the objects of an API server.
#[derive(Debug)]
pub struct MirrorStore {
    objects: Arc<Objects>,
    /// Secrets, which are followed in namespaces of gateways; `None` for none.
    secrets: Option<Secrets>,
    is_complete: watch::Sender<bool>,
}

/// Returns the revision before the first one of a process: its start in seconds, and 11 random bits, above the 20 bits that
/// count changes.
fn start_of(seconds: u64, random: u64) -> Revision {
    (seconds << 31) | ((random & 0x7ff) << 20)
}

impl MirrorStore {
    /// Returns an empty mirror, which reads Secrets with `client`.
    pub fn new(client: Client) -> MirrorStore {
        let start = start_of(clock::seconds_now(), rand::rng().random());
        let objects = Arc::new(Objects::new(HISTORY, start));
        MirrorStore {
            secrets: Some(Secrets::new(client, Arc::clone(&objects))),
            objects,
            is_complete: watch::Sender::new(false),
        }
    }

    /// Feeds the mirror with the objects of an API server until the result is dropped, which may block.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn follow(
        self: &Arc<Self>,
        server: ApiServer,
        kubeconfig: Option<PathBuf>,
        reads_workloads: bool,
    ) -> std::io::Result<FollowedObjects> {
        let name = server.name();
        let all = resources::all().iter();
        let rows = all.filter_map(|one| Some((one.row?.kind, one.group)));
        let workloads = [Kind::Namespace, Kind::Node, Kind::Pod].map(|kind| (kind, ""));
        let rows = rows.chain(workloads);
        let settings = ControlSettings {
            kubernetes: KubernetesSettings {
                servers: vec![server],
                kubeconfig,
                // Secrets are followed by namespace, once a gateway there asks.
                resources: rows.filter(|(kind, _)| *kind != Kind::Secret).collect(),
                reads_referred: true,
                reads_workloads,
                workload_wait: WORKLOAD_WAIT,
                ..KubernetesSettings::default()
            },
            ..ControlSettings::default()
        };
        let mirror = Arc::clone(self);
        let mut problems = Vec::new();
        follow_objects(settings, move |update| {
            if update.problems != problems {
                for found in &update.problems {
                    tracing::warn!(server = %found.location.file, problem = %found.message, "API server");
                }
                problems = update.problems;
            }
            let changes = update.changes.into_iter();
            let changes = changes.filter_map(|(document, text)| {
                let key = key_of(&name, &document)?;
                let is_pod = key.starts_with(PODS);
                Some((key, text.and_then(|text| value_of(&text, is_pod))))
            });
            mirror.objects.apply(changes);
            if update.is_complete {
                mirror.complete();
            }
        })
    }

    /// Records that each kind is listed.
    fn complete(&self) {
        if !self.is_complete.send_replace(true) {
            let revision = self.objects.history.latest();
            tracing::info!(revision, "the objects of the API server are listed");
        }
    }

    /// Returns a receiver of whether each kind was listed once.
    pub fn is_complete(&self) -> watch::Receiver<bool> {
        self.is_complete.subscribe()
    }

    /// Waits until the objects with this key, or prefix of keys, can be read.
    async fn can_read(&self, key: &str) -> Result<(), StoreError> {
        if !*self.is_complete.borrow() {
            return Err(StoreError::Failed(NOT_LISTED.to_owned()));
        }
        match &self.secrets {
            Some(secrets) => secrets.listed(key).await,
            None => Ok(()),
        }
    }
}

/// Returns the key of the object of a document, such as `kubernetes://east/prod/services/web`.
fn key_of(server: &str, document: &str) -> Option<Arc<str>> {
    let path = document.strip_prefix(server)?.strip_prefix('/')?;
    let mut parts = path.rsplit('/');
    let (name, resource) = (parts.next()?, parts.next()?);
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let resource = resources::named(group, plural)?;
    Some(resource.key(parts.next(), name).into())
}

/// Returns the text of an object as stores have it; `None` for a pod that no endpoint can have, since it has no address
/// yet, or has ended.
fn value_of(text: &[u8], is_pod: bool) -> Option<Bytes> {
    let object: Value = serde_json::from_slice(text).ok()?;
    let status = &object["status"];
    let has_ended = || matches!(status["phase"].as_str(), Some("Failed" | "Succeeded"));
    if is_pod && (status["podIP"].is_null() || has_ended()) {
        return None;
    }
    Some(object::encode(&object))
}

impl Store for MirrorStore {
    fn get<'a>(&'a self, key: &'a str) -> Reply<'a, (Option<Entry>, Revision)> {
        Box::pin(async move {
            self.can_read(key).await?;
            Ok(self.objects.get(key))
        })
    }

    fn scan(&self, scan: Scan) -> Reply<'_, Page> {
        Box::pin(async move {
            self.can_read(&scan.prefix).await?;
            self.objects.scan(&scan)
        })
    }

    fn write(&self, _: String, _: Expected, _: Option<Bytes>) -> Reply<'_, Written> {
        let why = "this server mirrors an API server: write to that one";
        Box::pin(async move { Err(StoreError::Failed(why.to_owned())) })
    }

    fn history(&self) -> &History {
        &self.objects.history
    }

    fn latest(&self) -> Reply<'_, Revision> {
        Box::pin(async {
            self.can_read("/").await?;
            Ok(self.objects.history.latest())
        })
    }

    fn is_leader(&self) -> bool {
        false
    }

    fn is_read_only(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
