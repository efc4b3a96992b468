use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::resource::core::{Host, Protocol, SessionAffinity};
use crate::resource::flomesh::{ImportType, ServiceAccount, ServiceImport};
use crate::validate::testing;

/// Returns a ServiceImport with the spec `spec`, from line 5 on.
fn around(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{name: web}}\nspec:\n  {spec}\n"
    )
}

/// Returns a ServiceImport with one endpoint, on line 8, that has this target.
fn target(target: &str) -> String {
    around(&format!(
        "ports:\n- port: 80\n  endpoints:\n  - {{clusterKey: a/b/c/d, target: {{{target}}}}}"
    ))
}

fn import(yaml: &str) -> Arc<ServiceImport> {
    let (set, found) = testing::load(yaml);
    assert_eq!(found, Vec::<String>::new());
    let object = set
        .service_imports
        .values()
        .next()
        .expect("the import is good");
    Arc::clone(&object.spec)
}

#[test]
fn every_field_of_an_import_is_read() {
    let yaml = around(
        "type: ClusterSetIP
ips: [240.0.0.1]
sessionAffinity: ClientIP
sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}
serviceAccountName: web
ports:
- name: http
  port: 80
  protocol: TCP
  appProtocol: http2
  endpoints:
  - clusterKey: default/default/default/c2
    target: {host: gw.c2.example, ip: 10.2.0.9, port: 8080, path: /c2/web/}
  - clusterKey: default/default/default/c3
    target: {host: gw.c3.example., ip: '', port: 80, path: ''}",
    ) + "status:\n  clusters: [{cluster: c2, addresses: ['http://10.2.0.9:8080/c2/web']}]\n";
    for yaml in [
        yaml.clone(),
        yaml.replace("flomesh.io/", "multicluster.flomesh.io/"),
    ] {
        let import = import(&yaml);
        assert_eq!(import.import_type, ImportType::ClusterSetIp);
        assert_eq!(
            import.vips,
            ["240.0.0.1".parse::<IpAddr>().expect("an address")]
        );
        let timeout = Duration::from_secs(5);
        assert_eq!(
            import.session_affinity,
            SessionAffinity::ClientIp { timeout }
        );
        assert_eq!(
            import.service_account,
            Some(ServiceAccount::Named("web".into()))
        );
        let port = &import.ports[0];
        assert_eq!(
            (&*port.name, port.port, port.protocol),
            ("http", 80, Protocol::Tcp)
        );
        assert_eq!(
            (port.app_protocol.as_deref(), port.line.0),
            (Some("http2"), 10)
        );
        let [c2, c3] = &port.endpoints[..] else {
            panic!("{:?}", port.endpoints)
        };
        assert_eq!((c2.cluster.name(), c2.line.0, c3.line.0), ("c2", 15, 17));
        assert_eq!(c2.target.address.to_string(), "10.2.0.9");
        assert_eq!(c2.target.server_name.as_deref(), Some("gw.c2.example"));
        assert_eq!((c2.target.port, &*c2.target.path_prefix), (8080, "/c2/web"));
        assert_eq!(c3.target.address, Host::Dns("gw.c3.example".into()));
        assert_eq!(&*c3.target.path_prefix, "");
        assert_eq!(
            (
                &*import.sources[0].cluster,
                import.sources[0].addresses.len()
            ),
            ("c2", 1)
        );
    }
}

#[test]
fn missing_fields_have_their_defaults() {
    let import = import(&around("ports: [{port: 80, endpoints: []}]"));
    assert_eq!(import.import_type, ImportType::ClusterSetIp);
    assert_eq!(import.session_affinity, SessionAffinity::None);
    assert_eq!(
        (import.vips.len(), import.service_account.clone()),
        (0, None)
    );
    assert_eq!(import.ports[0].protocol, Protocol::Tcp);
}

#[test]
fn ports_are_checked() {
    let key = "must be in the form <region>/<zone>/<group>/<cluster>";
    let wrong_key =
        format!("E SI005 8 spec.ports[0].endpoints[0].clusterKey: Invalid value: \"c2\": {key}");
    testing::check(
        around,
        &[
            ("type: Headless", &["E SI001 4 spec.ports: Required value"]),
            ("ports: []", &[]),
            (
                "ports:\n- endpoints: []",
                &["E SI001 6 spec.ports[0].port: Required value"],
            ),
            (
                "ports:\n- port: 80",
                &["E SI001 6 spec.ports[0].endpoints: Required value"],
            ),
            (
                "ports: [{port: 0, endpoints: []}]",
                &[
                    "E CM016 5 spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "ports: [{port: 80, protocol: HTTP, endpoints: []}]",
                &[
                    "E CM017 5 spec.ports[0].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                ],
            ),
            (
                "ports:\n- {name: http, port: 80, endpoints: []}\n- {name: http, port: 81, endpoints: []}",
                &["E SI003 7 spec.ports[1].name: Duplicate value: \"http\""],
            ),
            (
                "ports:\n- {name: http, port: 80, endpoints: []}\n- {port: 81, endpoints: []}",
                &["E SI003 7 spec.ports[1].name: Required value"],
            ),
            (
                "ports:\n- {name: a, port: 80, endpoints: []}\n- {name: b, port: 80, endpoints: []}",
                &["E SI004 7 spec.ports[1]: Duplicate value: \"80/TCP\""],
            ),
            (
                "ports:\n- {name: a, port: 80, endpoints: []}\n- {name: b, port: 80, protocol: UDP, endpoints: []}",
                &[],
            ),
            (
                "ports:\n- port: 80\n  endpoints:\n  - target: {ip: 10.0.0.1, port: 80}",
                &["E SI001 8 spec.ports[0].endpoints[0].clusterKey: Required value"],
            ),
            (
                "ports:\n- port: 80\n  endpoints:\n  - clusterKey: a/b/c/d",
                &["E SI001 8 spec.ports[0].endpoints[0].target: Required value"],
            ),
            (
                "ports:\n- port: 80\n  endpoints:\n  - {clusterKey: c2, target: {ip: 10.0.0.1, port: 80}}",
                &[&wrong_key],
            ),
        ],
    );
    let (_, found) = testing::load(&around("ports: [{name: A_b, port: 80, endpoints: []}]"));
    assert!(found[0].starts_with(
        "E SI002 5 spec.ports[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label"
    ));
    let yaml = around("{}").replace("spec:\n  {}\n", "");
    assert_eq!(testing::load(&yaml).1, ["E SI001 1 spec: Required value"]);
}

#[test]
fn targets_are_checked() {
    testing::check(
        target,
        &[
            ("ip: 10.0.0.1, port: 80", &[]),
            ("host: '', ip: 10.0.0.1, port: 80, path: ''", &[]),
            ("host: 10.0.0.1, port: 80", &[]),
            (
                "host: '', ip: '', port: 80, path: /",
                &[
                    "E SI006 8 spec.ports[0].endpoints[0].target: Required value: host or ip is required",
                ],
            ),
            (
                "ip: 10.0.0, port: 80",
                &[
                    "E SI008 8 spec.ports[0].endpoints[0].target.ip: Invalid value: \"10.0.0\": must be a valid IP address",
                ],
            ),
            (
                "host: a_b, port: 80",
                &[
                    "E SI007 8 spec.ports[0].endpoints[0].target.host: Invalid value: \"a_b\": must be a DNS name or an IP address",
                ],
            ),
            (
                "ip: 10.0.0.1",
                &["E SI001 8 spec.ports[0].endpoints[0].target.port: Required value"],
            ),
            (
                "ip: 10.0.0.1, port: 65536",
                &[
                    "E CM016 8 spec.ports[0].endpoints[0].target.port: Invalid value: 65536: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "ip: 10.0.0.1, port: 80, path: web",
                &[
                    "E SI009 8 spec.ports[0].endpoints[0].target.path: Invalid value: \"web\": must start with '/'",
                ],
            ),
            ("ip: 10.0.0.1, port: 80, path: /web", &[]),
            (
                "ip: 10.0.0.1, port: 80, path: '/web?x=1'",
                &[
                    "E SI009 8 spec.ports[0].endpoints[0].target.path: Invalid value: \"/web?x=1\": must not contain '?', '#', spaces or control characters: percent-encode them",
                ],
            ),
            (
                "ip: 10.0.0.1, port: 80, path: '/we b'",
                &[
                    "E SI009 8 spec.ports[0].endpoints[0].target.path: Invalid value: \"/we b\": must not contain '?', '#', spaces or control characters: percent-encode them",
                ],
            ),
        ],
    );
}

#[test]
fn addresses_and_affinity_are_checked() {
    testing::check(
        |rest| around(&format!("ports: []\n{rest}")),
        &[
            (
                "type: ClusterSetIp",
                &[
                    "E CM017 6 spec.type: Unsupported value: \"ClusterSetIp\": supported values: \"ClusterSetIP\", \"Headless\"",
                ],
            ),
            (
                "ips: [10.0.0.1, 10.0.0.2]",
                &["E SI010 6 spec.ips: Too many: 2: must have at most 1 items"],
            ),
            (
                "ips: [web]",
                &["E SI008 6 spec.ips[0]: Invalid value: \"web\": must be a valid IP address"],
            ),
            ("ips: [10.0.0.1]", &[]),
            (
                "type: Headless\nips: [10.0.0.1]",
                &["W SI012 7 spec.ips: `ips` has no effect on a headless service"],
            ),
            (
                "type: Headless\nsessionAffinity: ClientIP",
                &[
                    "W SI012 7 spec.sessionAffinity: `sessionAffinity` has no effect on a headless service",
                ],
            ),
            (
                "sessionAffinity: Cookie",
                &[
                    "E CM017 6 spec.sessionAffinity: Unsupported value: \"Cookie\": supported values: \"ClientIP\", \"None\"",
                ],
            ),
            (
                "sessionAffinity: ClientIP\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}",
                &[
                    "E SI011 7 spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 \
                   and less than or equal to 86400",
                ],
            ),
            (
                "sessionAffinity: ClientIP\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}",
                &[],
            ),
            (
                "serviceAccountName: A b",
                &[
                    "E SI013 6 spec.serviceAccountName: Invalid value: \"A b\": must be `*` or the name of a ServiceAccount",
                ],
            ),
            ("serviceAccountName: '*'", &[]),
        ],
    );
}

#[test]
fn the_status_is_checked() {
    testing::check(
        |status| around("ports: []") + "status:\n  clusters:\n  " + status + "\n",
        &[
            (
                "- {addresses: []}",
                &["E SI014 8 status.clusters[0].cluster: Required value"],
            ),
            (
                "- {cluster: a}\n  - {cluster: a}",
                &["E SI014 9 status.clusters[1].cluster: Duplicate value: \"a\""],
            ),
            ("- {cluster: a}\n  - {cluster: b}", &[]),
        ],
    );
}
