//! Conditions that the server writes to the objects of its own store.

use serde_json::{Value, json};

use crate::kubectl::kubectl;
use crate::support::{Client, TestServer};

const ROUTES: &str = "/apis/networking.istio.io/v1/namespaces/mesh/virtualservices";

fn route() -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": "shop"},
        "spec": {"hosts": ["shop.example"], "http": [{"route": [{"destination": {"host": "shop"}}]}]},
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"},
        "spec": {"ports": [{"port": 80}]},
    })
}

async fn server() -> TestServer {
    TestServer::start_with(|_| {}).await
}

/// Returns the object once it satisfies `is_it`.
pub async fn wait(client: &TestServer, path: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let (collection, name) = path.rsplit_once('/').unwrap();
    let query = format!("{collection}?watch=1&fieldSelector=metadata.name={name}");
    let mut lines = client.admin().await.watch(&query).await;
    let search = async {
        loop {
            let event = lines.next().await.unwrap();
            if is_it(&event["object"]) {
                return event["object"].clone();
            }
        }
    };
    let deadline = std::time::Duration::from_secs(20);
    tokio::time::timeout(deadline, search).await.expect(path)
}

pub fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions
        .find(|condition| condition["type"] == name)
        .unwrap_or(&Value::Null)
}

async fn revision(client: &mut Client) -> String {
    let list = client.get(ROUTES).await.body;
    list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_have_the_findings_of_check() {
    let server = server().await;
    let mut client = server.admin().await;
    assert_eq!(client.post(ROUTES, &route()).await.code, 201);
    let path = format!("{ROUTES}/shop");
    let told = wait(&server, &path, |object| {
        condition(object, "Accepted")["reason"] == "X275"
    })
    .await;
    let accepted = condition(&told, "Accepted");
    assert_eq!(accepted["status"], "True");
    assert_eq!(accepted["observedGeneration"], 1);
    let message = accepted["message"].as_str().unwrap();
    assert!(
        message.starts_with("warning[X275] spec.http[0]"),
        "{message}"
    );
    assert_eq!(told["metadata"]["generation"], 1);
    let managers = &told["metadata"]["managedFields"];
    assert!(
        managers
            .to_string()
            .contains("\"manager\":\"strait-control\""),
        "{managers}"
    );

    let services = "/api/v1/namespaces/mesh/services";
    assert_eq!(client.post(services, &service()).await.code, 201);
    let clean = wait(&server, &path, |object| {
        condition(object, "Accepted")["reason"] == "Accepted"
    })
    .await;
    let now = condition(&clean, "Accepted");
    assert_eq!(now["message"], "");
    assert_eq!(now["lastTransitionTime"], accepted["lastTransitionTime"]);

    let merge = json!({"spec": {"hosts": ["other.example"]}});
    client.patch(&path, "merge-patch+json", &merge).await;
    let changed = wait(&server, &path, |object| {
        condition(object, "Accepted")["observedGeneration"] == 2
    })
    .await;
    assert_eq!(changed["metadata"]["generation"], 2);
}

/// Write loops are detected by a write to another object, which comes after all writes that a change caused. If the
/// revision then rises by that write alone, there is no loop.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_written_once() {
    let server = server().await;
    let mut client = server.admin().await;
    client.post(ROUTES, &route()).await;
    let path = format!("{ROUTES}/shop");
    let has_any = |object: &Value| condition(object, "Accepted").is_object();
    wait(&server, &path, has_any).await;
    let before: u64 = revision(&mut client).await.parse().unwrap();
    let mut other = route();
    other["metadata"]["name"] = json!("other");
    other["spec"]["hosts"] = json!(["other.example"]);
    client.post(ROUTES, &other).await;
    wait(&server, &format!("{ROUTES}/other"), has_any).await;
    let after: u64 = revision(&mut client).await.parse().unwrap();
    assert_eq!(after, before + 2, "the other object and its status");
}

#[tokio::test(flavor = "multi_thread")]
async fn export_is_valid_with_its_service() {
    let server = server().await;
    let mut client = server.admin().await;
    let exports = "/apis/flomesh.io/v1alpha1/namespaces/mesh/serviceexports";
    let export = json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "ServiceExport", "metadata": {"name": "shop"},
        "spec": {"rules": [{"portNumber": 80, "path": "/c1/shop", "pathType": "Prefix"}]},
    });
    assert_eq!(client.post(exports, &export).await.code, 201);
    let path = format!("{exports}/shop");
    let status =
        |wanted: &'static str| move |object: &Value| condition(object, "Valid")["status"] == wanted;
    let invalid = wait(&server, &path, status("False")).await;
    assert_eq!(condition(&invalid, "Valid")["reason"], "Failed");
    client
        .post("/api/v1/namespaces/mesh/services", &service())
        .await;
    let valid = wait(&server, &path, status("True")).await;
    assert_eq!(condition(&valid, "Valid")["reason"], "Success");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_waits_for_conditions() {
    let server = server().await;
    let text = route().to_string();
    let text = text.replace(
        "\"name\":\"shop\"",
        "\"name\":\"shop\",\"namespace\":\"mesh\"",
    );
    let Some((ok, text)) = kubectl(&server, "apply -f -", &text).await else {
        return;
    };
    assert!(ok, "{text}");
    let wait = "wait --for=condition=Accepted virtualservice/shop -n mesh --timeout=20s";
    let (ok, text) = kubectl(&server, wait, "").await.unwrap();
    assert!(ok && text.contains("condition met"), "{text}");
    let (_, text) = kubectl(&server, "get vs shop -n mesh -o yaml", "")
        .await
        .unwrap();
    assert!(text.contains("warning[X275]"), "{text}");
}
