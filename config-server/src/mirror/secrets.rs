//! Secrets of the mirror, followed in the namespaces that are asked for, as far as the account may read them there.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::objects::Objects;
use crate::object;
use crate::store::StoreError;

/// Prefix of the keys of Secrets.
const PREFIX: &str = "/core/secrets/";
/// Field selector of the Secrets that are followed: all but tokens of service accounts.
const SELECTED: &str = "type!=kubernetes.io/service-account-token";
/// Field of Secrets with the key of a CA, such as that of the hub, which no gateway gets.
const AUTHORITY: &str = "ca.key";
/// Maximum number of namespaces whose Secrets are followed.
const NAMESPACES_MAX: usize = 1_000;
/// Maximum time that a read waits for the first list of a namespace.
const LIST_MAX: Duration = Duration::from_secs(10);

/// Secrets by namespace.
pub(super) struct Secrets {
    client: Client,
    objects: Arc<Objects>,
    followed: Mutex<Followed>,
}

#[derive(Default)]
struct Followed {
    /// Whether the Secrets of each namespace are listed, or cannot be.
    listed: HashMap<String, watch::Receiver<bool>>,
    /// Tasks that follow them, which end with this.
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    pub(super) fn new(client: Client, objects: Arc<Objects>) -> Secrets {
        Secrets {
            client,
            objects,
            followed: Mutex::default(),
        }
    }

    /// Waits until the Secrets with this key, or prefix of keys, are listed. Follows them from the first call on. Other
    /// keys are listed in any case.
    ///
    /// # Errors
    /// If they are not listed in time, or if too many namespaces are followed.
    pub(super) async fn listed(&self, key: &str) -> Result<(), StoreError> {
        let namespace = key
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('/').next());
        let Some(namespace) = namespace.filter(|name| !name.is_empty()) else {
            return Ok(());
        };
        let mut listed = self.follow(namespace)?;
        match tokio::time::timeout(LIST_MAX, listed.wait_for(|is_listed| *is_listed)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(StoreError::Failed(format!(
                "the Secrets of namespace {namespace} are not listed yet"
            ))),
        }
    }

    fn follow(&self, namespace: &str) -> Result<watch::Receiver<bool>, StoreError> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = followed.listed.get(namespace) {
            return Ok(listed.clone());
        }
        if followed.listed.len() >= NAMESPACES_MAX {
            return Err(StoreError::Failed(format!(
                "the Secrets of {NAMESPACES_MAX} namespaces are followed already; let gateways share namespaces"
            )));
        }
        let (sender, listed) = watch::channel(false);
        followed.listed.insert(namespace.to_owned(), listed.clone());
        let secrets = Api::namespaced(self.client.clone(), namespace);
        let objects = Arc::clone(&self.objects);
        let namespace = namespace.to_owned();
        followed
            .tasks
            .spawn(follow(secrets, namespace, objects, sender));
        Ok(listed)
    }
}

/// Follows the Secrets of a namespace.
async fn follow(
    secrets: Api<Secret>,
    namespace: String,
    objects: Arc<Objects>,
    listed: watch::Sender<bool>,
) {
    let mut events = watcher(secrets, watcher::Config::default().fields(SELECTED))
        .default_backoff()
        .boxed();
    let mut listing = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(secret)) => {
                let (key, value) = entry(&namespace, &secret);
                listing.extend(value.map(|value| (key, value)));
            }
            Ok(Event::InitDone) => {
                let prefix = format!("{PREFIX}{namespace}/");
                objects.replace(&prefix, std::mem::take(&mut listing));
                listed.send_replace(true);
            }
            Ok(Event::Apply(secret)) => objects.apply([entry(&namespace, &secret)]),
            Ok(Event::Delete(secret)) => objects.apply([(entry(&namespace, &secret).0, None)]),
            Err(error) => {
                let is_first = is_forbidden(&error) && !listed.send_replace(true);
                if is_first {
                    tracing::info!(
                        namespace,
                        "Secrets of the namespace may not be read; gateways there get none"
                    );
                } else if !is_forbidden(&error) {
                    tracing::warn!(namespace, %error, "Secrets cannot be followed");
                }
            }
        }
    }
}

/// Returns the key and the value of a Secret; no value for the key of a CA, or while it is being deleted.
fn entry(namespace: &str, secret: &Secret) -> (Arc<str>, Option<Bytes>) {
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    let key = format!("{PREFIX}{namespace}/{name}").into();
    let mut object = serde_json::to_value(secret).unwrap_or_default();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.shift_remove("managedFields");
    }
    let is_authority = object["data"].get(AUTHORITY).is_some();
    let is_served = !is_authority && !object::is_deleting(&object);
    let value = is_served.then(|| object::encode(&object));
    (key, value)
}

/// Whether the account may not list or watch.
fn is_forbidden(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 403,
        _ => false,
    }
}
