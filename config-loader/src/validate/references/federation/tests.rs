use crate::{Diagnostics, Severity, load_bytes};

/// Service `web`, which clusters c2 and c3 import and the own cluster serves with two endpoints.
const WORLD: &str = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
    spec: {ports: [{name: http, port: 80}]}\n\
    ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
    metadata: {namespace: ns1, name: web-1, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\n\
    ports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]\n\
    ---\napiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {namespace: ns1, name: web}\n\
    spec: {ports: [{name: http, port: 80, endpoints: [\
    {clusterKey: eu/a/b/c2, target: {host: '', ip: 10.2.0.9, port: 80, path: /c2}}, \
    {clusterKey: eu/a/b/c3, target: {host: '', ip: 10.3.0.9, port: 80, path: /c3}}]}]}\n---\n";

/// Code, field and message with help of each finding that needs several resources.
fn found(text: &str) -> Vec<String> {
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", format!("{WORLD}{text}").as_bytes(), &mut found);
    let found = found.into_sorted();
    assert!(
        found.iter().all(|one| one.severity != Severity::Error),
        "{found:?}"
    );
    let crossing = found
        .iter()
        .filter(|one| one.code.0.starts_with(['X']) && one.code.0 >= "X293");
    crossing
        .map(|one| {
            let help = one.help.as_deref().unwrap_or("");
            format!("{} {}: {} ({help})", one.code, one.field, one.message)
        })
        .collect()
}

fn object(kind: &str, name: &str, spec: &str) -> String {
    let group = match kind {
        "ServiceEntry" | "DestinationRule" => "networking.istio.io/v1",
        "Service" => "v1",
        _ => "flomesh.io/v1alpha1",
    };
    format!(
        "apiVersion: {group}\nkind: {kind}\nmetadata: {{namespace: ns1, name: {name}}}\nspec: {spec}\n---\n"
    )
}

fn policy(spec: &str) -> String {
    object("GlobalTrafficPolicy", "web", spec)
}

fn export(name: &str, spec: &str) -> String {
    object("ServiceExport", name, spec)
}

#[test]
fn a_policy_is_for_a_service_that_is_known() {
    let other = object("GlobalTrafficPolicy", "other", "{lbType: Locality}");
    assert_eq!(
        found(&other),
        [
            "X293 metadata.name: no service `other` is known in `ns1`: this has no effect \
             (a policy has the name and the namespace of a Service, a ServiceImport or a Destination)"
        ]
    );
    assert!(found(&policy("{lbType: Locality}")).is_empty());
}

#[test]
fn clusters_of_a_policy_serve_its_service() {
    let targets = |keys: &str| policy(&format!("{{lbType: ActiveActive, targets: [{keys}]}}"));
    let known = "{clusterKey: eu/a/b/c2}, {clusterKey: eu/a/b/c3}";
    assert!(found(&targets(known)).is_empty());
    // may be the own cluster
    let own = format!("{known}, {{clusterKey: eu/a/b/home, weight: 0}}");
    assert!(found(&targets(&own)).is_empty());
    assert_eq!(
        found(&targets(&format!("{known}, {{clusterKey: a/b/c/c3}}"))),
        [
            "X294 spec.targets[2].clusterKey: cluster `a/b/c/c3` has no endpoint of `web` \
             (clusters that serve it: eu/a/b/c2, eu/a/b/c3)"
        ]
    );
    assert_eq!(
        found(&targets("{clusterKey: eu/a/x/c9}")),
        [
            "X294 spec.targets[0].clusterKey: no cluster that is named here serves `web`: `eu/a/x/c9` is unknown \
             (did you mean `eu/a/b/c2`?)"
        ]
    );
    let two = "{clusterKey: eu/a/b/c2}, {clusterKey: x/y/z/one}, {clusterKey: x/y/z/two}";
    let lines = found(&targets(two));
    assert_eq!(lines.len(), 2, "only one can be the own one");
    assert!(
        lines
            .iter()
            .all(|line| line.contains("unless it is the proxy's own"))
    );
}

#[test]
fn weights_leave_somebody_to_serve() {
    let weights = |kind: &str, one: u32, two: u32| {
        policy(&format!(
            "{{lbType: {kind}, targets: [{{clusterKey: eu/a/b/c2, weight: {one}}}, \
             {{clusterKey: eu/a/b/c3, weight: {two}}}]}}"
        ))
    };
    for (kind, message) in [
        (
            "ActiveActive",
            "every weight is 0: only the own cluster serves, if it is not named here",
        ),
        ("FailOver", "every weight is 0: there is no backup"),
    ] {
        let lines = found(&weights(kind, 0, 0));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with(&format!("X295 spec.targets: {message}")),
            "{lines:?}"
        );
        assert!(found(&weights(kind, 100, 0)).is_empty());
    }
}

#[test]
fn caps_of_ejections_do_not_block_failover() {
    let backups = policy("{lbType: FailOver, targets: [{clusterKey: eu/a/b/c2}]}");
    let active = policy("{lbType: ActiveActive, targets: [{clusterKey: eu/a/b/c2}]}");
    let rule = |host: &str, outliers: &str| {
        let spec = format!("{{host: {host}, trafficPolicy: {{outlierDetection: {{{outliers}}}}}}}");
        object("DestinationRule", "web", &spec)
    };
    let capped = "consecutive5xxErrors: 5";
    let free = "consecutive5xxErrors: 5, maxEjectionPercent: 100";
    assert_eq!(
        found(&format!("{backups}{}", rule("web", capped))),
        [
            "X296 spec.trafficPolicy.outlierDetection.maxEjectionPercent: failover of `web.ns1.svc.cluster.local` is \
             ineffective: of 2 endpoints at most 10 % are ejected, never all \
             (write 100, or let each failed request be replayed in the next cluster)"
        ]
    );
    let wide = rule("'*.ns1.svc.cluster.local'", capped);
    assert_eq!(found(&format!("{backups}{wide}")).len(), 1);
    assert!(found(&format!("{backups}{}", rule("web", free))).is_empty());
    assert!(found(&format!("{active}{}", rule("web", capped))).is_empty());
    assert!(found(&format!("{backups}{}", rule("other.com", capped))).is_empty());
}

#[test]
fn imports_have_endpoints() {
    let import = |endpoints: &str| {
        let spec = format!("{{ports: [{{name: http, port: 80, endpoints: [{endpoints}]}}]}}");
        object("ServiceImport", "other", &spec)
    };
    let target = "target: {host: gw.example, ip: '', port: 80, path: ''}";
    assert_eq!(
        found(&import("")),
        [
            "X297 spec.ports: the import has no endpoints: no other cluster serves it \
             (write endpoints of its ports, with the cluster and its gateway)"
        ]
    );
    assert!(found(&import(&format!("{{clusterKey: a/b/c/d, {target}}}"))).is_empty());
}

#[test]
fn paths_of_imports_are_for_ports_that_have_some() {
    let import = |port: &str, path: &str| {
        let target = format!("{{host: gw.example, ip: '', port: 80, path: {path}}}");
        let spec = format!(
            "{{ports: [{{{port}, endpoints: [{{clusterKey: a/b/c/d, target: {target}}}]}}]}}"
        );
        object("ServiceImport", "other", &spec)
    };
    let expected = [
        "X307 spec.ports[0].endpoints[0].target.path: the port carries `tcp`, which has no paths to put `/d/other` in \
         front of: the endpoint is not used (leave out the path, or say `appProtocol: http` if that is what the port carries)",
    ];
    assert_eq!(
        found(&import("name: tcp-db, port: 80", "/d/other")),
        expected
    );
    assert_eq!(
        found(&import("name: a, appProtocol: tcp, port: 80", "/d/other")),
        expected
    );
    assert!(found(&import("name: tcp-db, port: 80", "''")).is_empty());
    assert!(found(&import("name: grpc, port: 80", "/d/other")).is_empty());
    // the Service knows better
    let service = object("Service", "other", "{ports: [{name: tcp, port: 80}]}");
    let import = import("name: http, port: 80", "/d/other");
    assert_eq!(found(&format!("{import}{service}")), expected);
}

#[test]
fn exports_can_be_served_and_reached() {
    let rule = |port: u16, kind: &str| {
        format!("{{rules: [{{portNumber: {port}, path: /c1/web, pathType: {kind}}}]}}")
    };
    assert!(found(&export("web", &rule(80, "Prefix"))).is_empty());
    assert_eq!(
        found(&export("web", &rule(80, "Exact"))),
        [
            "X298 spec.rules[0].pathType: Exact cannot be reached through an import \
             (an import adds its path to the whole path of a request: write Prefix)"
        ]
    );
    assert_eq!(
        found(&export("web", &rule(81, "Prefix"))),
        ["X299 spec.rules[0].portNumber: Service `web` has no port 81 (its ports are 80)"]
    );
    assert_eq!(
        found(&export("none", &rule(80, "Prefix"))),
        [
            "X299 metadata.name: there is no Service `none`: nothing is exported \
             (an export has the name and the namespace of its Service)"
        ]
    );
    let external = object(
        "Service",
        "far",
        "{type: ExternalName, externalName: far.example}",
    );
    let far = export("far", &rule(80, "Prefix"));
    assert_eq!(
        found(&format!("{external}{far}")),
        [
            "X299 metadata.name: Service `far` is an ExternalName: nothing is exported \
             (export a Service that has endpoints of its own)"
        ]
    );
}

#[test]
fn a_path_belongs_to_one_export() {
    let second = object("Service", "other", "{ports: [{name: http, port: 80}]}");
    let rule = |path: &str, kind: &str| {
        format!("{{rules: [{{portNumber: 80, path: {path}, pathType: {kind}}}]}}")
    };
    let first = export("web", &rule("/c1", "Prefix"));
    let same = export("other", &rule("/c1", "Prefix"));
    let longer = export("other", &rule("/c1/other", "Prefix"));
    assert!(found(&format!("{second}{first}{longer}")).is_empty());
    assert_eq!(
        found(&format!("{second}{first}{same}")),
        [
            "X300 spec.rules[0].path: Prefix `/c1` is exported by ServiceExport/ns1/web already: this export is not \
             served (give each export a path of its own, such as /CLUSTER/SERVICE)"
        ]
    );
}

#[test]
fn hosts_of_services_are_not_those_of_others() {
    let entry = |host: &str| {
        let spec = format!(
            "{{hosts: [{host}], resolution: STATIC, ports: [{{number: 80, name: http, protocol: HTTP}}], \
             endpoints: [{{address: 10.0.0.9}}]}}"
        );
        object("ServiceEntry", "entry", &spec)
    };
    assert!(found(&entry("api.example")).is_empty());
    assert_eq!(
        found(&entry("web.ns1.svc.cluster.local")),
        [
            "X301 spec.hosts[0]: `web.ns1.svc.cluster.local` is not used: Service/ns1/web has that host \
             (remove the host here, or the Service)"
        ]
    );
}

#[test]
fn an_address_belongs_to_one_import() {
    let import = |name: &str, ip: &str| {
        let spec = format!(
            "{{ips: [{ip}], ports: [{{port: 80, endpoints: [\
             {{clusterKey: eu/a/b/c2, target: {{ip: 10.2.0.9, port: 80}}}}]}}]}}"
        );
        object("ServiceImport", name, &spec)
    };
    assert!(found(&(import("a", "10.96.0.1") + &import("b", "10.96.0.2"))).is_empty());
    assert_eq!(
        found(&(import("a", "10.96.0.1") + &import("b", "10.96.0.1"))),
        [
            "X302 spec.ips[0]: 10.96.0.1 is not used: it is the address of ServiceImport/ns1/a \
             (give each service an address of its own)"
        ]
    );
}
