//! Effects of rules on live requests.

use hyper::Request;

use crate::support::client::{Client, Front, get};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes, service, subsets};
use crate::support::origin::{Back, Origin, empty};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;

/// Two versions of one service behind rules.
struct World {
    v1: Origin,
    v2: Origin,
    proxy: Proxy,
}

fn world(http: &str) -> World {
    let (v1, v2) = (Origin::named(Back::H1, "v1"), Origin::named(Back::H1, "v2"));
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            service("web", Back::H1, &[(v1.address, "v1"), (v2.address, "v2")]),
            subsets("web", &["v1", "v2"]),
            routes("rules", "[a.test, \"*.wild.test\"]", http),
        ])
    });
    World { v1, v2, proxy }
}

impl World {
    async fn client(&self) -> Client {
        Client::connect(Front::H1, self.proxy.edge).await
    }
}

#[tokio::test]
async fn first_matching_rule_in_order_wins() {
    let world = world(
        "\
- match:
  - {uri: {exact: /exact}, method: {exact: GET}}
  - {headers: {x-version: {prefix: two}}, queryParams: {q: {exact: \"1\"}}}
  route: [{destination: {host: web.test, subset: v2}}]
- match: [{uri: {prefix: /exact}}]
  directResponse: {status: 418, body: {string: teapot}}
- match: [{uri: {regex: \"/item/[0-9]+\"}}]
  route: [{destination: {host: web.test, subset: v2}}]
- route: [{destination: {host: web.test, subset: v1}}]
",
    );
    let mut client = world.client().await;
    for (path, header, expected) in [
        ("/exact", "", "v2"),
        ("/exact?x=y", "", "v2"),
        ("/exactly", "", "teapot"),
        ("/item/42", "", "v2"),
        ("/item/", "", "v1"),
        ("/x?q=1", "two-point-one", "v2"),
        ("/x?q=2", "two-point-one", "v1"),
        ("/x?q=1", "one", "v1"),
        ("/", "", "v1"),
    ] {
        let mut request = get(path);
        if !header.is_empty() {
            let headers = request.headers_mut();
            headers.insert("x-version", header.parse().unwrap());
        }
        assert_eq!(
            client.call(request).await.text(),
            expected,
            "{path} {header}"
        );
    }
    let post = Request::post("http://a.test/exact").body(empty()).unwrap();
    assert_eq!(client.call(post).await.status, 418);
    assert_eq!(world.v1.seen().len() + world.v2.seen().len(), 8);
}

#[tokio::test]
async fn source_labels_match_the_labels_of_the_proxy() {
    let says = |conditions: &str, body: &str| {
        format!(
            "- match: [{{sourceLabels: {{{conditions}}}}}]\n  directResponse: {{status: 200, body: {{string: {body}}}}}\n"
        )
    };
    for (labels, expected) in [
        ("istio: ingressgateway", "taken"),
        ("istio: other", "left"),
        ("istio: ingressgateway, app: edge", "left"),
        ("app: edge", "left"),
    ] {
        let world = world(
            &(says(labels, "taken") + "- directResponse: {status: 200, body: {string: left}}"),
        );
        let answer = world.client().await.get("/").await;
        assert_eq!(answer.text(), expected, "{labels}");
    }
}

#[tokio::test]
async fn requests_of_match_blocks_are_counted_by_stat_prefix() {
    let world = world(
        "\
- match: [{uri: {prefix: /cart}, statPrefix: cart}, {uri: {prefix: /item}, statPrefix: item}]
  route: [{destination: {host: web.test, subset: v1}}]
- match: [{uri: {prefix: /teapot}, statPrefix: cart}]
  directResponse: {status: 418}
- route: [{destination: {host: web.test, subset: v1}}]
",
    );
    let mut client = world.client().await;
    for path in ["/cart", "/cart/1", "/item", "/teapot", "/plain"] {
        client.get(path).await;
    }
    let counted = |prefix: &str, class: &str| {
        let labels = [("stat_prefix", prefix), ("response_code_class", class)];
        world.proxy.metric("strait_route_requests_total", &labels)
    };
    eventually("all are counted", || {
        let counts = [("cart", "2xx"), ("item", "2xx"), ("cart", "4xx")];
        counts.map(|(prefix, class)| counted(prefix, class)) == [2.0, 1.0, 1.0]
    });
    let all = world.proxy.metric("strait_route_requests_total", &[]);
    assert_eq!(
        all, 4.0,
        "the request of the rule without one is not counted"
    );
}

#[tokio::test]
async fn request_host_selects_the_virtual_host() {
    let world = world("- {directResponse: {status: 200, body: {string: rules}}}");
    let mut client = world.client().await;
    for (host, status) in [
        ("a.test", 200),
        ("A.TEST", 200),
        ("a.test:1234", 200),
        ("x.wild.test", 200),
        ("x.y.wild.test", 200),
        ("wild.test", 404),
        ("b.test", 404),
        ("xa.test", 404),
    ] {
        let request = Request::get(format!("http://{host}/")).body(empty());
        let answer = client.call(request.unwrap()).await;
        assert_eq!(answer.status, status, "{host}");
        assert_eq!(answer.body.is_empty(), status == 404);
    }
    let without = "GET / HTTP/1.1\r\n\r\n";
    assert_eq!(
        Raw::connect(world.proxy.edge).send(without).reply().status,
        400
    );
}

#[tokio::test]
async fn weights_split_requests() {
    let world = world(
        "\
- route:
  - {destination: {host: web.test, subset: v1}, weight: 75}
  - {destination: {host: web.test, subset: v2}, weight: 25}
",
    );
    let mut client = world.client().await;
    for _ in 0..400 {
        assert_eq!(client.get("/").await.status, 200);
    }
    // Five standard deviations around 100.
    let share = world.v2.seen().len();
    assert!((57..=143).contains(&share), "{share} of 400");
    assert_eq!(world.v1.seen().len() + share, 400);
}

#[tokio::test]
async fn rewrites_and_headers_are_applied() {
    let world = world(
        "\
- name: api
  match: [{uri: {prefix: /api/}}]
  rewrite: {uri: /v2/, authority: inner.test}
  headers:
    request: {set: {x-route: \"%ROUTE_NAME%\"}, add: {x-more: b}, remove: [x-debug]}
    response: {set: {x-answer: \"yes\"}, remove: [x-secret]}
  route: [{destination: {host: web.test, subset: v1}, headers: {request: {set: {x-split: one}}}}]
- match: [{uri: {regex: \"/items/[0-9]+\"}}]
  rewrite: {uriRegexRewrite: {match: \"^/items/([0-9]+)$\", rewrite: \"/item/\\\\1\"}}
  route: [{destination: {host: web.test, subset: v1}}]
",
    );
    let mut client = world.client().await;
    let mut request = get("/api/a%20b?c=d");
    let headers = request.headers_mut();
    headers.insert("x-debug", "1".parse().unwrap());
    headers.insert("x-more", "a".parse().unwrap());
    headers.insert("x-route", "mine".parse().unwrap());
    let answer = client.call(request).await;
    assert_eq!(answer.header("x-answer"), Some("yes"));
    let seen = world.v1.seen().pop().unwrap();
    assert_eq!((seen.path(), seen.host()), ("/v2/a%20b?c=d", "inner.test"));
    assert_eq!(seen.header("x-route"), Some("api"));
    assert_eq!(seen.header("x-debug"), None);
    assert_eq!(seen.header("x-split"), Some("one"));
    assert_eq!(seen.header("x-envoy-original-path"), Some("/api/a%20b?c=d"));
    let more: Vec<_> = seen.headers.get_all("x-more").iter().collect();
    assert_eq!(more, ["a", "b"]);

    client.get("/items/42?x=1").await;
    let seen = world.v1.seen().pop().unwrap();
    assert_eq!((seen.path(), seen.host()), ("/item/42?x=1", "a.test"));
    assert_eq!(client.get("/items/none").await.status, 404);
    let logged = world.proxy.logged("/api/a%20b?c=d");
    assert_eq!(logged["route_name"], "api");
    assert_eq!(logged["authority"], "inner.test");
}

#[tokio::test]
async fn redirects_and_direct_responses_need_no_origin() {
    let world = world(
        "\
- match: [{uri: {prefix: /old/}}]
  redirect: {prefixRewrite: /new/, redirectCode: 308}
- match: [{uri: {exact: /login}}]
  redirect: {scheme: https, authority: login.test, uri: /form}
- match: [{uri: {exact: /robots.txt}}]
  directResponse: {status: 200, body: {string: \"none\\n\"}}
  headers: {response: {set: {x-direct: \"yes\"}}}
- match: [{uri: {exact: /gone}}]
  directResponse: {status: 410}
",
    );
    for front in [Front::H1, Front::H2] {
        let mut client = Client::connect(front, world.proxy.edge).await;
        let answer = client.get("/old/a?b=c").await;
        assert_eq!((answer.status, answer.text()), (308, ""));
        assert_eq!(answer.header("location"), Some("http://a.test/new/a?b=c"));
        let answer = client.get("/login?x=1").await;
        assert_eq!(answer.status, 301);
        assert_eq!(
            answer.header("location"),
            Some("https://login.test/form?x=1")
        );
        let answer = client.get("/robots.txt").await;
        assert_eq!((answer.status, answer.text()), (200, "none\n"));
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        assert_eq!(answer.header("x-direct"), Some("yes"));
        assert_eq!(answer.header("x-envoy-upstream-service-time"), None);
        let head = Request::head("http://a.test/robots.txt").body(empty());
        let answer = client.call(head.unwrap()).await;
        assert_eq!((answer.status, answer.text()), (200, ""));
        assert_eq!(answer.header("content-length"), Some("5"));
        let answer = client.get("/gone").await;
        assert_eq!((answer.status, answer.text()), (410, ""));
        assert_eq!(answer.header("content-type"), None);
    }
    assert!(world.v1.seen().is_empty() && world.v2.seen().is_empty());
    let logged = world.proxy.logged("/robots.txt");
    assert_eq!(logged["response_code_details"], "direct_response");
    assert_eq!(logged["response_flags"], "-");
    assert_eq!(logged["bytes_sent"], 5);
}

#[tokio::test]
async fn delegates_and_several_virtual_services_serve_one_host() {
    let (v1, v2) = (Origin::named(Back::H1, "v1"), Origin::named(Back::H1, "v2"));
    let start = Start::new();
    let mesh = documents([
        gateway(&[start.edge()]),
        service("one", Back::H1, &[(v1.address, "v1")]),
        service("two", Back::H1, &[(v2.address, "v2")]),
        routes(
            "root",
            "[a.test]",
            "- {match: [{uri: {prefix: /shop}}], delegate: {name: shop}}",
        ),
        routes(
            "other",
            "[a.test]",
            "- {match: [{uri: {prefix: /other}}], route: [{destination: {host: two.test}}]}",
        ),
    ]);
    let delegate = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop}
spec:
  http:
  - match: [{uri: {prefix: /shop/cart}}]
    route: [{destination: {host: one.test}}]
  - match: [{uri: {prefix: /elsewhere}}]
    route: [{destination: {host: two.test}}]
";
    let proxy = start.file("a.yaml", mesh).file("b.yaml", delegate).start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/shop/cart/1").await.text(), "v1");
    assert_eq!(client.get("/other").await.text(), "v2");
    assert_eq!(client.get("/shop/list").await.status, 404);
    assert_eq!(client.get("/elsewhere").await.status, 404);
}

#[tokio::test]
async fn requests_and_their_labels_are_counted() {
    let world = world("- {name: all, route: [{destination: {host: web.test, subset: v2}}]}");
    let mut client = world.client().await;
    for _ in 0..3 {
        client.get("/counted?x=1").await;
    }
    let logged = world.proxy.logged("/counted?x=1");
    let upstream = world.v2.address.to_string();
    for (field, value) in [
        ("method", "GET"),
        ("protocol", "HTTP/1.1"),
        ("response_flags", "-"),
        ("response_code_details", "via_upstream"),
        ("authority", "a.test"),
        ("route_name", "all"),
        ("upstream_cluster", "outbound|80|v2|web.test"),
        ("upstream_host", &*upstream),
        ("x_forwarded_for", "127.0.0.1"),
    ] {
        assert_eq!(logged[field], value, "{field}: {logged}");
    }
    assert_eq!(logged["response_code"], 200);
    assert_eq!(logged["bytes_sent"], 2);
    assert_eq!(logged["bytes_received"], 0);
    assert_eq!(logged["request_id"].as_str().unwrap().len(), 36);
    let local = logged["downstream_local_address"].as_str().unwrap();
    assert_eq!(local, world.proxy.edge.to_string());
    let labels = [
        ("reporter", "source"),
        ("response_code", "200"),
        ("response_flags", "-"),
        ("request_protocol", "http"),
        ("destination_service", "web.test"),
        ("destination_version", "v2"),
    ];
    assert_eq!(world.proxy.metric("istio_requests_total", &labels), 3.0);
    let bytes = world.proxy.metric("istio_response_bytes_sum", &[]);
    assert_eq!(bytes, 6.0);
}
