//! Annotations of ingress-nginx that have effects on backends and on the responses of other services.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::Response;
use hyper::body::Frame;

use super::*;
use crate::support::origin::{Body, empty, full};
use crate::support::raw::Raw;
use crate::support::tls::secret;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

/// Returns a Secret of the namespace `shop`.
fn shop_secret(name: &str, values: &[(&str, &str)]) -> String {
    secret(name, values).replace(
        &format!("name: {name}"),
        &format!("name: {name}, namespace: shop"),
    )
}

fn all(host: &str, service: &str) -> String {
    rules(host, &[&format!("p / {service}")])
}

/// Service that allows the token `good`.
fn auth() -> Origin {
    Origin::start(Back::H1, |request| async move {
        let token = request.headers().get("x-token");
        let token = token.map_or("", |token| token.to_str().unwrap());
        let response = Response::builder().header("set-cookie", "seen=1");
        let response = match token {
            "good" => response.header("x-user", "alice"),
            "" => response.status(401).header("www-authenticate", "Basic"),
            "broken" => response.status(500),
            _ => response.status(403).header("x-reason", "hidden"),
        };
        response.body(empty()).unwrap()
    })
}

#[test]
fn service_of_auth_url_decides_about_requests() {
    let auth = auth();
    let url = "http://auth.shop.svc.cluster.local/check?a=b";
    let plain = format!("auth-url: {url}; auth-response-headers: X-User");
    let sign_in = "auth-signin: https://login.test/start; auth-always-set-cookie: true";
    let edge = Edge::start_beside(
        &[],
        &[service("auth", auth.address)],
        &[
            ingress("plain", &plain, &all("plain.test", "a")),
            ingress(
                "login",
                &format!("auth-url: {url}; {sign_in}"),
                &all("login.test", "empty"),
            ),
            ingress(
                "none",
                "auth-url: http://none/check",
                &all("none.test", "a"),
            ),
            ingress("open", "", &all("open.test", "a")),
        ],
    );
    let reply = edge.send(
        "POST",
        "plain.test",
        "/x?y",
        "X-Token: good\r\nX-User: mallory\r\nContent-Length: 2\r\n\r\nhi",
    );
    assert_eq!((reply.status, &*reply.body), (200, &b"a"[..]));
    assert!(reply.has("set-cookie: seen=1"), "{reply:?}");
    let seen = edge.a.seen().pop().unwrap();
    assert_eq!(
        (seen.path(), seen.header("x-user")),
        ("/x?y", Some("alice"))
    );
    let asked = auth.only();
    assert_eq!((asked.method.as_str(), asked.path()), ("GET", "/check?a=b"));
    assert_eq!(asked.host(), "auth.shop.svc.cluster.local");
    for (name, value) in [
        ("x-original-url", "http://plain.test/x?y"),
        ("x-original-method", "POST"),
        ("x-auth-request-redirect", "/x?y"),
        ("content-length", "0"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    let before = edge.a.seen().len();
    let reply = edge.send("GET", "plain.test", "/", "");
    assert_eq!(reply.status, 401);
    assert!(reply.has("www-authenticate: Basic"), "{reply:?}");
    assert!(!reply.has("set-cookie: seen=1"), "{reply:?}");
    let reply = edge.send("GET", "plain.test", "/", "X-Token: bad\r\n");
    assert_eq!(reply.status, 403);
    assert!(!reply.has("x-reason: hidden"), "{reply:?}");
    let status = |host, more| edge.send("GET", host, "/", more).status;
    assert_eq!(status("plain.test", "X-Token: broken\r\n"), 500);
    assert_eq!(status("none.test", "X-Token: good\r\n"), 500);
    assert_eq!(edge.a.seen().len(), before);
    // the sign-in page gets the URL of the request
    let reply = edge.send("GET", "login.test", "/a?b=c", "");
    assert_eq!(reply.status, 302);
    let location = "location: https://login.test/start?rd=http://login.test%2Fa%3Fb%3Dc";
    assert!(reply.has(location), "{reply:?}");
    assert!(reply.has("set-cookie: seen=1"), "{reply:?}");
    let reply = edge.send("GET", "login.test", "/", "X-Token: good\r\n");
    assert_eq!(reply.status, 503);
    assert!(reply.has("set-cookie: seen=1"), "{reply:?}");
    let asked = auth.seen().len();
    edge.all("open.test", &[("/", "a")]);
    assert_eq!(auth.seen().len(), asked);
}

#[test]
fn service_of_auth_url_is_asked_over_tls_and_never_without() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["auth.test"]);
    let auth = TlsOrigin::start(Speaks::H1, &Terms::new(&pair));
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("ca.pem");
    std::fs::write(&root, ca.pem()).unwrap();
    let (ip, port) = (auth.address.ip(), auth.address.port());
    let entry = |host: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {host}, namespace: shop}}\nspec:\n  \
             hosts: [{host}]\n  location: MESH_EXTERNAL\n  resolution: STATIC\n  \
             ports: [{{number: 443, name: https, protocol: HTTPS, targetPort: {port}}}]\n  endpoints: [{{address: {ip}}}]\n"
        )
    };
    let rule = |host: &str, subset: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {host}, namespace: shop}}\nspec:\n  \
             host: {host}\n  trafficPolicy: {{portLevelSettings: [{{port: {{number: {subset}}}, \
             tls: {{mode: SIMPLE, sni: auth.test, caCertificates: {}, subjectAltNames: [auth.test]}}}}]}}\n",
            root.display()
        )
    };
    let edge = Edge::start_beside(
        &[],
        &[
            entry("auth.test"),
            entry("plain.test"),
            entry("unruled.test"),
            rule("auth.test", "443"),
            // the settings of another port
            rule("plain.test", "8443"),
        ],
        &["auth.test", "plain.test", "unruled.test"].map(|host| {
            let name = host.trim_end_matches(".test");
            ingress(
                name,
                &format!("auth-url: https://{host}/check"),
                &all(&format!("{name}.shop"), "a"),
            )
        }),
    );
    edge.all("auth.shop", &[("/", "a")]);
    let asked = auth.only();
    assert_eq!(asked.hosts, ["auth.test"]);
    assert_eq!(asked.sni.as_deref(), Some("auth.test"));
    edge.all("plain.shop", &[("/", "500")]);
    edge.all("unruled.shop", &[("/", "500")]);
    assert_eq!(
        (auth.callers().len(), auth.failed()),
        (1, 0),
        "no plain text"
    );
    assert_eq!(edge.a.seen().len(), 1);
}

/// Service whose responses stand still: `/none` has no response, `/half` stops in the middle, and `/slow` has pauses.
fn pausing() -> Origin {
    Origin::start(Back::H1, |request| async move {
        let pause = || tokio::time::sleep(Duration::from_millis(400));
        let forever = std::future::pending::<()>;
        let path = request.uri().path().to_owned();
        if path == "/none" {
            forever().await;
        }
        let parts = futures_util::stream::unfold(0, move |part| {
            let is_slow = path == "/slow";
            async move {
                match part {
                    0 => {}
                    1..4 if is_slow => pause().await,
                    4 if is_slow => return None,
                    _ => forever().await,
                }
                let frame = Frame::data(Bytes::from_static(b"part"));
                Some((Ok(frame), part + 1))
            }
        });
        let body: Body = BodyExt::boxed_unsync(StreamBody::new(parts));
        Response::builder()
            .header("content-length", "16")
            .body(body)
            .unwrap()
    })
}

#[test]
fn response_that_stands_still_ends_after_the_read_timeout() {
    let pausing = pausing();
    let edge = Edge::start_beside(
        &[],
        &[service("pausing", pausing.address)],
        &[ingress(
            "i",
            "proxy-read-timeout: 1; proxy-next-upstream: off",
            &all("x.test", "pausing"),
        )],
    );
    assert_eq!(edge.answer("x.test", "/none"), "504");
    // longer than the timeout as a whole
    let reply = edge.send("GET", "x.test", "/slow", "");
    assert_eq!((reply.status, reply.body.len()), (200, 16));
    let text = "GET /half HTTP/1.1\r\nHost: x.test\r\n\r\n";
    let mut half = Raw::connect(edge.proxy.edge);
    assert!(half.send(text).try_reply().is_err(), "the body is cut off");
}

#[test]
fn responses_have_the_headers_of_a_config_map() {
    let headers = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headers, namespace: shop}\n\
                   data: {X-Frame-Options: DENY, X-Other: \"two words\"}\n";
    let edge = Edge::start_beside(
        &[],
        &[headers.to_owned()],
        &[ingress(
            "i",
            "custom-headers: shop/headers",
            &all("x.test", "a"),
        )],
    );
    let reply = edge.send("GET", "x.test", "/", "");
    assert!(reply.has("x-frame-options: DENY"), "{reply:?}");
    assert!(reply.has("x-other: two words"), "{reply:?}");
}

#[test]
fn backends_are_verified_and_get_a_certificate() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let pair = ca.server(&["backend.test"]);
    let client = ca.server(&["client.test"]);
    let mutual = TlsOrigin::start(Speaks::H1, &Terms::new(&pair).for_clients_of(&ca));
    let plain = TlsOrigin::start(Speaks::H1, &Terms::new(&pair));
    let grpc = TlsOrigin::start(Speaks::H2, &Terms::new(&pair));
    let certificates = [
        ("tls.crt", &*client.chain),
        ("tls.key", &client.key),
        ("ca.crt", &ca.pem()),
    ];
    let objects = [
        service("mutual", mutual.address),
        service("plain", plain.address),
        service("renamed", plain.address),
        service("strange", plain.address),
        service("grpc", grpc.address),
        shop_secret("client", &certificates),
        shop_secret("other", &[("ca.crt", &other.pem())]),
    ];
    let verified = "backend-protocol: HTTPS; proxy-ssl-verify: on; proxy-ssl-secret: shop";
    let named = "proxy-ssl-name: backend.test; proxy-ssl-server-name: on";
    let edge = Edge::start_beside(
        &[],
        &objects,
        &[
            ingress(
                "mutual",
                &format!("{verified}/client; {named}"),
                &all("mutual.test", "mutual"),
            ),
            ingress(
                "other-name",
                &format!("{verified}/client; proxy-ssl-name: wrong.test"),
                &all("renamed.test", "renamed"),
            ),
            ingress(
                "other-ca",
                &format!("{verified}/other; {named}"),
                &all("strange.test", "strange"),
            ),
            ingress(
                "unverified",
                "backend-protocol: HTTPS",
                &all("plain.test", "plain"),
            ),
            ingress("grpc", "backend-protocol: GRPCS", &all("grpc.test", "grpc")),
        ],
    );
    edge.all("mutual.test", &[("/", "hello")]);
    let caller = mutual.only();
    assert_eq!(caller.sni.as_deref(), Some("backend.test"));
    assert!(caller.certificate.is_some());
    edge.all("renamed.test", &[("/", "503")]);
    edge.all("strange.test", &[("/", "503")]);
    edge.all("plain.test", &[("/", "hello")]);
    edge.all("grpc.test", &[("/", "hello")]);
    assert_eq!(grpc.only().alpn, ["h2"]);
}

#[test]
fn clients_keep_their_endpoint_by_cookie_and_by_expression() {
    let ips = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
    let origins = ips.map(|ip| {
        let listener = std::net::TcpListener::bind((ip, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let origin = Origin::start_on(listener, Back::H1, move |_| async move {
            Response::new(full(port.to_string()))
        });
        (ip, port, origin)
    });
    let many = |name: &str| {
        let slices = origins.iter().map(|(ip, port, _)| {
            format!(
                "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-{port}, \
                 namespace: shop, labels: {{kubernetes.io/service-name: {name}}}}}\naddressType: IPv4\n\
                 ports: [{{name: http, port: {port}}}]\nendpoints: [{{addresses: [{ip}]}}]\n"
            )
        });
        let slices: String = slices.collect();
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec: {{ports: [{{name: http, port: 80}}]}}\n{slices}"
        )
    };
    let cookie = "affinity: cookie; affinity-mode: persistent; session-cookie-name: route";
    let edge = Edge::start_beside(
        &[],
        &[many("sticky"), many("hashed"), many("round")],
        &[
            ingress("cookie", cookie, &all("c.test", "sticky")),
            ingress(
                "hash",
                "upstream-hash-by: $http_x_user",
                &all("h.test", "hashed"),
            ),
            ingress(
                "round",
                "load-balance: round_robin",
                &all("r.test", "round"),
            ),
        ],
    );
    let reply = edge.send("GET", "c.test", "/", "");
    let set = reply.headers.iter();
    let cookie = set
        .filter_map(|line| line.strip_prefix("set-cookie: "))
        .next();
    let cookie = cookie.unwrap().split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("route="), "{cookie}");
    let kept = |host: &str, header: &str| -> HashSet<String> {
        (0..12).map(|_| edge.answer_to(host, "/", header)).collect()
    };
    assert_eq!(kept("c.test", &format!("Cookie: {cookie}\r\n")).len(), 1);
    let users: HashSet<String> = (0..30)
        .map(|user| {
            let of_user = kept("h.test", &format!("X-User: {user}\r\n"));
            assert_eq!(of_user.len(), 1);
            of_user.into_iter().next().unwrap()
        })
        .collect();
    assert_eq!(users.len(), 3);
    assert_eq!(kept("r.test", "").len(), 3);
}

#[test]
fn failed_requests_are_retried_and_copies_are_sent() {
    let failing = Origin::start(Back::H1, |_| async {
        Response::builder().status(503).body(empty()).unwrap()
    });
    let retried = "proxy-next-upstream: error http_503; proxy-next-upstream-tries: 3";
    let mirrored = "mirror-target: http://b.shop.svc.cluster.local$request_uri";
    let edge = Edge::start_beside(
        &[],
        &[service("failing", failing.address)],
        &[
            ingress("retried", retried, &all("r.test", "failing")),
            ingress(
                "once",
                "proxy-next-upstream: off",
                &all("o.test", "failing"),
            ),
            ingress("mirrored", mirrored, &all("m.test", "a")),
        ],
    );
    let attempts = |method: &str, host: &str| {
        let before = failing.seen().len();
        assert_eq!(edge.send(method, host, "/", "").status, 503);
        failing.seen().len() - before
    };
    assert_eq!(attempts("GET", "r.test"), 3);
    assert_eq!(attempts("PATCH", "r.test"), 1);
    assert_eq!(attempts("GET", "o.test"), 1);
    edge.all("m.test", &[("/copy", "a")]);
    eventually("the copy has arrived", || edge.b.seen().len() == 1);
    assert_eq!(edge.b.only().path(), "/copy");
}

#[tokio::test]
async fn tls_is_passed_through_or_asks_for_client_certificates() {
    let ca = Authority::new("ca");
    let own = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["pass.test"])));
    let edge_pair = ca.server(&["clients.test"]);
    let secured = |host: &str, secret: &str, service: &str| {
        format!(
            "tls: [{{hosts: [{host}], secretName: {secret}}}]\n  {}",
            all(host, service)
        )
    };
    let edge = Edge::start_beside(
        &[],
        &[
            service("own", own.address),
            shop_secret(
                "edge",
                &[("tls.crt", &edge_pair.chain), ("tls.key", &edge_pair.key)],
            ),
            shop_secret("clients", &[("ca.crt", &ca.pem())]),
        ],
        &[
            ingress("pass", "ssl-passthrough: true", &all("pass.test", "own")),
            ingress(
                "clients",
                "auth-tls-secret: shop/clients; auth-tls-verify-client: on",
                &secured("clients.test", "edge", "a"),
            ),
        ],
    );
    let visitor = Visitor::new(edge.secured, &ca);
    let answer = visitor.get("pass.test").await.unwrap();
    assert_eq!(answer.text(), "hello");
    assert_eq!(own.only().sni.as_deref(), Some("pass.test"));
    assert_eq!(visitor.status("clients.test").await, 0);
    let client = ca.server(&["me.test"]);
    assert_eq!(visitor.with(&client).status("clients.test").await, 200);
}
