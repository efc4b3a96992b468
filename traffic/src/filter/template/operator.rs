//! Segments and operators of a template.

use http::HeaderName;

use super::certificate::TlsField;
use super::grpc_status::StatusForm;
use super::start_time::TimeFormat;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(Box<str>),
    Operator {
        operator: Operator,
        /// Maximum number of characters, from `%OPERATOR:10%`.
        chars_max: Option<usize>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// An operator of Envoy that never has a value here.
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
    /// The network of the IP address with this prefix length.
    Network(u8),
    Port,
}

/// Header names that `%REQ(...)%` accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Authority,
    Method,
    Name(HeaderName),
    Path,
    Scheme,
}
