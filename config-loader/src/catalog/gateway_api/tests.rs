//! Tests of listeners, attachments and references, as tables.

use super::*;
use crate::ResourceSet;
use crate::catalog::View;
use crate::diagnostic::Diagnostics;
use crate::load_bytes;
use crate::resource::gateway_api::HTTPRoute;

pub(super) fn object(kind: &str, id: &str, spec: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let metadata = format!("{{name: {name}, namespace: {namespace}}}");
    format!(
        "---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: {kind}, metadata: {metadata}, spec: {{{spec}}}}}\n"
    )
}

pub(super) fn gateway(spec: &str) -> String {
    object(
        "Gateway",
        "edge/main",
        &format!("gatewayClassName: strait, {spec}"),
    )
}

pub(super) fn core(kind: &str, id: &str, rest: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "---\n{{apiVersion: v1, kind: {kind}, metadata: {{name: {name}, namespace: {namespace}}}, {rest}}}\n"
    )
}

pub(super) fn set(documents: &[String]) -> ResourceSet {
    let mut found = Diagnostics::default();
    let text = documents.concat();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut found);
    assert!(!found.has_errors(), "{text}\n{:?}", found.into_sorted());
    set
}

/// Returns the listeners of the only Gateway, each with its problem.
fn listeners(documents: &[String]) -> Vec<(String, Option<ListenerProblem>)> {
    let set = set(documents);
    let gateways = Gateways::of(View::from(&set), CONTROLLER);
    let [gateway] = &*gateways.all else {
        panic!("one Gateway")
    };
    let listeners = gateway.listeners.iter();
    listeners
        .map(|one| (one.listener.name.to_string(), one.problem.clone()))
        .collect()
}

fn problem_names(documents: &[String]) -> Vec<String> {
    let listeners = listeners(documents).into_iter();
    let name = |problem: Option<ListenerProblem>| match problem {
        None => "ok",
        Some(ListenerProblem::HostnameConflict(_)) => "host",
        Some(ListenerProblem::NoValidCaCertificate) => "ca",
        Some(ListenerProblem::ProtocolConflict(_)) => "protocol",
        Some(ListenerProblem::UnsupportedProtocol) => "unsupported",
    };
    listeners
        .map(|(listener, problem)| format!("{listener} {}", name(problem)))
        .collect()
}

const TLS: &str = "tls: {mode: Terminate, certificateRefs: [{name: cert}]}";

fn listener(name: &str, protocol: &str, port: u16, more: &str) -> String {
    format!("{{name: {name}, protocol: {protocol}, port: {port}{more}}}")
}

#[test]
fn class_decides_who_serves_a_gateway() {
    let class = |controller: &str, more: &str| {
        format!(
            "---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {{name: strait}}, \
             spec: {{controllerName: {controller}{more}}}}}\n"
        )
    };
    let parameters = ", parametersRef: {group: a.b, kind: C, name: d}";
    let one = gateway("listeners: [{name: a, protocol: HTTP, port: 80}]");
    let other = one.replace("gatewayClassName: strait", "gatewayClassName: other");
    for (documents, expected) in [
        (vec![one.clone()], ClassOf::Served),
        (vec![other], ClassOf::Unknown),
        (vec![one.clone(), class(CONTROLLER, "")], ClassOf::Served),
        (
            vec![one.clone(), class("a.b/c", "")],
            ClassOf::Other("a.b/c"),
        ),
        (
            vec![one, class(CONTROLLER, parameters)],
            ClassOf::WithParameters,
        ),
    ] {
        let set = set(&documents);
        let view = View::from(&set);
        let gateway = set.kubernetes_gateways.values().next().unwrap();
        assert_eq!(
            class_of(view, gateway, CONTROLLER),
            expected,
            "{documents:?}"
        );
        let served = Gateways::of(view, CONTROLLER).iter().count();
        assert_eq!(served == 1, expected == ClassOf::Served);
    }
}

#[test]
fn listeners_of_a_port_differ_by_host_and_share_a_protocol() {
    let host = |host: &str| format!(", hostname: {host}");
    let tls = |host: &str| format!(", hostname: {host}, {TLS}");
    let passthrough = |host: &str| format!(", hostname: {host}, tls: {{mode: Passthrough}}");
    let rows = [
        (
            listener("a", "HTTP", 80, ""),
            listener("b", "HTTP", 80, &host("x.test")),
            "ok ok",
        ),
        (
            listener("a", "HTTP", 80, ""),
            listener("b", "HTTP", 81, ""),
            "ok ok",
        ),
        (
            listener("a", "HTTP", 80, ""),
            listener("b", "HTTPS", 80, &tls("x.test")),
            "protocol protocol",
        ),
        (
            listener("a", "HTTPS", 443, &tls("x.test")),
            listener("b", "TLS", 443, &passthrough("y.test")),
            "ok ok",
        ),
        (
            listener("a", "HTTPS", 443, &tls("x.test")),
            listener("b", "TLS", 443, &passthrough("x.test")),
            "host host",
        ),
        (
            listener("a", "TLS", 443, &tls("x.test")),
            listener("b", "TLS", 443, &passthrough("y.test")),
            "ok ok",
        ),
        (
            listener("a", "TCP", 90, ""),
            listener("b", "HTTP", 90, ""),
            "protocol protocol",
        ),
        (
            listener("a", "TCP", 90, ""),
            listener("b", "TCP", 91, ""),
            "ok ok",
        ),
        (
            listener("a", "HTTP", 80, ""),
            listener("b", "foo.test/QUIC", 80, ""),
            "ok unsupported",
        ),
        (
            listener("a", "HTTP", 80, ""),
            listener(
                "b",
                "TCP",
                80,
                ", allowedRoutes: {kinds: [{kind: HTTPRoute}]}",
            ),
            "ok ok",
        ),
    ];
    for (a, b, expected) in rows {
        let found = problem_names(&[gateway(&format!("listeners: [{a}, {b}]"))]);
        let found = found.iter().map(|one| one.split(' ').next_back().unwrap());
        assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{a} {b}");
    }
}

#[test]
fn earlier_objects_keep_their_ports() {
    let set_of = |name: &str, created: u8, listeners: &str| {
        let parent = "parentRef: {name: main, namespace: edge}";
        let text = object(
            "ListenerSet",
            &format!("edge/{name}"),
            &format!("{parent}, listeners: [{listeners}]"),
        );
        text.replace(
            "metadata: {",
            &format!("metadata: {{creationTimestamp: '20{created:02}-01-01T00:00:00Z', "),
        )
    };
    let own = "allowedListeners: {namespaces: {from: Same}}, listeners: [{name: a, protocol: HTTP, port: 80}]";
    let found = listeners(&[
        gateway(own),
        set_of(
            "young",
            3,
            "{name: why, protocol: HTTP, port: 81}, {name: z, protocol: HTTP, port: 82}, {name: z2, protocol: TCP, port: 82}",
        ),
        set_of(
            "old",
            2,
            "{name: o, protocol: TCP, port: 81}, {name: p, protocol: HTTP, port: 80}",
        ),
    ]);
    let with = |name: &str, owner: &str| format!("listener `{name}` of {owner}");
    assert_eq!(
        found,
        [
            ("a".to_owned(), None),
            ("o".to_owned(), None),
            (
                "p".to_owned(),
                Some(ListenerProblem::HostnameConflict(with(
                    "a",
                    "Gateway/edge/main"
                )))
            ),
            (
                "why".to_owned(),
                Some(ListenerProblem::ProtocolConflict(with(
                    "o",
                    "ListenerSet/edge/old"
                )))
            ),
            (
                "z".to_owned(),
                Some(ListenerProblem::ProtocolConflict(with(
                    "z2",
                    "ListenerSet/edge/young"
                )))
            ),
            (
                "z2".to_owned(),
                Some(ListenerProblem::ProtocolConflict(with(
                    "z",
                    "ListenerSet/edge/young"
                )))
            ),
        ]
    );
    let closed = listeners(&[
        gateway(&own.replace("Same", "None")),
        set_of("old", 2, "{name: o, protocol: TCP, port: 81}"),
    ]);
    assert_eq!(closed, [("a".to_owned(), None)]);
}

#[test]
fn routes_attach_to_the_listeners_that_take_them() {
    let gateway = gateway(
        "listeners: [\
         {name: any, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}, \
         {name: wild, hostname: '*.shop.test', protocol: HTTP, port: 81, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: web}}}}}, \
         {name: same, hostname: shop.test, protocol: HTTP, port: 82}, \
         {name: grpc, protocol: HTTP, port: 83, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}}]",
    );
    let team =
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: web, labels: {team: web}}}\n"
            .to_owned();
    let rows = [
        ("edge/r", "", "", Ok("any *, same shop.test")),
        ("other/r", "", "", Ok("any *")),
        ("web/r", "", "", Ok("any *, wild *.shop.test")),
        (
            "web/r",
            "",
            "'*.test', a.shop.test, '*.b.shop.test', x.com",
            Ok(
                "any *.test a.shop.test *.b.shop.test x.com, wild *.shop.test a.shop.test *.b.shop.test",
            ),
        ),
        (
            "web/r",
            ", sectionName: wild",
            "x.com",
            Err(AttachmentProblem::NoMatchingListenerHostname),
        ),
        (
            "web/r",
            ", sectionName: wild",
            "shop.test",
            Err(AttachmentProblem::NoMatchingListenerHostname),
        ),
        (
            "web/r",
            ", sectionName: same",
            "",
            Err(AttachmentProblem::NotAllowedByListeners),
        ),
        (
            "edge/r",
            ", sectionName: grpc",
            "",
            Err(AttachmentProblem::NotAllowedByListeners),
        ),
        (
            "edge/r",
            ", sectionName: none",
            "",
            Err(AttachmentProblem::NoMatchingParent),
        ),
        ("edge/r", ", port: 82", "", Ok("same shop.test")),
        (
            "edge/r",
            ", sectionName: any, port: 82",
            "",
            Err(AttachmentProblem::NoMatchingParent),
        ),
    ];
    for (id, more, hosts, expected) in rows {
        let parent = format!("{{name: main, namespace: edge{more}}}");
        let spec = format!("parentRefs: [{parent}], hostnames: [{hosts}], rules: [{{}}]");
        let set = set(&[
            gateway.clone(),
            team.clone(),
            object("HTTPRoute", id, &spec),
        ]);
        let gateways = Gateways::of(View::from(&set), CONTROLLER);
        let route: &Object<HTTPRoute> = set.http_routes.values().next().unwrap();
        let found = gateways
            .attach(route.into(), &route.spec.parents[0])
            .unwrap();
        let found = found.map(|attached| {
            let texts = attached.iter().map(|one| {
                let hosts: Vec<&str> = one.hosts.iter().map(|host| &**host).collect();
                format!("{} {}", one.listener.listener.name, hosts.join(" "))
            });
            texts.collect::<Vec<_>>().join(", ")
        });
        assert_eq!(
            found.as_deref(),
            expected.as_ref().map(|text| *text),
            "{id}{more} {hosts}"
        );
    }
}

#[test]
fn references_into_other_namespaces_need_a_grant() {
    let service = core("Service", "shop/cart", "spec: {ports: [{port: 80}]}");
    let route = |target: &str| {
        let spec = format!("parentRefs: [{{name: main}}], rules: [{{backendRefs: [{target}]}}]");
        object("HTTPRoute", "edge/r", &spec)
    };
    let grant = |from: &str, to: &str| {
        object(
            "ReferenceGrant",
            "shop/g",
            &format!("from: [{{{from}}}], to: [{{{to}}}]"),
        )
    };
    let from = "group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge";
    let cart = "{name: cart, namespace: shop, port: 80}";
    let denied = Err(ReferenceProblem::NotPermitted);
    let granted = Ok(BackendHost {
        host: "cart.shop.svc.cluster.local".to_owned(),
        port: 80,
        tls_policy: None,
    });
    let missing = |what: &str| Err(ReferenceProblem::NotFound(what.to_owned()));
    let to = "group: '', kind: Service";
    let rows = [
        (cart, None, denied.clone()),
        (cart, Some(grant(from, to)), granted.clone()),
        (
            cart,
            Some(grant(from, "group: '', kind: Service, name: cart")),
            granted.clone(),
        ),
        (
            cart,
            Some(grant(from, "group: '', kind: Service, name: other")),
            denied.clone(),
        ),
        (
            cart,
            Some(grant(from, "group: '', kind: Secret")),
            denied.clone(),
        ),
        (
            cart,
            Some(grant(&from.replace("edge", "web"), to)),
            denied.clone(),
        ),
        (
            cart,
            Some(grant(&from.replace("HTTPRoute", "TLSRoute"), to)),
            denied.clone(),
        ),
        (
            cart,
            Some(grant(&from.replace("gateway.networking.k8s.io", "a.b"), to)),
            denied.clone(),
        ),
        (
            cart,
            Some(grant(from, to).replace("namespace: shop", "namespace: edge")),
            denied,
        ),
        (
            "{name: cart, namespace: shop, port: 81}",
            Some(grant(from, to)),
            missing("Service shop/cart has no port 81"),
        ),
        (
            "{name: none, port: 80}",
            None,
            missing("Service edge/none does not exist"),
        ),
        (
            "{name: a, kind: Pod, port: 80}",
            None,
            Err(ReferenceProblem::InvalidKind),
        ),
    ];
    for (target, grant, expected) in rows {
        let documents = [Some(service.clone()), Some(route(target)), grant.clone()];
        let set = set(&documents.into_iter().flatten().collect::<Vec<_>>());
        let route = set.http_routes.values().next().unwrap();
        let target = &route.spec.rules[0].backends[0].target;
        let found = backend(View::from(&set), &route.id, target, "cluster.local");
        assert_eq!(found, expected, "{grant:?}");
    }
}

#[test]
fn certificates_are_secrets_with_both_keys() {
    let secret = |id: &str, data: &str| core("Secret", id, &format!("stringData: {{{data}}}"));
    let https = |target: &str| {
        gateway(&format!(
            "listeners: [{{name: a, protocol: HTTPS, port: 443, tls: {{certificateRefs: [{{{target}}}]}}}}]"
        ))
    };
    let both = "tls.crt: -----BEGIN CERTIFICATE-----, tls.key: -----BEGIN PRIVATE KEY-----";
    let missing = |what: &str| Some(ReferenceProblem::NotFound(what.to_owned()));
    let rows = [
        (https("name: cert"), secret("edge/cert", both), None),
        (
            https("name: cert"),
            secret("edge/cert", "tls.crt: -----BEGIN CERTIFICATE-----"),
            Some(ReferenceProblem::Malformed(
                "Secret edge/cert has no PEM in `tls.key`".to_owned(),
            )),
        ),
        (
            https("name: cert"),
            secret("edge/other", both),
            missing("Secret edge/cert does not exist"),
        ),
        (
            https("name: cert, namespace: web"),
            secret("web/cert", both),
            Some(ReferenceProblem::NotPermitted),
        ),
        (
            https("name: cert, kind: ConfigMap"),
            secret("edge/cert", both),
            Some(ReferenceProblem::InvalidKind),
        ),
    ];
    for (gateway, secret, expected) in rows {
        let set = set(&[gateway.clone(), secret]);
        let gateways = Gateways::of(View::from(&set), CONTROLLER);
        let served = &gateways.all[0].listeners[0];
        assert_eq!(served.problem, None);
        assert_eq!(served.is_usable(), expected.is_none(), "{gateway}");
        let problem = served.certificate_problems().next();
        assert_eq!(
            problem.map(|(_, problem)| problem.clone()),
            expected,
            "{gateway}"
        );
    }
}

#[test]
fn clients_are_those_of_the_gateway_else_those_of_the_options() {
    let frontend = "tls: {frontend: {default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: '', kind: ConfigMap, name: none}, {group: '', kind: ConfigMap, name: ca}]}}}}, ";
    let mutual = "options: {gateway.istio.io/tls-terminate-mode: MUTUAL}";
    let optional = "options: {gateway.istio.io/tls-terminate-mode: OPTIONAL_MUTUAL}";
    let pem = "ca.crt: -----BEGIN CERTIFICATE-----";
    let keys = "tls.crt: -----BEGIN CERTIFICATE-----, tls.key: -----BEGIN PRIVATE KEY-----";
    let cert = |more: &str| {
        core(
            "Secret",
            "edge/cert",
            &format!("stringData: {{{keys}{more}}}"),
        )
    };
    let with_ca = cert(&format!(", {pem}"));
    for (frontend, options, secret, expected) in [
        ("", "", with_ca.clone(), "none"),
        ("", "options: {vendor.test/a: b}", with_ca.clone(), "none"),
        ("", mutual, with_ca.clone(), "Required cert"),
        ("", optional, with_ca.clone(), "Optional cert"),
        (frontend, mutual, with_ca, "Unverified ca"),
        ("", mutual, cert(""), "closed"),
    ] {
        let listener = format!(
            "{{name: a, protocol: HTTPS, port: 443, tls: {{certificateRefs: [{{name: cert}}], {options}}}}}"
        );
        let ca = core("ConfigMap", "edge/ca", &format!("data: {{{pem}}}"));
        let set = set(&[
            gateway(&format!("{frontend}listeners: [{listener}]")),
            secret,
            ca,
        ]);
        let gateways = Gateways::of(View::from(&set), CONTROLLER);
        let served = &gateways.all[0].listeners[0];
        let found = match &served.clients {
            _ if !served.is_served() => "closed".to_owned(),
            None => "none".to_owned(),
            Some(clients) => {
                let names = clients.trusted();
                let names: Vec<&str> = names.iter().map(|one| &*one.name).collect();
                format!("{:?} {}", clients.certificates, names.join(" "))
            }
        };
        assert_eq!(found, expected, "{frontend} {options}");
    }
}

#[test]
fn client_validation_is_that_of_the_port() {
    let gateway = gateway(&format!(
        "tls: {{frontend: {{default: {{validation: {{caCertificateRefs: [{{group: '', kind: ConfigMap, name: none}}]}}}}, \
         perPort: [{{port: 8443, tls: {{validation: {{caCertificateRefs: [{{group: '', kind: ConfigMap, name: ca}}]}}}}}}]}}}}, \
         listeners: [{}, {}, {}]",
        listener("a", "HTTPS", 443, &format!(", {TLS}")),
        listener("b", "HTTPS", 8443, &format!(", {TLS}")),
        listener("c", "HTTP", 80, ""),
    ));
    let ca = core(
        "ConfigMap",
        "edge/ca",
        "data: {ca.crt: '-----BEGIN CERTIFICATE-----'}",
    );
    assert_eq!(problem_names(&[gateway, ca]), ["a ca", "b ok", "c ok"]);
}
