//! What the end of an HTTP/2 stream means for its request.

use rustls::AlertDescription;

use super::tls::refused_late;
use crate::error::{Error, Kind};
use crate::http2::Reason;

/// Why a stream is over before its response was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ended.
    Closed,
    /// The request's body broke off.
    Downstream,
    /// The server does not take us, which it said by an alert of TLS before anything else.
    Late(AlertDescription),
    /// The peer did not look at it: it refused the stream, or left and named it as one of those above the last that it
    /// processed (RFC 9113, sections 6.8 and 8.7).
    Refused,
    /// The peer reset it.
    Reset(Reason),
    /// The peer broke the protocol, on the stream or on its connection.
    Violation(Reason),
}

impl Fault {
    /// What the peer meant by a reset.
    pub fn of_reset(reason: Reason) -> Self {
        match reason {
            Reason::REFUSED_STREAM => Fault::Refused,
            reason => Fault::Reset(reason),
        }
    }

    /// For a request that got no response.
    pub fn before_response(self) -> Error {
        match self {
            Fault::Closed => Error::new(Kind::UpstreamClosed),
            Fault::Downstream => Error::new(Kind::DownstreamBody),
            Fault::Late(alert) => refused_late(alert),
            Fault::Refused => {
                Error::new(Kind::UpstreamRefusedStream).with_source(Reason::REFUSED_STREAM)
            }
            Fault::Reset(reason) => Error::new(Kind::UpstreamReset).with_source(reason),
            Fault::Violation(reason) => Error::new(Kind::UpstreamProtocol).with_source(reason),
        }
    }

    /// For a response that broke off after its head.
    pub fn after_response(self) -> Error {
        match self {
            Fault::Late(_) => Fault::Closed.before_response(),
            Fault::Refused => Fault::Reset(Reason::REFUSED_STREAM).before_response(),
            fault => fault.before_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Retry;

    #[test]
    fn only_unprocessed_requests_are_always_retriable() {
        let rows = [
            (
                Fault::Closed,
                Kind::UpstreamClosed,
                Retry::IfConnectionReused,
            ),
            (Fault::Downstream, Kind::DownstreamBody, Retry::Never),
            (
                Fault::of_reset(Reason::REFUSED_STREAM),
                Kind::UpstreamRefusedStream,
                Retry::Always,
            ),
            (
                Fault::of_reset(Reason::CANCEL),
                Kind::UpstreamReset,
                Retry::Never,
            ),
            (
                Fault::of_reset(Reason::NO_ERROR),
                Kind::UpstreamReset,
                Retry::Never,
            ),
            (
                Fault::Violation(Reason::PROTOCOL_ERROR),
                Kind::UpstreamProtocol,
                Retry::Never,
            ),
        ];
        for (fault, kind, retry) in rows {
            let error = fault.before_response();
            assert_eq!((error.kind(), error.retry()), (kind, retry), "{fault:?}");
            assert_ne!(fault.after_response().retry(), Retry::Always, "{fault:?}");
        }
    }
}
