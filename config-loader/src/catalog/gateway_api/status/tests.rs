//! Tests of conditions, counts and addresses, as tables.

use super::*;
use crate::ResourceSet;
use crate::catalog::gateway_api::CONTROLLER;
use crate::diagnostic::Diagnostics;
use crate::load_bytes;

fn set(text: &str) -> ResourceSet {
    let mut found = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut found);
    assert!(!found.has_errors(), "{text}\n{:?}", found.into_sorted());
    set
}

fn sources(pool: &str, shared: &[&str]) -> AddressSources {
    let ip = |text: &&str| match text.parse() {
        Ok(ip) => StatusAddress::Ip(ip),
        Err(_) => StatusAddress::Host((*text).to_owned()),
    };
    AddressSources {
        pool: pool
            .split_whitespace()
            .map(|net| net.parse().unwrap())
            .collect(),
        shared: shared.iter().map(ip).collect(),
    }
}

fn status_of(
    text: &str,
    sources: &AddressSources,
    held: &[(&str, &str)],
) -> BTreeMap<String, ObjectStatus> {
    let set = set(text);
    let held = held.iter().map(|(name, ip)| {
        let address = StatusAddress::Ip(ip.parse().unwrap());
        (Name::new("edge", *name), vec![address])
    });
    let settings = StatusSettings {
        controller: CONTROLLER,
        domain: "cluster.local",
        root_namespace: "istio-system",
        crds: &CrdBundle::default(),
        sources,
        held: &held.collect(),
    };
    let all = statuses(View::from(&set), settings).into_iter();
    all.map(|(id, status)| (id.to_string(), status)).collect()
}

/// Returns conditions in short: `+Type` or `-Type Reason`.
fn short(conditions: &[Condition]) -> String {
    let all = conditions.iter().map(|one| {
        let sign = if one.is_true() { '+' } else { '-' };
        match one.is_true() && (one.reason == one.name) {
            true => format!("{sign}{}", one.name),
            false => format!("{sign}{} {}", one.name, one.reason),
        }
    });
    all.collect::<Vec<_>>().join(", ")
}

const GATEWAY: &str = "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: NAME, namespace: edge},
  spec: {gatewayClassName: strait, SPEC}}\n---\n";

fn gateway(name: &str, spec: &str) -> String {
    GATEWAY.replace("NAME", name).replace("SPEC", spec)
}

fn object(kind: &str, id: &str, spec: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "{{apiVersion: gateway.networking.k8s.io/v1, kind: {kind}, metadata: {{name: {name}, namespace: {namespace}}}, \
         spec: {{{spec}}}}}\n---\n"
    )
}

const HTTP: &str = "listeners: [{name: http, port: 80, protocol: HTTP}]";
const SERVICE: &str = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: edge}, spec: {ports: [{port: 80}]}}\n---\n";

#[test]
fn conditions_of_gateways_and_their_listeners() {
    let rows = [
        (
            HTTP,
            "+Accepted, +Programmed, +ResolvedRefs",
            "+Accepted, +ResolvedRefs, +Programmed, -Conflicted NoConflicts",
        ),
        (
            "infrastructure: {parametersRef: {group: a, kind: B, name: c}}, listeners: [{name: http, port: 80, protocol: HTTP}]",
            "-Accepted InvalidParameters, -Programmed Invalid, +ResolvedRefs",
            "+Accepted, +ResolvedRefs, -Programmed Pending, -Conflicted NoConflicts",
        ),
        (
            "addresses: [{type: NamedAddress, value: a}], listeners: [{name: http, port: 80, protocol: HTTP}]",
            "-Accepted UnsupportedAddress, -Programmed Invalid, +ResolvedRefs",
            "+Accepted, +ResolvedRefs, -Programmed Pending, -Conflicted NoConflicts",
        ),
        (
            "addresses: [{value: 192.0.2.1}], listeners: [{name: http, port: 80, protocol: HTTP}]",
            "+Accepted, -Programmed AddressNotUsable, +ResolvedRefs",
            "+Accepted, +ResolvedRefs, -Programmed Pending, -Conflicted NoConflicts",
        ),
        (
            "listeners: [{name: dns, port: 53, protocol: UDP}]",
            "-Accepted ListenersNotValid, -Programmed Invalid, +ResolvedRefs",
            "-Accepted UnsupportedProtocol, +ResolvedRefs, -Programmed Invalid, -Conflicted NoConflicts",
        ),
        (
            "listeners: [{name: dns, port: 53, protocol: UDP}, {name: http, port: 80, protocol: HTTP}]",
            "+Accepted ListenersNotValid, +Programmed, +ResolvedRefs",
            "-Accepted UnsupportedProtocol, +ResolvedRefs, -Programmed Invalid, -Conflicted NoConflicts",
        ),
        (
            "listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: TCP}]",
            "-Accepted ListenersNotValid, -Programmed Invalid, +ResolvedRefs",
            "-Accepted ProtocolConflict, +ResolvedRefs, -Programmed ProtocolConflict, +Conflicted ProtocolConflict",
        ),
        (
            "listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}]",
            "+Accepted, +Programmed, -ResolvedRefs ListenersNotResolved",
            "+Accepted, -ResolvedRefs InvalidCertificateRef, -Programmed Invalid, -Conflicted NoConflicts",
        ),
        (
            "listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: c, namespace: other}]}}]",
            "+Accepted, +Programmed, -ResolvedRefs ListenersNotResolved",
            "+Accepted, -ResolvedRefs RefNotPermitted, -Programmed Invalid, -Conflicted NoConflicts",
        ),
        (
            "listeners: [{name: a, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}, {kind: HTTPRoute}]}}]",
            "+Accepted, +Programmed, -ResolvedRefs ListenersNotResolved",
            "+Accepted, -ResolvedRefs InvalidRouteKinds, +Programmed, -Conflicted NoConflicts",
        ),
    ];
    for (spec, of_gateway, of_listener) in rows {
        let all = status_of(&gateway("main", spec), &sources("", &["198.51.100.7"]), &[]);
        let ObjectStatus::Gateway {
            conditions,
            listeners,
            ..
        } = &all["Gateway/edge/main"]
        else {
            panic!("{all:?}")
        };
        assert_eq!(short(conditions), of_gateway, "{spec}");
        assert_eq!(short(&listeners[0].conditions), of_listener, "{spec}");
    }
}

#[test]
fn addresses_are_kept_and_the_oldest_chooses_first() {
    let addresses = |documents: &str, sources: &AddressSources, held: &[(&str, &str)]| {
        let all = status_of(documents, sources, held);
        let texts = all.iter().filter_map(|(id, status)| match status {
            ObjectStatus::Gateway {
                addresses,
                conditions,
                ..
            } => {
                let programmed = conditions
                    .iter()
                    .find(|one| one.name == "Programmed")
                    .unwrap();
                let addresses: Vec<String> = addresses
                    .iter()
                    .map(|one| match one {
                        StatusAddress::Host(host) => host.clone(),
                        StatusAddress::Ip(ip) => ip.to_string(),
                    })
                    .collect();
                let name = id.rsplit('/').next().unwrap();
                Some(format!(
                    "{name}={} {}",
                    addresses.join("+"),
                    programmed.reason
                ))
            }
            _ => None,
        });
        texts.collect::<Vec<_>>().join("; ")
    };
    let two = gateway("a", HTTP) + &gateway("b", HTTP);
    let pool = sources("192.0.2.0/30", &[]);
    assert_eq!(
        addresses(&two, &pool, &[]),
        "a=192.0.2.1 Programmed; b=192.0.2.2 Programmed"
    );
    assert_eq!(
        addresses(&two, &pool, &[("b", "192.0.2.1")]),
        "a=192.0.2.2 Programmed; b=192.0.2.1 Programmed"
    );
    let written =
        gateway("a", HTTP) + &gateway("b", &format!("addresses: [{{value: 192.0.2.1}}], {HTTP}"));
    assert_eq!(
        addresses(&written, &pool, &[("a", "192.0.2.1")]),
        "a=192.0.2.1 Programmed; b= AddressNotUsable"
    );
    assert_eq!(
        addresses(&written, &pool, &[("a", "192.0.2.2")]),
        "a=192.0.2.2 Programmed; b=192.0.2.1 Programmed"
    );
    let three = two.clone() + &gateway("c", HTTP);
    assert_eq!(
        addresses(&three, &pool, &[("c", "203.0.113.9")]),
        "a=192.0.2.1 Programmed; b=192.0.2.2 Programmed; c= AddressNotAssigned"
    );
    assert_eq!(
        addresses(&three, &sources("192.0.2.9/32", &["lb.test"]), &[]),
        "a=192.0.2.9 Programmed; b=lb.test Programmed; c=lb.test Programmed"
    );
    let empty = gateway(
        "a",
        &format!("addresses: [{{type: IPAddress}}, {{type: IPAddress}}], {HTTP}"),
    );
    assert_eq!(
        addresses(&empty, &pool, &[]),
        "a=192.0.2.1+192.0.2.2 Programmed"
    );
}

#[test]
fn conditions_of_routes_and_counts_of_listeners() {
    let route = |more: &str| object("HTTPRoute", "edge/r", more);
    let to_web = "rules: [{backendRefs: [{name: web, port: 80}]}]";
    let rows = [
        (format!("parentRefs: [{{name: main}}], {to_web}"), "+Accepted, +ResolvedRefs", 1),
        // two parents, one listener
        (
            format!("parentRefs: [{{name: main, sectionName: http}}, {{name: main, sectionName: none}}], {to_web}"),
            "+Accepted, +ResolvedRefs | -Accepted NoMatchingParent, +ResolvedRefs",
            1,
        ),
        (
            "parentRefs: [{name: main}], rules: [{backendRefs: [{name: gone, port: 80}]}]".to_owned(),
            "+Accepted, -ResolvedRefs BackendNotFound",
            1,
        ),
        (
            "parentRefs: [{name: main}], rules: [{backendRefs: [{name: web, namespace: other, port: 80}]}]".to_owned(),
            "+Accepted, -ResolvedRefs RefNotPermitted",
            1,
        ),
        (
            "parentRefs: [{name: main}], rules: [{backendRefs: [{kind: Pod, name: web, port: 80}]}]".to_owned(),
            "+Accepted, -ResolvedRefs InvalidKind",
            1,
        ),
        (
            "parentRefs: [{name: main}], rules: [{filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: c}}]}]"
                .to_owned(),
            "-Accepted UnsupportedValue, +ResolvedRefs",
            0,
        ),
        (
            "parentRefs: [{name: main}], rules: [{}, {filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: c}}]}]"
                .to_owned(),
            "+Accepted, +ResolvedRefs, +PartiallyInvalid UnsupportedValue",
            1,
        ),
        (
            format!("parentRefs: [{{name: main, port: 81}}], {to_web}"),
            "-Accepted NoMatchingParent, +ResolvedRefs",
            0,
        ),
        (
            format!("parentRefs: [{{kind: Service, group: \"\", name: web, port: 80}}], {to_web}"),
            "+Accepted, +ResolvedRefs",
            0,
        ),
        (
            format!("parentRefs: [{{kind: Service, group: \"\", name: web, port: 81}}], {to_web}"),
            "-Accepted NoMatchingParent, +ResolvedRefs",
            0,
        ),
        (
            format!("parentRefs: [{{name: unknown}}], {to_web}"),
            "none",
            0,
        ),
    ];
    for (spec, expected, count) in rows {
        let text = gateway("main", HTTP) + SERVICE + &route(&spec);
        let all = status_of(&text, &sources("", &["192.0.2.1"]), &[]);
        let found = match all.get("HTTPRoute/edge/r") {
            Some(ObjectStatus::Route(parents)) => {
                let all = parents.iter().map(|one| short(&one.conditions));
                all.collect::<Vec<_>>().join(" | ")
            }
            _ => "none".to_owned(),
        };
        assert_eq!(found, expected, "{spec}");
        let ObjectStatus::Gateway { listeners, .. } = &all["Gateway/edge/main"] else {
            panic!("{all:?}")
        };
        assert_eq!(listeners[0].attached, count, "{spec}");
    }
}

#[test]
fn listener_sets_are_counted_and_judged() {
    let gateway = gateway(
        "main",
        &format!("allowedListeners: {{namespaces: {{from: Same}}}}, {HTTP}"),
    );
    let set = |namespace: &str, listener: &str| {
        let parent = "parentRef: {name: main, namespace: edge}";
        object(
            "ListenerSet",
            &format!("{namespace}/more"),
            &format!("{parent}, listeners: [{listener}]"),
        )
    };
    let rows = [
        (
            set("edge", "{name: x, port: 81, protocol: HTTP}"),
            "ListenerSet/edge/more",
            "+Accepted, +Programmed",
            1,
        ),
        (
            set("other", "{name: x, port: 81, protocol: HTTP}"),
            "ListenerSet/other/more",
            "-Accepted NotAllowed, -Programmed NotAllowed",
            0,
        ),
        (
            set("edge", "{name: x, port: 80, protocol: HTTP}"),
            "ListenerSet/edge/more",
            "-Accepted ListenersNotValid, -Programmed ListenersNotValid",
            0,
        ),
    ];
    for (document, id, expected, count) in rows {
        let all = status_of(
            &(gateway.clone() + &document),
            &sources("", &["192.0.2.1"]),
            &[],
        );
        let ObjectStatus::ListenerSet { conditions, .. } = &all[id] else {
            panic!("{all:?}")
        };
        assert_eq!(short(conditions), expected, "{document}");
        let ObjectStatus::Gateway { sets, .. } = &all["Gateway/edge/main"] else {
            panic!("{all:?}")
        };
        assert_eq!(*sets, count, "{document}");
    }
}

#[test]
fn gateway_of_a_class_that_is_not_accepted_is_not_either() {
    let class = object(
        "GatewayClass",
        "x/strait",
        &format!("controllerName: {CONTROLLER}, parametersRef: {{group: a.b, kind: C, name: d}}"),
    );
    let all = status_of(&(class + &gateway("main", HTTP)), &sources("", &[]), &[]);
    let ObjectStatus::Gateway { conditions, .. } = &all["Gateway/edge/main"] else {
        panic!("{all:?}")
    };
    assert_eq!(
        short(conditions),
        "-Accepted InvalidParameters, -Programmed Invalid"
    );
}

#[test]
fn objects_of_other_controllers_have_no_status() {
    let class = |controller: &str, more: &str| {
        object(
            "GatewayClass",
            "x/strait",
            &format!("controllerName: {controller}{more}"),
        )
    };
    let text = class("a.test/b", "") + &gateway("main", HTTP);
    assert!(status_of(&text, &sources("", &[]), &[]).is_empty());
    for (more, expected) in [
        ("", "+Accepted"),
        (
            ", parametersRef: {group: a.b, kind: C, name: d}",
            "-Accepted InvalidParameters",
        ),
    ] {
        let all = status_of(&class(CONTROLLER, more), &sources("", &[]), &[]);
        let found: Vec<_> = all.values().collect();
        let [ObjectStatus::Class(conditions)] = &*found else {
            panic!("{all:?}")
        };
        assert_eq!(short(conditions), expected);
    }
}

/// Certificate for `a.test` and `*.shared.test`.
const SHARED: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBmzCCAUGgAwIBAgIUVY00DcfzSVPFoIZuY0rxn9k0QqMwCgYIKoZIzj0EAwIw\n\
ETEPMA0GA1UEAwwGc2hhcmVkMCAXDTI2MTEyOTIxMTAxMloYDzIxMjYxMTA1MjEx\n\
MDEyWjARMQ8wDQYDVQQDDAZzaGFyZWQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
AAT8oQju1wR7W4hLFU4lBCpTlIsdT3vjaszdhynmqbmfedANkPpYWGGeM1+fmrn6\n\
1LqEa6aarQZaZBYPFPfGWnfCo3UwczAdBgNVHQ4EFgQUbShHLT6ofIYI36P/t/Zp\n\
Um+QUhkwHwYDVR0jBBgwFoAUbShHLT6ofIYI36P/t/ZpUm+QUhkwDwYDVR0TAQH/\n\
BAUwAwEB/zAgBgNVHREEGTAXggZhLnRlc3SCDSouc2hhcmVkLnRlc3QwCgYIKoZI\n\
zj0EAwIDSAAwRQIhAO+UGn2uZHIgJti1LCAAa8ophKZHUwdQDEWrJqjEgtdKAiBZ\n\
ZCpBPA8Mh2A8T4oDTh+rxpygtF5AeQdkE5GNo/nTAw==\n\
-----END CERTIFICATE-----\n";
/// Certificate for `b.test` and `x.shared.test`.
const OTHER: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBmjCCAT+gAwIBAgIUZUy+fxTWeg9mYsW1bcqWwyJtjMMwCgYIKoZIzj0EAwIw\n\
EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTI5MjExMDEyWhgPMjEyNjExMDUyMTEw\n\
MTJaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n\
Y2XFOq5C9Jlh+1hT+cPdecj4s2J7KoFXM23m0HxYHi/sj69deCSEYcRrFlH7LP4I\n\
sJWBf6BmY3o0yx1yqWVrYqN1MHMwHQYDVR0OBBYEFCFu1EMW/jZuR87esdr2jAdK\n\
YbFOMB8GA1UdIwQYMBaAFCFu1EMW/jZuR87esdr2jAdKYbFOMA8GA1UdEwEB/wQF\n\
MAMBAf8wIAYDVR0RBBkwF4IGYi50ZXN0gg14LnNoYXJlZC50ZXN0MAoGCCqGSM49\n\
BAMCA0kAMEYCIQDq32lfzqvvTLCFgGm5IYeG72jFzmj6tU/obdn2a4DmHAIhAMbH\n\
kxJLmyiNQsNf7yn8LPrNbwlsSpNcwiJ+Zeek2ODx\n\
-----END CERTIFICATE-----\n";
/// Certificate for `c.test`.
const OWN: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBhjCCASygAwIBAgIUWzVbrCF2hjbsvK54I1bR0kvfMUYwCgYIKoZIzj0EAwIw\n\
DjEMMAoGA1UEAwwDb3duMCAXDTI2MTEyOTIxMTAxMloYDzIxMjYxMTA1MjExMDEy\n\
WjAOMQwwCgYDVQQDDANvd24wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQErasS\n\
/afJWH3UA/3eUzNftK/HvHcx+usgCKbh0urfA79n44hv1SVN+J5PYDuNu2SSPFer\n\
1ftzwSWdw/GH9fTbo2YwZDAdBgNVHQ4EFgQUkiHZG4uxaDuuvO57uxY/HeSOr+Aw\n\
HwYDVR0jBBgwFoAUkiHZG4uxaDuuvO57uxY/HeSOr+AwDwYDVR0TAQH/BAUwAwEB\n\
/zARBgNVHREECjAIggZjLnRlc3QwCgYIKoZIzj0EAwIDSAAwRQIgRSchuiuLaafR\n\
XZiJIjVe/4B4YSSU7k27iFralhYKvNMCIQCwFcHURHODtCxav5S+ozkDcWv/zB/c\n\
wKafLKEvYxXCqA==\n\
-----END CERTIFICATE-----\n";

#[test]
fn listeners_that_share_hosts_or_names_of_certificates_overlap() {
    let secret = |name: &str, pem: &str| {
        format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: edge}}, stringData: {{tls.crt: {pem:?}, tls.key: {pem:?}}}}}\n---\n"
        )
    };
    let secrets = [
        secret("shared", SHARED),
        secret("other", OTHER),
        secret("own", OWN),
    ];
    let listener = |name: &str, of: &str| {
        let (host, secret) = of.split_once(' ').unwrap();
        let host = match host {
            "*" => String::new(),
            host => format!("hostname: '{host}', "),
        };
        format!(
            "{{name: {name}, port: 443, protocol: HTTPS, {host}tls: {{certificateRefs: [{{name: {secret}}}]}}}}"
        )
    };
    let (certificates, hosts) = ("OverlappingCertificates", "OverlappingHostnames");
    for (one, two, expected) in [
        ("a.test shared", "c.test own", None),
        ("a.test shared", "b.test other", Some(certificates)),
        ("a.test shared", "b.test shared", Some(certificates)),
        ("a.test none", "b.test none", None),
        ("a.test shared", "*.test own", Some(hosts)),
        ("* shared", "c.test own", Some(hosts)),
        ("x.test shared", "*.test other", Some(certificates)),
    ] {
        let all = [listener("one", one), listener("two", two)].join(", ");
        let all = gateway("main", &format!("listeners: [{all}]"));
        let text = secrets.concat() + &all;
        let all = status_of(&text, &sources("", &["192.0.2.1"]), &[]);
        let ObjectStatus::Gateway { listeners, .. } = &all["Gateway/edge/main"] else {
            panic!("{all:?}")
        };
        for (listener, other) in listeners.iter().zip(["two", "one"]) {
            let mut conditions = listener.conditions.iter();
            let found = conditions.find(|one| one.name == "OverlappingTLSConfig");
            assert_eq!(found.map(|one| one.reason), expected, "{one}, {two}");
            assert!(
                found.is_none_or(|one| one.message.contains(other)),
                "{found:?}"
            );
        }
    }
}

#[test]
fn listener_beside_a_gateway_with_other_policies_is_not_accepted() {
    let spec = |host: &str| {
        format!("listeners: [{{name: http, port: 80, protocol: HTTP, hostname: {host}}}]")
    };
    let gateways = gateway("main", &spec("a.test")) + &gateway("other", &spec("b.test"));
    let policy = |namespace: &str, kind: &str, name: &str| {
        format!(
            "{{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {{name: p, namespace: {namespace}}}, \
             spec: {{targetRefs: [{{group: gateway.networking.k8s.io, kind: {kind}, name: {name}}}]}}}}\n---\n"
        )
    };
    let second_class = gateways.replacen("gatewayClassName: strait", "gatewayClassName: second", 1)
        + &object(
            "GatewayClass",
            "x/second",
            &format!("controllerName: {CONTROLLER}"),
        );
    for (text, is_closed) in [
        (gateways.clone(), false),
        (gateways + &policy("edge", "Gateway", "main"), true),
        // policies of a class are those of the root namespace
        (
            second_class.clone() + &policy("istio-system", "GatewayClass", "second"),
            false,
        ),
        (
            second_class + &policy("config", "GatewayClass", "second"),
            true,
        ),
    ] {
        let set = set(&text);
        let settings = StatusSettings {
            controller: CONTROLLER,
            domain: "cluster.local",
            root_namespace: "config",
            crds: &CrdBundle::default(),
            sources: &sources("", &["192.0.2.1"]),
            held: &HashMap::new(),
        };
        let all = statuses(View::from(&set), settings);
        let listeners = all.into_values().filter_map(|one| match one {
            ObjectStatus::Gateway { listeners, .. } => Some(listeners),
            _ => None,
        });
        let accepted = listeners.map(|one| one[0].conditions[0].clone());
        let accepted: Vec<Condition> = accepted.collect();
        let expected = match is_closed {
            true => "-Accepted PortUnavailable, +Accepted",
            false => "+Accepted, +Accepted",
        };
        assert_eq!(short(&accepted), expected, "{text}");
        assert_eq!(accepted[0].message.contains("GA014"), is_closed, "{text}");
    }
}
