//! Kubernetes verbs over HTTPS.

use http::Method;
use serde_json::{Value, json};

use crate::support::TestServer;

const GTPS: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies";

fn policy(name: &str, lb_type: &str) -> Value {
    json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
        "metadata": {"name": name, "labels": {"app": name}}, "spec": {"lbType": lb_type},
    })
}

fn one(name: &str) -> String {
    format!("{GTPS}/{name}")
}

async fn object_is_created_read_changed_and_deleted(server: TestServer) {
    let mut client = server.admin().await;
    let created = client.post(GTPS, &policy("web", "Locality")).await;
    assert_eq!(created.code, 201, "{:?}", created.body);
    let metadata = &created.body["metadata"];
    assert_eq!(metadata["namespace"], "ns1");
    assert_eq!(metadata["generation"], 1);
    assert!(metadata["uid"].is_string() && metadata["creationTimestamp"].is_string());

    let twice = client.post(GTPS, &policy("web", "Locality")).await;
    assert_eq!(
        (twice.code, &twice.body["reason"]),
        (409, &json!("AlreadyExists"))
    );
    assert_eq!(
        twice.body["message"],
        "globaltrafficpolicies.flomesh.io \"web\" already exists"
    );

    let mut changed = client.get(&one("web")).await.body;
    assert_eq!(changed, created.body);
    changed["spec"]["lbType"] = json!("ActiveActive");
    let replaced = client.put(&one("web"), &changed).await;
    assert_eq!(
        (replaced.code, &replaced.body["metadata"]["generation"]),
        (200, &json!(2))
    );
    let stale = client.put(&one("web"), &changed).await;
    assert_eq!(
        (stale.code, &stale.body["reason"]),
        (409, &json!("Conflict"))
    );
    let blind = client.put(&one("web"), &policy("web", "Locality")).await;
    assert_eq!(blind.code, 422, "{:?}", blind.body);

    let merge = json!({"spec": {"targets": [{"clusterKey": "a/b/c/d"}]}});
    let merged = client.patch(&one("web"), "merge-patch+json", &merge).await;
    assert_eq!(merged.body["spec"]["targets"][0]["clusterKey"], "a/b/c/d");
    let json_patch = json!([{"op": "remove", "path": "/spec/targets"}]);
    let patched = client
        .patch(&one("web"), "json-patch+json", &json_patch)
        .await;
    assert_eq!(patched.body["spec"], json!({"lbType": "ActiveActive"}));
    let again = client
        .patch(&one("web"), "json-patch+json", &json_patch)
        .await;
    assert_eq!(again.code, 422);
    let strategic = client
        .patch(&one("web"), "strategic-merge-patch+json", &json!({}))
        .await;
    assert_eq!(strategic.code, 415);

    let deleted = client.delete(&one("web")).await;
    assert_eq!(
        (deleted.code, &deleted.body["status"]),
        (200, &json!("Success"))
    );
    assert_eq!(
        deleted.body["details"]["uid"],
        created.body["metadata"]["uid"]
    );
    let gone = client.get(&one("web")).await;
    assert_eq!(gone.code, 404);
    assert_eq!(
        gone.body["message"],
        "globaltrafficpolicies.flomesh.io \"web\" not found"
    );
    assert_eq!(
        gone.body["details"],
        json!({"name": "web", "group": "flomesh.io", "kind": "globaltrafficpolicies"})
    );
}

async fn status_is_written_by_itself(server: TestServer) {
    let mut client = server.admin().await;
    let mut object = policy("web", "Locality");
    object["status"] = json!({"conditions": []});
    let created = client.post(GTPS, &object).await;
    assert_eq!(created.body.get("status"), None);
    let mut status = created.body.clone();
    status["spec"]["lbType"] = json!("ActiveActive");
    status["status"] = json!({"conditions": []});
    let written = client.put(&format!("{}/status", one("web")), &status).await;
    assert_eq!(written.code, 200, "{:?}", written.body);
    assert_eq!(written.body["spec"]["lbType"], "Locality");
    assert_eq!(written.body["status"], json!({"conditions": []}));
    assert_eq!(written.body["metadata"]["generation"], 1);
}

async fn pages_of_a_list_are_of_one_revision(server: TestServer) {
    let mut client = server.admin().await;
    for name in ["a", "b", "c", "d", "e"] {
        client.post(GTPS, &policy(name, "Locality")).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|i| i["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = client.get(&format!("{GTPS}?limit=2")).await.body;
    assert_eq!(
        (names(&first), &first["metadata"]["remainingItemCount"]),
        (vec!["a".into(), "b".into()], &json!(3))
    );
    client.post(GTPS, &policy("b2", "Locality")).await;
    client.delete(&one("c")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = client
        .get(&format!("{GTPS}?limit=2&continue={token}"))
        .await
        .body;
    assert_eq!(names(&second), ["c", "d"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = client
        .get(&format!("{GTPS}?limit=2&continue={token}"))
        .await
        .body;
    assert_eq!(names(&third), ["e"]);
    assert_eq!(third["metadata"]["continue"], Value::Null);
    for page in [&second, &third] {
        assert_eq!(
            page["metadata"]["resourceVersion"],
            first["metadata"]["resourceVersion"]
        );
    }
    let selected = client
        .get(&format!("{GTPS}?labelSelector=app%20in%20(a,e)"))
        .await
        .body;
    assert_eq!(names(&selected), ["a", "e"]);
    let limited = client
        .get(&format!("{GTPS}?labelSelector=app!%3Da&limit=1"))
        .await
        .body;
    assert_eq!(names(&limited), ["b"]);
}

async fn watch_sends_state_bookmark_and_changes(server: TestServer) {
    let mut client = server.admin().await;
    for name in ["a", "b", "c"] {
        client.post(GTPS, &policy(name, "Locality")).await;
    }
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut lines = server.admin().await.watch(&format!("{GTPS}?{query}")).await;
    for expected in ["ADDED a", "ADDED b", "ADDED c"] {
        assert_eq!(lines.step().await, expected);
    }
    let bookmark = lines.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    let merge = json!({"spec": {"lbType": "ActiveActive"}});
    client.patch(&one("a"), "merge-patch+json", &merge).await;
    client.delete(&one("b")).await;
    assert_eq!(lines.step().await, "MODIFIED a");
    assert_eq!(lines.step().await, "DELETED b");

    let since = bookmark["object"]["metadata"]["resourceVersion"]
        .as_str()
        .unwrap();
    let labelled = format!("{GTPS}?watch=1&resourceVersion={since}&labelSelector=app=a");
    let mut lines = server.admin().await.watch(&labelled).await;
    assert_eq!(lines.step().await, "MODIFIED a");
    let relabel = json!({"metadata": {"labels": {"app": "other"}}});
    client.patch(&one("a"), "merge-patch+json", &relabel).await;
    assert_eq!(lines.step().await, "DELETED a");

    let old = format!("{GTPS}?watch=1&resourceVersion=1&timeoutSeconds=1");
    let mut ended = server.admin().await.watch(&old).await;
    let mut count = 0;
    while ended.next().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 6);
}

async fn dry_runs_change_nothing(server: TestServer) {
    let mut client = server.admin().await;
    let dry = client
        .post(&format!("{GTPS}?dryRun=All"), &policy("web", "Locality"))
        .await;
    assert_eq!(dry.code, 201);
    assert_eq!(client.get(&one("web")).await.code, 404);
    let wrong = client
        .post(&format!("{GTPS}?dryRun=x"), &policy("web", "Locality"))
        .await;
    assert_eq!(wrong.code, 422);
    assert_eq!(
        wrong.body["message"],
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \"x\": supported values: \"All\""
    );
}

async fn invalid_objects_are_422_with_every_cause(server: TestServer) {
    let mut client = server.admin().await;
    let mut object = policy("web", "foo");
    object["spec"]["targets"] = json!([{"clusterKey": "c2", "weight": -1}]);
    let refused = client.post(GTPS, &object).await;
    assert_eq!(
        (refused.code, &refused.body["reason"]),
        (422, &json!("Invalid"))
    );
    let causes = refused.body["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes
        .iter()
        .map(|c| c["field"].as_str().unwrap())
        .collect();
    assert!(
        fields.contains(&"spec.lbType") && fields.contains(&"spec.targets[0].clusterKey"),
        "{fields:?}"
    );
    let unknown = json!({"lbType": "Locality", "lbtype": "x"});
    let mut object = policy("web", "Locality");
    object["spec"] = unknown;
    let strict = client
        .post(&format!("{GTPS}?fieldValidation=Strict"), &object)
        .await;
    assert_eq!(strict.code, 400, "{:?}", strict.body);
    let warned = client.post(GTPS, &object).await;
    assert_eq!(warned.code, 201);
    assert_eq!(
        warned.headers["warning"],
        "299 - \"unknown field \\\"spec.lbtype\\\"\""
    );
    assert_eq!(warned.body["spec"], json!({"lbType": "Locality"}));
}

async fn finalizers_hold_an_object(server: TestServer) {
    let mut client = server.admin().await;
    let mut object = policy("web", "Locality");
    object["metadata"]["finalizers"] = json!(["example.com/a"]);
    client.post(GTPS, &object).await;
    let held = client.delete(&one("web")).await;
    assert_eq!(held.code, 200);
    assert!(held.body["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(client.get(&one("web")).await.code, 200);
    let release = json!({"metadata": {"finalizers": null}});
    let released = client
        .patch(&one("web"), "merge-patch+json", &release)
        .await;
    assert_eq!(released.code, 200);
    assert_eq!(client.get(&one("web")).await.code, 404);
}

async fn preconditions_and_collections_are_kept_to(server: TestServer) {
    let mut client = server.admin().await;
    for name in ["a", "b", "c"] {
        client.post(GTPS, &policy(name, "Locality")).await;
    }
    let other = json!({"preconditions": {"uid": "x"}}).to_string();
    let refused = client
        .send(Method::DELETE, &one("a"), "application/json", other)
        .await;
    assert_eq!(refused.code, 409);
    let some = client
        .delete(&format!("{GTPS}?labelSelector=app!%3Db"))
        .await;
    assert_eq!(some.code, 200);
    let left = client.get(GTPS).await.body;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    let named = json!({"apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
        "metadata": {"generateName": "web-"}, "spec": {}});
    let generated = client.post(GTPS, &named).await;
    assert_eq!(generated.code, 201, "{:?}", generated.body);
    let name = generated.body["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9);
}

async fn users_without_rights_are_refused(server: TestServer) {
    let mut nobody = server.client(None).await;
    assert_eq!(nobody.get(GTPS).await.code, 401);
    assert_eq!(nobody.get("/healthz").await.code, 200);
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(proxy.get(secrets).await.code, 200);
    let refused = proxy.post(GTPS, &policy("web", "Locality")).await;
    assert_eq!(
        (refused.code, &refused.body["reason"]),
        (403, &json!("Forbidden"))
    );
    let mut guesser = server.client(Some("strait_guess")).await;
    let mut codes = Vec::new();
    for _ in 0..20 {
        codes.push(guesser.get(GTPS).await.code);
    }
    assert!(codes.contains(&401) && codes.contains(&429), "{codes:?}");
    assert_eq!(server.admin().await.get(GTPS).await.code, 200);
}

async fn state_and_watches_go_on_after_a_restart(mut server: TestServer) {
    let mut client = server.admin().await;
    let created = client.post(GTPS, &policy("a", "Locality")).await.body;
    client.post(GTPS, &policy("b", "Locality")).await;
    drop(client);
    server = server.restart().await;
    let mut client = server.admin().await;
    assert_eq!(client.get(&one("a")).await.body, created);
    let since = created["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{GTPS}?watch=1&resourceVersion={since}");
    let mut lines = server.admin().await.watch(&path).await;
    assert_eq!(lines.step().await, "ADDED b");
    client.post(GTPS, &policy("c", "Locality")).await;
    assert_eq!(lines.step().await, "ADDED c");
}

async fn files_of_a_server_are_its_users_only(server: TestServer) {
    use std::os::unix::fs::PermissionsExt;
    let files = std::fs::read_dir(server.data.path()).unwrap();
    for file in files.map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.path());
    }
}

crate::support::on_each_store!(
    object_is_created_read_changed_and_deleted,
    status_is_written_by_itself,
    pages_of_a_list_are_of_one_revision,
    watch_sends_state_bookmark_and_changes,
    dry_runs_change_nothing,
    invalid_objects_are_422_with_every_cause,
    finalizers_hold_an_object,
    preconditions_and_collections_are_kept_to,
    users_without_rights_are_refused,
    files_of_a_server_are_its_users_only,
    state_and_watches_go_on_after_a_restart
);
