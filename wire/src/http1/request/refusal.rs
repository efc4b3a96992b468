//! Reasons that a client's request or connection is rejected.

use http::header::HOST;
use http::{Request, StatusCode};

/// Reason that a downstream peer is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// HTTP/1 request body that stalled for too long, or response that the client did not read.
    BodyTimeout,
    /// Request body whose framing is not as announced.
    Chunk,
    /// Ambiguous end of the request: both kinds of length, repeated or unreadable lengths.
    Framing,
    /// Ambiguous header line: folded, or with a bare CR or LF.
    Header,
    /// Request head that was not complete in time.
    HeadTimeout,
    /// More header bytes or header fields than allowed.
    HeadersTooLarge,
    /// No Host, several, or one that contradicts the request target.
    Host,
    /// HTTP/1.0, which the settings reject.
    LowVersion,
    /// Request target that does not fit its method.
    Target,
    /// Transfer coding other than `chunked`.
    TransferCoding,
}

impl Refusal {
    /// Returns the status of the reply; `None` if the connection closes without one.
    pub fn status(self) -> Option<StatusCode> {
        match self {
            Self::Framing | Self::Header | Self::Host | Self::Target => {
                Some(StatusCode::BAD_REQUEST)
            }
            Self::TransferCoding => Some(StatusCode::NOT_IMPLEMENTED),
            Self::HeadTimeout => Some(StatusCode::REQUEST_TIMEOUT),
            Self::HeadersTooLarge => Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
            Self::LowVersion => Some(StatusCode::UPGRADE_REQUIRED),
            // The exchange has the request, and replies to a body that breaks.
            Self::BodyTimeout | Self::Chunk => None,
        }
    }

    /// Returns the response code details of the access log: Envoy's, if it has any for this reason.
    pub fn details(self) -> &'static str {
        match self {
            Self::HeadTimeout => "request_header_timeout",
            Self::HeadersTooLarge => "http1.headers_too_large",
            Self::LowVersion => "low_version",
            Self::Target => "http1.invalid_url",
            Self::TransferCoding => "http1.invalid_transfer_encoding",
            Self::BodyTimeout | Self::Chunk | Self::Framing | Self::Header | Self::Host => {
                "http1.codec_error"
            }
        }
    }

    /// Returns the body of the reply, as Envoy's: the name of the status; empty for a request without a host and a late
    /// head.
    pub fn body<B>(self, request: Option<&Request<B>>) -> &'static str {
        match (self, request) {
            (Self::Host, Some(request)) if !names_host(request) => "",
            (Self::HeadTimeout, _) => "",
            _ => (self.status())
                .and_then(|status| status.canonical_reason())
                .unwrap_or_default(),
        }
    }
}

/// Whether the request names a host, in its target or in a header.
pub fn names_host<B>(request: &Request<B>) -> bool {
    request.uri().authority().is_some() || request.headers().contains_key(HOST)
}
