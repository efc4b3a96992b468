//! TCPRoute: the oldest route of a listener serves, by weight; connections without a destination are closed.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Command;

use super::{Edge, object, service};
use crate::support::DEADLINE;
use crate::support::origin::RawOrigin;
use crate::support::proxy::free_address;

/// Starts a server that says its name first, and echoes what it is told.
pub(super) fn speaking(name: &'static str) -> RawOrigin {
    RawOrigin::start(move |_, mut stream| {
        let mut said = Vec::new();
        let _ = stream.write_all(name.as_bytes());
        let _ = stream.read_to_end(&mut said);
        let _ = stream.write_all(&said);
    })
}

const TCP: &str = "{name: tcp, protocol: TCP, port: PORT}";

/// Services `t1`, `t2` and `t3`, whose servers say `one`, `two` and `three`.
fn start(listeners: &str, routes: &[String]) -> Edge {
    let services = ["one", "two", "three"].into_iter().zip(1..);
    let services =
        services.map(|(name, number)| service(&format!("edge/t{number}"), speaking(name).address));
    Edge::start_with(listeners, routes, &services.collect::<Vec<_>>())
}

/// Returns a route to the Gateway, created at that second.
fn tcp_route(name: &str, second: u32, parent: &str, backends: &str) -> String {
    let spec =
        format!("parentRefs: [{{name: main{parent}}}], rules: [{{backendRefs: [{backends}]}}]");
    let created = format!("creationTimestamp: '2026-01-01T00:00:{second:02}Z', name: {name},");
    let object = object("TCPRoute", &format!("edge/{name}"), &spec);
    object.replace(&format!("name: {name},"), &created)
}

fn to(names: &[&str]) -> String {
    let each = names
        .iter()
        .map(|name| format!("{{name: {name}, port: 80}}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns what the server says before the client does, followed by the echo of `!`; empty if the connection is closed.
fn greeted(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut first = [0; 1];
    match stream.read(&mut first) {
        Ok(0) => return String::new(),
        Err(error) => {
            assert_ne!(
                error.kind(),
                ErrorKind::WouldBlock,
                "closed, not left waiting"
            );
            return String::new();
        }
        Ok(_) => {}
    }
    stream.write_all(b"!").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut said = String::from_utf8(first.to_vec()).unwrap();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn oldest_route_of_a_listener_serves_and_servers_may_speak_first() {
    let older = tcp_route("zz-older", 1, "", &to(&["t1"]));
    let younger = tcp_route("aa-younger", 2, "", &to(&["t2"]));
    let edge = start(TCP, &[younger.clone(), older]);
    for _ in 0..20 {
        assert_eq!(greeted(edge.proxy.edge), "one!");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["check", "--config"])
        .arg(edge.proxy.mesh())
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(found.contains("GA042"), "{found}");
    edge.set(&[younger]);
    assert_eq!(greeted(edge.proxy.edge), "two!");
    edge.set(&[]);
    assert_eq!(greeted(edge.proxy.edge), "", "no route is left");
}

#[test]
fn connections_are_shared_by_weight_and_invalid_shares_are_closed() {
    let shares = "{name: t1, port: 80, weight: 70}, {name: t2, port: 80, weight: 30}, {name: t3, port: 80, weight: 0}";
    let edge = start(TCP, &[tcp_route("r", 1, "", shares)]);
    let count = |text: &str, all: &[String]| all.iter().filter(|one| *one == text).count();
    let all: Vec<String> = (0..100).map(|_| greeted(edge.proxy.edge)).collect();
    assert_eq!(count("one!", &all) + count("two!", &all), 100, "{all:?}");
    assert!((50..90).contains(&count("one!", &all)), "{all:?}");
    let half = "{name: t1, port: 80}, {name: none, port: 80}";
    edge.set(&[tcp_route("r", 1, "", half)]);
    let all: Vec<String> = (0..60).map(|_| greeted(edge.proxy.edge)).collect();
    assert_eq!(count("one!", &all) + count("", &all), 60, "{all:?}");
    assert!((10..50).contains(&count("one!", &all)), "{all:?}");
}

#[test]
fn routes_attach_to_listeners_by_section_and_port() {
    let others = [free_address().port(), free_address().port()];
    let listener =
        |name: &str, port: &str| format!("{{name: {name}, protocol: TCP, port: {port}}}");
    let listeners = [
        listener("l1", "PORT"),
        listener("l2", &others[0].to_string()),
        listener("l3", &others[1].to_string()),
    ];
    let edge = start(
        &listeners.join(", "),
        &[tcp_route("all", 1, "", &to(&["t1"]))],
    );
    let (ip, first) = (edge.proxy.edge.ip(), edge.proxy.edge.port());
    let answers = || [first, others[0], others[1]].map(|port| greeted(SocketAddr::new(ip, port)));
    assert_eq!(answers(), ["one!", "one!", "one!"]);
    edge.set(&[
        tcp_route("port", 1, &format!(", port: {first}"), &to(&["t1"])),
        tcp_route("section", 1, ", sectionName: l2", &to(&["t2"])),
        tcp_route(
            "both",
            1,
            &format!(", sectionName: l3, port: {}", others[1]),
            &to(&["t3"]),
        ),
        tcp_route(
            "neither",
            1,
            &format!(", sectionName: l3, port: {first}"),
            &to(&["t1"]),
        ),
    ]);
    assert_eq!(answers(), ["one!", "two!", "three!"]);
}

#[test]
fn connections_without_a_valid_backend_are_closed() {
    let far = service("other/far", speaking("far").address);
    let empty = "apiVersion: v1\nkind: Service\nmetadata: {name: empty, namespace: edge}\nspec: {ports: [{name: tcp, port: 80}]}\n";
    let edge = start(TCP, &[]);
    for backends in [
        "{name: none, port: 80}",
        "{name: t1, port: 81}",
        "{name: t1, kind: Pod, port: 80}",
        "{name: t1, port: 80, weight: 0}",
        "{name: far, namespace: other, port: 80}",
        "{name: empty, port: 80}",
    ] {
        let route = tcp_route("r", 1, "", backends);
        edge.set(&[route, far.clone(), empty.to_owned()]);
        assert_eq!(greeted(edge.proxy.edge), "", "{backends}");
    }
    let grant = "from: [{group: gateway.networking.k8s.io, kind: TCPRoute, namespace: edge}], to: [{group: '', kind: Service}]";
    let route = tcp_route("r", 1, "", "{name: far, namespace: other, port: 80}");
    edge.set(&[route, far, object("ReferenceGrant", "other/g", grant)]);
    assert_eq!(greeted(edge.proxy.edge), "far!");
}

#[test]
fn explain_names_the_listener_the_route_and_the_backend() {
    let edge = start(TCP, &[tcp_route("db", 1, "", &to(&["t1"]))]);
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["explain", "--config"])
        .arg(edge.proxy.mesh())
        .args(["GET", &format!("http://{}/", edge.proxy.edge)])
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    for part in [
        "TCPRoute/edge/db",
        "outbound|80||t1.edge.svc",
        "Gateway/edge/main",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}
