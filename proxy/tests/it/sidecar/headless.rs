//! Headless services: clients select a pod, by its address or by its name.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use hyper::Response;
use serde_json::Value;

use super::{Sidecar, get, policy, read_line};
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Start, free_address};
use crate::support::raw::Raw;

const NAMES: [&str; 2] = ["web-0", "web-1"];

/// Returns sockets of two pods with the same port.
fn pods() -> [TcpListener; 2] {
    let bind = |port| TcpListener::bind((free_address().ip(), port)).unwrap();
    let first = bind(0);
    let port = first.local_addr().unwrap().port();
    [first, bind(port)]
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().unwrap()
}

/// Starts upstream servers that answer with the name of their pod.
fn http_pods() -> ([SocketAddr; 2], [Origin; 2]) {
    let listeners = pods();
    let addresses = [address(&listeners[0]), address(&listeners[1])];
    let mut named = NAMES.into_iter();
    let origins = listeners.map(|listener| {
        let name = named.next().unwrap();
        let answer = move |_| async move { Response::new(full(name)) };
        Origin::start_on(listener, Back::H1, answer)
    });
    (addresses, origins)
}

/// Starts pods that greet their clients with their names, and returns their addresses.
fn tcp_pods() -> [SocketAddr; 2] {
    let mut named = NAMES.into_iter();
    pods().map(|listener| {
        let (name, address) = (named.next().unwrap(), address(&listener));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let _ = client.and_then(|mut client| writeln!(client, "{name}"));
            }
        });
        address
    })
}

/// Returns the headless Service `web` in the namespace `default`; its pods are `web-0`, `web-1` and so on.
fn headless(port_name: &str, pods: &[SocketAddr]) -> String {
    let port = pods[0].port();
    let endpoints = pods.iter().enumerate();
    let endpoints = endpoints
        .map(|(number, pod)| format!("{{addresses: [{}], hostname: web-{number}}}", pod.ip()));
    let endpoints: Vec<String> = endpoints.collect();
    documents([
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: default}}\nspec:\n  clusterIP: None\n  \
             selector: {{app: pods}}\n  ports: [{{name: {port_name}, port: {port}}}]\n"
        ),
        format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: web-1, namespace: default, labels: \
             {{kubernetes.io/service-name: web}}}}\naddressType: IPv4\nports: [{{name: {port_name}, port: {port}}}]\n\
             endpoints: [{}]\n",
            endpoints.join(", ")
        ),
    ])
}

/// Returns a VirtualService that marks responses to all requests for the service.
fn marking() -> String {
    "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: r, namespace: default}\nspec:\n  hosts: [web]\n  \
     http:\n  - route: [{destination: {host: web}, headers: {response: {set: {x-rule: 'yes'}}}}]\n"
        .to_owned()
}

/// Number of connections that a random choice of two pods would not all route to the right one.
const CONNECTIONS: usize = 12;

#[test]
fn tcp_connection_to_the_address_of_a_pod_reaches_that_pod() {
    for port_name in ["tcp", "other"] {
        let pods = tcp_pods();
        let quick = ["--protocol-detection-timeout", "50ms"];
        let sidecar = Sidecar::start(&quick, [headless(port_name, &pods)]);
        for (number, pod) in (0..CONNECTIONS).flat_map(|_| pods.iter().enumerate()) {
            let mut stream = sidecar.leaves(&pod.to_string()).stream();
            assert_eq!(
                read_line(&mut stream).trim_end(),
                NAMES[number],
                "{port_name}"
            );
        }
    }
}

#[test]
fn request_to_the_address_or_the_name_of_a_pod_reaches_that_pod() {
    let (pods, _origins) = http_pods();
    let resources = [headless("http", &pods), marking(), policy("REGISTRY_ONLY")];
    let sidecar = Sidecar::start(&[], resources);
    for (number, pod) in (0..CONNECTIONS).flat_map(|_| pods.iter().enumerate()) {
        let name = NAMES[number];
        for host in [
            "web".to_owned(),
            "web.default.svc.cluster.local".to_owned(),
            format!("{name}.web"),
            format!("{name}.web.default:{}", pod.port()),
            format!("{name}.web.default.svc"),
            format!("{name}.web.default.svc.cluster.local"),
            format!("{}.web", pod.ip().to_string().replace('.', "-")),
        ] {
            let reply = get(&mut sidecar.leaves(&pod.to_string()), &host);
            assert_eq!(
                (reply.status, &*reply.body),
                (200, name.as_bytes()),
                "{host}"
            );
            assert!(reply.has("x-rule: yes"), "{host}");
        }
    }
}

/// Istio has virtual hosts for the names of a headless service and of its pods, and none for their addresses. On a port
/// that declares no protocol, it would serve any host by the rules of the service: a documented difference.
#[test]
fn address_of_a_pod_as_host_is_an_unknown_destination() {
    for (port_name, mode, expected) in [
        ("http", "REGISTRY_ONLY", 502),
        ("http", "ALLOW_ANY", 200),
        ("other", "REGISTRY_ONLY", 502),
    ] {
        let (pods, _origins) = http_pods();
        let resources = [headless(port_name, &pods), marking(), policy(mode)];
        let sidecar = Sidecar::start(&[], resources);
        for (pod, name) in pods.iter().zip(NAMES) {
            for host in [pod.to_string(), pod.ip().to_string()] {
                let reply = get(&mut sidecar.leaves(&pod.to_string()), &host);
                let case = format!("{port_name} {mode} {host}");
                assert_eq!(reply.status, expected, "{case}");
                assert_eq!(reply.body == name.as_bytes(), expected == 200, "{case}");
                assert!(!reply.has("x-rule: yes"), "{case}");
            }
        }
    }
}

#[test]
fn name_of_a_pod_counts_where_the_dialed_address_is_none_of_a_pod() {
    let (pods, _origins) = http_pods();
    let sidecar = Sidecar::start(&[], [headless("http", &pods)]);
    let elsewhere = format!("192.0.2.9:{}", pods[0].port());
    for name in (0..CONNECTIONS).flat_map(|_| NAMES) {
        let reply = get(&mut sidecar.leaves(&elsewhere), &format!("{name}.web"));
        assert_eq!((reply.status, &*reply.body), (200, name.as_bytes()));
    }
    let missing = get(&mut sidecar.leaves(&elsewhere), "web-7.web");
    assert_eq!(missing.status, 503);
}

#[test]
fn no_other_pod_gets_what_is_for_a_pod_that_takes_no_connections() {
    let (pods, origins) = http_pods();
    let dead = SocketAddr::new(free_address().ip(), pods[0].port());
    let all = [pods[0], pods[1], dead];
    let sidecar = Sidecar::start(&[], [headless("http", &all)]);
    for host in ["web", "web-2.web"] {
        let reply = get(&mut sidecar.leaves(&dead.to_string()), host);
        assert_eq!(reply.status, 503, "{host}");
    }
    assert!(origins.iter().all(|origin| origin.seen().is_empty()));
    let tcp = Sidecar::start(&[], [headless("tcp", &all)]);
    assert!(tcp.leaves(&dead.to_string()).is_closed());
}

#[test]
fn http_proxy_finds_pods_by_name() {
    let (pods, _origins) = http_pods();
    let greeters = tcp_pods();
    for (port_name, pods) in [("http", pods), ("tcp", greeters)] {
        let (at, port) = (free_address(), pods[0].port());
        let _proxy = Start::new()
            .args(["--mode", "sidecar"])
            .args(["--outbound-listener", "off", "--inbound-listener", "off"])
            .args(["--http-proxy-listener", &at.to_string()])
            .file(
                "mesh.yaml",
                documents([headless(port_name, &pods), policy("REGISTRY_ONLY")]),
            )
            .start();
        let turns = (0..CONNECTIONS).flat_map(|_| NAMES.into_iter().zip(pods));
        for (name, pod) in turns {
            let mut connection = Raw::connect(at);
            if port_name == "http" {
                let host = format!("{name}.web.default:{port}");
                let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
                assert_eq!(connection.send(request).reply().body, name.as_bytes());
                continue;
            }
            for host in [format!("{name}.web:{port}"), pod.to_string()] {
                let mut connection = Raw::connect(at);
                let request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n");
                assert_eq!(connection.send(request).reply().status, 200, "{host}");
                assert_eq!(connection.read(5), name.as_bytes(), "{host}");
            }
        }
    }
}

/// Returns text and JSON of `strait explain` at a sidecar, for pods at 10.0.0.1 and 10.0.0.2.
fn explained(port_name: &str, method: &str, url: &str, more: &[&str]) -> (String, Value) {
    let directory = tempfile::tempdir().unwrap();
    let pods = ["10.0.0.1:80", "10.0.0.2:80"].map(|pod| pod.parse().unwrap());
    std::fs::write(
        directory.path().join("mesh.yaml"),
        headless(port_name, &pods),
    )
    .unwrap();
    let explain = |output: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.args(["explain", "--mode", "sidecar", "-o", output, "--config"]);
        command.arg(directory.path()).args(more).args([method, url]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let json = serde_json::from_str(&explain("json")).unwrap();
    (explain("text"), json)
}

#[test]
fn explain_shows_the_pod_that_the_client_has_chosen() {
    let http_proxy = [
        "--http-proxy-listener",
        "127.0.0.1:15007",
        "--listener",
        "15007",
    ];
    let of_web = ["-H", "Host: web.default"];
    for (port_name, method, url, more, wanted) in [
        ("http", "GET", "http://web.default/", &[][..], [0.5, 0.5]),
        ("http", "GET", "http://web-1.web.default/", &[], [0.0, 1.0]),
        ("http", "GET", "http://10.0.0.1/", &of_web, [1.0, 0.0]),
        ("http", "GET", "http://10-0-0-2.web/", &[], [0.0, 1.0]),
        ("http", "GET", "http://web-7.web/", &[], [0.0, 0.0]),
        ("tcp", "CONNECT", "tcp://10.0.0.2:80", &[], [0.0, 1.0]),
        (
            "tcp",
            "CONNECT",
            "tcp://web-0.web:80",
            &http_proxy,
            [1.0, 0.0],
        ),
    ] {
        let (text, json) = explained(port_name, method, url, more);
        let cluster = &json["destinations"][0]["cluster"];
        let endpoints = cluster["endpoints"].as_array();
        let endpoints = endpoints.unwrap_or_else(|| panic!("{url}\n{text}"));
        let shares: Vec<f64> = endpoints
            .iter()
            .map(|endpoint| endpoint["probability"].as_f64().unwrap())
            .collect();
        assert_eq!(shares, wanted, "{url}\n{text}");
        let chosen = match wanted {
            [0.5, 0.5] => None,
            [0.0, 0.0] => Some("no pod of the name"),
            [1.0, _] => Some("web-0, at 10.0.0.1:80"),
            _ => Some("web-1, at 10.0.0.2:80"),
        };
        match chosen {
            Some(chosen) => assert!(text.contains(chosen), "{url}\n{text}"),
            None => assert!(!text.contains("has chosen"), "{url}\n{text}"),
        }
        let is_missing = wanted == [0.0, 0.0];
        assert_eq!(text.contains("requests get 503 UH"), is_missing, "{text}");
    }
}
