//! Rules of the Gateway API that the server enforces as the CRDs do at an API server; `tests/gateway-api/rules` compares all.

use serde_json::{Value, json};

use crate::support::TestServer;

const CLASSES: &str = "/apis/gateway.networking.k8s.io/v1/gatewayclasses";
const GRANTS: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/edge/referencegrants";

fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": {"name": "own"}, "spec": spec,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_of_a_class_is_not_changed() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    let class = object("GatewayClass", &json!({"controllerName": "a.test/one"}));
    assert_eq!(client.post(CLASSES, &class).await.code, 201);
    let path = format!("{CLASSES}/own");
    let merge = "merge-patch+json";
    let other = json!({"spec": {"controllerName": "a.test/two"}});
    let refused = client.patch(&path, merge, &other).await;
    assert_eq!(refused.code, 422, "{refused:?}");
    let causes = &refused.body["details"]["causes"];
    assert_eq!(causes[0]["field"], "spec.controllerName");
    let mut changed = client.get(&path).await.body;
    changed["spec"]["controllerName"] = json!("a.test/two");
    assert_eq!(client.put(&path, &changed).await.code, 422);
    let applied = format!("{path}?fieldManager=m&force=true");
    let whole = object("GatewayClass", &json!({"controllerName": "a.test/two"}));
    let refused = client.patch(&applied, "apply-patch+yaml", &whole).await;
    assert_eq!(refused.code, 422, "{refused:?}");

    let described = json!({"spec": {"description": "text"}});
    assert_eq!(client.patch(&path, merge, &described).await.code, 200);
    assert_eq!(client.delete(&path).await.code, 200);
    assert_eq!(client.post(CLASSES, &whole).await.code, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn name_in_a_grant_is_not_empty() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    let grant = |to: Value| {
        let from =
            json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "a"});
        object("ReferenceGrant", &json!({"from": [from], "to": [to]}))
    };
    let empty = grant(json!({"group": "", "kind": "Service", "name": ""}));
    let refused = client.post(GRANTS, &empty).await;
    assert_eq!(refused.code, 422, "{refused:?}");
    assert_eq!(
        refused.body["details"]["causes"][0]["field"],
        "spec.to[0].name"
    );
    let all = grant(json!({"group": "", "kind": "Service"}));
    assert_eq!(client.post(GRANTS, &all).await.code, 201);
}
