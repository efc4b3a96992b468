use std::time::Duration;

use crate::resource::gloo::ShiftTarget;
use crate::validate::testing;

/// Returns a Destination of a service with two ports, and `status` on line 7.
fn around(status: &str) -> String {
    let service =
        "{ref: {name: web, namespace: ns1, clusterName: c2}, ports: [{port: 80}, {port: 81}]}";
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{name: web}}\nspec:\n  kubeService: \
         {service}\nstatus:\n  {}\n",
        status.replace('\n', "\n  ")
    )
}

#[test]
fn every_field_of_the_status_is_read() {
    let yaml = around(
        "observedGeneration: '3'
appliedTrafficPolicies:
- {ref: {name: p, namespace: gloo-mesh}, observedGeneration: 1, spec: {policy: {retries: {attempts: 3}}}}
appliedAccessPolicies:
- {ref: {name: a, namespace: gloo-mesh}, observedGeneration: '2', spec: {
    sourceSelector: [{
      kubeIdentityMatcher: {namespaces: [ns1], clusters: [c1]},
      kubeServiceAccountRefs: {serviceAccounts: [{name: a, namespace: ns1, clusterName: c1}]}}],
    destinationSelector: [{
      kubeServiceMatcher: {labels: {a: b}, namespaces: [ns1], clusters: [c1]},
      kubeServiceRefs: {services: [{name: web, namespace: ns1, clusterName: c2}]}}],
    allowedPaths: [/a*], allowedMethods: [GET], allowedPorts: [80]}}
localFqdn: web.ns1.svc.cluster.local
appliedFederation:
  federatedHostname: web.ns1.svc.c2.global
  federatedToMeshes: [{name: mesh-a, namespace: gloo-mesh}]
  flatNetwork: true
  virtualMeshRef: {name: vm, namespace: gloo-mesh}
  tcpKeepalive: {probes: 3, time: 1h, interval: 75s}
requiredSubsets:
- trafficPolicyRef: {name: p, namespace: gloo-mesh}
  observedGeneration: 1
  trafficShift:
    destinations:
    - weight: 40
      kubeService: {name: web, namespace: ns1, clusterName: c2, subset: {version: v1}, port: 80}
      options:
        headerManipulation:
          appendRequestHeaders: {a: b}
          removeRequestHeaders: [c]
          appendResponseHeaders: {d: e}
          removeResponseHeaders: [f]
    - {weight: 60, kubeService: {name: web, namespace: ns1, clusterName: c3, port: 81}}",
    );
    let (set, found) = testing::load(&yaml);
    assert_eq!(found, Vec::<String>::new());
    let object = set
        .destinations
        .values()
        .next()
        .expect("the destination is good");
    let status = &object.spec.status;
    assert_eq!(status.observed_generation, 3);
    assert_eq!(
        status.traffic_policies[0].spec["policy"]["retries"]["attempts"],
        3
    );
    let access = &status.access_policies[0];
    assert_eq!((access.observed_generation, &*access.policy.name), (2, "a"));
    let spec = access.spec.as_ref().expect("it is complete");
    let source = &spec.sources[0];
    assert_eq!(
        (source.clusters.len(), &*source.service_accounts[0].name),
        (1, "a")
    );
    assert_eq!(spec.operation.len(), 3);
    assert_eq!(
        status.local_fqdn.as_deref(),
        Some("web.ns1.svc.cluster.local")
    );
    let federation = status.federation.as_ref().expect("federated");
    assert_eq!(
        federation.hostname.as_deref(),
        Some("web.ns1.svc.c2.global")
    );
    assert!(federation.flat_network);
    assert_eq!(
        (federation.meshes.len(), federation.virtual_mesh.is_some()),
        (1, true)
    );
    let keepalive = federation.tcp_keepalive.expect("a keepalive");
    assert_eq!(
        (keepalive.probes, keepalive.time),
        (Some(3), Some(Duration::from_secs(3600)))
    );
    let [first, second] = &status.required_subsets[0].shift.destinations[..] else {
        panic!("{status:?}")
    };
    assert_eq!((first.weight_percent, second.weight_percent), (40, 60));
    let ShiftTarget::Kube {
        service,
        subset,
        port,
    } = &first.target
    else {
        panic!("{first:?}")
    };
    assert_eq!(
        (&*service.cluster, subset["version"].as_str(), *port),
        ("c2", "v1", Some(80))
    );
    assert_eq!(
        (
            first.headers.append_request.len(),
            first.headers.remove_response.len()
        ),
        (1, 1)
    );
}

#[test]
fn the_status_is_checked() {
    testing::check(
        around,
        &[
            (
                "observedGeneration: a",
                &[
                    "E CM022 7 status.observedGeneration: Invalid value: \"a\": must be a whole number",
                ],
            ),
            (
                "localFqdn: a_b",
                &["E GD014 7 status.localFqdn: Invalid value: \"a_b\": must be a DNS name"],
            ),
            (
                "appliedFederation: {federatedHostname: a b}",
                &[
                    "E GD014 7 status.appliedFederation.federatedHostname: Invalid value: \"a b\": must be a DNS name",
                ],
            ),
            (
                "appliedFederation: {tcpKeepalive: {probes: -1}}",
                &[
                    "E CM029 7 status.appliedFederation.tcpKeepalive.probes: Invalid value: -1: must be between 0 and \
                   4294967295, inclusive",
                ],
            ),
            (
                "appliedFederation: {tcpKeepalive: {time: '7'}}",
                &["E CM003 7 status.appliedFederation.tcpKeepalive.time: `7` is not a duration"],
            ),
            (
                "appliedAccessPolicies: [{spec: {allowedPorts: [0]}}]",
                &[
                    "E CM016 7 status.appliedAccessPolicies[0].spec.allowedPorts[0]: Invalid value: 0: must be between 1 and \
                   65535, inclusive",
                ],
            ),
            (
                "appliedAccessPolicies: [{spec: {allowedPath: [/]}}]",
                &[
                    "E CM021 7 status.appliedAccessPolicies[0].spec.allowedPath: unknown field `allowedPath`",
                ],
            ),
            (
                "appliedAccessPolicies: [{ref: {name: p, namespace: g}}]",
                &[
                    "W GD018 7 status.appliedAccessPolicies[0]: access policy g/p admits no client: it has no `spec`",
                ],
            ),
            (
                "appliedAccessPolicies: [{spec: {sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: a}]}}]}}]",
                &[
                    "W GD018 7 status.appliedAccessPolicies[0]: access policy / admits no client: a service account has no name \
                   or no namespace, or a wildcard in it",
                ],
            ),
            (
                "appliedAccessPolicies: [{spec: {destinationSelector: [{kubeServiceMatcher: {clusters: [c2]}}]}}]",
                &[],
            ),
            (
                "appliedAccessPolicies: [{spec: {destinationSelector: [{kubeServiceMatcher: {labels: {a: b}}}]}}]",
                &[
                    "W GD019 7 status.appliedAccessPolicies[0].spec.destinationSelector: the selector of the access policy \
                   does not select this Destination, to which the policy applies",
                ],
            ),
            (
                "appliedAccessPolicies: [{spec: {destinationSelector: [{kubeServiceRefs: {services: [{name: other}]}}]}}]",
                &[
                    "W GD019 7 status.appliedAccessPolicies[0].spec.destinationSelector: the selector of the access policy \
                   does not select this Destination, to which the policy applies",
                ],
            ),
            (
                "requiredSubset: []",
                &["E CM021 7 status.requiredSubset: unknown field `requiredSubset`"],
            ),
        ],
    );
}

#[test]
fn traffic_shifts_are_checked() {
    let shift = |destinations: &str| {
        around(&format!(
            "requiredSubsets: [{{trafficShift: {{destinations:\n  {destinations}}}}}]"
        ))
    };
    let at = "status.requiredSubsets[0].trafficShift.destinations";
    let sum = format!("E GD011 7 {at}: Invalid value: 90: weights must sum to 100");
    let several = format!(
        "E GD015 8 {at}[0].kubeService.port: Required value: the service has several ports"
    );
    let two = format!(
        "E GD012 8 {at}[0].staticDestination: only one of `kubeService` and `staticDestination` may be set"
    );
    let followed = |kind: &str| {
        format!("W GD013 8 {at}[0].{kind}: the shift is not followed: it goes to a `{kind}`")
    };
    let neither = format!(
        "E GD012 8 {at}[0]: Required value: kubeService, virtualDestination, staticDestination or clusterHeader is required"
    );
    let namespace = format!("E GD003 8 {at}[0].kubeService.namespace: Required value");
    testing::check(
        shift,
        &[
            (
                "[{weight: 90, kubeService: {name: a, namespace: b}}]",
                &[&sum],
            ),
            ("[{weight: 100, kubeService: {name: a, namespace: b}}]", &[]),
            ("[]", &[]),
            ("[{weight: 100, kubeService: {name: a}}]", &[&namespace]),
            (
                "[{weight: 100, kubeService: {name: web, namespace: ns1}}]",
                &[&several],
            ),
            (
                "[{weight: 100, kubeService: {name: web, namespace: ns1, port: 80}}]",
                &[],
            ),
            (
                "[{weight: 100, kubeService: {name: a, namespace: b}, staticDestination: {name: c}}]",
                &[&two],
            ),
            (
                "[{weight: 100, virtualDestination: {name: a, namespace: b}}]",
                &[&followed("virtualDestination")],
            ),
            (
                "[{weight: 100, staticDestination: {name: a, namespace: b}}]",
                &[&followed("staticDestination")],
            ),
            (
                "[{weight: 100, clusterHeader: x-cluster}]",
                &[&followed("clusterHeader")],
            ),
            ("[{weight: 100}]", &[&neither]),
        ],
    );
}

#[test]
fn a_status_of_an_older_generation_is_used_with_a_warning() {
    let with = |generation: &str, observed: &str| {
        let yaml = around(&format!("{observed}localFqdn: a.b"));
        testing::load(&yaml.replace(
            "name: web}\nspec",
            &format!("name: web{generation}}}\nspec"),
        ))
    };
    let stale = "W CM035 7 status.observedGeneration: stale: this is about generation 2 of the object, which is at 3; \
                 it is used all the same";
    let three = ", generation: 3";
    for (generation, observed, expected) in [
        (three, "observedGeneration: 2\n", &[stale][..]),
        (", generation: '3'", "observedGeneration: '2'\n", &[stale]),
        (three, "observedGeneration: 3\n", &[]),
        (three, "observedGeneration: 4\n", &[]),
        (three, "", &[]),
        ("", "observedGeneration: 2\n", &[]),
        (", generation: new", "observedGeneration: 2\n", &[]),
    ] {
        let (set, found) = with(generation, observed);
        assert_eq!(found, expected, "{generation} {observed}");
        let object = set.destinations.values().next().unwrap();
        assert_eq!(object.spec.status.local_fqdn.as_deref(), Some("a.b"));
    }
}

#[test]
fn access_policies_of_other_services_are_reported() {
    let policies = "appliedAccessPolicies: [{spec: {allowedMethods: [GET]}}]";
    let found = |text: String| testing::load(&text).1;
    let grpc = around(policies).replace("{port: 80}", "{port: 80, name: grpc-api}");
    assert_eq!(
        found(grpc.clone()),
        Vec::<String>::new(),
        "the other port may speak HTTP"
    );
    assert_eq!(
        found(grpc.replace("{port: 81}", "{port: 81, appProtocol: grpc}")),
        [
            "W GD020 7 status.appliedAccessPolicies[0].spec.allowedMethods: the service speaks gRPC, whose method is POST: \
             no request is admitted"
        ]
    );
    let outside = around(policies).replace(
        "kubeService: {ref: {name: web, namespace: ns1, clusterName: c2}, ",
        "externalService: {hosts: [a.test], ",
    );
    let outside = outside.replace(
        "[{port: 80}, {port: 81}]",
        "[{number: 80, name: web, protocol: HTTP}]",
    );
    assert_eq!(
        found(outside),
        [
            "W GD017 7 status.appliedAccessPolicies: access policies of an external service have no effect: it has no \
             workloads"
        ]
    );
}

#[test]
fn unknown_field_of_an_access_policy_is_always_an_error() {
    let severities = |status: &str| {
        let options = crate::ReadOptions {
            unknown_fields_pass: true,
            ..crate::ReadOptions::default()
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.yaml");
        std::fs::write(&path, around(status)).unwrap();
        let options = crate::LoadOptions {
            read: options,
            ..crate::LoadOptions::default()
        };
        let found = crate::load_files(&[path], options).diagnostics;
        let found: Vec<_> = found.iter().map(|found| found.severity).collect();
        found
    };
    use crate::Severity::{Error, Warning};
    assert_eq!(
        severities("appliedAccessPolicies: [{spec: {allowedPath: [/]}}]"),
        [Error]
    );
    assert_eq!(severities("localFqnd: a"), [Warning]);
}
