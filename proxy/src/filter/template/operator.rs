//! What a template is made of.

use http::HeaderName;

use super::certificate::TlsField;
use super::grpc_status::StatusForm;
use super::start_time::TimeFormat;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(Box<str>),
    Operator {
        operator: Operator,
        /// Longest text in characters, from `%OPERATOR:10%`.
        chars_max: Option<usize>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// One of Envoy's that never has a value here.
    Absent,
    AttemptCount,
    BytesReceived,
    BytesSent,
    DownstreamDirectRemote(AddressPart),
    DownstreamLocal(AddressPart),
    DownstreamRemote(AddressPart),
    DownstreamTls(TlsField),
    Duration,
    EmitTime(TimeFormat),
    Environment(Box<str>),
    GrpcStatus(StatusForm),
    Hostname,
    Protocol,
    RequestDuration,
    RequestHeader(Header, Option<Header>),
    RequestHeadersBytes,
    RequestedServerName,
    ResponseCode,
    ResponseCodeDetails,
    ResponseDuration,
    ResponseFlags,
    ResponseFlagsLong,
    ResponseHeader(HeaderName, Option<HeaderName>),
    ResponseHeadersBytes,
    RouteName,
    StartTime(TimeFormat),
    StreamId,
    TraceId,
    UniqueId,
    UpstreamCluster,
    UpstreamLocal(AddressPart),
    UpstreamName(AddressPart),
    UpstreamProtocol,
    UpstreamRemote(AddressPart),
    UpstreamTls(TlsField),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressPart {
    Both,
    Ip,
    /// The network of this many bits that the IP is in.
    Network(u8),
    Port,
}

/// What `%REQ(...)%` may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Authority,
    Method,
    Name(HeaderName),
    Path,
    Scheme,
}
