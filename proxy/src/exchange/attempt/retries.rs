//! Carries out the decisions of the retry machine: drains responses, waits, picks endpoints, sends, and counts.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::facts::RequestFacts;
use super::failover;
use super::machine::{Causes, Machine, Retry, Step};
use super::request::{AttemptResult, ForwardedRequest, drain};
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::target::{PickedEndpoint, Tried};
use crate::exchange::worker::Worker;
use crate::telemetry::Counter;
use traffic::error::{Error, Kind};
use traffic::filter::retry::Reason;

/// A first attempt after which others may follow.
pub(super) struct FirstAttempt {
    pub(super) result: AttemptResult,
    /// Reasons for further attempts.
    pub(super) causes: Causes,
}

/// Makes the attempts that follow a first one.
///
/// # Errors
///
/// Reason why the last attempt got no response.
pub(super) async fn run(
    context: &RequestContext<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    first: FirstAttempt,
) -> AttemptResult {
    let FirstAttempt {
        result: mut attempted,
        mut causes,
    } = first;
    let worker = context.worker;
    let mut machine = Machine::default();
    let mut tried = Tried::new();
    loop {
        let facts = RequestFacts {
            context,
            forwarded,
            record,
        };
        // held until the attempt is over: the step of a retry has its permit
        let next = worker.random(|rng| machine.next(causes, &facts, rng));
        record.add_flags(next.flags);
        let counted = next.counters.iter();
        counted.for_each(|one| count(worker, &forwarded.picked, *one));
        let begun = match &next.step {
            Step::Done => return attempted,
            Step::Replay(cause) => {
                let Some(picked) = failover::pick(&forwarded.picked, *cause, worker) else {
                    return attempted;
                };
                tried.clear();
                drain(attempted).await;
                record.record_cause(cause.as_str(), true);
                forwarded.redirect(context, picked, record)
            }
            Step::Retry(retry) => {
                tracing::debug!(
                    cluster = &*forwarded.destination.name,
                    retry = retry.number,
                    reason = ?retry.reason,
                    "retrying"
                );
                tried.push(forwarded.picked.endpoint_ref());
                drain(attempted).await;
                begin(context, forwarded, record, retry, &tried).await
            }
        };
        attempted = match begun {
            Ok(()) => forwarded.attempt(context, record, Some(&tried)).await,
            Err(kind) => Err(Error::new(kind)),
        };
        if begun.is_ok() {
            record.record_attempt_result(&attempted);
        }
        let facts = RequestFacts {
            context,
            forwarded,
            record,
        };
        causes = Causes::of(&attempted, &facts);
        if begun.is_err() {
            causes = causes.of_unmade();
        }
    }
}

/// Waits out the pause of a retry, and directs the request to an endpoint.
///
/// # Errors
///
/// Reason why the retry cannot be made.
async fn begin(
    context: &RequestContext<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    retry: &Retry,
    tried: &Tried,
) -> Result<(), Kind> {
    pause(forwarded, retry.pause).await?;
    let counter = counter(retry.reason);
    if let Some((_, reason)) = counter.series().label {
        record.record_cause(reason, false);
    }
    let picked = (forwarded.picked).for_retry(context.worker, tried, retry.choice);
    forwarded.redirect(context, picked.ok_or(Kind::NoHealthyUpstream)?, record)?;
    count(context.worker, &forwarded.picked, counter);
    Ok(())
}

/// Counts for all destinations, and for that of an endpoint.
fn count(worker: &Worker, picked: &PickedEndpoint, counter: Counter) {
    worker.count(counter);
    if let Some(kind) = counter.of_destination() {
        picked.cluster().state.events.add(kind, 1);
    }
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
