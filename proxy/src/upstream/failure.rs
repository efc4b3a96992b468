//! Meaning that the end of an HTTP/2 stream has for its request.

use rustls::AlertDescription;

use super::tls::refused_late;
use traffic::error::{Error, Kind};
use wire::http2::Reason;

/// Reason that a stream ended before its response was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ended.
    Closed,
    /// The request's body failed.
    Downstream,
    /// A TLS alert of the server, before any other byte, refused the connection.
    Late(AlertDescription),
    /// The peer did not process the request: it refused the stream, or its GOAWAY names an earlier stream as the last
    /// one that it processed (RFC 9113, sections 6.8 and 8.7).
    Refused,
    /// The peer reset the stream.
    Reset(Reason),
    /// The peer violated the protocol, on the stream or on its connection.
    Violation(Reason),
}

impl Fault {
    /// Returns the fault for a reset by the peer.
    pub fn of_reset(reason: Reason) -> Self {
        match reason {
            Reason::REFUSED_STREAM => Fault::Refused,
            reason => Fault::Reset(reason),
        }
    }

    /// Returns the error of a request without a response.
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

    /// Returns the error of a response that broke off after its head.
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
    use traffic::error::Retry;

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
