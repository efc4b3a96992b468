//! Tables of levels and shares.

use super::*;

fn labels(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

/// `locality|network|labels`, with parts left out at the end.
struct Spot(Locality, String, BTreeMap<String, String>);

impl Spot {
    fn new(text: &str) -> Self {
        let mut parts = text.split('|');
        let mut next = || parts.next().unwrap_or_default();
        Self(Locality::new(next()), next().into(), labels(next()))
    }

    fn place(&self) -> TopologyLabels<'_> {
        TopologyLabels {
            locality: &self.0,
            labels: &self.2,
            network: &self.1,
            member: "",
            node: "",
        }
    }
}

/// Priorities, each as its groups of `weight:indexes`.
fn planned(spread: &Spread, here: &str, endpoints: &[(&str, u32)]) -> String {
    written(plan, spread, here, endpoints)
}

type Planner = fn(&Spread, &TopologyLabels<'_>, &[(TopologyLabels<'_>, u32)]) -> Plan;

fn written(plan: Planner, spread: &Spread, here: &str, endpoints: &[(&str, u32)]) -> String {
    let spots: Vec<(Spot, u32)> = endpoints
        .iter()
        .map(|(text, weight)| (Spot::new(text), *weight))
        .collect();
    let places: Vec<(TopologyLabels<'_>, u32)> = spots
        .iter()
        .map(|(spot, weight)| (spot.place(), *weight))
        .collect();
    let plan = plan(spread, &Spot::new(here).place(), &places);
    let group = |group: &Group| {
        let indexes: String = group.indexes.iter().map(ToString::to_string).collect();
        format!("{}:{indexes}", group.weight)
    };
    let level = |groups: &Vec<Group>| groups.iter().map(group).collect::<Vec<_>>().join(" ");
    plan.iter().map(level).collect::<Vec<_>>().join(" / ")
}

fn region(text: &str) -> (Arc<str>, Arc<str>) {
    let (from, to) = text.split_once('>').unwrap();
    (from.into(), to.into())
}

fn failing_over(regions: &[&str], keys: &[&str]) -> Spread {
    Spread::Failover {
        regions: regions.iter().map(|text| region(text)).collect(),
        labels: keys
            .iter()
            .map(|text| {
                let (key, value) = match text.split_once('=') {
                    None => (*text, None),
                    Some((key, value)) => (key, Some(value.into())),
                };
                let key = key.into();
                Label { key, value }
            })
            .collect(),
    }
}

#[test]
fn nearer_endpoints_have_higher_priority() {
    let near = failing_over(&[], &[]);
    let world = [
        ("r/z/s", 1),
        ("r/z/t", 1),
        ("r/y/s", 1),
        ("q/z/s", 1),
        ("", 1),
    ];
    assert_eq!(planned(&near, "r/z/s", &world), "1:0 / 1:1 / 1:2 / 1:34");
    // levels without endpoints vanish
    let rest = &world[2..];
    assert_eq!(planned(&near, "r/z/s", rest), "1:0 / 1:12");
    assert_eq!(
        planned(&near, "r/z", &[("r/z", 1), ("r/z/s", 1)]),
        "1:0 / 1:1"
    );
    assert_eq!(planned(&Spread::Flat, "r/z/s", &world), "1:01234");
    assert_eq!(planned(&near, "r/z/s", &[]), "");
}

#[test]
fn failover_region_comes_before_other_regions() {
    let spread = failing_over(&["r>p", "x>y"], &[]);
    let world = [("q/a", 1), ("p/a", 1), ("r/a", 1)];
    assert_eq!(planned(&spread, "r/z/s", &world), "1:2 / 1:1 / 1:0");
    // there is no entry for this one
    assert_eq!(planned(&spread, "q/z", &world), "1:0 / 1:12");
}

#[test]
fn failover_priority_orders_by_the_first_differing_label() {
    let spread = failing_over(&[], &["a", "b", "c"]);
    let world = [
        ("||a=1,b=1,c=1", 1),
        ("||a=1,b=1,c=2", 1),
        ("||a=1,b=2,c=1", 1),
        ("||b=1,c=1", 1),
    ];
    assert_eq!(
        planned(&spread, "||a=1,b=1,c=1", &world),
        "1:0 / 1:1 / 1:2 / 1:3"
    );
    // a proxy without labels does not order by them
    assert_eq!(planned(&spread, "", &world), "1:0123");
    let fixed = failing_over(&[], &["version=v2"]);
    let world = [("||version=v1", 1), ("||version=v2", 1)];
    assert_eq!(planned(&fixed, "||version=v1", &world), "1:1 / 1:0");
}

#[test]
fn t112_other_network_ranks_after_other_region() {
    let spread = failing_over(
        &[],
        &["topology.istio.io/network", "topology.kubernetes.io/region"],
    );
    let world = [("q|m", 1), ("r|m", 1), ("q|n", 1), ("r|n", 1)];
    assert_eq!(planned(&spread, "r|n", &world), "1:3 / 1:2 / 1:1 / 1:0");
}

#[test]
fn labels_and_regions_together_put_labels_first() {
    let spread = failing_over(&["r>p"], &["tier"]);
    let world = [
        ("q||tier=a", 1),
        ("p||tier=a", 1),
        ("r||tier=a", 1),
        ("r||tier=b", 1),
    ];
    assert_eq!(
        planned(&spread, "r||tier=a", &world),
        "1:2 / 1:1 / 1:0 / 1:3"
    );
}

#[test]
fn distribution_covers_only_the_listed_localities() {
    let pattern = |text: &str| Pattern(text.split('/').map(Arc::from).collect());
    let spread = Spread::Distribute(vec![(pattern("r/z"), 80), (pattern("r"), 20)]);
    let world = [
        ("r/z/s", 1),
        ("r/z/t", 3),
        ("r/y", 1),
        ("q/z", 1),
        ("r/z/s", 0),
    ];
    // the share of r/z by weights 2 and 3; each locality goes to the first that it matches
    assert_eq!(planned(&spread, "r/z/s", &world), "32:04 48:1 20:2");
    assert_eq!(planned(&spread, "r/z/s", &[("q/z", 1)]), "");
}

#[test]
fn locality_pattern_matches_any_value_of_missing_parts() {
    for (pattern, locality, matches) in [
        ("r", "r/z/s", true),
        ("r/z", "r/z/s", true),
        ("r/y", "r/z/s", false),
        ("r/z/s", "r/z", false),
    ] {
        let parts = pattern.split('/').map(Arc::from).collect();
        assert_eq!(Pattern(parts).matches(&Locality::new(locality)), matches);
    }
}

#[test]
fn local_zones_are_groups_and_other_regions_are_priorities() {
    let spread = |regions: &[(&str, &str)]| Spread::ZoneAware {
        size_min: 6,
        regions: regions
            .iter()
            .map(|(from, to)| (Arc::from(*from), Arc::from(*to)))
            .collect(),
        labels: Vec::new(),
    };
    let endpoints = [
        ("r/b", 1),
        ("r/a/x", 2),
        ("q/a", 1),
        ("r/a/y", 3),
        ("p/a", 1),
    ];
    assert_eq!(
        planned(&spread(&[]), "r/a/x", &endpoints),
        "5:13 1:0 / 1:24"
    );
    assert_eq!(
        planned(&spread(&[("r", "p")]), "r/a", &endpoints),
        "5:13 1:0 / 1:4 / 1:2"
    );
    // a region in which the local zone has no endpoint
    assert_eq!(planned(&spread(&[]), "r/c", &endpoints), "1:013 / 1:24");
}

#[test]
fn local_zone_keeps_its_share() {
    for (healthy, size_min, shares) in [
        (&[3, 3][..], 6, Some(vec![1, 0])),
        (&[4, 2], 6, Some(vec![1, 0])),
        (&[3, 3], 7, None),
        (&[6], 6, None),
        (&[0, 6], 6, None),
        // a third of the endpoints for a half of the clients: two thirds stay
        (&[2, 4], 6, Some(vec![6_666 * 1_666, 3_334 * 1_666])),
        // zones without endpoints to spare get nothing
        (&[1, 2, 5], 6, Some(vec![3_750 * 2_917, 0, 6_250 * 2_917])),
    ] {
        assert_eq!(zone_shares(healthy, size_min), shares, "{healthy:?}");
    }
}

#[test]
fn cluster_labels_do_not_order_endpoints_of_one_cluster() {
    let within = |spread: &Spread, endpoints: &[(&str, u32)]| {
        written(plan_within_member, spread, "r1/a|n1|", endpoints)
    };
    let elsewhere = [("r2/x|n2", 1), ("r1/b|n2", 1)];
    let shares = Spread::Distribute(vec![(Pattern(vec!["r1".into(), "a".into()]), 100)]);
    assert_eq!(planned(&shares, "r1/a|n1|", &elsewhere), "");
    assert_eq!(within(&shares, &elsewhere), "1:01");
    let keys = [
        "topology.istio.io/network",
        "topology.istio.io/cluster",
        "topology.kubernetes.io/region",
    ];
    assert_eq!(within(&failing_over(&[], &keys), &elsewhere), "1:1 / 1:0");
}
