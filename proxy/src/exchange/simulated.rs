//! Request without bytes: its picks, retries and failover, for `simulate`, which has the clock and the endpoints.
//!
//! Each decision is that of the functions which real requests call: `select` picks, `attempt::machine` decides what
//! follows an attempt, and outlier detection gets the outcomes.

use std::time::Duration;

use hyper::{Response, StatusCode};
use tokio::time::Instant;

use super::attempt::deadline::Times;
use super::attempt::machine::{Causes, Facts, Machine, Retry, Step};
use super::attempt::{facts, failover, policy};
use super::message::local_reply::LocalReply;
use super::record::health;
use super::select::find_route::Found;
use super::select::target::{PickedEndpoint, Target, Tried};
use super::worker::Worker;
use crate::identity::Replay;
use crate::runtime::clock;
use crate::telemetry::Counter;
use traffic::cluster::Admission;
use traffic::error::{Error, Kind};
use traffic::filter::RetryPolicy;
use traffic::filter::retry::Reason;

/// Result of an attempt: a status, or why there is none.
pub type Attempted = Result<u16, Kind>;

/// Request of a simulation, from its first pick until its last attempt has ended.
pub struct SimulatedRequest {
    found: Found,
    picked: PickedEndpoint,
    machine: Machine,
    tried: Tried,
    /// Retry that is about to be made, or is being made.
    retry: Option<Retry>,
    is_idempotent: bool,
    /// Whether an endpoint has got a byte of it.
    is_sent: bool,
    /// Time of the timeout of the request.
    deadline: Option<Instant>,
    /// Number of times that the retry limit has refused a retry.
    pub retries_refused: u32,
}

/// Step that follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum After {
    /// The result goes to the client.
    End(Attempted),
    /// One more attempt now, at [`SimulatedRequest::picked`].
    Send,
    /// A retry after this time, which begins with [`SimulatedRequest::resume`].
    Wait(Duration),
}

/// Status of the reply to a request whose last attempt got no response.
pub fn reply_status(kind: Kind) -> u16 {
    LocalReply::from_kind(kind).status.as_u16()
}

impl SimulatedRequest {
    /// Draws the destination of a request of this rule, and picks an endpoint.
    ///
    /// # Errors
    ///
    /// Reason why there is no endpoint.
    pub fn begin(rule: &Found, is_idempotent: bool, worker: &Worker) -> Result<Self, Kind> {
        let mut found = rule.for_another();
        let split = found.drawn(worker).route().split.as_ref();
        let split = split.ok_or(Kind::NoCluster)?;
        let destination = worker.random(|rng| split.pick(rng));
        let snapshot = worker.snapshot();
        let target = Target::find(&snapshot, destination.cluster);
        let target = target.ok_or_else(|| destination.missing_kind())?;
        let picked = target.pick(worker);
        let picked = picked.ok_or_else(|| target.cluster().no_endpoint_kind())?;
        picked.enter();
        Ok(Self {
            found,
            picked,
            machine: Machine::default(),
            tried: Tried::new(),
            retry: None,
            is_idempotent,
            is_sent: false,
            deadline: None,
            retries_refused: 0,
        })
    }

    /// Endpoint of the current attempt.
    pub fn picked(&self) -> &PickedEndpoint {
        &self.picked
    }

    /// Timeouts of the request; that of all attempts begins now.
    pub fn start_times(&mut self, worker: &Worker) -> Times {
        let filters = &self.found.route().filters;
        let per_try = filters.retry.as_deref();
        let per_try = per_try.and_then(|policy| policy.per_try_timeout);
        let most = worker.setting(|all| all.request_time_max);
        let times = policy::times(filters, filters.timeout, per_try, most);
        self.deadline = times.request.map(|time| clock::now() + time);
        times
    }

    /// Records that bytes go to the endpoint.
    pub fn send(&mut self) {
        self.is_sent = true;
    }

    /// Ends an attempt: reports its outcome to outlier detection, and decides what follows.
    pub fn ended(&mut self, attempted: Attempted, worker: &Worker) -> After {
        let result = as_result(attempted);
        if let Some(outcome) = health::outcome(&result, false) {
            self.picked.report(outcome);
        }
        let causes = Causes::of(&result, &self.facts(worker));
        if causes.are_none() && self.retry.is_none() {
            return self.end(attempted);
        }
        self.follow(attempted, causes, worker)
    }

    /// Begins a retry after its pause.
    pub fn resume(&mut self, worker: &Worker) -> After {
        let choice = self.retry.as_ref().map(|retry| retry.choice);
        let is_late = self.deadline.is_some_and(|end| clock::now() >= end);
        let kind =
            match choice.and_then(|choice| self.picked.for_retry(worker, &self.tried, choice)) {
                _ if is_late => Kind::RequestTimeout,
                None => Kind::NoHealthyUpstream,
                Some(picked) => {
                    self.go_to(picked);
                    return After::Send;
                }
            };
        let causes = Causes::of(&as_result(Err(kind)), &self.facts(worker));
        self.follow(Err(kind), causes.of_unmade(), worker)
    }

    /// Carries out the decision of the machine, as `attempt::retries` does.
    fn follow(&mut self, attempted: Attempted, causes: Causes, worker: &Worker) -> After {
        self.retry = None;
        let mut machine = std::mem::take(&mut self.machine);
        let facts = self.facts(worker);
        let next = worker.random(|rng| machine.next(causes, &facts, rng));
        self.machine = machine;
        let refused = next.counters.contains(&Counter::RetriesOverflowed);
        self.retries_refused += u32::from(refused);
        match next.step {
            Step::Done => self.end(attempted),
            Step::Replay(cause) => match failover::pick(&self.picked, cause, worker) {
                None => self.end(attempted),
                Some(picked) => {
                    self.tried.clear();
                    self.go_to(picked);
                    After::Send
                }
            },
            Step::Retry(retry) => {
                self.tried.push(self.picked.endpoint_ref());
                let pause = retry.pause;
                self.retry = Some(retry);
                After::Wait(pause)
            }
        }
    }

    fn go_to(&mut self, picked: PickedEndpoint) {
        picked.enter();
        self.picked.endpoint().state.leave();
        self.picked = picked;
    }

    fn end(&mut self, attempted: Attempted) -> After {
        self.picked.endpoint().state.leave();
        After::End(attempted)
    }

    fn facts<'a>(&'a self, worker: &'a Worker) -> SimulatedFacts<'a> {
        SimulatedFacts {
            request: self,
            worker,
        }
    }
}

/// Response without fields or body, or the error.
fn as_result(attempted: Attempted) -> Result<Response<()>, Error> {
    let status = attempted.map_err(Error::new)?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    Ok(response)
}

/// Facts about a request of a simulation: a request of HTTP without a body.
struct SimulatedFacts<'a> {
    request: &'a SimulatedRequest,
    worker: &'a Worker,
}

impl Facts for SimulatedFacts<'_> {
    fn policy(&self) -> Option<&RetryPolicy> {
        self.request.found.route().filters.retry.as_deref()
    }

    fn replays(&self) -> Option<Replay> {
        Some(self.request.picked.federation()?.replay)
    }

    fn has_next_tier(&self) -> bool {
        self.request.picked.has_next_tier(self.worker)
    }

    fn is_grpc(&self) -> bool {
        false
    }

    fn is_idempotent(&self) -> bool {
        self.request.is_idempotent
    }

    fn is_sent(&self) -> bool {
        self.request.is_sent
    }

    fn can_rewind(&self) -> bool {
        true
    }

    fn can_move(&self) -> bool {
        true
    }

    fn is_hashed(&self) -> bool {
        facts::is_hashed(&self.request.picked, self.request.found.route())
    }

    fn time_left(&self) -> Option<Duration> {
        let end = self.request.deadline?;
        Some(end.saturating_duration_since(clock::now()))
    }

    fn admit(&self, reason: Reason) -> Admission {
        facts::admit(&self.request.picked, reason)
    }
}
