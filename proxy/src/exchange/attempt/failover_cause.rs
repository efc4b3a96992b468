//! Outcomes of an attempt that send a request on to the next tier of clusters; pure.

use hyper::{Response, StatusCode};

use crate::identity::Replay;
use crate::telemetry::ReplayCause as Cause;
use traffic::error::{Error, Kind};

/// Returns the cause of a replay in the outcome of an attempt, if there is one.
pub(super) fn cause(tried: Outcome, idempotent: bool, grpc: bool, replay: Replay) -> Option<Cause> {
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
            Kind::AttemptTimeout if idempotent || replay == Replay::Fsm => Some(Cause::Timeout),
            _ => None,
        },
    }
}

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Failed(Kind),
    /// Status of a response, and whether its headers say that the gRPC service is unavailable.
    Status(u16, bool),
}

impl<B> From<&Result<Response<B>, Error>> for Outcome {
    fn from(tried: &Result<Response<B>, Error>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOT: Option<Cause> = None;
    const CONNECT: Option<Cause> = Some(Cause::Connect);
    const RESET: Option<Cause> = Some(Cause::Reset);
    const STATUS: Option<Cause> = Some(Cause::Status);
    const TIMEOUT: Option<Cause> = Some(Cause::Timeout);

    #[test]
    fn only_listed_outcomes_fail_over() {
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
            (Failed(Kind::AttemptTimeout), [NOT, TIMEOUT, TIMEOUT]),
            (Failed(Kind::RequestTimeout), [NOT; 3]),
            (Failed(Kind::Overflow), [NOT; 3]),
            (Failed(Kind::DownstreamBody), [NOT; 3]),
            (Failed(Kind::DownstreamTimeout), [NOT; 3]),
            (Failed(Kind::InvalidBackend), [NOT; 3]),
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
    fn grpc_unavailable_fails_over() {
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
