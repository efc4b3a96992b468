//! The hub with a real API server, which `STRAIT_TEST_KUBECONFIG` names.

pub mod cluster;
mod relay;
mod workloads;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use config_loader::xds::{DeltaDiscoveryRequest, Node};
use futures_util::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, Patch, PatchParams};
use prost_types::value::Kind;
use prost_types::{Struct, Value as Field};
use serde_json::{Value, json};
use tonic::Code;

use crate::xds::followed::hosts;
use crate::xds::raw::RawStream;
use cluster::{Cluster, Hub, NAME, until};

const VIRTUAL_SERVICE: &str = "networking.istio.io/v1/VirtualService";
const SECRET: &str = "core/v1/Secret";

/// Returns the first request of a proxy: `router` is a gateway, `sidecar` a sidecar.
fn first(mode: &str, namespace: &str, type_url: &str) -> DeltaDiscoveryRequest {
    let told = Field {
        kind: Some(Kind::StringValue(namespace.to_owned())),
    };
    DeltaDiscoveryRequest {
        node: Some(Node {
            id: format!("{mode}~10.0.0.1~web.{namespace}~{namespace}.svc.cluster.local"),
            metadata: Some(Struct {
                fields: [("NAMESPACE".to_owned(), told)].into_iter().collect(),
            }),
            ..Node::default()
        }),
        type_url: type_url.to_owned(),
        ..DeltaDiscoveryRequest::default()
    }
}

/// Returns the status with which the hub refuses a stream.
async fn refused(hub: &Hub, token: &str, first: DeltaDiscoveryRequest) -> tonic::Status {
    match RawStream::at(hub.address, hub.ca.path(), token, first).await {
        Ok(mut stream) => loop {
            match stream.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream ended without a status"),
                Err(status) => return status,
            }
        },
        Err(status) => status,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_proxies_cost_one_watch_per_kind_and_get_a_change() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let hub = cluster.start().await;
    let own = format!("{}.first.example", cluster.name);
    cluster.create_virtual_service("first", &own).await;
    let token = cluster.token("web", &[NAME]).await;
    let mut streams = join_all((0..50).map(async |_| {
        let first = first("sidecar", &cluster.name, VIRTUAL_SERVICE);
        let mut stream = RawStream::at(hub.address, hub.ca.path(), &token, first)
            .await
            .unwrap();
        stream.answer(None).await;
        stream
    }))
    .await;
    let start = Instant::now();
    cluster
        .create_virtual_service("second", "second.example")
        .await;
    let name = format!("{}/second", cluster.name);
    join_all(streams.iter_mut().map(async |stream| {
        while !stream
            .answer(None)
            .await
            .resources
            .iter()
            .any(|one| one.name == name)
        {}
    }))
    .await;
    println!("in effect at 50 proxies after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(10));
    let watches = cluster.relay.watches();
    assert!(watches.len() > 10, "{watches:?}");
    let twice = watches.iter().filter(|(path, count)| {
        // Namespaces and the CA's ConfigMaps are followed for the CA.
        **count > 1 && !path.ends_with("/configmaps") && !path.ends_with("/namespaces")
    });
    assert_eq!(twice.count(), 0, "{watches:?}");
    hub.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_vanishes_while_the_api_server_is_down_and_the_hub_restarts() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let hub = cluster.start().await;
    let host = |name: &str| format!("{}.{name}.example", cluster.name);
    let (kept, back, late) = (host("kept"), host("back"), host("late"));
    cluster.create_virtual_service("kept", &kept).await;
    let token = cluster.token("web", &[NAME]).await;
    let mut proxy = hub.proxy(&token, &cluster.name);
    proxy
        .until("the resource", |found| hosts(&found.set).contains(&kept))
        .await;
    let count = proxy.seen().len();

    cluster.relay.set_up(false);
    let mut client = hub.client(&token).await;
    let path = format!(
        "/apis/networking.istio.io/v1/namespaces/{}/virtualservices/kept",
        cluster.name
    );
    assert_eq!(client.get(&path).await.code, 200, "what is known is served");
    drop(client);
    cluster.create_virtual_service("back", &back).await;
    cluster.relay.set_up(true);
    proxy
        .until("the change", |found| hosts(&found.set).contains(&back))
        .await;

    cluster.relay.set_up(false);
    let address = hub.address;
    let ca = hub.end().await;
    let hub = cluster.start_at(address, Some(ca)).await;
    assert_eq!(hub.ready().await.0, 503);
    // Its certificate is in a Secret of the API server as well.
    cluster.create_virtual_service("late", &late).await;
    cluster.relay.set_up(true);
    proxy
        .until("the new resource", |found| {
            hosts(&found.set).contains(&late)
        })
        .await;
    until("it is ready", async || hub.ready().await.0 == 200).await;
    let seen = proxy.seen();
    assert!(
        seen[count - 1..].iter().all(|hosts| hosts.contains(&kept)),
        "{seen:?}"
    );
    hub.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_refuses_streams_and_reads_until_the_first_list() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let token = cluster.token("web", &[NAME]).await;
    // An account without rights to read the kinds: its lists are refused.
    let hub = cluster.start_without_reads().await;
    until("the certificate is served", async || {
        let (status, text) = hub.ready().await;
        status == 503 && text.contains("not listed")
    })
    .await;
    let stream = refused(
        &hub,
        &token,
        first("sidecar", &cluster.name, VIRTUAL_SERVICE),
    )
    .await;
    assert_eq!(stream.code(), Code::Unavailable, "{stream:?}");
    let answer = hub.client(&token).await.get("/api/v1/services").await;
    assert_eq!(answer.code, 503, "{answer:?}");
    hub.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_is_the_service_account_of_its_token() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let hub = cluster.start().await;
    let token = cluster.token("web", &[NAME]).await;
    let other = cluster.token("web", &["https://kubernetes.default"]).await;
    let refused = async |token: &str, namespace: &str| {
        let status = refused(&hub, token, first("sidecar", namespace, VIRTUAL_SERVICE)).await;
        (status.code(), status.message().to_owned())
    };
    assert_eq!(
        refused(&other, &cluster.name).await.0,
        Code::Unauthenticated
    );
    assert_eq!(refused("abc", &cluster.name).await.0, Code::Unauthenticated);
    let (code, message) = refused(&token, "another").await;
    assert_eq!(code, Code::PermissionDenied, "{message}");
    assert!(
        message.contains("another") && message.contains(&cluster.name),
        "{message}"
    );

    let mut client = hub.client(&token).await;
    let report = |namespace: &str| {
        json!({
            "apiVersion": "control.strait.io/v1alpha1", "kind": "Proxy",
            "metadata": {"name": "web", "namespace": namespace},
        })
    };
    let (resource, version) = config_server::resources::all()
        .iter()
        .find(|one| one.is_report())
        .map(|one| (one, one.versions[0]))
        .unwrap();
    let path = |namespace: &str| {
        let (group, plural) = (resource.group, resource.api.plural);
        format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/web")
    };
    let mut object = report("another");
    object["apiVersion"] = resource.api_version(version).into();
    object["kind"] = resource.kind.into();
    assert_eq!(client.put(&path("another"), &object).await.code, 403);
    object["metadata"]["namespace"] = cluster.name.clone().into();
    let answer = client.put(&path(&cluster.name), &object).await;
    assert_eq!(answer.code / 100, 2, "{answer:?}");

    let mut none = hub.client_without_token().await;
    assert_eq!(none.get("/api/v1/services").await.code, 401);
    hub.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_is_read_only() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let hub = cluster.start().await;
    cluster.create_virtual_service("a", "a.example").await;
    let token = cluster.token("web", &[NAME]).await;
    let mut client = hub.client(&token).await;
    let all = format!(
        "/apis/networking.istio.io/v1/namespaces/{}/virtualservices",
        cluster.name
    );
    let one = format!("{all}/a");
    until("the object is there", async || {
        hub.client(&token).await.get(&one).await.code == 200
    })
    .await;
    let found = client.get(&one).await.body;
    assert_eq!(found["spec"]["hosts"], json!(["a.example"]));
    let revision = client.get(&all).await.body["metadata"]["resourceVersion"].clone();
    for (method, path) in [
        (Method::POST, &all),
        (Method::PUT, &one),
        (Method::DELETE, &one),
        (Method::DELETE, &all),
    ] {
        let answer = client
            .send(method.clone(), path, "application/json", found.to_string())
            .await;
        assert_eq!(answer.code, 405, "{method} {path} {answer:?}");
    }
    let revision: u64 = revision.as_str().unwrap().parse().unwrap();
    // A revision of a replica that started earlier has to list again.
    let older = format!("{all}?watch=true&resourceVersion={}", revision - (1 << 40));
    let event = client.watch(&older).await.next().await.unwrap();
    assert_eq!(event["object"]["code"], 410, "{event}");
    hub.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_gets_secrets_of_its_own_namespace_as_far_as_the_hub_may_read_them() {
    let (Some(cluster), Some(other)) = (Cluster::new().await, Cluster::new().await) else {
        return;
    };
    let hub = cluster.start().await;
    for one in [&cluster, &other] {
        one.create_secret("edge").await;
    }
    cluster.let_read_secrets(&cluster.name).await;
    let ask = async |hub: &Hub, of: &Cluster, mode: &str, known: &HashMap<String, String>| {
        let token = of.token("web", &[NAME]).await;
        let first = DeltaDiscoveryRequest {
            initial_resource_versions: known.clone(),
            ..first(mode, &of.name, SECRET)
        };
        let stream = RawStream::at(hub.address, hub.ca.path(), &token, first).await;
        let response = stream.unwrap().answer(None).await;
        let sent = response.resources.into_iter();
        let sent: HashMap<String, String> = sent.map(|one| (one.name, one.version)).collect();
        (sent, response.removed_resources)
    };
    let none = HashMap::new();
    // A right that is new takes a moment in the API server.
    let mut known = HashMap::new();
    until("the gateway has its Secret", async || {
        (known, _) = ask(&hub, &cluster, "router", &none).await;
        !known.is_empty()
    })
    .await;
    let names: Vec<String> = known.keys().cloned().collect();
    assert_eq!(
        names,
        [format!("{}/edge", cluster.name)],
        "the hub's own CA is not served"
    );
    assert!(ask(&hub, &cluster, "sidecar", &none).await.0.is_empty());
    // The hub may not read those of the other namespace.
    assert!(ask(&hub, &other, "router", &none).await.0.is_empty());
    hub.end().await;
    let hub = cluster.start().await;
    let (sent, removed) = ask(&hub, &cluster, "router", &known).await;
    assert!(
        sent.is_empty() && removed.is_empty(),
        "{sent:?} {removed:?}"
    );
    hub.end().await;
    cluster.end().await;
    other.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_that_ask_for_sidecars_get_the_ca_and_keep_it() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let hub = cluster.start().await;
    let expected = std::fs::read_to_string(hub.ca.path()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.name);
    let text = async || {
        maps.get_opt("strait-ca")
            .await
            .unwrap()
            .and_then(|map| map.data?.remove("ca.crt"))
    };
    assert_eq!(text().await, None, "the namespace does not ask");
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"istio.io/rev": cluster.name}}}));
    namespaces
        .patch(&cluster.name, &PatchParams::default(), &label)
        .await
        .unwrap();
    let start = Instant::now();
    until("the CA is there", async || {
        text().await.as_ref() == Some(&expected)
    })
    .await;
    println!("the CA is there {:?} after the label", start.elapsed());
    let wrong: Patch<Value> = Patch::Merge(json!({"data": {"ca.crt": "other"}}));
    maps.patch("strait-ca", &PatchParams::default(), &wrong)
        .await
        .unwrap();
    until("the CA is there again", async || {
        text().await.as_ref() == Some(&expected)
    })
    .await;
    maps.delete("strait-ca", &Default::default()).await.unwrap();
    until("the map is there again", async || {
        text().await.as_ref() == Some(&expected)
    })
    .await;
    hub.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_that_moves_between_replicas_gets_what_differs_alone() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let (one, other) = (cluster.start().await, cluster.start().await);
    cluster.create_virtual_service("a", "a.example").await;
    let token = cluster.token("web", &[NAME]).await;
    let open = async |hub: &Hub, versions| {
        let first = DeltaDiscoveryRequest {
            initial_resource_versions: versions,
            ..first("sidecar", &cluster.name, VIRTUAL_SERVICE)
        };
        RawStream::at(hub.address, hub.ca.path(), &token, first)
            .await
            .unwrap()
    };
    let name = format!("{}/a", cluster.name);
    let mut versions = HashMap::new();
    let (mut stream, mut before) = (open(&one, versions.clone()).await, String::new());
    while !versions.contains_key(&name) {
        let response = stream.answer(None).await;
        before = response.system_version_info;
        versions.extend(
            response
                .resources
                .into_iter()
                .map(|it| (it.name, it.version)),
        );
    }
    until("the other replica has it, too", async || {
        let path = format!(
            "/apis/networking.istio.io/v1/namespaces/{}/virtualservices/a",
            cluster.name
        );
        other.client(&token).await.get(&path).await.code == 200
    })
    .await;
    let response = open(&other, versions).await.answer(None).await;
    let sent: Vec<&str> = response.resources.iter().map(|it| &*it.name).collect();
    assert!(!sent.contains(&&*name), "{sent:?}");
    assert!(!response.removed_resources.contains(&name));
    assert_ne!(response.system_version_info, before);
    one.end().await;
    other.end().await;
    cluster.end().await;
}
