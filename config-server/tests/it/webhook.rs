//! The webhook with a real API server, which `STRAIT_TEST_KUBECONFIG` names.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use config_loader::source::connect;
use config_server::access::pki::Files;
use config_server::{Roles, Webhook};
use inject::{Context, Namespace, Outcome, Settings, inject};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{self, Pod, Secret};
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;

mod files;

/// Longest wait for the API server.
const DEADLINE: Duration = Duration::from_secs(30);

/// Cluster with a namespace, a webhook configuration and its servers.
struct Cluster {
    client: Client,
    kubeconfig: PathBuf,
    /// Name of the namespace, of the revision, and of the configuration.
    name: String,
}

/// Running webhook.
struct Running {
    address: SocketAddr,
    health: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<(), String>>,
    _settings: tempfile::NamedTempFile,
}

impl Cluster {
    /// Returns the cluster with a namespace of its own; `None` if there is no API server.
    async fn new(labels: Value) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Some(kubeconfig) = std::env::var_os("STRAIT_TEST_KUBECONFIG").map(PathBuf::from) else {
            println!("skipped: STRAIT_TEST_KUBECONFIG names no API server");
            return None;
        };
        let client = connect(&"kubernetes://".parse().unwrap(), Some(&kubeconfig))
            .await
            .unwrap();
        let name = format!(
            "webhook-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let mut labels = labels;
        for value in labels.as_object_mut().unwrap().values_mut() {
            if value == "OUR REVISION" {
                *value = (&*name).into();
            }
        }
        let cluster = Self {
            client,
            kubeconfig,
            name,
        };
        for (name, labels) in [
            (cluster.name.clone(), labels),
            (cluster.own_namespace(), json!({})),
        ] {
            let namespace = json!({"metadata": {"name": name, "labels": labels}});
            let namespaces = Api::all(cluster.client.clone());
            let _: v1::Namespace = cluster.create(namespaces, namespace).await;
        }
        Some(cluster)
    }

    async fn create<K: DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug>(
        &self,
        api: Api<K>,
        object: Value,
    ) -> K {
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    /// Returns the namespace of the webhook, in which nothing is injected.
    fn own_namespace(&self) -> String {
        format!("{}-system", self.name)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    fn configurations(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    /// Starts a replica of the webhook, whose revision is the name of the namespace.
    async fn start(&self) -> Running {
        self.start_with(None).await
    }

    /// Starts a replica, with the files of a certificate or one of its own.
    async fn start_with(&self, files: Option<Files>) -> Running {
        let settings = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(settings.path(), format!("revision: {}\n", self.name)).unwrap();
        let roles = Roles {
            server: "kubernetes://".parse().unwrap(),
            kubeconfig: Some(self.kubeconfig.clone()),
            health: Some("127.0.0.1:0".parse().unwrap()),
            namespace: self.own_namespace(),
            files,
            names: vec!["127.0.0.1".to_owned()],
            settings: Some(settings.path().to_owned()),
            leaves_after: Duration::ZERO,
            webhook: Some(Webhook {
                listen: "127.0.0.1:0".parse().unwrap(),
                validates: true,
                adopts_istio_injection: false,
            }),
            hub: None,
            status_for: None,
        };
        let (stop, stopped) = oneshot::channel();
        let (listening, addresses) = oneshot::channel();
        let task = tokio::spawn(roles.run(Some(listening), stopped));
        let bound = addresses.await.unwrap();
        Running {
            address: bound.webhook.unwrap(),
            health: bound.health.unwrap(),
            stop: Some(stop),
            task,
            _settings: settings,
        }
    }

    /// Registers the webhook for the namespace, without a CA.
    async fn register(&self, address: SocketAddr) {
        let _: MutatingWebhookConfiguration = self.create(self.configurations(), json!({
            "metadata": {"name": self.name, "labels": {
                "app.kubernetes.io/part-of": "strait", "app.kubernetes.io/instance": self.name}},
            "webhooks": [{
                "name": "revision.inject.strait.io",
                "clientConfig": {"url": format!("https://{address}/inject")},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.name}},
                "sideEffects": "None", "reinvocationPolicy": "IfNeeded", "timeoutSeconds": 5, "failurePolicy": "Fail",
                "admissionReviewVersions": ["v1"],
            }],
        })).await;
    }

    async fn end(self) {
        let _ = self
            .configurations()
            .delete(&self.name, &DeleteParams::default())
            .await;
        let namespaces: Api<v1::Namespace> = Api::all(self.client.clone());
        for name in [self.own_namespace(), self.name] {
            let _ = namespaces.delete(&name, &DeleteParams::default()).await;
        }
    }

    /// Waits until a dry run of a pod is injected.
    async fn until_injected(&self) {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let mut last = None;
        let injected = tokio::time::timeout(DEADLINE, async {
            loop {
                let created = self.pods().create(&dry, &pod("probe", json!({}))).await;
                let is_injected = |pod: &Pod| containers(pod).contains(&"strait-proxy".to_owned());
                if created.as_ref().is_ok_and(is_injected) {
                    return;
                }
                last = Some(created.map(|pod| containers(&pod)));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        assert!(injected.await.is_ok(), "no pod is injected: {last:?}");
    }
}

impl Running {
    async fn ready(&self) -> (u16, String) {
        let (status, body) = get(self.health, "/healthz/ready").await;
        (status, body.trim_end().to_owned())
    }

    async fn end(mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        self.task.await.unwrap().unwrap();
    }
}

/// Sends a GET over plain HTTP.
pub async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    use http_body_util::{BodyExt, Empty};
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(path)
        .header("host", "health")
        .body(Empty::<hyper::body::Bytes>::new())
        .unwrap();
    let reply = sender.send_request(request).await.unwrap();
    let status = reply.status().as_u16();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(DEADLINE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}: not within {DEADLINE:?}");
}

fn pod_json(name: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": annotations},
        "spec": {"automountServiceAccountToken": false, "serviceAccountName": "default", "containers": [{
            "name": "web", "image": "web:1", "readinessProbe": {"httpGet": {"path": "/", "port": 8080}}}]},
    })
}

fn pod(name: &str, annotations: Value) -> Pod {
    serde_json::from_value(pod_json(name, annotations)).unwrap()
}

fn containers(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.as_ref().unwrap();
    let init = spec.init_containers.iter().flatten();
    init.chain(&spec.containers)
        .map(|one| one.name.clone())
        .collect()
}

/// Returns a value whose texts of JSON are JSON, in which the order of fields does not count.
fn parsed(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), parsed(value)))
            .collect(),
        Value::Array(items) => items.iter().map(parsed).collect(),
        Value::String(text) if text.starts_with('{') => serde_json::from_str(text).unwrap(),
        other => other.clone(),
    }
}

/// Returns where `found` lacks something that `wanted` has: an API server adds defaults.
fn missing(found: &Value, wanted: &Value, path: &str) -> Option<String> {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().find_map(|(key, value)| {
            missing(
                found.get(key).unwrap_or(&Value::Null),
                value,
                &format!("{path}.{key}"),
            )
        }),
        (Value::Array(found), Value::Array(wanted)) if found.len() >= wanted.len() => {
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.find_map(|(index, (wanted, found))| {
                missing(found, wanted, &format!("{path}[{index}]"))
            })
        }
        (found, wanted) => (found != wanted).then(|| format!("{path}: {found}, not {wanted}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn created_pod_equals_what_the_command_makes_of_it() {
    let Some(cluster) = Cluster::new(json!({"istio.io/rev": "OUR REVISION"})).await else {
        return;
    };
    let running = cluster.start().await;
    until("the certificate is there", async || {
        running.ready().await.1.contains("no configuration")
    })
    .await;
    cluster.register(running.address).await;
    cluster.until_injected().await;
    until("it is ready", async || {
        running.ready().await == (200, "ready".to_owned())
    })
    .await;

    let created = cluster
        .pods()
        .create(&PostParams::default(), &pod("web", json!({})))
        .await
        .unwrap();
    assert_eq!(containers(&created), ["strait-init", "strait-proxy", "web"]);
    let settings = Settings::default()
        .with(&json!({"revision": cluster.name}))
        .unwrap();
    let mut namespace = Namespace::named(&cluster.name);
    namespace
        .labels
        .insert("istio.io/rev".to_owned(), cluster.name.clone());
    let context = Context {
        caller: inject::Caller::Webhook {
            adopts_istio_injection: false,
        },
        ..Context::new(&settings, namespace)
    };
    // the webhook sees the pod with the defaults of the API server
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let beside: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.own_namespace());
    let plain = beside.create(&dry, &pod("web", json!({}))).await.unwrap();
    let spec = serde_json::to_value(plain.spec).unwrap();
    let metadata = json!({"name": "web", "labels": {"app": "web"}});
    let plain = json!({"metadata": metadata, "spec": spec});
    let Ok(Outcome::Injected(done)) = inject(&plain, &context) else {
        panic!("not injected");
    };
    let stored = parsed(&serde_json::to_value(&created).unwrap());
    let wanted = parsed(&done.pod);
    for part in ["metadata", "spec"] {
        assert_eq!(missing(&stored[part], &wanted[part], part), None);
    }
    let (_, metrics) = get(running.health, "/metrics").await;
    assert!(metrics.contains("{result=\"injected\"} 1\n"), "{metrics}");
    running.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_reach_the_client_and_other_namespaces_are_untouched() {
    let Some(cluster) = Cluster::new(json!({"strait.io/inject": "enabled"})).await else {
        return;
    };
    let running = cluster.start().await;
    cluster.register(running.address).await;
    cluster.until_injected().await;
    let wrong = pod("wrong", json!({"sidecar.istio.io/logLevel": "loud"}));
    let error = cluster
        .pods()
        .create(&PostParams::default(), &wrong)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("annotation `sidecar.istio.io/logLevel` has the value `loud`"),
        "{error}"
    );
    // labels of the namespace are followed: no consent any more, and a standard that forbids the capture
    let namespaces: Api<v1::Namespace> = Api::all(cluster.client.clone());
    let relabel = async |labels: Value| {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        namespaces
            .patch(&cluster.name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let create = async || cluster.pods().create(&dry, &pod("web", json!({}))).await;
    relabel(json!({"pod-security.kubernetes.io/enforce": "baseline"})).await;
    until("the capture is refused", async || {
        create()
            .await
            .is_err_and(|error| error.to_string().contains("strait.io/capture: istio-cni"))
    })
    .await;
    relabel(json!({"strait.io/inject": null, "pod-security.kubernetes.io/enforce": null})).await;
    until("nothing is injected", async || {
        create().await.is_ok_and(|pod| containers(&pod) == ["web"])
    })
    .await;

    let address = running.address;
    running.end().await;
    let error = create().await.unwrap_err().to_string();
    assert!(
        error.contains(&address.to_string()) || error.contains("failed calling webhook"),
        "{error}"
    );
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_one_certificate_and_repair_the_configuration() {
    let Some(cluster) = Cluster::new(json!({"istio.io/rev": "OUR REVISION"})).await else {
        return;
    };
    let (one, other) = tokio::join!(cluster.start(), cluster.start());
    cluster.register(one.address).await;
    for running in [&one, &other] {
        until("both are ready", async || running.ready().await.0 == 200).await;
    }
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.own_namespace());
    let secret = secrets
        .get(&format!("strait-webhook-{}", cluster.name))
        .await
        .unwrap();
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
    let authorities = secret.data.unwrap()["ca.crt"].clone();
    let bundle = async || {
        let configuration = cluster.configurations().get(&cluster.name).await.unwrap();
        configuration.webhooks.unwrap()[0]
            .client_config
            .ca_bundle
            .clone()
    };
    assert_eq!(bundle().await.as_ref(), Some(&authorities));
    // as an upgrade by Helm takes it out
    let patch = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    cluster
        .configurations()
        .patch(&cluster.name, &PatchParams::default(), &patch)
        .await
        .unwrap();
    until("the CA is there again", async || {
        bundle().await.as_ref() == Some(&authorities)
    })
    .await;

    // the second replica has the same certificate: requests go to it when the first one ends
    let url = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": format!("https://{}/inject", other.address)}]);
    let patch = Patch::Json::<()>(serde_json::from_value(url).unwrap());
    cluster
        .configurations()
        .patch(&cluster.name, &PatchParams::default(), &patch)
        .await
        .unwrap();
    one.end().await;
    cluster.until_injected().await;
    other.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_that_check_rejects_is_refused_with_its_words() {
    let Some(cluster) = Cluster::new(json!({})).await else {
        return;
    };
    let running = cluster.start().await;
    let validators: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let url = format!("https://{}/validate", running.address);
    let _: ValidatingWebhookConfiguration = cluster.create(validators.clone(), json!({
        "metadata": {"name": cluster.name, "labels": {
            "app.kubernetes.io/part-of": "strait", "app.kubernetes.io/instance": cluster.name}},
        "webhooks": [{
            "name": "validate.strait.io",
            "clientConfig": {"url": url},
            "rules": [{"apiGroups": ["networking.istio.io"], "apiVersions": ["*"], "resources": ["*"],
                "operations": ["CREATE", "UPDATE"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": cluster.name}},
            "sideEffects": "None", "timeoutSeconds": 5, "failurePolicy": "Fail",
            "admissionReviewVersions": ["v1"],
        }],
    })).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "networking.istio.io",
        "v1",
        "VirtualService",
    ));
    let routes: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), &cluster.name, &kind);
    let route = |prefix: &str| -> DynamicObject {
        let object = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
            "metadata": {"name": "web"},
            "spec": {"hosts": ["a.test"], "http": [{
                "match": [{"uri": {"regex": prefix}}],
                "route": [{"destination": {"host": "web.test"}}]}]},
        });
        serde_json::from_value(object).unwrap()
    };
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let mut refused = String::new();
    until("the webhook answers", async || {
        let created = routes.create(&dry, &route("(")).await;
        refused = created.map_or_else(|error| error.to_string(), |_| String::new());
        refused.contains("is invalid")
    })
    .await;
    let named = "VirtualService.networking.istio.io \"web\" is invalid: ";
    assert!(refused.contains(named), "{refused}");
    assert!(
        refused.contains("spec.http[0].match[0].uri.regex"),
        "{refused}"
    );
    // one that was stored before may lose its finalizers, but not get worse
    routes
        .create(&PostParams::default(), &route("/a"))
        .await
        .unwrap();
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    routes
        .patch("web", &PatchParams::default(), &label)
        .await
        .unwrap();
    let worse = Patch::Merge(
        json!({"spec": {"http": [{"match": [{"uri": {"regex": "["}}],
        "route": [{"destination": {"host": "web.test"}}]}]}}),
    );
    assert!(
        routes
            .patch("web", &PatchParams::default(), &worse)
            .await
            .is_err()
    );
    running.end().await;
    let _ = validators
        .delete(&cluster.name, &DeleteParams::default())
        .await;
    cluster.end().await;
}
