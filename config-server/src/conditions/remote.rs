//! Conditions of the objects of a Kubernetes API server.

use std::path::PathBuf;
use std::sync::Arc;

use config_loader::source::content::Reader;
use config_loader::source::{FollowedObjects, follow_objects};
use config_loader::{ApiServer, ControlSettings, Kind, KubernetesSettings};
use serde_json::Value;
use tokio::sync::mpsc;

use super::follow::Feed;
use super::write::{MANAGER, Outcome, Write, outcome, patch};
use crate::remote::{Remote, send};

/// Writes the conditions of one object.
pub(super) async fn write(remote: &Remote, write: &Write) -> Outcome {
    let client = match remote.client().await {
        Ok(client) => client,
        Err(error) => {
            tracing::warn!(server = remote.name(), error, "no status can be written");
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
        Ok(object) if keeps(&object, write) => Outcome::Done,
        Ok(_) => {
            let resource = write.resource.qualified();
            tracing::warn!(resource, "the API server keeps no status of these");
            Outcome::NotKept
        }
        Err(kube::Error::Api(status)) => {
            if status.code == 401 {
                remote.forget_client().await;
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

/// Whether the object that a write returned has a field of the status that was written.
fn keeps(object: &Value, write: &Write) -> bool {
    let mut fields = write.status.as_object().into_iter().flatten();
    fields.any(|(name, _)| !object["status"][name].is_null())
}

/// Follows the objects of an API server until the result is dropped.
///
/// # Errors
/// If a thread cannot be started.
pub fn follow_remote(
    server: ApiServer,
    kubeconfig: Option<PathBuf>,
    feed: mpsc::Sender<Feed>,
) -> std::io::Result<FollowedObjects> {
    let settings = ControlSettings {
        kubernetes: KubernetesSettings {
            servers: vec![server],
            kubeconfig,
            // Kinds that the credentials may not read are skipped, and get no conditions.
            optional: Kind::ALL.to_vec(),
            reads_referred: true,
            reader: Reader::StatusWriter,
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
        // The watches end when the receiver is dropped.
        let mut told = send(&feed, Feed::Changes(changes));
        if update.is_complete && !is_complete {
            told &= send(&feed, Feed::Complete);
            is_complete = told;
        }
    })
}
