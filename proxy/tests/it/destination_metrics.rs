//! Metrics of destinations, of the ends of connections, and of workers.

use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, gateway, routes, service, with_policy};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{GET, Raw};
use crate::support::tls::Edge;

/// Returns a counter of a destination, by one more label.
fn of(proxy: &Proxy, service: &str, name: &str, label: (&str, &str)) -> f64 {
    let labels = [("destination_service", service), label];
    proxy.metric(&format!("strait_destination_{name}_total"), &labels)
}

#[test]
fn failures_and_retries_count_for_their_destination_alone() {
    let good = Origin::named(Back::H1, "good");
    let retries = "retries: {attempts: 2, retryOn: connect-failure, backoff: 1ms}";
    let rules = format!(
        "- {{match: [{{uri: {{exact: /bad}}}}], {retries}, route: [{{destination: {{host: bad.test}}}}]}}\n\
         - {{route: [{{destination: {{host: good.test}}}}]}}"
    );
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("all", "['*']", &rules),
            service("bad", Back::H1, &[(free_address(), "v1")]),
            service("good", Back::H1, &[(good.address, "v1")]),
        ])
    });
    let mut client = Raw::connect(proxy.edge);
    let bad = "GET /bad HTTP/1.1\r\nHost: a.test\r\n\r\n";
    assert_eq!(client.send(bad).reply().status, 503);
    assert_eq!(client.send(GET).reply().status, 200);
    for (name, label, expected) in [
        ("connect_failures", ("reason", "refused"), 3.0),
        ("retries", ("reason", "connect_failure"), 2.0),
        ("retried_requests", ("result", "exhausted"), 1.0),
    ] {
        assert_eq!(of(&proxy, "bad.test", name, label), expected, "{name}");
        assert_eq!(of(&proxy, "good.test", name, label), 0.0, "{name}");
        let of_all = format!("strait_upstream_{name}_total");
        assert_eq!(proxy.metric(&of_all, &[label]), expected, "{name}");
    }
}

#[test]
fn overflows_count_for_their_destination() {
    let origin = Origin::start(Back::H1, |_| std::future::pending());
    let policy = "{connectionPool: {http: {http2MaxRequests: 1}}}";
    let proxy = Proxy::with(|edge| with_policy(edge, origin.address, policy));
    let mut first = Raw::connect(proxy.edge);
    first.send(GET);
    eventually("the limit is reached", || !origin.seen().is_empty());
    assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 503);
    let found = of(&proxy, "web.test", "overflows", ("limit", "requests"));
    assert_eq!(found, 1.0);
}

/// Number of closed HTTP/1 connections by their reason.
fn closed(proxy: &Proxy, reason: &str) -> f64 {
    let labels = [("protocol", "http1"), ("reason", reason)];
    proxy.metric("strait_downstream_connections_closed_total", &labels)
}

#[test]
fn end_of_a_connection_has_its_reason() {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().args(["--http-idle-timeout", "300ms"]);
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", &mesh).start();
    {
        let mut client = Raw::connect(proxy.edge);
        assert_eq!(client.send(GET).reply().status, 200);
    }
    eventually("the client has closed it", || {
        closed(&proxy, "client") == 1.0
    });
    let mut idle = Raw::connect(proxy.edge);
    assert_eq!(idle.send(GET).reply().status, 200);
    assert!(idle.is_closed());
    eventually("it was idle", || closed(&proxy, "idle_timeout") == 1.0);
    let reply = Raw::connect(proxy.edge)
        .send("GET / HTTP/1.1\r\nHost: a.test\r\nbad header\r\n\r\n")
        .reply();
    assert_eq!(reply.status, 400);
    eventually("it was malformed", || {
        closed(&proxy, "protocol_error") == 1.0
    });
}

#[test]
fn connection_at_its_maximum_duration_drains() {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().args(["--http-max-connection-duration", "300ms"]);
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", &mesh).start();
    let mut client = Raw::connect(proxy.edge);
    assert_eq!(client.send(GET).reply().status, 200);
    assert!(client.is_closed());
    eventually("it has drained", || closed(&proxy, "drain") == 1.0);
}

#[tokio::test]
async fn sessions_of_tls_count_by_version_and_cipher_suite() {
    let edge = Edge::simple(&["a.test"]);
    for (version, name) in [
        (&rustls::version::TLS12, "TLSv1.2"),
        (&rustls::version::TLS13, "TLSv1.3"),
    ] {
        let visitor = edge.visitor().speaking(version);
        assert_eq!(visitor.status("a.test").await, 200);
        let labels = [("version", name)];
        let count = || {
            edge.proxy
                .metric("strait_downstream_tls_sessions_total", &labels)
        };
        eventually("the session is counted", || count() == 1.0);
    }
}

#[test]
fn workers_tell_how_busy_and_how_late_they_are() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut client = Raw::connect(proxy.edge);
    assert_eq!(client.send(GET).reply().status, 200);
    let busy = || proxy.metric("strait_worker_busy_seconds_total", &[]);
    eventually("a worker was busy", || busy() > 0.0);
    let ticks = || proxy.metric("strait_worker_delay_seconds_count", &[]);
    eventually("timers were looked at", || ticks() > 0.0);
}

#[test]
fn held_bytes_are_those_of_bodies_that_retries_may_need() {
    let origin = Origin::start(Back::H1, |_| std::future::pending());
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let held = || proxy.metric("strait_buffered_bytes", &[("kind", "retry")]);
    let mut client = Raw::connect(proxy.edge);
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\ncontent-length: 5\r\n\r\n12345");
    eventually("the body is held", || held() >= 5.0);
    drop(client);
    eventually("it is released", || held() == 0.0);
}

#[test]
fn expressions_that_are_left_out_are_counted() {
    let telemetry = "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
                     metadata: {name: all, namespace: istio-system}\n\
                     spec: {accessLogging: [{providers: [{name: envoy}], filter: {expression: \"x.exists(y, y)\"}}]}\n";
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().args(["--unknown-fields", "warning"]);
    let mesh = documents([everything_to(start.edge(), &origin).as_str(), telemetry]);
    let proxy = start.file("mesh.yaml", mesh).start();
    let count = || proxy.metric("strait_config_expressions_unsupported", &[]);
    assert_eq!(count(), 1.0);
    proxy.write("mesh.yaml", everything_to(proxy.edge, &origin));
    eventually("it is gone", || count() == 0.0);
}
