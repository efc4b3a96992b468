//! Conditions of the objects of a real API server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config_loader::source::{FollowedObjects, connect, follow_objects};
use config_loader::{ApiServer, ControlSettings, KubernetesSettings};
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, mpsc};

use super::MANAGER;
use super::follow::Feed;
use super::writer::{Outcome, Write, outcome, patch};

/// How long to wait for room in the feed.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Writes to an API server.
pub struct Remote {
    server: ApiServer,
    kubeconfig: Option<PathBuf>,
    client: Mutex<Option<Client>>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut remote = f.debug_struct("Remote");
        remote.field("server", &self.server).finish_non_exhaustive()
    }
}

impl Remote {
    /// Writes to that server.
    pub fn new(server: ApiServer, kubeconfig: Option<PathBuf>) -> Remote {
        Remote {
            server,
            kubeconfig,
            client: Mutex::new(None),
        }
    }

    /// The client; a new one after the credentials were refused.
    ///
    /// # Errors
    /// What is missing, in words.
    pub async fn client(&self) -> Result<Client, String> {
        let mut client = self.client.lock().await;
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let made = connect(&self.server, self.kubeconfig.as_deref()).await?;
        Ok(client.insert(made).clone())
    }

    /// Writes the conditions of one object.
    pub(super) async fn write(&self, write: &Write) -> Outcome {
        let client = match self.client().await {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(
                    server = self.server.name(),
                    error,
                    "no status can be written"
                );
                return Outcome::Failed;
            }
        };
        let request = http::Request::patch(path(write))
            .header("content-type", "application/merge-patch+json")
            .body(patch(write).to_string().into_bytes());
        let Ok(request) = request else {
            return Outcome::Failed;
        };
        match client.request::<Value>(request).await {
            Ok(object) if has_conditions(&object) => Outcome::Done,
            Ok(_) => {
                let resource = write.resource.qualified();
                tracing::warn!(resource, "the API server keeps no conditions of these");
                Outcome::NotKept
            }
            Err(kube::Error::Api(status)) => {
                if status.code == 401 {
                    self.client.lock().await.take();
                }
                let code = http::StatusCode::from_u16(status.code);
                outcome(write, code.unwrap_or_default(), &status.message)
            }
            Err(error) => {
                tracing::warn!(object = %write.key, %error, "the status of an object cannot be written");
                Outcome::Failed
            }
        }
    }
}

fn path(write: &Write) -> String {
    let Write {
        resource,
        version,
        namespace,
        name,
        ..
    } = write;
    let group = match resource.group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let namespace = match namespace {
        Some(namespace) => format!("/namespaces/{namespace}"),
        None => String::new(),
    };
    let plural = resource.api.plural;
    format!("{group}{namespace}/{plural}/{name}/status?fieldManager={MANAGER}")
}

fn has_conditions(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| !conditions.is_empty())
}

/// Follows the objects of an API server until the result is dropped.
///
/// # Errors
/// If no thread can be started.
pub fn follow_remote(
    server: ApiServer,
    kubeconfig: Option<PathBuf>,
    feed: mpsc::Sender<Feed>,
) -> std::io::Result<FollowedObjects> {
    let settings = ControlSettings {
        kubernetes: KubernetesSettings {
            servers: vec![server],
            kubeconfig,
            ..KubernetesSettings::default()
        },
        ..ControlSettings::default()
    };
    let mut problems = Vec::new();
    let mut is_complete = false;
    follow_objects(settings, move |update| {
        if update.problems != problems {
            for found in &update.problems {
                tracing::warn!(server = %found.location.file, problem = %found.message, "API server");
            }
            problems = update.problems;
        }
        let changes = update.changes.into_iter();
        let changes: Vec<(Arc<str>, Option<Value>)> = changes
            .map(|(name, text)| {
                (
                    name,
                    text.and_then(|text| serde_json::from_slice(&text).ok()),
                )
            })
            .collect();
        // When nobody listens any more the following ends as well.
        let mut told = send(&feed, Feed::Changes(changes));
        if update.is_complete && !is_complete {
            told &= send(&feed, Feed::Complete);
            is_complete = told;
        }
    })
}

/// Sends from the thread that follows, which pauses while the feed is full. Returns whether somebody listens.
fn send(feed: &mpsc::Sender<Feed>, mut message: Feed) -> bool {
    loop {
        message = match feed.try_send(message) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(message)) => message,
        };
        std::thread::sleep(FULL_PAUSE);
    }
}
