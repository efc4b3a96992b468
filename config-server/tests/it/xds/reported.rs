//! State of proxies over xDS on the server, and the lifetime of their streams.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use config_loader::xds::{Rejected, rejection};
use config_server::access::{Role, tokens};
use serde_json::{Value, json};

use super::followed::{Followed, hosts};
use super::raw::{RawStream, WholeStream, node};
use super::{VIRTUAL_SERVICES, create, virtual_service};
use crate::conditions::{condition, wait};
use crate::support::{Client, TestServer, on_each_store};

const TYPE: &str = "networking.istio.io/v1/VirtualService";
const PROXIES: &str = "/apis/strait.io/v1alpha1/proxies";

/// Returns the only proxy once it satisfies `is_it`.
async fn proxy(admin: &mut Client, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let list = admin.get(PROXIES).await.body;
        let first = &list["items"][0];
        if is_it(first) {
            return first.clone();
        }
        assert!(Instant::now() < deadline, "{what}: {list}");
        tokio::task::yield_now().await;
    }
}

fn revision_of(object: &Value) -> u64 {
    let revision = object["metadata"]["resourceVersion"].as_str().unwrap();
    revision.parse().unwrap()
}

fn applied(proxy: &Value) -> u64 {
    let revision = proxy["status"]["revision"].as_str();
    revision.map_or(0, |revision| revision.parse().unwrap())
}

/// Reports of clients that send none are derived from their ACKs and NACKs.
async fn answers_of_other_clients_are_its_report(server: TestServer) {
    let mut admin = server.admin().await;
    let object = virtual_service("a", "a.example.com");
    create(&mut admin, VIRTUAL_SERVICES, &object).await;
    let token = server.token("proxy");
    let mut stream = RawStream::open(&server, &token, node("web-1"), TYPE).await;
    let one = proxy(&mut admin, "it is connected", |one| one.is_object()).await;
    assert_eq!(one["metadata"]["name"], "web-1");
    assert_eq!(one["metadata"]["namespace"], "edge");
    assert_eq!(one["spec"]["mode"], "sidecar");
    assert_eq!(one["spec"]["cluster"], "east");
    assert_eq!(applied(&one), 0, "nothing was accepted yet");
    let response = stream.answer(None).await;
    assert_eq!(response.resources.len(), 1);
    let revision: u64 = response.system_version_info.parse().unwrap();
    proxy(&mut admin, "the ACK", |one| applied(one) >= revision).await;

    // A NACK that names its resource accepts all other resources.
    let path = format!("{VIRTUAL_SERVICES}/a");
    let changed = virtual_service("a", "b.example.com");
    let changed = admin.patch(&path, "merge-patch+json", &changed).await.body;
    let rejected = [Rejected {
        name: "shop/a".to_owned(),
        reason: "VS001: no".to_owned(),
    }];
    let error = rejection("shop/a: VS001: no".to_owned(), &rejected);
    stream.answer(Some(error)).await;
    let one = proxy(&mut admin, "the NACK", |one| {
        one["status"]["rejectedCount"] == 1
    })
    .await;
    assert_eq!(applied(&one), revision_of(&changed));
    let expected = json!({
        "object": "VirtualService/shop/a", "lastGoodVersionInUse": true, "reasons": ["VS001: no"],
    });
    assert_eq!(one["status"]["rejected"][0], expected);

    // A NACK without resource names leaves unknown which resources are in effect.
    let changed = virtual_service("a", "c.example.com");
    let changed = admin.patch(&path, "merge-patch+json", &changed).await.body;
    stream
        .answer(Some(rejection("all wrong".to_owned(), &[])))
        .await;
    let one = proxy(&mut admin, "the second NACK", |one| {
        one["status"]["rejected"][0]["reasons"] == json!(["all wrong"])
    })
    .await;
    assert!(applied(&one) < revision_of(&changed), "{one}");

    drop(stream);
    let ended = Instant::now();
    proxy(&mut admin, "it leaves", Value::is_null).await;
    assert!(
        ended.elapsed() < Duration::from_secs(20),
        "long before 60 s"
    );
}

/// Reports of Strait proxies say what is in effect, which makes objects `Programmed`.
async fn proxy_reports_what_is_in_effect(server: TestServer) {
    let mut admin = server.admin().await;
    let object = virtual_service("a", "a.example.com");
    create(&mut admin, VIRTUAL_SERVICES, &object).await;
    let mut followed = Followed::of(&server, "proxy");
    followed
        .until("the object", |found| hosts(&found.set) == ["a.example.com"])
        .await;
    // Use the item's revision: the list's also rises with writes of other tests on the same etcd.
    let list = admin.get(VIRTUAL_SERVICES).await.body;
    let revision = revision_of(&list["items"][0]);
    let one = proxy(&mut admin, "its report", |one| applied(one) >= revision).await;
    assert_eq!(one["metadata"]["name"], "edge-of-test");
    assert_eq!(one["status"]["generation"], 7);
    assert_eq!(one["status"]["upToDate"], true);
    let path = format!("{VIRTUAL_SERVICES}/a");
    let changed = virtual_service("a", "b.example.com");
    let changed = admin.patch(&path, "merge-patch+json", &changed).await.body;
    let revision = revision_of(&changed);
    let one = proxy(&mut admin, "the change", |one| {
        applied(one) >= revision && one["status"]["lastChangeSeconds"].is_number()
    })
    .await;
    let took = one["status"]["lastChangeSeconds"].as_f64().unwrap();
    assert!(took < 20.0, "{took}");

    // The API rejects such an object, but an older version of the server may have stored one.
    let mut bad = virtual_service("bad", "bad.example.com");
    bad["spec"]["http"][0]["timeout"] = json!("-1s");
    let key = "/networking.istio.io/virtualservices/shop/bad".to_owned();
    let value = Some(bad.to_string().into());
    let absent = config_server::store::Expected::Absent;
    server.store.write(key, absent, value).await.unwrap();
    let one = proxy(&mut admin, "the rejection", |one| {
        one["status"]["rejectedCount"] == 1
    })
    .await;
    let rejected = &one["status"]["rejected"][0];
    assert_eq!(rejected["object"], "VirtualService/shop/bad");
    let reason = rejected["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("CM001"), "{reason}");
    drop(followed);
    proxy(&mut admin, "it leaves", Value::is_null).await;
}

/// State-of-the-world responses contain all resources and the revision of the server.
async fn whole_state_is_sent_again_after_each_change(server: TestServer) {
    let mut admin = server.admin().await;
    for name in ["a", "b"] {
        let object = virtual_service(name, &format!("{name}.example.com"));
        create(&mut admin, VIRTUAL_SERVICES, &object).await;
    }
    let token = server.token("proxy");
    let mut stream = WholeStream::open_whole(&server, &token, TYPE).await;
    let revision = |response: &config_loader::xds::DiscoveryResponse| -> u64 {
        response.version_info.parse().unwrap()
    };
    let first = stream.accept().await;
    assert_eq!(first.resources.len(), 2);
    let list = admin.get(VIRTUAL_SERVICES).await.body;
    assert!(revision(&first) >= revision_of(&list["items"][1]));
    let deleted = admin.delete(&format!("{VIRTUAL_SERVICES}/a")).await;
    assert_eq!(deleted.code, 200);
    let second = stream.accept().await;
    assert_eq!(second.resources, first.resources[1..]);
    assert!(revision(&second) > revision(&first));
    // Objects of other types do not cause a response.
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ports": [{"port": 80}]},
    });
    create(&mut admin, "/api/v1/namespaces/shop/services", &service).await;
    let object = virtual_service("c", "c.example.com");
    create(&mut admin, VIRTUAL_SERVICES, &object).await;
    let third = stream.accept().await;
    assert_eq!(third.resources.len(), 2);
    let list = admin.get(VIRTUAL_SERVICES).await.body;
    let written = revision_of(&list["items"][1]);
    proxy(&mut admin, "all is accepted", |one| applied(one) >= written).await;
}

/// Status changes do not affect a proxy, and are not sent.
async fn status_alone_is_not_sent(server: TestServer) {
    let mut admin = server.admin().await;
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("a", "a.example.com"),
    )
    .await;
    let token = server.token("proxy");
    let mut stream = RawStream::open(&server, &token, node("web-1"), TYPE).await;
    let mut whole = WholeStream::open_whole(&server, &token, TYPE).await;
    let first = stream.answer(None).await;
    whole.accept().await;
    let status = json!({"status": {"conditions": [{
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-11-25T12:00:00Z",
    }]}});
    let path = format!("{VIRTUAL_SERVICES}/a/status");
    let written = admin.patch(&path, "merge-patch+json", &status).await;
    assert_eq!(written.code, 200, "{written:?}");
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("b", "b.example.com"),
    )
    .await;
    let next = stream.answer(None).await;
    let names: Vec<&str> = next.resources.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["shop/b"]);
    assert_eq!(whole.accept().await.resources.len(), 2);
    // A reconnecting client gets only the resources that differ from its versions.
    let mut versions = HashMap::from([("shop/a".to_owned(), first.resources[0].version.clone())]);
    versions.insert("shop/b".to_owned(), "another".to_owned());
    let mut again = RawStream::resume(&server, &token, node("web-1"), TYPE, versions).await;
    let rest = again.answer(None).await.resources;
    let names: Vec<&str> = rest.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["shop/b"]);
}

on_each_store!(
    status_alone_is_not_sent,
    whole_state_is_sent_again_after_each_change,
    answers_of_other_clients_are_its_report,
    proxy_reports_what_is_in_effect,
);

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_programmed_at_proxies_over_xds() {
    let server = TestServer::start_with(|_| {}).await;
    let mut admin = server.admin().await;
    let _followed = Followed::of(&server, "proxy");
    let object = virtual_service("a", "a.example.com");
    create(&mut admin, VIRTUAL_SERVICES, &object).await;
    let programmed = wait(&server, &format!("{VIRTUAL_SERVICES}/a"), |object| {
        condition(object, "Programmed")["status"] == "True"
    })
    .await;
    let message = &condition(&programmed, "Programmed")["message"];
    assert_eq!(message, "1 of 1 proxies");
}

/// New clients count only after their first ACK, so that a client that joins does not change conditions.
#[tokio::test(flavor = "multi_thread")]
async fn client_that_joins_changes_no_status() {
    let server = TestServer::start_with(|_| {}).await;
    let mut admin = server.admin().await;
    let path = format!("{VIRTUAL_SERVICES}/a");
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("a", "a.example.com"),
    )
    .await;
    let token = server.token("proxy");
    let mut first = RawStream::open(&server, &token, node("web-1"), TYPE).await;
    first.answer(None).await;
    let programmed = wait(&server, &path, |object| {
        condition(object, "Programmed")["status"] == "True"
    })
    .await;
    let mut second = RawStream::open(&server, &token, node("web-2"), TYPE).await;
    let response = second.next().await.unwrap().unwrap();
    let both = async |admin: &mut Client| {
        admin.get(PROXIES).await.body["items"]
            .as_array()
            .unwrap()
            .len()
            == 2
    };
    while !both(&mut admin).await {
        tokio::task::yield_now().await;
    }
    // The status of another object is written after the proxies were evaluated.
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("b", "b.example.com"),
    )
    .await;
    wait(&server, &format!("{VIRTUAL_SERVICES}/b"), |object| {
        condition(object, "Programmed")["reason"] == "Pending"
    })
    .await;
    let now = admin.get(&path).await.body;
    assert_eq!(revision_of(&now), revision_of(&programmed), "{now}");
    assert_eq!(response.resources.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_that_may_not_report_is_no_proxy() {
    let server = TestServer::embedded().await;
    let path = tokens::file_in(server.data.path());
    let token = tokens::create(&path, "reader", Role::Reader, None).unwrap();
    let mut stream = RawStream::open(&server, &token, node("reader"), TYPE).await;
    stream.answer(None).await;
    let mut admin = server.admin().await;
    let object = virtual_service("a", "a.example.com");
    create(&mut admin, VIRTUAL_SERVICES, &object).await;
    stream.answer(None).await;
    create(
        &mut admin,
        VIRTUAL_SERVICES,
        &virtual_service("b", "b.example.com"),
    )
    .await;
    // The server has processed the previous answer once this one arrives.
    stream.answer(None).await;
    assert_eq!(admin.get(PROXIES).await.body["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_ends_when_its_token_is_revoked() {
    let server = TestServer::embedded().await;
    let path = tokens::file_in(server.data.path());
    let token = tokens::create(&path, "one", Role::Proxy(Vec::new()), None).unwrap();
    let mut stream = RawStream::open(&server, &token, node("web-1"), TYPE).await;
    stream.answer(None).await;
    tokens::revoke(&path, "one").unwrap();
    let revoked = Instant::now();
    let ended = stream.next().await.unwrap_err();
    assert_eq!(ended.code(), tonic::Code::Unauthenticated, "{ended:?}");
    assert!(revoked.elapsed() < Duration::from_secs(20));
}
