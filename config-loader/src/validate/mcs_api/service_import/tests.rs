use std::net::IpAddr;
use std::time::Duration;

use crate::kind::MCS_API;
use crate::resource::core::{SessionAffinity, TrafficDistribution};
use crate::resource::flomesh::ImportType;
use crate::validate::testing;

/// Returns a ServiceImport of the upstream API with the spec `spec`, from line 5 on.
fn around(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: {MCS_API}/v1beta1\nkind: ServiceImport\nmetadata: {{name: web}}\nspec:\n  {spec}\n"
    )
}

#[test]
fn every_field_of_an_import_is_read() {
    let yaml = around(
        "type: ClusterSetIP
ips: [240.0.0.1, 'fd00::1']
ipFamilies: [IPv4, IPv6]
sessionAffinity: ClientIP
sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}
trafficDistribution: PreferClose
internalTrafficPolicy: Cluster
ports:
- {name: http, port: 80, protocol: TCP, appProtocol: http2}
- {name: dns, port: 53, protocol: UDP}",
    ) + "status:\n  clusters: [{cluster: c2}]\n  endpointSliceObjects: Present\n";
    for yaml in [yaml.clone(), yaml.replace("v1beta1", "v1alpha1")] {
        let (set, found) = testing::load(&yaml);
        assert_eq!(found, Vec::<String>::new());
        let object = set
            .service_imports
            .values()
            .next()
            .expect("the import is good");
        assert_eq!(object.id.group, MCS_API);
        let import = &object.spec;
        let vips = ["240.0.0.1", "fd00::1"].map(|vip| vip.parse::<IpAddr>().expect("an address"));
        assert_eq!(import.vips, vips);
        assert_eq!(import.import_type, ImportType::ClusterSetIp);
        let timeout = Duration::from_secs(5);
        assert_eq!(
            import.session_affinity,
            SessionAffinity::ClientIp { timeout }
        );
        let nearest = TrafficDistribution::PreferSameZone;
        assert_eq!(import.traffic_distribution, nearest);
        let port = &import.ports[0];
        assert_eq!(
            (&*port.name, port.port, port.app_protocol.as_deref()),
            ("http", 80, Some("http2"))
        );
        assert!(import.ports.iter().all(|port| port.endpoints.is_empty()));
        assert_eq!(&*import.sources[0].cluster, "c2");
    }
}

#[test]
fn values_rejected_by_the_api_have_the_api_message() {
    let found = |spec: &str| testing::load(&around(spec)).1.join("\n");
    let rows = [
        ("type: ClusterSetIP", "Required value"),
        (
            "ports: []\nips: [240.0.0.1, 240.0.0.2, 240.0.0.3]",
            "Too many: 3: must have at most 2 items",
        ),
        ("ports: []\nips: [web]", "must be a valid IP address"),
        (
            "ports: [{port: 80}, {port: 81}]",
            "spec.ports[1].name: Required value",
        ),
        (
            "ports: [{name: a, port: 80}, {name: b, port: 80}]",
            "Duplicate value: \"80/TCP\"",
        ),
        (
            "ports: [{port: 0}]",
            "must be between 1 and 65535, inclusive",
        ),
        (
            "ports: []\ntype: Other",
            "Unsupported value: \"Other\": supported values: \"ClusterSetIP\", \"Headless\"",
        ),
        (
            "ports: []\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}",
            "must be greater than 0 and less than or equal to 86400",
        ),
        (
            "ports: []\ninternalTrafficPolicy: Node",
            "Unsupported value: \"Node\"",
        ),
        ("ports: [{port: 80, endpoints: []}]", "endpoints"),
    ];
    for (spec, text) in rows {
        let found = found(spec);
        assert!(found.contains(text), "{spec}\n{found}");
    }
}
