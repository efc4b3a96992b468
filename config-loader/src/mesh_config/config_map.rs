//! The ConfigMap `istio` of an API server, which has the mesh configuration.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;

use crate::diagnostic::codes::common::SRC001;
use crate::diagnostic::{Diagnostic, Severity};
use crate::resource::istio::MeshConfig;
use crate::settings_file::{self, SettingsUpdate};
use crate::source::{KubernetesSettings, connect};
use crate::span::Lines;

/// Name of the ConfigMap.
const NAME: &str = "istio";

/// Key of its data that has the mesh configuration.
const KEY: &str = "mesh";

/// Key of its data that has the networks.
const NETWORKS: &str = "meshNetworks";

/// Follows the ConfigMap `istio` of the local cluster in a namespace, and calls `on_update` with its settings, first after
/// one attempt to read it. Never ends, unless there is no local API server. A ConfigMap that cannot be read, or never
/// existed, has no settings; one that is deleted leaves its last settings.
pub async fn follow_config_map(
    settings: KubernetesSettings,
    namespace: String,
    mut on_update: impl FnMut(SettingsUpdate<MeshConfig>),
) {
    let mut servers = settings.servers.iter();
    let Some(server) = servers.find(|server| server.cluster.is_none()) else {
        return on_update(SettingsUpdate::default());
    };
    let mut has_tried = false;
    let mut followed = Followed {
        name: format!("{}/configmaps/{namespace}/{NAME}", server.name()).into(),
        settings: MeshConfig::default(),
        has_existed: false,
    };
    loop {
        if let Ok(client) = connect(server, settings.kubeconfig.as_deref()).await {
            let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
            let mut changes = pin!(watch_object(api, NAME).default_backoff());
            while let Some(change) = changes.next().await {
                match change {
                    Ok(object) => on_update(followed.update(object)),
                    Err(error) => {
                        tracing::debug!(%error, "the ConfigMap {NAME} cannot be read");
                        if !has_tried {
                            on_update(SettingsUpdate::default());
                        }
                    }
                }
                has_tried = true;
            }
        }
        if !std::mem::replace(&mut has_tried, true) {
            on_update(SettingsUpdate::default());
        }
        tokio::time::sleep(settings.times.retry).await;
    }
}

/// State of the ConfigMap.
struct Followed {
    /// Name in diagnostics.
    name: Arc<str>,
    /// Settings of its last version without an error.
    settings: MeshConfig,
    has_existed: bool,
}

impl Followed {
    /// Reads a version of the ConfigMap; `None` if it does not exist.
    fn update(&mut self, object: Option<ConfigMap>) -> SettingsUpdate<MeshConfig> {
        let mut data = object.and_then(|object| object.data).unwrap_or_default();
        let networks = data.remove(NETWORKS);
        let diagnostics = match data.remove(KEY) {
            Some(text) => {
                self.has_existed = true;
                let lines = Lines::new(&text);
                let locator = settings_file::whole(&self.name, &text, &lines);
                let [mesh, networks] = [Some(text.clone()), networks]
                    .map(|text| text.map(|text| (Arc::from(text), 0)));
                match super::both(locator, &mesh.unwrap_or_default(), networks.as_ref()) {
                    Ok((settings, found)) => {
                        self.settings = settings;
                        found
                    }
                    Err(found) => found,
                }
            }
            None if self.has_existed => {
                let (file, message) = (
                    Arc::clone(&self.name),
                    "the ConfigMap is gone: what it said last stays in effect",
                );
                vec![Diagnostic::about_file(
                    Severity::Warning,
                    SRC001,
                    file,
                    message,
                )]
            }
            None => Vec::new(),
        };
        SettingsUpdate {
            settings: self.settings.clone(),
            diagnostics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Option<ConfigMap> {
        Some(ConfigMap {
            data: Some([(KEY.to_owned(), text.to_owned())].into()),
            ..ConfigMap::default()
        })
    }

    #[test]
    fn last_good_version_stays() {
        let mut followed = Followed {
            name: "server".into(),
            settings: MeshConfig::default(),
            has_existed: false,
        };
        let mut seen = |object: Option<ConfigMap>| {
            let update = followed.update(object);
            let codes = update.diagnostics.iter().map(|found| found.code.0);
            (update.settings.authorizers.len(), codes.collect::<Vec<_>>())
        };
        assert_eq!(seen(None), (0, vec![]));
        let provider =
            "extensionProviders: [{name: p, envoyExtAuthzGrpc: {service: a.test, port: 1}}]";
        assert_eq!(seen(with(provider)), (1, vec![]));
        assert_eq!(
            seen(with("extensionProviders: [{name: p}]")),
            (1, vec!["MC002"])
        );
        assert_eq!(seen(None), (1, vec!["SRC001"]));
        assert_eq!(seen(with("{}")), (0, vec![]));
    }
}
