//! Security policies with `targetRefs`: they apply to the listeners of their Gateway, in a proxy that serves others as well.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::tcp_routes::speaking;
use super::{object, service};
use crate::request_authentication::Issuer;
use crate::support::DEADLINE;
use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;

/// Returns a policy of a kind that is attached to an object of the Gateway API.
fn attached(kind: &str, id: &str, target: &str, spec: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let targets: Vec<String> = target
        .split(' ')
        .map(|target| {
            let (kind, name) = target.split_once('/').unwrap();
            format!("{{group: gateway.networking.k8s.io, kind: {kind}, name: {name}}}")
        })
        .collect();
    let targets = targets.join(", ");
    format!(
        "apiVersion: security.istio.io/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{targetRefs: [{targets}], {spec}}}\n"
    )
}

const ADMIN: &str = "action: DENY, rules: [{to: [{operation: {paths: [/admin]}}]}]";

fn deny(id: &str, target: &str) -> String {
    attached("AuthorizationPolicy", id, target, ADMIN)
}

/// Returns a Gateway with one listener.
fn gateway(name: &str, at: SocketAddr, listener: &str) -> String {
    let (ip, port) = (at.ip(), at.port());
    object(
        "Gateway",
        &format!("edge/{name}"),
        &format!(
            "gatewayClassName: strait, addresses: [{{value: {ip}}}], listeners: [{{name: l, port: {port}, {listener}}}]"
        ),
    )
}

/// Proxy with the Gateways `main` and `other`, of one namespace that is not the proxy's.
struct Two {
    proxy: Proxy,
    other: SocketAddr,
    gateways: [String; 2],
    _origin: Origin,
}

impl Two {
    /// Starts with Gateways on addresses of their own.
    fn apart() -> Self {
        let http = "protocol: HTTP";
        Self::start(free_address(), [http, http], &[])
    }

    fn start(other: SocketAddr, listeners: [&str; 2], flags: &[&str]) -> Self {
        let origin = Origin::named(Back::H1, "a");
        let tcp = speaking("t").address;
        let start = Start::new();
        let edge = start.edge();
        let other = if other.port() == 0 { edge } else { other };
        let parents = "parentRefs: [{name: main}, {name: other}], rules: [{backendRefs:";
        let mesh = [
            service("edge/a", origin.address),
            service("edge/t", tcp),
            object(
                "HTTPRoute",
                "edge/r",
                &format!("{parents} [{{name: a, port: 80}}]}}]"),
            ),
            object(
                "TCPRoute",
                "edge/r",
                &format!("{parents} [{{name: t, port: 80}}]}}]"),
            ),
        ];
        let gateways = [
            gateway("main", edge, listeners[0]),
            gateway("other", other, listeners[1]),
        ];
        let proxy = start
            .args(flags.iter().copied())
            .file("mesh.yaml", documents(&mesh))
            .file("gateways.yaml", documents(&gateways))
            .file("policies.yaml", "")
            .start();
        Self {
            proxy,
            other,
            gateways,
            _origin: origin,
        }
    }

    fn write(&self, file: &str, all: &[String]) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        self.proxy.write(file, documents(all));
        eventually("it is in effect", || generation() > before);
    }

    fn set(&self, policies: &[String]) {
        self.write("policies.yaml", policies);
    }

    /// Returns the status of a request to each Gateway.
    fn ask(&self, target: &str, headers: &str) -> [u16; 2] {
        [self.proxy.edge, self.other].map(|at| request(&mut Raw::connect(at), target, headers))
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn check(&self) -> String {
        self.run(&["check", "--config", self.proxy.mesh().to_str().unwrap()])
    }

    fn explain(&self, at: SocketAddr, target: &str) -> String {
        let admin = self.proxy.admin.to_string();
        let url = format!("http://{at}{target}");
        self.run(&["explain", "--admin", &admin, "GET", &url])
    }
}

fn request(client: &mut Raw, target: &str, headers: &str) -> u16 {
    request_of(client, "a.test", target, headers)
}

fn request_of(client: &mut Raw, host: &str, target: &str, headers: &str) -> u16 {
    let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
    client.send(text).reply().status
}

#[test]
fn policy_applies_to_the_listeners_of_its_gateway_only() {
    let two = Two::apart();
    assert_eq!(two.ask("/admin", ""), [200, 200]);
    two.set(&[deny("edge/p", "Gateway/main")]);
    assert_eq!(two.ask("/admin", ""), [403, 200]);
    assert_eq!(two.ask("/", ""), [200, 200]);
    assert_eq!(
        two.proxy
            .metric("strait_authz_policies", &[("state", "enforced")]),
        1.0
    );
    let denied = two.explain(two.proxy.edge, "/admin");
    assert!(denied.contains("edge/p"), "{denied}");
    let allowed = two.explain(two.other, "/admin");
    assert!(!allowed.contains("edge/p"), "{allowed}");
    assert!(!two.check().contains("GA014"), "{}", two.check());

    // beside one of the proxy
    let own = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: own, namespace: default}\n\
               spec: {action: DENY, rules: [{to: [{operation: {paths: [/own]}}]}]}\n";
    two.set(&[own.to_owned(), deny("edge/p", "Gateway/main")]);
    assert_eq!(two.ask("/admin", ""), [403, 200]);
    assert_eq!(two.ask("/own", ""), [403, 403]);
    two.set(&[deny("edge/p", "Gateway/other")]);
    assert_eq!(two.ask("/admin", ""), [200, 403]);
    // of another namespace
    two.set(&[deny("default/p", "Gateway/main")]);
    assert_eq!(two.ask("/admin", ""), [200, 200]);
    two.set(&[deny("istio-system/p", "GatewayClass/strait")]);
    assert_eq!(two.ask("/admin", ""), [403, 403]);
    two.set(&[deny("edge/p", "GatewayClass/strait")]);
    assert_eq!(two.ask("/admin", ""), [200, 200]);
    two.set(&[deny("istio-system/p", "GatewayClass/another")]);
    assert_eq!(two.ask("/admin", ""), [200, 200]);
}

#[test]
fn rejected_policy_of_a_gateway_denies_its_requests() {
    let two = Two::apart();
    let misspelled = "action: DENY, rules: [{to: [{operation: {path: [/admin]}}]}]";
    let policy = attached("AuthorizationPolicy", "edge/p", "Gateway/main", misspelled);
    two.set(&[policy]);
    assert_eq!(two.ask("/", ""), [403, 200]);
    two.set(&[
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: edge}\n\
               spec: {targetRef: 5, action: DENY, rules: [{}]}\n"
            .to_owned(),
    ]);
    assert_eq!(two.ask("/", ""), [403, 403], "its target may be any");
}

#[test]
fn tokens_are_verified_at_the_gateway_of_their_policy() {
    let two = Two::apart();
    let issuer = Issuer::new("one", "k");
    let rules = format!("jwtRules: [{}]", issuer.rule("forwardOriginalToken: true"));
    let tokens = attached("RequestAuthentication", "edge/t", "Gateway/other", &rules);
    let required = attached(
        "AuthorizationPolicy",
        "edge/p",
        "Gateway/other",
        "action: ALLOW, rules: [{from: [{source: {requestPrincipals: ['one/*']}}]}]",
    );
    let good = format!("Authorization: Bearer {}\r\n", issuer.token(r#""sub":"s""#));
    let bad = "Authorization: Bearer a.b.c\r\n";
    two.set(std::slice::from_ref(&tokens));
    assert_eq!(two.ask("/", ""), [200, 200]);
    assert_eq!(two.ask("/", bad), [200, 401]);
    two.set(&[tokens, required]);
    assert_eq!(two.ask("/", ""), [200, 403]);
    assert_eq!(two.ask("/", bad), [200, 401]);
    assert_eq!(two.ask("/", &good), [200, 200]);
    two.set(&[]);
    assert_eq!(two.ask("/", bad), [200, 200]);
}

#[test]
fn open_connections_follow_changes_and_other_requests_go_on() {
    let two = Two::apart();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = [two.proxy.edge, two.other]
            .into_iter()
            .map(|at| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut client = Raw::connect(at);
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(request(&mut client, "/", ""), 200);
                    }
                })
            })
            .collect();
        let mut client = Raw::connect(two.proxy.edge);
        for _ in 0..5 {
            two.set(&[deny("edge/p", "Gateway/main")]);
            assert_eq!(request(&mut client, "/admin", ""), 403);
            two.set(&[]);
            assert_eq!(request(&mut client, "/admin", ""), 200);
        }
        two.set(&[deny("edge/p", "Gateway/main")]);
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|one| one.join().unwrap());
        // the Gateway is removed, with the policy
        two.write("gateways.yaml", &two.gateways[1..]);
        two.set(&[]);
        // an idle connection of a removed listener may be closed first
        client.send("GET /admin HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let answer = client.try_reply().ok().flatten();
        assert!(answer.is_none_or(|answer| answer.status == 403));
    });
}

#[test]
fn gateways_of_an_address_need_the_same_policies() {
    let hosts = ["a.test", "b.test"];
    let listeners = hosts.map(|host| format!("protocol: HTTP, hostname: {host}"));
    let same = SocketAddr::from(([127, 0, 0, 1], 0));
    let two = Two::start(same, [&listeners[0], &listeners[1]], &[]);
    let ask = || {
        let ask = |host| request_of(&mut Raw::connect(two.proxy.edge), host, "/admin", "");
        hosts.map(ask)
    };
    assert_eq!(ask(), [200, 200]);
    two.set(&[deny("edge/p", "Gateway/other")]);
    assert_eq!(ask(), [200, 404]);
    let found = two.check();
    assert!(found.contains("GA014"), "{found}");
    assert!(found.contains("Gateway/edge/main"), "{found}");
    two.set(&[deny("edge/p", "Gateway/main Gateway/other")]);
    assert_eq!(ask(), [403, 403]);
    assert!(!two.check().contains("GA014"), "{}", two.check());
    two.set(&[]);
    assert_eq!(ask(), [200, 200]);
    // no listener of the address can be opened
    two.set(&[
        deny("edge/p", "Gateway/main"),
        deny("edge/q", "Gateway/other"),
    ]);
    eventually("the address is closed", || {
        TcpStream::connect(two.proxy.edge).is_err()
    });
}

#[test]
fn open_tcp_connections_are_judged_by_the_policies_of_their_gateway() {
    let tcp = "protocol: TCP";
    let two = Two::start(free_address(), [tcp, tcp], &["--authz-recheck-tcp"]);
    let open = |at: SocketAddr| {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        stream
    };
    let [mut main, mut other] = [two.proxy.edge, two.other].map(open);
    let clients = "action: DENY, rules: [{from: [{source: {ipBlocks: [127.0.0.0/8]}}]}]";
    two.set(&[attached(
        "AuthorizationPolicy",
        "edge/p",
        "Gateway/main",
        clients,
    )]);
    assert!(
        !matches!(main.read(&mut [0]), Ok(1)),
        "it is closed without a byte"
    );
    other.write_all(b"!").unwrap();
    other.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = String::new();
    other.read_to_string(&mut said).unwrap();
    assert_eq!(said, "!");
}
