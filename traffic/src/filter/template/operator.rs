//! Segments and operators of a template.

use http::HeaderName;

use super::certificate::TlsField;
use super::grpc_status::StatusForm;
use super::header::Header;
use super::log_operator::LogOperator;
use super::needs::Needs;
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
    /// An operator that only has a value in the access log.
    Log(LogOperator),
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

impl Operator {
    /// Whether the value is a number, which JSON has without quotes.
    pub(super) fn is_number(&self) -> bool {
        match self {
            Self::AttemptCount
            | Self::BytesReceived
            | Self::BytesSent
            | Self::Duration
            | Self::GrpcStatus(StatusForm::Number)
            | Self::RequestDuration
            | Self::RequestHeadersBytes
            | Self::ResponseCode
            | Self::ResponseDuration
            | Self::ResponseHeadersBytes => true,
            Self::DownstreamDirectRemote(part)
            | Self::DownstreamLocal(part)
            | Self::DownstreamRemote(part)
            | Self::UpstreamLocal(part)
            | Self::UpstreamRemote(part) => *part == AddressPart::Port,
            Self::Log(operator) => operator.is_number(),
            _ => false,
        }
    }

    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Self::Log(operator) => operator.add_needs(needs),
            Self::RequestHeader(first, second) => {
                first.add_needs(needs);
                if let Some(second) = second {
                    second.add_needs(needs);
                }
            }
            Self::RequestHeadersBytes => needs.all_request_headers = true,
            Self::ResponseHeader(first, second) => {
                needs.response(first.clone());
                if let Some(second) = second {
                    needs.response(second.clone());
                }
            }
            Self::ResponseHeadersBytes => needs.all_response_headers = true,
            Self::TraceId => {
                for name in ["traceparent", "x-b3-traceid", "b3"] {
                    needs.request(HeaderName::from_static(name));
                }
            }
            _ => {}
        }
    }
}
