//! Faults of the API server: it restarts, compacts its history, or serves other resources for a while. No object may
//! vanish meanwhile.

use serde_json::{Value, json};

use crate::cluster::{Cluster, is_unreachable, until};
use crate::followed::{Followed, says};

fn entry(name: &str, host: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": name},
        "spec": {"hosts": [host], "resolution": "STATIC", "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
            "endpoints": [{"address": "10.2.0.1"}]},
    })
}

fn rules() -> Value {
    json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}])
}

/// Waits until the server responds again.
async fn until_back(cluster: &Cluster) {
    let kept = entry("kept", "kept.example");
    let api = cluster.api(&cluster.placed(&kept));
    until("the API server is back", async || {
        let found = api.get_opt("kept").await;
        !is_unreachable(&found) && matches!(found, Ok(Some(_)))
    })
    .await;
}

/// Panics if the permanent object was missing in any update since number `since`.
fn nothing_vanished(followed: &Followed, since: usize) {
    for set in followed.since(since) {
        assert!(says(&set, "kept.example"), "revision {}", set.revision);
    }
}

#[tokio::test]
async fn restart_with_a_compacted_history_loses_nothing() {
    let Some(cluster) = Cluster::alone().await else {
        return;
    };
    cluster.create(&entry("kept", "kept.example")).await;
    cluster.create(&entry("gone", "gone.example")).await;
    let followed = Followed::ready(cluster.settings()).await;
    let since = followed.count() - 1;
    nothing_vanished(&followed, since);
    cluster.process().restart(async |_| ()).await;
    until_back(&cluster).await;
    cluster.create(&entry("first", "first.example")).await;
    followed.until_says("first.example").await;

    cluster
        .process()
        .restart(async |process| compact(&process.etcd()))
        .await;
    until_back(&cluster).await;
    cluster.delete(&entry("gone", "")).await;
    cluster.create(&entry("second", "second.example")).await;
    followed.until_says("second.example").await;
    followed
        .until("the deleted one is gone", |update| {
            !says(&update.set, "gone.example")
        })
        .await;
    followed.until_not_found("SRC007").await;
    nothing_vanished(&followed, since);
}

/// Compacts the history of etcd to the current revision.
fn compact(etcd: &str) {
    let post = |path: &str, body: String| -> Value {
        let output = std::process::Command::new("curl")
            .args(["-sS", "-X", "POST", "-d", &body, &format!("{etcd}{path}")])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{output:?}: {error}"))
    };
    let now = post("/v3/kv/range", json!({"key": "AA=="}).to_string());
    let revision = &now["header"]["revision"];
    let compacted = post(
        "/v3/kv/compaction",
        json!({"revision": revision, "physical": true}).to_string(),
    );
    assert!(compacted["header"].is_object(), "{compacted}");
}

#[tokio::test]
async fn revoked_permission_and_revoked_token_leave_the_last_state_in_effect() {
    let Some(cluster) = Cluster::alone().await else {
        return;
    };
    let token = cluster.reader("proxy", &rules()).await;
    cluster.create(&entry("kept", "kept.example")).await;
    let followed = Followed::ready(cluster.settings_with(&token)).await;
    followed.until_says("kept.example").await;
    let since = followed.count() - 1;
    let none = json!([{"apiGroups": ["", "networking.karmada.io"], "resources": ["*"], "verbs": ["list", "watch"]}]);
    cluster.change(&cluster.role("proxy", &none)).await;
    // What is watched already is watched on: the server asks for permission when a watch begins.
    cluster.process().restart(async |_| ()).await;
    followed
        .until_found("SRC008 serviceentries.networking.istio.io")
        .await;
    cluster.change(&cluster.role("proxy", &rules())).await;
    followed.until_not_found("SRC008").await;

    cluster
        .delete(
            &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "proxy"}}),
        )
        .await;
    cluster.process().restart(async |_| ()).await;
    followed
        .until_found("SRC008 the API server does not accept the credentials")
        .await;
    cluster
        .create(
            &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "proxy"}}),
        )
        .await;
    cluster.create(&entry("new", "new.example")).await;
    cluster.write_kubeconfig(&cluster.token("proxy").await);
    followed.until_says("new.example").await;
    followed.until_not_found("SRC008").await;
    nothing_vanished(&followed, since);
}

#[tokio::test]
async fn definition_is_deleted_and_installed_again() {
    let Some(cluster) = Cluster::alone().await else {
        return;
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "multiclusterservices.networking.karmada.io"},
    });
    let service = json!({
        "apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService", "metadata": {"name": "across"},
        "spec": {"types": ["CrossCluster"], "ports": [{"name": "http", "port": 80}]},
    });
    cluster.create(&entry("kept", "kept.example")).await;
    cluster.create(&service).await;
    let followed = Followed::ready(cluster.settings()).await;
    followed.until_says("across").await;
    let since = followed.count() - 1;
    let mut whole = cluster.find(&definition).await.unwrap();
    cluster.delete(&definition).await;
    until("the definition is gone", async || {
        cluster.find(&definition).await.is_none()
    })
    .await;
    followed
        .until("its objects are gone", |update| {
            !says(&update.set, "across")
        })
        .await;
    whole["metadata"] = definition["metadata"].clone();
    whole["metadata"]["annotations"] = json!({});
    whole.as_object_mut().unwrap().remove("status");
    cluster.create(&whole).await;
    let api = cluster.api(&cluster.placed(&service));
    until("it is served", async || {
        api.list(&Default::default()).await.is_ok()
    })
    .await;
    cluster.create(&service).await;
    followed.until_says("across").await;
    followed.until_not_found("is not served any more").await;
    nothing_vanished(&followed, since);
}
