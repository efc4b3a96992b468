//! Facts about the cluster: namespaces, the version of Kubernetes, and the settings in the ConfigMap of the webhook.

use std::time::Duration;

use config_loader::ApiServer;
use futures_util::StreamExt;
use inject::{Settings, Version};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::Client;
use kube::api::{Api, ListParams};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::settings::parse_settings;
use crate::remote::Remote;

/// Namespace and name of the ConfigMap with the settings.
const NAMESPACE: &str = "strait-system";
const CONFIG_MAP: &str = "strait-inject";

/// Key of the settings.
const KEY: &str = "settings.yaml";

/// Interval between readings of the version.
const INTERVAL: Duration = Duration::from_secs(600);

/// First versions of an API server whose nodes all have native sidecars: three minors after the first one.
const ALL_NODES: Version = Version(32);

/// Version of Kubernetes, and whether nodes may be older.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kubernetes {
    pub(super) version: Option<Version>,
    pub(super) nodes_unknown: bool,
}

/// Follows the namespaces.
pub(super) fn follow_namespaces(client: &Client, tasks: &mut JoinSet<()>) -> Store<Namespace> {
    let (store, writer) = reflector::store();
    let api: Api<Namespace> = Api::all(client.clone());
    let stream = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    tasks.spawn(stream.for_each(|event| async move {
        if let Err(error) = event {
            tracing::warn!(%error, "namespaces cannot be followed");
        }
    }));
    store
}

/// Follows the version of the API server and of its nodes.
pub(super) fn follow_version(
    client: &Client,
    tasks: &mut JoinSet<()>,
) -> watch::Receiver<Kubernetes> {
    let (sender, receiver) = watch::channel(Kubernetes::default());
    let client = client.clone();
    tasks.spawn(async move {
        while !sender.is_closed() {
            match kubernetes(&client).await {
                Ok(found) => _ = sender.send(found),
                Err(error) => tracing::warn!(%error, "the version of Kubernetes cannot be read"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    });
    receiver
}

async fn kubernetes(client: &Client) -> Result<Kubernetes, kube::Error> {
    let info = client.apiserver_version().await?;
    let version = Version::parse(&format!("{}.{}", info.major, info.minor)).ok();
    if version.is_none_or(|version| version < Version::NATIVE_SIDECARS || version >= ALL_NODES) {
        return Ok(Kubernetes {
            version,
            nodes_unknown: false,
        });
    }
    let nodes: Api<Node> = Api::all(client.clone());
    Ok(match nodes.list(&ListParams::default()).await {
        Ok(nodes) => {
            let kubelets = nodes.items.iter().filter_map(|node| {
                let info = node.status.as_ref()?.node_info.as_ref()?;
                Version::parse(&info.kubelet_version).ok()
            });
            Kubernetes {
                version: kubelets.chain(version).min(),
                nodes_unknown: false,
            }
        }
        Err(_) => Kubernetes {
            version,
            nodes_unknown: true,
        },
    })
}

/// Reads the settings of a cluster's webhook, and the version of its API server.
///
/// # Errors
/// If they cannot be read, or have an error.
pub async fn settings_of(server: ApiServer) -> Result<(Settings, Option<Version>), String> {
    let remote = Remote::new(server, None);
    let client = remote.client().await?;
    let said = |error: kube::Error| format!("{}: {error}", remote.name());
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let found = api.get(CONFIG_MAP).await.map_err(said)?;
    let text = found.data.as_ref().and_then(|data| data.get(KEY));
    let name = format!("ConfigMap {NAMESPACE}/{CONFIG_MAP}");
    let text = text.ok_or_else(|| format!("{name} has no `{KEY}`"))?;
    let kubernetes = kubernetes(&client).await.map_err(said)?;
    Ok((parse_settings(&name, text)?, kubernetes.version))
}
