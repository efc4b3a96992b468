use crate::diagnostic::codes::references::X340;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::validate::references::check;
use crate::{Fleet, ReadOptions, load_bytes};

/// Returns code, line, field, message and fix of each diagnostic about Sidecars, with `mesh` as the root namespace. A
/// document is `KIND namespace/name {spec}`.
fn found(documents: &[&str]) -> Vec<String> {
    let told = diagnostics(documents).into_iter().map(|found| {
        let help = found.help.expect("a fix");
        assert!(found.location.line > 0, "{}", found.message);
        format!("{} {}: {} = {help}", found.code, found.field, found.message)
    });
    told.collect()
}

/// Returns the diagnostics about Sidecars.
fn diagnostics(documents: &[&str]) -> Vec<Diagnostic> {
    let mut errors = Diagnostics::default();
    let documents = documents.iter().map(|text| document(text));
    let text = documents.collect::<Vec<_>>().join("---\n");
    let set = load_bytes("a.yaml", text.as_bytes(), &mut errors);
    let fleet = Fleet {
        root_namespace: Some("mesh".into()),
        ..Fleet::default()
    };
    let found = check(&set, ReadOptions::default(), &fleet);
    let ours = found
        .into_iter()
        .filter(|found| found.code.0.starts_with("X34"));
    ours.collect()
}

fn document(text: &str) -> String {
    let (kind, rest) = text.split_once(' ').expect("kind");
    let (id, spec) = rest.split_once(' ').expect("namespace/name");
    let (namespace, name) = id.split_once('/').expect("namespace/name");
    let metadata = format!("name: {name}, namespace: {namespace}");
    match kind {
        "Service" => {
            format!("apiVersion: v1\nkind: Service\nmetadata: {{{metadata}}}\nspec: {spec}\n")
        }
        "EndpointSlice" => format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{{metadata}, labels: {spec}}}\naddressType: IPv4\n\
             endpoints: [{{addresses: [10.0.0.1]}}]\nports: [{{port: 80}}]\n"
        ),
        "PeerAuthentication" => format!(
            "apiVersion: security.istio.io/v1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec: {spec}\n"
        ),
        _ => format!(
            "apiVersion: networking.istio.io/v1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec: {spec}\n"
        ),
    }
}

const WEB: &str = "Service shop/web {selector: {app: web}, ports: [{name: http, port: 80}]}";
const SLICE: &str = "EndpointSlice shop/web-1 {kubernetes.io/service-name: web, version: v1}";
const VM: &str = "WorkloadEntry shop/vm {address: 10.0.0.2, labels: {app: vm, tier: db}}";
const BANK: &str = "ServiceEntry bank/api {hosts: [api.example], resolution: STATIC, \
    ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.3}]}";

/// Returns a Sidecar with this selector.
fn selecting(name: &str, selector: &str) -> String {
    format!(
        "Sidecar {name} {{workloadSelector: {{labels: {selector}}}, egress: [{{hosts: ['*/*']}}]}}"
    )
}

/// Returns a Sidecar with these egress hosts.
fn reaching(name: &str, hosts: &str) -> String {
    format!("Sidecar {name} {{egress: [{{hosts: [{hosts}]}}]}}")
}

#[test]
fn selector_that_selects_no_known_workload_is_reported() {
    let with = |resources: &[&str], selector: &str| {
        let sidecar = selecting("shop/s", selector);
        found(&[resources, &[&sidecar]].concat())
    };
    let nothing = |labels: &str, fix: &str| {
        vec![format!(
            "X340 spec.workloadSelector: no Service or WorkloadEntry of namespace `shop` tells of a workload with `{labels}` = \
             {fix}"
        )]
    };
    let general = "nothing to do if its pods belong to no Service; else write labels of its pods or WorkloadEntries";
    for (resources, selector, expected) in [
        (
            &[WEB][..],
            "{app: wev}",
            nothing("app=wev", "did you mean `app: web`?"),
        ),
        (&[WEB], "{app: other}", nothing("app=other", general)),
        (&[WEB], "{app: web}", vec![]),
        // pods of the Service may have further labels
        (&[WEB], "{app: web, version: v2}", vec![]),
        (&[WEB], "{tier: db}", vec![]),
        (&[WEB, SLICE], "{app: web, version: v1}", vec![]),
        (&[VM], "{app: vm, tier: db}", vec![]),
        // all labels of a WorkloadEntry are known
        (
            &[VM],
            "{app: vm, version: v1}",
            nothing("app=vm,version=v1", general),
        ),
        // nothing is known of the namespace
        (&[], "{app: other}", vec![]),
        (&[BANK], "{app: other}", vec![]),
    ] {
        assert_eq!(
            with(resources, selector),
            expected,
            "{resources:?} {selector}"
        );
    }
}

/// A workload need not have a Service, such as the pod of a Job, so its selector is only reported as a note.
#[test]
fn selector_of_a_workload_without_a_service_is_a_note() {
    for (selector, severity) in [
        ("{app: wev}", Severity::Warning),
        ("{app: other}", Severity::Note),
    ] {
        let sidecar = selecting("shop/s", selector);
        let found = diagnostics(&[WEB, &sidecar]);
        let of_code: Vec<_> = found.iter().filter(|one| one.code == X340).collect();
        assert_eq!(of_code.len(), 1, "{selector}");
        assert_eq!(of_code[0].severity, severity, "{selector}");
    }
}

#[test]
fn younger_sidecar_of_the_same_workloads_is_reported() {
    let overlap = vec![
        "X341 spec.workloadSelector: the older Sidecar/shop/a is used for the workloads that both select = \
         let their selectors exclude each other, or merge the two"
            .to_owned(),
    ];
    for (resources, one, other, expected) in [
        (&[WEB][..], "{app: web}", "{app: web}", &overlap),
        (&[WEB], "{app: web}", "{app: web, version: v1}", &overlap),
        (&[VM], "{app: vm}", "{tier: db}", &overlap),
        (&[WEB, SLICE], "{app: web}", "{version: v1}", &overlap),
        (&[], "{app: web}", "{app: other}", &vec![]),
        (&[WEB, VM], "{app: web}", "{tier: db}", &vec![]),
    ] {
        let sidecars = [selecting("shop/a", one), selecting("shop/b", other)];
        let sidecars = sidecars.each_ref().map(|text| &**text);
        let found = found(&[resources, &sidecars].concat());
        assert_eq!(&found, expected, "{resources:?} {one} {other}");
    }
    let elsewhere = [
        selecting("shop/a", "{app: web}"),
        selecting("bank/b", "{app: web}"),
    ];
    assert!(found(&elsewhere.each_ref().map(|text| &**text)).is_empty());
}

#[test]
fn younger_default_of_a_namespace_is_reported() {
    let two = |one: &str, other: &str| found(&[&reaching(one, "'*/*'"), &reaching(other, "'*/*'")]);
    assert_eq!(
        two("shop/a", "shop/b"),
        [
            "X342 metadata.name: the older Sidecar/shop/a is the default of namespace `shop`: this Sidecar has no \
             effect = merge the two, or add a workloadSelector to one of them"
        ]
    );
    assert!(two("shop/a", "bank/b").is_empty());
    let with_selector = selecting("shop/b", "{app: web}");
    assert!(found(&[WEB, &reaching("shop/a", "'*/*'"), &with_selector]).is_empty());
}

#[test]
fn egress_host_that_matches_nothing_is_reported() {
    let route = "VirtualService shop/v {hosts: ['*.routed.example'], http: [{directResponse: {status: 200}}]}";
    let at_gateway = "VirtualService shop/w {hosts: [gw.example], gateways: [edge], \
        http: [{directResponse: {status: 200}}]}";
    let hidden = "ServiceEntry bank/own {hosts: [own.example], exportTo: ['.'], resolution: DNS, \
        ports: [{number: 80, name: http, protocol: HTTP}]}";
    let world = [WEB, BANK, route, at_gateway, hidden];
    let nothing = |host: &str| {
        format!("`{host}` matches no service and no VirtualService that namespace `shop` sees")
    };
    let general =
        "write `namespace/host` of a service or ServiceEntry, which `exportTo` must not hide";
    let in_bank = "the host is in namespace `bank`: write `bank/api.example`";
    for (host, expected) in [
        ("*/*", None),
        ("./*", None),
        ("~/*", None),
        ("mesh/*", None),
        ("bank/*", None),
        ("bank/api.example", None),
        ("bank/API.example", None),
        ("*/*.example", None),
        ("./web.shop.svc.cluster.local", None),
        ("*/a.routed.example", None),
        ("other/*", Some((nothing("other/*"), general))),
        ("./api.example", Some((nothing("./api.example"), in_bank))),
        (
            "shop/api.example",
            Some((nothing("shop/api.example"), in_bank)),
        ),
        ("*/apy.example", Some((nothing("*/apy.example"), general))),
        ("*/*.test", Some((nothing("*/*.test"), general))),
        ("*/gw.example", Some((nothing("*/gw.example"), general))),
        ("*/own.example", Some((nothing("*/own.example"), general))),
    ] {
        let sidecar = reaching("shop/s", &format!("'{host}'"));
        let found = found(&[&world[..], &[&sidecar]].concat());
        let expected = expected
            .map(|(message, fix)| format!("X343 spec.egress[0].hosts[0]: {message} = {fix}"));
        assert_eq!(found, Vec::from_iter(expected), "{host}");
    }
    // nothing is known that could be matched
    assert!(found(&[&reaching("shop/s", "other/a.example")]).is_empty());
}

#[test]
fn exclusion_that_takes_nothing_away_is_reported() {
    let with = |host: &str| found(&[WEB, BANK, &reaching("shop/s", &format!("'*/*', '{host}'"))]);
    assert!(with("~bank/*").is_empty());
    assert!(with("~bank/api.example").is_empty());
    assert_eq!(
        with("~bank/web.example"),
        [
            "X343 spec.egress[0].hosts[1]: `~bank/web.example` takes nothing away: no service and no VirtualService \
             matches it = remove it, or write the namespace and host of a service"
        ]
    );
}

#[test]
fn default_of_the_mesh_is_for_every_namespace() {
    assert!(found(&[BANK, &reaching("mesh/s", "./api.example")]).is_empty());
    assert_eq!(
        found(&[BANK, &reaching("mesh/s", "other/api.example")]).len(),
        1
    );
}

#[test]
fn egress_port_that_no_service_has_is_reported() {
    let with = |port: u16, hosts: &str| {
        let sidecar = format!(
            "Sidecar shop/s {{egress: [{{port: {{number: {port}, protocol: HTTP, name: http}}, hosts: [{hosts}]}}]}}"
        );
        found(&[WEB, BANK, &sidecar])
    };
    assert!(with(80, "./*").is_empty());
    assert_eq!(
        with(81, "./*"),
        [
            "X344 spec.egress[0].port.number: no service that the hosts match has port 81 = write a port of a \
             service, or remove `port` to mean all ports"
        ]
    );
    assert_eq!(with(81, "'*/api.example'").len(), 1);
    assert!(with(81, "~/*").is_empty());
}

#[test]
fn egress_proxy_that_is_no_known_service_is_reported() {
    let with = |host: &str| {
        found(&[
            BANK,
            &format!(
                "Sidecar shop/s {{outboundTrafficPolicy: {{mode: ALLOW_ANY, \
                 egressProxy: {{host: {host}, port: {{number: 80}}}}}}}}"
            ),
        ])
    };
    assert!(with("api.example").is_empty());
    assert_eq!(
        with("apy.example"),
        [
            "X345 spec.outboundTrafficPolicy.egressProxy.host: `apy.example` is not a known service: traffic for \
             unknown destinations will fail = write the full name of a service, or add a ServiceEntry for it"
        ]
    );
}

#[test]
fn ingress_tls_beside_mutual_tls_is_reported() {
    let sidecar = "Sidecar shop/s {workloadSelector: {labels: {app: web}}, ingress: [{port: {number: 8443, \
                   protocol: HTTPS, name: own}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}}]}";
    let policy = |mode: &str| {
        format!(
            "PeerAuthentication shop/p {{selector: {{matchLabels: {{app: web}}}}, portLevelMtls: {{8443: {{mode: {mode}}}}}}}"
        )
    };
    let with = |policy: &str| match policy {
        "" => found(&[WEB, SLICE, sidecar]),
        policy => found(&[WEB, SLICE, sidecar, policy]),
    };
    assert!(with(&policy("DISABLE")).is_empty());
    let fix = "write a PeerAuthentication with the selector of the Sidecar and `portLevelMtls: {8443: {mode: DISABLE}}`";
    for (policy, why) in [
        (String::new(), "PERMISSIVE is the default"),
        (policy("STRICT"), "PeerAuthentication/shop/p says STRICT"),
    ] {
        let expected = format!(
            "X346 spec.ingress[0].tls: port 8443 has the mutual TLS of the mesh ({why}), not these settings = {fix}"
        );
        assert_eq!(with(&policy), [expected]);
    }
}
