//! Every field of DestinationRule, with what it does to a cluster, and to which clusters: a policy may stand at a rule, at
//! a subset, and at a port of both.

mod rows;

use config_loader::Kind;
use config_loader::kinds;
use config_loader::validate::unsupported::{self, When};

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::World;
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

/// Location of a block: the surrounding text, whether it is in the subset, and the [`CLUSTERS`] that it affects.
struct FieldLocation {
    name: &'static str,
    around: fn(&str) -> String,
    in_subset: bool,
    shows: [bool; 4],
}

/// The last two are for what a port may have.
const PLACES: [FieldLocation; 4] = [
    FieldLocation {
        name: "rule",
        around: str::to_owned,
        in_subset: false,
        shows: [true; 4],
    },
    FieldLocation {
        name: "subset",
        around: str::to_owned,
        in_subset: true,
        shows: [false, true, false, true],
    },
    FieldLocation {
        name: "port",
        around: for_port,
        in_subset: false,
        shows: [true, true, false, false],
    },
    FieldLocation {
        name: "port of the subset",
        around: for_port,
        in_subset: true,
        shows: [false, true, false, false],
    },
];

impl FieldLocation {
    /// The settings of clusters with this block here.
    fn settings(&self, block: &str) -> [String; 4] {
        let policy = match block {
            "" => String::new(),
            block => (self.around)(block),
        };
        match self.in_subset {
            true => settings("", &policy),
            false => settings(&policy, ""),
        }
    }
}

/// Checks which clusters `with` shows in, as against `without`.
fn check_settings(field: &str, (with, without): (&str, &str), shown: &str, has_ports: bool) {
    for place in &PLACES[..if has_ports { 4 } else { 2 }] {
        let (some, none) = (place.settings(with), place.settings(without));
        for (at, cluster) in CLUSTERS.iter().enumerate() {
            let (some, none) = (&some[at], &none[at]);
            let place_name = format!("{field} at the {}, cluster {cluster}", place.name);
            assert_eq!(some != none, place.shows[at], "{place_name}: {some}");
            if place.shows[at] {
                assert!(some.contains(shown), "{place_name}: {some}");
                let was_there = !shown.is_empty() && none.contains(shown);
                assert!(!was_there, "{place_name}: {none}");
            }
        }
    }
    // what a port says takes the place of all of them, and of what it does not say
    let port = for_port(OTHER_BLOCK);
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
fn every_policy_field_applies_only_at_its_level() {
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
fn every_policy_field_is_in_the_tables() {
    for (field, shows) in HEAD {
        check(field, shows, false);
    }
    let hashes = HASHES
        .iter()
        .map(|(field, _)| format!("loadBalancer.consistentHash.{field}"));
    let first_path_for_ports: Vec<String> = FIELDS
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
                    || first_path_for_ports.iter().any(|known| known == path)
                    || (of_port.is_none() && in_whole())
                    || path == "port.number"
            }
        };
        assert!(known, "{} has no row: say what it does", field.path);
    }
}
