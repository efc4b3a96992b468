//! Conditions of the Gateway API are the same for objects of files, of the server's own store, and of an API server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use config_loader::{LoadOptions, load_files};
use config_server::conditions::{GatewayController, preview};
use serde_json::{Value, json};

use crate::status_for::Instance;
use crate::support::{Client, TestServer};

const GROUP: &str = "gateway.networking.k8s.io";

fn controller() -> GatewayController {
    GatewayController {
        pool: vec!["192.0.2.0/24".parse().unwrap()],
        ..GatewayController::default()
    }
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name, "namespace": "edge"}, "spec": spec,
    })
}

/// Returns objects with most conditions that there are. Their creation is in the order of their names.
fn objects() -> Vec<Value> {
    let listener = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "protocol": protocol});
    let tls = |name: &str, host: &str| {
        let tls = json!({"certificateRefs": [{"name": "none"}]});
        json!({"name": name, "port": 443, "protocol": "HTTPS", "hostname": host, "tls": tls})
    };
    let gateway = |listeners: Value| json!({"gatewayClassName": "strait", "listeners": listeners});
    let mut main = gateway(json!([
        listener("web", 80, "HTTP"),
        tls("a", "a.test"),
        tls("b", "*.test")
    ]));
    main["allowedListeners"] = json!({"namespaces": {"from": "Same"}});
    let conflict = gateway(json!([
        listener("a", 80, "HTTP"),
        listener("b", 80, "TCP"),
        listener("c", 53, "UDP")
    ]));
    let mut written = gateway(json!([listener("web", 81, "HTTP")]));
    written["addresses"] = json!([{"value": "198.51.100.1"}]);
    let set = |listener: Value| json!({"parentRef": {"name": "a-main"}, "listeners": [listener]});
    let route = |parent: Value, rule: Value| json!({"parentRefs": [parent], "rules": [rule]});
    let to = |name: &str| json!({"backendRefs": [{"name": name, "port": 80}]});
    let unusable = json!({"filters": [{"type": "ExtensionRef", "extensionRef": {"group": "a.b", "kind": "C", "name": "d"}}]});
    let elsewhere = json!({"backendRefs": [{"name": "web", "namespace": "shop", "port": 80}]});
    let policy = json!({
        "targetRefs": [{"group": "", "kind": "Service", "name": "web"}],
        "validation": {"hostname": "a.test", "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "none"}]},
    });
    vec![
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "GatewayClass", "metadata": {"name": "strait"},
               "spec": {"controllerName": "strait.io/gateway-controller"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "edge"},
               "spec": {"ports": [{"port": 80}]}}),
        object("Gateway", "a-main", main),
        object("Gateway", "b-conflict", conflict),
        object("Gateway", "c-written", written),
        object("ListenerSet", "d-good", set(listener("more", 82, "HTTP"))),
        object("ListenerSet", "e-lost", set(listener("more", 80, "HTTP"))),
        object(
            "HTTPRoute",
            "f-good",
            route(json!({"name": "a-main"}), to("web")),
        ),
        // the matches of the one before
        object(
            "HTTPRoute",
            "g-late",
            route(json!({"name": "a-main"}), to("web")),
        ),
        object(
            "HTTPRoute",
            "h-nowhere",
            route(json!({"name": "a-main", "sectionName": "none"}), to("none")),
        ),
        object(
            "HTTPRoute",
            "i-unusable",
            route(json!({"name": "a-main"}), unusable),
        ),
        object(
            "HTTPRoute",
            "j-elsewhere",
            route(json!({"name": "a-main", "sectionName": "web"}), elsewhere),
        ),
        object(
            "GRPCRoute",
            "k-mesh",
            route(
                json!({"group": "", "kind": "Service", "name": "web"}),
                to("web"),
            ),
        ),
        object(
            "TCPRoute",
            "l-tcp",
            route(json!({"name": "b-conflict"}), to("web")),
        ),
        object("BackendTLSPolicy", "m-untrusted", policy),
    ]
}

/// Removes what is of one server: times and generations.
fn plain(part: &Value) -> Value {
    match part {
        Value::Array(parts) => parts.iter().map(plain).collect(),
        Value::Object(fields) => {
            let stay = fields.iter();
            let stay = stay.filter(|(name, _)| {
                !["lastTransitionTime", "observedGeneration"].contains(&name.as_str())
            });
            Value::Object(
                stay.map(|(name, part)| (name.clone(), plain(part)))
                    .collect(),
            )
        }
        part => part.clone(),
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "GatewayClass" => "gatewayclasses".to_owned(),
        "BackendTLSPolicy" => "backendtlspolicies".to_owned(),
        kind => format!("{}s", kind.to_ascii_lowercase()),
    }
}

fn collection(object: &Value) -> String {
    let namespace = match &object["metadata"]["namespace"] {
        Value::String(name) => format!("/namespaces/{name}"),
        _ => String::new(),
    };
    let version = object["apiVersion"].as_str().unwrap();
    let api = if version.contains('/') { "apis" } else { "api" };
    format!(
        "/{api}/{version}{namespace}/{}",
        plural(object["kind"].as_str().unwrap())
    )
}

async fn create(client: &mut Client) {
    for object in objects() {
        let answer = client.post(&collection(&object), &object).await;
        assert_eq!(answer.code, 201, "{answer:?}");
    }
}

/// Returns the statuses of the objects of a server, by kind and name.
async fn read(client: &mut Client) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for object in objects().iter().filter(|one| one["kind"] != "Service") {
        let name = object["metadata"]["name"].as_str().unwrap();
        let found = client
            .get(&format!("{}/{name}", collection(object)))
            .await
            .body;
        let key = format!("{}/{name}", object["kind"].as_str().unwrap());
        all.insert(key, plain(&found["status"]));
    }
    all
}

async fn assert_settles(client: &mut Client, expected: &BTreeMap<String, Value>, source: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let found = read(client).await;
        if found == *expected {
            return;
        }
        if Instant::now() > deadline {
            for (key, expected) in expected {
                assert_eq!(found[key], *expected, "{key} of {source}");
            }
        }
        tokio::task::yield_now().await;
    }
}

fn of_files() -> BTreeMap<String, Value> {
    let directory = tempfile::tempdir().unwrap();
    let documents: Vec<String> = objects().iter().map(Value::to_string).collect();
    let path = directory.path().join("all.yaml");
    std::fs::write(&path, documents.join("\n---\n")).unwrap();
    let loaded = load_files(&[path], LoadOptions::default());
    let all = preview(
        controller(),
        "cluster.local",
        &loaded.set,
        &loaded.diagnostics,
    );
    let all = all.into_iter();
    all.map(|(id, status)| (format!("{}/{}", id.kind.as_str(), id.name), status))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_the_same_from_all_sources() {
    let expected = of_files();
    assert_eq!(expected.len(), objects().len() - 1, "{expected:#?}");
    let late = &expected["HTTPRoute/g-late"]["parents"][0]["conditions"][0];
    assert_eq!(
        (&late["status"], &late["reason"]),
        (&json!("True"), &json!("Accepted"))
    );
    assert!(
        late["message"].as_str().unwrap().contains("warning[GA043]"),
        "{late}"
    );
    let programmed = &expected["Gateway/a-main"]["conditions"][1];
    assert_eq!(programmed["message"], "no proxy reports");

    let own = TestServer::start_with(|settings| settings.controller = controller()).await;
    let mut client = own.admin().await;
    create(&mut client).await;
    assert_settles(&mut client, &expected, "the store").await;

    let other = TestServer::embedded().await;
    let mut client = other.admin().await;
    create(&mut client).await;
    let writer = Instance::start_with(&other, "writer", controller());
    assert_settles(&mut client, &expected, "an API server").await;
    writer.stop().await;
}
