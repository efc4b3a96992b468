use crate::resource::flomesh::ClusterKey;
use crate::resource::gloo::MeshRef;
use crate::{Fleet, RemoteCluster, Severity};

/// Returns code, field and message of each diagnostic about Destinations or routes to them.
fn found(documents: &[String]) -> Vec<String> {
    found_for(Fleet::default(), documents)
}

/// Returns the same for a proxy in cluster `own` that knows the gateways of `told`, and possibly its mesh.
fn found_in(own: &str, told: &[&str], mesh: Option<&str>, documents: &[String]) -> Vec<String> {
    let key = |name: &str| ClusterKey::parse(&format!("eu/a/b/{name}")).unwrap();
    let told = told.iter().map(|name| RemoteCluster {
        key: key(name),
        has_gateway: true,
    });
    let fleet = Fleet {
        own: Some(key(own)),
        told: told.collect(),
        mesh: mesh.map(|name| MeshRef {
            name: name.into(),
            namespace: "gloo".into(),
        }),
        namespace: None,
        ..Fleet::default()
    };
    found_for(fleet, documents)
}

fn found_for(fleet: Fleet, documents: &[String]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    std::fs::write(&path, documents.join("---\n")).unwrap();
    let found = crate::load_files(
        &[path],
        crate::LoadOptions {
            fleet,
            ..crate::LoadOptions::default()
        },
    )
    .diagnostics;
    let mut errors = found.iter().filter(|one| one.severity == Severity::Error);
    assert!(errors.next().is_none(), "{found:?}");
    let crossing = found
        .iter()
        .filter(|one| ["X276", "X304", "X305", "X306", "X322", "X347"].contains(&one.code.0));
    crossing
        .map(|one| {
            assert!(one.help.is_some() && one.location.line > 0, "{one:?}");
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
    // a known local cluster needs no guess, and a gateway may come from `--clusters` or a Cluster
    let with_service = [web(false), own.to_owned()];
    assert_eq!(found_in("c1", &[], None, &with_service), [missing]);
    assert!(found_in("c2", &[], None, &[web(false)]).is_empty());
    assert!(found_in("c1", &["c2"], None, &[web(false)]).is_empty());
    let cluster = |more: &str| {
        format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: Cluster\nmetadata: {{name: c2}}\nspec: {{region: eu{more}}}\n"
        )
    };
    let gatewayed = cluster(", gatewayHost: gw.example");
    assert!(found(&[web(false), gatewayed]).is_empty());
    assert_eq!(found(&[web(false), cluster("")]), [missing]);
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

/// Returns a Destination in c1 whose policy sends half of the traffic to another service or cluster.
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
        found(&[shifted("", "web"), there.clone(), routed.to_owned()]),
        idle("VirtualService/ns1/own routes `web.ns1.svc.cluster.local`")
    );
    // each host of the Destination counts
    let known_as = |host: &str| {
        let shifted = shifted("", "web");
        shifted.replace(
            "status: {",
            &format!("status: {{{}, ", federated(host, true)),
        )
    };
    let global = routed.replace("hosts: [web]", "hosts: [web.c1.global]");
    assert_eq!(
        found(&[known_as("web.c1.global"), there.clone(), global.clone()]),
        idle("VirtualService/ns1/own routes `web.c1.global`")
    );
    assert!(found(&[known_as("web.other.global"), there.clone(), global]).is_empty());
    let all = routed.replace("hosts: [web]", "hosts: ['*'], gateways: [edge]");
    assert_eq!(
        found(&[shifted("", "web"), there, all]),
        idle("VirtualService/ns1/own routes every host at its gateways")
    );
}

#[test]
fn a_shift_leads_to_what_is_federated_to_the_own_mesh() {
    let there = destination(
        "there",
        "c2",
        &format!("{{{}}}", federated("web.c2.global", true)),
    );
    let of_mesh = |name: &str| {
        let mesh = format!("spec: {{mesh: {{name: {name}, namespace: gloo}}, kubeService:");
        shifted("", "web").replace("spec: {kubeService:", &mesh)
    };
    assert!(found(&[of_mesh("a"), there.clone()]).is_empty());
    let idle = |why: &str| {
        let shift = "X305 status.requiredSubsets[0].trafficShift: the shift is not followed: `web` in cluster `c2` is";
        vec![format!("{shift} {why}")]
    };
    let other = idle("not federated to `b.gloo`, the mesh of cluster `c1`");
    let both = [of_mesh("b"), there.clone()];
    assert_eq!(found(&both), other);
    assert_eq!(found_in("c1", &[], None, &both), other);
    assert!(
        found_in("c1", &[], Some("a"), &both).is_empty(),
        "as was said"
    );
    // nothing says which mesh it is
    let unsaid = [shifted("", "web"), there.clone()];
    assert_eq!(
        found_in("c1", &[], None, &unsaid),
        idle("federated to meshes, and nothing says which one cluster `c1` is in")
    );
    let alone = there.replace("{name: a, namespace: gloo}", "");
    assert_eq!(found(&[of_mesh("a"), alone]), idle("federated to no mesh"));
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

/// Returns a Destination in c1 whose policy selects this many kinds of requests.
fn shifted_for_some(name: &str, kinds: usize) -> String {
    let matchers: Vec<String> = (0..kinds)
        .map(|number| format!("{{uri: {{exact: /{number}}}}}"))
        .collect();
    let matchers = matchers.join(", ");
    let applied = format!(
        "appliedTrafficPolicies: [{{ref: {{name: p, namespace: gloo}}, spec: {{httpRequestMatchers: [{matchers}]}}}}],"
    );
    shifted(&applied, name).replace("name: web", &format!("name: {name}"))
}

#[test]
fn matchers_of_shifts_that_meet_at_a_rule_are_bounded() {
    let there = |name: &str| {
        let status = format!("{{{}}}", federated(&format!("{name}.c2.global"), true));
        let there = destination(&format!("there-{name}"), "c2", &status);
        there.replace("name: web", &format!("name: {name}"))
    };
    let alias = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: short}\n\
                 spec: {type: ExternalName, externalName: shop.ns1.svc.cluster.local}\n";
    let route = |second: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{namespace: ns1, name: both}}\n\
             spec: {{hosts: [a.com], http: [{{route: [{{destination: {{host: web}}, weight: 1}}, \
             {{destination: {{host: {second}}}, weight: 1}}]}}]}}\n"
        )
    };
    let documents = |kinds: usize, second: &str| {
        [
            shifted_for_some("web", kinds),
            shifted_for_some("shop", kinds),
            there("web"),
            there("shop"),
            alias.to_owned(),
            route(second),
        ]
    };
    let crowded = |count: usize| {
        vec![format!(
            "X322 spec.http[0]: {count} combinations of matchers of traffic shifts meet at this rule: policies for some \
             requests are not followed"
        )]
    };
    for second in [
        "shop",
        "shop.ns1.svc.cluster.local",
        "SHOP",
        "short",
        "short.ns1.svc.cluster.local",
    ] {
        assert_eq!(found(&documents(8, second)), crowded(81), "{second}");
        assert!(found(&documents(7, second)).is_empty(), "{second}");
    }
    // names of several clusters are short where the default domain is theirs
    let mut documents = documents(8, "shop.ns1");
    let host = "federatedHostname: shop.ns1.svc.clusterset.local, federatedToMeshes: []";
    let status = format!("status: {{appliedFederation: {{{host}}}, ");
    documents[1] = documents[1].replace("status: {", &status);
    assert!(found(&documents).is_empty());
    let fleet = Fleet {
        naming: crate::catalog::Naming {
            default_domain: crate::catalog::DefaultDomain::ClusterSet,
            ..Default::default()
        },
        ..Fleet::default()
    };
    assert_eq!(found_for(fleet, &documents), crowded(81));
}

#[test]
fn unknown_cluster_of_an_access_policy_is_reported() {
    let policy = |name: &str| {
        let source = format!("sourceSelector: [{{kubeIdentityMatcher: {{clusters: [{name}]}}}}]");
        let status = format!("{{appliedAccessPolicies: [{{}}, {{spec: {{{source}}}}}]}}");
        [destination("web", "c1", &status)]
    };
    for known in ["c1", "c2"] {
        assert_eq!(
            found_in("c1", &["c2"], None, &policy(known)),
            Vec::<String>::new()
        );
    }
    assert_eq!(
        found_in("c1", &["c2"], None, &policy("c3")),
        [
            "X347 status.appliedAccessPolicies[1].spec.sourceSelector: cluster `c3` is unknown: the access policy admits \
             no client"
        ]
    );
    let account = "sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: a, namespace: b, clusterName: c3}]}}]";
    let status = format!("{{appliedAccessPolicies: [{{spec: {{{account}}}}}]}}");
    let of_account = [destination("web", "c1", &status)];
    assert_eq!(found_in("c1", &[], None, &of_account).len(), 1);
    // the cluster of the proxy, which is unknown, may be that one
    assert_eq!(found(&policy("c3")), Vec::<String>::new());
}
