use proptest::prelude::*;

use super::*;

fn rule(sni_hosts: &[&str], destinations: &[&str], sources: &[&str]) -> OpaqueRule {
    let subnets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    OpaqueRule {
        conditions: OpaqueConditions {
            sni_hosts: sni_hosts.iter().map(|name| Arc::from(*name)).collect(),
            destination_subnets: subnets(destinations),
            source_subnets: subnets(sources),
        },
        provenance: Provenance {
            object: "".into(),
            file: "".into(),
            line: 0,
        },
    }
}

fn head<'a>(sni: &'a str, destination: &str, source: &str) -> OpaqueHead<'a> {
    OpaqueHead {
        sni: (!sni.is_empty()).then_some(sni),
        destination: destination.parse().ok(),
        source: source.parse().ok(),
    }
}

#[test]
fn most_specific_name_wins_and_the_first_of_equals() {
    let table = OpaqueTable::compile(vec![
        rule(&["*"], &[], &[]),
        rule(&["*.a.com", "b.com"], &[], &[]),
        rule(&["x.a.com"], &[], &[]),
        rule(&["x.a.com"], &[], &[]),
        rule(&["*.y.a.com"], &[], &[]),
    ]);
    for (sni, expected) in [
        ("x.a.com", 2),
        ("z.a.com", 1),
        ("a.com", 0),
        ("q.y.a.com", 4),
        ("y.a.com", 1),
        ("b.com", 1),
        ("c.com", 0),
        ("", 0),
    ] {
        let found = table.find(&head(sni, "", ""));
        assert_eq!(found, Some(RuleIdx(expected)), "{sni}");
    }
}

#[test]
fn without_a_catch_all_other_names_do_not_match() {
    let table = OpaqueTable::compile(vec![rule(&["a.com"], &[], &[])]);
    assert_eq!(table.find(&head("a.com", "", "")), Some(RuleIdx(0)));
    assert_eq!(table.find(&head("b.com", "", "")), None);
    assert_eq!(table.find(&head("", "", "")), None);
    assert_eq!(OpaqueTable::default().find(&head("", "", "")), None);
}

#[test]
fn rule_with_other_addresses_falls_back_to_a_wider_name() {
    let table = OpaqueTable::compile(vec![
        rule(&["a.com"], &["10.0.0.0/8"], &[]),
        rule(&["a.com"], &[], &["192.0.2.0/24", "2001:db8::/32"]),
        rule(&["*.com"], &[], &[]),
    ]);
    for (destination, source, expected) in [
        ("10.1.2.3", "198.51.100.1", 0),
        ("::ffff:10.1.2.3", "198.51.100.1", 0),
        ("127.0.0.1", "192.0.2.9", 1),
        ("127.0.0.1", "2001:db8::1", 1),
        ("127.0.0.1", "198.51.100.1", 2),
        ("", "", 2),
    ] {
        let found = table.find(&head("a.com", destination, source));
        assert_eq!(found, Some(RuleIdx(expected)), "{destination} {source}");
    }
}

fn any_rule() -> impl Strategy<Value = OpaqueRule> {
    const NAMES: &[&str] = &[
        "*", "*.com", "*.a.com", "*a.com", "a.com", "x.a.com", "b.com",
    ];
    const NETS: &[&str] = &["10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0"];
    let names = prop::collection::vec(prop::sample::select(NAMES), 0..3);
    let destinations = prop::collection::vec(prop::sample::select(NETS), 0..2);
    let sources = prop::collection::vec(prop::sample::select(NETS), 0..2);
    (names, destinations, sources).prop_map(|(names, to, from)| rule(&names, &to, &from))
}

proptest! {
    #[test]
    fn index_agrees_with_scan(
        rules in prop::collection::vec(any_rule(), 0..8),
        sni in prop::sample::select(&["", "a.com", "x.a.com", "y.a.com", "xa.com", "b.com", "c.org"][..]),
        to in prop::sample::select(&["10.1.2.3", "10.2.2.3", "192.0.2.1", ""][..]),
        from in prop::sample::select(&["10.1.2.3", "10.2.2.3", ""][..]),
    ) {
        let table = OpaqueTable::compile(rules);
        let head = head(sni, to, from);
        prop_assert_eq!(table.find(&head), table.scan(&head));
    }
}
