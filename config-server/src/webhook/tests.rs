//! The webhook on a live socket, with namespaces that need no API server.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1;
use kube::runtime::reflector;
use kube::runtime::watcher::Event;
use kube::{Client, Config};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use inject::Settings;

use super::certificate::Material;
use super::*;

/// Webhook whose task ends with it.
struct TestWebhook {
    address: SocketAddr,
    authorities: String,
    injector: Arc<Injector>,
    leaving: watch::Sender<bool>,
    closing: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
    _settings: watch::Sender<Arc<Settings>>,
}

async fn start() -> TestWebhook {
    let (store, mut writer) = reflector::store();
    for (name, label) in [("shop", "enabled"), ("other", "no")] {
        let metadata = json!({"metadata": {"name": name, "labels": {"strait.io/inject": label}}});
        let namespace: v1::Namespace = serde_json::from_value(metadata).unwrap();
        writer.apply_watcher_event(&Event::Apply(namespace));
    }
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let client = Client::try_from(config).unwrap();
    let (settings, followed) = watch::channel(Arc::new(Settings::default()));
    let (_, version) = watch::channel(cluster::Kubernetes::default());
    let injector = Injector::new(Known {
        settings: followed,
        namespaces: store,
        kubernetes: version,
        client,
        events: Events::queued().0,
        validates: true,
        adopts_istio_injection: false,
        own_namespace: "strait-system".to_owned(),
    });
    let injector = Arc::new(injector);
    let now = i64::try_from(crate::clock::seconds_now()).unwrap();
    let material = Material::new(now, &["127.0.0.1".to_owned()]).unwrap();
    let tls = Arc::new(secret::server_config(&material).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (leaving, is_leaving) = watch::channel(false);
    let (closing, is_closing) = watch::channel(false);
    TestWebhook {
        address: listener.local_addr().unwrap(),
        authorities: material.authorities,
        injector: Arc::clone(&injector),
        leaving,
        closing,
        task: tokio::spawn(serve::serve(
            listener,
            move || Some(Arc::clone(&tls)),
            injector,
            is_leaving,
            is_closing,
        )),
        _settings: settings,
    }
}

impl TestWebhook {
    /// Opens a connection.
    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.authorities.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Sends a request on a connection of its own. Returns the status and the body.
    async fn send(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: impl Into<Bytes>,
    ) -> (u16, String) {
        let mut sender = self.connect().await;
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "webhook")
            .header("content-type", media)
            .body(Full::new(body.into()))
            .unwrap();
        let reply = sender.send_request(request).await.unwrap();
        let status = reply.status().as_u16();
        let body = reply.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Reviews the creation of a pod. Returns the response.
    async fn review(&self, namespace: &str, pod: Value, more: Value) -> Value {
        let mut request = json!({
            "uid": "u-1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": namespace,
            "operation": "CREATE", "object": pod,
        });
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let (status, body) = self
            .send(
                "POST",
                "/inject?timeout=5s",
                "application/json; charset=utf-8",
                review.to_string(),
            )
            .await;
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["response"]["uid"], "u-1");
        answer["response"].clone()
    }
}

fn pod() -> Value {
    json!({"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}})
}

/// Returns the pod with the patch of a response.
fn patched(mut pod: Value, response: &Value) -> Value {
    use base64::Engine;
    let patch = response["patch"].as_str().unwrap();
    let patch = base64::engine::general_purpose::STANDARD
        .decode(patch)
        .unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    json_patch::patch(&mut pod, &patch).unwrap();
    pod
}

#[tokio::test]
async fn consenting_pod_gets_what_the_command_gives_it() {
    let webhook = start().await;
    let response = webhook.review("shop", pod(), json!({})).await;
    assert_eq!(
        (&response["allowed"], &response["patchType"]),
        (&true.into(), &"JSONPatch".into())
    );
    let settings = Settings::default();
    let context = inject::Context::new(&settings, inject::Namespace::named("shop"));
    let Ok(inject::Outcome::Injected(done)) = inject::inject(&pod(), &context) else {
        panic!("not injected");
    };
    let injected = patched(pod(), &response);
    assert_eq!(injected, done.pod);
    let again = webhook.review("shop", injected, json!({})).await;
    assert_eq!(again, json!({"uid": "u-1", "allowed": true}));
    webhook.review("shop", pod(), json!({"dryRun": true})).await;
    let metrics = webhook.injector.metrics();
    for line in ["{result=\"injected\"} 2", "{result=\"dry_run\"} 1"] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[tokio::test]
async fn other_pods_stay_as_they_are_and_surprises_are_warnings() {
    let webhook = start().await;
    let allowed = |warnings: Value| match warnings {
        Value::Null => json!({"uid": "u-1", "allowed": true}),
        warnings => json!({"uid": "u-1", "allowed": true, "warnings": warnings}),
    };
    assert_eq!(
        webhook.review("other", pod(), json!({})).await,
        allowed(Value::Null)
    );
    assert_eq!(
        webhook
            .review("shop", pod(), json!({"operation": "UPDATE"}))
            .await,
        allowed(Value::Null)
    );
    let mut host = pod();
    host["spec"]["hostNetwork"] = true.into();
    let expected = json!(["pod web in shop gets no sidecar: hostNetwork"]);
    assert_eq!(
        webhook.review("shop", host, json!({})).await,
        allowed(expected)
    );
    let unknown = webhook.review("gone", pod(), json!({})).await;
    assert!(unknown.get("patch").is_none(), "{unknown}");
    let no_pod = webhook
        .review("shop", pod(), json!({"kind": {"kind": "Job"}}))
        .await;
    assert!(
        no_pod["warnings"][0].as_str().unwrap().starts_with("IN011"),
        "{no_pod}"
    );
}

#[tokio::test]
async fn wrong_annotation_refuses_the_pod_with_the_fix() {
    let webhook = start().await;
    let mut wrong = pod();
    wrong["metadata"]["annotations"] = json!({"strait.io/capture": "cni"});
    let response = webhook.review("shop", wrong, json!({})).await;
    let message = "pod web in shop: annotation `strait.io/capture` has the value `cni`; write init, istio-cni or none, or remove \
                   the annotation";
    assert_eq!(response["allowed"], false);
    assert_eq!(
        response["status"],
        json!({"code": 422, "reason": "Invalid", "message": message})
    );
}

#[tokio::test]
async fn what_is_no_review_is_rejected() {
    let webhook = start().await;
    let json = "application/json";
    let deep = format!(
        "{{\"request\": {}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for (method, path, media, body, status) in [
        ("POST", "/inject", json, "junk".to_owned(), 400),
        ("POST", "/inject", json, deep, 400),
        ("POST", "/inject", json, "{}".to_owned(), 400),
        ("POST", "/inject", json, " ".repeat((8 << 20) + 1), 413),
        ("POST", "/inject", "application/yaml", "{}".to_owned(), 415),
        ("GET", "/inject", json, String::new(), 405),
        ("POST", "/", json, "{}".to_owned(), 404),
    ] {
        let (found, body) = webhook.send(method, path, media, body).await;
        assert_eq!(found, status, "{method} {path} {media}: {body}");
    }
}

#[tokio::test]
async fn connections_end_at_the_signal_and_new_ones_are_served_until_the_listener_closes() {
    let webhook = start().await;
    let mut open = webhook.connect().await;
    open.ready().await.unwrap();
    webhook.leaving.send(true).unwrap();
    while open.ready().await.is_ok() {
        tokio::task::yield_now().await;
    }
    webhook.review("shop", pod(), json!({})).await;
    webhook.closing.send(true).unwrap();
    webhook.task.await.unwrap();
}

#[tokio::test]
async fn server_that_closes_accepts_no_more_connections() {
    let webhook = start().await;
    webhook.review("shop", pod(), json!({})).await;
    webhook.closing.send(true).unwrap();
    webhook.task.await.unwrap();
    assert!(TcpStream::connect(webhook.address).await.is_err());
}
