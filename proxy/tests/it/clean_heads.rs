//! Rules, hash keys, CORS and `explain` use the sanitized request that the endpoint receives: without headers that a
//! client forged, and with headers that the proxy adds.

use std::collections::BTreeSet;

use hyper::Request;

use crate::balancing::Named;
use crate::support::client::{Answer, Client, Front};
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Body, empty};
use crate::support::pki::{Authority, Leaf};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;
use crate::support::tls::{Edge, secret, server};

/// Status of a request that matches none of the match blocks.
const NOTHING: u16 = 299;

/// Starts a proxy with one rule per match block, with statuses from 201 on, and a rule for the rest.
fn ruled(blocks: &[&str]) -> Proxy {
    Proxy::with(|edge| documents([gateway(&[edge]), routes("all", "['*']", &rules(blocks))]))
}

fn rules(blocks: &[&str]) -> String {
    let mut rules = String::new();
    for (block, status) in blocks.iter().zip(201..) {
        rules += &format!("- {{match: [{{{block}}}], directResponse: {{status: {status}}}}}\n");
    }
    rules + &format!("- directResponse: {{status: {NOTHING}}}\n")
}

/// Sends a request with these header lines, and returns the status.
fn status(proxy: &Proxy, lines: &str) -> u16 {
    let request = format!("GET / HTTP/1.1\r\n{lines}\r\n\r\n");
    Raw::connect(proxy.edge).send(request).reply().status
}

#[test]
fn expressions_match_bytes_that_are_no_utf8() {
    let proxy = ruled(&[
        "withoutHeaders: {x-a: {regex: '.+'}}",
        "headers: {x-a: {regex: 'v.'}}",
        "headers: {x-a: {regex: 'v..'}}",
    ]);
    let status = |value: &[u8]| {
        let request = [b"GET / HTTP/1.1\r\nhost: a\r\nx-a: ", value, b"\r\n\r\n"].concat();
        Raw::connect(proxy.edge).send(request).reply().status
    };
    assert_eq!(status(b""), 201);
    assert_eq!(status(b"\xff"), NOTHING);
    assert_eq!(status(b"v\xff"), 202);
    assert_eq!(status("vé".as_bytes()), 203);
}

/// Sends a request over HTTP/2, and returns the status.
async fn by_http2(proxy: &Proxy, uri: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    client.call(request.body(empty()).unwrap()).await.status
}

/// Returns the status in the result of `/explain`.
fn explained(proxy: &Proxy, url: &str, headers: &[(&str, &str)]) -> u16 {
    let mut page = format!("/explain?format=json&url={url}");
    for (name, value) in headers {
        page += &format!(
            "&header={name}:{}",
            value.replace(' ', "%20").replace(';', "%3B")
        );
    }
    let port = format!("&listener={}", proxy.edge.port());
    let answer: serde_json::Value = serde_json::from_str(&proxy.page(&(page + &port))).unwrap();
    let text = answer["outcome"].to_string();
    let digits = |at: &usize| text[*at..].starts_with(|byte: char| byte.is_ascii_digit());
    let at = (0..text.len()).find(digits).expect(&text);
    text[at..at + 3].parse().unwrap()
}

#[tokio::test]
async fn forged_headers_match_no_rule() {
    let forged = [
        ("x-forwarded-client-cert", "By=spiffe://a;Hash=1"),
        ("x-envoy-external-address", "6.6.6.6"),
        ("x-envoy-internal", "true"),
        ("x-envoy-original-path", "/admin"),
        ("x-envoy-attempt-count", "7"),
        ("x-envoy-retry-on", "5xx"),
        ("x-strait-from-cluster", "other"),
    ];
    let blocks = forged.map(|(name, value)| format!("headers: {{{name}: {{exact: '{value}'}}}}"));
    let proxy = ruled(&blocks.each_ref().map(String::as_str));
    for (name, value) in forged {
        let lines = format!("Host: a.test\r\n{name}: {value}");
        assert_eq!(status(&proxy, &lines), NOTHING, "{name}");
        let header = [(name, value)];
        assert_eq!(
            by_http2(&proxy, "http://a.test/", &header).await,
            NOTHING,
            "{name}"
        );
        assert_eq!(
            explained(&proxy, "http://a.test/", &header),
            NOTHING,
            "{name}"
        );
    }
}

#[tokio::test]
async fn rules_match_headers_that_the_proxy_adds() {
    let uuid = "[0-9a-f]{8}-[0-9a-f-]{27}";
    for block in [
        "headers: {x-forwarded-for: {exact: 127.0.0.1}}",
        "headers: {x-forwarded-proto: {exact: http}}",
        "headers: {x-envoy-external-address: {exact: 127.0.0.1}}",
        &format!("headers: {{x-request-id: {{regex: '{uuid}'}}}}"),
        "withoutHeaders: {x-envoy-attempt-count: {}}",
        "withoutHeaders: {x-forwarded-proto: {exact: https}}",
    ] {
        let proxy = ruled(&[block]);
        for forged in ["", "x-forwarded-proto: https\r\nx-request-id: mine\r\n"] {
            let lines = format!("{forged}Host: a.test");
            assert_eq!(status(&proxy, &lines), 201, "{block} {forged}");
        }
        assert_eq!(
            by_http2(&proxy, "http://a.test/", &[]).await,
            201,
            "{block}"
        );
        assert_eq!(explained(&proxy, "http://a.test/", &[]), 201, "{block}");
    }
    let proxy = ruled(&["headers: {x-forwarded-for: {exact: '1.1.1.1,2.2.2.2,127.0.0.1'}}"]);
    for lines in [
        "Host: a.test\r\nx-forwarded-for: 1.1.1.1,2.2.2.2",
        "Host: a.test\r\nx-forwarded-for: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2",
    ] {
        assert_eq!(status(&proxy, lines), 201, "{lines}");
    }
}

#[tokio::test]
async fn rules_match_the_certificate_of_the_client_and_no_other() {
    let (ca, clients) = (Authority::new("ca"), Authority::new("clients"));
    let names = |name: &str| format!("spiffe://cluster.local/ns/default/sa/{name}");
    let [known, other] = ["known", "other"].map(|name| {
        clients.issue(Leaf {
            subject: name,
            names: &[&names(name)],
            ..Leaf::default()
        })
    });
    let pair = ca.server(&["a.example"]);
    let values = [
        ("tls.crt", pair.chain),
        ("tls.key", pair.key),
        ("ca.crt", clients.pem()),
    ];
    let values = values.each_ref().map(|(key, text)| (*key, text.as_str()));
    let rule = rules(&["headers: {x-forwarded-client-cert: {regex: '.*URI=[^;]*/sa/known.*'}}"]);
    let more = [
        secret("cred", &values),
        routes("cert", "[a.example]", &rule),
    ];
    let edge = Edge::start(ca, &more, |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            "{mode: MUTUAL, credentialName: cred}",
        )]
    });
    for (pair, expected) in [(&known, 201), (&other, NOTHING)] {
        let visitor = edge.visitor().with(pair);
        let mut client = visitor.client(Front::H1, "a.example").await.unwrap();
        let forged = format!("URI={}", names("known"));
        let request = Request::get("http://a.example/").header("x-forwarded-client-cert", forged);
        let answer: Answer = client.call(request.body(empty()).unwrap()).await;
        assert_eq!(answer.status, expected);
    }
}

#[test]
fn headers_that_connection_names_match_no_rule() {
    let proxy = ruled(&[
        "headers: {x-a: {exact: '1'}}",
        "headers: {connection: {}}",
        "headers: {keep-alive: {}}",
        "headers: {expect: {exact: 100-continue}}",
        "headers: {te: {exact: gzip}}",
    ]);
    for (lines, expected) in [
        ("x-a: 1", 201),
        ("x-a: 1\r\nConnection: x-a", NOTHING),
        ("Connection: keep-alive", NOTHING),
        ("Keep-Alive: 5", NOTHING),
        ("TE: gzip", NOTHING),
        // the rule takes an upgrade by the client's own spelling
        ("Connection: keep-alive, Upgrade\r\nUpgrade: websocket", 202),
        // refused before any rule
        ("Connection: x-forwarded-for", 400),
    ] {
        let lines = format!("Host: a.test\r\n{lines}");
        assert_eq!(status(&proxy, &lines), expected, "{lines}");
    }
    let without = ruled(&["withoutHeaders: {x-a: {}}"]);
    assert_eq!(
        status(&without, "Host: a.test\r\nx-a: 1\r\nConnection: X-A"),
        201
    );
}

#[tokio::test]
async fn cookie_crumbs_of_http2_are_one_cookie() {
    let proxy = ruled(&[
        "headers: {cookie: {exact: 'a=1; b=2'}}",
        "headers: {cookie: {exact: 'b=2'}}",
    ]);
    let crumbs = [("cookie", "a=1"), ("cookie", "b=2")];
    assert_eq!(by_http2(&proxy, "http://a.test/", &crumbs).await, 201);
    let present = ruled(&["headers: {cookie: {}}"]);
    for crumbs in [&[("cookie", "")][..], &[("cookie", ""), ("cookie", "")]] {
        assert_eq!(by_http2(&present, "http://a.test/", crumbs).await, NOTHING);
    }
    // lines of HTTP/1 are matched one by one
    assert_eq!(
        status(&proxy, "Host: a.test\r\ncookie: a=1\r\ncookie: b=2"),
        202
    );
    let without = ruled(&["withoutHeaders: {cookie: {regex: '.*b=2.*'}}"]);
    assert_eq!(by_http2(&without, "http://a.test/", &crumbs).await, NOTHING);
}

/// Returns a GET with these cookie fields.
fn with_crumbs(crumbs: &[&str]) -> Request<Body> {
    let mut request = Request::get("http://a.test/");
    for crumb in crumbs {
        request = request.header("cookie", *crumb);
    }
    request.body(empty()).unwrap()
}

#[tokio::test]
async fn operators_and_hash_keys_read_cookie_crumbs_as_one_cookie() {
    let proxy = Proxy::with(|edge| {
        let echo = "headers: {response: {set: {x-cookie: '%REQ(cookie)%'}}}";
        let rule = format!("- {{{echo}, directResponse: {{status: 200}}}}");
        documents([gateway(&[edge]), routes("all", "['*']", &rule)])
    });
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let answer = client.call(with_crumbs(&["a=1", "b=2"])).await;
    assert_eq!(answer.header("x-cookie"), Some("a=1; b=2"));

    let origins = ["one", "two", "three", "four"].map(Named::new);
    let origins = origins.each_ref().map(|origin| (origin, ""));
    let policy = "{loadBalancer: {consistentHash: {httpCookie: {name: user, ttl: 0s}}}}";
    let proxy = crate::balancing::proxy(&origins, policy, &[]);
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let mut answerers = [BTreeSet::new(), BTreeSet::new()];
    for number in 0..40 {
        let (other, user) = (format!("other={number}"), format!("user={number}"));
        let same = client.call(with_crumbs(&[&other, "user=ann"])).await;
        answerers[0].insert(same.text().to_owned());
        let differing = client.call(with_crumbs(&["other=1", &user])).await;
        answerers[1].insert(differing.text().to_owned());
    }
    assert_eq!(answerers[0].len(), 1);
    assert!(answerers[1].len() > 1);
}

#[tokio::test]
async fn lines_that_are_one_value_are_joined() {
    for name in [
        "accept",
        "user-agent",
        "authorization",
        "origin",
        "via",
        "x-forwarded-host",
    ] {
        let proxy = ruled(&[
            &format!("headers: {{{name}: {{exact: b}}}}"),
            &format!("headers: {{{name}: {{exact: 'a,b'}}}}"),
        ]);
        let lines = format!("Host: a.test\r\n{name}: a\r\n{name}: b");
        assert_eq!(status(&proxy, &lines), 202, "{name}");
        let headers = [(name, "a"), (name, "b")];
        assert_eq!(
            by_http2(&proxy, "http://a.test/", &headers).await,
            202,
            "{name}"
        );
        assert_eq!(explained(&proxy, "http://a.test/", &headers), 202, "{name}");
    }
    let proxy = ruled(&["headers: {accept: {exact: 'a,b'}}"]);
    let lines = "Host: a.test\r\naccept:\r\naccept: a\r\naccept:\r\naccept: b";
    assert_eq!(status(&proxy, lines), 201, "empty lines add nothing");
    let proxy = ruled(&["headers: {x-many: {exact: b}}"]);
    assert_eq!(
        status(&proxy, "Host: a.test\r\nx-many: a\r\nx-many: b"),
        201
    );
}

#[test]
fn several_origins_are_none_that_cors_allows() {
    let origin = Named::new("up");
    let proxy = Proxy::with(|edge| {
        let cors = "corsPolicy: {allowOrigins: [{exact: 'http://good'}]}";
        let rule = format!("- {{{cors}, route: [{{destination: {{host: a.test}}}}]}}");
        let policy = "{loadBalancer: {simple: RANDOM}}";
        let mesh = crate::balancing::mesh(edge, &[(origin.origin.address, "")], policy);
        let plain = "- {retries: {attempts: 0}, route: [{destination: {host: a.test}}]}";
        assert!(mesh.contains(plain));
        mesh.replace(plain, &rule)
    });
    let allowed = |lines: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n");
        let reply = Raw::connect(proxy.edge).send(request).reply();
        reply.has("access-control-allow-origin: http://good")
    };
    assert!(allowed("Origin: http://good\r\n"));
    assert!(!allowed("Origin: http://good\r\nOrigin: http://evil\r\n"));
    assert!(!allowed("Origin: http://evil\r\nOrigin: http://good\r\n"));
}

#[tokio::test]
async fn host_as_a_header_name_is_the_authority() {
    let proxy = ruled(&[
        "headers: {host: {exact: admin.test}}, uri: {prefix: /}",
        "headers: {Host: {exact: 'b.test:81'}}",
    ]);
    let without = ruled(&["withoutHeaders: {host: {exact: admin.test}}"]);
    for (host, with, unless) in [
        ("admin.test", 201, NOTHING),
        ("b.test:81", 202, 201),
        ("c.test", NOTHING, 201),
    ] {
        let url = format!("http://{host}/");
        for (proxy, expected) in [(&proxy, with), (&without, unless)] {
            assert_eq!(status(proxy, &format!("Host: {host}")), expected, "{host}");
            assert_eq!(by_http2(proxy, &url, &[]).await, expected, "{host}");
            assert_eq!(explained(proxy, &url, &[]), expected, "{host}");
            // the target wins over the field
            let absolute = format!("GET {url} HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n");
            let reply = Raw::connect(proxy.edge).send(absolute).reply();
            assert_eq!(reply.status, expected, "{host} in the target");
        }
    }
}

/// Starts a proxy for four origins with this hash key and rule, and with additional documents.
fn hashed(origins: &[Named; 4], (key, rule): (&str, &str), more: &str) -> Proxy {
    let start = Start::new();
    let at = origins.each_ref().map(|one| (one.origin.address, ""));
    let policy = format!("{{loadBalancer: {{consistentHash: {{httpHeaderName: '{key}'}}}}}}");
    let mesh = crate::balancing::mesh(start.edge(), &at, &policy);
    let plain = "{retries: {attempts: 0}, route: [{destination: {host: a.test}}]}";
    assert!(mesh.contains(plain));
    let mesh = mesh.replace(plain, rule);
    start.file("mesh.yaml", mesh + more).start()
}

/// Returns the origins that answer the requests; `request` returns target, host and additional lines by number.
fn answerers(
    proxy: &Proxy,
    request: impl Fn(usize) -> (String, String, String),
) -> BTreeSet<String> {
    let mut client = Raw::connect(proxy.edge);
    let answer = |number| {
        let (target, host, lines) = request(number);
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
        let reply = client.send(text).reply();
        String::from_utf8(reply.body).unwrap()
    };
    (0..40).map(answer).collect()
}

#[test]
fn hash_keys_of_authority_and_path_are_sticky() {
    let origins = ["one", "two", "three", "four"].map(Named::new);
    let rule = "{route: [{destination: {host: a.test}}]}";
    for key in [":authority", "host", "Host", ":path"] {
        let proxy = hashed(&origins, (key, rule), "");
        let same = |_| ("/a?b".to_owned(), "a.test".to_owned(), String::new());
        assert_eq!(answerers(&proxy, same).len(), 1, "{key}");
        let differing = |number| match key {
            ":path" => (format!("/?{number}"), "a.test".to_owned(), String::new()),
            _ => ("/".to_owned(), format!("h{number}.test"), String::new()),
        };
        assert!(answerers(&proxy, differing).len() > 1, "{key}");
    }
    // what the rule makes of them counts
    for (key, rewrite) in [(":authority", "authority: same"), (":path", "uri: /same")] {
        let rule = format!(
            "{{match: [{{uri: {{regex: '.*'}}}}], rewrite: {{{rewrite}}}, route: [{{destination: {{host: a.test}}}}]}}"
        );
        let proxy = hashed(&origins, (key, &rule), "");
        let differing = |number| {
            (
                format!("/{number}"),
                format!("h{number}.test"),
                String::new(),
            )
        };
        assert_eq!(answerers(&proxy, differing).len(), 1, "{key}");
    }
}

#[test]
fn hash_keys_are_taken_after_the_edits_of_the_rule() {
    let origins = ["one", "two", "three", "four"].map(Named::new);
    let with_user = |number: usize| {
        (
            "/".to_owned(),
            "a.test".to_owned(),
            format!("x-user: {number}\r\n"),
        )
    };
    let set = "{headers: {request: {set: {x-user: all}}}, route: [{destination: {host: a.test}}]}";
    let proxy = hashed(&origins, ("x-user", set), "");
    assert_eq!(answerers(&proxy, with_user).len(), 1);
    // explanations lead to the endpoint that answers
    let found = answerers(&proxy, with_user).pop_first().unwrap();
    let origin = origins.iter().zip(["one", "two", "three", "four"]);
    let origin = origin
        .into_iter()
        .find(|(_, name)| *name == found)
        .unwrap()
        .0;
    let url = format!(
        "/explain?url=http://a.test:{}/&header=x-user:7",
        proxy.edge.port()
    );
    let page = proxy.page(&url);
    let leads = format!("which leads to {}", origin.origin.address);
    assert!(page.contains(&leads), "{leads}: {page}");

    let copied = "{headers: {request: {set: {x-user: '%REQ(x-other)%'}}}, route: [{destination: {host: a.test}}]}";
    let proxy = hashed(&origins, ("x-user", copied), "");
    let other = |number: usize| {
        let (target, host, line) = with_user(number);
        (target, host, format!("{line}x-other: same\r\n"))
    };
    assert_eq!(answerers(&proxy, other).len(), 1);

    // the client's address, which the proxy adds
    let rule = "{route: [{destination: {host: a.test}}]}";
    let proxy = hashed(&origins, ("x-forwarded-for", rule), "");
    let none = |_| ("/".to_owned(), "a.test".to_owned(), String::new());
    assert_eq!(answerers(&proxy, none).len(), 1);
}

#[test]
fn hash_keys_of_destinations_without_weight_do_not_count() {
    let origins = ["one", "two", "three", "four"].map(Named::new);
    let rule = "{route: [{destination: {host: a.test}, weight: 100}, {destination: {host: b.test}, weight: 0}]}";
    let more = format!(
        "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: b}}\nspec:\n  \
         hosts: [b.test]\n  resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  \
         endpoints: [{{address: 127.0.0.1, ports: {{http: {}}}}}]\n\
         ---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: b}}\nspec:\n  \
         host: b.test\n  trafficPolicy: {{loadBalancer: {{consistentHash: {{httpHeaderName: x-b}}}}}}\n",
        origins[0].origin.address.port()
    );
    let proxy = hashed(&origins, ("x-a", rule), &more);
    let differing = |number: usize| {
        let lines = format!("x-a: same\r\nx-b: {number}\r\n");
        ("/".to_owned(), "a.test".to_owned(), lines)
    };
    assert_eq!(answerers(&proxy, differing).len(), 1);
}
