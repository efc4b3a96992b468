//! A review of the API server: from the pod that is to be created to the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use inject::{Caller, Context, Injected, Namespace, Outcome, Owner, Settings, Skip, inject};
use k8s_openapi::api::core::v1;
use kube::Client;
use kube::api::Api;
use kube::runtime::reflector::{ObjectRef, Store};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::cluster::Kubernetes;
use super::events::Events;
use super::response::allowed;
use super::validate;
use crate::metrics;

/// Time to get a namespace that is not known yet.
const NAMESPACE_MAX: Duration = Duration::from_secs(1);

/// Results that are counted.
const RESULTS: [&str; 16] = [
    "ambient",
    "disabled",
    "dry_run",
    "foreign_istio",
    "foreign_linkerd",
    "host_network",
    "injected",
    "invalid_annotation",
    "malformed",
    "not_selected",
    "pod_security",
    "port_conflict",
    "refused",
    "system_namespace",
    "user_1337",
    "windows",
];

/// Facts about the cluster and the injector itself.
pub(super) struct Known {
    pub(super) settings: watch::Receiver<Arc<Settings>>,
    pub(super) namespaces: Store<v1::Namespace>,
    pub(super) kubernetes: watch::Receiver<Kubernetes>,
    pub(super) client: Client,
    pub(super) events: Events,
    pub(super) validates: bool,
    pub(super) adopts_istio_injection: bool,
    pub(super) own_namespace: String,
}

/// Injector of the webhook.
pub struct Injector {
    known: Known,
    results: [AtomicU64; RESULTS.len()],
}

impl std::fmt::Debug for Injector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Injector").finish_non_exhaustive()
    }
}

/// Question of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The sidecar of a pod.
    Inject(Place),
    /// The validity of a resource.
    Validate,
}

impl Question {
    /// Reads a path; `None` if it is not one of the webhook.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path.trim_end_matches('/') {
            "/validate" => Some(Self::Validate),
            _ => Place::of(path).map(Self::Inject),
        }
    }
}

/// Cluster and network that the path of a request names: `/inject/cluster/NAME/net/NAME`, as Istio writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    cluster: Option<String>,
    network: Option<String>,
}

impl Place {
    /// Reads a path; `None` if it is not one of the webhook.
    pub(super) fn of(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/inject")?.trim_end_matches('/');
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let mut place = Self::default();
        for pair in parts.chunks(2) {
            match pair {
                ["cluster", name] => place.cluster = Some((*name).to_owned()),
                ["net", name] => place.network = Some((*name).to_owned()),
                _ => return None,
            }
        }
        (rest.is_empty() || rest.starts_with('/')).then_some(place)
    }
}

impl Injector {
    pub(super) fn new(known: Known) -> Self {
        Self {
            known,
            results: Default::default(),
        }
    }

    /// Returns whether all namespaces were listed once.
    pub(super) async fn is_ready(&self) -> bool {
        let listed = self.known.namespaces.wait_until_ready();
        tokio::time::timeout(Duration::ZERO, listed).await.is_ok()
    }

    /// Returns the counters as text for Prometheus.
    pub(super) fn metrics(&self) -> String {
        let counts = self
            .results
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        metrics::injections(RESULTS.into_iter().zip(counts))
    }

    fn count(&self, result: &str) {
        let index = RESULTS.iter().position(|one| *one == result);
        let index = index.or_else(|| RESULTS.iter().position(|one| *one == "refused"));
        if let Some(counter) = index.and_then(|index| self.results.get(index)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers a review.
    ///
    /// # Errors
    /// If the body is no review: what to tell the client.
    pub(super) async fn answer(&self, body: &[u8], question: Question) -> Result<Value, String> {
        let review: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the body is malformed JSON: {error}"))?;
        let request = &review["request"];
        let Some(uid) = request["uid"].as_str() else {
            return Err(
                "expected an AdmissionReview of admission.k8s.io/v1 with a request".to_owned(),
            );
        };
        let mut response = match question {
            Question::Inject(place) => self.reviewed(request, place).await,
            Question::Validate if self.known.validates => {
                let revision = self.known.settings.borrow().revision.clone();
                validate::reviewed(request, &revision)
            }
            Question::Validate => allowed(&[]),
        };
        response["uid"] = uid.into();
        Ok(
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}),
        )
    }

    async fn reviewed(&self, request: &Value, place: Place) -> Value {
        let (kind, pod) = (&request["kind"]["kind"], &request["object"]);
        if kind != "Pod" || !pod["spec"].is_object() {
            return allowed(&["IN011: the object is not a pod; let the configuration of the webhook name pods only".to_owned()]);
        }
        if request["operation"] != "CREATE" {
            return allowed(&[]);
        }
        let mut warnings = Vec::new();
        let name = request["namespace"].as_str().unwrap_or_default();
        let namespace = self.namespace(name, &mut warnings).await;
        let mut settings = Settings::clone(&self.known.settings.borrow());
        settings.cluster = place.cluster.unwrap_or(settings.cluster);
        settings.network = place.network.unwrap_or(settings.network);
        let kubernetes = *self.known.kubernetes.borrow();
        let context = Context {
            kubernetes: kubernetes.version,
            nodes_unknown: kubernetes.nodes_unknown,
            caller: Caller::Webhook {
                adopts_istio_injection: self.known.adopts_istio_injection,
            },
            own_namespace: Some(&self.known.own_namespace),
            ..Context::new(&settings, namespace)
        };
        let shown = format!("pod {} in {name}", Owner::of_pod(&json!({"metadata": {"name": pod["metadata"]["name"], "generateName": pod["metadata"]["generateName"]}})).name);
        let is_dry = request["dryRun"] == true;
        let count = |result: &str| self.count(if is_dry { "dry_run" } else { result });
        match inject(pod, &context) {
            Ok(Outcome::Injected(done)) => {
                count("injected");
                injected(*done, warnings)
            }
            Ok(Outcome::Skipped(skip)) => {
                count(skip.reason());
                let surprise = surprise(skip, &shown);
                if let Some(text) = surprise.as_ref().filter(|_| !is_dry) {
                    let events = &self.known.events;
                    events.report(name, pod, "SidecarSkipped", text.clone());
                }
                warnings.extend(surprise);
                allowed(&warnings)
            }
            Err(refusal) => {
                count(refusal.reason);
                tracing::info!(pod = shown, reason = refusal.reason, "a pod was refused");
                let message = format!("{shown}: {refusal}");
                if !is_dry {
                    let events = &self.known.events;
                    events.report(name, pod, "SidecarRefused", message.clone());
                }
                json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": message}})
            }
        }
    }

    /// Returns the labels and annotations of a namespace.
    async fn namespace(&self, name: &str, warnings: &mut Vec<String>) -> Namespace {
        if let Some(found) = self.known.namespaces.get(&ObjectRef::new(name)) {
            return of_object(name, &found);
        }
        let api: Api<v1::Namespace> = Api::all(self.known.client.clone());
        match tokio::time::timeout(NAMESPACE_MAX, api.get(name)).await {
            Ok(Ok(found)) => of_object(name, &found),
            Ok(Err(_)) | Err(_) => {
                warnings.push(format!(
                    "IN010: the labels of namespace {name} are not known; the settings count alone"
                ));
                Namespace::named(name)
            }
        }
    }
}

fn of_object(name: &str, object: &v1::Namespace) -> Namespace {
    let texts = |map: &Option<BTreeMap<String, String>>| map.clone().unwrap_or_default();
    Namespace {
        name: name.to_owned(),
        labels: texts(&object.metadata.labels),
        annotations: texts(&object.metadata.annotations),
    }
}

/// Returns the warning about a skip that the owner of the pod does not expect.
fn surprise(skip: Skip, shown: &str) -> Option<String> {
    (!skip.is_asked_for()).then(|| format!("{shown} gets no sidecar: {skip}"))
}

fn injected(done: Injected, mut warnings: Vec<String>) -> Value {
    warnings.extend(done.findings.iter().map(ToString::to_string));
    let mut response = allowed(&warnings);
    if !done.patch.is_empty() {
        let patch = Value::from(done.patch).to_string();
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch).into();
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_name_the_cluster_and_the_network() {
        let place = |cluster: Option<&str>, network: Option<&str>| {
            Some(Place {
                cluster: cluster.map(str::to_owned),
                network: network.map(str::to_owned),
            })
        };
        for (path, expected) in [
            ("/inject", place(None, None)),
            ("/inject/", place(None, None)),
            ("/inject/cluster/a/net/b", place(Some("a"), Some("b"))),
            ("/inject/net/b", place(None, Some("b"))),
            ("/inject/cluster", None),
            ("/inject/x/y", None),
            ("/injection", None),
            ("/", None),
        ] {
            assert_eq!(Place::of(path), expected, "{path}");
        }
    }
}
