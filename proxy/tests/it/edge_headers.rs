//! Headers that a gateway adds, keeps, replaces and removes; one test per row of the table in the reference.

use hyper::{HeaderMap, Request, Response};

use crate::support::client::{Answer, Client, Front, get};
use crate::support::mesh::{documents, everything_to, gateway, routes, service};
use crate::support::origin::{Back, Origin, Seen, empty, full};
use crate::support::proxy::{LOOPBACK_IS_INTERNAL, Proxy, Start};

/// Starts a proxy with these arguments that routes everything to an origin.
fn started(origin: &Origin, arguments: &[&str]) -> Proxy {
    Proxy::with_args(arguments, |edge| everything_to(edge, origin))
}

/// Sends a request with these headers; returns the request that the origin received, and the response.
async fn through(origin: &Origin, proxy: &Proxy, headers: &[(&str, &str)]) -> (Seen, Answer) {
    let mut request = Request::get("http://a.test/page");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let before = origin.seen().len();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.call(request.body(empty()).unwrap()).await;
    let mut seen = origin.seen();
    assert_eq!(seen.len(), before + 1);
    (seen.remove(before), answer)
}

/// Header that makes a request of an internal address count as that of an external client, by an earlier hop.
const EXTERNAL: (&str, &str) = ("x-forwarded-for", "203.0.113.7");

#[tokio::test]
async fn request_id_of_an_external_client_is_replaced_by_default() {
    let origin = Origin::named(Back::H1, "up");
    let mine = ("x-request-id", "mine");
    let by_default = started(&origin, &[]);
    let (seen, answer) = through(&origin, &by_default, &[mine]).await;
    assert_eq!(seen.header("x-request-id").unwrap().len(), 36);
    assert_eq!(answer.header("x-request-id"), None);
    let proxy = started(&origin, &LOOPBACK_IS_INTERNAL);
    let (seen, _) = through(&origin, &proxy, &[EXTERNAL, mine]).await;
    assert_eq!(seen.header("x-request-id").unwrap().len(), 36);
    let (seen, _) = through(&origin, &proxy, &[mine]).await;
    assert_eq!(seen.header("x-request-id"), Some("mine"));
    let keeping = started(&origin, &["--keep-request-id"]);
    let (seen, _) = through(&origin, &keeping, &[mine]).await;
    assert_eq!(seen.header("x-request-id"), Some("mine"));
}

#[tokio::test]
async fn trusted_hops_set_client_address_and_scheme() {
    let origin = Origin::named(Back::H1, "up");
    let told = [
        ("x-forwarded-for", "192.0.2.1, 192.0.2.2"),
        ("x-forwarded-proto", "https"),
    ];
    for (hops, client, logged, scheme) in [
        ("0", "127.0.0.1", "127.0.0.1:", "http"),
        ("1", "192.0.2.2", "192.0.2.2:0", "https"),
        ("2", "192.0.2.1", "192.0.2.1:0", "https"),
        ("3", "127.0.0.1", "127.0.0.1:", "https"),
    ] {
        let proxy = started(&origin, &["--trusted-hops", hops]);
        let (seen, _) = through(&origin, &proxy, &told).await;
        let list = seen.header("x-forwarded-for").unwrap().replace(' ', "");
        assert_eq!(list, "192.0.2.1,192.0.2.2,127.0.0.1");
        assert_eq!(seen.header("x-envoy-external-address"), Some(client));
        assert_eq!(seen.header("x-forwarded-proto"), Some(scheme));
        let line = proxy.logged("/page");
        let remote = line["downstream_remote_address"].as_str().unwrap();
        assert!(remote.starts_with(logged), "{hops} hops: {remote}");
    }
}

#[tokio::test]
async fn scheme_from_a_trusted_hop_is_used_for_matching_and_redirects() {
    let start = Start::new().args(["--trusted-hops", "1"]);
    let rules = "\
- match: [{scheme: {exact: https}, uri: {exact: /matched}}]
  directResponse: {status: 200, body: {string: secure}}
- redirect: {uri: /new}
";
    let text = documents([gateway(&[start.edge()]), routes("all", "[\"*\"]", rules)]);
    let proxy = start.file("mesh.yaml", text).start();
    for (proto, status, location) in [
        (Some("https"), 200, "https://a.test/new"),
        (Some("http"), 301, "http://a.test/new"),
        (None, 301, "http://a.test/new"),
    ] {
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for (path, expected) in [("/matched", status), ("/old", 301)] {
            let mut request = get(path);
            if let Some(proto) = proto {
                let headers = request.headers_mut();
                headers.insert("x-forwarded-proto", proto.parse().unwrap());
            }
            let answer = client.call(request).await;
            assert_eq!(answer.status, expected, "{proto:?} {path}");
            if expected == 301 {
                assert_eq!(answer.header("location"), Some(location));
            }
        }
    }
}

#[tokio::test]
async fn https_redirect_skips_requests_with_scheme_https_from_a_trusted_hop() {
    let origin = Origin::named(Back::H1, "up");
    for (hops, proto, expected) in [
        ("1", Some("https"), 200),
        ("1", Some("http"), 301),
        ("1", None, 301),
        ("0", Some("https"), 301),
    ] {
        let proxy = Proxy::with_args(&["--trusted-hops", hops], |edge| {
            let redirecting = "hosts: [\"*\"], tls: {httpsRedirect: true}}";
            everything_to(edge, &origin).replacen("hosts: [\"*\"]}", redirecting, 1)
        });
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        let mut request = get("/page?q=1");
        if let Some(proto) = proto {
            let headers = request.headers_mut();
            headers.insert("x-forwarded-proto", proto.parse().unwrap());
        }
        let answer = client.call(request).await;
        assert_eq!(answer.status, expected, "{hops} hops, {proto:?}");
        let location = (expected == 301).then_some("https://a.test/page?q=1");
        assert_eq!(answer.header("location"), location);
    }
}

#[tokio::test]
async fn control_headers_of_external_clients_are_ignored() {
    let origin = Origin::named(Back::H1, "up");
    let claims = [
        ("x-envoy-internal", "true"),
        ("x-envoy-decorator-operation", "op"),
        ("x-envoy-downstream-service-cluster", "me"),
        ("x-envoy-original-path", "/else"),
        ("x-envoy-retry-on", "5xx"),
        ("x-envoy-max-retries", "9"),
        ("x-envoy-upstream-rq-timeout-ms", "1"),
        ("x-envoy-upstream-rq-per-try-timeout-ms", "1"),
        ("x-envoy-external-address", "192.0.2.9"),
        ("x-envoy-attempt-count", "7"),
        ("x-envoy-expected-rq-timeout-ms", "5"),
        ("x-forwarded-client-cert", "By=me"),
    ];
    // Loopback and private addresses are external, too, unless they are listed.
    for (arguments, before) in [(&[][..], &[][..]), (&LOOPBACK_IS_INTERNAL, &[EXTERNAL])] {
        let proxy = started(&origin, arguments);
        let (seen, answer) = through(&origin, &proxy, &[before, &claims].concat()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(seen.header("x-envoy-external-address"), Some("127.0.0.1"));
        assert_eq!(seen.header("x-envoy-attempt-count"), Some("1"));
        for (name, _) in claims.iter().filter(|(name, _)| {
            !matches!(*name, "x-envoy-external-address" | "x-envoy-attempt-count")
        }) {
            assert_eq!(seen.header(name), None, "{name}");
        }
    }
}

#[tokio::test]
async fn internal_addresses_flag_decides_which_clients_are_internal() {
    let origin = Origin::named(Back::H1, "up");
    for (arguments, before, internal) in [
        (&[][..], &[][..], false),
        (&["--internal-addresses", ""], &[], false),
        (&["--internal-addresses", "10.0.0.0/8"], &[], false),
        (&["--internal-addresses", "127.0.0.2"], &[], false),
        (&["--internal-addresses", "10.0.0.0/8,127.0.0.1"], &[], true),
        (&LOOPBACK_IS_INTERNAL, &[], true),
        (&LOOPBACK_IS_INTERNAL, &[EXTERNAL], false),
    ] {
        let proxy = started(&origin, arguments);
        let (seen, _) = through(&origin, &proxy, before).await;
        let (is, address) = if internal {
            (Some("true"), None)
        } else {
            (None, Some("127.0.0.1"))
        };
        assert_eq!(seen.header("x-envoy-internal"), is, "{arguments:?}");
        assert_eq!(seen.header("x-envoy-external-address"), address);
    }
}

#[tokio::test]
async fn trace_headers_pass_through_and_no_trace_is_started() {
    let origin = Origin::named(Back::H2, "up");
    let proxy = started(&origin, &LOOPBACK_IS_INTERNAL);
    let trace = [
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("tracestate", "a=1,b=2"),
        ("baggage", "k=v"),
        ("b3", "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1"),
        ("x-b3-traceid", "0af7651916cd43dd8448eb211c80319c"),
        ("x-b3-spanid", "b7ad6b7169203331"),
        ("x-b3-parentspanid", "05e3ac9a4f6e3b90"),
        ("x-b3-sampled", "1"),
        ("x-b3-flags", "1"),
        ("x-ot-span-context", "x"),
    ];
    for before in [&[][..], &[EXTERNAL]] {
        let (seen, _) = through(&origin, &proxy, &[before, &trace].concat()).await;
        for (name, value) in trace {
            assert_eq!(seen.header(name), Some(value), "{name}");
        }
    }
    let (seen, _) = through(&origin, &proxy, &[]).await;
    for (name, _) in trace {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn rewritten_host_is_in_x_envoy_original_host_and_by_flag_in_x_forwarded_host() {
    let origin = Origin::named(Back::H1, "up");
    let mesh = |edge| {
        let rules = "\
- match: [{uri: {prefix: /changed}}]
  rewrite: {authority: b.test}
  route: [{destination: {host: web.test}}]
- match: [{uri: {prefix: /same}}]
  rewrite: {authority: a.test}
  route: [{destination: {host: web.test}}]
- route: [{destination: {host: web.test}}]
";
        documents([
            gateway(&[edge]),
            service("web", Back::H1, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", rules),
        ])
    };
    for (arguments, told) in [(&[][..], None), (&["--forwarded-host"], Some("a.test"))] {
        let start = Start::new().args(arguments.iter().copied());
        let text = mesh(start.edge());
        let proxy = start.file("mesh.yaml", text).start();
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for (path, host, original, forwarded) in [
            ("/changed", "b.test", Some("a.test"), told),
            ("/same", "a.test", Some("a.test"), None),
            ("/", "a.test", None, None),
        ] {
            client.get(path).await;
            let seen = origin.seen().pop().unwrap();
            let names = ["x-envoy-original-host", "x-forwarded-host"];
            assert_eq!(seen.host(), host);
            assert_eq!(names.map(|name| seen.header(name)), [original, forwarded]);
        }
    }
}

#[tokio::test]
async fn responses_have_server_and_date_but_no_via() {
    let origin = Origin::start(Back::H1, |request| async move {
        let mut response = Response::new(full("up"));
        if request.uri().path() == "/dated" {
            let date = "Thu, 01 Jan 1970 00:00:00 GMT".parse().unwrap();
            response.headers_mut().insert("date", date);
        }
        let server = "origin/1".parse().unwrap();
        response.headers_mut().insert("server", server);
        response
    });
    let one = |headers: &HeaderMap, name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    for (name, told) in [
        ("istio-envoy", "istio-envoy"),
        ("mine", "mine"),
        ("", "origin/1"),
    ] {
        let proxy = started(&origin, &["--server-name", name]);
        for front in [Front::H1, Front::H2] {
            let mut client = Client::connect(front, proxy.edge).await;
            let answer = client.get("/dated").await;
            assert_eq!(answer.header("server"), Some(told));
            let date = one(&answer.headers, "date");
            assert_eq!(date.as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
            assert_eq!(answer.header("via"), None);
            assert!(client.get("/").await.header("date").is_some());
        }
    }
    assert!(
        origin
            .seen()
            .iter()
            .all(|seen| seen.header("via").is_none())
    );
}
