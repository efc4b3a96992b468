//! A request that its tier of clusters has failed goes to the next tier, if it may.
//!
//! Comes after the retries of its rule, which stay in their tier. One try for each tier, in their order, but for the
//! last one: there come the retries of a rule that says nothing about them. The path and what tells of the try are
//! rebuilt from the request as it came.

use hyper::StatusCode;

use crate::error::{Error, Kind};
use crate::exchange::attempt::retries::{self, Tried, drain};
use crate::exchange::forward::{Forward, ForwardedRequest};
use crate::exchange::record::Record;
use crate::identity::Replay;
use crate::telemetry::{Counter, ReplayCause as Cause};

/// What an outcome means, for a request whose method is idempotent or not.
fn cause(tried: Outcome, idempotent: bool, grpc: bool, replay: Replay) -> Option<Cause> {
    match (replay, tried) {
        (Replay::Off, _) => None,
        (Replay::Fsm, Outcome::Status(status, _)) => (status > 499).then_some(Cause::Status),
        (Replay::Safe, Outcome::Status(status, unavailable)) => match status {
            502..=504 => Some(Cause::Status),
            500..=599 if idempotent => Some(Cause::Status),
            _ if grpc && unavailable => Some(Cause::Status),
            _ => None,
        },
        (_, Outcome::Failed(kind)) => match kind {
            // a retry found no endpoint left in its tier: the attempts before it ejected the last one
            Kind::NoHealthyUpstream => Some(Cause::Connect),
            Kind::ConnectFailed | Kind::ConnectTimeout => Some(Cause::Connect),
            Kind::UpstreamClosed
            | Kind::UpstreamProtocol
            | Kind::UpstreamRefusedStream
            | Kind::UpstreamReset => Some(Cause::Reset),
            // it may be at work still
            Kind::TryTimeout if idempotent || replay == Replay::Fsm => Some(Cause::Timeout),
            _ => None,
        },
    }
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Failed(Kind),
    /// A response, and whether it says in its head that the gRPC service is unavailable.
    Status(u16, bool),
}

impl From<&Tried> for Outcome {
    fn from(tried: &Tried) -> Self {
        match tried {
            Ok(response) => {
                let status: StatusCode = response.status();
                let told = response.headers().get("grpc-status");
                let unavailable = told.is_some_and(|told| told == "14");
                Outcome::Status(status.as_u16(), unavailable)
            }
            Err(error) => Outcome::Failed(error.kind()),
        }
    }
}

impl ForwardedRequest<'_> {
    /// Why the request is to go to the next tier, if it is.
    pub(in crate::exchange) fn fails_over(&self, tried: &Tried, record: &Record) -> Option<Cause> {
        let federation = self.picked.federation()?;
        let idempotent = self.outgoing.is_idempotent();
        let cause = cause(
            tried.into(),
            idempotent,
            record.is_grpc(),
            federation.replay,
        )?;
        self.picked.has_next_tier().then_some(cause)
    }
}

/// Sends the request to the tiers after its own, until one does not fail it.
///
/// # Errors
///
/// Why the last try got no response.
pub(in crate::exchange) async fn run(
    forward: &Forward<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    first: (Tried, Cause),
) -> Tried {
    let worker = forward.worker;
    let body_max = worker.settings.failover_body_bytes_max;
    let (mut tried, mut cause) = first;
    loop {
        if !forwarded.outgoing.can_move(body_max) {
            worker.count(Counter::FailoverWithoutBody);
            return tried;
        }
        let Some(next) = forwarded.picked.of_next_tier(worker) else {
            return tried;
        };
        let (from, to) = (forwarded.picked.cluster().name(), next.cluster().name());
        tracing::debug!(%from, %to, ?cause, "goes to the next cluster");
        if let Ok(response) = tried {
            drain(response).await;
        }
        forwarded.picked.moves_on(&next, cause, worker);
        record.tries_again(next.clone());
        forwarded.picked = next;
        if !forwarded.go_again(forward, record.tries(), record.is_grpc()) {
            return Err(Error::new(Kind::DownstreamBody));
        }
        tried = retries::once(forward, forwarded, record.is_grpc()).await;
        record.try_got(&tried);
        if let Some(reason) = forwarded.wants_here(forward, &tried, record) {
            tried = retries::again(forward, forwarded, record, (tried, reason)).await;
        }
        match forwarded.fails_over(&tried, record) {
            Some(again) => cause = again,
            None => return tried,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT: Option<Cause> = None;
    const CONNECT: Option<Cause> = Some(Cause::Connect);
    const RESET: Option<Cause> = Some(Cause::Reset);
    const STATUS: Option<Cause> = Some(Cause::Status);
    const TIMEOUT: Option<Cause> = Some(Cause::Timeout);

    #[test]
    fn outcomes_that_another_cluster_may_mend_fail_over() {
        use Outcome::{Failed, Status};
        // why it does: POST and GET where that is to be safe, POST as upstream has it
        let rows = [
            (Failed(Kind::ConnectFailed), [CONNECT; 3]),
            (Failed(Kind::ConnectTimeout), [CONNECT; 3]),
            (Failed(Kind::NoHealthyUpstream), [CONNECT; 3]),
            (Failed(Kind::UpstreamClosed), [RESET; 3]),
            (Failed(Kind::UpstreamProtocol), [RESET; 3]),
            (Failed(Kind::UpstreamRefusedStream), [RESET; 3]),
            (Failed(Kind::UpstreamReset), [RESET; 3]),
            (Failed(Kind::TryTimeout), [NOT, TIMEOUT, TIMEOUT]),
            (Failed(Kind::RequestTimeout), [NOT; 3]),
            (Failed(Kind::Overflow), [NOT; 3]),
            (Failed(Kind::DownstreamBody), [NOT; 3]),
            (Failed(Kind::NoCluster), [NOT; 3]),
            (Failed(Kind::NoOriginalDestination), [NOT; 3]),
            (Status(200, false), [NOT; 3]),
            (Status(200, true), [NOT; 3]),
            (Status(404, false), [NOT; 3]),
            (Status(429, false), [NOT; 3]),
            (Status(499, false), [NOT; 3]),
            (Status(500, false), [NOT, STATUS, STATUS]),
            (Status(501, false), [NOT, STATUS, STATUS]),
            (Status(502, false), [STATUS; 3]),
            (Status(503, false), [STATUS; 3]),
            (Status(504, false), [STATUS; 3]),
            (Status(505, false), [NOT, STATUS, STATUS]),
            (Status(599, false), [NOT, STATUS, STATUS]),
        ];
        for (outcome, expected) in rows {
            let found = [
                cause(outcome, false, false, Replay::Safe),
                cause(outcome, true, false, Replay::Safe),
                cause(outcome, false, false, Replay::Fsm),
            ];
            assert_eq!(found, expected, "{outcome:?}");
            assert_eq!(cause(outcome, true, false, Replay::Off), NOT, "{outcome:?}");
        }
    }

    #[test]
    fn a_grpc_service_that_is_unavailable_fails_over() {
        let asked = |unavailable, replay| {
            let outcome = Outcome::Status(200, unavailable);
            cause(outcome, false, true, replay)
        };
        assert_eq!(asked(true, Replay::Safe), STATUS);
        assert_eq!(asked(false, Replay::Safe), NOT);
        assert_eq!(asked(true, Replay::Fsm), NOT);
        assert_eq!(asked(true, Replay::Off), NOT);
    }
}
