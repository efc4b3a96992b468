use std::sync::Arc;
use std::time::Duration;

use crate::resource::core::{
    Host, Ingress, IngressMode, Protocol, Service, ServiceType, SessionAffinity, TargetPort,
    TrafficDistribution, TrafficPolicy,
};
use crate::validate::testing;

/// Returns a Service with the spec `spec`, from line 4 on.
fn around(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: ns1}}\nspec:\n  {spec}\n"
    )
}

fn service(yaml: &str) -> Arc<Service> {
    let (set, found) = testing::load(yaml);
    assert_eq!(found, Vec::<String>::new());
    let object = set.services.values().next().expect("the service is good");
    Arc::clone(&object.spec)
}

#[test]
fn every_field_of_a_service_is_read() {
    let yaml = around(
        "type: LoadBalancer
clusterIP: 10.0.0.1
clusterIPs: [10.0.0.1, 'fd00::1']
ipFamilies: [IPv4, IPv6]
ipFamilyPolicy: PreferDualStack
externalIPs: [192.0.2.1]
selector: {app: web}
sessionAffinity: ClientIP
sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}
externalTrafficPolicy: Local
internalTrafficPolicy: Local
trafficDistribution: PreferClose
publishNotReadyAddresses: true
allocateLoadBalancerNodePorts: false
healthCheckNodePort: 30000
loadBalancerClass: example.com/lb
loadBalancerIP: 192.0.2.7
loadBalancerSourceRanges: [10.0.0.0/8]
topologyKeys: ['*']
ipFamily: IPv4
ports:
- name: http
  port: 80
  targetPort: http-web
  protocol: TCP
  appProtocol: kubernetes.io/h2c
  nodePort: 30080
- {name: dns, port: 53, protocol: UDP}",
    ) + "status:\n  loadBalancer: {ingress: [{ip: 192.0.2.9, ipMode: Proxy, ports: [{port: 80, protocol: TCP}]}]}\n  \
         conditions: []\n";
    let service = service(&yaml);
    assert_eq!(service.service_type, ServiceType::LoadBalancer);
    assert_eq!(service.cluster_ips.len(), 2);
    assert!(!service.headless);
    assert_eq!(service.external_ips.len(), 1);
    assert_eq!(service.selector["app"], "web");
    let timeout = Duration::from_secs(60);
    assert_eq!(
        service.session_affinity,
        SessionAffinity::ClientIp { timeout }
    );
    assert_eq!(service.external_traffic_policy, TrafficPolicy::Local);
    assert_eq!(service.internal_traffic_policy, TrafficPolicy::Local);
    assert_eq!(
        service.traffic_distribution,
        TrafficDistribution::PreferSameZone
    );
    assert!(service.publish_not_ready_addresses);
    let http = service.port(80).expect("port 80");
    assert_eq!(http.target, TargetPort::Name("http-web".into()));
    assert_eq!(http.app_protocol.as_deref(), Some("kubernetes.io/h2c"));
    assert_eq!((http.node_port, http.line.0), (Some(30080), 25));
    let dns = service.port_named("dns").expect("port dns");
    assert_eq!(
        (dns.target.clone(), dns.protocol),
        (TargetPort::Number(53), Protocol::Udp)
    );
    let [Ingress { host, mode, ports }] = &service.ingress[..] else {
        panic!("{:?}", service.ingress)
    };
    assert_eq!(
        (host.to_string(), *mode, ports.len()),
        ("192.0.2.9".to_owned(), IngressMode::Proxy, 1)
    );
}

#[test]
fn missing_fields_have_their_defaults() {
    let service = service(&around("ports: [{port: 80}]"));
    assert_eq!(service.service_type, ServiceType::ClusterIp);
    assert_eq!(service.session_affinity, SessionAffinity::None);
    assert_eq!(service.traffic_distribution, TrafficDistribution::Any);
    assert_eq!(service.internal_traffic_policy, TrafficPolicy::Cluster);
    let port = service.port(80).expect("port 80");
    assert_eq!((&*port.name, port.protocol), ("", Protocol::Tcp));
    assert_eq!(port.target, TargetPort::Number(80));
    assert!(service.port(81).is_none());
}

#[test]
fn an_external_name_may_be_a_name_or_an_address() {
    for (written, host) in [
        ("db.example.com", Host::Dns("db.example.com".into())),
        ("db.example.com.", Host::Dns("db.example.com".into())),
        (
            "192.0.2.1",
            Host::Ip("192.0.2.1".parse().expect("an address")),
        ),
    ] {
        let service = service(&around(&format!(
            "type: ExternalName\nexternalName: {written}"
        )));
        assert_eq!(
            service.external_name().map(|found| found.host.clone()),
            Some(host)
        );
    }
}

#[test]
fn a_headless_service_needs_no_ports() {
    assert!(service(&around("clusterIP: None\nselector: {app: a}")).headless);
    assert!(service(&around("clusterIPs: [None]\nselector: {app: a}")).headless);
}

#[test]
fn tcp_port_is_preferred_among_ports_of_one_number() {
    let service = service(&around(
        "ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 53}]",
    ));
    assert_eq!(service.port(53).map(|port| &*port.name), Some("b"));
}

#[test]
fn ports_are_checked() {
    testing::check(
        around,
        &[
            (
                "selector: {a: b}",
                &["E SVC001 4 spec.ports: Required value"],
            ),
            ("ports: []", &["E SVC001 5 spec.ports: Required value"]),
            (
                "ports:\n- name: a",
                &["E SVC001 6 spec.ports[0].port: Required value"],
            ),
            (
                "ports: [{port: 0}]",
                &[
                    "E CM016 5 spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "ports: [{port: 65536}]",
                &[
                    "E CM016 5 spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive",
                ],
            ),
            ("ports: [{port: 65535}]", &[]),
            (
                "ports: [{port: 80, protocol: tcp}]",
                &[
                    "E CM017 5 spec.ports[0].protocol: Unsupported value: \"tcp\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                ],
            ),
            (
                "ports:\n- {name: a, port: 80}\n- {name: a, port: 81}",
                &["E SVC003 7 spec.ports[1].name: Duplicate value: \"a\""],
            ),
            (
                "ports:\n- {name: a, port: 80}\n- {port: 81}",
                &["E SVC003 7 spec.ports[1].name: Required value"],
            ),
            (
                "ports:\n- {name: a, port: 80}\n- {name: b, port: 80}",
                &["E SVC004 7 spec.ports[1]: Duplicate value: \"80/TCP\""],
            ),
            (
                "ports:\n- {name: a, port: 80}\n- {name: b, port: 80, protocol: UDP}",
                &[],
            ),
            (
                "ports: [{port: 80, appProtocol: 'a b'}]",
                &[
                    "E SVC006 5 spec.ports[0].appProtocol: Invalid value: \"a b\": must be a name, or a domain, a slash and a name",
                ],
            ),
            (
                "ports: [{port: 80, nodePort: 30000}]",
                &[
                    "E SVC012 5 spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
                ],
            ),
            ("type: NodePort\nports: [{port: 80, nodePort: 30000}]", &[]),
            ("ports: [{port: 80, nodePort: 0}]", &[]),
        ],
    );
    let (_, found) = testing::load(&around("ports: [{name: Web_1, port: 80}]"));
    assert!(found[0].starts_with(
        "E SVC002 5 spec.ports[0].name: Invalid value: \"Web_1\": a lowercase RFC 1123 label"
    ));
}

#[test]
fn target_ports_are_numbers_or_names() {
    let cases = [
        ("8080", None),
        ("http", None),
        ("0", None),
        (
            "70000",
            Some(
                "E CM016 5 spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
        ),
        (
            "'8080'",
            Some(
                "E SVC005 5 spec.ports[0].targetPort: Invalid value: \"8080\": must contain at least one letter (a-z)",
            ),
        ),
        (
            "a--b",
            Some(
                "E SVC005 5 spec.ports[0].targetPort: Invalid value: \"a--b\": must not contain consecutive hyphens",
            ),
        ),
        (
            "-a",
            Some(
                "E SVC005 5 spec.ports[0].targetPort: Invalid value: \"-a\": must not begin or end with a hyphen",
            ),
        ),
        (
            "Http",
            Some(
                "E SVC005 5 spec.ports[0].targetPort: Invalid value: \"Http\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            ),
        ),
        (
            "sixteen-letters-x",
            Some(
                "E SVC005 5 spec.ports[0].targetPort: Invalid value: \"sixteen-letters-x\": must be no more than 15 characters",
            ),
        ),
    ];
    for (written, expected) in cases {
        let (_, found) = testing::load(&around(&format!(
            "ports: [{{port: 80, targetPort: {written}}}]"
        )));
        assert_eq!(found.first().map(String::as_str), expected, "{written}");
    }
}

#[test]
fn types_and_addresses_are_checked() {
    testing::check(
        |rest| around(&format!("ports: [{{port: 80}}]\n{rest}")),
        &[
            (
                "type: ClusterIp",
                &[
                    "E CM017 6 spec.type: Unsupported value: \"ClusterIp\": supported values: \"ClusterIP\", \
                   \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
                ],
            ),
            (
                "type: ExternalName",
                &["E SVC007 4 spec.externalName: Required value"],
            ),
            (
                "type: ExternalName\nexternalName: db.example.com\nclusterIP: 10.0.0.1",
                &[
                    "E SVC010 8 spec.clusterIP: Invalid value: \"10.0.0.1\": may not be set when `type` is 'ExternalName'",
                ],
            ),
            (
                "type: NodePort\nclusterIP: None",
                &[
                    "E SVC010 7 spec.clusterIP: Invalid value: \"None\": may not be set to 'None' for NodePort services",
                ],
            ),
            (
                "clusterIP: 10.0.0",
                &[
                    "E SVC008 6 spec.clusterIP: Invalid value: \"10.0.0\": must be a valid IP address, or 'None'",
                ],
            ),
            (
                "clusterIP: 10.0.0.1\nclusterIPs: [10.0.0.2]",
                &[
                    "E SVC009 6 spec.clusterIP: Invalid value: \"10.0.0.1\": must match the first entry of `clusterIPs`",
                ],
            ),
            (
                "clusterIPs: [10.0.0.1, 10.0.0.2]",
                &[
                    "E SVC009 6 spec.clusterIPs: Too many: 2: must have at most one address of each family",
                ],
            ),
            (
                "clusterIPs: [None, 10.0.0.2]",
                &["E SVC009 6 spec.clusterIPs: Forbidden: 'None' must be the first and only value"],
            ),
            ("clusterIPs: [10.0.0.1, 'fd00::1']", &[]),
            (
                "externalIPs: [example.com]",
                &[
                    "E SVC008 6 spec.externalIPs[0]: Invalid value: \"example.com\": must be a valid IP address",
                ],
            ),
        ],
    );
    let (_, found) = testing::load(&around("type: ExternalName\nexternalName: a_b"));
    assert!(found[0].starts_with(
        "E SVC007 6 spec.externalName: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain"
    ));
}

#[test]
fn affinity_and_policies_are_checked() {
    testing::check(
        |rest| around(&format!("ports: [{{port: 80}}]\n{rest}")),
        &[
            (
                "sessionAffinity: clientip",
                &[
                    "E CM017 6 spec.sessionAffinity: Unsupported value: \"clientip\": supported values: \"ClientIP\", \"None\"",
                ],
            ),
            (
                "sessionAffinity: ClientIP\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 86401}}",
                &[
                    "E SVC011 7 spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater \
                   than 0 and less than or equal to 86400",
                ],
            ),
            (
                "sessionAffinity: ClientIP\nsessionAffinityConfig: {clientIP: {timeoutSeconds: 86400}}",
                &[],
            ),
            (
                "sessionAffinityConfig: {clientIP: {timeoutSeconds: 1}}",
                &[
                    "E SVC014 6 spec.sessionAffinityConfig: Forbidden: must not be set when session affinity is None",
                ],
            ),
            (
                "trafficDistribution: PreferFar",
                &[
                    "E CM017 6 spec.trafficDistribution: Unsupported value: \"PreferFar\": supported values: \
                   \"PreferClose\", \"PreferSameNode\", \"PreferSameZone\"",
                ],
            ),
            (
                "internalTrafficPolicy: All",
                &[
                    "E CM017 6 spec.internalTrafficPolicy: Unsupported value: \"All\": supported values: \"Cluster\", \"Local\"",
                ],
            ),
            (
                "externalTrafficPolicy: All",
                &[
                    "E CM017 6 spec.externalTrafficPolicy: Unsupported value: \"All\": supported values: \"Cluster\", \"Local\"",
                ],
            ),
            (
                "sesionAffinity: None",
                &["E CM021 6 spec.sesionAffinity: unknown field `sesionAffinity`"],
            ),
        ],
    );
}

#[test]
fn the_name_must_be_a_dns_label() {
    let yaml =
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: a.b\nspec: {ports: [{port: 80}]}\n";
    let (_, found) = testing::load(yaml);
    assert!(found[0].starts_with(
        "E SVC013 4 metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label"
    ));
    let (_, found) = testing::load("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n");
    assert_eq!(found, ["E SVC001 1 spec: Required value"]);
}

#[test]
fn the_status_is_checked() {
    testing::check(
        |status| around("ports: [{port: 80}]") + "status:\n  " + status + "\n",
        &[
            (
                "loadBalancer: {ingress: [{ip: a}]}",
                &[
                    "E SVC016 7 status.loadBalancer.ingress[0].ip: Invalid value: \"a\": must be a valid IP address",
                ],
            ),
            (
                "loadBalancer: {ingress: [{hostname: 10.0.0.1}]}",
                &[
                    "E SVC016 7 status.loadBalancer.ingress[0].hostname: Invalid value: \"10.0.0.1\": must be a DNS name, \
                   not an IP address",
                ],
            ),
            (
                "loadBalancer: {ingress: [{hostname: lb.example.com, ipMode: VIP}]}",
                &[
                    "E SVC016 7 status.loadBalancer.ingress[0].ipMode: Invalid value: \"VIP\": may not be specified when \
                   `ip` is not set",
                ],
            ),
            (
                "loadBalancer: {ingress: [{ip: 10.0.0.1, ports: [{port: 80}]}]}",
                &["E SVC016 7 status.loadBalancer.ingress[0].ports[0].protocol: Required value"],
            ),
            (
                "conditions: [{type: A, status: 'Yes', reason: B, message: '', lastTransitionTime: 2024-01-01T00:00:00Z}]",
                &[
                    "E CM017 7 status.conditions[0].status: Unsupported value: \"Yes\": supported values: \"False\", \
                   \"True\", \"Unknown\"",
                ],
            ),
            (
                "conditions: [{type: A, status: 'True', reason: B, lastTransitionTime: 2024-01-01T00:00:00Z}]",
                &["E SVC015 7 status.conditions[0].message: Required value"],
            ),
            (
                "conditions: [{type: A, status: 'True', reason: B, message: '', lastTransitionTime: 2024-01-01T00:00:00Z}]",
                &[],
            ),
        ],
    );
}
