//! Status of Ingresses of another API server, for which a config server is used.

use config_loader::ingress::IngressSettings;
use config_server::conditions::GatewayController;
use serde_json::{Value, json};

use crate::conditions::wait;
use crate::status_for::Instance;
use crate::support::{Client, TestServer};

const CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses";
const SERVICES: &str = "/api/v1/namespaces/edge/services";
const MERGE: &str = "merge-patch+json";

fn ingress(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name},
        "spec": {"ingressClassName": class, "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    })
}

fn class(name: &str, controller: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": name},
        "spec": {"controller": controller},
    })
}

fn status(addresses: &Value) -> Value {
    json!({"status": {"loadBalancer": {"ingress": addresses}}})
}

async fn set_status(client: &mut Client, path: &str, addresses: &Value) {
    let path = format!("{path}/status");
    let answer = client.patch(&path, MERGE, &status(addresses)).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
}

/// Returns the addresses in the status of an Ingress once they are these.
async fn has(server: &TestServer, name: &str, addresses: Value) -> Value {
    let path = format!("{INGRESSES}/{name}");
    let of = |one: &Value| one["status"]["loadBalancer"]["ingress"].clone();
    wait(server, &path, |one| of(one) == addresses).await
}

/// Server with the classes `strait` and `nginx` and the Service of a gateway, which has the addresses `b.example` and
/// 192.0.2.1.
async fn server() -> TestServer {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    for (path, object) in [
        (CLASSES, class("strait", IngressSettings::CONTROLLER)),
        (CLASSES, class("nginx", IngressSettings::NGINX_CONTROLLER)),
        (SERVICES, service),
    ] {
        let answer = client.post(path, &object).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
    }
    let addresses = json!([{"hostname": "b.example"}, {"ip": "192.0.2.1"}]);
    set_status(&mut client, &format!("{SERVICES}/edge"), &addresses).await;
    server
}

fn writer(server: &TestServer, ingress: Option<IngressSettings>) -> Instance {
    let controller = GatewayController {
        service: Some(config_loader::Name::new("edge", "edge")),
        ingress,
        ..GatewayController::default()
    };
    Instance::start_with(server, "writer", controller)
}

#[tokio::test(flavor = "multi_thread")]
async fn ingress_has_the_addresses_of_the_gateway_as_long_as_its_class_is_served() {
    let server = server().await;
    let mut client = server.admin().await;
    let other = json!([{"ip": "203.0.113.9"}]);
    for (name, class) in [("ours", "strait"), ("theirs", "nginx")] {
        client.post(INGRESSES, &ingress(name, class)).await;
    }
    set_status(&mut client, &format!("{INGRESSES}/theirs"), &other).await;
    let writer = writer(&server, Some(IngressSettings::default()));
    let both = json!([{"ip": "192.0.2.1"}, {"hostname": "b.example"}]);
    let written = has(&server, "ours", both.clone()).await;
    // the addresses of the Service in another order, and another field of the Ingress: nothing is written
    let turned = json!([{"ip": "192.0.2.1"}, {"hostname": "b.example"}]);
    set_status(&mut client, &format!("{SERVICES}/edge"), &turned).await;
    client.post(INGRESSES, &ingress("later", "strait")).await;
    has(&server, "later", both).await;
    let ours = client.get(&format!("{INGRESSES}/ours")).await.body;
    assert_eq!(
        ours["metadata"]["resourceVersion"],
        written["metadata"]["resourceVersion"]
    );

    let moved = json!([{"ip": "192.0.2.7"}]);
    set_status(&mut client, &format!("{SERVICES}/edge"), &moved).await;
    has(&server, "ours", moved.clone()).await;
    has(&server, "later", moved).await;
    let change = json!({"spec": {"ingressClassName": "nginx"}});
    let path = format!("{INGRESSES}/ours");
    client.patch(&path, MERGE, &change).await;
    let removed = has(&server, "ours", Value::Null).await;
    assert_eq!(removed["spec"]["ingressClassName"], "nginx");
    // its class is of another controller
    client.delete(&format!("{CLASSES}/strait")).await;
    let strange = class("strait", "example.com/other");
    client.post(CLASSES, &strange).await;
    has(&server, "later", Value::Null).await;
    let theirs = client.get(&format!("{INGRESSES}/theirs")).await.body;
    assert_eq!(theirs["status"]["loadBalancer"]["ingress"], other);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ingress_keeps_its_status_while_another_controller_writes_it() {
    let server = server().await;
    let mut client = server.admin().await;
    let other = json!([{"ip": "203.0.113.9"}]);
    client.post(INGRESSES, &ingress("one", "nginx")).await;
    set_status(&mut client, &format!("{INGRESSES}/one"), &other).await;
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "main"},
        "spec": {"gatewayClassName": "strait", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    });
    let gateways = "/apis/gateway.networking.k8s.io/v1/namespaces/edge/gateways";
    client.post(gateways, &gateway).await;
    let off = writer(&server, None);
    wait(&server, &format!("{gateways}/main"), |one| {
        one["status"]["addresses"][0].is_object()
    })
    .await;
    has(&server, "one", other).await;
    off.stop().await;
    let taking_over = IngressSettings {
        controllers: vec![IngressSettings::NGINX_CONTROLLER.to_owned()],
        ..IngressSettings::default()
    };
    let on = writer(&server, Some(taking_over));
    let both = json!([{"ip": "192.0.2.1"}, {"hostname": "b.example"}]);
    has(&server, "one", both).await;
    on.stop().await;
}
