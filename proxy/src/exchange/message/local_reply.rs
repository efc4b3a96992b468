//! Local replies: one table from errors to status, flag, body and details.
//!
//! Dashboards and runbooks depend on these texts; they are Envoy's. A gRPC client gets the same as HTTP 200 with
//! `grpc-status` and `grpc-message`.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};

use crate::exchange::downstream::body::BODY_TOO_LARGE;
use crate::telemetry::ResponseFlags;
use traffic::error::{Error, Kind};
use traffic::filter::DirectResponse;

const TEXT_PLAIN: HeaderValue = HeaderValue::from_static("text/plain");
const APPLICATION_GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const X_ENVOY_OVERLOADED: HeaderName = HeaderName::from_static("x-envoy-overloaded");

/// A response made by the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalReply {
    /// Status of the response to a plain HTTP client.
    pub status: StatusCode,
    /// Response flags for log and metrics.
    pub flags: ResponseFlags,
    /// Body, sent as `text/plain`; empty for none.
    pub body: Cow<'static, str>,
    /// Response code details in Envoy's words, for the log.
    pub details: Cow<'static, str>,
    /// Headers and body of one reply.
    pub own: Option<Box<OwnParts>>,
    /// Whether `x-envoy-overloaded: true` is sent.
    pub overloaded: bool,
    /// Whether the body says that this is the last of several attempts.
    pub retried: bool,
}

/// Parts of a reply that are no constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnParts {
    /// Additional headers.
    pub headers: HeaderMap,
    /// Body in place of the text.
    pub body: Option<Bytes>,
}

/// Prefix of the body of a reply after an attempt without a response.
const RESET: &str = "upstream connect error or disconnect/reset before headers. ";

impl LocalReply {
    const fn new(
        status: StatusCode,
        flags: ResponseFlags,
        body: &'static str,
        details: &'static str,
    ) -> Self {
        Self {
            status,
            flags,
            body: Cow::Borrowed(body),
            details: Cow::Borrowed(details),
            own: None,
            overloaded: false,
            retried: false,
        }
    }

    const fn timeout(details: &'static str) -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            ResponseFlags::UT,
            "upstream request timeout",
            details,
        )
    }

    /// No listener, virtual host or route matches the request.
    pub const NO_ROUTE: Self = Self::new(
        StatusCode::NOT_FOUND,
        ResponseFlags::NR,
        "",
        "route_not_found",
    );

    /// Another server of the port has the host: the client should open a connection for it (RFC 9110, section 15.5.20).
    pub const MISDIRECTED: Self = Self::new(
        StatusCode::MISDIRECTED_REQUEST,
        ResponseFlags::NR,
        "",
        "misdirected_request",
    );

    /// A policy denies the request.
    ///
    /// Source: Envoy's RBAC filter.
    pub const DENIED: Self = Self::new(
        StatusCode::FORBIDDEN,
        ResponseFlags::NONE,
        "RBAC: access denied",
        "rbac_access_denied_matched_policy[none]",
    );

    /// A rate limit of this proxy refuses the request.
    ///
    /// Source: Envoy's local rate limit filter.
    pub const RATE_LIMITED: Self = Self::new(
        StatusCode::TOO_MANY_REQUESTS,
        ResponseFlags::RL,
        "local_rate_limited",
        "local_rate_limited",
    );

    /// The rate limit service refuses the request.
    ///
    /// Source: Envoy's rate limit filter.
    pub const RATE_LIMITED_BY_SERVICE: Self = Self::new(
        StatusCode::TOO_MANY_REQUESTS,
        ResponseFlags::RL,
        "",
        "request_rate_limited",
    );

    /// The rate limit service failed, and the proxy fails closed.
    ///
    /// Source: Envoy's rate limit filter.
    pub const RATE_LIMITER_FAILED: Self = Self::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        ResponseFlags::RLSE,
        "",
        "rate_limiter_error",
    );

    /// The request's body is larger than its limit.
    ///
    /// Source: Envoy's buffer filter.
    pub const BODY_TOO_LARGE: Self = Self::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        ResponseFlags::NONE,
        "Payload Too Large",
        BODY_TOO_LARGE,
    );

    /// The request has no host.
    pub const NO_HOST: Self = Self::new(
        StatusCode::BAD_REQUEST,
        ResponseFlags::NONE,
        "",
        "missing_host_header",
    );

    /// The request's path cannot be normalized.
    pub const BAD_PATH: Self = Self::new(
        StatusCode::BAD_REQUEST,
        ResponseFlags::NONE,
        "",
        "path_normalization_failed",
    );

    /// The request's `Connection` names a header that must not be removed, or too many headers.
    pub const BAD_CONNECTION_HEADER: Self = Self::new(
        StatusCode::BAD_REQUEST,
        ResponseFlags::DPE,
        "",
        "connection_header_sanitization_failed",
    );

    /// The request asks for a protocol upgrade that its destination does not support.
    pub const UPGRADE_REFUSED: Self = Self::new(
        StatusCode::FORBIDDEN,
        ResponseFlags::NONE,
        "",
        "upgrade_failed",
    );

    /// A request from another cluster would have to be forwarded to yet another one.
    pub const LOOP: Self = Self::new(
        StatusCode::LOOP_DETECTED,
        ResponseFlags::NONE,
        "the request came from another cluster, and no endpoint of this one serves it",
        "loop_detected",
    );

    /// No rule matches a raw TCP connection.
    pub const NO_CONNECTION_RULE: Self = Self::new(
        StatusCode::NOT_FOUND,
        ResponseFlags::NR,
        "",
        "filter_chain_not_found",
    );

    /// A client of the HTTP proxy sent an https URL in plain text.
    pub const HTTPS_WITHOUT_CONNECT: Self = Self::new(
        StatusCode::BAD_REQUEST,
        ResponseFlags::NONE,
        "the proxy reaches https URLs by CONNECT",
        "https_without_connect",
    );

    /// A client of the HTTP proxy sent a URL without a host, or with an invalid port.
    pub const BAD_URL: Self = Self::new(
        StatusCode::BAD_REQUEST,
        ResponseFlags::NONE,
        "the URL needs a host, and a port from 1 to 65535 if any; write http://HOST:PORT/PATH",
        "missing_host_header",
    );

    /// Advice to a client whose CONNECT has no host and port.
    pub const CONNECT_ADVICE: &'static str = "CONNECT needs HOST:PORT with a port from 1 to 65535";

    /// CONNECT without a host and a port.
    pub const BAD_CONNECT: Self = Self::new(
        StatusCode::BAD_REQUEST,
        ResponseFlags::NONE,
        Self::CONNECT_ADVICE,
        "invalid_connect_target",
    );

    /// A client of the HTTP proxy requested the proxy itself.
    pub const PROXY_ITSELF: Self = Self::new(
        StatusCode::LOOP_DETECTED,
        ResponseFlags::NONE,
        "the address is that of the proxy itself",
        "loop_detected",
    );

    /// A client of the HTTP proxy requested a host without a resource or DNS entry.
    pub const NO_ADDRESS: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ResponseFlags::DF,
        "no service has the host, and DNS has no address for it",
        "dns_resolution_failure",
    );

    /// CONNECT to a host without a resource, where only hosts with resources may be reached.
    pub const NOT_IN_REGISTRY: Self = Self::new(
        StatusCode::BAD_GATEWAY,
        ResponseFlags::UH,
        "no service has the host and port, and the policy for outbound traffic is REGISTRY_ONLY",
        "no_healthy_upstream",
    );

    /// A limit on connections or requests is reached.
    const OVERFLOW: Self = Self {
        status: StatusCode::SERVICE_UNAVAILABLE,
        flags: ResponseFlags::UO,
        body: Cow::Borrowed(
            "upstream connect error or disconnect/reset before headers. reset reason: overflow",
        ),
        details: Cow::Borrowed("upstream_reset_before_response_started{overflow}"),
        own: None,
        overloaded: true,
        retried: false,
    };

    /// Adds headers to a reply.
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        let own = OwnParts {
            headers,
            body: None,
        };
        Self {
            own: Some(Box::new(own)),
            ..self
        }
    }

    /// The reply to a request aborted by a fault.
    pub const fn fault(status: StatusCode) -> Self {
        Self::new(
            status,
            ResponseFlags::FI,
            "fault filter abort",
            "fault_filter_abort",
        )
    }

    /// The reply to a request whose body is refused: gRPC-Web with invalid base64, or a body that is too large.
    pub fn bad_body(details: &'static str) -> Self {
        if details == BODY_TOO_LARGE {
            return Self::BODY_TOO_LARGE;
        }
        Self::new(
            StatusCode::BAD_REQUEST,
            ResponseFlags::NONE,
            "Bad gRPC-web request, invalid base64 data.",
            details,
        )
    }

    /// The local reply to a client that expects gRPC, or to another one, for a kind of error.
    pub fn for_client(kind: Kind, is_grpc: bool) -> Self {
        let mut reply = Self::from_kind(kind);
        if is_grpc && kind == Kind::InvalidBackend {
            // 500 would mean an unknown error, and this one is UNAVAILABLE
            reply.status = StatusCode::SERVICE_UNAVAILABLE;
        }
        reply
    }

    /// The local reply for a kind of error.
    pub const fn from_kind(kind: Kind) -> Self {
        use ResponseFlags as F;
        use StatusCode as S;
        match kind {
            Kind::InvalidBackend => {
                Self::new(S::INTERNAL_SERVER_ERROR, F::NC, "", "invalid_backend")
            }
            Kind::NoCluster => Self::new(S::SERVICE_UNAVAILABLE, F::NC, "", "cluster_not_found"),
            Kind::NoHealthyUpstream => Self::new(
                S::SERVICE_UNAVAILABLE,
                F::UH,
                "no healthy upstream",
                "no_healthy_upstream",
            ),
            Kind::NoOriginalDestination => {
                Self::new(S::BAD_GATEWAY, F::NR, "", "no_original_destination")
            }
            Kind::ConnectFailed => Self::new(
                S::SERVICE_UNAVAILABLE,
                F::UF,
                "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure",
                "upstream_reset_before_response_started{remote_connection_failure}",
            ),
            Kind::ConnectTimeout => Self::new(
                S::SERVICE_UNAVAILABLE,
                F::UF,
                "upstream connect error or disconnect/reset before headers. reset reason: connection timeout",
                "upstream_reset_before_response_started{connection_timeout}",
            ),
            Kind::UpstreamClosed => Self::new(
                S::SERVICE_UNAVAILABLE,
                F::UC,
                "upstream connect error or disconnect/reset before headers. reset reason: connection termination",
                "upstream_reset_before_response_started{connection_termination}",
            ),
            Kind::UpstreamReset => Self::new(
                S::SERVICE_UNAVAILABLE,
                F::UR,
                "upstream connect error or disconnect/reset before headers. reset reason: remote reset",
                "upstream_reset_before_response_started{remote_reset}",
            ),
            Kind::UpstreamRefusedStream => Self::new(
                S::SERVICE_UNAVAILABLE,
                F::UR,
                "upstream connect error or disconnect/reset before headers. reset reason: remote refused stream reset",
                "upstream_reset_before_response_started{remote_refused_stream_reset}",
            ),
            Kind::UpstreamProtocol => Self::new(
                S::BAD_GATEWAY,
                F::UPE,
                "upstream connect error or disconnect/reset before headers. reset reason: protocol error",
                "upstream_reset_before_response_started{protocol_error}",
            ),
            Kind::Overflow => Self::OVERFLOW,
            Kind::RequestTimeout => Self::timeout("response_timeout"),
            Kind::AttemptTimeout => Self::timeout("upstream_per_try_timeout"),
            Kind::DownstreamTimeout => Self::new(
                S::REQUEST_TIMEOUT,
                F::NONE,
                "request timeout",
                "request_overall_timeout",
            ),
            Kind::DownstreamBody => Self::new(
                S::BAD_REQUEST,
                F::DPE,
                "Bad Request",
                "downstream_body_broke_off",
            ),
        }
    }

    /// The local reply for an error; for a failed connection, its body ends with the transport's reason.
    pub fn from_error(error: &Error) -> Self {
        let reply = Self::from_kind(error.kind());
        let Some(reason) = error.transport() else {
            return reply;
        };
        let body = format!("{}, transport failure reason: {reason}", reply.body).into();
        Self { body, ..reply }
    }

    /// Converts the reply to a response for the client, in gRPC form if `grpc`.
    pub fn response(&self, grpc: bool) -> Response<Bytes> {
        if grpc {
            return self.grpc_response();
        }
        let body = self.body();
        let has_body = !body.is_empty();
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        if has_body {
            response.headers_mut().insert(CONTENT_TYPE, TEXT_PLAIN);
        }
        self.add_headers(response.headers_mut());
        response
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        if self.overloaded {
            headers.insert(X_ENVOY_OVERLOADED, HeaderValue::from_static("true"));
        }
        if let Some(own) = &self.own {
            headers.extend(HeaderMap::clone(&own.headers));
        }
    }

    fn body(&self) -> Bytes {
        let own = self.own.as_ref().and_then(|own| own.body.clone());
        own.unwrap_or_else(|| match self.text() {
            Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
            Cow::Owned(text) => Bytes::from(text),
        })
    }

    /// The body; built only for a reply after retries, which is rare.
    fn text(&self) -> Cow<'static, str> {
        match self.body.strip_prefix(RESET) {
            Some(reason) if self.retried => {
                format!("{RESET}retried and the latest {reason}").into()
            }
            _ => self.body.clone(),
        }
    }

    fn grpc_response(&self) -> Response<Bytes> {
        let message = self.body();
        let mut headers = HeaderMap::new();
        self.add_headers(&mut headers);
        tell_grpc(&mut headers, self.status, &message);
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = headers;
        response
    }
}

/// Converts a direct response for a gRPC client; keeps the headers of the rule.
pub fn for_grpc(response: Response<Bytes>) -> Response<Bytes> {
    let (parts, body) = response.into_parts();
    let mut headers = parts.headers;
    headers.remove(CONTENT_LENGTH);
    tell_grpc(&mut headers, parts.status, &body);
    let mut response = Response::new(Bytes::new());
    *response.headers_mut() = headers;
    response
}

/// Sets the headers that carry this status and text to a gRPC client.
fn tell_grpc(headers: &mut HeaderMap, status: StatusCode, text: &[u8]) {
    headers.insert(CONTENT_TYPE, APPLICATION_GRPC);
    let status = HeaderValue::from(u16::from(grpc_status(status)));
    headers.insert(GRPC_STATUS, status);
    if let Some(message) = grpc_message(text)
        && !text.is_empty()
    {
        headers.insert(GRPC_MESSAGE, message);
    }
}

/// The direct response of a rule; only its headers for HEAD.
pub fn direct(direct: &DirectResponse, method: &Method) -> Response<Bytes> {
    let mut response = Response::new(direct.body.clone());
    *response.status_mut() = direct.status;
    if let Some(content_type) = direct.content_type() {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    if method == Method::HEAD {
        headers_only(&mut response);
    }
    drop_forbidden_body(&mut response);
    response
}

/// Removes the body if the status must not have one (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
pub fn drop_forbidden_body(response: &mut Response<Bytes>) {
    if matches!(
        response.status(),
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    ) {
        *response.body_mut() = Bytes::new();
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().remove(CONTENT_LENGTH);
    }
}

/// Removes the body of a response to HEAD, and keeps its length (RFC 9110, section 9.3.2).
pub fn headers_only(response: &mut Response<Bytes>) {
    if !response.body().is_empty() {
        let length = HeaderValue::from(response.body().len());
        response.headers_mut().insert(CONTENT_LENGTH, length);
        *response.body_mut() = Bytes::new();
    }
}

/// gRPC's mapping from HTTP statuses, as Envoy uses it for local replies.
pub fn grpc_status(status: StatusCode) -> u8 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => 2,
    }
}

/// Encodes the value of `grpc-message`: percent-encodes all but printable ASCII, and `%` (gRPC over HTTP/2,
/// Status-Message); also `~`, as in Envoy.
pub fn grpc_message(text: &[u8]) -> Option<HeaderValue> {
    let mut encoded = Vec::with_capacity(text.len());
    for &byte in text {
        if (0x20..0x7e).contains(&byte) && byte != b'%' {
            encoded.push(byte);
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            encoded.push(b'%');
            encoded.push(HEX[usize::from(byte >> 4)]);
            encoded.push(HEX[usize::from(byte & 15)]);
        }
    }
    HeaderValue::from_maybe_shared(Bytes::from(encoded)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    use traffic::filter::timeout::is_grpc;

    /// Every kind with its status, flag, body and details.
    const ROWS: &[(Kind, u16, &str, &str, &str)] = &[
        (Kind::InvalidBackend, 500, "NC", "", "invalid_backend"),
        (Kind::NoCluster, 503, "NC", "", "cluster_not_found"),
        (
            Kind::NoOriginalDestination,
            502,
            "NR",
            "",
            "no_original_destination",
        ),
        (
            Kind::NoHealthyUpstream,
            503,
            "UH",
            "no healthy upstream",
            "no_healthy_upstream",
        ),
        (
            Kind::ConnectFailed,
            503,
            "UF",
            "remote connection failure",
            "{remote_connection_failure}",
        ),
        (
            Kind::ConnectTimeout,
            503,
            "UF",
            "connection timeout",
            "{connection_timeout}",
        ),
        (
            Kind::UpstreamClosed,
            503,
            "UC",
            "connection termination",
            "{connection_termination}",
        ),
        (
            Kind::UpstreamReset,
            503,
            "UR",
            "remote reset",
            "{remote_reset}",
        ),
        (
            Kind::UpstreamRefusedStream,
            503,
            "UR",
            "remote refused stream reset",
            "{remote_refused_stream_reset}",
        ),
        (
            Kind::UpstreamProtocol,
            502,
            "UPE",
            "protocol error",
            "{protocol_error}",
        ),
        (Kind::Overflow, 503, "UO", "overflow", "{overflow}"),
        (
            Kind::RequestTimeout,
            504,
            "UT",
            "upstream request timeout",
            "response_timeout",
        ),
        (
            Kind::AttemptTimeout,
            504,
            "UT",
            "upstream request timeout",
            "upstream_per_try_timeout",
        ),
        (
            Kind::DownstreamTimeout,
            408,
            "-",
            "request timeout",
            "request_overall_timeout",
        ),
        (
            Kind::DownstreamBody,
            400,
            "DPE",
            "Bad Request",
            "downstream_body_broke_off",
        ),
    ];

    #[test]
    fn each_local_reply_has_its_status_flag_body_and_details() {
        for (kind, status, flag, body, details) in ROWS {
            let reply = LocalReply::from_kind(*kind);
            assert_eq!(reply.status.as_u16(), *status, "{kind:?}");
            assert_eq!(reply.flags.to_string(), *flag, "{kind:?}");
            assert!(
                reply.body.ends_with(body) && reply.body.is_empty() == body.is_empty(),
                "{kind:?}"
            );
            assert!(reply.details.ends_with(details), "{kind:?}");
            assert_eq!(reply.overloaded, *kind == Kind::Overflow, "{kind:?}");
        }
    }

    #[test]
    fn local_reply_after_retries_mentions_the_retry() {
        for (kind, expected) in [
            (
                Kind::ConnectFailed,
                "upstream connect error or disconnect/reset before headers. retried and the latest reset reason: \
                 remote connection failure",
            ),
            (Kind::AttemptTimeout, "upstream request timeout"),
            (Kind::NoCluster, ""),
        ] {
            let reply = LocalReply {
                retried: true,
                ..LocalReply::from_kind(kind)
            };
            assert_eq!(reply.text(), expected);
        }
    }

    #[test]
    fn http_client_gets_a_text_body_or_none() {
        let with_body = LocalReply::from_kind(Kind::NoHealthyUpstream).response(false);
        assert_eq!(with_body.headers()[CONTENT_TYPE], "text/plain");
        let without = LocalReply::NO_ROUTE.response(false);
        assert!(without.headers().is_empty());
        assert_eq!(without.status(), 404);
    }

    #[test]
    fn reply_has_its_own_headers_body_and_details() {
        let mut headers = HeaderMap::new();
        headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
        let reply = LocalReply {
            body: format!("{} is missing", "a token").into(),
            details: format!("denied_by_{}", "a policy").into(),
            own: Some(Box::new(OwnParts {
                headers,
                body: None,
            })),
            ..LocalReply::NO_ROUTE
        };
        let response = reply.response(false);
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        assert_eq!(response.body(), "a token is missing");
        let response = reply.response(true);
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        assert_eq!(response.headers()["grpc-message"], "a token is missing");
    }

    #[test]
    fn grpc_client_gets_trailers_only() {
        let response = LocalReply::from_kind(Kind::RequestTimeout).response(true);
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/grpc");
        assert_eq!(response.headers()["grpc-status"], "14");
        assert_eq!(
            response.headers()["grpc-message"],
            "upstream request timeout"
        );
        assert_eq!(
            LocalReply::NO_ROUTE.response(true).headers()["grpc-status"],
            "12"
        );
    }

    #[test]
    fn grpc_is_detected_by_content_type() {
        for (value, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=utf-8", false),
            ("application/grpc-web", false),
            ("text/plain", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            assert_eq!(is_grpc(&headers), expected, "{value}");
        }
    }

    #[test]
    fn grpc_message_is_percent_encoded() {
        let message = grpc_message("50% ~ \u{fc}\n".as_bytes()).unwrap();
        assert_eq!(message, "50%25 %7E %C3%BC%0A");
    }
}
