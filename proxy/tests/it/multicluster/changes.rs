//! Configuration changes under traffic: scenarios 41 and 85.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const BACKUPS: &str = "{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}";

/// Number of requests of scenario 85.
const REQUESTS: usize = 20_000;
const FLIPS: usize = 50;

/// Maximum time until a change is in effect.
const IN_FORCE: Duration = Duration::from_secs(1);

fn setup<'a>(local: usize, policy: &'a str) -> Setup<'a> {
    Setup {
        local,
        policy,
        ..Setup::default()
    }
}

#[test]
fn scenario_41_removing_the_policy_makes_a_service_local_again() {
    let world = World::new();
    let proxy = world.proxy(setup(0, BACKUPS));
    assert_shares(&count(&proxy, 100), &[("g2", 50), ("g3", 50)]);
    proxy.write("mesh.yaml", world.mesh(proxy.edge, setup(0, "")));
    let changed = Instant::now();
    eventually("no cluster serves it", || {
        count(&proxy, 1).contains_key("503")
    });
    assert!(changed.elapsed() < IN_FORCE, "{:?}", changed.elapsed());
    assert_shares(&count(&proxy, RUN), &[("503", 1000)]);
}

#[test]
fn scenario_85_no_request_fails_while_endpoints_and_weights_change() {
    let world = World::new();
    let weights = |c2: usize, c3: usize| {
        format!(
            "{{lbType: ActiveActive, targets: [{{clusterKey: c2, weight: {c2}}}, {{clusterKey: c3, weight: {c3}}}]}}"
        )
    };
    let proxy = world.proxy(setup(0, &weights(50, 50)));
    let done = AtomicBool::new(false);
    let failed = thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut failed = 0;
                    let mut asked = 0;
                    while asked < REQUESTS / 2 || !done.load(Ordering::Relaxed) {
                        let counts = count(&proxy, 100);
                        asked += 100;
                        failed += counts.keys().filter(|who| who.starts_with('5')).count();
                    }
                    failed
                })
            })
            .collect();
        for flip in 0..FLIPS {
            let policy = weights(10 + flip % 80, 90 - flip % 80);
            let text = world.mesh(proxy.edge, setup(flip % 3, &policy));
            proxy.write("mesh.yaml", text);
            count(&proxy, 20);
        }
        done.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(failed, 0);
    proxy.write(
        "mesh.yaml",
        world.mesh(proxy.edge, setup(0, &weights(100, 0))),
    );
    let changed = Instant::now();
    eventually("the split follows", || {
        count(&proxy, 20) == BTreeMap::from([("g2".to_owned(), 20)])
    });
    assert!(changed.elapsed() < IN_FORCE, "{:?}", changed.elapsed());
}

#[test]
fn an_ejection_survives_changes_of_the_policy_and_of_other_clusters() {
    let world = World::new();
    let with = |policy| Setup {
        local: 0,
        policy,
        rule: EJECTS_AT_ONCE,
        ..Setup::default()
    };
    let proxy = world.proxy(with("{lbType: ActiveActive}"));
    eject(&proxy, &[&world.g2]);
    let asked = world.g2.paths().len();
    // c3 is drained, so that its return shows that the change is in effect
    let drained =
        "{lbType: ActiveActive, targets: [{clusterKey: c2}, {clusterKey: c3, weight: 0}]}";
    proxy.write("mesh.yaml", world.mesh(proxy.edge, with(drained)));
    eventually("c3 is drained", || count(&proxy, 1).contains_key("503"));
    proxy.write("mesh.yaml", world.mesh(proxy.edge, with(BACKUPS)));
    eventually("c3 serves", || count(&proxy, 1).contains_key("g3"));
    assert_shares(&count(&proxy, RUN), &[("g3", 1000)]);
    assert_eq!(world.g2.paths().len(), asked, "it is still out");
}
