//! The retries of a request in one tier of clusters.
//!
//! `filter::retry` says what is retried and how long the pauses are, `cluster` whether the retry limit admits one more.
//! A response that was passed on, a timeout of the request, and a body whose beginning is gone end the retries.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::request::{AttemptResult, ForwardedRequest, drain};
use crate::cluster::Admission;
use crate::error::{Error, Kind};
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::pick::RetryChoice;
use crate::exchange::select::target::Tried;
use crate::filter::retry::Reason;
use crate::runtime::clock;
use crate::telemetry::{Counter, ResponseFlags};

/// Retries the request after a first attempt, as often as its policy says.
///
/// # Errors
///
/// Why the last attempt got no response.
pub(super) async fn run(
    context: &RequestContext<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    first: (AttemptResult, Reason),
) -> AttemptResult {
    let worker = context.worker;
    let (mut attempted, mut reason) = first;
    let mut tried = Tried::new();
    let mut number = 0;
    loop {
        number += 1;
        tried.push(forwarded.picked.endpoint_ref());
        let Some(retry) = next(context, forwarded, number) else {
            record.also(ResponseFlags::URX);
            worker.count(Counter::RetriesExhausted);
            return attempted;
        };
        // held until the attempt is over
        let cluster = forwarded.picked.cluster();
        let now = || cluster.state.journal.at(clock::now());
        let _permit = match cluster.admit_retry(reason.is_unprocessed(), now) {
            Admission::Admitted(permit) => permit,
            Admission::Refused => {
                record.also(ResponseFlags::UO);
                worker.count(Counter::RetriesOverflowed);
                worker.count(Counter::OverflowRetries);
                return attempted;
            }
        };
        if !forwarded.outgoing.can_rewind() {
            worker.count(Counter::RetriesWithoutBody);
            return attempted;
        }
        tracing::debug!(
            cluster = &*forwarded.destination.name,
            retry = number,
            ?reason,
            "retrying"
        );
        if let Ok(response) = attempted {
            drain(response).await;
        }
        if let Err(kind) = pause(forwarded, retry.pause).await {
            return Err(Error::new(kind));
        }
        let Some(picked) = forwarded.picked.for_retry(worker, &tried, retry.choice) else {
            return Err(Error::new(Kind::NoHealthyUpstream));
        };
        if !forwarded.redirect(context, picked, record) {
            return Err(Error::new(Kind::DownstreamBody));
        }
        worker.count(counter(reason));
        attempted = forwarded.attempt(context, record, Some(&tried)).await;
        record.attempt_ended(&attempted);
        match forwarded.retry_reason(context, &attempted, record) {
            Some(next_reason) => reason = next_reason,
            None => {
                worker.count(counter_of_last(&attempted));
                return attempted;
            }
        }
    }
}

/// A retry that the policy allows.
struct Retry {
    pause: Duration,
    choice: RetryChoice,
}

/// The retry of this number, from 1; none if the policy allows fewer.
fn next(
    context: &RequestContext<'_>,
    forwarded: &ForwardedRequest<'_>,
    number: u32,
) -> Option<Retry> {
    let policy = forwarded.policy(context)?;
    let picked = &forwarded.picked;
    let split = context.found.route().split.as_ref();
    let is_split = split.is_some_and(|split| split.entries().nth(1).is_some());
    // a hash leads to the same endpoint again; that of a federated service may be in a cluster that is gone, and that of a
    // rule with several destinations does not count, as in Istio
    let is_hashed = picked.cluster().hash_key().is_some() && !picked.is_member() && !is_split;
    (number <= policy.attempts).then(|| Retry {
        pause: context
            .worker
            .random(|rng| policy.back_off.draw(number, rng)),
        choice: RetryChoice {
            avoid_tried: policy.avoid_tried.unwrap_or(!is_hashed),
            avoid_priorities: policy.avoid_priorities,
        },
    })
}

/// Waits; ends early with the timeout of the request.
async fn pause(forwarded: &mut ForwardedRequest<'_>, time: Duration) -> Result<(), Kind> {
    let mut sleep = pin!(tokio::time::sleep(time));
    poll_fn(|cx| {
        if let Some(deadline) = &mut forwarded.deadline
            && let Poll::Ready(kind) = deadline.poll(cx, false)
        {
            return Poll::Ready(Err(kind));
        }
        sleep.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// The counter of the result of the last retry.
fn counter_of_last(attempted: &AttemptResult) -> Counter {
    match attempted {
        Ok(_) => Counter::RetriesSucceeded,
        Err(_) => Counter::RetriesFailed,
    }
}

fn counter(reason: Reason) -> Counter {
    match reason {
        Reason::ConnectFailure => Counter::RetryConnectFailure,
        Reason::GrpcStatus => Counter::RetryGrpcStatus,
        Reason::Header => Counter::RetryHeader,
        Reason::RefusedStream => Counter::RetryRefusedStream,
        Reason::Reset => Counter::RetryReset,
        Reason::Status => Counter::RetryStatus,
        Reason::Timeout => Counter::RetryTimeout,
    }
}
