//! ServiceEntry addresses that belong to no cluster or federated host, and precedence of services that define the same
//! host.

use std::net::{IpAddr, TcpListener};

use super::*;

/// Returns a port that is free on all addresses.
fn free_port() -> u16 {
    let socket = TcpListener::bind("0.0.0.0:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// Returns a gateway on every address.
fn gateway_everywhere(port: u16, protocol: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: edge}}\nspec:\n  selector: {{istio: ingressgateway}}\n  \
         servers:\n  - {{port: {{number: {port}, name: p, protocol: {protocol}}}, bind: 0.0.0.0, hosts: ['*']}}\n"
    )
}

/// Returns a ServiceEntry with one endpoint and additional fields in its spec.
fn entry((name, host): (&str, &str), more: &str, at: SocketAddr) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{{name}}}\nspec: {{hosts: [{host}], {more}, resolution: STATIC, \
         ports: [{{number: 80, name: http, protocol: HTTP, targetPort: {}}}], endpoints: [{{address: {}}}]}}\n",
        at.port(),
        at.ip()
    )
}

/// Returns a Destination of an external host with one endpoint and additional fields in its `externalService`.
fn external(name: &str, more: &str, at: SocketAddr) -> String {
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, {name}}}\n\
         spec: {{externalService: {{{more}, ports: [{{number: 80, name: http, protocol: HTTP}}], \
         endpoints: [{{address: {}, ports: {{http: {}}}}}]}}}}\n",
        at.ip(),
        at.port()
    )
}

fn to(host: &str) -> String {
    format!("- {{route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]}}")
}

/// Returns the site that answers a request for `host` on a connection to an address.
fn asked(address: &str, port: u16, host: &str) -> String {
    let address = address.parse::<IpAddr>().unwrap();
    let mut client = Raw::connect((address, port).into());
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    who(&ask(&mut client, &request))
}

#[test]
fn addresses_of_external_services_route_to_them() {
    let world = World::new();
    let port = free_port();
    let addresses = "addresses: [127.201.9.20, 127.202.0.0/16]";
    let named = "hosts: [api.ext.com], addresses: [127.201.9.21, 127.202.7.0/24]";
    let text = documents([
        gateway_everywhere(port, "HTTP"),
        entry(("name: ext", "ext.example"), addresses, world.l1.address()),
        external("name: api", named, world.l2.address()),
        routes("ext", "[ext.example]", &to("ext.example")),
        routes("api", "[api.ext.com]", &to("api.ext.com")),
        routes(
            "known",
            "[known.example]",
            "- {directResponse: {status: 204}}",
        ),
    ]);
    let _proxy = Start::new()
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start();
    let rows = [
        ("127.201.9.20", "unknown.example", "L1"),
        ("127.0.0.1", "127.201.9.20", "L1"),
        ("127.202.3.4", "unknown.example", "L1"),
        ("127.0.0.1", "127.202.3.4", "L1"),
        ("127.201.9.21", "unknown.example", "L2"),
        // the smaller block
        ("127.202.7.4", "unknown.example", "L2"),
        ("127.202.7.4", "known.example", "204"),
        ("127.201.9.23", "unknown.example", "404"),
        ("127.0.0.1", "127.203.0.1", "404"),
    ];
    for (address, host, answer) in rows {
        assert_eq!(asked(address, port, host), answer, "{address} {host}");
    }
}

#[test]
fn tcp_connections_to_addresses_go_to_their_services() {
    let world = World::new();
    let port = free_port();
    let tcp = |name: &str, host: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {name}}}\n\
             spec: {{hosts: ['{host}'], gateways: [edge], tcp: [{{route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]}}]}}\n"
        )
    };
    let text = documents([
        gateway_everywhere(port, "TCP"),
        entry(
            ("name: ext", "ext.example"),
            "addresses: [127.201.9.30, 127.204.0.0/16]",
            world.l1.address(),
        ),
        external(
            "name: api",
            "hosts: [api.ext.com], addresses: [127.201.9.31]",
            world.l2.address(),
        ),
        world
            .import()
            .replacen("spec: {", "spec: {ips: [127.201.9.32], ", 1)
            .replace(", path: /c2/web", ", path: ''")
            .replace(", path: /c3/web", ", path: ''"),
        policy("{lbType: ActiveActive, targets: [{clusterKey: c3}]}"),
        // takes what is to no address of others
        tcp("a", "api.ext.com"),
        tcp("b", "ext.example"),
        tcp("c", "web.ns1.svc.cluster.local"),
    ]);
    let _proxy = Start::new()
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start();
    let rows = [
        ("127.201.9.30", "L1"),
        ("127.204.1.2", "L1"),
        ("127.201.9.31", "L2"),
        ("127.201.9.32", "g3"),
        ("127.0.0.1", "L2"),
    ];
    for (address, answer) in rows {
        assert_eq!(asked(address, port, "any.example"), answer, "{address}");
    }
}

#[test]
fn nearest_then_oldest_definition_owns_a_host() {
    let world = World::new();
    let hosts = "hosts: [ext.example]";
    let aged = |name: &str, day: u8| {
        format!("name: {name}, creationTimestamp: '2025-01-0{day}T00:00:00Z'")
    };
    let far = |day: u8| format!("namespace: far, {}", aged("ext", day));
    let near = aged("ext", 9);
    let (l1, l2, g2) = (world.l1.address(), world.l2.address(), world.g2.address());
    let none = "exportTo: ['*']";
    let rows = [
        (
            vec![
                entry((&far(1), "ext.example"), none, l1),
                external(&aged("first", 2), hosts, l2),
            ],
            "L1",
        ),
        (
            vec![
                entry((&far(3), "ext.example"), none, l1),
                external(&aged("first", 2), hosts, l2),
            ],
            "L2",
        ),
        (
            vec![
                external(&aged("first", 3), hosts, l1),
                external(&aged("other", 2), hosts, l2),
            ],
            "L2",
        ),
        (
            vec![
                entry((&far(1), "ext.example"), none, l1),
                external(&aged("first", 2), hosts, l2),
                entry((&near, "ext.example"), none, g2),
            ],
            "g2",
        ),
    ];
    for (described, answer) in rows {
        let start = Start::new();
        let mut all = vec![
            gateway(&[start.edge()]),
            routes("ext", "[ext.example]", &to("ext.example")),
        ];
        all.extend(described);
        let proxy = start.file("mesh.yaml", documents(all.clone())).start();
        let get = "GET / HTTP/1.1\r\nHost: ext.example\r\n\r\n";
        let found = count_of(&proxy, 10, get);
        assert_eq!(found, BTreeMap::from([(answer.to_owned(), 10)]), "{all:?}");
    }
}

#[test]
fn federated_hosts_have_their_gloo_addresses() {
    let world = World::new();
    let start = Start::new();
    let host = "web.ns1.svc.c2.global";
    // of web, ns1, c2
    let address = "243.93.164.71";
    let text = documents([
        gateway(&[start.edge()]),
        routes("web", &format!("[{host}]"), &to(host)),
        web_in_c2(&[(world.g2.address(), "v1")], true),
    ]);
    let proxy = start
        .args(["--cluster", "c1", "--gloo-mesh", "a.gloo-mesh"])
        .file("mesh.yaml", text.clone())
        .start();
    let get = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let all = |who: &str| BTreeMap::from([(who.to_owned(), 5)]);
    assert_eq!(count_of(&proxy, 5, &get), all("g2"));
    // something older that says so has the address
    let older = format!("addresses: [{address}]");
    let older = [
        entry(("name: ext", "ext.example"), &older, world.l1.address()),
        routes("ext", "[ext.example]", &to("ext.example")),
    ];
    let taken = documents([
        text.replace(
            "name: web-c2",
            "name: web-c2, creationTimestamp: '2025-01-01T00:00:00Z'",
        ),
        older.join("---\n"),
    ]);
    proxy.write("mesh.yaml", taken);
    eventually("the older one has the address", || {
        count_of(&proxy, 5, &get) == all("L1")
    });
}
