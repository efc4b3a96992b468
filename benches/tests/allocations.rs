//! Picks, recording of outcomes, and trace contexts do not allocate.

use std::time::Duration;

use allocation_counter::measure;
use benches::clusters::{balance, by_client, cluster, endpoints, policies, report};
use benches::fleet::{Fleet, WEB, named, shared};
use http::{HeaderMap, HeaderValue};
use proxy::snapshot::Snapshot;
use proxy::telemetry::WorkerId;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use traffic::cluster::{Outcome, PickInput, Spread};
use traffic::registry::{Moment, Visit};
use traffic::trace::headers::TRACEPARENT;
use traffic::trace::{self, RequestId, TraceContext, TracingSettings};

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
                let ask = PickInput {
                    hash,
                    ..PickInput::default()
                };
                let picked = cluster.pick(ask, &mut rng).expect("an endpoint");
                for outcome in [
                    Outcome::Status(200),
                    Outcome::Status(503),
                    Outcome::TimedOut,
                ] {
                    report(&cluster, picked, outcome, Moment(1));
                }
                report(&cluster, picked, Outcome::Status(200), Moment(1));
            };
            // what a thread allocates once, it has allocated then
            once(0);
            let info = measure(|| (1..1000).for_each(&mut once));
            assert_eq!(info.count_total, 0, "{name} {spread:?}");
        }
    }
}

#[test]
fn picks_for_clients_that_stay_allocate_nothing() {
    let mut balance = balance(by_client());
    balance.remember = Some(Duration::from_secs(60));
    let cluster = cluster(balance, &endpoints(100, true));
    let mut rng = SmallRng::seed_from_u64(1);
    let mut once = |number: u64| {
        let client = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = Moment(1 + number * 10);
        let stay = cluster.stay(Visit { client, at }).expect("clients stay");
        let ask = PickInput {
            hash: Some(client),
            ..PickInput::default()
        };
        let picked = cluster.pick_for(&stay, ask, &mut rng);
        assert!(picked.is_some());
    };
    // a table is made in pieces, as clients come
    (0..100_000).for_each(&mut once);
    let info = measure(|| (90_000..200_000).for_each(&mut once));
    assert_eq!(info.count_total, 0);
}

#[test]
fn choices_among_members_allocate_nothing() {
    for count in [1, 3, 64] {
        let fleet = Fleet::seen_from("c0");
        let weights = (1..=count).map(|n| (format!("c{n}"), 10 + n % 7));
        let text = shared(&weights.collect::<Vec<_>>());
        let snapshot = fleet.compile(&text, &Snapshot::default(), Moment(1));
        let web = named(&snapshot, WEB).expect("the service");
        let federation = web.federation.as_ref().expect("several members");
        let mut rng = SmallRng::seed_from_u64(1);
        let mut once = |hash: u64| {
            for hash in [None, Some(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15))] {
                let ask = PickInput {
                    hash,
                    ..PickInput::default()
                };
                let cluster = |id| snapshot.cluster(id);
                let chosen = federation.choose(1, cluster, ask, &mut rng);
                let chosen = chosen.expect("an endpoint");
                federation.count_try(WorkerId(0), chosen.at, 200);
            }
        };
        // each member's counters are made with its first request
        (0..1000).for_each(&mut once);
        let info = measure(|| (1000..3000).for_each(&mut once));
        assert_eq!(info.count_total, 0, "{count} members");
    }
}

#[test]
fn trace_contexts_are_read_decided_and_written_without_allocations() {
    let settings = TracingSettings::default();
    let mut headers = HeaderMap::new();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    headers.insert(TRACEPARENT, HeaderValue::from_static(parent));
    let mut rng = SmallRng::seed_from_u64(1);
    let mut bytes = 0;
    let info = measure(|| {
        for _ in 0..1000 {
            let parent = trace::read(&headers, &settings);
            let mut context = TraceContext::begin(&mut rng);
            context.propagators = settings.propagators;
            let request = trace::Request {
                id: RequestId::read(b"00000063-0000-4000-8000-000000000000", true),
                is_id_kept: false,
                is_forced: false,
                has_client_id: false,
            };
            trace::decide(&mut context, &parent, &request, &settings, || true);
            trace::headers::each(&context, context.child(1), |_, value| bytes += value.len());
        }
    });
    assert_eq!((info.count_total, bytes), (0, 55_000));
}
