//! Status of Gateways and routes in the server's own store.

use std::time::{Duration, Instant};

use config_server::conditions::GatewayController;
use serde_json::{Value, json};

use crate::conditions::{condition, wait};
use crate::support::{Client, TestServer};

const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/edge/gateways";
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/edge/httproutes";

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    })
}

fn gateway(name: &str) -> Value {
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
    object(
        "Gateway",
        name,
        &json!({"gatewayClassName": "strait", "listeners": [listener]}),
    )
}

fn route(name: &str, service: &str) -> Value {
    let spec = json!({
        "parentRefs": [{"name": "main"}],
        "hostnames": [format!("{name}.example")],
        "rules": [{"backendRefs": [{"name": service, "port": 80}]}],
    });
    object("HTTPRoute", name, &spec)
}

async fn server() -> TestServer {
    TestServer::start_with(|settings| {
        settings.controller = GatewayController {
            pool: vec!["192.0.2.0/24".parse().unwrap()],
            ..settings.controller.clone()
        };
    })
    .await
}

fn attached(gateway: &Value) -> i64 {
    gateway["status"]["listeners"][0]["attachedRoutes"]
        .as_i64()
        .unwrap_or(-1)
}

fn of_route<'a>(route: &'a Value, name: &str) -> &'a Value {
    let conditions = route["status"]["parents"][0]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions
        .find(|one| one["type"] == name)
        .unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_get_addresses_and_routes_their_parents() {
    let server = server().await;
    let mut client = server.admin().await;
    client.post(GATEWAYS, &gateway("main")).await;
    client.post(GATEWAYS, &gateway("other")).await;
    let path = format!("{GATEWAYS}/main");
    let first = wait(&server, &path, |one| {
        one["status"]["addresses"][0].is_object()
    })
    .await;
    let other = format!("{GATEWAYS}/other");
    let other = wait(&server, &other, |one| {
        one["status"]["addresses"][0].is_object()
    })
    .await;
    assert_ne!(first["status"]["addresses"], other["status"]["addresses"]);
    client.post(ROUTES, &route("shop", "shop")).await;
    let counted = wait(&server, &path, |one| attached(one) == 1).await;
    assert_eq!(counted["status"]["addresses"], first["status"]["addresses"]);
    let shop = format!("{ROUTES}/shop");
    let unresolved = |one: &Value| of_route(one, "ResolvedRefs")["reason"] == "BackendNotFound";
    let told = wait(&server, &shop, unresolved).await;
    assert_eq!(of_route(&told, "Accepted")["status"], "True");
    assert_eq!(told["status"]["parents"][0]["parentRef"]["name"], "main");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]},
    });
    client
        .post("/api/v1/namespaces/edge/services", &service)
        .await;
    wait(&server, &shop, |one| {
        of_route(one, "ResolvedRefs")["status"] == "True"
    })
    .await;
    client.delete(&shop).await;
    wait(&server, &path, |one| attached(one) == 0).await;
}

/// The first address of the pool is free then, and stays so for others.
#[tokio::test(flavor = "multi_thread")]
async fn restart_keeps_addresses() {
    let server = server().await;
    let mut client = server.admin().await;
    let mut written = Vec::new();
    for name in ["first", "main"] {
        client.post(GATEWAYS, &gateway(name)).await;
        let path = format!("{GATEWAYS}/{name}");
        let has_address = |one: &Value| one["status"]["addresses"][0].is_object();
        written.push(wait(&server, &path, has_address).await);
    }
    client.delete(&format!("{GATEWAYS}/first")).await;
    drop(client);
    let server = server.restart().await;
    let mut client = server.admin().await;
    client.post(ROUTES, &route("shop", "shop")).await;
    let path = format!("{GATEWAYS}/main");
    let counted = wait(&server, &path, |one| attached(one) == 1).await;
    assert_eq!(
        counted["status"]["addresses"],
        written[1]["status"]["addresses"]
    );
    client.post(GATEWAYS, &gateway("third")).await;
    let third = wait(&server, &format!("{GATEWAYS}/third"), |one| {
        one["status"]["addresses"][0].is_object()
    })
    .await;
    assert_eq!(
        third["status"]["addresses"],
        written[0]["status"]["addresses"]
    );
}

async fn revision(client: &mut Client) -> u64 {
    let list = client.get(ROUTES).await.body;
    list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

/// A thousand routes settle within 5 s in a release build on an idle machine; the bound here only ends the test.
#[tokio::test(flavor = "multi_thread")]
async fn thousand_routes_settle_and_are_left_alone() {
    let server = server().await;
    let mut client = server.admin().await;
    client.post(GATEWAYS, &gateway("main")).await;
    let started = Instant::now();
    for number in 0..1000 {
        client
            .post(ROUTES, &route(&format!("r{number}"), "shop"))
            .await;
    }
    let path = format!("{GATEWAYS}/main");
    wait(&server, &path, |one| attached(one) == 1000).await;
    let is_told = |route: &Value| of_route(route, "Accepted")["observedGeneration"] == 1;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let list = client.get(ROUTES).await.body;
        if list["items"].as_array().unwrap().iter().all(is_told) {
            break;
        }
        assert!(Instant::now() < deadline, "routes without a status");
    }
    println!("settled after {:?}", started.elapsed());
    // Whatever else were to be written would come before the condition of this object.
    let before = revision(&mut client).await;
    let virtual_service = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": "last"},
        "spec": {"hosts": ["last.example"], "http": [{"directResponse": {"status": 200}}]},
    });
    let services = "/apis/networking.istio.io/v1/namespaces/edge/virtualservices";
    client.post(services, &virtual_service).await;
    let is_accepted = |one: &Value| condition(one, "Accepted")["status"] == "True";
    wait(&server, &format!("{services}/last"), is_accepted).await;
    let after = revision(&mut client).await;
    assert_eq!(after, before + 2, "the object, and its condition");
}
