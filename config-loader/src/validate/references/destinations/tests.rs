use crate::{Diagnostics, Severity, load_bytes};

/// Code, field and message of each finding about Destinations, or about routes to them.
fn found(documents: &[String]) -> Vec<String> {
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", documents.join("---\n").as_bytes(), &mut found);
    let found = found.into_sorted();
    let mut errors = found.iter().filter(|one| one.severity == Severity::Error);
    assert!(errors.next().is_none(), "{found:?}");
    let crossing = found
        .iter()
        .filter(|one| ["X276", "X304", "X305", "X306"].contains(&one.code.0));
    crossing
        .map(|one| {
            assert!(one.help.is_some() && one.place.line > 0, "{one:?}");
            format!("{} {}: {}", one.code, one.field, one.message)
        })
        .collect()
}

fn destination(name: &str, cluster: &str, status: &str) -> String {
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo, name: {name}}}\n\
         spec: {{kubeService: {{ref: {{name: web, namespace: ns1, clusterName: {cluster}}}, ports: [{{port: 80, name: http}}]}}}}\n\
         status: {status}\n"
    )
}

fn federated(host: &str, flat: bool) -> String {
    format!(
        "appliedFederation: {{federatedHostname: {host}, flatNetwork: {flat}, federatedToMeshes: [{{name: a, namespace: gloo}}]}}"
    )
}

fn gateway(port: &str) -> String {
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo, name: gateway}}\n\
         spec: {{kubeService: {{ref: {{name: gateway, namespace: istio, clusterName: c2}}, labels: {{istio: ingressgateway}}, \
         ports: [{{port: 15443, name: {port}}}], externalAddresses: [{{ip: 10.2.0.1}}]}}}}\n"
    )
}

#[test]
fn what_is_behind_a_gateway_needs_one() {
    let web = |flat| {
        destination(
            "web",
            "c2",
            &format!("{{{}}}", federated("web.c2.global", flat)),
        )
    };
    let missing = "X304 status.appliedFederation.flatNetwork: no resource names a gateway of cluster `c2`: nothing is reached, unless --clusters names one";
    assert_eq!(found(&[web(false)]), [missing]);
    assert_eq!(found(&[web(false), gateway("https")]), [missing]);
    assert!(found(&[web(false), gateway("tls")]).is_empty());
    assert!(found(&[web(true)]).is_empty());
    let own = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{port: 80}]}\n";
    assert!(found(&[web(false), own.to_owned()]).is_empty());
}

#[test]
fn a_host_belongs_to_the_older_destination() {
    let status = format!("{{{}}}", federated("web.global", true));
    assert_eq!(
        found(&[
            destination("a", "c2", &status),
            destination("b", "c3", &status)
        ]),
        [
            "X306 status.appliedFederation.federatedHostname: `web.global` is not used: Destination/gloo/a has that host"
        ]
    );
    let other = status.replace("web.global", "web2.global");
    assert!(
        found(&[
            destination("a", "c2", &status),
            destination("b", "c3", &other)
        ])
        .is_empty()
    );
}

/// A Destination of c1 whose policy sends half to another service or cluster.
fn shifted(applied: &str, name: &str) -> String {
    let half = |name: &str, cluster: &str| {
        format!(
            "{{weight: 50, kubeService: {{name: {name}, namespace: ns1, clusterName: {cluster}, subset: {{version: v1}}}}}}"
        )
    };
    let shift = format!(
        "{{destinations: [{}, {}]}}",
        half("web", "c1"),
        half(name, "c2")
    );
    let required = format!(
        "requiredSubsets: [{{trafficPolicyRef: {{name: p, namespace: gloo}}, trafficShift: {shift}}}]"
    );
    destination("web", "c1", &format!("{{{applied} {required}}}"))
}

#[test]
fn a_shift_that_is_not_followed_says_why() {
    let there = destination(
        "there",
        "c2",
        &format!("{{{}}}", federated("web.c2.global", true)),
    );
    let idle = |why: &str| {
        vec![format!(
            "X305 status.requiredSubsets[0].trafficShift: the shift is not followed: {why}"
        )]
    };
    let applied = |spec: &str| {
        format!("appliedTrafficPolicies: [{{ref: {{name: p, namespace: gloo}}, spec: {spec}}}],")
    };
    assert!(found(&[shifted("", "web"), there.clone()]).is_empty());
    assert_eq!(
        found(&[shifted("", "shop"), there.clone()]),
        idle("policy `p` may be attached to another service")
    );
    let some = applied("{httpRequestMatchers: [{uri: {exact: /}}]}");
    assert!(found(&[shifted(&some, "web"), there.clone()]).is_empty());
    let unknown = applied("{httpRequestMatchers: [{uri: {exact: /}, port: 80}]}");
    assert_eq!(
        found(&[shifted(&unknown, "web"), there.clone()]),
        idle("policy `p`: `httpRequestMatchers[0].port` is not known")
    );
    assert_eq!(
        found(&[shifted(&applied("{}"), "shop"), there.clone()]),
        idle("`shop` in cluster `c2` is no federated Destination")
    );
    assert_eq!(
        found(&[shifted("", "web")]),
        idle("`web` in cluster `c2` is no federated Destination")
    );
    let routed = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {namespace: ns1, name: own}\n\
                  spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}\n";
    assert_eq!(
        found(&[shifted("", "web"), there, routed.to_owned()]),
        idle("VirtualService/ns1/own routes `web.ns1.svc.cluster.local`")
    );
}

#[test]
fn routes_may_name_the_subsets_that_a_shift_requires() {
    let there = destination(
        "there",
        "c2",
        &format!("{{{}}}", federated("web.c2.global", true)),
    );
    let route = |subset: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{namespace: ns1, name: a}}\n\
             spec: {{hosts: [a.test], gateways: [mesh], http: [{{route: [{{destination: {{host: web, subset: {subset}}}}}]}}]}}\n"
        )
    };
    let known = [shifted("", "web"), there];
    let with = |subset: &str| found(&[&known[..], &[route(subset)]].concat());
    assert!(with("version-v1").is_empty());
    assert_eq!(with("version-v2").len(), 1);
}

#[test]
fn destinations_of_one_service_have_their_host_together() {
    let status = format!("{{{}}}", federated("web.global", true));
    let both = [
        destination("a", "c2", &status),
        destination("b", "c2", &status),
    ];
    assert_eq!(found(&both), [""; 0]);
}
