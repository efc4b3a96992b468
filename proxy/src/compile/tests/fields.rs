//! Every field of DestinationRule, with what it does to a cluster, and to which clusters: a policy may stand at a rule, at
//! a subset, and at a port of both.

mod rows;

use config_loader::Kind;
use config_loader::kinds;
use config_loader::validate::unsupported::{self, When};

use super::world::{GATEWAY, World};
use Shows::{Settings, Test, Warning};
use rows::{FIELDS, HASHES, HEAD, ON_SOCKETS, Shows, WHOLE};

const SERVICE: &str = "ServiceEntry default/s {hosts: [s.default.svc.cluster.local], resolution: STATIC, ports: \
    [{number: 80, name: http, protocol: HTTP}, {number: 81, name: more, protocol: HTTP}], endpoints: \
    [{address: 10.0.0.1, labels: {version: v1}}, {address: 10.0.0.2, labels: {version: v2}}]}";

/// Clusters with a rule, as `PORT SUBSET`.
const CLUSTERS: [&str; 4] = ["80 ", "80 v1", "81 ", "81 v1"];

/// The settings of each of [`CLUSTERS`] under a rule with this policy, and one of its subset `v1`.
fn settings(policy: &str, of_subset: &str) -> [String; 4] {
    let block = |policy: &str| match policy {
        "" => String::new(),
        policy => format!(", trafficPolicy: {{{policy}}}"),
    };
    let rule = format!(
        "DestinationRule default/s {{host: s{}, subsets: [{{name: v1, labels: {{version: v1}}{}}}]}}",
        block(policy),
        block(of_subset)
    );
    let route = |cluster: &str| {
        let (port, subset) = cluster.split_once(' ').unwrap();
        let subset = match subset {
            "" => String::new(),
            subset => format!(", subset: {subset}"),
        };
        format!("{{destination: {{host: s, port: {{number: {port}}}{subset}}}, weight: 1}}")
    };
    let service = format!(
        "VirtualService default/a {{hosts: [a.com], gateways: [gw], http: [{{route: [{}]}}]}}",
        CLUSTERS.map(route).join(", ")
    );
    let world = World::only(&[GATEWAY, SERVICE, &service, &rule]);
    CLUSTERS.map(|cluster| {
        let (port, subset) = cluster.split_once(' ').unwrap();
        let name = format!("outbound|{port}|{subset}|s.default.svc.cluster.local");
        let id = world.registry.cluster(&name).id;
        let cluster = world.snapshot.cluster(id).unwrap();
        let (balance, pool) = (&cluster.balance, &cluster.pool);
        format!("{balance:?} {pool:?} {:?}", cluster.retry_limit)
    })
}

/// A policy for port 80 of this block.
fn for_port(block: &str) -> String {
    format!("portLevelSettings: [{{port: {{number: 80}}, {block}}}]")
}

/// Checks which clusters `with` shows in, when it stands where `place` puts it and `without` does otherwise.
fn check_settings(field: &str, (with, without): (&str, &str), shown: &str, has_ports: bool) {
    let or_empty = |block: &str, around: &dyn Fn(&str) -> String| match block {
        "" => String::new(),
        block => around(block),
    };
    let as_it_is = |block: &str| block.to_owned();
    let mut places: Vec<(&str, [String; 2], [String; 2], [bool; 4])> = Vec::new();
    let pair = |around: &dyn Fn(&str) -> String, of_subset: bool| {
        [with, without].map(|block| {
            let text = or_empty(block, around);
            match of_subset {
                true => [String::new(), text],
                false => [text, String::new()],
            }
        })
    };
    let [a, b] = pair(&as_it_is, false);
    places.push(("rule", a, b, [true; 4]));
    let [a, b] = pair(&as_it_is, true);
    places.push(("subset", a, b, [false, true, false, true]));
    if has_ports {
        let [a, b] = pair(&for_port, false);
        places.push(("port", a, b, [true, true, false, false]));
        let [a, b] = pair(&for_port, true);
        places.push(("port of subset", a, b, [false, true, false, false]));
    }
    for (place, with, without, expected) in places {
        let (with, without) = (
            settings(&with[0], &with[1]),
            settings(&without[0], &without[1]),
        );
        for ((cluster, expected), (with, without)) in
            CLUSTERS.iter().zip(expected).zip(with.iter().zip(&without))
        {
            let place = format!("{field} at the {place}, cluster {cluster}");
            assert_eq!(with != without, expected, "{place}: {with}");
            if expected {
                assert!(with.contains(shown), "{place}: {with}");
                assert!(
                    shown.is_empty() || !without.contains(shown),
                    "{place}: {without}"
                );
            }
        }
    }
    // what a port says takes the place of all of them, and of what it does not say
    let port = format!("portLevelSettings: [{{port: {{number: 80}}, {OTHER_BLOCK}}}]");
    let only_port = settings(&port, "");
    let both = settings(&format!("{with}, {port}"), "");
    let inherits = field.starts_with("retryBudget.");
    assert_eq!(both[0] == only_port[0], !inherits, "{field} at port 80");
    assert_ne!(both[2], only_port[2], "{field} at port 81");
}

/// A block that no row sets.
const OTHER_BLOCK: &str = "tls: {mode: DISABLE}";

fn check_warning(field: &str, policy: &str, code: &str) {
    let text = format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec: {{host: a, \
         trafficPolicy: {{{policy}}}}}\n"
    );
    let mut found = config_loader::Diagnostics::default();
    config_loader::load_bytes("a.yaml", text.as_bytes(), &mut found);
    let found = found.into_sorted();
    let has = found.iter().any(|found| found.code.0 == code);
    assert!(has, "{field}: {found:?}");
}

/// Whether all of a field has no effect in this version.
fn is_pending(path: &str) -> bool {
    unsupported::rows().iter().any(|row| {
        let rest = path.strip_prefix(&*row.path);
        row.kind == Kind::DestinationRule
            && row.when == When::Written
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

fn check(field: &str, shows: &Shows, has_ports: bool) {
    if is_pending(&format!("spec.trafficPolicy.{field}")) {
        return;
    }
    match shows {
        Settings(with, without, shown) => {
            check_settings(field, (with, without), shown, has_ports);
        }
        Warning(policy, code) => check_warning(field, policy, code),
        Test(file, name) => {
            let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!("fn {name}(")), "{field}: {name}");
        }
    }
}

#[test]
fn every_field_of_a_policy_counts_where_it_stands_and_nowhere_else() {
    for (field, shows) in FIELDS {
        check(field, shows, true);
    }
    for (field, shows) in HASHES {
        let field = format!("loadBalancer.consistentHash.{field}");
        let Settings(with, without, shown) = shows else {
            panic!("{field} has settings")
        };
        let whole = |key: &str| match key {
            "" => String::new(),
            key => format!("loadBalancer: {{consistentHash: {{{key}}}}}"),
        };
        check_settings(&field, (&whole(with), &whole(without)), shown, true);
    }
    for (field, shows) in WHOLE {
        check(field, shows, false);
    }
}

#[test]
fn every_field_is_in_the_tables() {
    for (field, shows) in HEAD {
        check(field, shows, false);
    }
    let hashes = HASHES
        .iter()
        .map(|(field, _)| format!("loadBalancer.consistentHash.{field}"));
    let of_ports: Vec<String> = FIELDS
        .iter()
        .map(|(field, _)| (*field).to_owned())
        .chain(hashes)
        .collect();
    let row = kinds::rows().find(|row| row.kind == Kind::DestinationRule);
    let leaf = |holds: &str| !matches!(holds, "list" | "mapping");
    for field in (row.unwrap().fields)() {
        if !leaf(field.holds) {
            continue;
        }
        let path = field.path.strip_prefix("subsets[].").unwrap_or(&field.path);
        let known = match path.strip_prefix("trafficPolicy.") {
            None => HEAD.iter().any(|(head, _)| *head == field.path),
            Some(path) => {
                let of_port = path.strip_prefix("portLevelSettings[].");
                let path = of_port.unwrap_or(path);
                let in_whole = || WHOLE.iter().any(|(whole, _)| *whole == path);
                ON_SOCKETS.iter().any(|block| path.starts_with(block))
                    || of_ports.iter().any(|known| known == path)
                    || (of_port.is_none() && in_whole())
                    || path == "port.number"
            }
        };
        assert!(known, "{} has no row: say what it does", field.path);
    }
}
