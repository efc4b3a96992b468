//! Certificates that workloads trust, in ConfigMaps of each namespace that asks for sidecars: the CA of the hub's own
//! certificate, and the roots of identities. A changed or deleted ConfigMap is written again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;
use tokio::sync::watch;

/// ConfigMap, and the key of its only text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    name: &'static str,
    key: &'static str,
}

/// CA of the hub's certificate.
pub(super) const HUB_CA: Published = Published {
    name: "strait-ca",
    key: "ca.crt",
};
/// Roots of the identities of workloads.
pub(super) const IDENTITY_ROOTS: Published = Published {
    name: "strait-ca-root",
    key: "root-cert.pem",
};
/// Field manager of the writes.
const MANAGER: &str = "strait-control";
/// Pause after an error.
const RETRY: Duration = Duration::from_secs(5);

/// Namespaces and their ConfigMaps, as far as they are listed.
#[derive(Debug, Default)]
struct Known {
    /// Whether each namespace asks for sidecars.
    namespaces: BTreeMap<String, bool>,
    /// Text in the ConfigMap of each namespace.
    written: BTreeMap<String, String>,
    /// Whether the ConfigMaps are listed: none is written that is there already.
    is_listed: bool,
}

/// Writer of ConfigMaps.
#[derive(Clone)]
pub(super) struct Publish {
    client: Client,
    revision: String,
}

impl Publish {
    /// Returns the writer to the namespaces that ask for sidecars of a revision.
    pub(super) fn new(client: Client, revision: String) -> Self {
        Self { client, revision }
    }

    /// Writes the text of a value to the namespaces until the sender of values is gone.
    pub(super) async fn follow<T>(
        self,
        published: Published,
        mut values: watch::Receiver<Option<T>>,
        text: fn(&T) -> &str,
    ) {
        let Publish { client, revision } = self;
        let Published { name, key } = published;
        let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut maps = watcher(Api::<ConfigMap>::all(client.clone()), named)
            .default_backoff()
            .boxed();
        let namespaces = Api::<PartialObjectMeta<Namespace>>::all(client.clone());
        let mut namespaces = watcher(namespaces, watcher::Config::default())
            .default_backoff()
            .boxed();
        let mut known = Known::default();
        loop {
            let current = {
                let value = values.borrow_and_update();
                value.as_ref().map(|value| text(value).to_owned())
            };
            let mut is_done = true;
            for namespace in known.lacking(current.as_deref()) {
                let text = current.as_deref().unwrap_or_default();
                match write(&client, &namespace, published, text).await {
                    Ok(()) => _ = known.written.insert(namespace, text.to_owned()),
                    Err(error) => {
                        is_done = false;
                        tracing::warn!(%error, namespace, "the ConfigMap {name} cannot be written");
                    }
                }
            }
            tokio::select! {
                Some(event) = namespaces.next() => match event {
                    Ok(Event::Apply(one) | Event::InitApply(one)) => {
                        let asks = asks(&one.metadata, &revision);
                        known.namespaces.insert(one.metadata.name.unwrap_or_default(), asks);
                    }
                    Ok(Event::Delete(one)) => _ = known.namespaces.remove(&one.metadata.name.unwrap_or_default()),
                    Ok(Event::Init) => known.namespaces.clear(),
                    Ok(Event::InitDone) => {}
                    Err(error) => tracing::warn!(%error, "namespaces cannot be followed"),
                },
                Some(event) = maps.next() => match event {
                    Ok(Event::Apply(one) | Event::InitApply(one)) => {
                        let text = one.data.and_then(|mut data| data.remove(key)).unwrap_or_default();
                        known.written.insert(one.metadata.namespace.unwrap_or_default(), text);
                    }
                    Ok(Event::Delete(one)) => _ = known.written.remove(&one.metadata.namespace.unwrap_or_default()),
                    Ok(Event::Init) => known.written.clear(),
                    Ok(Event::InitDone) => known.is_listed = true,
                    Err(error) => tracing::warn!(%error, "the ConfigMaps {name} cannot be followed"),
                },
                changed = values.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(RETRY), if !is_done => {}
            }
        }
    }
}

impl Known {
    /// Returns the namespaces that ask for sidecars and lack the text.
    fn lacking(&self, text: Option<&str>) -> Vec<String> {
        let Some(text) = text.filter(|_| self.is_listed) else {
            return Vec::new();
        };
        let asking = self.namespaces.iter().filter(|(_, asks)| **asks);
        let names = asking.map(|(name, _)| name);
        let lacks = |name: &&String| self.written.get(*name).is_none_or(|it| it != text);
        names.filter(lacks).cloned().collect()
    }
}

/// Whether a namespace asks for sidecars of this revision.
fn asks(metadata: &kube::api::ObjectMeta, revision: &str) -> bool {
    let label = |name: &str| {
        let labels = metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get(name))
            .map(String::as_str)
    };
    let is_there = metadata.deletion_timestamp.is_none();
    is_there
        && (label("istio.io/rev") == Some(revision) || label("strait.io/inject") == Some("enabled"))
}

async fn write(
    client: &Client,
    namespace: &str,
    Published { name, key }: Published,
    text: &str,
) -> Result<(), kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "strait"}},
        "data": {key: text},
    });
    let params = PatchParams::apply(MANAGER).force();
    api.patch(name, &params, &Patch::Apply(map)).await?;
    tracing::info!(namespace, "the ConfigMap {name} was written");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_that_ask_and_lack_the_ca_are_written_once_maps_are_listed() {
        let mut known = Known::default();
        for (name, asks) in [("a", true), ("b", false), ("c", true), ("d", true)] {
            known.namespaces.insert(name.to_owned(), asks);
        }
        known.written.insert("c".to_owned(), "CA".to_owned());
        known.written.insert("d".to_owned(), "old".to_owned());
        assert!(known.lacking(Some("CA")).is_empty());
        known.is_listed = true;
        assert!(known.lacking(None).is_empty());
        assert_eq!(known.lacking(Some("CA")), ["a", "d"]);
    }

    #[test]
    fn labels_of_a_namespace_ask() {
        for (labels, expected) in [
            (json!({}), false),
            (json!({"istio.io/rev": "strait"}), true),
            (json!({"istio.io/rev": "canary"}), false),
            (json!({"strait.io/inject": "enabled"}), true),
            (
                json!({"istio.io/rev": "canary", "strait.io/inject": "enabled"}),
                true,
            ),
            (json!({"strait.io/inject": "disabled"}), false),
        ] {
            let metadata = serde_json::from_value(json!({"labels": labels})).unwrap();
            assert_eq!(asks(&metadata, "strait"), expected, "{labels}");
        }
    }
}
