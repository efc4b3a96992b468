use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use traffic::error::Kind;
use traffic::filter::retry::{BackOff, Condition, Conditions};

/// A request and its clusters, as the machine sees them.
#[derive(Clone, Debug)]
struct World {
    policy: Option<RetryPolicy>,
    replays: Option<Replay>,
    grpc: bool,
    idempotent: bool,
    sent: bool,
    rewinds: bool,
    moves: bool,
    hashed: bool,
    time_left: Option<Duration>,
    /// Tiers after the one in use.
    later_tiers: u32,
    /// Retries that the retry limit admits.
    budget: Cell<u32>,
    /// Answers of the retry limit, newest last.
    answers: RefCell<Vec<bool>>,
}

impl Facts for World {
    fn policy(&self) -> Option<&RetryPolicy> {
        self.policy.as_ref()
    }

    fn replays(&self) -> Option<Replay> {
        self.replays
    }

    fn has_next_tier(&self) -> bool {
        self.later_tiers > 0
    }

    fn is_grpc(&self) -> bool {
        self.grpc
    }

    fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    fn is_sent(&self) -> bool {
        self.sent
    }

    fn can_rewind(&self) -> bool {
        self.rewinds
    }

    fn can_move(&self) -> bool {
        self.moves
    }

    fn is_hashed(&self) -> bool {
        self.hashed
    }

    fn time_left(&self) -> Option<Duration> {
        self.time_left
    }

    fn admit(&self, _: Reason) -> Admission {
        let left = self.budget.get();
        self.answers.borrow_mut().push(left > 0);
        self.budget.set(left.saturating_sub(1));
        match left {
            0 => Admission::Refused,
            _ => Admission::Admitted(None),
        }
    }
}

/// A result of an attempt, or of what was to become one.
#[derive(Clone, Copy, Debug)]
enum Ended {
    Failed(Kind),
    GrpcUnavailable,
    Status(u16),
    Unmade(Kind),
}

impl Ended {
    fn causes(self, world: &World) -> Causes {
        let response = Response::builder();
        let attempted = match self {
            Ended::Failed(kind) | Ended::Unmade(kind) => Err(Error::new(kind)),
            Ended::GrpcUnavailable => Ok(response.header("grpc-status", "14").body(()).unwrap()),
            Ended::Status(status) => Ok(response.status(status).body(()).unwrap()),
        };
        let causes = Causes::of(&attempted, world);
        match self {
            Ended::Unmade(_) => causes.of_unmade(),
            _ => causes,
        }
    }
}

/// A POST to a service of one cluster whose body is buffered, without a policy.
fn world() -> World {
    World {
        policy: None,
        replays: None,
        grpc: false,
        idempotent: false,
        sent: true,
        rewinds: true,
        moves: true,
        hashed: false,
        time_left: None,
        later_tiers: 0,
        budget: Cell::new(u32::MAX),
        answers: RefCell::default(),
    }
}

/// A policy that retries 5xx and failures.
fn policy(attempts: u32) -> RetryPolicy {
    let mut conditions = Conditions::default();
    conditions.insert(Condition::FiveXx);
    RetryPolicy {
        attempts,
        conditions,
        implied: false,
        ..RetryPolicy::mesh_default(false)
    }
}

fn retrying(attempts: u32) -> World {
    World {
        policy: Some(policy(attempts)),
        ..world()
    }
}

fn in_tiers(later_tiers: u32, world: World) -> World {
    World {
        replays: Some(Replay::Safe),
        later_tiers,
        ..world
    }
}

fn next(machine: &mut Machine, ended: Ended, world: &World) -> Next {
    machine.next(ended.causes(world), world, &mut SmallRng::seed_from_u64(1))
}

/// A decision in short: `retry 1`, `replay Status`, `done`, then the flags and counters.
fn words(next: &Next) -> String {
    let step = match &next.step {
        Step::Done => "done".to_owned(),
        Step::Replay(cause) => format!("replay {cause:?}"),
        Step::Retry(retry) => format!("retry {}", retry.number),
    };
    let counters = next.counters.iter().map(|counter| format!(" {counter:?}"));
    let counters: String = counters.collect();
    format!("{step} {}{counters}", next.flags)
}

const FAILED: Ended = Ended::Failed(Kind::ConnectFailed);

#[test]
fn first_attempt_is_followed_as_the_facts_say() {
    let implied = || World {
        policy: Some(RetryPolicy::mesh_default(false)),
        ..world()
    };
    let refusing = |world| World {
        budget: Cell::new(0),
        ..world
    };
    let unbuffered = |world| World {
        rewinds: false,
        moves: false,
        ..world
    };
    let idempotent = |world| World {
        idempotent: true,
        ..world
    };
    let timeout = Ended::Failed(Kind::AttemptTimeout);
    let grpc = in_tiers(
        1,
        World {
            grpc: true,
            ..world()
        },
    );
    let overflow = "UO RetriesOverflowed OverflowRetries";
    let rows = [
        (world(), Ended::Status(503), "done -"),
        (world(), FAILED, "done -"),
        (retrying(1), Ended::Status(200), "done -"),
        (retrying(1), Ended::Status(503), "retry 1 -"),
        (retrying(1), FAILED, "retry 1 -"),
        (retrying(1), Ended::Failed(Kind::RequestTimeout), "done -"),
        (retrying(0), FAILED, "done URX RetriesExhausted"),
        (refusing(retrying(1)), FAILED, &*format!("done {overflow}")),
        (unbuffered(retrying(1)), FAILED, "done - RetriesWithoutBody"),
        // the retry limit is asked before the body
        (
            unbuffered(refusing(retrying(1))),
            FAILED,
            &*format!("done {overflow}"),
        ),
        (in_tiers(1, world()), Ended::Status(200), "done -"),
        (in_tiers(1, world()), Ended::Status(503), "replay Status -"),
        (in_tiers(0, world()), Ended::Status(503), "done -"),
        (in_tiers(1, world()), Ended::Status(500), "done -"),
        (
            in_tiers(1, idempotent(world())),
            Ended::Status(500),
            "replay Status -",
        ),
        (in_tiers(1, world()), timeout, "done -"),
        (
            in_tiers(1, idempotent(world())),
            timeout,
            "replay Timeout -",
        ),
        (in_tiers(1, world()), Ended::GrpcUnavailable, "done -"),
        (grpc, Ended::GrpcUnavailable, "replay Status -"),
        (
            unbuffered(in_tiers(1, world())),
            FAILED,
            "done - FailoverWithoutBody",
        ),
        (in_tiers(1, retrying(1)), FAILED, "retry 1 -"),
        (
            in_tiers(1, retrying(0)),
            FAILED,
            "replay Connect URX RetriesExhausted",
        ),
        (
            in_tiers(1, refusing(retrying(1))),
            FAILED,
            &*format!("replay Connect {overflow}"),
        ),
        (
            in_tiers(1, unbuffered(retrying(1))),
            FAILED,
            "done - RetriesWithoutBody FailoverWithoutBody",
        ),
        (implied(), FAILED, "retry 1 -"),
        (implied(), Ended::Status(503), "done -"),
        (in_tiers(0, implied()), FAILED, "retry 1 -"),
        (in_tiers(1, implied()), FAILED, "replay Connect -"),
        // its default retries are not made either, as long as there is a next tier
        (
            unbuffered(in_tiers(1, implied())),
            FAILED,
            "done - FailoverWithoutBody",
        ),
    ];
    for (world, ended, expected) in rows {
        let found = words(&next(&mut Machine::default(), ended, &world));
        assert_eq!(found, expected, "{ended:?} {world:?}");
    }
}

/// Decisions after each of these results, tier by tier.
fn walk(mut world: World, results: &[Ended]) -> Vec<String> {
    let mut machine = Machine::default();
    let decisions = results.iter().map(|ended| {
        let next = next(&mut machine, *ended, &world);
        world.later_tiers -= u32::from(matches!(next.step, Step::Replay(_)));
        words(&next)
    });
    decisions.collect()
}

#[test]
fn retries_end_with_the_counter_of_their_result() {
    let ends = [
        (Ended::Status(200), "done - RetriesSucceeded"),
        (Ended::Failed(Kind::DownstreamBody), "done - RetriesFailed"),
        (FAILED, "done URX RetriesExhausted"),
        (Ended::Unmade(Kind::NoHealthyUpstream), "done -"),
        (Ended::Unmade(Kind::RequestTimeout), "done -"),
    ];
    for (end, expected) in ends {
        let found = walk(retrying(2), &[FAILED, FAILED, end]);
        assert_eq!(found, ["retry 1 -", "retry 2 -", expected], "{end:?}");
    }
}

#[test]
fn policy_of_a_route_is_used_in_the_first_tier_only() {
    let found = walk(in_tiers(2, retrying(1)), &[FAILED; 4]);
    let expected = [
        "retry 1 -",
        "replay Connect URX RetriesExhausted",
        "replay Connect -",
        "done -",
    ];
    assert_eq!(found, expected);
}

#[test]
fn default_policy_is_used_in_the_last_tier() {
    let world = World {
        policy: Some(RetryPolicy::mesh_default(false)),
        ..in_tiers(2, world())
    };
    let found = walk(world, &[FAILED; 5]);
    let expected = [
        "replay Connect -",
        "replay Connect -",
        "retry 1 -",
        "retry 2 -",
        "done URX RetriesExhausted",
    ];
    assert_eq!(found, expected);
}

#[test]
fn request_whose_tier_has_no_endpoint_left_goes_to_the_next() {
    let none_left = Ended::Unmade(Kind::NoHealthyUpstream);
    let found = walk(in_tiers(1, retrying(3)), &[FAILED, none_left, FAILED]);
    assert_eq!(found, ["retry 1 -", "replay Connect -", "done -"]);
}

fn ended() -> impl Strategy<Value = Ended> {
    use Kind as K;
    let failed = proptest::sample::select(vec![
        K::ConnectFailed,
        K::ConnectTimeout,
        K::DownstreamBody,
        K::NoHealthyUpstream,
        K::Overflow,
        K::RequestTimeout,
        K::AttemptTimeout,
        K::UpstreamClosed,
        K::UpstreamRefusedStream,
        K::UpstreamReset,
    ]);
    let unmade = proptest::sample::select(vec![
        K::DownstreamBody,
        K::NoHealthyUpstream,
        K::RequestTimeout,
    ]);
    prop_oneof![
        6 => failed.prop_map(Ended::Failed),
        1 => Just(Ended::GrpcUnavailable),
        4 => proptest::sample::select(vec![200, 409, 500, 503]).prop_map(Ended::Status),
        1 => unmade.prop_map(Ended::Unmade),
    ]
}

prop_compose! {
    fn any_policy()(
        (attempts, base) in (0_u32..5, 0_u64..100),
        words in proptest::sample::subsequence(Condition::ALL.to_vec(), 0..6),
        avoid_tried in any::<Option<bool>>(),
        (avoid_priorities, implied) in any::<(bool, bool)>(),
    ) -> RetryPolicy {
        let mut conditions = Conditions::default();
        words.into_iter().for_each(|word| conditions.insert(word));
        RetryPolicy {
            attempts,
            per_try_timeout: None,
            conditions,
            back_off: BackOff { base: Duration::from_millis(base) },
            avoid_tried,
            avoid_priorities,
            implied,
        }
    }
}

prop_compose! {
    fn any_world()(
        policy in proptest::option::weighted(0.8, any_policy()),
        replays in proptest::option::of(proptest::sample::select(vec![
            Replay::Off, Replay::Safe, Replay::Fsm,
        ])),
        (grpc, idempotent, sent, hashed) in any::<(bool, bool, bool, bool)>(),
        (rewinds, moves) in (prop::bool::weighted(0.8), prop::bool::weighted(0.8)),
        time_left in proptest::option::of((0_u64..300).prop_map(Duration::from_millis)),
        (later_tiers, budget) in (0_u32..4, 0_u32..6),
    ) -> World {
        World {
            policy, replays, grpc, idempotent, sent, rewinds, moves, hashed, time_left, later_tiers,
            budget: Cell::new(budget),
            answers: RefCell::default(),
        }
    }
}

/// A request that is taken through its attempts, with what every step must keep.
struct Walk {
    world: World,
    machine: Machine,
    rng: SmallRng,
    /// Tier of the last attempt.
    tier: u32,
    /// Retries that were decided on in this tier.
    retries: u32,
    /// Endpoints of the attempts in this tier, newest last; a tier has as many as `ENDPOINTS`.
    tried: Vec<u32>,
}

const ENDPOINTS: u32 = 3;

impl Walk {
    /// Takes one step after a result of this kind; returns whether it was the last.
    fn step(&mut self, ended: Ended) -> bool {
        let causes = ended.causes(&self.world);
        self.world.answers.borrow_mut().clear();
        let next = self.machine.next(causes, &self.world, &mut self.rng);
        if causes.are_none() {
            assert!(matches!(next.step, Step::Done));
        }
        if self.retries == 0 && causes.are_none() {
            // what `judge` relies on
            assert_eq!(words(&next), "done -");
        }
        self.check_counters(&next);
        match next.step {
            Step::Done => return true,
            Step::Retry(retry) => self.check_retry(&retry, ended),
            Step::Replay(cause) => self.check_replay(cause, ended),
        }
        false
    }

    fn check_retry(&mut self, retry: &Retry, ended: Ended) {
        let policy = self.world.policy.as_ref().expect("a policy for retries");
        self.retries += 1;
        assert_eq!(retry.number, self.retries);
        assert!(
            self.retries <= policy.attempts,
            "more than the policy allows"
        );
        assert!(self.tier == 0 || policy.implied, "only the default policy");
        if policy.implied {
            assert!(self.replay_cause(ended).is_none(), "the next tier is there");
        }
        assert!(self.world.rewinds, "sent again without its body");
        assert_eq!(*self.world.answers.borrow(), [true], "asked once, admitted");
        let limit = policy.back_off.limit(retry.number);
        assert!(retry.pause < limit || limit.is_zero(), "{:?}", retry.pause);
        let left = self.world.time_left.unwrap_or(Duration::MAX);
        assert!(retry.pause <= left, "{:?} of {left:?}", retry.pause);
        self.world.time_left = self.world.time_left.map(|left| left - retry.pause);
        let avoids = policy.avoid_tried.unwrap_or(!self.world.hashed);
        assert_eq!(retry.choice.avoid_priorities, policy.avoid_priorities);
        let fresh = (0..ENDPOINTS).find(|endpoint| !self.tried.contains(endpoint));
        let picked = fresh.filter(|_| retry.choice.avoid_tried).unwrap_or(0);
        assert_eq!(self.tried.contains(&picked), !avoids || fresh.is_none());
        self.tried.push(picked);
    }

    fn check_replay(&mut self, cause: ReplayCause, ended: Ended) {
        assert_eq!(Some(cause), self.replay_cause(ended));
        assert!(self.world.moves, "moved without its body");
        self.world.later_tiers -= 1;
        self.tier += 1;
        self.retries = 0;
        self.tried = vec![0];
    }

    /// Cause of a replay, if there is a tier left for one.
    fn replay_cause(&self, ended: Ended) -> Option<ReplayCause> {
        let (world, safe) = (&self.world, self.world.replays? == Replay::Safe);
        if world.replays == Some(Replay::Off) || world.later_tiers == 0 {
            return None;
        }
        match ended {
            Ended::GrpcUnavailable => (safe && world.grpc).then_some(ReplayCause::Status),
            Ended::Status(500) => (!safe || world.idempotent).then_some(ReplayCause::Status),
            Ended::Status(status) => (status > 500).then_some(ReplayCause::Status),
            Ended::Failed(kind) | Ended::Unmade(kind) => match kind {
                Kind::AttemptTimeout => (!safe || world.idempotent).then_some(ReplayCause::Timeout),
                Kind::ConnectFailed | Kind::ConnectTimeout | Kind::NoHealthyUpstream => {
                    Some(ReplayCause::Connect)
                }
                Kind::DownstreamBody
                | Kind::DownstreamTimeout
                | Kind::Overflow
                | Kind::RequestTimeout => None,
                _ => Some(ReplayCause::Reset),
            },
        }
    }

    /// Flags and counters agree with each other and with the step, and only the end of retries has some.
    fn check_counters(&self, next: &Next) {
        use Counter as C;
        let has = |counter: Counter| next.counters.contains(&counter);
        let refused = *self.world.answers.borrow() == [false];
        assert_eq!(has(C::RetriesOverflowed), refused);
        assert_eq!(has(C::OverflowRetries), refused);
        let expected = match (has(C::RetriesExhausted), refused) {
            (true, false) => ResponseFlags::URX,
            (false, true) => ResponseFlags::UO,
            (exhausted, _) => {
                assert!(!exhausted, "two ends");
                ResponseFlags::NONE
            }
        };
        assert_eq!(next.flags, expected);
        let unmovable = has(C::FailoverWithoutBody);
        assert!(!unmovable || matches!(next.step, Step::Done) && !self.world.moves);
        let results = [C::RetriesSucceeded, C::RetriesFailed];
        assert!(
            self.retries > 0 || !results.into_iter().any(has),
            "no retry, no result"
        );
        if matches!(next.step, Step::Retry(_)) {
            assert_eq!(next.counters.len(), 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_request_keeps_to_its_policy_and_tiers_and_ends(
        world in any_world(),
        (first, results) in (ended(), proptest::collection::vec(ended(), 1..8)),
        seed in any::<u64>(),
    ) {
        let attempts = world.policy.as_ref().map_or(0, |policy| policy.attempts);
        // even the default policy retries no more than this in each tier
        let steps_max = (attempts + 1) * (world.later_tiers + 1);
        let mut walk = Walk {
            world,
            machine: Machine::default(),
            rng: SmallRng::seed_from_u64(seed),
            tier: 0,
            retries: 0,
            tried: vec![0],
        };
        let mut results = results.into_iter().cycle();
        let mut ended = match first {
            Ended::Unmade(kind) => Ended::Failed(kind),
            made => made,
        };
        let mut steps = 0;
        while !walk.step(ended) {
            steps += 1;
            prop_assert!(steps < steps_max, "attempts without end");
            ended = results.next().unwrap_or(FAILED);
        }
    }
}
