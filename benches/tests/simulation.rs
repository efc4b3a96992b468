//! Simulated endpoint failures, played against a cluster with a simulated clock and seeded random numbers.
//!
//! Each seed creates endpoints, zones and a policy, then partial failures, zone outages, flapping, mass ejections and
//! recoveries. The invariants are checked after each step. A failure names its seed: `SEED=n cargo test -p benches
//! --test simulation`.

use std::time::Duration;

use benches::clusters::{cluster, policies, report};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use traffic::balance::{EndpointIdx, HashAlgorithm, Policy};
use traffic::cluster::locality::Pattern;
use traffic::cluster::{
    Avoid, Balance, Cluster, Outcome, OutlierPolicy, PickInput, Spread, Warmup,
};
use traffic::registry::{EventKind, Moment};

const SEEDS: u64 = 300;
const STEPS: usize = 120;
const REQUESTS: usize = 60;

/// Attempts of a failing request.
const ATTEMPTS: usize = 5;

/// Behavior of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Conduct {
    Well,
    /// Fails this fraction of its requests.
    Poor(f64),
    Gone,
}

struct World {
    cluster: Cluster,
    policy: OutlierPolicy,
    conduct: Vec<Conduct>,
    zones: Vec<usize>,
    /// Share of traffic of each endpoint in the current load distribution.
    shares: Vec<f64>,
    now: Moment,
    swept: Moment,
    rng: SmallRng,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let count = rng.random_range(1..24_usize);
        let zones: Vec<usize> = (0..count).map(|_| rng.random_range(0..3)).collect();
        let endpoints: Vec<(String, u32)> = zones
            .iter()
            .map(|zone| (format!("region/zone-{zone}"), rng.random_range(1..5)))
            .collect();
        let (_, mut lb) = policies()[rng.random_range(0..5)].clone();
        if let Policy::Hash(hash) = &mut lb
            && let HashAlgorithm::Maglev { size } = &mut hash.algorithm
        {
            // a small one, to play many seeds
            *size = 251;
        }
        let policy = OutlierPolicy {
            server_errors: rng.random_range(1..6),
            split: rng.random_bool(0.3),
            local_errors: rng.random_range(1..4),
            interval: Duration::from_secs(rng.random_range(1..12)),
            base_time: Duration::from_secs(rng.random_range(1..40)),
            percent_max: [10, 33, 50, 100][rng.random_range(0..4)],
            first_ejection_always: rng.random_bool(0.8),
            ..OutlierPolicy::default()
        };
        let spread = match rng.random_range(0..10) {
            0..4 => Spread::Failover {
                regions: Vec::new(),
                labels: Vec::new(),
            },
            // all or some of the traffic stays in the zone of the first endpoint, and zones may get none
            at @ 4..7 => {
                let share = |zone: usize, share| {
                    let zone = format!("zone-{}", zone % 3);
                    (Pattern(vec!["region".into(), zone.into()]), share)
                };
                let (own, share_of_own) = (zones[0], if at == 4 { 100 } else { 70 });
                let shares = [share(own, share_of_own), share(own + 1, 100 - share_of_own)];
                Spread::Distribute(shares.into_iter().filter(|(_, share)| *share > 0).collect())
            }
            _ => Spread::Flat,
        };
        let balance = Balance {
            policy: lb,
            warmup: rng.random_bool(0.3).then_some(Warmup {
                duration: Duration::from_secs(20),
                least: 0.1,
                aggression: 1.0,
            }),
            spread,
            outlier: Some(policy.clone()),
            panic_percent: [0, 0, 30, 60][rng.random_range(0..4)],
            remember: None,
        };
        let cluster = cluster(balance, &endpoints);
        Self {
            shares: cluster.shares(),
            cluster,
            policy,
            conduct: vec![Conduct::Well; count],
            zones,
            now: Moment(1),
            swept: Moment(1),
            rng,
        }
    }

    /// Applies one random event to the endpoints.
    fn fate(&mut self) {
        let count = self.conduct.len();
        let one = self.rng.random_range(0..count);
        match self.rng.random_range(0..9) {
            0 => self.conduct[one] = Conduct::Gone,
            1 => self.conduct[one] = Conduct::Poor(self.rng.random_range(0.1..1.0)),
            2 | 3 => self.conduct[one] = Conduct::Well,
            4 => {
                let zone = self.rng.random_range(0..3);
                self.in_zone(zone, Conduct::Gone);
            }
            5 => {
                let zone = self.rng.random_range(0..3);
                self.in_zone(zone, Conduct::Well);
            }
            6 if self.rng.random_bool(0.2) => self.conduct.fill(Conduct::Gone),
            7 => self.conduct.fill(Conduct::Well),
            _ => {}
        }
    }

    fn in_zone(&mut self, zone: usize, conduct: Conduct) {
        for (one, _) in self.zones.iter().enumerate().filter(|(_, of)| **of == zone) {
            self.conduct[one] = conduct;
        }
    }

    fn outcome(&mut self, endpoint: EndpointIdx) -> Outcome {
        match self.conduct[endpoint.0 as usize] {
            Conduct::Well => Outcome::Status(200),
            Conduct::Poor(part) if self.rng.random_bool(part) => Outcome::Status(500),
            Conduct::Poor(_) => Outcome::Status(200),
            Conduct::Gone => Outcome::Failed,
        }
    }

    fn usable(&self, one: usize) -> bool {
        let endpoint = EndpointIdx(one as u32);
        self.cluster.endpoint(endpoint).state.health.is_usable()
    }

    /// Returns the endpoints that are part of the load distribution.
    fn planned(&self) -> impl Iterator<Item = usize> {
        let groups = self.cluster.plan.iter().flatten();
        groups.flat_map(|group| group.indexes.iter().map(|index| *index as usize))
    }

    fn any_usable(&self) -> bool {
        self.planned().any(|one| self.usable(one))
    }

    /// Whether the load distribution reflects the current health of all endpoints.
    fn is_fresh(&self) -> bool {
        let healthy = self
            .cluster
            .live()
            .health
            .iter()
            .map(|health| health.healthy)
            .sum::<u32>();
        healthy as usize == self.planned().filter(|one| self.usable(*one)).count()
    }

    /// Runs one request: picks endpoints for its attempts and records the outcomes. Some requests exclude exhausted
    /// priorities on retries.
    fn request(&mut self) {
        let ask = PickInput {
            hash: Some(self.rng.random()),
            ..PickInput::default()
        };
        let widens = self.rng.random_bool(0.3);
        let mut tried = Vec::new();
        while tried.len() < ATTEMPTS {
            let left_out = match widens {
                true => self.cluster.left_out(&tried),
                false => Default::default(),
            };
            let avoid = Avoid {
                endpoints: &tried,
                priorities: &left_out,
            };
            let picked = match tried.len() {
                0 => self.cluster.pick(ask, &mut self.rng),
                _ => self.cluster.pick_other(ask, &avoid, &mut self.rng),
            };
            let live = self.cluster.live();
            let panics = live.shares.iter().any(|share| share.panic);
            let Some(picked) = picked else {
                assert!(
                    !self.any_usable(),
                    "no endpoint was picked, though one is available"
                );
                return;
            };
            let usable = self.usable(picked.0 as usize);
            assert!(
                usable || panics,
                "{picked:?} is out and was picked without panic"
            );
            self.check_attempt(picked, &avoid);
            tried.push(picked);
            let outcome = self.outcome(picked);
            let now = self.now;
            report(&self.cluster, picked, outcome, now);
            if outcome == Outcome::Status(200) {
                return;
            }
        }
    }

    /// Checks that an attempt goes to an endpoint with a share of traffic, and not to one to avoid while another is
    /// usable.
    fn check_attempt(&self, picked: EndpointIdx, avoid: &Avoid<'_>) {
        if !self.is_fresh() {
            return;
        }
        let priority = self.cluster.priority(picked);
        if avoid.priorities.is_empty() {
            assert!(
                self.shares[picked.0 as usize] > 0.0,
                "{picked:?} has no share"
            );
            let live = self.cluster.live();
            let other = (0..).zip(&self.shares).find(|(one, share)| {
                let endpoint = EndpointIdx(*one);
                let panics = live.shares[self.cluster.priority(endpoint) as usize].panic;
                let may_be_picked = panics || self.usable(*one as usize);
                **share > 0.0 && may_be_picked && !avoid.endpoints.contains(&endpoint)
            });
            assert!(
                other.is_none() || !avoid.endpoints.contains(&picked),
                "{picked:?} again, though there is {other:?}"
            );
        } else {
            assert!(
                !avoid.priorities.contains(&priority),
                "{picked:?} is of a priority that is left out"
            );
        }
        assert!(self.planned().any(|one| one == picked.0 as usize));
    }

    fn step(&mut self) {
        self.fate();
        for _ in 0..REQUESTS {
            self.request();
        }
        self.now = Moment(self.now.0 + self.rng.random_range(50..3000));
        self.cluster.refresh(self.now);
        if self.now.since(self.swept) >= self.policy.interval {
            let turn = self.cluster.state.ejections.lock();
            self.cluster.sweep(&turn, self.now);
            self.swept = self.now;
        }
        self.shares = self.cluster.shares();
        self.check();
    }

    /// Checks the invariants that hold after each step.
    fn check(&self) {
        let all = self.conduct.len();
        let out = (0..all).filter(|one| !self.usable(*one)).count();
        let cap = all * usize::from(self.policy.percent_max) / 100;
        let allowed = if self.policy.first_ejection_always {
            cap.max(1)
        } else {
            cap
        };
        assert!(out <= allowed, "{out} of {all} are out, {allowed} may be");
        let live = self.cluster.live();
        let loads: u32 = live.shares.iter().map(|share| u32::from(share.load)).sum();
        assert_eq!(loads, 100);
        assert!(self.is_fresh(), "tables are as health is");
        let shares: f64 = self.shares.iter().sum();
        let serves = self.any_usable() || live.shares.iter().any(|share| share.panic);
        assert!(
            !serves || (shares - 1.0).abs() < 1e-3,
            "shares sum to {shares}"
        );
    }

    /// Checks that all endpoints return with their full weight once every endpoint stays healthy.
    fn recover(&mut self) {
        self.conduct.fill(Conduct::Well);
        for _ in 0..200 {
            for _ in 0..5 {
                self.request();
            }
            self.now = Moment(self.now.0 + 10_000);
            let turn = self.cluster.state.ejections.lock();
            self.cluster.sweep(&turn, self.now);
            self.shares = self.cluster.shares();
        }
        assert!((0..self.conduct.len()).all(|one| self.usable(one)));
        assert!(self.cluster.live().warms_at.is_none());
        let events = self.cluster.state.journal.since(0);
        let count =
            |of: fn(&EventKind) -> bool| events.iter().filter(|event| of(&event.what)).count();
        let ejected = count(|what| matches!(what, EventKind::Ejected { .. }));
        let returned = count(|what| matches!(what, EventKind::Unejected { .. }));
        // the journal keeps the last events only
        assert!(
            events[..].len() >= 1024 || ejected == returned,
            "{ejected} {returned}"
        );
    }
}

fn play(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.step();
    }
    world.recover();
}

#[test]
fn invariants_hold_through_endpoint_failures() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    for seed in seeds {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "seed {seed}");
    }
}

#[test]
fn same_seed_gives_the_same_timeline() {
    let tell = |seed| {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        let events = world.cluster.state.journal.since(0);
        let lines = events
            .iter()
            .map(|event| format!("{} {}", event.at.0, event.what));
        lines.collect::<Vec<_>>()
    };
    let told: Vec<_> = (0..10).map(tell).collect();
    assert_eq!(told, (0..10).map(tell).collect::<Vec<_>>());
    assert!(told.iter().any(|lines| lines.len() > 10));
}
