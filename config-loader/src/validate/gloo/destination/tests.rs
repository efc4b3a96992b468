use std::sync::Arc;

use crate::resource::core::Host;
use crate::resource::gloo::{
    Backing, Destination, EndpointSubset, ExternalProtocol, KubeServiceType, KubeTargetPort,
};
use crate::validate::testing;

const HEAD: &str =
    "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {name: web}\nspec:\n";

/// Returns a Destination with the spec `spec`, from line 5 on.
fn around(spec: &str) -> String {
    format!("{HEAD}  {}\n", spec.replace('\n', "\n  "))
}

/// Returns a Destination with these fields of `kubeService`, from line 7 on.
fn kube(fields: &str) -> String {
    around(&format!(
        "kubeService:\n  ref: {{name: web, namespace: ns1, clusterName: c2}}\n  {}",
        fields.replace('\n', "\n  ")
    ))
}

/// Returns a Destination with these fields of `externalService`, from line 6 on.
fn external(fields: &str) -> String {
    around(&format!(
        "externalService:\n  {}",
        fields.replace('\n', "\n  ")
    ))
}

fn destination(yaml: &str) -> Arc<Destination> {
    let (set, found) = testing::load(yaml);
    assert_eq!(found, Vec::<String>::new());
    let object = set
        .destinations
        .values()
        .next()
        .expect("the destination is good");
    Arc::clone(&object.spec)
}

#[test]
fn every_field_of_a_kube_service_is_read() {
    let yaml = kube(
        "workloadSelectorLabels: {app: web}
labels: {istio: ingressgateway}
ports:
- {port: 80, name: http, protocol: TCP, appProtocol: http2, targetPortName: web, nodePort: 30080}
- {port: 81, protocol: GRPC, targetPortNumber: 8081}
- {port: 8082, name: other}
subsets: {version: {values: [v1, v2]}}
region: eu-west
endpointSubsets:
- endpoints:
  - {ipAddress: 10.2.1.5, labels: {version: v1}, subLocality: {zone: eu-west-1a, subZone: rack-1}}
  ports:
  - {port: 8080, name: web, protocol: TCP, appProtocol: http2}
  - {port: 8081, name: x}
  - {port: 8082}
externalAddresses: [{ip: 192.0.2.1}, {dnsName: lb.example.com}]
serviceType: LOAD_BALANCER",
    ) + "  mesh: {name: mesh-a, namespace: gloo-mesh}\n";
    let found = destination(&yaml);
    assert_eq!(found.mesh.as_ref().map(|mesh| &*mesh.name), Some("mesh-a"));
    let Backing::Kube(kube) = &found.backing else {
        panic!("{:?}", found.backing)
    };
    assert_eq!((&*kube.service.name, &*kube.service.cluster), ("web", "c2"));
    assert_eq!(
        (kube.selector["app"].as_str(), kube.labels["istio"].as_str()),
        ("web", "ingressgateway")
    );
    assert_eq!(kube.subsets["version"].len(), 2);
    assert_eq!(
        (&*kube.region, kube.service_type),
        ("eu-west", KubeServiceType::LoadBalancer)
    );
    let subset: &EndpointSubset = &kube.endpoint_subsets[0];
    let endpoint = &subset.endpoints[0];
    assert_eq!(
        (&*endpoint.zone, &*endpoint.sub_zone),
        ("eu-west-1a", "rack-1")
    );
    assert_eq!(
        (endpoint.labels["version"].as_str(), endpoint.line.0),
        ("v1", 16)
    );
    assert_eq!(
        kube.external_addresses[1],
        Host::Dns("lb.example.com".into())
    );
    let ports: Vec<(&str, Option<u16>)> = kube
        .ports
        .iter()
        .map(|port| {
            (
                &*port.name,
                kube.endpoint_port(port, subset).map(|found| found.port),
            )
        })
        .collect();
    assert_eq!(
        ports,
        [
            ("http", Some(8080)),
            ("GRPC", Some(8081)),
            ("other", Some(8082))
        ]
    );
    assert_eq!(kube.ports[0].target, KubeTargetPort::Name("web".into()));
    assert_eq!(
        (kube.ports[0].node_port, kube.ports[0].line.0),
        (Some(30080), 9)
    );
}

#[test]
fn every_field_of_an_external_service_is_read() {
    let found = destination(&external(
        "name: db
hosts: [db.example.com, '*.db.example.com']
addresses: [192.0.2.1, 198.51.100.0/24]
ports: [{number: 443, name: https, protocol: HTTPS}, {number: 27017, name: mongo, protocol: MONGO}]
endpoints:
- {address: 10.0.0.1, ports: {https: 8443}}
- {address: db1.example.com}",
    ));
    let Backing::External(external) = &found.backing else {
        panic!("{:?}", found.backing)
    };
    assert_eq!(
        (
            &*external.name,
            external.hosts.len(),
            external.addresses.len()
        ),
        ("db", 2, 2)
    );
    assert_eq!(external.ports[1].protocol, ExternalProtocol::Mongo);
    let [first, second] = &external.endpoints[..] else {
        panic!("{:?}", external.endpoints)
    };
    assert_eq!(first.port_for(&external.ports[0]), 8443);
    assert_eq!(first.port_for(&external.ports[1]), 27017);
    assert_eq!(second.port_for(&external.ports[0]), 443);
    assert_eq!(second.address, Host::Dns("db1.example.com".into()));
}

#[test]
fn service_types_are_accepted_as_names_or_numbers() {
    for (written, expected) in [
        ("CLUSTER_IP", KubeServiceType::ClusterIp),
        ("0", KubeServiceType::ClusterIp),
        ("1", KubeServiceType::NodePort),
        ("2", KubeServiceType::LoadBalancer),
        ("EXTERNAL_NAME", KubeServiceType::ExternalName),
        ("3", KubeServiceType::ExternalName),
    ] {
        let found = destination(&kube(&format!("serviceType: {written}")));
        assert!(
            matches!(&found.backing, Backing::Kube(kube) if kube.service_type == expected),
            "{written}"
        );
    }
    let known =
        "supported values: \"CLUSTER_IP\", \"NODE_PORT\", \"LOAD_BALANCER\", \"EXTERNAL_NAME\"";
    let number = format!("E CM029 7 spec.kubeService.serviceType: Unsupported value: 4: {known}");
    let name = format!(
        "E CM017 7 spec.kubeService.serviceType: Unsupported value: \"ClusterIP\": {known}"
    );
    testing::check(
        kube,
        &[
            ("serviceType: 4", &[&number]),
            ("serviceType: ClusterIP", &[&name]),
        ],
    );
}

#[test]
fn a_destination_has_exactly_one_type() {
    testing::check(
        around,
        &[
            (
                "kubeService: {ref: {name: a, namespace: b, clusterName: c}}\nexternalService: {hosts: [a.b]}",
                &[
                    "E GD001 4 spec: Invalid value: \"kubeService,externalService\": exactly one destination type may be set",
                ],
            ),
            (
                "mesh: {name: a}",
                &["W GD002 4 spec: the destination has no effect"],
            ),
            (
                "kubeService: {}",
                &["E GD003 5 spec.kubeService.ref: Required value"],
            ),
            (
                "kubeService: {ref: {namespace: b, clusterName: c}}",
                &["E GD003 5 spec.kubeService.ref.name: Required value"],
            ),
            (
                "kubeService: {ref: {name: a}}",
                &[
                    "E GD003 5 spec.kubeService.ref.namespace: Required value",
                    "E GD003 5 spec.kubeService.ref.clusterName: Required value",
                ],
            ),
        ],
    );
}

#[test]
fn kube_services_are_checked() {
    testing::check(
        kube,
        &[
            (
                "ports: [{name: a}]",
                &["E GD003 7 spec.kubeService.ports[0].port: Required value"],
            ),
            (
                "ports: [{port: 65536}]",
                &[
                    "E CM016 7 spec.kubeService.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "ports: [{port: 80, targetPortName: a, targetPortNumber: 80}]",
                &[
                    "E GD004 7 spec.kubeService.ports[0].targetPortNumber: only one of `targetPortName` and \
                   `targetPortNumber` may be set",
                ],
            ),
            (
                "ports: [{port: 80, targetPortNumber: 80, nodePort: 0}]",
                &[],
            ),
            (
                "endpointSubsets: [{endpoints: [{labels: {a: b}}]}]",
                &[
                    "E GD003 7 spec.kubeService.endpointSubsets[0].endpoints[0].ipAddress: Required value",
                ],
            ),
            (
                "endpointSubsets: [{endpoints: [{ipAddress: web}]}]",
                &[
                    "E GD005 7 spec.kubeService.endpointSubsets[0].endpoints[0].ipAddress: Invalid value: \"web\": must be a \
                   valid IP address",
                ],
            ),
            (
                "endpointSubsets: [{ports: [{name: a}]}]",
                &["E GD003 7 spec.kubeService.endpointSubsets[0].ports[0].port: Required value"],
            ),
            (
                "externalAddresses: [{ip: 10.0.0.1, dnsName: a.b}]",
                &[
                    "E GD006 7 spec.kubeService.externalAddresses[0].ip: only one of `dnsName` and `ip` may be set",
                ],
            ),
            (
                "externalAddresses: [{}]",
                &[
                    "E GD006 7 spec.kubeService.externalAddresses[0]: Required value: dnsName or ip is required",
                ],
            ),
            (
                "externalAddresses: [{ip: a.b}]",
                &[
                    "E GD005 7 spec.kubeService.externalAddresses[0].ip: Invalid value: \"a.b\": must be a valid IP address",
                ],
            ),
            (
                "externalAddresses: [{dnsName: a_b}]",
                &[
                    "E GD006 7 spec.kubeService.externalAddresses[0].dnsName: Invalid value: \"a_b\": must be a DNS name",
                ],
            ),
            ("externalAddresses: [{dnsName: a.b}]", &[]),
        ],
    );
}

#[test]
fn external_services_are_checked() {
    let protocols =
        "supported values: \"GRPC\", \"HTTP\", \"HTTP2\", \"HTTPS\", \"MONGO\", \"TCP\", \"TLS\"";
    let udp = format!(
        "E CM017 7 spec.externalService.ports[0].protocol: Unsupported value: \"UDP\": {protocols}"
    );
    testing::check(
        external,
        &[(
            "name: a",
            &["E GD007 5 spec.externalService.hosts: Required value"],
        )],
    );
    let unnamed = "W GD016 6 spec.externalService.addresses: no route can lead here: a destination is named by a host";
    testing::check(external, &[("addresses: [10.0.0.1]", &[unnamed])]);
    testing::check(
        |fields| external(&format!("hosts: [a.b]\n{fields}")),
        &[
            (
                "addresses: [a.b]",
                &[
                    "E GD005 7 spec.externalService.addresses[0]: Invalid value: \"a.b\": must be a valid IP address or CIDR \
                   block",
                ],
            ),
            ("ports: [{number: 80, protocol: UDP}]", &[&udp]),
            ("ports: [{number: 80, protocol: TCP}]", &[]),
            (
                "ports: [{number: 80}]",
                &["E GD003 7 spec.externalService.ports[0].protocol: Required value"],
            ),
            (
                "ports: [{protocol: TCP}]",
                &["E GD003 7 spec.externalService.ports[0].number: Required value"],
            ),
            (
                "ports: [{number: 0, protocol: TCP}]",
                &[
                    "E CM016 7 spec.externalService.ports[0].number: Invalid value: 0: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "ports: [{number: 80, protocol: TCP, name: a}, {number: 81, protocol: TCP, name: a}]",
                &["E GD009 7 spec.externalService.ports[1].name: Duplicate value: \"a\""],
            ),
            (
                "ports: [{number: 80, protocol: TCP, name: a}, {number: 80, protocol: TCP, name: b}]",
                &["E GD009 7 spec.externalService.ports[1].number: Duplicate value: \"80\""],
            ),
            (
                "ports: [{number: 80, protocol: TCP, name: http}]\nendpoints: [{address: 10.0.0.1, ports: {htp: 80}}]",
                &[
                    "W GD010 8 spec.externalService.endpoints[0].ports.htp: Invalid value: \"htp\": no port with this name",
                ],
            ),
            (
                "endpoints: [{}]",
                &["E GD003 7 spec.externalService.endpoints[0].address: Required value"],
            ),
            (
                "endpoints: [{address: a_b}]",
                &[
                    "E GD006 7 spec.externalService.endpoints[0].address: Invalid value: \"a_b\": must be a DNS name or an IP \
                   address",
                ],
            ),
        ],
    );
    testing::check(
        |host| external(&format!("hosts: ['{host}']")),
        &[
            ("*.a.b", &[]),
            (
                "*a.b",
                &[
                    "E GD008 6 spec.externalService.hosts[0]: Invalid value: \"*a.b\": must be a DNS name, exact or with a \
                   leading '*.'",
                ],
            ),
        ],
    );
}
