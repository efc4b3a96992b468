//! Parser from template text to segments.

use http::HeaderName;

use super::certificate::{Parsed, TlsField};
use super::error::TemplateError;
use super::expression::CompileRegex;
use super::grpc_status::StatusForm;
use super::header::Header;
use super::log_operator::LogOperator;
use super::operator::{AddressPart, Operator, Segment};
use super::start_time::TimeFormat;

/// Parses the text of a header value, or of a line of the access log, which has more operators, with expressions.
pub(super) fn segments(
    text: &str,
    mut log: Option<CompileRegex<'_>>,
) -> Result<Vec<Segment>, TemplateError> {
    let mut segments = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        literal.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            literal.push('%');
            rest = after;
            continue;
        }
        if !literal.is_empty() {
            segments.push(Segment::Literal(std::mem::take(&mut literal).into()));
        }
        let at = text.len() - after.len() - 1;
        let inside = Inside::read(after).ok_or(TemplateError::Open(at))?;
        let own = match &mut log {
            Some(compile) => inside.log_operator(compile)?,
            None => None,
        };
        segments.push(inside.segment(own)?);
        rest = inside.rest;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        segments.push(Segment::Literal(literal.into()));
    }
    Ok(segments)
}

const NO_ARGUMENT: &str = "takes no argument";
const WRONG_TIME: &str = "unknown or unfinished time specifier";

/// Maximum prefix length of a network.
const PREFIX_MAX: u8 = 128;

/// Position of the `%` that ends an operator, outside of parentheses and quotes; `None` if it is missing.
fn end(text: &str) -> Option<usize> {
    let (mut depth, mut is_quoted) = (0_u32, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if depth > 0 => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'%' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// Parts of `NAME(argument):10%rest`.
struct Inside<'t> {
    name: &'t str,
    argument: Option<&'t str>,
    length: Option<&'t str>,
    rest: &'t str,
}

impl<'t> Inside<'t> {
    /// Splits an operator; `None` if it is not closed.
    fn read(text: &'t str) -> Option<Self> {
        let end = end(text)?;
        let (inside, rest) = (&text[..end], &text[end + 1..]);
        let name_len = inside.find(['(', ':']).unwrap_or(inside.len());
        let (name, mut length) = inside.split_at(name_len);
        let mut argument = None;
        if let Some(inner) = length.strip_prefix('(') {
            let (text, after) = match name {
                "CEL" => inner.rsplit_once(')')?,
                _ => inner.split_once(')')?,
            };
            (argument, length) = (Some(text), after);
        }
        let length = (!length.is_empty()).then_some(length);
        Some(Self {
            name,
            argument,
            length,
            rest,
        })
    }

    /// Parses an operator that only has a value in the access log; `None` for another one.
    fn log_operator(&self, compile: CompileRegex<'_>) -> Result<Option<Operator>, TemplateError> {
        let argument = self.argument.unwrap_or_default();
        let found = LogOperator::parse(self.name, argument, compile);
        let found =
            found.map_err(|problem| TemplateError::Argument(self.name.to_owned(), problem))?;
        Ok(found.map(Operator::Log))
    }

    /// Finishes the segment of an operator, which is `known` or parsed as one of a header value.
    fn segment(&self, known: Option<Operator>) -> Result<Segment, TemplateError> {
        let operator = match known {
            Some(operator) => operator,
            None => self.operator()?,
        };
        if operator == Operator::Absent {
            // operators without a value here: their arguments and lengths are not checked
            return Ok(Segment::Operator {
                operator,
                chars_max: None,
            });
        }
        let chars_max = match self.length {
            None => None,
            Some(length) => {
                let digits = length
                    .strip_prefix(':')
                    .and_then(|digits| digits.parse().ok());
                Some(digits.ok_or_else(|| self.wrong("expected `:` and a number, or `%`"))?)
            }
        };
        Ok(Segment::Operator {
            operator,
            chars_max,
        })
    }

    fn operator(&self) -> Result<Operator, TemplateError> {
        use AddressPart::{Both, Port};
        let plain = match self.name {
            "ENVIRONMENT" => {
                return self
                    .required()
                    .map(|name| Operator::Environment(name.into()));
            }
            "EMIT_TIME" => return self.time().map(Operator::EmitTime),
            "GRPC_STATUS" => return self.grpc_status(),
            "REQ" | "REQUEST_HEADER" => return self.request_header(),
            "RESP" | "RESPONSE_HEADER" => return self.response_header(),
            "START_TIME" => return self.time().map(Operator::StartTime),
            name if name.ends_with("_WITHOUT_PORT") => return self.without_port(),
            "BYTES_RECEIVED" => Operator::BytesReceived,
            "BYTES_SENT" => Operator::BytesSent,
            "DOWNSTREAM_DIRECT_REMOTE_ADDRESS" => Operator::DownstreamDirectRemote(Both),
            "DOWNSTREAM_DIRECT_REMOTE_PORT" => Operator::DownstreamDirectRemote(Port),
            "DOWNSTREAM_DIRECT_LOCAL_ADDRESS" | "DOWNSTREAM_LOCAL_ADDRESS" => {
                Operator::DownstreamLocal(Both)
            }
            "DOWNSTREAM_DIRECT_LOCAL_PORT" | "DOWNSTREAM_LOCAL_PORT" => {
                Operator::DownstreamLocal(Port)
            }
            "DOWNSTREAM_REMOTE_ADDRESS" => Operator::DownstreamRemote(Both),
            "DOWNSTREAM_REMOTE_PORT" => Operator::DownstreamRemote(Port),
            "DURATION" => Operator::Duration,
            "GRPC_STATUS_NUMBER" => Operator::GrpcStatus(StatusForm::Number),
            "HOSTNAME" => Operator::Hostname,
            "PROTOCOL" => Operator::Protocol,
            // the proxy forwards request bytes as soon as it reads them
            "REQUEST_DURATION" | "REQUEST_TX_DURATION" => Operator::RequestDuration,
            "REQUEST_HEADERS_BYTES" => Operator::RequestHeadersBytes,
            "REQUESTED_SERVER_NAME" => Operator::RequestedServerName,
            "RESPONSE_CODE" => Operator::ResponseCode,
            "RESPONSE_CODE_DETAILS" => Operator::ResponseCodeDetails,
            "RESPONSE_DURATION" => Operator::ResponseDuration,
            "RESPONSE_FLAGS" => Operator::ResponseFlags,
            "RESPONSE_FLAGS_LONG" => Operator::ResponseFlagsLong,
            "RESPONSE_HEADERS_BYTES" => Operator::ResponseHeadersBytes,
            "ROUTE_NAME" => Operator::RouteName,
            "STREAM_ID" => Operator::StreamId,
            "TRACE_ID" => Operator::TraceId,
            "UNIQUE_ID" => Operator::UniqueId,
            "UPSTREAM_CLUSTER" | "UPSTREAM_CLUSTER_RAW" => Operator::UpstreamCluster,
            "UPSTREAM_HOST_NAME" => Operator::UpstreamName(Both),
            "UPSTREAM_LOCAL_ADDRESS" => Operator::UpstreamLocal(Both),
            "UPSTREAM_LOCAL_PORT" => Operator::UpstreamLocal(Port),
            "UPSTREAM_PROTOCOL" => Operator::UpstreamProtocol,
            "UPSTREAM_REQUEST_ATTEMPT_COUNT" => Operator::AttemptCount,
            "UPSTREAM_HOST" | "UPSTREAM_REMOTE_ADDRESS" => Operator::UpstreamRemote(Both),
            "UPSTREAM_REMOTE_PORT" => Operator::UpstreamRemote(Port),
            _ => return self.tls(),
        };
        match self.argument {
            None | Some("") => Ok(plain),
            Some(_) => Err(self.wrong(NO_ARGUMENT)),
        }
    }

    fn request_header(&self) -> Result<Operator, TemplateError> {
        let (first, second) = self.alternatives()?;
        let header = |name: &str| {
            Header::parse(name).ok_or_else(|| self.wrong("the argument is not a header name"))
        };
        Ok(Operator::RequestHeader(
            header(first)?,
            second.map(header).transpose()?,
        ))
    }

    fn response_header(&self) -> Result<Operator, TemplateError> {
        let (first, second) = self.alternatives()?;
        let header = |name: &str| {
            HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| self.wrong("the argument is not a header name"))
        };
        Ok(Operator::ResponseHeader(
            header(first)?,
            second.map(header).transpose()?,
        ))
    }

    fn time(&self) -> Result<TimeFormat, TemplateError> {
        let format = TimeFormat::parse(self.argument.unwrap_or_default());
        format.ok_or_else(|| self.wrong(WRONG_TIME))
    }

    fn grpc_status(&self) -> Result<Operator, TemplateError> {
        let form = StatusForm::parse(self.argument.unwrap_or_default());
        form.map(Operator::GrpcStatus)
            .ok_or_else(|| self.wrong("the argument is no form of a status"))
    }

    /// Parses an IP address operator, with an optional prefix length.
    fn without_port(&self) -> Result<Operator, TemplateError> {
        let make = match self.name.strip_suffix("_WITHOUT_PORT").unwrap_or_default() {
            "DOWNSTREAM_DIRECT_LOCAL_ADDRESS" | "DOWNSTREAM_LOCAL_ADDRESS" => {
                Operator::DownstreamLocal
            }
            "DOWNSTREAM_DIRECT_REMOTE_ADDRESS" => Operator::DownstreamDirectRemote,
            "DOWNSTREAM_REMOTE_ADDRESS" => Operator::DownstreamRemote,
            "UPSTREAM_LOCAL_ADDRESS" => Operator::UpstreamLocal,
            "UPSTREAM_REMOTE_ADDRESS" => Operator::UpstreamRemote,
            "UPSTREAM_HOST_NAME" if self.argument.is_none_or(str::is_empty) => {
                return Ok(Operator::UpstreamName(AddressPart::Ip));
            }
            "UPSTREAM_HOST_NAME" => return Err(self.wrong(NO_ARGUMENT)),
            _ => return Ok(Operator::Absent),
        };
        let part = match self.argument {
            None | Some("") => AddressPart::Ip,
            Some(bits) => {
                let bits = bits.parse().ok().filter(|bits| *bits <= PREFIX_MAX);
                AddressPart::Network(bits.ok_or_else(|| self.wrong("expected bits of a network"))?)
            }
        };
        Ok(make(part))
    }

    /// Parses an operator for TLS, or one of Envoy's operators without a value here.
    fn tls(&self) -> Result<Operator, TemplateError> {
        let argument = self.argument.unwrap_or_default();
        type Make = fn(TlsField) -> Operator;
        let sides: [(&str, Make); 2] = [
            ("DOWNSTREAM_", Operator::DownstreamTls),
            ("UPSTREAM_", Operator::UpstreamTls),
        ];
        for (side, make) in sides {
            let name = self.name.strip_prefix(side);
            match name.and_then(|name| TlsField::parse(name, argument)) {
                Some(Parsed::Field(field)) => return Ok(make(field)),
                Some(Parsed::WrongFormat) => return Err(self.wrong(WRONG_TIME)),
                Some(Parsed::WrongArgument) => return Err(self.wrong(NO_ARGUMENT)),
                None => {}
            }
        }
        let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        if self.name.is_empty() || !self.name.bytes().all(is_name) {
            return Err(TemplateError::UnknownOperator(self.name.to_owned()));
        }
        Ok(Operator::Absent)
    }

    /// Splits `first?second` of a header argument.
    fn alternatives(&self) -> Result<(&'t str, Option<&'t str>), TemplateError> {
        let argument = self.required()?;
        Ok(match argument.split_once('?') {
            Some((first, second)) => (first, Some(second)),
            None => (argument, None),
        })
    }

    fn required(&self) -> Result<&'t str, TemplateError> {
        let argument = self.argument.filter(|argument| !argument.is_empty());
        argument.ok_or_else(|| self.wrong("needs an argument in parentheses"))
    }

    fn wrong(&self, problem: &'static str) -> TemplateError {
        TemplateError::Argument(self.name.to_owned(), problem.into())
    }
}
