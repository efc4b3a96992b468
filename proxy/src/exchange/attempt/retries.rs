//! The attempts of one request: a plain loop around [`attempt`].
//!
//! `filter::retry` says what is tried again and how long the pauses are, `cluster` whether there is room for one more
//! retry; here they are put in order. A response that was passed on, a timeout of the request, and a body whose
//! beginning is gone end it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use hyper::Response;
use hyper::body::Body;
use smallvec::SmallVec;

use crate::balance::EndpointIdx;
use crate::cluster::{Admission, Avoid};
use crate::error::{Error, Kind};
use crate::exchange::attempt::failover;
use crate::exchange::attempt::send;
use crate::exchange::forward::{Forward, ForwardedRequest};
use crate::exchange::message::headers::TryHeaders;
use crate::exchange::record::Record;
use crate::exchange::record::health;
use crate::exchange::select::target::{EndpointRef, PickedEndpoint};
use crate::exchange::worker::Worker;
use crate::filter::RetryPolicy;
use crate::filter::retry::Reason;
use crate::pool;
use crate::registry::ClusterId;
use crate::telemetry::{Counter, ResponseFlags};

/// Most bytes that are read of a response that is not passed on, so that its connection can be used again. Nothing is
/// waited for: what is not there by then costs the connection.
const DRAIN_BYTES_MAX: usize = 64 * 1024;

/// How a try ended.
pub(in crate::exchange) type Tried = Result<Response<pool::Incoming>, Error>;

/// Sends the request, more than once if its policy says so.
///
/// # Errors
///
/// Why the last try got no response.
pub async fn run(
    forward: &Forward<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
) -> Tried {
    let tried = once(forward, forwarded, record.is_grpc()).await;
    match forwarded.judge(forward, record, tried) {
        Verdict::Done(tried) => tried,
        // boxed: requests that are tried once need not carry what more attempts take
        Verdict::Again(failed) => Box::pin(more(forward, forwarded, record, *failed)).await,
    }
}

/// What a first try leads to.
enum Verdict {
    /// Another try, if there may be one.
    Again(Box<Tried>),
    /// The end.
    Done(Tried),
}

/// After a first attempt that failed: the retries of its rule, then the clusters of the next tiers.
async fn more(
    forward: &Forward<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    first: Tried,
) -> Tried {
    let tried = match forwarded.wants(forward, &first, record) {
        Some(reason) => again(forward, forwarded, record, (first, reason)).await,
        None => first,
    };
    match forwarded.fails_over(&tried, record) {
        Some(cause) => failover::run(forward, forwarded, record, (tried, cause)).await,
        None => tried,
    }
}

/// One try, whose outcome its endpoint is judged by.
pub(in crate::exchange) async fn once(
    forward: &Forward<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    grpc: bool,
) -> Tried {
    let tried = within_times(forward, forwarded).await;
    if let Some(outcome) = health::outcome(&tried, grpc) {
        forwarded.picked.report(outcome);
    }
    tried
}

/// One try, within the times of the request.
async fn within_times(forward: &Forward<'_>, forwarded: &mut ForwardedRequest<'_>) -> Tried {
    let connected = Cell::new(false);
    let ForwardedRequest {
        picked,
        outgoing,
        deadline,
        ..
    } = forwarded;
    let mut attempt = pin!(send::run(forward, picked, outgoing, &connected));
    let within = poll_fn(|cx| match (attempt.as_mut().poll(cx), deadline.as_mut()) {
        (Poll::Pending, Some(deadline)) => deadline
            .poll(cx, connected.get())
            .map(|kind| Err(Error::new(kind))),
        (polled, _) => polled,
    });
    within.await
}

impl ForwardedRequest<'_> {
    /// The policy that counts for this request.
    fn policy<'a>(&'a self, forward: &'a Forward<'_>) -> Option<&'a RetryPolicy> {
        let own = self.policy.as_deref();
        own.or(forward.found.route().filters.retry.as_deref())
    }

    fn judge(&self, forward: &Forward<'_>, record: &mut Record, tried: Tried) -> Verdict {
        record.try_got(&tried);
        let retries = self.wants(forward, &tried, record).is_some();
        if retries || self.fails_over(&tried, record).is_some() {
            Verdict::Again(Box::new(tried))
        } else {
            Verdict::Done(tried)
        }
    }

    /// Why there should be another try in a tier to which the request came from an earlier one, if there should: its
    /// rule says nothing about retries, so that none was made yet of what the next tier is not asked for.
    pub(in crate::exchange) fn wants_here(
        &self,
        forward: &Forward<'_>,
        tried: &Tried,
        record: &Record,
    ) -> Option<Reason> {
        let implied = self.policy(forward).is_some_and(|policy| policy.implied);
        self.wants(forward, tried, record).filter(|_| implied)
    }

    /// Why there should be another try, if there should.
    fn wants(&self, forward: &Forward<'_>, tried: &Tried, record: &Record) -> Option<Reason> {
        let policy = self.policy(forward)?;
        let conditions = &policy.conditions;
        let reason = match tried {
            Ok(response) => conditions.on_response(response.status(), response.headers()),
            Err(error) => conditions.on_failure(error.kind(), self.outgoing.is_sent()),
        };
        // what a rule does that says nothing about it is left to the next tier, where that is asked
        reason.filter(|_| !policy.implied || self.fails_over(tried, record).is_none())
    }
}

/// The counter of the result of the last retry.
fn counter_of_last(tried: &Tried) -> Counter {
    match tried {
        Ok(_) => Counter::RetriesSucceeded,
        Err(_) => Counter::RetriesFailed,
    }
}

/// All retries within a tier.
pub(in crate::exchange) async fn again(
    forward: &Forward<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    first: (Tried, Reason),
) -> Tried {
    let worker = forward.worker;
    let (mut tried, mut reason) = first;
    let mut had: SmallVec<[EndpointRef; 4]> = SmallVec::new();
    let mut retry = 0;
    loop {
        retry += 1;
        had.push(forwarded.picked.endpoint_ref());
        let Some(next) = next(forward, forwarded, retry) else {
            record.also(ResponseFlags::URX);
            worker.count(Counter::RetriesExhausted);
            return tried;
        };
        // held until the try is over
        let cluster = forwarded.picked.cluster();
        let now = || cluster.state.journal.now();
        let _permit = match cluster.admit_retry(reason.is_unprocessed(), now) {
            Admission::Admitted(permit) => permit,
            Admission::Refused => {
                record.also(ResponseFlags::UO);
                worker.count(Counter::RetriesOverflowed);
                worker.count(Counter::OverflowRetries);
                return tried;
            }
        };
        if !forwarded.outgoing.can_go_again() {
            worker.count(Counter::RetriesWithoutBody);
            return tried;
        }
        tracing::debug!(
            cluster = &*forwarded.destination.name,
            retry,
            ?reason,
            "trying again"
        );
        if let Ok(response) = tried {
            drain(response).await;
        }
        if let Err(kind) = pause(forwarded, next.pause).await {
            return Err(Error::new(kind));
        }
        let Some(picked) = forwarded.picked.another(worker, &had, &next) else {
            return Err(Error::new(Kind::NoHealthyUpstream));
        };
        record.tries_again(picked.clone());
        forwarded.picked = picked;
        if !forwarded.go_again(forward, record.tries(), record.is_grpc()) {
            return Err(Error::new(Kind::DownstreamBody));
        }
        worker.count(counter(reason));
        tried = once(forward, forwarded, record.is_grpc()).await;
        record.try_got(&tried);
        match forwarded.wants(forward, &tried, record) {
            Some(why) => reason = why,
            None => {
                worker.count(counter_of_last(&tried));
                return tried;
            }
        }
    }
}

/// What the policy says about a retry.
struct Next {
    pause: std::time::Duration,
    avoid_tried: bool,
    avoid_priorities: bool,
}

/// The retry of that number, if there is to be one.
fn next(forward: &Forward<'_>, forwarded: &ForwardedRequest<'_>, retry: u32) -> Option<Next> {
    let policy = forwarded.policy(forward)?;
    (retry <= policy.attempts).then(|| Next {
        pause: forward
            .worker
            .random(|rng| policy.back_off.draw(retry, rng)),
        // where several clusters serve, a key that leads to one that is gone would lead there again
        avoid_tried: policy.avoid_tried.unwrap_or(
            forwarded.picked.cluster().hash_key().is_none() || forwarded.picked.is_member(),
        ),
        avoid_priorities: policy.avoid_priorities,
    })
}

impl ForwardedRequest<'_> {
    /// Makes the request ready for the try of that number.
    pub(in crate::exchange) fn go_again(
        &mut self,
        forward: &Forward<'_>,
        number: u32,
        grpc: bool,
    ) -> bool {
        if let Some(deadline) = &mut self.deadline {
            deadline.next_try();
        }
        let time = self.deadline.as_ref().and_then(|deadline| deadline.left());
        let told = TryHeaders { number, time, grpc };
        let hop = self.picked.endpoint().hop.as_ref();
        self.outgoing.go_again(forward, hop, &told)
    }
}

impl PickedEndpoint {
    /// Another endpoint for the request, among those that may be picked now; preferably none of the endpoints that were tried,
    /// nor of a priority to leave out. Where several members serve it, preferably one of those that have an endpoint
    /// that was not tried.
    fn another(&self, worker: &Worker, tried: &[EndpointRef], next: &Next) -> Option<Self> {
        let picked = match next.avoid_tried && self.is_member() {
            true => self.of_same_tier(worker, tried)?,
            false => self.clone(),
        };
        let cluster = picked.cluster();
        let here = endpoints_of(cluster.id(), tried);
        let left_out = match next.avoid_priorities {
            true => cluster.left_out(&here),
            false => SmallVec::new(),
        };
        let fits = match next.avoid_tried {
            true => !here.contains(&picked.index()),
            false => picked.is_kept(),
        };
        if fits && !left_out.contains(&cluster.priority(picked.index())) {
            return Some(picked);
        }
        let avoid = Avoid {
            endpoints: if next.avoid_tried { &here } else { &[] },
            priorities: &left_out,
        };
        picked.again(worker, &avoid)
    }
}

/// Those of the tried endpoints that are of this cluster.
pub(in crate::exchange) fn endpoints_of(
    cluster: ClusterId,
    tried: &[EndpointRef],
) -> SmallVec<[EndpointIdx; 4]> {
    let tried = tried
        .iter()
        .filter(|endpoint_ref| endpoint_ref.cluster == cluster);
    tried.map(|endpoint_ref| endpoint_ref.endpoint).collect()
}

/// Waits; ends early with the time of the request.
async fn pause(
    forwarded: &mut ForwardedRequest<'_>,
    time: std::time::Duration,
) -> Result<(), Kind> {
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

/// Reads the received part of a response that is not passed on; then the connection is free, or ends.
pub(in crate::exchange) async fn drain(mut response: Response<pool::Incoming>) {
    let mut bytes = 0;
    let body = response.body_mut();
    poll_fn(|cx| {
        while bytes <= DRAIN_BYTES_MAX && !body.is_end_stream() {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    bytes += frame.data_ref().map_or(0, |data| data.len())
                }
                _ => break,
            }
        }
        Poll::Ready(())
    })
    .await;
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
