use super::*;

fn key(name: &str) -> Arc<str> {
    format!("default/default/default/{name}").into()
}

/// Tiers as `name:tier:weight`, sorted; or why there are none.
fn tiers_of(
    balancing: ClusterBalancing,
    targets: &[(&str, u32)],
    pools: &[&str],
    ordered: bool,
) -> Result<Vec<String>, Absence> {
    let sharing = Sharing {
        balancing,
        targets: targets
            .iter()
            .map(|(name, weight)| (key(name), *weight))
            .collect(),
        ordered,
        is_refused: false,
    };
    let members: Vec<Arc<str>> = pools.iter().map(|name| key(name)).collect();
    let placed = tiers(
        &sharing,
        |key| members.iter().any(|own| **own == *key),
        &members,
        &key("c1"),
    )?;
    let mut texts: Vec<String> = placed
        .iter()
        .map(|place| {
            let name = place.member.rsplit('/').next().unwrap();
            format!("{name}:{}:{}", place.tier, place.weight)
        })
        .collect();
    texts.sort();
    Ok(texts)
}

#[test]
fn policies_assign_clusters_to_tiers() {
    use ClusterBalancing::{ActiveActive, FailOver, Locality};
    type Row<'a> = (
        ClusterBalancing,
        &'a [(&'a str, u32)],
        &'a [&'a str],
        bool,
        Result<&'a [&'a str], Absence>,
    );
    let rows: &[Row<'_>] = &[
        (
            ActiveActive,
            &[],
            &["c1", "c2", "c3"],
            false,
            Ok(&["c1:0:100", "c2:0:100", "c3:0:100"]),
        ),
        (
            ActiveActive,
            &[("c2", 80), ("c3", 20)],
            &["c2", "c3"],
            false,
            Ok(&["c2:0:80", "c3:0:20"]),
        ),
        (
            ActiveActive,
            &[("c2", 80), ("c3", 20)],
            &["c1", "c2", "c3"],
            false,
            Ok(&["c1:0:100", "c2:0:80", "c3:0:20"]),
        ),
        (
            ActiveActive,
            &[("c1", 0), ("c2", 80), ("c3", 20)],
            &["c1", "c2", "c3"],
            false,
            Ok(&["c2:0:80", "c3:0:20"]),
        ),
        (
            ActiveActive,
            &[("c2", 80)],
            &["c2", "c3"],
            false,
            Ok(&["c2:0:80"]),
        ),
        (
            ActiveActive,
            &[("c2", 0), ("c3", 0)],
            &["c2", "c3"],
            false,
            Err(Absence::Drained),
        ),
        (
            ActiveActive,
            &[("c9", 100)],
            &["c1", "c2"],
            false,
            Ok(&["c1:0:100"]),
        ),
        (
            ActiveActive,
            &[("c9", 100)],
            &["c2", "c3"],
            false,
            Err(Absence::NoMatchingCluster),
        ),
        (
            FailOver,
            &[("c2", 100), ("c3", 100)],
            &["c1", "c2", "c3"],
            false,
            Ok(&["c1:0:100", "c2:1:100", "c3:1:100"]),
        ),
        (
            FailOver,
            &[("c2", 75), ("c3", 25)],
            &["c2", "c3"],
            false,
            Ok(&["c2:1:75", "c3:1:25"]),
        ),
        (
            FailOver,
            &[("c1", 100), ("c2", 75)],
            &["c1", "c2"],
            false,
            Ok(&["c1:0:100", "c2:1:75"]),
        ),
        (
            FailOver,
            &[("c3", 1), ("c2", 7)],
            &["c1", "c2", "c3"],
            true,
            Ok(&["c1:0:100", "c2:2:100", "c3:1:100"]),
        ),
        (Locality, &[], &["c1", "c2"], false, Ok(&["c1:0:100"])),
        (
            Locality,
            &[],
            &["c2"],
            false,
            Err(Absence::NoMatchingCluster),
        ),
    ];
    for (balancing, targets, pools, ordered, expected) in rows {
        let found = tiers_of(*balancing, targets, pools, *ordered);
        let expected = expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(found, expected, "{balancing:?} {targets:?} {pools:?}");
    }
}
