//! Garbage collection of objects whose owner or namespace is deleted.

use serde_json::{Value, json};

use crate::support::{Client, TestServer};

const SECRETS: &str = "/api/v1/namespaces/shop/secrets";

fn secret(name: &str, owners: &[(&str, &str)], finalizers: &[&str]) -> Value {
    let owners = owners
        .iter()
        .map(|(name, uid)| json!({"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid}));
    let owners: Vec<Value> = owners.collect();
    json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}})
}

async fn create(client: &mut Client, object: &Value) -> String {
    let made = client.post(SECRETS, object).await;
    assert_eq!(made.code, 201, "{made:?}");
    made.body["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Waits until an object is deleted.
async fn gone(server: &TestServer, path: &str) {
    let mut client = server.admin().await;
    let gone = async {
        while client.get(path).await.code != 404 {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, gone).await.expect(path);
}

/// Owners with another UID or without an object do not exist. The state of owners of unserved kinds is unknown.
async fn dependents_of_missing_owners_go(server: TestServer) {
    let mut client = server.admin().await;
    let owner = create(&mut client, &secret("owner", &[], &[])).await;
    create(
        &mut client,
        &secret("kept", &[("owner", &owner), ("no", "1")], &[]),
    )
    .await;
    let mut foreign = secret("foreign", &[("pod", "1")], &[]);
    foreign["metadata"]["ownerReferences"][0]["kind"] = json!("Pod");
    create(&mut client, &foreign).await;
    create(&mut client, &secret("first", &[("owner", "1")], &[])).await;
    create(
        &mut client,
        &secret("last", &[("no", "1"), ("neither", "2")], &[]),
    )
    .await;
    gone(&server, &format!("{SECRETS}/first")).await;
    gone(&server, &format!("{SECRETS}/last")).await;
    for name in ["owner", "kept", "foreign"] {
        assert_eq!(
            client.get(&format!("{SECRETS}/{name}")).await.code,
            200,
            "{name}"
        );
    }
}

async fn namespace_is_terminating_until_it_is_empty(server: TestServer) {
    let namespace = "/api/v1/namespaces/shop";
    let mut client = server.admin().await;
    create(&mut client, &secret("free", &[], &[])).await;
    create(&mut client, &secret("held", &[], &["example.com/a"])).await;
    let deleted = client.delete(namespace).await;
    assert_eq!(deleted.code, 200);
    assert_eq!(
        deleted.body["status"]["phase"], "Terminating",
        "{deleted:?}"
    );
    assert_eq!(client.get(&format!("{SECRETS}/free")).await.code, 404);
    let held = client.get(&format!("{SECRETS}/held")).await.body;
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    let refused = client.post(SECRETS, &secret("new", &[], &[])).await;
    assert_eq!(refused.code, 403, "{refused:?}");
    let again = client.delete(namespace).await.body;
    assert_eq!(again["status"]["phase"], "Terminating");
    let release = json!({"metadata": {"finalizers": null}});
    let path = format!("{SECRETS}/held");
    assert_eq!(
        client.patch(&path, "merge-patch+json", &release).await.code,
        200
    );
    gone(&server, namespace).await;
    create(&mut client, &secret("new", &[], &[])).await;
    assert_eq!(client.delete(namespace).await.body["status"], "Success");
}

async fn default_namespace_is_there_and_stays(server: TestServer) {
    let namespace = "/api/v1/namespaces/default";
    let mut client = server.admin().await;
    assert_eq!(
        client.get(namespace).await.body["status"]["phase"],
        "Active"
    );
    let refused = client.delete(namespace).await;
    assert_eq!(refused.code, 403);
    let all = client.delete("/api/v1/namespaces").await;
    assert_eq!(all.code, 405);
}

crate::support::on_each_store!(
    dependents_of_missing_owners_go,
    namespace_is_terminating_until_it_is_empty,
    default_namespace_is_there_and_stays,
);
