//! BackendTrafficPolicy: limits on requests and bodies. Each test changes the policies of a proxy that runs, and sends
//! requests as raw bytes.

mod bodies;
mod explained;
mod service;
mod targets;

use crate::support::eventually;
use crate::support::mesh::{documents, everything_to};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{Raw, Reply};

/// Gateway with the rule `all` of the VirtualService `all`, and its endpoint.
struct Edge {
    proxy: Proxy,
    origin: Origin,
}

const ALL: &str = "{group: networking.istio.io, kind: VirtualService, name: all}";

/// Returns a policy of this name for these targets.
fn policy(name: &str, targets: &str, fields: &str) -> String {
    format!(
        "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\n\
         metadata: {{name: {name}}}\nspec: {{targetRefs: [{targets}], {fields}}}\n"
    )
}

/// Returns a policy for all routes with these local rules.
fn local(rules: &[&str]) -> String {
    let rules = rules.join("}, {");
    policy(
        "own",
        ALL,
        &format!("rateLimit: {{local: {{rules: [{{{rules}}}]}}}}"),
    )
}

/// Returns a rule with this number of requests per hour for what the selectors select.
fn hourly(requests: u32, selectors: &str) -> String {
    format!("clientSelectors: [{selectors}], limit: {{requests: {requests}, unit: Hour}}")
}

impl Edge {
    fn start(arguments: &[&str]) -> Self {
        let origin = Origin::start(Back::H1, |request| async move {
            use http_body_util::BodyExt as _;
            // as long as the request
            let read = request.into_body().collect().await;
            let bytes = read.map_or_else(|_| 0, |body| body.to_bytes().len());
            hyper::Response::new(full(format!("read {bytes}")))
        });
        let start = Start::new();
        let mesh = everything_to(start.edge(), &origin);
        let proxy = start
            .args(["--labels", "istio=ingressgateway,app=edge"])
            .args(arguments.iter().copied())
            .file("mesh.yaml", mesh)
            .file("policies.yaml", "")
            .start();
        Self { proxy, origin }
    }

    /// Puts these policies into effect.
    fn set(&self, policies: &[String]) {
        self.change("policies.yaml", &documents(policies));
    }

    /// Puts a file into effect.
    fn change(&self, name: &str, text: &str) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        self.proxy.write(name, text);
        eventually("the change is in effect", || generation() > before);
    }

    fn request(&self, headers: &str) -> Reply {
        self.send(&format!("GET / HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n"))
    }

    fn send(&self, text: &str) -> Reply {
        Raw::connect(self.proxy.edge).send(text).reply()
    }

    fn status(&self, headers: &str) -> u16 {
        self.request(headers).status
    }

    fn counted(&self, result: &str) -> f64 {
        self.proxy
            .metric("strait_rate_limit_total", &[("result", result)])
    }
}

#[test]
fn limit_is_exact_over_all_workers() {
    let edge = Edge::start(&["--concurrency", "8"]);
    edge.set(&[local(&[&hourly(10, "")])]);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| (0..50).map(|_| edge.status("")).collect::<Vec<_>>()))
            .collect();
        let statuses = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        statuses.collect()
    });
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(200), count(429)), (10, 990));
    assert_eq!(edge.origin.seen().len(), 10);
    assert_eq!(
        (edge.counted("allowed"), edge.counted("denied")),
        (10.0, 990.0)
    );
}

#[test]
fn refusal_says_when_to_come_back() {
    let edge = Edge::start(&[]);
    edge.set(&[local(&[&hourly(2, "")])]);
    assert!(
        !edge
            .request("")
            .headers
            .iter()
            .any(|line| line.starts_with("x-ratelimit"))
    );
    assert_eq!(edge.status(""), 200);
    let refused = edge.request("");
    assert_eq!(refused.status, 429);
    assert_eq!(refused.body, b"local_rate_limited");
    for line in ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 0"] {
        assert!(refused.has(line), "{refused:?}");
    }
    let seconds = |name: &str| {
        let mut lines = refused.headers.iter();
        let value = lines.find_map(|line| line.strip_prefix(name)).unwrap();
        value.parse::<u32>().unwrap()
    };
    assert!(
        (1700..=1800).contains(&seconds("x-ratelimit-reset: ")),
        "{refused:?}"
    );
    assert_eq!(seconds("retry-after: "), seconds("x-ratelimit-reset: "));
    let grpc = edge.request("content-type: application/grpc\r\n");
    assert_eq!(grpc.status, 200);
    assert!(grpc.has("grpc-status: 14") && grpc.has("grpc-message: local_rate_limited"));
    assert!(grpc.has("x-ratelimit-limit: 2"), "{grpc:?}");
    let refused = |line: &serde_json::Value| {
        line["response_code"] == 429
            && line["response_flags"] == "RL"
            && line["response_code_details"] == "local_rate_limited"
    };
    eventually("the refusal is logged", || {
        edge.proxy.access_log().iter().any(refused)
    });
}

#[test]
fn each_address_has_a_limit_of_its_own() {
    const EACH: &str = "{sourceCIDR: {type: Distinct, value: 0.0.0.0/0}}";
    let trusting = Edge::start(&["--trusted-hops", "1"]);
    trusting.set(&[local(&[&hourly(3, EACH)])]);
    for client in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
        let from = format!("x-forwarded-for: {client}\r\n");
        let statuses: Vec<u16> = (0..4).map(|_| trusting.status(&from)).collect();
        assert_eq!(statuses, [200, 200, 200, 429], "{client}");
    }
    // no proxy in front of this one is trusted
    let edge = Edge::start(&[]);
    edge.set(&[local(&[&hourly(3, EACH)])]);
    let statuses: Vec<u16> = (1..5)
        .map(|last| edge.status(&format!("x-forwarded-for: 10.0.0.{last}\r\n")))
        .collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[test]
fn clients_with_ipv6_are_told_apart_by_their_networks() {
    const EACH: &str = "{sourceCIDR: {type: Distinct, value: '::/0'}}";
    let clients = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
    for (arguments, expected) in [
        (&["--trusted-hops", "1"][..], [200, 429, 200]),
        (
            &["--trusted-hops", "1", "--rate-limit-ipv6-prefix", "128"],
            [200, 200, 200],
        ),
    ] {
        let edge = Edge::start(arguments);
        edge.set(&[local(&[&hourly(1, EACH)])]);
        let statuses = clients.map(|client| edge.status(&format!("x-forwarded-for: {client}\r\n")));
        assert_eq!(statuses, expected);
        assert_eq!(
            edge.status("x-forwarded-for: 10.0.0.1\r\n"),
            200,
            "not in the block"
        );
        assert_eq!(edge.status("x-forwarded-for: 10.0.0.1\r\n"), 200);
    }
}

#[test]
fn values_of_headers_have_limits_of_their_own() {
    let edge = Edge::start(&[]);
    edge.set(&[local(&[&hourly(
        1,
        "{headers: [{name: X-User, type: Distinct}]}",
    )])]);
    let statuses = ["x-user: a\r\n", "x-user: a\r\n", "x-user: b\r\n", "", ""]
        .map(|header| edge.status(header));
    assert_eq!(statuses, [200, 429, 200, 200, 200]);
}

#[test]
fn conditions_select_requests() {
    let edge = Edge::start(&[]);
    for (selectors, limited, free) in [
        ("{methods: [{value: POST}]}", "POST / ", "PUT / "),
        (
            "{methods: [{value: GET, invert: true}]}",
            "POST / ",
            "GET / ",
        ),
        ("{path: {value: /api}}", "GET /api/x ", "GET /apis "),
        (
            "{path: {type: Exact, value: /api}}",
            "GET /api?a ",
            "GET /api/ ",
        ),
        (
            "{path: {type: RegularExpression, value: '/a.*'}}",
            "GET /abc ",
            "GET /b/a ",
        ),
        (
            "{queryParams: [{name: q, value: '1'}]}",
            "GET /?q=1 ",
            "GET /?q=2 ",
        ),
        (
            "{path: {value: /a}}, {methods: [{value: GET}]}",
            "GET /a ",
            "GET / ",
        ),
        ("{sourceCIDR: {value: 127.0.0.0/8}}", "GET / ", ""),
        (
            "{sourceCIDR: {value: '::ffff:127.0.0.0/104'}}",
            "GET / ",
            "",
        ),
        ("{sourceCIDR: {value: 10.0.0.0/8}}", "", "GET / "),
    ] {
        edge.set(&[local(&[&hourly(0, selectors)])]);
        for (target, status) in [(limited, 429), (free, 200)] {
            if !target.is_empty() {
                let text = format!("{target}HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
                assert_eq!(edge.send(&text).status, status, "{selectors} {target}");
            }
        }
    }
}

#[test]
fn spelling_of_a_host_does_not_get_around_a_limit() {
    let edge = Edge::start(&[]);
    let status = |host: &str| {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        edge.send(&text).status
    };
    let spellings = ["a.test", "A.test", "a.test:80", "a.test.", "a.TEST.:81"];
    for condition in [
        "value: a.test",
        "value: 'A.test:80'",
        "type: RegularExpression, value: 'a[.]test'",
        "value: b.test, invert: true",
    ] {
        let selector = format!("{{headers: [{{name: Host, {condition}}}]}}");
        edge.set(&[local(&[&hourly(0, &selector)])]);
        assert_eq!(spellings.map(status), [429; 5], "{condition}");
        assert_eq!(status("b.test"), 200, "{condition}");
        assert_eq!(status("B.test:80"), 200, "{condition}");
    }
    edge.set(&[local(&[&hourly(
        1,
        "{headers: [{name: host, type: Distinct}]}",
    )])]);
    assert_eq!(spellings.map(status), [200, 429, 429, 429, 429]);
    assert_eq!(status("b.test"), 200);
}

#[test]
fn all_rules_count_a_request_or_none_does() {
    let edge = Edge::start(&[]);
    let narrow = hourly(1, "{path: {value: /}}");
    edge.set(&[local(&[
        &hourly(3, ""),
        &format!("{narrow}, cost: {{request: {{from: Number, number: 1}}}}"),
    ])]);
    assert_eq!(
        [edge.status(""), edge.status(""), edge.status("")],
        [200, 429, 429]
    );
    // the first rule has counted one request
    edge.set(&[local(&[&hourly(3, "")])]);
    assert_eq!(
        [edge.status(""), edge.status(""), edge.status("")],
        [200, 200, 429]
    );
}

#[test]
fn cost_and_shadow_mode_of_rules() {
    let edge = Edge::start(&[]);
    let costly = "cost: {request: {from: Number, number: 5}}";
    edge.set(&[local(&[&format!("{}, {costly}", hourly(10, ""))])]);
    assert_eq!(
        [edge.status(""), edge.status(""), edge.status("")],
        [200, 200, 429]
    );
    edge.set(&[local(&[&format!(
        "{}, shadowMode: true",
        hourly(1, "{path: {value: /}}")
    )])]);
    assert_eq!([edge.status(""), edge.status("")], [200, 200]);
    assert_eq!(edge.counted("shadow_denied"), 1.0);
}

#[test]
fn denied_request_is_not_counted() {
    let edge = Edge::start(&[]);
    let denies = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: deny}\n\
                  spec: {action: DENY, rules: [{when: [{key: 'request.headers[x-no]', values: ['*']}]}]}\n";
    edge.set(&[denies.to_owned(), local(&[&hourly(1, "")])]);
    for _ in 0..3 {
        assert_eq!(edge.status("x-no: 1\r\n"), 403);
    }
    assert_eq!([edge.status(""), edge.status("")], [200, 429]);
    assert_eq!(edge.status("x-no: 1\r\n"), 403);
}

#[test]
fn rules_without_headers_can_come_before_authorization() {
    let edge = Edge::start(&["--rate-limit-before-authorization"]);
    let denies = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: deny}\n\
                  spec: {action: DENY, rules: [{when: [{key: 'request.headers[x-no]', values: ['*']}]}]}\n";
    let user = hourly(1, "{headers: [{name: x-user, value: a}]}");
    edge.set(&[denies.to_owned(), local(&[&hourly(3, ""), &user])]);
    // the rule about a header waits for authorization
    assert_eq!(edge.status("x-no: 1\r\nx-user: a\r\n"), 403);
    // each is counted once
    assert_eq!([edge.status("x-user: a\r\n"), edge.status("")], [200, 200]);
    assert_eq!([edge.status("x-no: 1\r\n"), edge.status("")], [429, 429]);
}

#[test]
fn tokens_last_as_long_as_their_rule() {
    let edge = Edge::start(&[]);
    let rule = hourly(2, "{path: {value: /}}");
    edge.set(&[local(&[&rule])]);
    assert_eq!([edge.status(""), edge.status("")], [200, 200]);
    // the same rule in another place, with another one before it
    edge.set(&[local(&[&hourly(100, "{path: {value: /other}}"), &rule])]);
    assert_eq!(edge.status(""), 429);
    edge.set(&[local(&[&hourly(3, "{path: {value: /}}")])]);
    assert_eq!(edge.status(""), 200);
}

#[test]
fn preflights_and_redirects_are_not_counted() {
    let edge = Edge::start(&[]);
    let origin = edge.origin.address;
    let cors = "- {name: all, corsPolicy: {allowOrigins: [{exact: 'http://a.test'}], allowMethods: [GET]}, \
                route: [{destination: {host: web.test}}]}";
    let mesh = [
        crate::support::mesh::gateway(&[edge.proxy.edge]),
        crate::support::mesh::service("web", Back::H1, &[(origin, "v1")]),
        crate::support::mesh::routes("all", "['*']", cors),
    ];
    edge.proxy.write("mesh.yaml", documents(mesh));
    edge.set(&[local(&[&hourly(1, "")])]);
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: a.test\r\nOrigin: http://a.test\r\n\
                     Access-Control-Request-Method: GET\r\n\r\n";
    let allows = "access-control-allow-origin: http://a.test";
    for _ in 0..3 {
        eventually("the rule has CORS", || edge.send(preflight).has(allows));
    }
    let own = "Origin: http://a.test\r\n";
    assert_eq!(edge.status(own), 200);
    let refused = edge.request(own);
    assert_eq!(refused.status, 429);
    assert!(
        refused.has(allows),
        "the page may read the refusal: {refused:?}"
    );
}
