//! The same objects from files, an API server, and the config server by its two protocols: the same snapshot, except that
//! an API server has no class built in.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::config_server::{Control, apply, by_kubernetes, by_xds, has_kubectl};
use crate::support::api_server::ApiServer;
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::until;

const VERSION: &str = "gateway.networking.k8s.io/v1";

/// Returns an object of the Gateway API, with the name of its resource at the API server.
fn object(plural: &'static str, kind: &str, id: &str, spec: Value) -> (&'static str, Value) {
    let (namespace, name) = id.split_once('/').unwrap();
    let metadata = json!({"name": name, "namespace": namespace});
    let object = json!({"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": spec});
    (plural, object)
}

fn service(id: &str, at: SocketAddr) -> [(&'static str, Value); 2] {
    let (namespace, name) = id.split_once('/').unwrap();
    let metadata = json!({"name": name, "namespace": namespace});
    let labels = json!({"kubernetes.io/service-name": name});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"ports": [{"name": "http", "port": 80}]},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{name}-1"), "namespace": namespace, "labels": labels},
        "addressType": "IPv4", "ports": [{"name": "http", "port": at.port()}],
        "endpoints": [{"addresses": [at.ip()]}],
    });
    [("services", service), ("endpointslices", slice)]
}

fn objects(edge: SocketAddr, origins: &[Origin; 2]) -> Vec<(&'static str, Value)> {
    let listener = |name: &str, host: &str| json!({"name": name, "protocol": "HTTP", "port": edge.port(), "hostname": host});
    let parent = json!({"name": "main"});
    let backend = |name: &str, namespace: &str, weight: u32| json!({"name": name, "namespace": namespace, "port": 80, "weight": weight});
    let edits = json!({"set": [{"name": "x-a", "value": "100%"}], "remove": ["x-b"]});
    let prefix = |path: &str| json!({"path": {"type": "PathPrefix", "value": path}});
    let rewrite = json!({"path": {"type": "ReplaceFullPath", "replaceFullPath": "/new"}});
    let mut all = vec![
        object(
            "kubernetesgateways",
            "Gateway",
            "edge/main",
            json!({
                "gatewayClassName": "strait", "addresses": [{"value": edge.ip()}],
                "allowedListeners": {"namespaces": {"from": "Same"}},
                "listeners": [listener("http", "*.shop.test")],
            }),
        ),
        object(
            "listenersets",
            "ListenerSet",
            "edge/more",
            json!({"parentRef": parent, "listeners": [listener("more", "more.test")]}),
        ),
        object(
            "httproutes",
            "HTTPRoute",
            "edge/cart",
            json!({
                "parentRefs": [parent], "hostnames": ["www.shop.test", "other.test"],
                "rules": [
                    {
                        "matches": [prefix("/cart"), {"headers": [{"name": "v", "value": "2"}]}],
                        "filters": [
                            {"type": "RequestHeaderModifier", "requestHeaderModifier": edits},
                            {"type": "URLRewrite", "urlRewrite": rewrite},
                        ],
                        "backendRefs": [backend("a", "edge", 1)],
                    },
                    {
                        "matches": [prefix("/far")],
                        "timeouts": {"request": "10s"},
                        "backendRefs": [backend("b", "other", 3), backend("b", "other", 1)],
                    },
                    {"matches": [prefix("/gone")], "backendRefs": [backend("none", "edge", 1)]},
                    {"backendRefs": [backend("b", "shut", 1)]},
                ],
            }),
        ),
        object(
            "httproutes",
            "HTTPRoute",
            "edge/more",
            json!({
                "parentRefs": [{"kind": "ListenerSet", "name": "more"}],
                "rules": [{"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]}],
            }),
        ),
        object(
            "grpcroutes",
            "GRPCRoute",
            "edge/calls",
            json!({
                "parentRefs": [parent],
                "rules": [{"matches": [{"method": {"service": "a.B"}}], "backendRefs": [backend("a", "edge", 1)]}],
            }),
        ),
        object(
            "referencegrants",
            "ReferenceGrant",
            "other/from-edge",
            json!({
                "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "edge"}],
                "to": [{"group": "", "kind": "Service", "name": "b"}],
            }),
        ),
    ];
    all.extend(service("edge/a", origins[0].address));
    all.extend(service("other/b", origins[1].address));
    all.extend(service("shut/b", origins[1].address));
    all
}

/// Returns the answer for a host and path: the name of a service, or a status.
fn answer(proxy: &Proxy, host: &str, target: &str) -> String {
    let Ok(stream) = std::net::TcpStream::connect(proxy.edge) else {
        return "closed".to_owned();
    };
    drop(stream);
    let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let reply = Raw::connect(proxy.edge).send(text).reply();
    match reply.status {
        200 => String::from_utf8(reply.body).unwrap(),
        status => status.to_string(),
    }
}

/// Leaves out where objects are from, when they changed, and how many requests were sent.
fn bare(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("rebuilt_because");
            for live in ["active", "rq_active", "rq_total"] {
                fields.remove(live);
            }
            fields.values_mut().for_each(bare);
        }
        Value::Array(items) => items.iter_mut().for_each(bare),
        Value::String(text) => {
            if let Some((object, _)) = text.split_once(" (") {
                *text = object.to_owned();
            }
        }
        _ => {}
    }
}

/// Returns what traffic sees, and the listeners and clusters of the snapshot.
fn observed(proxy: &Proxy) -> (Vec<String>, Value) {
    let asked = [
        ("www.shop.test", "/cart/1"),
        ("www.shop.test", "/far"),
        ("www.shop.test", "/gone"),
        ("www.shop.test", "/"),
        ("x.shop.test", "/cart"),
        ("more.test", "/"),
        ("other.test", "/cart"),
    ];
    let answers = asked.map(|(host, target)| answer(proxy, host, target));
    let dump: Value = serde_json::from_str(&proxy.page("/config_dump")).unwrap();
    let mut parts = json!({"listeners": dump["listeners"], "clusters": dump["clusters"]});
    bare(&mut parts);
    (answers.into(), parts)
}

/// Starts the next proxy at the addresses of the one before, which ends.
async fn next(before: Proxy, kubeconfig: &str, arguments: &[String]) -> Proxy {
    let start = Start::new().instead_of(&before);
    drop(before);
    start.file("kubeconfig", kubeconfig).args(arguments).spawn()
}

async fn until_served(proxy: &Proxy) {
    until("it is served", async || {
        answer(proxy, "www.shop.test", "/cart") == "a"
            && answer(proxy, "www.shop.test", "/far") == "b"
            && answer(proxy, "more.test", "/") == "302"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_source_gives_the_same_snapshot() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    let origins = ["a", "b"].map(|name| Origin::named(Back::H1, name));
    let start = Start::new();
    let all = objects(start.edge(), &origins);
    let texts: Vec<String> = all.iter().map(|(_, object)| object.to_string()).collect();
    let proxy = start.file("mesh.yaml", documents(&texts)).start();
    let expected = observed(&proxy);
    assert_eq!(
        expected.0,
        ["a", "b", "500", "500", "404", "302", "404"],
        "files"
    );

    let api = ApiServer::start().await;
    api.serve("gatewayclasses", "GatewayClass", VERSION);
    for (plural, object) in &all {
        let (kind, version) = (&object["kind"], &object["apiVersion"]);
        api.serve(plural, kind.as_str().unwrap(), version.as_str().unwrap());
        api.apply(plural, object.clone());
    }
    let kubeconfig = ApiServer::kubeconfig(&[("home", &api)], "first");
    let arguments = [
        "--control",
        "kubernetes://",
        "--kubeconfig",
        "mesh/kubeconfig",
    ];
    let proxy = next(proxy, &kubeconfig, &arguments.map(str::to_owned)).await;
    until("it has read all", async || {
        proxy.stderr().contains("configuration applied")
    })
    .await;
    assert_eq!(answer(&proxy, "www.shop.test", "/cart"), "closed");
    let class = json!({
        "metadata": {"name": "strait"}, "spec": {"controllerName": "strait.io/gateway-controller"},
    });
    api.apply("gatewayclasses", class);
    until_served(&proxy).await;
    assert_eq!(observed(&proxy), expected, "API server");
    api.delete("gatewayclasses", "", "strait");
    until("it is closed", async || {
        std::net::TcpStream::connect(proxy.edge).is_err()
    })
    .await;

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let control = Control::start(&data, &free_address().to_string());
    apply(&data, &documents(&texts));
    let mut proxy = proxy;
    for way in [by_kubernetes, by_xds] {
        let arguments = way(&control, &data);
        proxy = next(proxy, "", &arguments).await;
        until_served(&proxy).await;
        assert_eq!(observed(&proxy), expected, "{arguments:?}");
    }
}
