//! Built-in kinds of Kubernetes, as its own clients write them.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestServer};

const SERVICES: &str = "/api/v1/namespaces/ns1/services";
const WEB: &str = "/api/v1/namespaces/ns1/services/web";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/ns1/leases";
const POLICY: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies/web";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn service(ports: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports},
    })
}

/// Applies an object with a field manager.
async fn apply(client: &mut Client, path: &str, manager: &str, object: &Value) -> Answer {
    let path = format!("{path}?fieldManager={manager}");
    client.patch(&path, "apply-patch+yaml", object).await
}

/// Encodes a protobuf field of less than 128 bytes.
fn field(number: u8, content: &str) -> String {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80, "one byte is enough for it");
    let head = [number << 3 | 2, length];
    format!("{}{content}", std::str::from_utf8(&head).unwrap())
}

fn body(api_version: &str, kind: &str, raw: &str) -> String {
    let of = field(1, api_version) + &field(2, kind);
    format!("k8s\0{}{}", field(1, &of), field(2, raw))
}

async fn leases_are_written_and_deleted_in_protobuf(server: TestServer) {
    let mut client = server.admin().await;
    let lease = |revision: &str, holder: &str| {
        let metadata = field(1, "leader") + &field(6, revision);
        let spec = field(1, holder) + "\x10\x0f" + &field(4, "\x08\x01\x10\x00");
        let raw = field(1, &metadata) + &field(2, &spec);
        body("coordination.k8s.io/v1", "Lease", &raw)
    };
    let leader = format!("{LEASES}/leader");
    let accept = format!("{PROTOBUF},application/json");
    let headers = [("content-type", PROTOBUF), ("accept", &*accept)];
    let created = client.request(Method::POST, LEASES, &headers, lease("", "a"));
    let created = created.await;
    assert_eq!(created.status(), 201);
    assert_eq!(created.headers()["content-type"], "application/json");
    drop(created);
    let found = client.get(&leader).await.body;
    let spec = json!({
        "holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "1970-01-01T00:00:01.000000Z",
    });
    assert_eq!(found["spec"], spec);
    let revision = found["metadata"]["resourceVersion"].as_str().unwrap();
    let mut put = async |body: String| client.send(Method::PUT, &leader, PROTOBUF, body).await;
    assert_eq!(put(lease(revision, "b")).await.code, 200);
    let stale = put(lease(revision, "c")).await;
    assert_eq!(
        (stale.code, &stale.body["reason"]),
        (409, &json!("Conflict"))
    );
    let options = |uid: &str| body("v1", "DeleteOptions", &field(2, &field(1, uid)));
    let uid = found["metadata"]["uid"].as_str().unwrap();
    let mut delete = async |uid: &str| {
        client
            .send(Method::DELETE, &leader, PROTOBUF, options(uid))
            .await
            .code
    };
    assert_eq!((delete("other").await, delete(uid).await), (409, 200));
}

async fn other_encodings_lead_clients_back_to_json(server: TestServer) {
    let mut client = server.admin().await;
    let cbor = client.send(Method::POST, LEASES, "application/cbor", "x".to_owned());
    assert_eq!(cbor.await.code, 415);
    let pod = client.send(Method::POST, LEASES, PROTOBUF, body("v1", "Pod", ""));
    assert_eq!(pod.await.code, 415);
    let headers = [("accept", "application/cbor")];
    let answer = client.request(Method::GET, LEASES, &headers, String::new());
    assert_eq!(answer.await.status(), 406);
}

async fn managers_of_different_ports_do_not_conflict(server: TestServer) {
    let mut client = server.admin().await;
    let of = |port: u16, name: &str| service(&json!([{"port": port, "name": name}]));
    let first = apply(&mut client, WEB, "a", &of(80, "http")).await;
    assert_eq!(first.code, 201, "{:?}", first.body);
    let second = apply(&mut client, WEB, "b", &of(443, "https")).await;
    assert_eq!(second.code, 200, "{:?}", second.body);
    let ports = |answer: &Answer| -> Vec<Value> {
        let ports = answer.body["spec"]["ports"].as_array().unwrap().iter();
        ports.map(|port| port["port"].clone()).collect()
    };
    assert_eq!(ports(&second), [80, 443]);
    let other = apply(&mut client, WEB, "b", &of(80, "other")).await;
    let field = ".spec.ports[port=80,protocol=\"TCP\"].name";
    assert_eq!(other.body["details"]["causes"][0]["field"], field);
    assert_eq!(other.code, 409);
    let same = json!([{"port": 80, "name": "http"}, {"port": 443, "name": "https"}]);
    assert_eq!(
        apply(&mut client, WEB, "b", &service(&same)).await.code,
        200
    );
    // Fields that both managers applied stay until neither applies them.
    let left = apply(&mut client, WEB, "a", &service(&json!([]))).await;
    assert_eq!(ports(&left), [80, 443], "{:?}", left.body);
    let left = apply(&mut client, WEB, "b", &of(443, "https")).await;
    assert_eq!(ports(&left), [443], "{:?}", left.body);
}

async fn dependents_go_with_an_owner_that_had_finalizers(server: TestServer) {
    let mut client = server.admin().await;
    for (policy, left) in [("Background", 404), ("Orphan", 200)] {
        let mut owner = service(&json!([{"port": 80}]));
        owner["metadata"]["finalizers"] = json!(["example.com/a"]);
        let owner = client.post(SERVICES, &owner).await.body;
        let mut owned = service(&json!([{"port": 81}]));
        owned["metadata"] = json!({"name": "owned", "ownerReferences": [{
            "apiVersion": "v1", "kind": "Service", "name": "web", "uid": owner["metadata"]["uid"],
        }]});
        client.post(SERVICES, &owned).await;
        client
            .delete(&format!("{WEB}?propagationPolicy={policy}"))
            .await;
        let dependent = format!("{SERVICES}/owned");
        assert_eq!(client.get(&dependent).await.code, 200, "the owner is there");
        let release = json!({"metadata": {"finalizers": null}});
        let released = client.patch(WEB, "merge-patch+json", &release).await;
        assert_eq!(released.code, 200);
        assert_eq!(client.get(WEB).await.code, 404);
        assert_eq!(client.get(&dependent).await.code, left, "{policy}");
    }
}

async fn writes_that_change_nothing_keep_the_revision(server: TestServer) {
    let mut client = server.admin().await;
    let policy = json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy", "metadata": {"name": "web"},
        "spec": {"lbType": "Locality", "unknown": 1},
    });
    let created = apply(&mut client, POLICY, "a", &policy).await.body;
    assert_eq!(created["spec"], json!({"lbType": "Locality"}));
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(*fields, json!({"f:spec": {"f:lbType": {}}}));
    let unknown = json!({"spec": {"unknown": 2}, "metadata": {"labels": {}, "finalizers": []}});
    let patched = client.patch(POLICY, "merge-patch+json", &unknown).await;
    assert_eq!(patched.body["metadata"], created["metadata"]);
    let applied = apply(&mut client, POLICY, "a", &policy).await;
    assert_eq!(applied.body["metadata"], created["metadata"]);
    let replaced = client.put(POLICY, &created).await;
    assert_eq!(replaced.body, created);
    // A namespace that was created with its first object has no field manager.
    let namespace = client.get("/api/v1/namespaces/ns1").await.body;
    let nothing = json!({});
    let nothing = client.patch("/api/v1/namespaces/ns1", "merge-patch+json", &nothing);
    assert_eq!(nothing.await.body, namespace);
}

async fn defaults_are_set_and_selected_by(server: TestServer) {
    let mut client = server.admin().await;
    let namespace = json!({"metadata": {"name": "made", "labels": {"a": "b"}}});
    let namespace = client.post("/api/v1/namespaces", &namespace).await.body;
    let labels = json!({"a": "b", "kubernetes.io/metadata.name": "made"});
    assert_eq!(namespace["metadata"]["labels"], labels);
    client
        .post(SERVICES, &service(&json!([{"port": 80}])))
        .await;
    let secret = json!({"metadata": {"name": "key"}});
    client.post("/api/v1/namespaces/ns1/secrets", &secret).await;
    for (path, expected) in [
        ("/api/v1/services?fieldSelector=spec.type%3DClusterIP", 1),
        ("/api/v1/services?fieldSelector=spec.type%3DNodePort", 0),
        ("/api/v1/secrets?fieldSelector=type%3DOpaque", 1),
        ("/api/v1/secrets?fieldSelector=type!%3DOpaque", 0),
        (
            "/api/v1/namespaces?labelSelector=kubernetes.io/metadata.name%3Dns1",
            1,
        ),
    ] {
        let found = client.get(path).await.body;
        assert_eq!(found["items"].as_array().unwrap().len(), expected, "{path}");
    }
    let headers = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = client
        .request(Method::GET, WEB, &headers, String::new())
        .await;
    assert_eq!(table.status(), 200);
    let found = client.get(WEB).await.body;
    assert_eq!(found["spec"]["type"], "ClusterIP");
    assert_eq!(found["spec"]["ports"][0]["protocol"], "TCP");
    let version = client.get("/version").await.body;
    assert_eq!(
        (&version["major"], &version["minor"]),
        (&json!("1"), &json!("36"))
    );
}

async fn patches_to_what_cannot_be_read_are_422(server: TestServer) {
    let mut client = server.admin().await;
    client
        .post(SERVICES, &service(&json!([{"port": 80}])))
        .await;
    let labels = json!({"metadata": {"finalizers": "x"}});
    let wrong = client.patch(WEB, "merge-patch+json", &labels).await;
    assert_eq!(
        (wrong.code, &wrong.body["reason"]),
        (422, &json!("Invalid"))
    );
    assert_eq!(wrong.body["details"]["causes"][0]["field"], "patch");
    let policy = json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy", "metadata": {"name": "web"},
        "spec": {"lbType": "Locality"},
    });
    apply(&mut client, POLICY, "a", &policy).await;
    let strict = format!("{POLICY}?fieldValidation=Strict");
    let misspelt = json!({"spec": {"lbtype": "Locality"}});
    let wrong = client.patch(&strict, "merge-patch+json", &misspelt).await;
    let message = &wrong.body["details"]["causes"][0]["message"];
    let expected = "Invalid value: strict decoding error: unknown field \"spec.lbtype\"";
    assert_eq!((wrong.code, message), (422, &json!(expected)));
    let mut whole = client.get(POLICY).await.body;
    whole["spec"]["lbtype"] = json!("Locality");
    assert_eq!(client.put(&strict, &whole).await.code, 400);
}

async fn kubectl_takes_over_what_it_applied_on_the_client(server: TestServer) {
    const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut client = server.admin().await;
    let of = |name: &str| service(&json!([{"port": 80, "name": name}]));
    let mut created = of("old");
    created["metadata"]["annotations"] = json!({LAST: of("old").to_string()});
    let path = format!("{SERVICES}?fieldManager=kubectl-client-side-apply");
    client.post(&path, &created).await;
    let other = apply(&mut client, WEB, "other", &of("new")).await;
    assert_eq!(other.code, 409, "{:?}", other.body);
    let taken = apply(&mut client, WEB, "kubectl", &of("new")).await;
    assert_eq!(taken.code, 200, "{:?}", taken.body);
    let noted = taken.body["metadata"]["annotations"][LAST]
        .as_str()
        .unwrap();
    let noted: Value = serde_json::from_str(noted).unwrap();
    assert_eq!(noted, of("new"));
    // A field that another client has changed since does not belong to kubectl.
    let edited = json!({"spec": {"ports": [{"port": 80, "name": "edited"}]}});
    client.patch(WEB, "merge-patch+json", &edited).await;
    assert_eq!(
        apply(&mut client, WEB, "kubectl", &of("new")).await.code,
        409
    );
}

crate::support::on_each_store!(
    leases_are_written_and_deleted_in_protobuf,
    other_encodings_lead_clients_back_to_json,
    managers_of_different_ports_do_not_conflict,
    dependents_go_with_an_owner_that_had_finalizers,
    writes_that_change_nothing_keep_the_revision,
    defaults_are_set_and_selected_by,
    patches_to_what_cannot_be_read_are_422,
    kubectl_takes_over_what_it_applied_on_the_client
);
