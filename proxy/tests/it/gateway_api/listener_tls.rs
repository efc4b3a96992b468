//! Client certificates, options and certificates of HTTPS listeners, over live sockets.

use rustls::version::{TLS12, TLS13};

use super::backend_tls::authorities;
use super::{Edge, object, path, route, rule, service};
use crate::support::client::Front;
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::tls::{Visitor, get, secret};
use crate::support::{eventually, until};

/// Returns an HTTPS listener with the certificate of the Secret `cred`.
pub(super) fn https(options: &str) -> String {
    format!(
        "{{name: https, protocol: HTTPS, port: PORT, tls: {{certificateRefs: [{{name: cred}}], options: {{{options}}}}}}}"
    )
}

/// Returns a Secret with a certificate.
pub(super) fn credential(id: &str, pair: &Pair, more: &[(&str, &str)]) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let keys = [("tls.crt", &*pair.chain), ("tls.key", &*pair.key)];
    let text = secret(name, &[&keys, more].concat());
    text.replace(
        "metadata: {",
        &format!("metadata: {{namespace: {namespace}, "),
    )
}

pub(super) fn to_a() -> String {
    route("r", "", &rule(&path("PathPrefix", "/"), "a"))
}

pub(super) fn client(ca: &Authority) -> Pair {
    ca.issue(Leaf {
        subject: "client",
        names: &["client.test"],
        ..Leaf::default()
    })
}

/// Returns the status of a request; `None` if the handshake or the connection fails.
pub(super) async fn status(visitor: &Visitor) -> Option<u16> {
    let mut client = visitor.client(Front::H1, "shop.test").await.ok()?;
    let answer = client.try_call(get("shop.test", "/")).await.ok()?;
    Some(answer.status)
}

/// Starts a listener, on whose port the Gateway validates clients. Returns a client without a certificate.
fn validated(ca: &Authority, clients: &Authority, mode: &str) -> (Edge, Visitor) {
    let pair = ca.server(&["shop.test"]);
    let first = https("").replace("port: PORT", "port: PORT, hostname: none.test");
    let cred = credential("edge/cred", &pair, &[]);
    let edge = Edge::start_with(&first, &[], &[cred]);
    let (ip, port) = (edge.proxy.edge.ip(), edge.proxy.edge.port());
    let validation = |name: &str| {
        format!(
            "{{validation: {{mode: {mode}, caCertificateRefs: [{{group: '', kind: ConfigMap, name: {name}}}]}}}}"
        )
    };
    // the entry of the port replaces the default
    let frontend = format!(
        "tls: {{frontend: {{default: {}, perPort: [{{port: {port}, tls: {}}}]}}}}",
        validation("none"),
        validation("clients"),
    );
    let listener = https("").replace("PORT", &port.to_string());
    let gateway = format!(
        "gatewayClassName: strait, addresses: [{{value: {ip}}}], {frontend}, listeners: [{listener}]"
    );
    edge.set(&[
        to_a().replace("name: main", "name: validated"),
        object("Gateway", "edge/validated", &gateway),
        authorities("edge/clients", &clients.pem()),
    ]);
    let visitor = Visitor::new(edge.proxy.edge, ca);
    (edge, visitor)
}

#[tokio::test]
async fn gateway_validates_client_certificates() {
    let [ca, clients, other] = ["ca", "clients", "other"].map(Authority::new);
    let (edge, visitor) = validated(&ca, &clients, "AllowValidOnly");
    assert_eq!(
        status(&visitor.clone().with(&client(&clients))).await,
        Some(200)
    );
    assert_eq!(status(&visitor.clone().with(&client(&other))).await, None);
    assert_eq!(status(&visitor).await, None);
    let seen = edge.origins[0].only();
    let forwarded = seen.header("x-forwarded-client-cert").unwrap();
    assert!(forwarded.contains("DNS=client.test"), "{forwarded}");
}

#[tokio::test]
async fn fallback_serves_every_client_and_forwards_only_valid_certificates() {
    let [ca, clients, other] = ["ca", "clients", "other"].map(Authority::new);
    let (edge, visitor) = validated(&ca, &clients, "AllowInsecureFallback");
    let old = clients.issue(Leaf {
        names: &["client.test"],
        years: (2020, 2021),
        ..Leaf::default()
    });
    for (own, is_valid) in [
        (Some(client(&clients)), true),
        (Some(client(&other)), false),
        (Some(old), false),
        (None, false),
    ] {
        let visitor = match &own {
            Some(own) => visitor.clone().with(own),
            None => visitor.clone(),
        };
        // sessions of an invalid certificate are resumed as such
        let visitor = visitor.resuming();
        for _ in 0..2 {
            assert_eq!(status(&visitor).await, Some(200));
            let seen = edge.origins[0].seen();
            let forwarded = seen.last().unwrap().header("x-forwarded-client-cert");
            assert_eq!(forwarded.is_some(), is_valid, "{forwarded:?}");
        }
    }
}

#[tokio::test]
async fn reference_to_an_authority_that_does_not_hold_closes_https_and_not_http() {
    let ca = Authority::new("ca");
    let edge = Edge::start(
        "{name: http, protocol: HTTP, port: PORT, hostname: none.test}",
        &[],
    );
    let (ip, port) = (edge.proxy.edge.ip(), edge.proxy.edge.port());
    let gateway = |listener: &str, kind: &str| {
        let frontend = format!(
            "tls: {{frontend: {{default: {{validation: {{caCertificateRefs: [{{group: '', kind: {kind}, name: clients, namespace: web}}]}}}}}}}}"
        );
        let listener = listener.replace("PORT", &port.to_string());
        let spec = format!(
            "gatewayClassName: strait, addresses: [{{value: {ip}}}], {frontend}, listeners: [{listener}]"
        );
        object("Gateway", "edge/other", &spec)
    };
    let cred = credential("edge/cred", &ca.server(&["shop.test"]), &[]);
    let to = to_a().replace("name: main", "name: other");
    let http = "{name: http, protocol: HTTP, port: PORT}";
    edge.set(&[to.clone(), gateway(http, "Pod"), cred.clone()]);
    assert_eq!(edge.answer("shop.test", "/"), "a");
    // the first Gateway would keep the port for HTTP
    let generation = || edge.proxy.metric("strait_config_generation", &[]);
    let before = generation();
    let backend = service("edge/a", edge.origins[0].address);
    edge.proxy.write("mesh.yaml", backend);
    eventually("the first Gateway is gone", || generation() > before);
    let visitor = Visitor::new(edge.proxy.edge, &ca);
    let clients = authorities("web/clients", &ca.pem());
    let valid = visitor.clone().with(&client(&ca));
    for kind in ["Pod", "ConfigMap"] {
        edge.set(&[
            to.clone(),
            gateway(&https(""), kind),
            cred.clone(),
            clients.clone(),
        ]);
        assert_eq!(status(&valid).await, None, "{kind}");
    }
    let grant = "from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: edge}], to: [{group: '', kind: ConfigMap}]";
    edge.set(&[
        to,
        gateway(&https(""), "ConfigMap"),
        cred,
        clients,
        object("ReferenceGrant", "web/g", grant),
    ]);
    assert_eq!(status(&valid).await, Some(200));
    assert_eq!(status(&visitor).await, None);
}

#[tokio::test]
async fn options_of_a_listener_are_followed() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let pair = ca.server(&["shop.test"]);
    let cred = credential("edge/cred", &pair, &[("ca.crt", &ca.pem())]);
    let mode = |mode: &str| format!("gateway.istio.io/tls-terminate-mode: {mode}");
    let (own, foreign) = (client(&ca), client(&other));
    for (options, certificate, version, is_served) in [
        (mode("MUTUAL"), Some(&own), &TLS13, true),
        (mode("MUTUAL"), Some(&foreign), &TLS13, false),
        (mode("MUTUAL"), None, &TLS13, false),
        (mode("OPTIONAL_MUTUAL"), None, &TLS13, true),
        (mode("OPTIONAL_MUTUAL"), Some(&foreign), &TLS13, false),
        (mode("SIMPLE"), None, &TLS12, true),
        (
            "strait.io/min-protocol-version: '1.3'".to_owned(),
            None,
            &TLS12,
            false,
        ),
        (
            "strait.io/min-protocol-version: '1.3'".to_owned(),
            None,
            &TLS13,
            true,
        ),
        (
            "strait.io/max-protocol-version: '1.2'".to_owned(),
            None,
            &TLS13,
            false,
        ),
        (
            "strait.io/cipher-suites: ECDHE-ECDSA-AES128-GCM-SHA256".to_owned(),
            None,
            &TLS12,
            true,
        ),
        // the certificate has no RSA key
        (
            "strait.io/cipher-suites: ECDHE-RSA-AES128-GCM-SHA256".to_owned(),
            None,
            &TLS12,
            false,
        ),
    ] {
        let edge = Edge::start_with(&https(&options), &[to_a()], std::slice::from_ref(&cred));
        let visitor = Visitor::new(edge.proxy.edge, &ca).speaking(version);
        let visitor = match certificate {
            Some(certificate) => visitor.with(certificate),
            None => visitor,
        };
        let expected = is_served.then_some(200);
        assert_eq!(status(&visitor).await, expected, "{options} {version:?}");
    }
}

#[tokio::test]
async fn certificate_is_chosen_by_server_name() {
    let ca = Authority::new("ca");
    let listener = https("").replace(
        "[{name: cred}]",
        "[{name: cred}, {name: more}, {name: none}]",
    );
    let edge = Edge::start_with(
        &listener,
        &[to_a()],
        &[
            credential("edge/cred", &ca.server(&["one.test"]), &[]),
            credential("edge/more", &ca.server(&["two.test"]), &[]),
        ],
    );
    let visitor = Visitor::new(edge.proxy.edge, &ca);
    for (name, is_covered) in [
        ("one.test", true),
        ("two.test", true),
        ("three.test", false),
    ] {
        let connected = visitor.client(Front::H1, name).await;
        assert_eq!(connected.is_ok(), is_covered, "{name}");
    }
}

#[tokio::test]
async fn certificate_that_turns_bad_stays_and_one_without_permission_is_dropped() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["shop.test"]);
    let listener = https("").replace("name: cred", "name: cred, namespace: web");
    let grant = "from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: edge}], to: [{group: '', kind: Secret}]";
    let grant = object("ReferenceGrant", "web/g", grant);
    let good = credential("web/cred", &pair, &[]);
    let edge = Edge::start_with(&listener, &[to_a(), good.clone(), grant.clone()], &[]);
    let visitor = Visitor::new(edge.proxy.edge, &ca);
    assert_eq!(status(&visitor).await, Some(200));
    edge.set(&[to_a(), good.clone()]);
    // the listener is closed after the configuration is in effect
    until("no grant permits the Secret", async || {
        status(&visitor).await.is_none()
    })
    .await;
    edge.set(&[to_a(), good, grant.clone()]);
    until("the listener is open again", async || {
        status(&visitor).await == Some(200)
    })
    .await;
    let other_key = Pair {
        key: ca.server(&["shop.test"]).key,
        ..pair.clone()
    };
    let empty = Pair {
        chain: String::new(),
        key: String::new(),
        ..pair
    };
    for bad in [&other_key, &empty] {
        edge.set(&[to_a(), credential("web/cred", bad, &[]), grant.clone()]);
        assert_eq!(status(&visitor).await, Some(200), "the last good one stays");
    }
    edge.set(&[to_a(), credential("web/cred", &empty, &[])]);
    until("the permission is gone", async || {
        status(&visitor).await.is_none()
    })
    .await;
}

#[tokio::test]
async fn host_of_a_listener_that_cannot_serve_goes_to_no_other_one() {
    let ca = Authority::new("ca");
    let closed = https("").replace("name: https", "name: closed, hostname: own.test");
    let closed = closed.replace("name: cred", "name: gone");
    let listeners = format!("{}, {closed}", https(""));
    let pair = ca.server(&["own.test", "shop.test"]);
    let cred = credential("edge/cred", &pair, &[]);
    let edge = Edge::start_with(&listeners, &[to_a()], &[cred]);
    let visitor = Visitor::new(edge.proxy.edge, &ca);
    let mut wide = visitor.client(Front::H1, "shop.test").await.unwrap();
    assert_eq!(wide.call(get("shop.test", "/")).await.status, 200);
    assert_eq!(wide.call(get("own.test", "/")).await.status, 421);
    assert!(visitor.client(Front::H1, "own.test").await.is_err());
}
