//! Reasons that a request or a connection is rejected, and the replies to the peer.

use std::time::Duration;

use http::uri::Authority;
use http::{Method, Request, StatusCode, Version};

use crate::exchange::DownstreamBody;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::record::log::Unserved;
use crate::telemetry::{Counter, ResponseFlags};
pub use wire::http1::request::refusal::Refusal;
use wire::http1::request::refusal::names_host;

/// Reply, log entry and metrics of a [`Refusal`].
pub(super) trait RefusalReply {
    /// Returns the fault of a request to an HTTP proxy, and the fix; empty if the status says enough.
    fn advice<B>(self, request: &Request<B>) -> &'static str;

    /// Returns the response flag: `DPE` for protocol violations, none for requests that are merely not served.
    fn flags(self) -> ResponseFlags;

    /// Returns the access log entry and metrics of a request that gets this reply.
    fn unserved(
        self,
        request: Option<&Request<DownstreamBody>>,
        status: StatusCode,
    ) -> Unserved<'_>;

    /// Counter of this reason.
    fn counter(self) -> Counter;
}

impl RefusalReply for Refusal {
    fn advice<B>(self, request: &Request<B>) -> &'static str {
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

    fn flags(self) -> ResponseFlags {
        match self {
            Self::HeadTimeout | Self::LowVersion => ResponseFlags::NONE,
            _ => ResponseFlags::DPE,
        }
    }

    fn unserved(
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

    fn counter(self) -> Counter {
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
