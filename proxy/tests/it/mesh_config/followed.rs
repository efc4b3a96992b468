//! Values of the mesh configuration for flags that are not given: they are followed while the proxy runs.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use http_body_util::BodyExt as _;
use hyper::Response;
use tempfile::NamedTempFile;

use super::Mesh;
use super::proxies::setting;
use crate::sidecar::Sidecar;
use crate::support::client::{Client, Front};
use crate::support::eventually;
use crate::support::mesh::{
    documents, everything_to, everything_to_address, gateway, routes, service,
};
use crate::support::origin::{Back, Origin, full};
use crate::support::otlp::Collector;
use crate::support::proxy::{Start, free_address};
use crate::support::raw::{GET, Raw};

fn start(origin: &Origin) -> Start {
    let start = Start::new().args(["--labels", "istio=ingressgateway"]);
    let text = everything_to_address(start.edge(), Back::H1, origin.address);
    start.file("mesh.yaml", text)
}

#[test]
fn headers_follow_the_mesh_unless_a_flag_has_them() {
    let origin = Origin::named(Back::H1, "hello");
    let settings = "defaultConfig: {gatewayTopology: {numTrustedProxies: 1}, proxyHeaders: {server: {value: edge}, \
                    attemptCount: {disabled: true}, xForwardedPort: {enabled: true}}}\n";
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nx-forwarded-for: 192.0.2.1\r\n\r\n";
    for (flags, changed_server) in [
        (&[][..], "server: edge"),
        (&["--server-name", "own"], "server: own"),
    ] {
        let mesh = Mesh::start(start(&origin).args(flags.iter().copied()), "{}\n");
        for (config, server, is_changed) in [
            (settings, changed_server, true),
            (
                "{}\n",
                if flags.is_empty() {
                    "server: istio-envoy"
                } else {
                    "server: own"
                },
                false,
            ),
        ] {
            mesh.configure(config);
            let reply = Raw::connect(mesh.proxy.edge).send(request).reply();
            assert!(reply.has(server), "{config}: {:?}", reply.headers);
            let seen = origin.seen().pop().unwrap();
            assert_eq!(seen.header("x-forwarded-port").is_some(), is_changed);
            assert_eq!(seen.header("x-envoy-attempt-count").is_none(), is_changed);
            let external = seen.header("x-envoy-external-address");
            assert_eq!(external == Some("192.0.2.1"), is_changed, "{external:?}");
        }
        assert_eq!(
            setting(&mesh.proxy, "trusted-hops"),
            serde_json::Value::Null
        );
        assert_eq!(mesh.proxy.metric("strait_config_restart_pending", &[]), 0.0);
        if !flags.is_empty() {
            mesh.proxy.has_logged("MC105");
        }
    }
}

#[test]
fn value_that_a_flag_does_not_accept_keeps_the_last_ones() {
    let origin = Origin::named(Back::H1, "hello");
    let topology =
        |hops: u8| format!("defaultConfig: {{gatewayTopology: {{numTrustedProxies: {hops}}}}}\n");
    let mesh = Mesh::start(start(&origin), &topology(1));
    fs::write(mesh.config.path(), topology(200)).unwrap();
    mesh.proxy.has_logged("MC010");
    assert_eq!(setting(&mesh.proxy, "trusted-hops")["value"], "1");
    assert_eq!(
        mesh.proxy.metric(
            "strait_config_resources_rejected",
            &[("kind", "MeshConfig")]
        ),
        1.0
    );
    mesh.configure(&topology(2));
    assert_eq!(setting(&mesh.proxy, "trusted-hops")["value"], "2");
}

#[test]
fn connections_of_one_listener_are_limited() {
    let origin = Origin::named(Back::H1, "hello");
    let mesh = Mesh::start(start(&origin), "{}\n");
    mesh.configure("defaultConfig: {connectionSettings: {listenerConnectionLimit: 1}}\n");
    let mut first = Raw::connect(mesh.proxy.edge);
    assert_eq!(first.send(GET).reply().status, 200);
    assert!(Raw::connect(mesh.proxy.edge).is_closed());
    mesh.configure("{}\n");
    assert_eq!(Raw::connect(mesh.proxy.edge).send(GET).reply().status, 200);
    assert_eq!(first.send(GET).reply().status, 200);
}

/// The limit ends with the request's body, and with the beginning of the response.
#[test]
fn request_must_be_complete_in_the_time_that_the_mesh_says() {
    let origin = Origin::named(Back::H1, "hello");
    let mesh = Mesh::start(start(&origin), "{}\n");
    mesh.configure("defaultConfig: {connectionSettings: {httpRequestTimeout: 0.3s}}\n");
    let post = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n";
    let waiting = Origin::start(Back::H1, |request: hyper::Request<_>| async move {
        drop(request.into_body().collect().await);
        Response::new(full("done"))
    });
    mesh.proxy.write(
        "mesh.yaml",
        everything_to_address(mesh.proxy.edge, Back::H1, waiting.address),
    );
    eventually("the origin waits for the body", || {
        let reply = Raw::connect(mesh.proxy.edge).send(GET).reply();
        reply.body == b"done"
    });
    let mut client = Raw::connect(mesh.proxy.edge);
    let reply = client.send(post).reply();
    assert_eq!((reply.status, &*reply.body), (408, &b"request timeout"[..]));
    eventually("the line is written", || {
        let mut lines = mesh.proxy.access_log().into_iter();
        lines.any(|line| line["response_code_details"] == "request_overall_timeout")
    });
    let mut client = Raw::connect(mesh.proxy.edge);
    assert_eq!(client.send(post).send("12345").reply().status, 200);
}

#[test]
fn compression_of_metrics_follows_the_mesh() {
    let origin = Origin::named(Back::H1, "hello");
    let mesh = Mesh::start(start(&origin), "{}\n");
    let is_compressed = || {
        let mut stream = TcpStream::connect(mesh.proxy.admin).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.0\r\naccept-encoding: gzip\r\n\r\n")
            .unwrap();
        let mut page = Vec::new();
        stream.read_to_end(&mut page).unwrap();
        String::from_utf8_lossy(&page).contains("content-encoding: gzip")
    };
    assert!(is_compressed());
    mesh.configure("defaultConfig: {statsCompression: false}\n");
    assert!(!is_compressed());
    mesh.configure("defaultConfig: {statsCompression: true}\n");
    assert!(is_compressed());
}

#[test]
fn drain_takes_the_time_that_the_mesh_says_last() {
    let origin = Origin::start(Back::H1, |_| std::future::pending());
    let mut mesh = Mesh::start(start(&origin), "defaultConfig: {drainDuration: 1h}\n");
    let mut client = Raw::connect(mesh.proxy.edge);
    client.send(GET);
    eventually("the request is forwarded", || !origin.seen().is_empty());
    mesh.configure("defaultConfig: {drainDuration: 0.2s}\n");
    mesh.proxy.signal("TERM");
    assert!(mesh.proxy.wait().success());
}

/// The name of the service and the collector change with the mesh configuration; its variables are those of the start.
#[tokio::test]
async fn service_name_and_collector_follow_the_mesh() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "o"));
    let start = Start::new();
    let text = everything_to(start.edge(), &origin);
    let start = start
        .file("mesh.yaml", text)
        .args([
            "--otlp-endpoint",
            &collector.url(),
            "--trace-sampling",
            "100",
        ])
        .args(["--labels", "istio=ingressgateway,app=shop"])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mesh = Mesh::start(start, "{}\n");
    let mut client = Client::connect(Front::H1, mesh.proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
    collector.wait(2).await;
    assert_eq!(collector.resource()["service.name"], "shop.default");
    for (settings, name) in [
        ("tracingServiceName: CANONICAL_NAME_ONLY", "shop"),
        ("serviceCluster: edge, meshId: m1", "edge"),
    ] {
        mesh.configure(&format!("defaultConfig: {{{settings}}}\n"));
        let before = collector.spans().len();
        assert_eq!(client.get("/").await.status, 200);
        collector.wait(before + 2).await;
        assert_eq!(collector.resource()["service.name"], name);
    }
    let last = collector.spans().pop().unwrap();
    let mut ids = collector
        .spans()
        .into_iter()
        .filter_map(|span| span.attribute("istio.mesh_id"));
    assert_eq!(ids.next_back().as_deref(), Some("m1"), "{last:?}");
    assert_eq!(mesh.proxy.metric("strait_config_restart_pending", &[]), 0.0);
}

/// Annotations of Istio on the proxy's pod.
#[tokio::test]
async fn annotations_of_the_pod_are_settings() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "o"));
    let annotations = NamedTempFile::new().unwrap();
    let lines = [
        r#"resource.opentelemetry.io/service.name="named""#,
        r#"resource.opentelemetry.io/team="blue""#,
        r#"sidecar.istio.io/logLevel="debug""#,
        r#"sidecar.istio.io/statsHistogramBuckets="{\"istiocustom\":[7,3600000]}""#,
    ];
    fs::write(annotations.path(), lines.join("\n")).unwrap();
    let start = Start::new();
    let text = everything_to(start.edge(), &origin);
    let start = start
        .file("mesh.yaml", text)
        .args([
            "--otlp-endpoint",
            &collector.url(),
            "--trace-sampling",
            "100",
        ])
        .args(["--labels", "istio=ingressgateway,app=shop"])
        .args(["--pod-annotations", annotations.path().to_str().unwrap()])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mesh = Mesh::start(start, "{}\n");
    let mut client = Client::connect(Front::H1, mesh.proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
    collector.wait(2).await;
    let resource = collector.resource();
    assert_eq!(resource["team"], "blue");
    // Istio's name, unless a provider names services as OpenTelemetry does
    assert_eq!(resource["service.name"], "shop.default");
    assert_eq!(setting(&mesh.proxy, "log-level")["value"], "debug");
    let origin = setting(&mesh.proxy, "duration-buckets");
    assert_eq!(origin["origin"], "sidecar.istio.io/statsHistogramBuckets");
    let buckets = || {
        let page = mesh.proxy.page("/metrics");
        let lines = page
            .lines()
            .filter(|line| line.starts_with("istio_request_duration_milliseconds_bucket"));
        let bounds = lines.filter_map(|line| line.split("le=\"").nth(1)?.split('"').next());
        bounds.map(str::to_owned).collect::<Vec<_>>()
    };
    eventually("the request is counted", || {
        buckets() == ["7", "3600000", "+Inf"]
    });
    let provider = "extensionProviders: [{name: p, opentelemetry: {service: collector.test, port: 80, \
                    serviceAttributeEnrichment: OTEL_SEMANTIC_CONVENTIONS}}]\n";
    mesh.configure(provider);
    assert_eq!(client.get("/").await.status, 200);
    collector.wait(4).await;
    assert_eq!(collector.resource()["service.name"], "named");
}

/// A client that does not read its response makes the proxy hold some of it.
#[test]
fn bytes_of_responses_that_clients_do_not_read_are_shown() {
    let origin = Origin::start(Back::H1, |_| async {
        Response::new(full(vec![b'x'; 64 << 20]))
    });
    let mesh = Mesh::start(start(&origin), "{}\n");
    let held = || {
        mesh.proxy
            .metric("strait_buffered_bytes", &[("kind", "response")])
    };
    let client = TcpStream::connect(mesh.proxy.edge).unwrap();
    (&client).write_all(GET.as_bytes()).unwrap();
    eventually("bytes wait for the client", || held() > 0.0);
    drop(client);
    eventually("they are dropped", || held() == 0.0);
}

/// An endpoint that has left drains until its requests end.
#[test]
fn endpoint_that_has_left_drains() {
    let busy = Origin::start(Back::H1, |_| std::future::pending());
    let other = Origin::named(Back::H1, "other");
    let mesh = Mesh::start(start(&busy), "{}\n");
    let state = |state: &str| {
        let labels = [("destination_service", "web.test"), ("state", state)];
        mesh.proxy.metric("strait_destination_endpoints", &labels)
    };
    let mut client = Raw::connect(mesh.proxy.edge);
    client.send(GET);
    eventually("the request is forwarded", || !busy.seen().is_empty());
    assert_eq!((state("available"), state("draining")), (1.0, 0.0));
    let changed = everything_to_address(mesh.proxy.edge, Back::H1, other.address);
    mesh.proxy.write("mesh.yaml", changed);
    eventually("the endpoint has left", || state("draining") == 1.0);
    assert_eq!(state("available"), 1.0);
    drop(client);
    eventually("its request has ended", || state("draining") == 0.0);
}

/// Endpoints without a network of their own have that of their address.
#[test]
fn networks_of_addresses_follow_the_mesh() {
    let origins = ["one", "two"].map(|name| {
        let listener = TcpListener::bind(free_address()).unwrap();
        Origin::start_on(listener, Back::H1, move |_| async move {
            Response::new(full(name))
        })
    });
    let start = Start::new().args(["--labels", "istio=ingressgateway", "--network", "net"]);
    let [one, two] = [&origins[0], &origins[1]].map(|origin| origin.address);
    let priority =
        "loadBalancer: {localityLbSetting: {failoverPriority: [topology.istio.io/network]}}";
    let text = documents([
        gateway(&[start.edge()]),
        service("web", Back::H1, &[(one, "v1"), (two, "v1")]),
        routes(
            "all",
            "['*']",
            "- {route: [{destination: {host: web.test}}]}",
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: web}}\n\
             spec: {{host: web.test, trafficPolicy: {{{priority}, outlierDetection: {{}}}}}}\n"
        ),
    ]);
    let mesh = Mesh::start(start.file("mesh.yaml", text), "{}\n");
    for (address, name) in [(one, "one"), (two, "two"), (one, "one")] {
        let networks = format!(
            "{{networks: {{net: {{endpoints: [{{fromCidr: {}}}]}}}}}}",
            address.ip()
        );
        mesh.configure(&format!(
            "kind: ConfigMap\ndata:\n  mesh: '{{}}'\n  meshNetworks: '{networks}'\n"
        ));
        let mut client = Raw::connect(mesh.proxy.edge);
        for _ in 0..8 {
            assert_eq!(client.send(GET).reply().body, name.as_bytes());
        }
    }
}

/// A workload reaches unknown hosts until the mesh allows only known ones.
#[test]
fn policy_for_unknown_destinations_follows_the_mesh() {
    let outside = Origin::named(Back::H1, "outside");
    let config = NamedTempFile::new().unwrap();
    fs::write(config.path(), "{}\n").unwrap();
    let arguments = ["--mesh-config", config.path().to_str().unwrap()];
    let sidecar = Sidecar::start(&arguments, []);
    let status = || {
        let mut connection = sidecar.leaves(&outside.address.to_string());
        let reply = connection
            .send("GET / HTTP/1.1\r\nHost: outside.test\r\n\r\n")
            .try_reply();
        reply.ok().flatten().map(|reply| reply.status)
    };
    assert_eq!(status(), Some(200));
    fs::write(
        config.path(),
        "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n",
    )
    .unwrap();
    eventually("it is refused", || status() != Some(200));
    fs::write(config.path(), "outboundTrafficPolicy: {mode: ALLOW_ANY}\n").unwrap();
    eventually("it is allowed again", || status() == Some(200));
}
