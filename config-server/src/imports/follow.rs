//! Watches of the clusters and of the remote clusters file.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use config_loader::source::{FollowedObjects, follow_objects};
use config_loader::{
    ApiServer, ClusterSettings, ControlSettings, Diagnostic, Kind, KubernetesSettings,
    SettingsUpdate,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::cluster::GROUPS;
use super::settings::ImportingCluster;
use crate::remote::{Remote, send};

/// Interval between discoveries of the API groups in which a cluster serves ServiceImports. CRDs may be installed
/// later.
const GROUPS_INTERVAL: Duration = Duration::from_secs(30);
/// Delay before a failed discovery is retried.
const GROUPS_RETRY: Duration = Duration::from_secs(2);
/// Timeout of a discovery.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Resources that are read from each cluster.
const RESOURCES: [(Kind, &str); 7] = [
    (Kind::Service, ""),
    (Kind::ServiceExport, GROUPS[0]),
    (Kind::ServiceExport, GROUPS[1]),
    (Kind::ServiceImport, GROUPS[0]),
    (Kind::ServiceImport, GROUPS[1]),
    (Kind::Cluster, GROUPS[0]),
    (Kind::Cluster, GROUPS[1]),
];

/// Change of a cluster or of the remote clusters file.
#[derive(Debug)]
pub(super) enum Message {
    /// Changed objects of the cluster with this number.
    Objects {
        number: usize,
        changes: Vec<(Arc<str>, Option<Value>)>,
        problems: Vec<Diagnostic>,
        is_listed: bool,
    },
    /// API groups in which the cluster with this number serves ServiceImports.
    Groups(usize, BTreeSet<&'static str>),
    /// Content of the remote clusters file.
    Told(Vec<ClusterSettings>),
}

/// Follows the objects of a cluster until the result is dropped.
///
/// # Errors
/// If a thread cannot be started.
pub(super) fn follow(
    cluster: &ImportingCluster,
    number: usize,
    feed: mpsc::Sender<Message>,
) -> std::io::Result<FollowedObjects> {
    let settings = ControlSettings {
        kubernetes: KubernetesSettings {
            // No cluster key: with one, only services and endpoints would be read.
            servers: vec![ApiServer {
                context: cluster.server.context.clone(),
                cluster: None,
            }],
            kubeconfig: cluster.kubeconfig.clone(),
            resources: RESOURCES.to_vec(),
            // Kinds that the credentials may not read are reported as problems.
            optional: Kind::ALL.to_vec(),
            ..KubernetesSettings::default()
        },
        ..ControlSettings::default()
    };
    follow_objects(settings, move |update| {
        let parsed = |text: Vec<u8>| serde_json::from_slice(&text).ok();
        let changes = update.changes.into_iter();
        // The watches end when the receiver is dropped.
        send(
            &feed,
            Message::Objects {
                number,
                changes: changes
                    .map(|(name, text)| (name, text.and_then(parsed)))
                    .collect(),
                problems: update.problems,
                is_listed: update.is_listed,
            },
        );
    })
}

/// Sends the API groups in which a cluster serves ServiceImports, until the feed is closed.
pub(super) async fn follow_groups(remote: Arc<Remote>, number: usize, feed: mpsc::Sender<Message>) {
    let mut known = None;
    loop {
        let asked = tokio::time::timeout(ANSWER_MAX, groups(&remote)).await;
        let pause = match asked {
            Ok(Ok(found)) => {
                if known.as_ref() != Some(&found) {
                    known = Some(found.clone());
                    if feed.send(Message::Groups(number, found)).await.is_err() {
                        return;
                    }
                }
                GROUPS_INTERVAL
            }
            // The watch of the objects reports the reason.
            Ok(Err(_)) | Err(_) => GROUPS_RETRY,
        };
        tokio::time::sleep(pause.mul_f64(1.0 + rand::random::<f64>() / 2.0)).await;
    }
}

async fn groups(remote: &Remote) -> Result<BTreeSet<&'static str>, String> {
    let client = remote.client().await?;
    let mut found = BTreeSet::new();
    for group in GROUPS {
        match client
            .list_api_group_resources(&format!("{group}/v1alpha1"))
            .await
        {
            Ok(list) => {
                if list
                    .resources
                    .iter()
                    .any(|one| one.name == "serviceimports")
                {
                    found.insert(group);
                }
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(kube::Error::Api(status)) if status.code == 401 => {
                remote.forget_client().await;
                return Err(status.message.clone());
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(found)
}

/// Returns a callback that forwards the remote clusters file. Errors in the file are logged, and the last good version
/// stays.
pub(super) fn clusters_file(
    feed: mpsc::Sender<Message>,
) -> impl FnMut(SettingsUpdate<Vec<ClusterSettings>>) + Send + 'static {
    move |update| {
        for found in &update.diagnostics {
            let location = format!("{}:{}", found.location.file, found.location.line);
            tracing::warn!(location, problem = %found.message, "remote clusters file");
        }
        send(&feed, Message::Told(update.settings));
    }
}
