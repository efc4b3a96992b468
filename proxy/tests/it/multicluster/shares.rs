//! Shares of clusters: scenarios 1 to 20, 36, 37, 40, 43, 79.

use super::*;

/// Scenario: number, setup, ejected sites, and expected number of 1000 requests for each site.
type Row<'a> = (&'a str, Setup<'a>, &'a [&'a str], &'a [(&'a str, usize)]);

fn play(rows: &[Row<'_>]) {
    for (number, setup, ejected, expected) in rows {
        let world = World::new();
        let rule = if ejected.is_empty() {
            setup.rule.to_owned()
        } else {
            EJECTS_AT_ONCE.to_owned()
        };
        let setup = Setup {
            rule: &rule,
            ..*setup
        };
        let proxy = world.proxy(setup);
        eject(&proxy, &world.sites(ejected));
        println!("scenario {number}");
        assert_shares(&count(&proxy, RUN), expected);
    }
}

fn setup<'a>(local: usize, policy: &'a str) -> Setup<'a> {
    Setup {
        local,
        policy,
        ..Setup::default()
    }
}

const C2_80_C3_20: &str =
    "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 80}, {clusterKey: c3, weight: 20}]}";

#[test]
fn without_a_policy_imports_serve_only_the_clusterset_host() {
    let cluster_set = Setup {
        host: "web.ns1.svc.clusterset.local",
        ..Setup::default()
    };
    let elsewhere = Setup {
        more: "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\n\
               metadata: {namespace: ns2, name: web}\nspec: {lbType: ActiveActive}\n",
        ..Setup::default()
    };
    play(&[
        ("1", setup(2, ""), &[], &[("L1", 500), ("L2", 500)]),
        ("2", setup(0, ""), &[], &[("503", 1000)]),
        (
            "3",
            cluster_set,
            &[],
            &[("L1", 250), ("L2", 250), ("g2", 250), ("g3", 250)],
        ),
        ("40", elsewhere, &[], &[("L1", 500), ("L2", 500)]),
    ]);
}

#[test]
fn active_active_clusters_share_traffic_by_weight() {
    let all = "{lbType: ActiveActive}";
    let both = "{lbType: ActiveActive, targets: [{clusterKey: c2}, {clusterKey: c3}]}";
    let drained_own = "{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 0}, \
                       {clusterKey: c2, weight: 80}, {clusterKey: c3, weight: 20}]}";
    let three_to_one = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 3}, {clusterKey: c3, weight: 1}]}";
    let one = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 80}]}";
    let unknown = "{lbType: ActiveActive, targets: [{clusterKey: c9}]}";
    let thirds: &[(&str, usize)] = &[("L1", 167), ("L2", 167), ("g2", 333), ("g3", 333)];
    play(&[
        ("4", setup(2, all), &[], thirds),
        ("5", setup(2, both), &[], thirds),
        ("6", setup(0, C2_80_C3_20), &[], &[("g2", 800), ("g3", 200)]),
        (
            "7",
            setup(2, C2_80_C3_20),
            &[],
            &[("L1", 250), ("L2", 250), ("g2", 400), ("g3", 100)],
        ),
        ("8", setup(2, drained_own), &[], &[("g2", 800), ("g3", 200)]),
        (
            "9",
            setup(0, three_to_one),
            &[],
            &[("g2", 750), ("g3", 250)],
        ),
        ("10", setup(0, one), &[], &[("g2", 1000)]),
        ("18", setup(2, unknown), &[], &[("L1", 500), ("L2", 500)]),
        ("19", setup(0, unknown), &[], &[("503", 1000)]),
    ]);
}

#[test]
fn a_cluster_with_all_endpoints_ejected_yields_its_share() {
    let three = "{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 50}, \
                 {clusterKey: c2, weight: 30}, {clusterKey: c3, weight: 20}]}";
    play(&[
        ("11", setup(0, C2_80_C3_20), &["g2"], &[("g3", 1000)]),
        (
            "12",
            setup(2, three),
            &["L1", "L2"],
            &[("g2", 600), ("g3", 400)],
        ),
        (
            "13",
            setup(2, three),
            &["L1"],
            &[("L2", 500), ("g2", 300), ("g3", 200)],
        ),
    ]);
}

#[test]
fn scenario_20_endpoints_of_one_cluster_split_its_share() {
    let world = World::new();
    let second = format!(
        "apiVersion: multicluster.flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{ports: [{{name: http, port: 80, endpoints: [{{clusterKey: default/default/default/c2, \
         target: {{host: '', ip: {}, port: {}, path: /c2/web}}}}]}}]}}\n",
        world.l1.address().ip(),
        world.l1.address().port()
    );
    let halves = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}, {clusterKey: c3, weight: 50}]}";
    let counts = world.run(Setup {
        more: &second,
        ..setup(0, halves)
    });
    assert_shares(&counts, &[("g2", 250), ("L1", 250), ("g3", 500)]);
}

#[test]
fn weight_0_sends_a_cluster_no_traffic() {
    let drained = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 100}, {clusterKey: c3, weight: 0}]}";
    let none = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 0}, {clusterKey: c3, weight: 0}]}";
    let upstream = Setup {
        arguments: &["--zero-weight", "fsm"],
        ..setup(0, drained)
    };
    play(&[
        ("14", setup(0, drained), &[], &[("g2", 1000)]),
        ("15", setup(0, drained), &["g2"], &[("503", 1000)]),
        ("16", upstream, &[], &[("g2", 500), ("g3", 500)]),
        ("17", setup(0, none), &[], &[("503", 1000)]),
    ]);
}

#[test]
fn locality_policy_stays_in_the_local_cluster() {
    play(&[
        (
            "36",
            setup(2, "{lbType: Locality}"),
            &[],
            &[("L1", 500), ("L2", 500)],
        ),
        ("37", setup(0, "{lbType: Locality}"), &[], &[("503", 1000)]),
        ("43", setup(2, "{}"), &[], &[("L1", 500), ("L2", 500)]),
    ]);
}

#[test]
fn scenario_79_localities_split_the_share_of_their_cluster() {
    let world = World::new();
    let zoned = |number, zone: &str, site: &Site| {
        let plain = slice(number, "", site.address());
        plain.replace("conditions:", &format!("zone: {zone}, conditions:"))
    };
    let slices = documents([zoned(1, "z1", &world.l1), zoned(2, "z2", &world.l2)]);
    let counts = world.run(Setup {
        rule: "{loadBalancer: {simple: ROUND_ROBIN, localityLbSetting: {distribute: \
               [{from: r/*, to: {r/z1: 80, r/z2: 20}}]}}}",
        arguments: &["--locality", "r/z1"],
        more: slices.trim_start_matches("---\n"),
        ..setup(
            0,
            "{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 50}, {clusterKey: c2, weight: 50}]}",
        )
    });
    assert_shares(&counts, &[("L1", 400), ("L2", 100), ("g2", 500)]);
}

#[test]
fn the_log_has_the_reason_for_a_request_without_an_endpoint() {
    let drained = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 0}, {clusterKey: c3, weight: 0}]}";
    let unknown = "{lbType: ActiveActive, targets: [{clusterKey: c9}]}";
    for (policy, reason) in [(drained, "drained"), (unknown, "no_matching_cluster")] {
        let world = World::new();
        let proxy = world.proxy(setup(0, policy));
        count(&proxy, 1);
        let logged = proxy.logged("/");
        assert_eq!(
            logged["response_code_details"],
            format!("no_healthy_upstream{{{reason}}}")
        );
        assert_eq!(logged["response_flags"], "UH");
    }
}
