//! Fields that are read and not followed: each has a finding, and the reason in the status that the API knows for it.

use std::collections::HashMap;

use super::found;
use crate::catalog::View;
use crate::catalog::gateway_api::CONTROLLER;
use crate::catalog::gateway_api::status::{
    AddressSources, Condition, CrdBundle, ObjectStatus, StatusAddress, StatusSettings, statuses,
};
use crate::diagnostic::Diagnostics;
use crate::load_bytes;

/// Returns the conditions of an object, those of its first listener or parent last: `Type=Reason` of all that differ
/// from those of an object without a problem.
fn reasons(text: &str, id: &str) -> String {
    let text = text.replace("GATEWAY-API", "gateway.networking.k8s.io/v1");
    let documents = text.lines().map(|line| format!("---\n{line}\n"));
    let text: String = documents.collect();
    let mut found = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut found);
    assert!(!found.has_errors(), "{text}");
    let sources = AddressSources {
        shared: vec![StatusAddress::Ip([192, 0, 2, 1].into())],
        ..AddressSources::default()
    };
    let settings = StatusSettings {
        controller: CONTROLLER,
        domain: "cluster.local",
        root_namespace: "istio-system",
        crds: &CrdBundle::default(),
        sources: &sources,
        held: &HashMap::default(),
    };
    let all = statuses(View::from(&set), settings);
    let found = all.iter().find(|(object, _)| object.to_string() == id);
    let (own, of_part): (&[Condition], &[Condition]) = match found.map(|(_, status)| status) {
        None => return "no status".to_owned(),
        Some(ObjectStatus::Gateway {
            conditions,
            listeners,
            ..
        }) => {
            let first = listeners.first();
            (conditions, first.map_or(&[], |one| &one.conditions))
        }
        Some(ObjectStatus::Route(parents)) => (&parents[0].conditions, &[]),
        Some(ObjectStatus::Class(conditions)) => (conditions, &[]),
        other => panic!("{other:?}"),
    };
    let is_usual = |one: &&Condition| one.reason != one.name && one.reason != "NoConflicts";
    let short = |one: &Condition| format!("{}={}", one.name, one.reason);
    let all = own.iter().chain(of_part).filter(is_usual).map(short);
    all.collect::<Vec<_>>().join(" ")
}

fn gateway(spec: &str) -> String {
    format!(
        "{{apiVersion: GATEWAY-API, kind: Gateway, metadata: {{name: a}}, spec: {{gatewayClassName: strait, {spec}}}}}\n"
    )
}

fn object(kind: &str, spec: &str) -> String {
    format!("{{apiVersion: GATEWAY-API, kind: {kind}, metadata: {{name: r}}, spec: {{{spec}}}}}\n")
}

#[test]
fn field_without_effect_has_its_finding_and_its_reason() {
    let http = "listeners: [{name: http, protocol: HTTP, port: 80}]";
    let service =
        "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}\n";
    let route = |kind: &str, rules: &str| {
        let route = object(
            kind,
            &format!("parentRefs: [{{name: a}}], rules: [{rules}]"),
        );
        gateway(http) + service + &route
    };
    let backends = "backendRefs: [{name: web, port: 80}]";
    let extension = "{type: ExtensionRef, extensionRef: {group: a.b, kind: C, name: d}}";
    let external =
        "{type: ExternalAuth, externalAuth: {protocol: GRPC, backendRef: {name: web, port: 80}}}";
    let cors = "{type: CORS, cors: {allowOrigins: ['*']}}";
    let filtered = |filter: &str| format!("{{filters: [{filter}], {backends}}}");
    let of_backend =
        |filter: &str| format!("{{backendRefs: [{{name: web, port: 80, filters: [{filter}]}}]}}");
    let whole = format!("{{{backends}}}");
    let other = format!("{{matches: [{{path: {{value: /b}}}}], {backends}}}");
    let class = format!(
        "{{apiVersion: GATEWAY-API, kind: GatewayClass, metadata: {{name: strait}}, spec: {{controllerName: {CONTROLLER}, \
         parametersRef: {{group: a.b, kind: C, name: d}}}}}}\n"
    );
    let of_service = |kind: &str, more: &str, rule: &str| {
        let parent = "parentRefs: [{group: '', kind: Service, name: web";
        service.to_owned() + &object(kind, &format!("{parent}{more}, rules: [{rule}]"))
    };
    let refused = "Accepted=UnsupportedValue";
    let partly = "PartiallyInvalid=UnsupportedValue";
    let not_valid = "Accepted=ListenersNotValid Programmed=Invalid Accepted=UnsupportedProtocol Programmed=Invalid";
    for (text, id, codes, expected) in [
        (
            route(
                "HTTPRoute",
                &format!("{{sessionPersistence: {{}}, {backends}}}"),
            ),
            "HTTPRoute/default/r",
            "GA041",
            "",
        ),
        (
            route(
                "GRPCRoute",
                &format!("{{sessionPersistence: {{}}, {backends}}}"),
            ),
            "GRPCRoute/default/r",
            "GA041",
            "",
        ),
        (
            route("HTTPRoute", &filtered(extension)),
            "HTTPRoute/default/r",
            "GA041",
            refused,
        ),
        (
            route("HTTPRoute", &filtered(external)),
            "HTTPRoute/default/r",
            "GA041",
            refused,
        ),
        (
            route("HTTPRoute", &filtered("{type: Later}")),
            "HTTPRoute/default/r",
            "GA041",
            refused,
        ),
        (
            route("GRPCRoute", &filtered(extension)),
            "GRPCRoute/default/r",
            "GA041",
            refused,
        ),
        (
            route("HTTPRoute", &format!("{}, {other}", filtered(extension))),
            "HTTPRoute/default/r",
            "GA041",
            partly,
        ),
        (
            route("HTTPRoute", &format!("{}, {other}", of_backend(extension))),
            "HTTPRoute/default/r",
            "GA041",
            partly,
        ),
        (
            route("HTTPRoute", &format!("{}, {other}", of_backend(cors))),
            "HTTPRoute/default/r",
            "GA041",
            partly,
        ),
        (
            route("HTTPRoute", &of_backend(cors)),
            "HTTPRoute/default/r",
            "GA041",
            refused,
        ),
        (
            object(
                "UDPRoute",
                &format!("parentRefs: [{{name: a}}], rules: [{whole}]"),
            ),
            "UDPRoute/default/r",
            "GA008",
            "no status",
        ),
        (
            of_service("TCPRoute", "}]", &whole),
            "TCPRoute/default/r",
            "GA052",
            "no status",
        ),
        (
            of_service(
                "HTTPRoute",
                ", sectionName: x}], hostnames: [a.test]",
                &whole,
            ),
            "HTTPRoute/default/r",
            "GA050 GA050",
            "",
        ),
        (
            gateway("listeners: [{name: dns, protocol: UDP, port: 53}]"),
            "Gateway/default/a",
            "GA020",
            not_valid,
        ),
        (
            gateway("listeners: [{name: x, protocol: a.b/c, port: 53}]"),
            "Gateway/default/a",
            "GA020",
            not_valid,
        ),
        (
            gateway(&format!(
                "infrastructure: {{parametersRef: {{group: a.b, kind: C, name: d}}}}, {http}"
            )),
            "Gateway/default/a",
            "GA010",
            "Accepted=InvalidParameters Programmed=Invalid Programmed=Pending",
        ),
        (
            gateway(&format!("infrastructure: {{labels: {{a: b}}}}, {http}")),
            "Gateway/default/a",
            "GA012",
            "",
        ),
        (
            class + &gateway(http),
            "GatewayClass/r",
            "GA010 GA010",
            "no status",
        ),
        (
            gateway(
                "listeners: [{name: x, protocol: HTTPS, port: 443, tls: {options: {a.b/c: d}, certificateRefs: [{name: none}]}}]",
            ),
            "Gateway/default/a",
            "GA030 GA031",
            "ResolvedRefs=ListenersNotResolved ResolvedRefs=InvalidCertificateRef Programmed=Invalid",
        ),
    ] {
        let mut codes_found: Vec<String> = found(&text)
            .iter()
            .map(|line| line[..5].to_owned())
            .collect();
        codes_found.sort();
        assert_eq!(codes_found.join(" "), codes, "{text}");
        assert_eq!(reasons(&text, id), expected, "{text}");
    }
}
