//! CA of the certificate in the configurations of the webhooks. It is written again wherever it is taken out.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, ResourceExt};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::secret::Served;

/// Pauses between attempts: the first ones, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Configuration of webhooks.
pub(super) trait Configuration:
    kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static
{
    /// Names and servers of the webhooks.
    fn webhooks(&self) -> impl Iterator<Item = (&str, &WebhookClientConfig)>;
}

impl Configuration for MutatingWebhookConfiguration {
    fn webhooks(&self) -> impl Iterator<Item = (&str, &WebhookClientConfig)> {
        let all = self.webhooks.iter().flatten();
        all.map(|one| (&*one.name, &one.client_config))
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn webhooks(&self) -> impl Iterator<Item = (&str, &WebhookClientConfig)> {
        let all = self.webhooks.iter().flatten();
        all.map(|one| (&*one.name, &one.client_config))
    }
}

/// Writes the CA to all configurations of this revision, until the sender of the CA is gone. Tells whether all have it,
/// and at least one.
pub(super) async fn follow<K: Configuration>(
    client: Client,
    revision: String,
    mut served: watch::Receiver<Option<Served>>,
    bundled: watch::Sender<bool>,
) {
    let api: Api<K> = Api::all(client);
    let labels = format!("app.kubernetes.io/part-of=strait,app.kubernetes.io/instance={revision}");
    let mut watched = watcher(api.clone(), watcher::Config::default().labels(&labels))
        .default_backoff()
        .boxed();
    let mut known: BTreeMap<String, K> = BTreeMap::new();
    let mut pause = RETRY_FIRST;
    loop {
        let authorities = served
            .borrow()
            .as_ref()
            .map(|served| served.authorities.clone());
        let mut is_done = true;
        if let Some(authorities) = &authorities {
            for configuration in known.values() {
                if let Some(patch) = missing(configuration, authorities) {
                    is_done &= write(&api, configuration, patch).await;
                }
            }
        }
        let all = known.values().all(|one| {
            authorities
                .as_ref()
                .is_some_and(|it| missing(one, it).is_none())
        });
        let _ = bundled.send(all && !known.is_empty());
        pause = if is_done {
            RETRY_FIRST
        } else {
            (pause * 2).min(RETRY_MAX)
        };
        tokio::select! {
            event = watched.next() => match event {
                Some(Ok(watcher::Event::Init)) => known.clear(),
                Some(Ok(watcher::Event::Apply(one) | watcher::Event::InitApply(one))) => _ = known.insert(one.name_any(), one),
                Some(Ok(watcher::Event::Delete(one))) => _ = known.remove(&one.name_any()),
                Some(Ok(watcher::Event::InitDone)) => {}
                Some(Err(error)) => tracing::warn!(%error, "the configuration of the webhook cannot be followed"),
                None => return,
            },
            changed = served.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(pause), if !is_done => {}
        }
    }
}

/// Returns the operations that write the CA; `None` if it is there.
fn missing(configuration: &impl Configuration, authorities: &str) -> Option<Vec<Value>> {
    let wanted = ByteString(authorities.as_bytes().to_vec());
    let webhooks = configuration.webhooks().enumerate();
    let lacking = webhooks.filter(|(_, (_, server))| server.ca_bundle.as_ref() != Some(&wanted));
    let operations: Vec<Value> = lacking
        .flat_map(|(index, (name, _))| {
            let path = format!("/webhooks/{index}");
            [
                json!({"op": "test", "path": format!("{path}/name"), "value": name}),
                json!({"op": "add", "path": format!("{path}/clientConfig/caBundle"), "value": wanted}),
            ]
        })
        .collect();
    (!operations.is_empty()).then_some(operations)
}

async fn write<K: Configuration>(api: &Api<K>, configuration: &K, operations: Vec<Value>) -> bool {
    let name = configuration.name_any();
    let operations = serde_json::from_value(operations.into());
    let Ok(patch) = operations.map(Patch::Json::<()>) else {
        return true;
    };
    match api.patch(&name, &PatchParams::default(), &patch).await {
        Ok(_) => {
            tracing::info!(configuration = name, "the CA of the webhook was written");
            true
        }
        Err(error) => {
            tracing::warn!(%error, configuration = name, "the CA of the webhook cannot be written");
            false
        }
    }
}
