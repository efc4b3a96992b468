//! Reasons that a request or a connection is rejected, and the replies to the peer.

use std::time::Duration;

use http::header::HOST;
use http::uri::Authority;
use http::{Method, Request, StatusCode, Version};

use crate::exchange::DownstreamBody;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::record::log::Unserved;
use crate::telemetry::{Counter, ResponseFlags};

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

    /// Returns the fault of a request to an HTTP proxy, and the fix; empty if the status says enough.
    pub fn advice<B>(self, request: &Request<B>) -> &'static str {
        let is_connect = *request.method() == Method::CONNECT;
        let uri = request.uri();
        let authority = uri.authority().map_or("", Authority::as_str);
        match self {
            Self::Target if is_connect && authority.contains('@') => {
                "the target of CONNECT has a user name; write HOST:PORT, and send credentials for the proxy in \
                 Proxy-Authorization"
            }
            Self::Target if is_connect => LocalReply::CONNECT_ADVICE,
            Self::Target if authority.contains('@') => {
                "the URL has a user name; write http://HOST:PORT/PATH, and send credentials in Authorization"
            }
            Self::Target if uri.scheme().is_some() => {
                "the proxy takes http URLs only; use CONNECT HOST:PORT for other protocols"
            }
            Self::Target => "write the target of the request as http://HOST:PORT/PATH",
            Self::Host if is_connect => {
                "Host and the target of CONNECT differ, or are not a host and a port; write HOST:PORT in both"
            }
            Self::Host => {
                "the request has no host, or no single one that can be read; write http://HOST:PORT/PATH and one Host header"
            }
            _ => "",
        }
    }

    /// Returns the response flag: `DPE` for protocol violations, none for requests that are merely not served.
    pub fn flags(self) -> ResponseFlags {
        match self {
            Self::HeadTimeout | Self::LowVersion => ResponseFlags::NONE,
            _ => ResponseFlags::DPE,
        }
    }

    /// Returns the access log entry and metrics of a request that gets this reply.
    pub(super) fn unserved(
        self,
        request: Option<&Request<DownstreamBody>>,
        status: StatusCode,
    ) -> Unserved<'_> {
        let (flags, details) = match (self, request) {
            (Self::Host, Some(request)) if !names_host(request) => {
                (ResponseFlags::NONE, "missing_host_header")
            }
            (_, Some(request)) if request.version() == Version::HTTP_2 => {
                (self.flags(), "http2.violation.of.messaging.rule")
            }
            _ => (self.flags(), self.details()),
        };
        Unserved {
            request,
            code: status.as_u16(),
            flags,
            details,
            duration: Duration::ZERO,
        }
    }

    /// Counter of this reason.
    pub fn counter(self) -> Counter {
        match self {
            Self::BodyTimeout | Self::Chunk => Counter::ProtocolBody,
            Self::Framing | Self::TransferCoding => Counter::ProtocolFraming,
            Self::Header => Counter::ProtocolHeader,
            Self::HeadTimeout => Counter::ProtocolHeadTimeout,
            Self::HeadersTooLarge => Counter::ProtocolHeaderTooLarge,
            Self::Host => Counter::ProtocolHost,
            Self::LowVersion => Counter::ProtocolVersion,
            Self::Target => Counter::ProtocolTarget,
        }
    }
}

fn names_host<B>(request: &Request<B>) -> bool {
    request.uri().authority().is_some() || request.headers().contains_key(HOST)
}
