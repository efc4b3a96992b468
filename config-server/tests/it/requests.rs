//! Parameters and bodies of requests, as in the API reference.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Client, TestServer};

const POLICIES: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies";

fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy", "metadata": {"name": name},
        "spec": {"lbType": "Locality"},
    })
}

async fn names(client: &mut Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("{POLICIES}?{query}")).await.body;
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn duplicate_fields_warn_or_are_refused(server: TestServer) {
    let mut client = server.admin().await;
    let body = |name: &str| {
        let text = policy(name).to_string();
        text.replace("\"spec\":{", "\"spec\":{\"lbType\":\"FailOver\",")
    };
    let mut send = async |name: &str, mode: &str| {
        let path = format!("{POLICIES}?fieldValidation={mode}");
        client
            .send(Method::POST, &path, "application/json", body(name))
            .await
    };
    let strict = send("a", "Strict").await;
    let message = json!("strict decoding error: duplicate field \"spec.lbType\"");
    assert_eq!((strict.code, &strict.body["message"]), (400, &message));
    let warned = send("a", "Warn").await;
    assert_eq!(
        (warned.code, &warned.body["spec"]["lbType"]),
        (201, &json!("Locality"))
    );
    assert_eq!(
        warned.headers["warning"],
        "299 - \"duplicate field \\\"spec.lbType\\\"\""
    );
    let ignored = send("b", "Ignore").await;
    assert_eq!((ignored.code, ignored.headers.get("warning")), (201, None));
}

async fn collections_are_deleted_by_page(server: TestServer) {
    let mut client = server.admin().await;
    for name in ["a", "b", "c"] {
        client.post(POLICIES, &policy(name)).await;
    }
    assert_eq!(
        client.delete(&format!("{POLICIES}?limit=2")).await.code,
        200
    );
    assert_eq!(names(&mut client, "").await, ["c"]);
    let options = json!({"dryRun": ["All"]}).to_string();
    let dry = client
        .send(Method::DELETE, POLICIES, "application/json", options)
        .await;
    assert_eq!(dry.code, 200);
    assert_eq!(names(&mut client, "").await, ["c"]);
    let mut all = client
        .delete("/apis/flomesh.io/v1alpha1/globaltrafficpolicies")
        .await;
    assert_eq!(
        (all.code, all.body["reason"].take()),
        (405, json!("MethodNotAllowed"))
    );
}

async fn wrong_parameters_are_refused_as_kubernetes_does(server: TestServer) {
    let mut client = server.admin().await;
    client.post(POLICIES, &policy("web")).await;
    let one = &format!("{POLICIES}/web");
    let delete = Method::DELETE;
    let get = Method::GET;
    for (method, path, query, code, message) in [
        (
            &delete,
            one,
            "gracePeriodSeconds=-1",
            422,
            "gracePeriodSeconds: Invalid value: -1: must be greater",
        ),
        (
            &delete,
            one,
            "gracePeriodSeconds=x",
            400,
            "strconv.ParseInt",
        ),
        (
            &delete,
            one,
            "propagationPolicy=x",
            422,
            "propagationPolicy: Unsupported value: \"x\"",
        ),
        (
            &delete,
            one,
            "propagationPolicy=Orphan&orphanDependents=true",
            422,
            "cannot be both set",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "labelSelector=a%3D%3D%3D",
            400,
            "",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "fieldSelector=spec.x%3D1",
            400,
            "field label not supported: spec.x",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "resourceVersionMatch=Exact",
            422,
            "is forbidden unless resourceVersion is provided",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "resourceVersionMatch=Exact&resourceVersion=0",
            422,
            "is forbidden for resourceVersion",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "sendInitialEvents=true",
            422,
            "sendInitialEvents is forbidden for list",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "continue=x",
            400,
            "continue key is not valid",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "continue=x&resourceVersion=5",
            400,
            "specifying resource version is not allowed",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "watch=1&resourceVersionMatch=NotOlderThan",
            422,
            "unless sendInitialEvents is provided",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "watch=1&sendInitialEvents=true",
            422,
            "requires setting resourceVersionMatch",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "watch=maybe",
            400,
            "invalid syntax",
        ),
        (
            &get,
            &POLICIES.to_owned(),
            "resourceVersion=x",
            400,
            "invalid resource version",
        ),
    ] {
        let path = format!("{path}?{query}");
        let answer = client.send(method.clone(), &path, "", String::new()).await;
        let told = answer.body["message"].as_str().unwrap_or_default();
        assert!(
            answer.code == code && told.contains(message),
            "{query}: {answer:?}"
        );
    }
    assert_eq!(client.get(one).await.code, 200, "nothing was deleted");
}

/// Objects that typed clients cannot decode would make every list of their kind fail.
async fn metadata_of_a_wrong_type_is_refused(server: TestServer) {
    let mut client = server.admin().await;
    client.post(POLICIES, &policy("a")).await;
    for (field, value) in [
        ("finalizers", json!("x")),
        ("ownerReferences", json!([5])),
        ("generateName", json!(5)),
    ] {
        let expected = format!("the body cannot be decoded: metadata.{field}: invalid type: ");
        let mut object = policy("b");
        object["metadata"][field] = value.clone();
        let merge = json!({"metadata": {field: value}});
        let one = format!("{POLICIES}/a");
        let apply = format!("{POLICIES}/b?fieldManager=m");
        for (answer, code) in [
            (client.post(POLICIES, &object).await, 400),
            (client.patch(&one, "merge-patch+json", &merge).await, 422),
            (client.patch(&apply, "apply-patch+yaml", &object).await, 400),
        ] {
            let message = answer.body["message"].as_str().unwrap();
            assert_eq!(answer.code, code, "{message}");
            assert!(message.contains(&expected), "{message}");
        }
    }
    assert_eq!(names(&mut client, "").await, ["a"]);
}

async fn deletion_with_options_of_a_wrong_type_deletes_nothing(server: TestServer) {
    let mut client = server.admin().await;
    client.post(POLICIES, &policy("a")).await;
    for path in [format!("{POLICIES}/a"), POLICIES.to_owned()] {
        for options in [
            json!({"dryRun": "All"}),
            json!({"preconditions": 5}),
            json!({"preconditions": {"uid": 5}}),
            json!({"kind": "Status"}),
            json!(["All"]),
        ] {
            let body = options.to_string();
            let sent = client.send(Method::DELETE, &path, "application/json", body);
            let answer = sent.await;
            assert_eq!(answer.code, 400, "{options}: {:?}", answer.body);
        }
    }
    assert_eq!(names(&mut client, "").await, ["a"]);
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]});
    let path = format!("{POLICIES}/a");
    let sent = client.send(
        Method::DELETE,
        &path,
        "application/json",
        options.to_string(),
    );
    assert_eq!(sent.await.code, 200);
    assert_eq!(names(&mut client, "").await, ["a"]);
}

async fn secrets_take_string_data_and_need_no_kind(server: TestServer) {
    let mut client = server.admin().await;
    let secrets = "/api/v1/namespaces/ns1/secrets";
    let body = json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}});
    let made = client.post(secrets, &body).await;
    assert_eq!(
        (made.code, &made.body["data"]),
        (201, &json!({"a": "Yg=="}))
    );
    assert_eq!(made.body.get("stringData"), None);
    let patch = json!({"stringData": {"c": "d"}});
    let path = format!("{secrets}/s");
    let patched = client.patch(&path, "merge-patch+json", &patch).await;
    assert_eq!(patched.body["data"], json!({"a": "Yg==", "c": "ZA=="}));
    let custom = client.post(POLICIES, &body).await;
    assert_eq!(custom.code, 400, "a custom resource names its kind");
}

async fn revisions_that_are_not_reached_time_out(server: TestServer) {
    let mut client = server.admin().await;
    let answer = client
        .get(&format!("{POLICIES}?resourceVersion=999999999"))
        .await;
    assert_eq!(
        (answer.code, &answer.body["reason"]),
        (504, &json!("Timeout"))
    );
    let message = answer.body["message"].as_str().unwrap();
    assert!(
        message.starts_with("Timeout: Too large resource version: 999999999, current: "),
        "{message}"
    );
    assert_eq!(answer.body["details"]["retryAfterSeconds"], 1);
}

async fn page_is_for_everyone_and_runs_only_its_own_files(server: TestServer) {
    let mut nobody = server.client(None).await;
    for (path, code, kind) in [
        ("/ui", 200, "text/html; charset=utf-8"),
        ("/ui/", 200, "text/html; charset=utf-8"),
        ("/ui/fleet.js", 200, "text/javascript; charset=utf-8"),
        ("/ui/nothing.js", 404, "application/json"),
    ] {
        let answer = nobody.request(Method::GET, path, &[], String::new()).await;
        let headers = answer.headers();
        assert_eq!(
            (answer.status().as_u16(), &headers["content-type"]),
            (code, &http::HeaderValue::from_static(kind)),
            "{path}"
        );
        if code == 200 {
            let policy = headers["content-security-policy"].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        }
    }
}

crate::support::on_each_store!(
    page_is_for_everyone_and_runs_only_its_own_files,
    duplicate_fields_warn_or_are_refused,
    collections_are_deleted_by_page,
    wrong_parameters_are_refused_as_kubernetes_does,
    metadata_of_a_wrong_type_is_refused,
    deletion_with_options_of_a_wrong_type_deletes_nothing,
    secrets_take_string_data_and_need_no_kind,
    revisions_that_are_not_reached_time_out,
);
