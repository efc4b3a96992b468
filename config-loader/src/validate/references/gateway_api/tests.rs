use crate::diagnostic::Diagnostics;
use crate::load_bytes;

fn found(text: &str) -> Vec<String> {
    let documents = text.lines().map(|line| format!("---\n{line}\n"));
    let text: String = documents.collect();
    let text = text.replace("GATEWAY-API", "gateway.networking.k8s.io/v1");
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", text.as_bytes(), &mut found);
    let ours = found.into_sorted().into_iter();
    let ours = ours.filter(|found| found.code.0.starts_with("GA") && found.code.0 != "GA000");
    ours.map(|found| {
        let help = found
            .help
            .map(|help| format!(" ({help})"))
            .unwrap_or_default();
        format!("{} {}: {}{help}", found.code, found.field, found.message)
    })
    .collect()
}

#[test]
fn gateways_that_are_not_served_are_notes() {
    let text = "\
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: none, listeners: [{name: a, protocol: HTTP, port: 80}]}}
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: b}, spec: {gatewayClassName: other, listeners: [{name: a, protocol: HTTP, port: 80}]}}
{apiVersion: GATEWAY-API, kind: GatewayClass, metadata: {name: other}, spec: {controllerName: a.b/c}}";
    assert_eq!(
        found(text),
        [
            "GA001 spec.gatewayClassName: no GatewayClass has the name `none`: the Gateway is not served (write `strait`, or add \
             a GatewayClass `none` with `controllerName: strait.io/gateway-controller`)",
            "GA002 spec.gatewayClassName: the class `other` is of the controller `a.b/c` (leave it to that controller, or write a \
             class of this one)",
        ]
    );
}

#[test]
fn listeners_and_references_that_do_not_hold_are_reported() {
    let text = "\
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: strait, listeners: [{name: one, protocol: HTTP, port: 80}, {name: two, protocol: TCP, port: 80}, {name: tls, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: cert, namespace: web}]}}]}}";
    let found = found(text);
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("GA020 spec.listeners[one]: listener `one` is not accepted: listener `two` of Gateway/default/a has port 80, and cannot share it with HTTP"));
    assert!(found[1].starts_with("GA020 spec.listeners[two]: "));
    assert_eq!(
        found[2],
        "GA021 spec.listeners[tls].tls.certificateRefs: no ReferenceGrant permits this reference to Secret web/cert (apply \
         {apiVersion: gateway.networking.k8s.io/v1, kind: ReferenceGrant, metadata: {name: default-to-cert, namespace: web}, \
         spec: {from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}], to: [{group: \"\", kind: Secret, \
         name: cert}]}})"
    );
}

#[test]
fn routes_that_attach_to_nothing_and_backends_that_do_not_exist_are_reported() {
    let text = "\
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: strait, listeners: [{name: web, protocol: HTTP, port: 80, hostname: shop.test}, {name: raw, protocol: TCP, port: 90}]}}
{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: a, sectionName: wep}, {name: b}, {name: a, sectionName: web}], hostnames: [x.test], rules: [{backendRefs: [{name: none, port: 80}]}]}}
{apiVersion: GATEWAY-API, kind: TCPRoute, metadata: {name: old}, spec: {parentRefs: [{name: a}], rules: [{backendRefs: [{name: db, port: 80}]}]}}
{apiVersion: GATEWAY-API, kind: TCPRoute, metadata: {name: young}, spec: {parentRefs: [{name: a}], rules: [{backendRefs: [{name: db, port: 80}]}]}}
{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 80}]}}";
    assert_eq!(
        found(text),
        [
            "GA020 spec.listeners[raw]: listener `raw` is not opened: TCP with these settings is not followed yet (give the \
             listener another port, host or protocol; HTTP and HTTPS are served)",
            "GA044 spec.parentRefs[0]: the route is not attached to Gateway default/a: it has no listener with this section and \
             port (did you mean `sectionName: web`?)",
            "GA044 spec.parentRefs[2]: the route is not attached to Gateway default/a: its listeners have other hosts (their \
             hosts are: shop.test)",
            "GA071 spec.rules[].backendRefs: Service default/none does not exist: its share of the requests gets a response \
             with status 500 (write a Service or ServiceImport that exists, and one of its ports)",
            "GA004 spec.parentRefs[1]: Gateway default/b does not exist: the route is not attached to it (write the name and \
             namespace of one that exists, or add it)",
            "GA042 spec.parentRefs: TCPRoute/default/old is older, and gets every connection of the listener (attach the route to \
             another listener, or remove the older one)",
        ]
    );
}
