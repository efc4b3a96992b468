//! BackendTLSPolicy, and the certificate that a Gateway shows to backends, over live sockets.

use super::{Edge, ONE, object, path, route, rule, service};
use crate::support::eventually;
use crate::support::pki::{Authority, Leaf};
use crate::support::tls::credential;
use crate::support::tls_origin::{Caller, Speaks, Terms, TlsOrigin};

/// Returns a ConfigMap with CA certificates.
pub(super) fn authorities(id: &str, pem: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let lines: String = pem.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata:\n  ca.crt: |\n{lines}"
    )
}

/// Returns a policy for a Service, verified by the ConfigMap `ca`.
fn policy(name: &str, target: &str, validation: &str) -> String {
    let spec = format!(
        "targetRefs: [{{group: '', kind: Service, name: {target}}}], \
         validation: {{caCertificateRefs: [{{group: '', kind: ConfigMap, name: ca}}], {validation}}}"
    );
    object("BackendTLSPolicy", &format!("edge/{name}"), &spec)
}

fn to(name: &str) -> String {
    route("r", "", &rule(&path("PathPrefix", "/"), name))
}

fn only(origin: &TlsOrigin) -> Caller {
    let callers = origin.callers();
    assert_eq!(callers.len(), 1, "{callers:?}");
    callers.into_iter().next().unwrap()
}

#[test]
fn backend_gets_the_hostname_as_sni_and_the_protocol_that_it_speaks() {
    let ca = Authority::new("ca");
    for (speaks, app_protocol, alpn) in [
        (Speaks::H1, "HTTPS", "http/1.1"),
        (Speaks::H2, "kubernetes.io/h2c", "h2"),
    ] {
        let origin = TlsOrigin::start(speaks, &Terms::new(&ca.server(&["abc.example.com"])));
        let port = format!("port: 80, appProtocol: {app_protocol}");
        let service = service("edge/s", origin.address).replace("port: 80", &port);
        let edge = Edge::start(ONE, &[]);
        edge.set(&[
            to("s"),
            service,
            policy("p", "s", "hostname: abc.example.com"),
            authorities("edge/ca", &ca.pem()),
        ]);
        assert_eq!(edge.answer("shop.test", "/"), "hello", "{speaks:?}");
        let caller = only(&origin);
        assert_eq!(caller.sni.as_deref(), Some("abc.example.com"));
        assert_eq!(caller.alpn, [alpn]);
        assert_eq!(caller.hosts, ["shop.test"]);
        assert_eq!(caller.certificate, None);
    }
}

#[test]
fn backend_is_verified_by_authority_and_name() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let id = "spiffe://cluster.local/ns/a/sa/b";
    let by_name = "hostname: abc.example.com";
    let by = |names: &str| format!("hostname: sni.test, subjectAltNames: [{names}]");
    let dns = |name: &str| format!("{{type: Hostname, hostname: {name}}}");
    let uri = format!("{{type: URI, uri: '{id}'}}");
    let rows = [
        (&ca, &["abc.example.com"][..], by_name.to_owned(), true),
        (&ca, &["*.example.com"], by_name.to_owned(), true),
        (&ca, &["other.example.com"], by_name.to_owned(), false),
        (&other, &["abc.example.com"], by_name.to_owned(), false),
        (&ca, &["abc.example.com"], by(&dns("abc.example.com")), true),
        (&ca, &["*.example.com"], by(&dns("abc.example.com")), true),
        (&ca, &["sni.test"], by(&dns("abc.example.com")), false),
        (&ca, &[id], by(&uri), true),
        (
            &ca,
            &["a.test", id],
            by(&format!("{}, {uri}", dns("b.test"))),
            true,
        ),
        (&ca, &["spiffe://other/ns/a/sa/b"], by(&uri), false),
        (&other, &[id], by(&uri), false),
    ];
    for (authority, names, validation, is_served) in rows {
        let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&authority.server(names)));
        let edge = Edge::start(ONE, &[]);
        edge.set(&[
            to("s"),
            service("edge/s", origin.address),
            policy("p", "s", &validation),
            authorities("edge/ca", &ca.pem()),
        ]);
        let expected = if is_served { "hello" } else { "503" };
        assert_eq!(
            edge.answer("shop.test", "/"),
            expected,
            "{names:?} {validation}"
        );
    }
}

#[test]
fn policy_of_a_port_comes_before_that_of_the_service_and_older_ones_before_younger_ones() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["old.test", "young.test", "port.test", "late.test"]);
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&pair));
    let of = |name: &str, year: u16, section: &str| {
        let text = policy(name, "s", &format!("hostname: {name}.test"));
        let created = format!("metadata: {{creationTimestamp: '{year}-01-01T00:00:00Z', ");
        let target = format!("name: s{section}}}");
        text.replace("name: s}", &target)
            .replace("metadata: {", &created)
    };
    let (old, young) = (of("old", 2024, ""), of("young", 2025, ""));
    let port = of("port", 2026, ", sectionName: http");
    let late = of("late", 2026, "");
    let edge = Edge::start(ONE, &[]);
    for (policies, expected) in [
        (vec![&young], "young.test"),
        (vec![&young, &old], "old.test"),
        (vec![&young, &old, &port], "port.test"),
        // not the first one again, whose connections may still be open
        (vec![&late], "late.test"),
    ] {
        let mut documents = vec![
            to("s"),
            service("edge/s", origin.address),
            authorities("edge/ca", &ca.pem()),
        ];
        documents.extend(policies.into_iter().cloned());
        edge.set(&documents);
        // connections of another policy are not used
        let before = origin.callers().len();
        assert_eq!(edge.answer("shop.test", "/"), "hello");
        let callers = origin.callers();
        assert_eq!(callers.len(), before + 1);
        assert_eq!(callers[before].sni.as_deref(), Some(expected));
    }
}

#[test]
fn backend_whose_policy_has_no_ca_answers_500_and_gets_nothing() {
    let ca = Authority::new("ca");
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["s.test"])));
    let edge = Edge::start(ONE, &[]);
    let cors = "{type: CORS, cors: {allowOrigins: ['*']}}";
    let fixed = [
        route(
            "r",
            "",
            &format!("{{filters: [{cors}], backendRefs: [{{name: s, port: 80}}]}}"),
        ),
        service("edge/s", origin.address),
    ];
    let with = |more: &[String]| edge.set(&[&fixed[..], more].concat());
    let good = policy("p", "s", "hostname: s.test");
    let wrong_kind = good.replace("kind: ConfigMap", "kind: Pod");
    with(std::slice::from_ref(&good));
    assert_eq!(
        edge.answer("shop.test", "/"),
        "500",
        "there is no ConfigMap"
    );
    with(&[good.clone(), authorities("edge/ca", "")]);
    assert_eq!(
        edge.answer("shop.test", "/"),
        "500",
        "it has no certificate"
    );
    with(&[wrong_kind, authorities("edge/ca", &ca.pem())]);
    assert_eq!(
        edge.answer("shop.test", "/"),
        "500",
        "it is of another kind"
    );
    assert_eq!(origin.callers(), []);
    with(&[good.clone(), authorities("edge/ca", &ca.pem())]);
    assert_eq!(edge.answer("shop.test", "/"), "hello");
    let other = authorities("edge/ca", &Authority::new("other").pem());
    with(&[good.clone(), other]);
    assert_eq!(
        edge.answer("shop.test", "/"),
        "503",
        "another CA is in effect"
    );
    let rejected = good.replace("name: p,", "name: q,");
    let rejected = rejected.replace("hostname: s.test", "hostname: '*.test'");
    with(&[rejected, authorities("edge/ca", &ca.pem())]);
    assert_eq!(
        edge.answer("shop.test", "/"),
        "500",
        "the policy is rejected"
    );
}

#[test]
fn gateway_shows_its_certificate_to_backends_with_a_policy() {
    let ca = Authority::new("ca");
    let [one, two] = ["one", "two"].map(|subject| {
        ca.issue(Leaf {
            subject,
            names: &["client.test"],
            ..Leaf::default()
        })
    });
    let terms = Terms::new(&ca.server(&["s.test"])).for_clients_of(&ca);
    let origin = TlsOrigin::start(Speaks::H1, &terms);
    let edge = Edge::start(
        &ONE.replace("port: PORT", "port: PORT, hostname: none.test"),
        &[],
    );
    let (ip, port) = (edge.proxy.edge.ip(), edge.proxy.edge.port());
    let gateway = |name: &str, target: &str| {
        let listener =
            format!("{{name: http, protocol: HTTP, port: {port}, hostname: {name}.test}}");
        let tls = format!("tls: {{backend: {{clientCertificateRef: {{{target}}}}}}}");
        let spec = format!(
            "gatewayClassName: strait, addresses: [{{value: {ip}}}], {tls}, listeners: [{listener}]"
        );
        object("Gateway", &format!("edge/{name}"), &spec)
    };
    let secret = |id: &str, pair| {
        let (namespace, name) = id.split_once('/').unwrap();
        credential(name, pair).replace(
            "metadata: {",
            &format!("metadata: {{namespace: {namespace}, "),
        )
    };
    let parents = "parentRefs: [{name: one}, {name: two}]";
    let mut documents = vec![
        to("s").replace("parentRefs: [{name: main}]", parents),
        service("edge/s", origin.address),
        policy("p", "s", "hostname: s.test"),
        authorities("edge/ca", &ca.pem()),
        gateway("one", "name: one"),
        gateway("two", "name: two, namespace: other"),
        secret("edge/one", &one),
        secret("other/two", &two),
    ];
    edge.set(&documents);
    assert_eq!(edge.answer("one.test", "/"), "hello");
    assert_eq!(
        edge.answer("two.test", "/"),
        "503",
        "no grant permits the Secret"
    );
    let grant = "from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: edge}], to: [{group: '', kind: Secret}]";
    documents.push(object("ReferenceGrant", "other/g", grant));
    edge.set(&documents);
    for _ in 0..4 {
        assert_eq!(edge.answer("one.test", "/"), "hello");
        assert_eq!(edge.answer("two.test", "/"), "hello");
    }
    let of = |der: &[u8]| {
        let callers = origin.callers();
        let own = callers
            .iter()
            .filter(|caller| caller.certificate.as_deref() == Some(der));
        own.map(|caller| caller.hosts.clone())
            .collect::<Vec<_>>()
            .concat()
    };
    assert_eq!(of(&one.der), ["one.test"; 5]);
    assert_eq!(of(&two.der), ["two.test"; 4]);
}

#[test]
fn policy_replaces_the_tls_of_a_destination_rule() {
    let ca = Authority::new("ca");
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["s.test"])));
    let edge = Edge::start(ONE, &[]);
    let destination_rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: s, namespace: edge}\n\
                            spec: {host: s, trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}, tls: {mode: SIMPLE, sni: other.test}}}\n";
    edge.set(&[
        to("s"),
        service("edge/s", origin.address),
        policy("p", "s", "hostname: s.test"),
        authorities("edge/ca", &ca.pem()),
        destination_rule.to_owned(),
    ]);
    for _ in 0..3 {
        assert_eq!(edge.answer("shop.test", "/"), "hello");
    }
    let callers = origin.callers();
    assert_eq!(callers.len(), 3, "the other settings of the rule apply");
    assert!(
        callers
            .iter()
            .all(|one| one.sni.as_deref() == Some("s.test"))
    );
}

#[test]
fn mirrored_requests_are_sent_by_the_policy_of_their_backend() {
    let ca = Authority::new("ca");
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["s.test"])));
    let edge = Edge::start(ONE, &[]);
    let mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: s, port: 80}}}";
    edge.set(&[
        route(
            "r",
            "",
            &format!("{{filters: [{mirror}], backendRefs: [{{name: a, port: 80}}]}}"),
        ),
        service("edge/s", origin.address),
        policy("p", "s", "hostname: s.test"),
        authorities("edge/ca", &ca.pem()),
    ]);
    assert_eq!(edge.answer("shop.test", "/"), "a");
    eventually("the mirror gets a copy over TLS", || {
        let callers = origin.callers();
        callers
            .iter()
            .any(|one| one.sni.as_deref() == Some("s.test") && !one.hosts.is_empty())
    });
}

#[test]
fn websocket_over_tls_needs_a_policy() {
    let ca = Authority::new("ca");
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["s.test"])));
    let edge = Edge::start(ONE, &[]);
    let wss = "port: 80, appProtocol: kubernetes.io/wss";
    let mut documents = vec![
        to("s"),
        service("edge/s", origin.address).replace("port: 80", wss),
        authorities("edge/ca", &ca.pem()),
    ];
    edge.set(&documents);
    assert_eq!(edge.answer("shop.test", "/"), "500");
    documents.push(policy("p", "s", "hostname: s.test"));
    edge.set(&documents);
    assert_eq!(edge.answer("shop.test", "/"), "hello");
}
