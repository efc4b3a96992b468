//! Decides what follows an attempt: a retry in its tier of clusters, a replay in the next tier, or the end; pure.
//!
//! The retries of the request's policy come first, and stay in the tier of the first attempt. Replays follow: one attempt
//! in each further tier, in order. The default policy of the mesh leaves a request to the next tier as long as there is
//! one; its retries are made in the last tier. `retries` carries out the decisions, and has the clock and the sockets.

use std::time::Duration;

use hyper::Response;
use rand::Rng;
use smallvec::SmallVec;

use super::failover_cause;
use crate::exchange::select::pick::RetryChoice;
use crate::identity::Replay;
use crate::telemetry::{Counter, ReplayCause, ResponseFlags};
use traffic::cluster::Admission;
use traffic::error::Error;
use traffic::filter::RetryPolicy;
use traffic::filter::retry::Reason;
use traffic::registry::RetryPermit;

/// Facts about a request and its cluster, as they are after an attempt.
pub(in crate::exchange) trait Facts {
    /// Retry policy of the request.
    fn policy(&self) -> Option<&RetryPolicy>;

    /// Outcomes that are replayed in the next tier; `None` if the service has no tiers.
    fn replays(&self) -> Option<Replay>;

    /// Whether a later tier has an endpoint that may be used.
    fn has_next_tier(&self) -> bool;

    /// Whether the request is of gRPC.
    fn is_grpc(&self) -> bool;

    /// Whether the method is idempotent.
    fn is_idempotent(&self) -> bool;

    /// Whether any byte of the request went to an endpoint, in any attempt.
    fn is_sent(&self) -> bool;

    /// Whether the request can be sent again in its tier.
    fn can_rewind(&self) -> bool;

    /// Whether the request can be sent to another tier.
    fn can_move(&self) -> bool;

    /// Whether a hash of the request chooses its endpoint.
    fn is_hashed(&self) -> bool;

    /// Time until the timeout of the request, if that is running.
    fn time_left(&self) -> Option<Duration>;

    /// Asks the retry limit of the cluster for one more retry.
    fn admit(&self, reason: Reason) -> Admission;
}

/// Causes for a further attempt in the result of the last one.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange) struct Causes {
    retry: Option<Reason>,
    replay: Option<ReplayCause>,
    /// Counter of the result, if that is the last retry's.
    result: Option<Counter>,
}

impl Causes {
    /// Reads the causes from the result of an attempt.
    pub(in crate::exchange) fn of<B>(
        attempted: &Result<Response<B>, Error>,
        facts: &impl Facts,
    ) -> Self {
        let replay = facts.replays().and_then(|replays| {
            let (idempotent, grpc) = (facts.is_idempotent(), facts.is_grpc());
            failover_cause::cause(attempted.into(), idempotent, grpc, replays)
        });
        let replay = replay.filter(|_| facts.has_next_tier());
        // the default policy leaves the request to the next tier
        let policy = facts
            .policy()
            .filter(|policy| !policy.implied || replay.is_none());
        let conditions = policy.map(|policy| &policy.conditions);
        let (retry, result) = match attempted {
            Ok(response) => (
                conditions.and_then(|on| on.on_response(response.status(), response.headers())),
                Counter::RetriesSucceeded,
            ),
            Err(error) => (
                conditions.and_then(|on| on.on_failure(error.kind(), facts.is_sent())),
                Counter::RetriesFailed,
            ),
        };
        Self {
            retry,
            replay,
            result: Some(result),
        }
    }

    /// Causes in the error that kept the next attempt from being made.
    #[must_use]
    pub(in crate::exchange) fn of_unmade(self) -> Self {
        Self {
            retry: None,
            result: None,
            ..self
        }
    }

    /// Whether the result goes to the client.
    pub(in crate::exchange) fn are_none(self) -> bool {
        self.retry.is_none() && self.replay.is_none()
    }
}

/// Progress of a request through its retries and tiers.
#[derive(Debug, Default)]
pub(in crate::exchange) struct Machine {
    /// Retries in this tier.
    retries: u32,
    /// Whether the request has left the tier of its first attempt.
    replayed: bool,
}

/// Decision about what follows an attempt, with the flags and counters of an end of retries.
#[derive(Debug)]
pub(in crate::exchange) struct Next {
    pub(in crate::exchange) step: Step,
    /// Flags of the request.
    pub(in crate::exchange) flags: ResponseFlags,
    /// Counters to increment.
    pub(in crate::exchange) counters: SmallVec<[Counter; 3]>,
}

/// Step that follows an attempt.
#[derive(Debug)]
pub(in crate::exchange) enum Step {
    /// The result of the attempt goes to the client.
    Done,
    /// One attempt in the next tier.
    Replay(ReplayCause),
    /// One more attempt in the same tier.
    Retry(Retry),
}

/// A retry that may be made.
#[derive(Debug)]
pub(in crate::exchange) struct Retry {
    /// Number of the retry in its tier, from 1.
    pub(in crate::exchange) number: u32,
    pub(in crate::exchange) reason: Reason,
    /// Pause before the retry. It ends with the timeout of the request at the latest.
    pub(in crate::exchange) pause: Duration,
    pub(in crate::exchange) choice: RetryChoice,
    /// Held until the attempt is over.
    _permit: Option<RetryPermit>,
}

impl Machine {
    /// Decides what follows an attempt.
    pub(in crate::exchange) fn next(
        &mut self,
        causes: Causes,
        facts: &impl Facts,
        rng: &mut impl Rng,
    ) -> Next {
        let mut next = Next {
            step: Step::Done,
            flags: ResponseFlags::NONE,
            counters: SmallVec::new(),
        };
        let policy = facts
            .policy()
            .filter(|policy| !self.replayed || policy.implied);
        match policy.zip(causes.retry) {
            Some((policy, reason)) => match self.retry(policy, reason, facts, rng) {
                Ok(retry) => {
                    next.step = Step::Retry(retry);
                    return next;
                }
                Err((flags, counters)) => {
                    next.flags = flags;
                    next.counters.extend_from_slice(counters);
                }
            },
            None if self.retries > 0 => next.counters.extend(causes.result),
            None => {}
        }
        match causes.replay {
            Some(cause) if facts.can_move() => {
                (self.retries, self.replayed) = (0, true);
                next.step = Step::Replay(cause);
            }
            Some(_) => next.counters.push(Counter::FailoverWithoutBody),
            None => {}
        }
        next
    }

    /// Begins one more retry in this tier.
    ///
    /// # Errors
    ///
    /// Flags and counters of the end of the retries, if no more may be made.
    fn retry(
        &mut self,
        policy: &RetryPolicy,
        reason: Reason,
        facts: &impl Facts,
        rng: &mut impl Rng,
    ) -> Result<Retry, (ResponseFlags, &'static [Counter])> {
        if self.retries >= policy.attempts {
            return Err((ResponseFlags::URX, &[Counter::RetriesExhausted]));
        }
        let Admission::Admitted(permit) = facts.admit(reason) else {
            let counters = &[Counter::RetriesOverflowed, Counter::OverflowRetries];
            return Err((ResponseFlags::UO, counters));
        };
        if !facts.can_rewind() {
            return Err((ResponseFlags::NONE, &[Counter::RetriesWithoutBody]));
        }
        self.retries += 1;
        let pause = policy.back_off.draw(self.retries, rng);
        Ok(Retry {
            number: self.retries,
            reason,
            pause: facts.time_left().map_or(pause, |left| pause.min(left)),
            choice: RetryChoice {
                avoid_tried: policy.avoid_tried.unwrap_or(!facts.is_hashed()),
                avoid_priorities: policy.avoid_priorities,
            },
            _permit: permit,
        })
    }
}

#[cfg(test)]
mod tests;
