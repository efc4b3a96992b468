//! Picks and outcomes allocate nothing.

use allocation_counter::measure;
use benches::clusters::{balance, cluster, endpoints, policies};
use proxy::cluster::{Ask, Outcome, Spread};
use proxy::registry::Moment;
use rand::SeedableRng;
use rand::rngs::SmallRng;

#[test]
fn picks_and_outcomes_allocate_nothing() {
    let spreads = [
        Spread::Flat,
        Spread::Failover {
            regions: Vec::new(),
            labels: Vec::new(),
        },
    ];
    for (name, policy) in policies() {
        for (spread, equal) in spreads.iter().zip([true, false]) {
            let mut balance = balance(policy.clone());
            balance.spread = spread.clone();
            let cluster = cluster(balance, &endpoints(100, equal));
            let mut rng = SmallRng::seed_from_u64(1);
            let mut once = |hash: u64| {
                let hash = Some(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let ask = Ask {
                    hash,
                    ..Ask::default()
                };
                let picked = cluster.pick(ask, &mut rng).expect("an endpoint");
                for outcome in [
                    Outcome::Status(200),
                    Outcome::Status(503),
                    Outcome::TimedOut,
                ] {
                    cluster.report(picked, outcome, || Moment(1));
                }
                cluster.report(picked, Outcome::Status(200), || Moment(1));
            };
            // what a thread allocates once, it has allocated then
            once(0);
            let info = measure(|| (1..1000).for_each(&mut once));
            assert_eq!(info.count_total, 0, "{name} {spread:?}");
        }
    }
}
