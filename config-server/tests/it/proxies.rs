//! Proxy reports: authorization, content, and their effect on the server.

use http::Method;
use serde_json::{Value, json};

use crate::conditions::{condition, wait};
use crate::support::{TestServer, on_each_store};

on_each_store!(
    proxies_report_and_others_read,
    report_belongs_to_the_user_of_its_token,
    malformed_reports_are_refused,
    reports_are_watched,
    time_from_write_to_report_is_measured,
);

const PROXIES: &str = "/apis/strait.io/v1alpha1/namespaces/edge/proxies";
const ROUTES: &str = "/apis/networking.istio.io/v1/namespaces/mesh/virtualservices";

fn report(revision: &str) -> Value {
    json!({
        "apiVersion": "strait.io/v1alpha1", "kind": "Proxy", "metadata": {"name": "a"},
        "spec": {"cluster": "r/z/g/c", "mode": "gateway", "version": "0.1.0"},
        "status": {"revision": revision, "generation": 3},
    })
}

fn route() -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": "shop"},
        "spec": {"hosts": ["shop.example"], "http": [{"directResponse": {"status": 200}}]},
    })
}

async fn proxies_report_and_others_read(server: TestServer) {
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    let mut admin = server.admin().await;
    let path = format!("{PROXIES}/a");
    let made = proxy.put(&path, &report("1")).await;
    assert_eq!(made.code, 200, "{made:?}");
    assert!(made.body["status"]["lastSeen"].is_string());
    let read = admin.get(&path).await.body;
    assert_eq!(read["spec"]["cluster"], "r/z/g/c");
    assert_eq!(read["metadata"]["namespace"], "edge");
    let list = admin.get("/apis/strait.io/v1alpha1/proxies").await.body;
    assert_eq!(list["kind"], "ProxyList");
    assert_eq!(list["items"][0]["status"]["generation"], 3);
    let other = admin
        .get("/apis/strait.io/v1alpha1/namespaces/x/proxies")
        .await;
    assert_eq!(other.body["items"], json!([]));

    // A proxy may write only its report, which is not stored.
    assert_eq!(proxy.post(ROUTES, &route()).await.code, 403);
    let before = server.store.history().latest();
    proxy.put(&path, &report("2")).await;
    assert_eq!(server.store.history().latest(), before);
    assert_eq!(proxy.get("/metrics").await.code, 403);
    let resources = admin.get("/apis/strait.io/v1alpha1").await.body;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["px"]));
    let verbs = resources["resources"][0]["verbs"].as_array().unwrap();
    assert!(verbs.contains(&json!("watch")));

    let gone = proxy
        .send(Method::DELETE, &path, "application/json", String::new())
        .await;
    assert_eq!(gone.code, 200, "{gone:?}");
    assert_eq!(admin.get(&path).await.code, 404);
}

/// Tokens of another proxy cannot overwrite a report. A new token of the same name can.
async fn report_belongs_to_the_user_of_its_token(server: TestServer) {
    let path = format!("{PROXIES}/a");
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    assert_eq!(proxy.put(&path, &report("7")).await.code, 200);
    let mut other = server.with_certificate("other", "strait:proxy").await;
    let refused = other.put(&path, &report("1")).await;
    assert_eq!(refused.code, 403, "{refused:?}");
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains("the user \"proxy"), "{message}");
    let refused = other
        .send(Method::DELETE, &path, "application/json", String::new())
        .await;
    assert_eq!(refused.code, 403);
    let mut admin = server.admin().await;
    assert_eq!(admin.get(&path).await.body["status"]["revision"], "7");
    let user = message.split('"').nth(5).unwrap_or("proxy");
    let mut renewed = server.with_certificate(user, "strait:proxy").await;
    assert_eq!(renewed.put(&path, &report("8")).await.code, 200, "{user}");
    assert_eq!(admin.put(&path, &report("9")).await.code, 200);
}

async fn reports_are_watched(server: TestServer) {
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    let mut admin = server.admin().await;
    let put = |name: &str, revision: &str| {
        let mut report = report(revision);
        report["metadata"]["name"] = json!(name);
        (format!("{PROXIES}/{name}"), report)
    };
    for (name, revision) in [("a", "1"), ("b", "1")] {
        let (path, report) = put(name, revision);
        assert_eq!(proxy.put(&path, &report).await.code, 200);
    }
    let list = admin.get(PROXIES).await.body;
    let listed = list["metadata"]["resourceVersion"].as_str().unwrap();
    let (path, report) = put("a", "2");
    proxy.put(&path, &report).await;
    // The watch sends only the change after the list.
    let after = format!("{PROXIES}?watch=1&resourceVersion={listed}");
    let mut after = server.admin().await.watch(&after).await;
    assert_eq!(after.step().await, "MODIFIED a");
    let mut all = server
        .admin()
        .await
        .watch(&format!("{PROXIES}?watch=1"))
        .await;
    assert_eq!(all.step().await, "ADDED a");
    assert_eq!(all.step().await, "ADDED b");
    let (path, _) = put("b", "1");
    assert_eq!(proxy.delete(&path).await.code, 200);
    let (path, report) = put("c", "2");
    proxy.put(&path, &report).await;
    for watch in [&mut after, &mut all] {
        let mut steps = [watch.step().await, watch.step().await];
        steps.sort();
        assert_eq!(steps, ["ADDED c", "DELETED b"]);
    }
    let old = format!("{PROXIES}?watch=1&resourceVersion=7");
    let mut old = server.admin().await.watch(&old).await;
    let expired = old.next().await.unwrap();
    assert_eq!(expired["type"], "ERROR");
    assert_eq!(
        expired["object"]["code"], 410,
        "of another server: {expired}"
    );
    let other = "/apis/strait.io/v1alpha1/namespaces/other/proxies?watch=1&timeoutSeconds=1";
    let mut other = server.admin().await.watch(other).await;
    assert_eq!(other.next().await, None, "there is none in this namespace");
}

async fn malformed_reports_are_refused(server: TestServer) {
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    let path = format!("{PROXIES}/a");
    let mut wrong = report("1");
    wrong["status"]["generation"] = json!("three");
    let refused = proxy.put(&path, &wrong).await;
    assert_eq!(refused.code, 422);
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains("status: Invalid value"), "{message}");
    let mut other = report("1");
    other["metadata"]["name"] = json!("b");
    assert_eq!(proxy.put(&path, &other).await.code, 400);
    let mut large = report("1");
    large["spec"]["labels"] = json!("x".repeat(300_000));
    assert_eq!(proxy.put(&path, &large).await.code, 413);
    let everywhere = "/apis/strait.io/v1alpha1/proxies";
    assert_eq!(proxy.post(everywhere, &report("1")).await.code, 405);
    assert_eq!(proxy.get(&path).await.code, 404, "nothing was taken");
}

async fn time_from_write_to_report_is_measured(server: TestServer) {
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    let mut admin = server.admin().await;
    let path = format!("{PROXIES}/a");
    let first = admin.post(ROUTES, &route()).await.body;
    let revision = |object: &Value| {
        object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    proxy.put(&path, &report(&revision(&first))).await;
    let mut changed = first.clone();
    changed["spec"]["hosts"] = json!(["other.example"]);
    let second = admin.put(&format!("{ROUTES}/shop"), &changed).await.body;
    // The server learns of its own write after a moment.
    let behind = loop {
        let read = admin.get(&path).await.body;
        if read["status"]["newestRevision"] == second["metadata"]["resourceVersion"] {
            break read;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(behind["status"]["upToDate"], false);
    let applied = proxy.put(&path, &report(&revision(&second))).await.body;
    assert_eq!(applied["status"]["upToDate"], true);
    assert!(applied["status"]["lastChangeSeconds"].as_f64().unwrap() < 20.0);
    let metrics = admin.get("/metrics").await.body;
    let metrics = metrics.as_str().unwrap();
    assert!(
        metrics.contains("strait_config_propagation_seconds_count 1\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("strait_control_proxies_up_to_date 1\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("strait_control_writes_total 2\n"),
        "{metrics}"
    );
    server.client(Some("wrong")).await.get("/version").await;
    let metrics = admin.get("/metrics").await.body;
    let line = "strait_control_rejected_logins_total{code=\"401\"} 1\n";
    assert!(metrics.as_str().unwrap().contains(line));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_say_which_proxies_have_them() {
    let server = TestServer::start_with(|_| {}).await;
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    let mut admin = server.admin().await;
    let path = format!("{PROXIES}/a");
    proxy.put(&path, &report("0")).await;
    admin.post(ROUTES, &route()).await;
    let route = format!("{ROUTES}/shop");
    let waits = wait(&server, &route, |object| {
        condition(object, "Programmed")["reason"] == "Pending"
    })
    .await;
    let message = condition(&waits, "Programmed")["message"].as_str().unwrap();
    assert_eq!(message, "0 of 1 proxies; not yet: edge/a");
    proxy.put(&path, &report("1000")).await;
    let done = wait(&server, &route, |object| {
        condition(object, "Programmed")["status"] == "True"
    })
    .await;
    assert_eq!(condition(&done, "Programmed")["observedGeneration"], 1);
    proxy
        .send(Method::DELETE, &path, "application/json", String::new())
        .await;
    let alone = wait(&server, &route, |object| {
        condition(object, "Programmed")["status"] == "Unknown"
    })
    .await;
    assert_eq!(condition(&alone, "Programmed")["reason"], "NoProxies");
}
