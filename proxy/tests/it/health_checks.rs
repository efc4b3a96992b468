//! Active health checks by annotation, over HTTP, gRPC and TCP, while endpoints fail, recover, and are added or
//! removed.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::{HeaderMap, Response};

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Body, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{GET, Raw};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::upstream_tls::Files;

/// Special health status: the origin leaves health checks unanswered.
const HANGS: u16 = 0;

/// Origin that answers with its name, and at `/healthz` with its health status.
struct Patient {
    origin: Origin,
    health: Arc<AtomicU16>,
}

impl Patient {
    fn new(name: &'static str) -> Self {
        Self::at([127, 0, 0, 1].into(), name)
    }

    fn at(ip: IpAddr, name: &'static str) -> Self {
        let health = Arc::new(AtomicU16::new(200));
        let now = Arc::clone(&health);
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let origin = Origin::start_on(listener, Back::H1, move |request| {
            let health = now.load(Ordering::Relaxed);
            let asked = request.uri().path() == "/healthz";
            async move {
                let mut response = Response::new(full(name));
                if asked && health == HANGS {
                    return std::future::pending().await;
                }
                if asked {
                    *response.status_mut() = health.try_into().unwrap();
                }
                response
            }
        });
        Self { origin, health }
    }

    fn is(&self, health: u16) {
        self.health.store(health, Ordering::Relaxed);
    }
}

/// Annotations for frequent checks of `/healthz`.
const HTTP: &str = "strait.io/health-check: http, strait.io/health-check-path: /healthz, \
    strait.io/health-check-interval: 100ms, strait.io/health-check-timeout: 500ms, \
    strait.io/health-check-unhealthy-threshold: '2'";

/// Returns a service with these endpoints and annotations in flow style.
fn service(protocol: &str, endpoints: &[SocketAddr], annotations: &str) -> String {
    let endpoints: Vec<String> = endpoints
        .iter()
        .map(|at| format!("{{address: {}, ports: {{web: {}}}}}", at.ip(), at.port()))
        .collect();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: web\n  annotations: {{{annotations}}}\n\
         spec:\n  hosts: [web.test]\n  resolution: STATIC\n  ports: [{{number: 80, name: web, protocol: {protocol}}}]\n  \
         endpoints: [{}]\n",
        endpoints.join(", ")
    )
}

/// Returns a DestinationRule for the service with annotations in flow style.
fn rule(annotations: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata:\n  name: web\n  annotations: {{{annotations}}}\n\
         spec:\n  host: web.test\n  trafficPolicy: {{loadBalancer: {{simple: ROUND_ROBIN}}}}\n"
    )
}

fn start(service: String, rule: String) -> Proxy {
    let start = Start::new();
    let route = "- {retries: {attempts: 0}, route: [{destination: {host: web.test}}]}";
    let start = start.file("rule.yaml", rule).file("service.yaml", service);
    let text = documents([gateway(&[start.edge()]), routes("all", "['*']", route)]);
    start.file("mesh.yaml", text).start()
}

/// Returns the names of the origins that answer this many requests.
fn names(proxy: &Proxy, count: usize) -> Vec<String> {
    let mut client = Raw::connect(proxy.edge);
    (0..count)
        .map(|_| String::from_utf8(client.send(GET).reply().body).unwrap())
        .collect()
}

fn only(proxy: &Proxy, name: &str) -> bool {
    names(proxy, 6).iter().all(|found| found == name)
}

fn both(proxy: &Proxy) -> bool {
    let names = names(proxy, 4);
    names.iter().any(|name| name == "one") && names.iter().any(|name| name == "two")
}

#[test]
fn endpoint_that_fails_health_checks_gets_no_traffic() {
    let (one, two) = (Patient::new("one"), Patient::new("two"));
    let endpoints = [one.origin.address, two.origin.address];
    let proxy = start(service("HTTP", &endpoints, HTTP), rule(""));
    eventually("both were asked", || {
        proxy
            .page("/clusters")
            .matches("::last_health_check::passed")
            .count()
            == 2
    });
    assert!(both(&proxy));
    let check = one
        .origin
        .seen()
        .into_iter()
        .find(|seen| seen.path() == "/healthz");
    let check = check.unwrap();
    assert_eq!(check.host(), "web.test");
    assert_eq!(check.header("user-agent"), Some("strait-health-check"));
    // no proxy on the way makes a span of it
    assert!(check.header("traceparent").unwrap().ends_with("-00"));
    two.is(503);
    eventually("it is out", || only(&proxy, "one"));
    let page = proxy.page("/clusters");
    let name = "outbound|80||web.test";
    assert!(
        page.contains(&format!("{name}::health_check::GET /healthz every 100ms")),
        "{page}"
    );
    let at = two.origin.address;
    assert!(
        page.contains(&format!("{name}::{at}::health::fails its health checks")),
        "{page}"
    );
    assert!(
        page.contains(&format!("{name}::{at}::last_health_check::failed ")),
        "{page}"
    );
    assert!(page.contains("in a row, last: 503, "), "{page}");
    eventually("it is counted", || {
        proxy.metric("strait_endpoints_unhealthy", &[]) == 1.0
    });
    let turned = [("state", "unhealthy")];
    assert_eq!(
        proxy.metric("strait_health_check_transitions_total", &turned),
        1.0
    );
    assert!(proxy.metric("strait_health_checks_total", &[("result", "failed")]) >= 2.0);
    let events = proxy.page("/events");
    assert!(events.contains("failed 2 in a row, last: 503"), "{events}");
    let explained = proxy.page("/explain?method=GET&url=http://a.test/");
    assert!(
        explained.contains("health check: GET /healthz every 100ms"),
        "{explained}"
    );
    two.is(200);
    eventually("it is back", || both(&proxy));
    eventually("it is counted", || {
        proxy.metric("strait_endpoints_unhealthy", &[]) == 0.0
    });
    proxy.has_logged("passes its health checks");
}

#[test]
fn hanging_endpoint_fails_health_checks_and_all_failing_gives_503() {
    let (one, two) = (Patient::new("one"), Patient::new("two"));
    one.is(HANGS);
    two.is(500);
    let endpoints = [one.origin.address, two.origin.address];
    let proxy = start(service("HTTP", &endpoints, HTTP), rule(""));
    // the first check alone decides
    eventually("none is left", || {
        Raw::connect(proxy.edge).send(GET).reply().status == 503
    });
    eventually("the log says why", || {
        let mut lines = proxy.access_log().into_iter();
        lines.any(|line| line["response_flags"] == "UH")
    });
    assert!(
        proxy
            .page("/clusters")
            .contains("last: no answer within 500ms")
    );
    one.is(200);
    eventually("one is back", || only(&proxy, "one"));
}

#[test]
fn new_endpoint_gets_no_traffic_before_its_first_health_check() {
    let (one, two) = (Patient::new("one"), Patient::new("two"));
    two.is(HANGS);
    let text = |endpoints: &[SocketAddr]| service("HTTP", endpoints, HTTP);
    let proxy = start(text(&[one.origin.address]), rule(""));
    eventually("the first is well", || {
        proxy
            .page("/clusters")
            .contains("::last_health_check::passed")
    });
    proxy.write(
        "service.yaml",
        text(&[one.origin.address, two.origin.address]),
    );
    eventually("the second is known", || {
        assert!(only(&proxy, "one"));
        proxy.page("/clusters").contains("::endpoints::2")
    });
    assert!(only(&proxy, "one"));
    two.is(200);
    eventually("it takes part", || both(&proxy));
    // one that goes and comes again is new
    two.is(500);
    eventually("it is out", || only(&proxy, "one"));
    proxy.write("service.yaml", text(&[one.origin.address]));
    eventually("it is gone", || {
        proxy.page("/clusters").contains("::endpoints::1")
    });
    two.is(200);
    proxy.write(
        "service.yaml",
        text(&[one.origin.address, two.origin.address]),
    );
    eventually("it takes part again", || both(&proxy));
}

#[test]
fn reload_keeps_health_and_removing_checks_makes_endpoints_healthy() {
    let (one, two) = (Patient::new("one"), Patient::new("two"));
    two.is(503);
    let endpoints = [one.origin.address, two.origin.address];
    let text = |annotations: &str| service("HTTP", &endpoints, annotations);
    let proxy = start(text(HTTP), rule(""));
    eventually("it is out", || {
        let page = proxy.page("/clusters");
        page.contains("failed 3 in a row") && only(&proxy, "one")
    });
    // another policy makes another cluster of the same endpoints
    let policy = rule("").replace("ROUND_ROBIN", "RANDOM");
    proxy.write("rule.yaml", policy);
    eventually("it is in effect", || {
        proxy.page("/clusters").contains("::load_balancer::RANDOM")
    });
    assert!(!proxy.page("/clusters").contains("failed 1 in a row"));
    assert!(only(&proxy, "one"));
    // the rule's word goes before the service's
    proxy.write("rule.yaml", rule("strait.io/health-check: none"));
    eventually("it is back", || both(&proxy));
    eventually("no endpoint is unhealthy", || {
        proxy.metric("strait_endpoints_unhealthy", &[]) == 0.0
    });
    proxy.has_logged("no longer health-checked");
    assert!(!proxy.page("/clusters").contains("::last_health_check::"));
}

#[test]
fn http_checks_use_the_configured_statuses_and_host() {
    let (one, two) = (Patient::new("one"), Patient::new("two"));
    two.is(302);
    let endpoints = [one.origin.address, two.origin.address];
    let more =
        ", strait.io/health-check-host: live.test, strait.io/health-check-statuses: '200-299,302'";
    // over a rule, and by its own words only
    let proxy = start(
        service("HTTP", &endpoints, ""),
        rule(&format!("{HTTP}{more}")),
    );
    eventually("both pass", || {
        proxy
            .page("/clusters")
            .matches("::last_health_check::passed")
            .count()
            == 2
    });
    assert!(both(&proxy));
    let check = two
        .origin
        .seen()
        .into_iter()
        .find(|seen| seen.path() == "/healthz");
    assert_eq!(check.unwrap().host(), "live.test");
}

#[test]
fn tcp_checks_connect_to_the_port() {
    // of this test alone: nothing takes the port while nothing listens on it
    let ip = free_address().ip();
    let listener = TcpListener::bind((ip, 0)).unwrap();
    let other = listener.local_addr().unwrap().port();
    let (one, two) = (Patient::at(ip, "one"), Patient::at(ip, "two"));
    let annotations = format!(
        "strait.io/health-check: tcp, strait.io/health-check-port: '{other}', \
         strait.io/health-check-interval: 100ms, strait.io/health-check-unhealthy-threshold: '1'"
    );
    let endpoints = [one.origin.address, two.origin.address];
    let proxy = start(service("HTTP", &endpoints, &annotations), rule(""));
    eventually("both pass", || {
        let page = proxy.page("/clusters");
        page.matches("::last_health_check::passed").count() == 2 && page.contains("last: connected")
    });
    drop(listener);
    eventually("none is left", || {
        Raw::connect(proxy.edge).send(GET).reply().status == 503
    });
    assert!(proxy.page("/clusters").contains("refused"));
    let _listener = TcpListener::bind((ip, other)).unwrap();
    eventually("both are back", || both(&proxy));
}

/// Starts a gRPC server whose health service returns this status for a service name.
pub(crate) fn grpc_origin(name: &'static str, status: &Arc<AtomicU16>) -> Origin {
    let now = Arc::clone(status);
    Origin::start(Back::H2, move |request| {
        let status = now.load(Ordering::Relaxed) as u8;
        async move {
            if request.uri().path() != "/grpc.health.v1.Health/Check" {
                return Response::new(full(name));
            }
            let question = request.into_body().collect().await.unwrap().to_bytes();
            let known = *question == *b"\0\0\0\0\x07\x0a\x05pkg.S";
            let mut trailers = HeaderMap::new();
            let code = if known { "0" } else { "5" };
            trailers.insert("grpc-status", code.parse().unwrap());
            let answer = Bytes::from(vec![0, 0, 0, 0, 2, 8, status]);
            let frames = [Frame::data(answer), Frame::trailers(trailers)];
            let frames = frames.into_iter().map(Ok::<_, std::convert::Infallible>);
            let body = StreamBody::new(futures_util::stream::iter(frames));
            let body: Body = body.map_err(|never| match never {}).boxed_unsync();
            Response::builder()
                .header("content-type", "application/grpc")
                .body(body)
                .unwrap()
        }
    })
}

#[test]
fn grpc_checks_call_the_grpc_health_service() {
    let serving = || Arc::new(AtomicU16::new(1));
    let (first, second) = (serving(), serving());
    let (one, two) = (grpc_origin("one", &first), grpc_origin("two", &second));
    let annotations = "strait.io/health-check: grpc, strait.io/health-check-service: pkg.S, \
        strait.io/health-check-interval: 100ms, strait.io/health-check-unhealthy-threshold: '1'";
    let endpoints = [one.address, two.address];
    let proxy = start(service("HTTP2", &endpoints, annotations), rule(""));
    eventually("both pass", || {
        let page = proxy.page("/clusters");
        page.matches("::last_health_check::passed").count() == 2 && page.contains("last: SERVING")
    });
    assert!(both(&proxy));
    second.store(2, Ordering::Relaxed);
    eventually("it is out", || only(&proxy, "one"));
    assert!(proxy.page("/clusters").contains("last: NOT_SERVING"));
    let unknown = annotations.replace("pkg.S", "pkg.T");
    proxy.write("service.yaml", service("HTTP2", &endpoints, &unknown));
    eventually("the service is not known", || {
        proxy
            .page("/clusters")
            .matches("last: unknown service")
            .count()
            == 2
    });
    assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 503);
}

#[test]
fn ejections_and_health_checks_are_independent() {
    let (one, two) = (Patient::new("one"), Patient::new("two"));
    let endpoints = [one.origin.address, two.origin.address];
    let outlier = rule("").replace(
        "{loadBalancer",
        "{outlierDetection: {consecutive5xxErrors: 1, interval: 100ms, baseEjectionTime: 100ms}, loadBalancer",
    );
    let proxy = start(service("HTTP", &endpoints, HTTP), outlier);
    two.is(503);
    eventually("it is out", || only(&proxy, "one"));
    // sweeps uneject ejected endpoints, but not endpoints that fail their health checks
    let checks = || proxy.metric("strait_health_checks_total", &[]);
    let before = checks();
    eventually("time goes by", || checks() > before + 8.0);
    assert!(only(&proxy, "one"));
    two.is(200);
    eventually("it is back", || both(&proxy));
}

/// Returns a service whose endpoints accept connections and never answer, with long check timeouts.
fn crowd(silent: &TcpListener, endpoints: u16) -> String {
    let port = silent.local_addr().unwrap().port();
    let endpoints: Vec<String> = (0..endpoints)
        .map(|number| {
            let [high, low] = number.to_be_bytes();
            format!("{{address: 127.77.{high}.{low}, ports: {{web: {port}}}}}")
        })
        .collect();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: crowd\n  annotations: \
         {{strait.io/health-check: http, strait.io/health-check-interval: 1s, strait.io/health-check-timeout: 60s}}\n\
         spec:\n  hosts: [crowd.test]\n  resolution: STATIC\n  ports: [{{number: 80, name: web, protocol: HTTP}}]\n  \
         endpoints: [{}]\n",
        endpoints.join(", ")
    )
}

#[test]
fn hanging_endpoints_do_not_delay_checks_of_other_services() {
    let silent = TcpListener::bind("0.0.0.0:0").unwrap();
    let (one, two) = (Patient::new("one"), Patient::new("two"));
    let endpoints = [one.origin.address, two.origin.address];
    let proxy = start(service("HTTP", &endpoints, HTTP), rule(""));
    eventually("both were asked", || {
        proxy
            .page("/clusters")
            .matches("::last_health_check::passed")
            .count()
            == 2
    });
    let route = "- {route: [{destination: {host: crowd.test}}]}";
    let text = documents([crowd(&silent, 600), routes("crowd", "[crowd.test]", route)]);
    proxy.write("crowd.yaml", text);
    eventually("the crowd is known", || {
        proxy.page("/clusters").contains("127.77.2.")
    });
    two.is(503);
    eventually("it is out", || only(&proxy, "one"));
    two.is(200);
    eventually("it is back", || both(&proxy));
}

#[test]
fn health_checks_use_the_upstream_tls_settings() {
    let material = Files::new();
    let good = Terms::new(&material.ca.server(&["web.test"])).for_clients_of(&material.ca);
    let origin = TlsOrigin::start(Speaks::H1, &good);
    let tls = "tls: {mode: MUTUAL, sni: web.test, subjectAltNames: [web.test], caCertificates: '@ca.pem', \
        clientCertificate: '@client.pem', privateKey: '@client.key'}";
    let tls = tls.replace('@', &format!("{}/", material.path().display()));
    let rule = rule("").replace("loadBalancer: {simple: ROUND_ROBIN}", &tls);
    let proxy = start(service("HTTP", &[origin.address], HTTP), rule);
    let says = |what: &str| proxy.page("/clusters").contains(what);
    eventually("it passes", || says("::last_health_check::passed"));
    let checked = origin
        .callers()
        .into_iter()
        .find(|caller| !caller.hosts.is_empty());
    let checked = checked.unwrap();
    assert_eq!(checked.sni.as_deref(), Some("web.test"));
    assert_eq!(checked.hosts[0], "web.test");
    assert_eq!(checked.certificate.as_deref(), Some(&*material.client.der));
    assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 200);
    // an endpoint with an untrusted certificate is unhealthy, though it accepts connections
    origin.change(&Terms::new(&material.other.server(&["web.test"])));
    eventually("it is out", || says("::health::fails its health checks"));
    assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 503);
    origin.change(&good);
    eventually("it is back", || says("::health::healthy"));
    eventually("it serves", || {
        Raw::connect(proxy.edge).send(GET).reply().status == 200
    });
}
