//! TLS that is proxied as raw TCP and routed by SNI, on live sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, Stream,
};

use crate::support::mesh::documents;
use crate::support::origin::RawOrigin;
use crate::support::pki::Authority;
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::tls::Visitor;
use crate::support::{DEADLINE, eventually};

/// Starts a TLS server that answers with its name, and adds its certificate to the roots.
fn origin(name: &'static str, roots: &mut RootCertStore) -> RawOrigin {
    let names = vec![name.to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    roots.add(cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"istio".to_vec(), b"http/1.1".to_vec()];
    let config = Arc::new(config);
    RawOrigin::start(move |_, mut tcp| {
        let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let _ = Stream::new(&mut tls, &mut tcp).write_all(name.as_bytes());
        tls.send_close_notify();
        let _ = tls.complete_io(&mut tcp);
    })
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Connects with this SNI and returns the greeting of the server; empty if the connection is closed.
fn ask(address: SocketAddr, roots: &RootCertStore, name: &str, alpn: &[&[u8]]) -> Option<String> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut said = String::new();
    match Stream::new(&mut tls, &mut tcp).read_to_string(&mut said) {
        Ok(_) => Some(said),
        Err(error) => {
            assert_ne!(
                error.kind(),
                ErrorKind::WouldBlock,
                "closed, not left waiting"
            );
            None
        }
    }
}

fn gateway(edge: SocketAddr, mode: &str, hosts: &str) -> String {
    let (ip, port) = (edge.ip(), edge.port());
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: edge}}\nspec:\n  servers:\n  \
         - {{port: {{number: {port}, name: tls, protocol: TLS}}, bind: {ip}, hosts: [{hosts}], tls: {{mode: {mode}}}}}\n"
    )
}

fn service(host: &str, at: SocketAddr) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {}}}\nspec:\n  hosts: [{host}]\n  \
         location: MESH_INTERNAL\n  resolution: STATIC\n  ports: [{{number: 443, name: tls, protocol: TLS}}]\n  \
         endpoints: [{{address: {}, ports: {{tls: {}}}}}]\n",
        host.replace('.', "-"),
        at.ip(),
        at.port()
    )
}

fn routes(rules: &[(&str, &str)]) -> String {
    let rule = |(sni, host): &(&str, &str)| {
        format!(
            "  - match: [{{sniHosts: ['{sni}']}}]\n    route: [{{destination: {{host: {host}}}}}]\n"
        )
    };
    let rules: String = rules.iter().map(rule).collect();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: tls}}\nspec:\n  \
         hosts: ['*.test']\n  gateways: [edge]\n  tls:\n{rules}"
    )
}

#[test]
fn passthrough_routes_by_sni_without_terminating_tls() {
    let mut roots = RootCertStore::empty();
    let a = origin("a.test", &mut roots);
    let b = origin("x.b.test", &mut roots);
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(edge, "PASSTHROUGH", "'*.test'"),
            routes(&[("a.test", "a.test"), ("*.b.test", "b.test")]),
            service("a.test", a.address),
            service("b.test", b.address),
        ])
    });
    let ask = |name: &str| ask(proxy.edge, &roots, name, &[]);
    assert_eq!(ask("a.test").as_deref(), Some("a.test"));
    assert_eq!(ask("A.test").as_deref(), Some("a.test"));
    assert_eq!(ask("x.b.test").as_deref(), Some("x.b.test"));
    assert_eq!(ask("c.test"), None);
    assert_eq!(ask("a.other"), None);
    let mut lines = Vec::new();
    eventually("all are logged", || {
        lines = proxy.access_log();
        lines.len() == 5
    });
    let of = |name: &str| {
        lines
            .iter()
            .find(|line| line["requested_server_name"] == name)
            .unwrap()
    };
    assert_eq!(of("a.test")["response_flags"], "-");
    assert_eq!(of("a.test")["upstream_cluster"], "outbound|443||a.test");
    for name in ["c.test", "a.other"] {
        assert_eq!(of(name)["response_flags"], "NR", "{name}");
        assert_eq!(of(name)["response_code_details"], "filter_chain_not_found");
    }
    let reason = [("reason", "unknown_sni")];
    assert_eq!(
        proxy.metric("strait_downstream_tls_errors_total", &reason),
        1.0
    );
}

#[test]
fn policies_compare_the_server_name_of_tls_that_passes_through() {
    let mut roots = RootCertStore::empty();
    let (a, b) = (origin("a.test", &mut roots), origin("b.test", &mut roots));
    let proxy = Proxy::with(|edge| {
        let policy = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: own}\n\
                      spec: {rules: [{when: [{key: connection.sni, values: [a.test]}]}]}\n";
        documents([
            gateway(edge, "PASSTHROUGH", "'*.test'"),
            routes(&[("a.test", "a.test"), ("b.test", "b.test")]),
            service("a.test", a.address),
            service("b.test", b.address),
            policy.to_owned(),
        ])
    });
    let ask = |name: &str| ask(proxy.edge, &roots, name, &[]);
    assert_eq!(ask("a.test").as_deref(), Some("a.test"));
    assert_eq!(ask("b.test"), None);
    let denied = || {
        let mut lines = proxy.access_log().into_iter();
        lines.find(|line| line["requested_server_name"] == "b.test")
    };
    eventually("the denial is logged", || denied().is_some());
    let details = "rbac_access_denied_matched_policy[none]";
    assert_eq!(denied().unwrap()["connection_termination_details"], details);
}

#[test]
fn destination_subnets_match_the_address_that_the_client_dialed() {
    let mut roots = RootCertStore::empty();
    let a = origin("a.test", &mut roots);
    let b = origin("b.test", &mut roots);
    let asked = |elsewhere: &str, here: &str| {
        let proxy = Proxy::with(|edge| {
            let rule = |subnets: &str, host: &str| {
                let subnets = subnets.replace("EDGE", &edge.ip().to_string());
                format!(
                    "  - match: [{{sniHosts: [a.test], destinationSubnets: [{subnets}]}}]\n    \
                     route: [{{destination: {{host: {host}}}}}]\n"
                )
            };
            let rules = [rule(elsewhere, "b.test"), rule(here, "a.test")].concat();
            documents([
                gateway(edge, "PASSTHROUGH", "'*.test'"),
                routes(&[]) + &rules,
                service("a.test", a.address),
                service("b.test", b.address),
            ])
        });
        ask(proxy.edge, &roots, "a.test", &[])
    };
    let found = Some("a.test".to_owned());
    assert_eq!(asked("10.0.0.0/8, '::1/128'", "127.0.0.0/8"), found);
    assert_eq!(asked("10.0.0.1", "10.0.0.0/8, EDGE"), found);
    assert_eq!(asked("10.0.0.0/8", "192.0.2.0/24"), None, "no rule has it");
}

#[test]
fn bytes_that_are_not_tls_are_closed_and_counted() {
    let proxy = Proxy::with(|edge| documents([gateway(edge, "PASSTHROUGH", "a.test")]));
    for (bytes, reason) in [
        (&b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"[..], "not_tls"),
        (b"\x16\x03\x01\x00\x00", "malformed_client_hello"),
        (
            b"\x16\x03\x01\x40\x00\x01\xff\xff\xff",
            "client_hello_too_large",
        ),
    ] {
        assert!(Raw::connect(proxy.edge).send(bytes).is_closed(), "{reason}");
        let count = proxy.metric("strait_downstream_tls_errors_total", &[("reason", reason)]);
        assert_eq!(count, 1.0, "{reason}");
    }
    let mut broken_off = Raw::connect(proxy.edge);
    broken_off.send(b"\x16\x03\x01").finish();
    assert!(broken_off.is_closed());
    let reason = [("reason", "client_hello_incomplete")];
    assert_eq!(
        proxy.metric("strait_downstream_tls_errors_total", &reason),
        1.0
    );
}

#[test]
fn auto_passthrough_routes_by_the_cluster_name_in_sni() {
    let mut roots = RootCertStore::empty();
    let sni = "outbound_.443_._.a.default.svc.cluster.local";
    let a = origin(sni, &mut roots);
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(edge, "AUTO_PASSTHROUGH", "'*.local'"),
            service("a.default.svc.cluster.local", a.address),
        ])
    });
    let ask = |name: &str, alpn: &[&[u8]]| ask(proxy.edge, &roots, name, alpn);
    assert_eq!(ask(sni, &[b"istio"]).as_deref(), Some(sni));
    assert_eq!(ask(sni, &[b"http/1.1"]), None);
    assert_eq!(
        ask("outbound_.444_._.a.default.svc.cluster.local", &[b"istio"]),
        None
    );
}

/// Starts a raw TCP origin that sends its name immediately.
fn says(word: &'static [u8]) -> RawOrigin {
    RawOrigin::start(move |_, mut stream| {
        let mut hello = [0; 512];
        let _ = stream.read(&mut hello);
        stream.write_all(word).unwrap();
    })
}

/// Returns the first bytes that a client gets after a ClientHello for `a.test`, with these routes of a listener.
fn first_word(kind: &str, rules: &dyn Fn(u16) -> String, services: &[String]) -> String {
    let proxy = Proxy::with(|edge| {
        let text = gateway(edge, "PASSTHROUGH", "'*'");
        let text = match kind {
            "tls" => text,
            _ => text
                .replace("name: tls, protocol: TLS", "name: tcp, protocol: TCP")
                .replace(", tls: {mode: PASSTHROUGH}", ""),
        };
        let routes = routes(&[])
            .replace("  tls:\n", &format!("  {kind}:\n{}", rules(edge.port())))
            .replace("gateways: [edge]", "gateways: [edge, other]")
            .replace("'*.test'", if kind == "tls" { "'*.test'" } else { "'*'" });
        let mut all = vec![text, routes];
        all.extend_from_slice(services);
        documents(all)
    });
    let hello = Visitor::new(proxy.edge, &Authority::new("any")).hello("a.test");
    let word = Raw::connect(proxy.edge).send(hello).try_read(3);
    String::from_utf8(word.unwrap_or_default()).unwrap()
}

#[test]
fn conditions_on_gateway_port_and_workload_select_a_rule_of_bytes() {
    let (one, two) = (says(b"one"), says(b"two"));
    let services = [
        service("one.test", one.address),
        service("two.test", two.address),
    ];
    for (kind, condition, is_met) in [
        ("tls", "port: PORT", true),
        ("tls", "port: 1", false),
        ("tls", "sourceLabels: {istio: ingressgateway}", true),
        ("tls", "sourceLabels: {istio: other}", false),
        ("tls", "sourceNamespace: default", true),
        ("tls", "sourceNamespace: elsewhere", false),
        ("tls", "gateways: [edge]", true),
        ("tls", "gateways: [other]", false),
        ("tcp", "gateways: [edge]", true),
        ("tcp", "gateways: [other]", false),
    ] {
        let rules = |port: u16| {
            let condition = condition.replace("PORT", &port.to_string());
            let sni = if kind == "tls" {
                "sniHosts: [a.test], "
            } else {
                ""
            };
            let otherwise = if kind == "tls" {
                "match: [{sniHosts: [a.test]}], "
            } else {
                ""
            };
            format!(
                "  - {{match: [{{{sni}{condition}}}], route: [{{destination: {{host: one.test}}}}]}}\n  \
                 - {{{otherwise}route: [{{destination: {{host: two.test}}}}]}}\n"
            )
        };
        let expected = if is_met { "one" } else { "two" };
        let found = first_word(kind, &rules, &services);
        assert_eq!(found, expected, "{kind} {condition}");
    }
}

#[test]
fn passed_tls_is_split_by_weight_and_sent_to_a_subset() {
    let (one, two) = (says(b"one"), says(b"two"));
    let both = service("web.test", one.address).replace(
        "endpoints: [{address",
        &format!(
            "endpoints: [{{address: {}, ports: {{tls: {}}}, labels: {{version: v2}}}}, {{address",
            two.address.ip(),
            two.address.port()
        ),
    );
    let services = [
        both,
        service("one.test", one.address),
        service("two.test", two.address),
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: web}\n\
         spec: {host: web.test, subsets: [{name: v2, labels: {version: v2}}]}\n"
            .to_owned(),
    ];
    for (route, expected) in [
        ("{destination: {host: web.test, subset: v2}}", "two"),
        (
            "{destination: {host: one.test}, weight: 100}, {destination: {host: two.test}, weight: 0}",
            "one",
        ),
        (
            "{destination: {host: one.test}, weight: 0}, {destination: {host: two.test}, weight: 100}",
            "two",
        ),
    ] {
        let rules = |_| format!("  - {{match: [{{sniHosts: [a.test]}}], route: [{route}]}}\n");
        for _ in 0..3 {
            assert_eq!(first_word("tls", &rules, &services), expected, "{route}");
        }
    }
}
