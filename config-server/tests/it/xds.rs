//! Resources over xDS: the server and the client of a proxy, over real sockets.

pub mod followed;
pub mod raw;
mod reported;
mod scripted;

use std::sync::Arc;

use bytes::Bytes;
use config_server::store::Expected;
use serde_json::{Value, json};

use crate::support::{Client, TestServer, on_each_store};
use followed::{Followed, hosts};
use scripted::ScriptedServer;

const VIRTUAL_SERVICES: &str = "/apis/networking.istio.io/v1/namespaces/shop/virtualservices";

fn virtual_service(name: &str, host: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"hosts": [host], "http": [{"route": [{"destination": {"host": "web"}}]}]},
    })
}

async fn create(admin: &mut Client, path: &str, object: &Value) {
    let answer = admin.post(path, object).await;
    assert_eq!(answer.code, 201, "{:?}", answer.body);
}

/// Returns one object of each kind that has its own encoding in the protocol.
fn objects() -> Vec<(&'static str, Value)> {
    vec![
        (VIRTUAL_SERVICES, virtual_service("a", "a.example.com")),
        (
            "/apis/networking.istio.io/v1/namespaces/shop/destinationrules",
            json!({
                "apiVersion": "networking.istio.io/v1", "kind": "DestinationRule",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {
                    "host": "web.shop.svc.cluster.local",
                    "trafficPolicy": {"outlierDetection": {"consecutive5xxErrors": 3, "baseEjectionTime": "1.5s"}},
                    "subsets": [{"name": "v1", "labels": {"version": "v1"}}],
                },
            }),
        ),
        (
            "/apis/networking.istio.io/v1/namespaces/shop/gateways",
            json!({
                "apiVersion": "networking.istio.io/v1", "kind": "Gateway",
                "metadata": {"name": "edge", "namespace": "shop", "labels": {"team": "web"}},
                "spec": {
                    "selector": {"istio": "ingressgateway"},
                    "servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]}],
                },
            }),
        ),
        (
            "/apis/security.istio.io/v1/namespaces/shop/authorizationpolicies",
            json!({
                "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {
                    "selector": {"matchLabels": {"app": "web"}}, "action": "DENY",
                    "rules": [{"to": [{"operation": {"paths": ["/admin"]}}]}],
                },
            }),
        ),
        (
            "/apis/security.istio.io/v1beta1/namespaces/shop/requestauthentications",
            json!({
                "apiVersion": "security.istio.io/v1beta1", "kind": "RequestAuthentication",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"jwtRules": [{"issuer": "https://a.example.com", "timeout": "2s"}]},
            }),
        ),
        (
            "/api/v1/namespaces/shop/services",
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}], "clusterIP": "10.0.0.1"},
            }),
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices",
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4", "ports": [{"name": "http", "port": 8080}],
                "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}],
            }),
        ),
        (
            "/apis/flomesh.io/v1alpha1/namespaces/shop/globaltrafficpolicies",
            json!({
                "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
                "metadata": {"name": "web", "namespace": "shop"}, "spec": {"lbType": "Locality"},
            }),
        ),
    ]
}

/// Resources of an xDS client equal those from files with the same objects, also after changes and deletions.
async fn resources_arrive_change_and_leave(server: TestServer) {
    let mut admin = server.admin().await;
    for (path, object) in objects() {
        create(&mut admin, path, &object).await;
    }
    let mut followed = Followed::of(&server, "proxy");
    let files = tempfile::tempdir().unwrap();
    let all: Vec<Value> = objects().into_iter().map(|(_, object)| object).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    std::fs::write(files.path().join("all.json"), list.to_string()).unwrap();
    let expected = config_loader::load_files(
        &[files.path().to_owned()],
        config_loader::LoadOptions::default(),
    );
    let found = followed
        .until("all objects", |found| found.set.len() == objects().len())
        .await;
    let (found, expected) = (&found.set, &expected.set);
    let specs = |set: &config_loader::ResourceSet| {
        let virtual_services = set
            .virtual_services
            .values()
            .map(|one| format!("{:?}", one.spec.hosts));
        let rules = set
            .destination_rules
            .values()
            .map(|one| format!("{:?}", one.spec));
        let gateways = set
            .gateways
            .values()
            .map(|one| format!("{:?} {:?}", one.spec.selector, one.labels));
        let services = set.services.values().map(|one| format!("{:?}", one.spec));
        let slices = set
            .endpoint_slices
            .values()
            .map(|one| format!("{:?}", one.spec));
        let authorizations = set
            .authorization_policies
            .values()
            .map(|one| format!("{:?}", one.spec));
        let policies = set
            .global_traffic_policies
            .values()
            .map(|one| format!("{:?}", one.spec));
        let all = virtual_services.chain(rules).chain(gateways);
        all.chain(services)
            .chain(slices)
            .chain(authorizations)
            .chain(policies)
            .collect::<Vec<_>>()
    };
    // Only the line numbers in the texts differ.
    assert_eq!(
        followed::without_lines(&specs(found)),
        followed::without_lines(&specs(expected))
    );
    let changed = virtual_service("a", "b.example.com");
    let path = format!("{VIRTUAL_SERVICES}/a");
    assert_eq!(
        admin.patch(&path, "merge-patch+json", &changed).await.code,
        200
    );
    followed
        .until("the change", |found| hosts(&found.set) == ["b.example.com"])
        .await;
    assert_eq!(
        admin.delete(&format!("{VIRTUAL_SERVICES}/a")).await.code,
        200
    );
    followed
        .until("the deletion", |found| hosts(&found.set).is_empty())
        .await;
}

/// Invalid objects do not affect others, and take effect once they are corrected.
async fn bad_object_is_rejected_alone(server: TestServer) {
    let mut admin = server.admin().await;
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("good", "good.example.com"),
    )
    .await;
    let mut followed = Followed::of(&server, "proxy");
    followed
        .until("the good object", |found| {
            hosts(&found.set) == ["good.example.com"]
        })
        .await;
    // The API rejects such an object, but an older version of the server may have stored one.
    let mut bad = virtual_service("bad", "bad.example.com");
    bad["spec"]["http"][0]["timeout"] = json!("-1s");
    let key = "/networking.istio.io/virtualservices/shop/bad".to_owned();
    let value = Some(Bytes::from(bad.to_string()));
    server
        .store
        .write(key.clone(), Expected::Absent, value)
        .await
        .unwrap();
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("later", "later.example.com"),
    )
    .await;
    let found = followed
        .until("the later object", |found| {
            hosts(&found.set) == ["good.example.com", "later.example.com"]
        })
        .await;
    let errors = found.errors();
    assert!(
        errors
            .iter()
            .any(|error| error.contains("virtualservices.networking.istio.io/bad")),
        "{errors:?}"
    );
    let (entry, _) = server.store.get(&key).await.unwrap();
    let right = Some(Bytes::from(
        virtual_service("bad", "bad.example.com").to_string(),
    ));
    server
        .store
        .write(key, Expected::At(entry.unwrap().revision), right)
        .await
        .unwrap();
    followed
        .until("the object that is right", |found| {
            hosts(&found.set).len() == 3 && found.errors().is_empty()
        })
        .await;
}

on_each_store!(
    resources_arrive_change_and_leave,
    bad_object_is_rejected_alone
);

#[tokio::test(flavor = "multi_thread")]
async fn stream_resumes_after_a_restart_and_nothing_is_missing_meanwhile() {
    let server = TestServer::start_with(|settings| settings.writes_status = false).await;
    let mut admin = server.admin().await;
    for name in ["a", "b"] {
        let object = virtual_service(name, &format!("{name}.example.com"));
        create(&mut admin, VIRTUAL_SERVICES, &object).await;
    }
    let mut followed = Followed::of(&server, "proxy");
    followed
        .until("both", |found| hosts(&found.set).len() == 2)
        .await;
    drop(admin);
    let server = server.restart_in_place().await;
    let mut admin = server.admin().await;
    assert_eq!(
        admin.delete(&format!("{VIRTUAL_SERVICES}/a")).await.code,
        200
    );
    let object = virtual_service("c", "c.example.com");
    create(&mut admin, VIRTUAL_SERVICES, &object).await;
    followed
        .until("the state after the restart", |found| {
            hosts(&found.set) == ["b.example.com", "c.example.com"]
        })
        .await;
    assert!(
        followed
            .seen()
            .iter()
            .all(|hosts| hosts.contains("b.example.com") || hosts.is_empty())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_token_is_named_and_a_new_one_is_read() {
    let server = TestServer::embedded().await;
    let mut admin = server.admin().await;
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("a", "a.example.com"),
    )
    .await;
    let mut followed = Followed::with_token(&server, "wrong");
    let found = followed
        .until("the refusal", |found| !found.errors().is_empty())
        .await;
    let errors = found.errors();
    assert!(errors[0].starts_with("SRC008 "), "{errors:?}");
    assert!(!errors[0].contains("wrong"), "the token is in the finding");
    followed.renew_token(&server.token("proxy"));
    followed
        .until("the objects", |found| {
            hosts(&found.set) == ["a.example.com"] && found.errors().is_empty()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_incremental_xds_is_asked_for_the_whole_state() {
    let server = ScriptedServer::start().await;
    let mut followed = Followed::plaintext(server.address);
    let mut stream = server.stream().await;
    stream
        .send_state(
            "1",
            &[
                virtual_service("a", "a.example.com"),
                virtual_service("b", "b.example.com"),
            ],
        )
        .await;
    followed
        .until("the state", |found| {
            hosts(&found.set) == ["a.example.com", "b.example.com"]
        })
        .await;
    assert_eq!(stream.answer("1").await, ("1".to_owned(), None));
    stream
        .send_state("2", &[virtual_service("b", "b2.example.com")])
        .await;
    followed
        .until("the next state", |found| {
            hosts(&found.set) == ["b2.example.com"]
        })
        .await;
    // A repeated response has no effect, and is acknowledged.
    stream
        .send_state("2", &[virtual_service("b", "b2.example.com")])
        .await;
    assert_eq!(stream.answer("2").await, ("2".to_owned(), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn rejection_names_the_resource_and_the_version_before() {
    let server = ScriptedServer::start().await;
    let mut followed = Followed::plaintext(server.address);
    let mut stream = server.stream().await;
    stream
        .send_state("1", &[virtual_service("a", "a.example.com")])
        .await;
    assert_eq!(stream.answer("1").await, ("1".to_owned(), None));
    followed
        .until("the good one", |found| {
            hosts(&found.set) == ["a.example.com"]
        })
        .await;
    let mut bad = virtual_service("a", "bad.example.com");
    bad["spec"]["http"][0]["timeout"] = json!("-1s");
    stream
        .send_state("2", &[bad, virtual_service("b", "b.example.com")])
        .await;
    let (version, error) = stream.answer("2").await;
    assert_eq!(version, "1");
    let error = error.expect("a NACK");
    assert!(error.starts_with("shop/a: "), "{error}");
    followed
        .until("the good one beside", |found| {
            hosts(&found.set) == ["a.example.com", "b.example.com"]
        })
        .await;
    stream
        .send_state(
            "3",
            &[
                virtual_service("a", "a3.example.com"),
                virtual_service("b", "b.example.com"),
            ],
        )
        .await;
    assert_eq!(stream.answer("3").await, ("3".to_owned(), None));
    followed
        .until("the recovery", |found| {
            hosts(&found.set) == ["a3.example.com", "b.example.com"]
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn last_state_stays_while_the_server_is_away_and_after_a_half_message() {
    let server = ScriptedServer::start().await;
    let mut followed = Followed::plaintext(server.address);
    let mut stream = server.stream().await;
    stream
        .send_state("1", &[virtual_service("a", "a.example.com")])
        .await;
    followed
        .until("the state", |found| hosts(&found.set) == ["a.example.com"])
        .await;
    stream.break_off();
    let mut stream = server.stream().await;
    let first = stream.first_request().await;
    assert_eq!(
        first.version_info, "1",
        "the next stream says what was accepted"
    );
    assert!(
        first
            .node
            .is_some_and(|node| node.id.starts_with("router~"))
    );
    stream
        .send_state("2", &[virtual_service("b", "b.example.com")])
        .await;
    followed
        .until("the next state", |found| {
            hosts(&found.set) == ["b.example.com"]
        })
        .await;
    let seen = followed.seen();
    assert!(
        !seen
            .iter()
            .skip_while(|hosts| hosts.is_empty())
            .any(|hosts| hosts.is_empty()),
        "{seen:?}"
    );
    let _ = Arc::strong_count(&followed.until("the end", |_| true).await.set);
}
