//! Host definitions for routes: each resource kind that defines a host, on live sockets.

use std::net::SocketAddr;

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start};
use crate::support::{eventually, until};

/// Returns a Service `web` in `default` with one port, and EndpointSlices for pairs of address and readiness.
fn kube(name: &str, more: &str, endpoints: &[(SocketAddr, bool)]) -> String {
    // All endpoints of a slice share the port number, so each gets a slice.
    let slices = endpoints
        .iter()
        .enumerate()
        .map(|(number, (address, ready))| {
            let (ip, port) = (address.ip(), address.port());
            format!(
                "\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-{number}, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{name: {name}, port: {port}, protocol: TCP}}]
endpoints: [{{addresses: [{ip}], conditions: {{ready: {ready}}}}}]
"
            )
        });
    let service = format!(
        "\
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec:
  clusterIP: 10.0.0.1
  selector: {{app: web}}
  ports: [{{name: {name}, port: 80, targetPort: 8080{more}}}]
"
    );
    documents(std::iter::once(service).chain(slices))
}

fn all_to(host: &str) -> String {
    let rule = format!("- {{route: [{{destination: {{host: {host}}}}}]}}");
    routes("all", "[\"*\"]", &rule)
}

/// Sends requests until every expected response has come; any other response fails.
async fn answers(proxy: &Proxy, expected: &[&str]) {
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut missing = expected.to_vec();
    for _ in 0..200 {
        let answer = client.get("/").await;
        assert!(expected.contains(&answer.text()), "{answer:?}");
        missing.retain(|word| *word != answer.text());
    }
    assert_eq!(missing, [""; 0]);
}

#[tokio::test]
async fn service_endpoints_come_from_endpoint_slices() {
    let origins = ["one", "two", "not-ready"].map(|name| Origin::named(Back::H1, name));
    let endpoints = [
        (origins[0].address, true),
        (origins[1].address, true),
        (origins[2].address, false),
    ];
    let slices = kube("main", "", &endpoints);
    for host in ["web", "web.default.svc.cluster.local"] {
        let proxy = Proxy::with(|edge| documents([&gateway(&[edge]), &all_to(host), &slices]));
        answers(&proxy, &["one", "two"]).await;
    }
    assert!(origins[2].seen().is_empty());
}

#[tokio::test]
async fn metrics_name_the_workload_of_a_pod() {
    let origins = ["one", "two"].map(|name| Origin::named(Back::H1, name));
    let endpoints = origins.each_ref().map(|origin| (origin.address, true));
    let slices = kube("main", "", &endpoints);
    // The first endpoint is a pod of a Deployment, whose labels the slice carries; nothing is known of the second.
    let pod = "conditions: {ready: true}, targetRef: {kind: Pod, namespace: ns2, name: web-v1-6b746f74dc-9rlmh}";
    let labels = "web-0, labels: {kubernetes.io/service-name: web, app: shop, version: v1}";
    let slices = slices
        .replacen("conditions: {ready: true}", pod, 1)
        .replacen(
            "web-0, labels: {kubernetes.io/service-name: web}",
            labels,
            1,
        );
    let proxy = Proxy::with(|edge| documents([&gateway(&[edge]), &all_to("web"), &slices]));
    answers(&proxy, &["one", "two"]).await;
    let known = [
        ("destination_workload", "web-v1"),
        ("destination_workload_namespace", "ns2"),
        ("destination_app", "shop"),
        ("destination_version", "v1"),
        ("destination_canonical_service", "shop"),
        ("destination_service_namespace", "default"),
    ];
    let unknown = [
        ("destination_workload", "unknown"),
        ("destination_workload_namespace", "default"),
        ("destination_app", "unknown"),
    ];
    eventually("both endpoints are counted", || {
        let count = |labels| proxy.metric("istio_requests_total", labels);
        let (known, unknown) = (count(&known), count(&unknown));
        known > 0.0 && unknown > 0.0 && known + unknown == 200.0
    });
}

#[tokio::test]
async fn service_is_visible_in_the_namespaces_of_export_to() {
    let origin = Origin::named(Back::H1, "one");
    let slices = kube("main", "", &[(origin.address, true)]);
    let exported = |to: &str| {
        let annotations = format!(
            "metadata:\n  name: web\n  annotations: {{networking.istio.io/exportTo: '{to}'}}\nspec:\n  clusterIP"
        );
        slices.replacen("metadata: {name: web}\nspec:\n  clusterIP", &annotations, 1)
    };
    let start = Start::new();
    let (edge, routes) = (gateway(&[start.edge()]), all_to("web"));
    let mesh = |to: &str| documents([&edge, &routes, &exported(to)]);
    let proxy = start.file("mesh.yaml", mesh("other, .")).start();
    answers(&proxy, &["one"]).await;
    for (to, status) in [("other", 503), ("*", 200), ("~", 503), ("default", 200)] {
        proxy.write("mesh.yaml", mesh(to));
        until("the export counts", async || {
            let mut client = Client::connect(Front::H1, proxy.edge).await;
            client.get("/").await.status == status
        })
        .await;
    }
    let log = proxy.has_logged("is not exported to namespace `default`");
    assert!(log.contains("X275"), "{log}");
}

#[tokio::test]
async fn port_protocol_follows_name_and_app_protocol() {
    for (name, more, back) in [
        ("main", "", Back::H1),
        ("http-main", "", Back::H1),
        ("http2-main", "", Back::H2),
        ("grpc", "", Back::H2),
        ("main", ", appProtocol: http2", Back::H2),
        ("main", ", appProtocol: kubernetes.io/h2c", Back::H2),
        ("grpc-x", ", appProtocol: http", Back::H1),
        ("grpc-web", "", Back::H2),
        ("main", ", appProtocol: grpc-web", Back::H2),
    ] {
        let origin = Origin::named(back, "hello");
        let slices = kube(name, more, &[(origin.address, true)]);
        let proxy = Proxy::with(|edge| documents([&gateway(&[edge]), &all_to("web"), &slices]));
        answers(&proxy, &["hello"]).await;
        let expected = match back {
            Back::H1 => hyper::Version::HTTP_11,
            Back::H2 => hyper::Version::HTTP_2,
        };
        assert_eq!(origin.seen()[0].version, expected, "{name} {more}");
    }
}

#[tokio::test]
async fn service_entry_port_uses_its_protocol_field_not_its_name() {
    for (name, protocol, back) in [
        ("http", "HTTP2", Back::H2),
        ("http", "GRPC", Back::H2),
        ("http-api", "grpc-web", Back::H2),
        ("http2", "HTTP", Back::H1),
        ("grpc", "HTTP", Back::H1),
        ("http2", "\"\"", Back::H1),
    ] {
        let origin = Origin::named(back, "hello");
        let entry = service("web", Back::H1, &[(origin.address, "v1")])
            .replace(
                "name: web, protocol: HTTP",
                &format!("name: {name}, protocol: {protocol}"),
            )
            .replace("ports: {web:", &format!("ports: {{{name}:"));
        let proxy = Proxy::with(|edge| documents([&gateway(&[edge]), &all_to("web.test"), &entry]));
        answers(&proxy, &["hello"]).await;
        let expected = match back {
            Back::H1 => hyper::Version::HTTP_11,
            Back::H2 => hyper::Version::HTTP_2,
        };
        assert_eq!(origin.seen()[0].version, expected, "{name} {protocol}");
    }
}

#[tokio::test]
async fn dns_names_of_endpoints_are_resolved() {
    // On both loopback addresses, whichever the name represents here.
    let listener = std::net::TcpListener::bind("[::]:0").unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
    let _origin = Origin::start_on(listener, Back::H1, |_| async {
        hyper::Response::new(full("hello"))
    });
    let entry = service("web", Back::H1, &[(address, "v1")])
        .replace("resolution: STATIC", "resolution: DNS")
        .replace("address: 127.0.0.1", "address: localhost");
    let proxy = Proxy::with(|edge| documents([&gateway(&[edge]), &all_to("web.test"), &entry]));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    crate::support::until("the name is resolved", async || {
        client.get("/").await.status == 200
    })
    .await;
    assert_eq!(client.get("/").await.text(), "hello");
}

#[tokio::test]
async fn workload_entries_are_selected_by_labels() {
    let (chosen, other) = (
        Origin::named(Back::H1, "chosen"),
        Origin::named(Back::H1, "other"),
    );
    let workload = |name: &str, app: &str, address: SocketAddr| {
        format!(
            "\
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {{name: {name}}}
spec: {{address: {}, ports: {{web: {}}}, labels: {{app: {app}}}}}
",
            address.ip(),
            address.port()
        )
    };
    let entry = service("web", Back::H1, &[]).replace("nothing-has-this", "web");
    let proxy = Proxy::with(|edge| {
        documents([
            &gateway(&[edge]),
            &all_to("web.test"),
            &entry,
            &workload("a", "web", chosen.address),
            &workload("b", "other", other.address),
        ])
    });
    answers(&proxy, &["chosen"]).await;
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn service_counts_beside_the_service_entry_that_istiod_makes_of_it() {
    let one = Origin::named(Back::H1, "one");
    let resources = kube("main", "", &[(one.address, true)]);
    let synthetic = "\
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: synthetic-web}
spec:
  hosts: [web.default.svc.cluster.local]
  addresses: [10.0.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: main, protocol: HTTP}]
";
    let host = "web.default.svc.cluster.local";
    let proxy =
        Proxy::with(|edge| documents([&gateway(&[edge]), synthetic, &all_to(host), &resources]));
    answers(&proxy, &["one"]).await;
    let log = proxy.stderr();
    assert!(!log.contains("ERROR") && !log.contains("CM020"), "{log}");
}

/// Returns a ServiceEntry of `web.test` with one port, served at an address.
fn entry(name: &str, port: u16, at: SocketAddr) -> String {
    let (ip, target) = (at.ip(), at.port());
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {name}}}\nspec:\n  hosts: [web.test]\n  \
         resolution: STATIC\n  ports: [{{number: {port}, name: http, protocol: HTTP, targetPort: {target}}}]\n  \
         endpoints: [{{address: {ip}}}]\n"
    )
}

/// Returns a rule that routes a path to a port of a host.
fn to_port(path: &str, host: &str, port: u16) -> String {
    format!(
        "- {{match: [{{uri: {{exact: /{path}}}}}], route: [{{destination: {{host: {host}, port: {{number: {port}}}}}}}]}}\n"
    )
}

#[tokio::test]
async fn ports_of_several_service_entries_lead_to_their_own_endpoints() {
    let origins = ["one", "two"].map(|name| Origin::named(Back::H1, name));
    let rules = to_port("one", "web.test", 80) + &to_port("two", "web.test", 8080);
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("all", "[\"*\"]", &rules),
            entry("first", 80, origins[0].address),
            entry("second", 8080, origins[1].address),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..4 {
        for name in ["one", "two"] {
            assert_eq!(client.get(&format!("/{name}")).await.text(), name);
        }
    }
}

#[tokio::test]
async fn external_name_of_a_known_host_is_an_alias() {
    let [one, copied] = ["one", "copied"].map(|name| Origin::named(Back::H1, name));
    let alias = |name: &str, of: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: ExternalName, externalName: {of}}}\n"
        )
    };
    let rules = "- {mirror: {host: copies, port: {number: 8080}}, route: [\
                 {destination: {host: alias, port: {number: 80}}, weight: 50}, {destination: {host: again, port: {number: 80}}, weight: 50}]}";
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("all", "[\"*\"]", rules),
            entry("first", 80, one.address),
            entry("second", 8080, copied.address),
            alias("alias", "web.test"),
            alias("again", "alias.default.svc.cluster.local"),
            alias("copies", "web.test"),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..10 {
        assert_eq!(client.get("/").await.text(), "one");
    }
    eventually("copies arrive", || copied.seen().len() == 10);
}
