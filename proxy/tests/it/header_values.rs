//! Header values with `%OPERATORS%`, as seen by origins and clients.

use http::HeaderName;
use http::header::HeaderValue;
use hyper::Request;

use crate::support::client::{Answer, Client, Front, get, post};
use crate::support::mesh::{documents, gateway, routes, service, subsets};
use crate::support::origin::{Back, Origin, Seen, empty};
use crate::support::pki::{Authority, Leaf};
use crate::support::proxy::{Proxy, Start};
use crate::support::tls::{self, Visitor, secret, server};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::{raw, tls::files};

/// Returns a rule for `web.test` that edits headers: `request` and `response` are pairs for `set`.
fn edited(request: &[(&str, &str)], response: &[(&str, &str)]) -> String {
    let set = |pairs: &[(&str, &str)]| {
        let lines = pairs
            .iter()
            .map(|(name, value)| format!("\"{name}\": \"{value}\""));
        lines.collect::<Vec<_>>().join(", ")
    };
    format!(
        "- {{name: edited, headers: {{request: {{set: {{{}}}}}, response: {{set: {{{}}}}}}}, \
         route: [{{destination: {{host: web.test}}}}]}}",
        set(request),
        set(response)
    )
}

struct Edited {
    proxy: Proxy,
    origin: Origin,
}

impl Edited {
    fn start(request: &[(&str, &str)], response: &[(&str, &str)]) -> Self {
        let origin = Origin::named(Back::H1, "hello");
        let rule = edited(request, response);
        let proxy = Proxy::with(|edge| {
            documents([
                gateway(&[edge]),
                routes("web", "[\"*\"]", &rule),
                service("web", Back::H1, &[(origin.address, "v1")]),
            ])
        });
        Self { proxy, origin }
    }

    /// Sends a request with these headers; returns the request that the origin received, and the response.
    async fn ask(&self, headers: &[(&'static str, &'static str)]) -> (Seen, Answer) {
        let mut request = get("/path?q=1");
        for (name, value) in headers {
            let name = HeaderName::from_static(name);
            request
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        let mut client = Client::connect(Front::H1, self.proxy.edge).await;
        let answer = client.call(request).await;
        assert_eq!(answer.status, 200);
        (self.origin.only(), answer)
    }
}

#[tokio::test]
async fn operators_without_a_value_add_no_header() {
    let sets = [
        ("x-alone", "%TRAILER(x-a)%"),
        ("x-new", "%CEL(f(request['a'], g(1)))%"),
        ("x-within", "l-%FILTER_STATE(a:PLAIN):5%-r"),
        (
            "x-none",
            "%REQ(x-missing)%%UPSTREAM_TRANSPORT_FAILURE_REASON%",
        ),
    ];
    let world = Edited::start(&sets, &sets);
    let (seen, answer) = world
        .ask(&[("x-alone", "of the client"), ("x-none", "kept")])
        .await;
    assert_eq!(seen.header("x-alone"), Some("of the client"));
    assert_eq!(seen.header("x-none"), Some("kept"));
    assert_eq!(seen.header("x-new"), None);
    assert_eq!(seen.header("x-within"), Some("l--r"));
    assert_eq!(answer.header("x-alone"), None);
    assert_eq!(answer.header("x-within"), Some("l--r"));
    for name in [
        "TRAILER",
        "CEL",
        "FILTER_STATE",
        "UPSTREAM_TRANSPORT_FAILURE_REASON",
    ] {
        world.proxy.has_logged(&format!("`{name}`"));
    }
}

#[tokio::test]
async fn request_operators_have_the_values_known_before_sending() {
    let world = Edited::start(
        &[
            (
                "x-direct",
                "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
            ),
            ("x-network", "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(8)%"),
            ("x-too-long", "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(64)%"),
            ("x-local", "%DOWNSTREAM_DIRECT_LOCAL_ADDRESS%"),
            ("x-host", "%UPSTREAM_HOST_NAME%"),
            ("x-host-ip", "%UPSTREAM_HOST_NAME_WITHOUT_PORT%"),
            ("x-cluster", "%UPSTREAM_CLUSTER_RAW%"),
            ("x-try", "%UPSTREAM_REQUEST_ATTEMPT_COUNT%"),
            ("x-stream", "%STREAM_ID%"),
            ("x-unique", "%UNIQUE_ID%"),
            ("x-trace", "%TRACE_ID%"),
            ("x-agent", "%REQUEST_HEADER(user-agent):4%"),
            ("x-duration", "%DURATION%"),
            ("x-year", "%EMIT_TIME(%Y)%"),
            ("x-bytes", "%REQUEST_HEADERS_BYTES%"),
            (
                "x-early",
                "%UPSTREAM_PROTOCOL%%RESPONSE_DURATION%%UPSTREAM_LOCAL_PORT%%DOWNSTREAM_TLS_VERSION%",
            ),
        ],
        &[],
    );
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (seen, _) = world
        .ask(&[("traceparent", parent), ("user-agent", "client/1")])
        .await;
    let (edge, origin) = (world.proxy.edge.to_string(), world.origin.address);
    for (name, expected) in [
        ("x-direct", Some("127.0.0.1")),
        ("x-network", Some("127.0.0.0/8")),
        ("x-too-long", None),
        ("x-local", Some(&*edge)),
        ("x-host", Some(&*origin.to_string())),
        ("x-host-ip", Some("127.0.0.1")),
        ("x-cluster", Some("outbound|80||web.test")),
        ("x-try", Some("1")),
        ("x-stream", seen.header("x-request-id")),
        ("x-trace", Some(trace)),
        ("x-agent", Some("clie")),
        ("x-early", None),
    ] {
        assert_eq!(seen.header(name), expected, "{name}");
    }
    let number = |name: &str| seen.header(name).unwrap().parse::<u64>().unwrap();
    assert!(number("x-duration") < 60_000);
    assert!(number("x-year") >= 2024);
    assert!(number("x-bytes") > 100);
    assert_eq!(seen.header("x-unique").unwrap().len(), 36);
    assert_ne!(seen.header("x-unique"), seen.header("x-stream"));
}

#[tokio::test]
async fn response_operators_have_the_outcome_of_the_request() {
    let world = Edited::start(
        &[],
        &[
            ("x-protocol", "%UPSTREAM_PROTOCOL%"),
            ("x-local", "%UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%"),
            ("x-remote", "%UPSTREAM_HOST_NAME%"),
            ("x-flags", "%RESPONSE_FLAGS_LONG%"),
            ("x-stream", "%STREAM_ID%"),
            (
                "x-times",
                "%DURATION% %REQUEST_DURATION% %REQUEST_TX_DURATION% %RESPONSE_DURATION%",
            ),
            ("x-received", "%BYTES_RECEIVED%"),
            ("x-sent", "%BYTES_SENT%"),
            ("x-bytes", "%RESPONSE_HEADERS_BYTES%"),
            ("x-attempts", "%UPSTREAM_REQUEST_ATTEMPT_COUNT%"),
            ("x-length", "%RESPONSE_HEADER(content-length)%"),
            (
                "x-plain",
                "%UPSTREAM_TLS_VERSION%%UPSTREAM_PEER_SUBJECT%%GRPC_STATUS%",
            ),
        ],
    );
    let mut client = Client::connect(Front::H1, world.proxy.edge).await;
    let answer = client.call(post("/", "12345")).await;
    let seen = world.origin.only();
    let origin = world.origin.address.to_string();
    for (name, expected) in [
        ("x-protocol", Some("HTTP/1.1")),
        ("x-local", Some("127.0.0.1")),
        ("x-remote", Some(&*origin)),
        ("x-flags", Some("-")),
        ("x-stream", seen.header("x-request-id")),
        ("x-sent", Some("0")),
        ("x-attempts", Some("1")),
        ("x-length", Some("5")),
        ("x-plain", None),
    ] {
        assert_eq!(answer.header(name), expected, "{name}");
    }
    let numbers = |name: &str| -> Vec<u64> {
        let text = answer.header(name).unwrap();
        text.split(' ')
            .map(|number| number.parse().unwrap())
            .collect()
    };
    let times = numbers("x-times");
    assert!(
        times.len() == 4 && times[1] == times[2] && times[1] <= times[3],
        "{times:?}"
    );
    assert!(numbers("x-received")[0] <= 5);
    assert!(numbers("x-bytes")[0] > 20);
}

#[tokio::test]
async fn response_operators_have_the_request_as_it_was_sent() {
    let origin = Origin::named(Back::H1, "hello");
    let rule = "\
- match: [{uri: {prefix: /path}}]
  rewrite: {uri: /sent, authority: sent.test}
  headers:
    request: {set: {x-tag: edited}, remove: [x-gone]}
    response: {set: {x-seen: '%REQ(x-tag)% %REQ(:path)% %REQ(:authority)%', x-gone: '%REQ(x-gone)%'}}
  route: [{destination: {host: web.test}}]
";
    let no_endpoint = rule.replace("/path", "/none");
    let no_endpoint = no_endpoint.replace("web.test}", "web.test, subset: v2}");
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            subsets("web", &["v2"]),
            routes("web", "[\"*\"]", &[rule, &no_endpoint].concat()),
            service("web", Back::H1, &[(origin.address, "v1")]),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for (path, status) in [("/path?q=1", 200), ("/none?q=1", 503)] {
        let mut request = get(path);
        for name in ["x-tag", "x-gone"] {
            let value = HeaderValue::from_static("client");
            let headers = request.headers_mut();
            headers.insert(HeaderName::from_static(name), value);
        }
        let answer = client.call(request).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-seen"), Some("edited /sent?q=1 sent.test"));
        assert_eq!(answer.header("x-gone"), None);
    }
}

#[tokio::test]
async fn operators_in_local_replies_have_no_endpoint() {
    let rule = edited(
        &[],
        &[
            ("x-flags", "%RESPONSE_FLAGS_LONG%"),
            (
                "x-upstream",
                "%UPSTREAM_PROTOCOL%%UPSTREAM_LOCAL_PORT%%RESPONSE_DURATION%",
            ),
        ],
    );
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("web", "[\"*\"]", &rule),
            service("web", Back::H1, &[]),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.get("/").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("x-flags"), Some("NoHealthyUpstream"));
    assert_eq!(answer.header("x-upstream"), None);
}

#[tokio::test]
async fn operators_have_the_downstream_tls_values() {
    let (ca, clients) = (Authority::new("ca"), Authority::new("clients"));
    let uri = "spiffe://cluster.local/ns/default/sa/known";
    let known = clients.issue(Leaf {
        subject: "known",
        names: &[uri, "known.example", "10.0.0.1"],
        years: (2020, 3000),
        ..Leaf::default()
    });
    let own = ca.server(&["a.example", "b.example"]);
    let values = [
        ("tls.crt", &*own.chain),
        ("tls.key", &*own.key),
        ("ca.crt", &*clients.pem()),
    ];
    let sets = [
        ("x-tls", "%DOWNSTREAM_TLS_VERSION% %DOWNSTREAM_TLS_CIPHER%"),
        ("x-subject", "%DOWNSTREAM_PEER_SUBJECT%"),
        ("x-issuer", "%DOWNSTREAM_PEER_ISSUER%"),
        ("x-serial", "%DOWNSTREAM_PEER_SERIAL%"),
        ("x-hash", "%DOWNSTREAM_PEER_FINGERPRINT_256%"),
        (
            "x-names",
            "%DOWNSTREAM_PEER_URI_SAN% %DOWNSTREAM_PEER_DNS_SAN% %DOWNSTREAM_PEER_IP_SAN%",
        ),
        (
            "x-valid",
            "%DOWNSTREAM_PEER_CERT_V_START% %DOWNSTREAM_PEER_CERT_V_END(%Y/%m/%d)%",
        ),
        ("x-cert", "%DOWNSTREAM_PEER_CERT%"),
        ("x-own", "%DOWNSTREAM_LOCAL_DNS_SAN%"),
        (
            "x-email",
            "%DOWNSTREAM_PEER_EMAIL_SAN%%DOWNSTREAM_LOCAL_URI_SAN%",
        ),
    ];
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new();
    let credential = "{mode: OPTIONAL_MUTUAL, credentialName: cred}";
    let servers = [server(start.edge(), "https", "['*']", credential)];
    let mesh = documents([
        tls::gateway(&servers),
        secret("cred", &values),
        routes("web", "[\"*\"]", &edited(&sets, &sets)),
        service("web", Back::H1, &[(origin.address, "v1")]),
    ]);
    let proxy = start.file("mesh.yaml", mesh).start();
    let visitor = || Visitor::new(proxy.edge, &ca);
    let answer = visitor().with(&known).get("a.example").await.unwrap();
    let seen = origin.only();
    for (name, expected) in [
        ("x-tls", "TLSv1.3 TLS_AES_256_GCM_SHA384"),
        ("x-subject", "CN=known"),
        ("x-issuer", "CN=clients"),
        (
            "x-names",
            "spiffe://cluster.local/ns/default/sa/known known.example 10.0.0.1",
        ),
        ("x-valid", "2020-01-01T00:00:00.000Z 3000/12/31"),
        ("x-own", "a.example,b.example"),
    ] {
        let found = seen.header(name).unwrap();
        match name {
            "x-tls" => assert!(found.starts_with("TLSv1.3 TLS_"), "{found}"),
            "x-issuer" => assert!(found.contains(expected), "{found}"),
            _ => assert_eq!(found, expected, "{name}"),
        }
        assert_eq!(answer.header(name), Some(found), "{name} in the response");
    }
    let serial: String = known
        .serial
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(seen.header("x-serial"), Some(&*serial));
    let told = seen.header("x-forwarded-client-cert").unwrap();
    let hash = seen.header("x-hash").unwrap();
    assert!(
        hash.len() == 64 && told.contains(&format!("Hash={hash}")),
        "{told}"
    );
    let pem = seen.header("x-cert").unwrap();
    assert!(
        pem.starts_with("-----BEGIN%20CERTIFICATE-----%0A") && told.contains(pem),
        "{pem}"
    );
    assert_eq!(seen.header("x-email"), None);

    // Nothing is known of a client without a certificate.
    let answer = visitor().get("a.example").await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.header("x-tls").is_some());
    for name in ["x-subject", "x-issuer", "x-serial", "x-hash", "x-cert"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
}

#[test]
fn operators_have_the_upstream_tls_values() {
    let ca = Authority::new("ca");
    let directory = tempfile::tempdir().unwrap();
    let client = ca.server(&["spiffe://cluster.local/ns/default/sa/edge"]);
    files(
        directory.path(),
        &[
            ("ca.pem", &ca.pem()),
            ("client.pem", &client.chain),
            ("client.key", &client.key),
        ],
    );
    let terms = Terms::new(&ca.server(&["web.test", "other.test"])).for_clients_of(&ca);
    let origin = TlsOrigin::start(Speaks::H1, &terms);
    let rule = edited(
        &[("x-early", "%UPSTREAM_TLS_VERSION%")],
        &[
            ("x-tls", "%UPSTREAM_TLS_VERSION%"),
            ("x-cipher", "%UPSTREAM_TLS_CIPHER%"),
            ("x-peer", "%UPSTREAM_PEER_DNS_SAN%"),
            ("x-valid", "%UPSTREAM_PEER_CERT_V_START(%Y)%"),
            ("x-own", "%UPSTREAM_LOCAL_URI_SAN%"),
        ],
    );
    let path = directory.path().display();
    let policy = format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: web}}\nspec:\n  host: web.test\n  \
         trafficPolicy: {{tls: {{mode: MUTUAL, sni: web.test, caCertificates: {path}/ca.pem, \
         clientCertificate: {path}/client.pem, privateKey: {path}/client.key}}}}\n"
    );
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("web", "[\"*\"]", &rule),
            service("web", Back::H1, &[(origin.address, "v1")]),
            policy,
        ])
    });
    let reply = raw::Raw::connect(proxy.edge).send(raw::GET).reply();
    assert_eq!(reply.status, 200);
    for line in [
        "x-tls: TLSv1.3",
        "x-peer: web.test,other.test",
        "x-valid: 2020",
        "x-own: spiffe://cluster.local/ns/default/sa/edge",
    ] {
        assert!(reply.has(line), "{line}: {:?}", reply.headers);
    }
    let cipher = reply
        .headers
        .iter()
        .find_map(|line| line.strip_prefix("x-cipher: "));
    assert!(cipher.unwrap().starts_with("TLS_"), "{cipher:?}");
}

#[tokio::test]
async fn grpc_status_operator_works_for_trailers_only_responses() {
    let origin = Origin::start(Back::H1, |_| async {
        let mut response = hyper::Response::new(empty());
        let headers = response.headers_mut();
        headers.insert("grpc-status", HeaderValue::from_static("14"));
        headers.insert("content-type", HeaderValue::from_static("application/grpc"));
        response
    });
    let rule = edited(
        &[],
        &[
            ("x-camel", "%GRPC_STATUS%"),
            ("x-snake", "%GRPC_STATUS(SNAKE_STRING)%"),
            ("x-number", "%GRPC_STATUS_NUMBER%"),
        ],
    );
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("web", "[\"*\"]", &rule),
            service("web", Back::H1, &[(origin.address, "v1")]),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let request = Request::post("http://web.test/a.B/C")
        .header("content-type", "application/grpc")
        .body(empty())
        .unwrap();
    let answer = client.call(request).await;
    assert_eq!(answer.header("x-camel"), Some("Unavailable"));
    assert_eq!(answer.header("x-snake"), Some("UNAVAILABLE"));
    assert_eq!(answer.header("x-number"), Some("14"));
    assert_eq!(
        client.get("/").await.header("x-number"),
        None,
        "no gRPC request"
    );
}

#[tokio::test]
async fn start_time_operator_has_the_start_of_the_request() {
    let origin = Origin::named(Back::H1, "hello");
    let set = "{set: {x-times: \"%START_TIME(%s%9f)% %EMIT_TIME(%s%9f)%\"}}";
    let rule = format!(
        "- fault: {{delay: {{percentage: {{value: 100}}, fixedDelay: 50ms}}}}\n  \
         headers: {{request: {set}, response: {set}}}\n  \
         route: [{{destination: {{host: web.test}}}}]"
    );
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("web", "[\"*\"]", &rule),
            service("web", Back::H1, &[(origin.address, "v1")]),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.get("/").await;
    let times = |text: Option<&str>| -> Vec<u64> {
        let times = text.expect("times").split(' ');
        times.map(|time| time.parse().expect("a number")).collect()
    };
    let asked = times(origin.only().header("x-times"));
    let answered = times(answer.header("x-times"));
    assert_eq!(asked[0], answered[0], "one request, one start");
    assert!(asked[1] - asked[0] >= 50_000_000, "{asked:?}");
    assert!(answered[1] >= asked[1], "{asked:?} {answered:?}");
}
