//! Simulated failures of a service that several Kubernetes clusters ("members") serve, played through production code:
//! resources are compiled, tiers and shares chosen, endpoints picked, ejected and unejected.
//!
//! Each seed creates a fleet, a policy and an exposure, then outages, recoveries and changes of all of these. The
//! invariants are checked after each step against `oracle`, which is written from the specification alone. A failure
//! names its seed: `SEED=n cargo test -p benches --test simulation_clusters`.

mod oracle;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use http::header::HeaderMap;
use proxy::snapshot::{Security, Snapshot};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use traffic::cluster::federation::{Choice, Federation};
use traffic::cluster::{Cluster, Outcome, PickInput};
use traffic::registry::{Address, ClusterId, Moment};
use traffic::route::{RequestHead, normalize_host};

use benches::clusters::report;
use benches::fleet::{Fleet, named};
use oracle::Tiers;
use world::{EndpointSite, Kind, World};

const SEEDS: u64 = 300;
const STEPS: usize = 40;
const REQUESTS: usize = 25;

/// Maximum number of picks counted to compare shares.
const WINDOW_MAX: u64 = 2_000;

/// Counts of events, so that a test can assert that the simulation covered them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    requests: usize,
    unanswered: usize,
    ejections: usize,
    windows: usize,
    replays: usize,
    shifts: usize,
    changes: usize,
}

struct Play {
    world: World,
    fleet: Fleet,
    snapshot: Arc<Snapshot>,
    now: Moment,
    rng: SmallRng,
    told: Told,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let world = World::new(&mut rng);
        let mut fleet = Fleet::seen_from(&world.own());
        fleet.identity.mesh.zero_weight_is_full_weight = world.zero_counts;
        fleet.identity.mesh.local_when_not_provider = world.local_always;
        let mut play = Self {
            world,
            fleet,
            snapshot: Arc::default(),
            now: Moment(1),
            rng,
            told: Told::default(),
        };
        play.publish();
        play
    }

    /// Compiles the current resources, as the proxy does when files have changed.
    fn publish(&mut self) {
        let text = self.world.text();
        let mut snapshot = self.fleet.compile(&text, &self.snapshot, self.now);
        snapshot.generation = self.snapshot.generation + 1;
        for (own, before) in snapshot.clusters.iter().zip(0..) {
            let before = self.snapshot.cluster(ClusterId(before));
            if let Some(own) = own
                && before.is_none_or(|before| !Arc::ptr_eq(own, before))
            {
                own.adopt(self.now);
            }
        }
        self.snapshot = Arc::new(snapshot);
    }

    /// Returns the cluster that requests go to; `None` if the proxy may not use the host.
    fn web(&self) -> Option<Arc<Cluster>> {
        let name = format!("outbound|80||{}", self.world.host());
        named(&self.snapshot, &name).cloned()
    }

    /// Picks an endpoint for a request. Returns the index of the chosen member (if there are several), its cluster, and
    /// the endpoint.
    fn choose(&mut self, web: &Cluster) -> Option<(Option<usize>, Arc<Cluster>, u32)> {
        let snapshot = Arc::clone(&self.snapshot);
        let Some(federation) = &web.federation else {
            let picked = web.pick(PickInput::default(), &mut self.rng)?;
            let web = Arc::clone(snapshot.cluster(web.id())?);
            return Some((None, web, picked.0));
        };
        let cluster = |id| snapshot.cluster(id);
        let choice = federation.choose(
            snapshot.generation,
            cluster,
            PickInput::default(),
            &mut self.rng,
        )?;
        self.told.shifts += usize::from(choice.shifted_from.is_some());
        Some(self.taken(federation, choice))
    }

    fn taken(&self, federation: &Federation, choice: Choice) -> (Option<usize>, Arc<Cluster>, u32) {
        let pool = federation.pools()[choice.at].cluster;
        let pool = self.snapshot.cluster(pool).expect("a pool is a cluster");
        (Some(choice.at), Arc::clone(pool), choice.endpoint.0)
    }

    /// Returns all endpoints of the service, by address, and whether each is usable now.
    fn usable(&self) -> BTreeMap<EndpointSite, bool> {
        let mut all = BTreeMap::new();
        let Some(web) = self.web() else {
            return all;
        };
        let pools = web.federation.iter().flat_map(|f| f.pools());
        let pools = pools.filter_map(|pool| self.snapshot.cluster(pool.cluster));
        for cluster in pools.chain([&web]) {
            for endpoint in cluster.endpoints() {
                let usable = endpoint.state.health.is_usable();
                all.insert(place(&endpoint.address), usable);
            }
        }
        all
    }

    /// Runs one request: picks an endpoint, checks that it is allowed, and records the outcome.
    fn request(&mut self, tiers: &Tiers) {
        let usable = self.usable();
        self.told.requests += 1;
        let web = self.web();
        let Some((_, pool, endpoint)) = web.and_then(|web| self.choose(&web)) else {
            self.told.unanswered += 1;
            let left = tiers.first_usable(&usable);
            assert!(
                left.is_none(),
                "no endpoint was picked, though {left:?} is available"
            );
            return;
        };
        let endpoint = &pool.endpoints()[endpoint as usize];
        let place = place(&endpoint.address);
        tiers.check_pick(place, &usable, self.world.panics());
        let outcome = match self.world.fails(place, &mut self.rng) {
            Some(true) => Outcome::Failed,
            Some(false) => Outcome::Status(503),
            None => Outcome::Status(200),
        };
        let number = pool
            .endpoints()
            .iter()
            .position(|other| other.address == endpoint.address);
        let number = number.expect("it is one of them") as u32;
        let now = self.now;
        report(&pool, traffic::balance::EndpointIdx(number), outcome, now);
        self.told.ejections += usize::from(!endpoint.state.health.is_usable());
    }

    fn step(&mut self) {
        if self.world.fate(&mut self.rng) {
            self.told.changes += 1;
            self.publish();
        }
        let tiers = oracle::tiers(&self.world);
        for _ in 0..REQUESTS {
            self.request(&tiers);
        }
        self.now = Moment(self.now.0 + self.rng.random_range(50..2500));
        for cluster in self.snapshot.clusters.iter().flatten() {
            cluster.refresh(self.now);
            cluster.sweep(&cluster.state.ejections.lock(), self.now);
        }
        self.check_shares(&tiers);
        self.check_replays(&tiers);
        self.check_exports();
    }

    /// Checks that while nothing changes, each member gets exactly its weight in any window of one cycle.
    fn check_shares(&mut self, tiers: &Tiers) {
        let usable = self.usable();
        let Some(weights) = tiers.in_use(&usable) else {
            return;
        };
        let divisor = weights.values().copied().fold(0, gcd);
        let window = weights.values().sum::<u64>() / divisor;
        if window > WINDOW_MAX {
            return;
        }
        let web = self.web().expect("its endpoints may be used");
        // the first one may find out that others are available than before
        self.choose(&web);
        let mut counts: BTreeMap<u8, u64> = BTreeMap::new();
        for _ in 0..window {
            let (_, pool, endpoint) = self.choose(&web).expect("one may be used");
            let place = place(&pool.endpoints()[endpoint as usize].address);
            *counts.entry(place.member).or_default() += 1;
        }
        let exact = weights.iter().map(|(member, w)| (*member, w / divisor));
        assert_eq!(counts, exact.collect(), "shares of {window} requests");
        self.told.windows += 1;
    }

    /// Checks that a failed request is replayed only in the next tier with an available endpoint.
    fn check_replays(&mut self, tiers: &Tiers) {
        let Some(web) = self.web() else {
            return;
        };
        let Some(federation) = &web.federation else {
            return;
        };
        let usable = self.usable();
        let Some((Some(at), ..)) = self.choose(&web) else {
            return;
        };
        let mut tier = federation.pools()[at].tier;
        let mut expected = tiers.usable_tiers(&usable).into_iter().skip(1);
        let snapshot = Arc::clone(&self.snapshot);
        let cluster = |id| snapshot.cluster(id);
        if tiers.first_usable(&usable).is_none() {
            return;
        }
        loop {
            let ask = PickInput::default();
            let choice = federation.choose_after(tier, cluster, ask, &mut self.rng);
            let Some(choice) = choice else {
                assert_eq!(expected.next(), None, "a tier was left out");
                return;
            };
            tier = federation.pools()[choice.at].tier;
            let (_, pool, endpoint) = self.taken(federation, choice);
            let place = place(&pool.endpoints()[endpoint as usize].address);
            let members = expected.next();
            let allowed = members
                .as_ref()
                .is_some_and(|of| of.contains(&place.member));
            assert!(allowed, "{place:?} is not of {members:?}");
            assert!(usable[&place], "{place:?} is out");
            self.told.replays += 1;
        }
    }

    /// Checks that requests from other clusters end at workloads of the local cluster, so that there are no request
    /// loops.
    fn check_exports(&self) {
        let own = self.world.own;
        let path = format!("/{}/web/items", self.world.own());
        let name = self.routed("web.ns1", &path);
        assert_eq!(
            name.as_deref(),
            Some("exported|80||web.ns1.svc.cluster.local")
        );
        let exported = named(&self.snapshot, &name.unwrap_or_default());
        let exported = exported.expect("the exported route has a cluster");
        assert!(exported.federation.is_none(), "it has no other clusters");
        for endpoint in exported.endpoints() {
            let place = place(&endpoint.address);
            assert_eq!((place.member, place.kind), (own, Kind::Workload));
        }
        assert_eq!(exported.endpoints().len(), self.world.workloads(own));
    }

    /// Returns the destination of a GET request.
    fn routed(&self, authority: &str, path: &str) -> Option<String> {
        let (_, listener) = self.snapshot.listeners.first_key_value()?;
        let host = normalize_host(authority);
        let hosts = listener.http(Security::Plain)?;
        let head = RequestHead {
            is_http2: false,
            method: &Method::GET,
            scheme: "http",
            authority,
            host: &host,
            path,
            query: None,
            headers: &HeaderMap::new(),
            claims: None,
        };
        let mut tables = hosts.find(&host).into_iter().chain(&hosts.exports);
        let (virtual_host, rule) = tables.find_map(|one| Some((one, one.table.find(&head)?)))?;
        let split = virtual_host.route(rule).split.as_ref()?;
        let (_, destination) = split.entries().next()?;
        Some(destination.name.to_string())
    }
}

fn place(address: &Address) -> EndpointSite {
    let address = address.socket().expect("an IP address");
    EndpointSite::of(address)
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

fn play(seed: u64) -> Told {
    let mut play = Play::new(seed);
    for _ in 0..STEPS {
        play.step();
    }
    play.told
}

#[test]
fn invariants_hold_through_outages_and_configuration_changes() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    let whole = seeds.end - seeds.start > 1;
    let mut sum = Told::default();
    for seed in seeds {
        let played = std::panic::catch_unwind(|| play(seed));
        let Ok(told) = played else {
            panic!("seed {seed}: replay it with SEED={seed}");
        };
        sum.unanswered += told.unanswered;
        sum.ejections += told.ejections;
        sum.windows += told.windows;
        sum.replays += told.replays;
        sum.shifts += told.shifts;
        sum.changes += told.changes;
    }
    let idle = [
        sum.unanswered,
        sum.ejections,
        sum.windows,
        sum.replays,
        sum.shifts,
        sum.changes,
    ];
    assert!(!whole || idle.iter().all(|count| *count > 200), "{sum:?}");
}

#[test]
fn same_seed_gives_the_same_timeline() {
    let all = || (0..10).map(play).collect::<Vec<Told>>();
    assert_eq!(all(), all());
}
