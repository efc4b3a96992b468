//! Text to segments.

use http::HeaderName;

use super::start_time::TimeFormat;
use super::{AddressPart, Header, Operator, Segment, TemplateError};

pub(super) fn segments(text: &str) -> Result<Vec<Segment>, TemplateError> {
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
        segments.push(inside.segment()?);
        rest = inside.rest;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        segments.push(Segment::Literal(literal.into()));
    }
    Ok(segments)
}

/// `NAME(argument):10%rest`, taken apart.
struct Inside<'t> {
    name: &'t str,
    argument: Option<&'t str>,
    length: Option<&'t str>,
    rest: &'t str,
}

impl<'t> Inside<'t> {
    /// `None` when the operator is not closed.
    fn read(text: &'t str) -> Option<Self> {
        let name_len = text.find(['(', ':', '%'])?;
        let (name, mut rest) = text.split_at(name_len);
        let mut argument = None;
        if let Some(inner) = rest.strip_prefix('(') {
            let (text, after) = inner.split_once(')')?;
            (argument, rest) = (Some(text), after);
        }
        let (length, rest) = rest.split_once('%')?;
        let length = (!length.is_empty()).then_some(length);
        Some(Self {
            name,
            argument,
            length,
            rest,
        })
    }

    fn segment(&self) -> Result<Segment, TemplateError> {
        let chars_max = match self.length {
            None => None,
            Some(length) => {
                let digits = length
                    .strip_prefix(':')
                    .and_then(|digits| digits.parse().ok());
                Some(digits.ok_or_else(|| self.wrong("expected `:` and a number, or `%`"))?)
            }
        };
        let operator = self.operator()?;
        Ok(Segment::Operator {
            operator,
            chars_max,
        })
    }

    fn operator(&self) -> Result<Operator, TemplateError> {
        use AddressPart::{Both, Ip, Port};
        let plain = match self.name {
            "ENVIRONMENT" => {
                return self
                    .required()
                    .map(|name| Operator::Environment(name.into()));
            }
            "REQ" => return self.request_header(),
            "RESP" => return self.response_header(),
            "START_TIME" => return self.start_time(),
            "DOWNSTREAM_LOCAL_ADDRESS" => Operator::DownstreamLocal(Both),
            "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT" => Operator::DownstreamLocal(Ip),
            "DOWNSTREAM_LOCAL_PORT" => Operator::DownstreamLocal(Port),
            "DOWNSTREAM_REMOTE_ADDRESS" => Operator::DownstreamRemote(Both),
            "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" => Operator::DownstreamRemote(Ip),
            "DOWNSTREAM_REMOTE_PORT" => Operator::DownstreamRemote(Port),
            "HOSTNAME" => Operator::Hostname,
            "PROTOCOL" => Operator::Protocol,
            "REQUESTED_SERVER_NAME" => Operator::RequestedServerName,
            "RESPONSE_CODE" => Operator::ResponseCode,
            "RESPONSE_CODE_DETAILS" => Operator::ResponseCodeDetails,
            "RESPONSE_FLAGS" => Operator::ResponseFlags,
            "ROUTE_NAME" => Operator::RouteName,
            "UPSTREAM_CLUSTER" => Operator::UpstreamCluster,
            "UPSTREAM_HOST" | "UPSTREAM_REMOTE_ADDRESS" => Operator::UpstreamRemote(Both),
            "UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" => Operator::UpstreamRemote(Ip),
            "UPSTREAM_REMOTE_PORT" => Operator::UpstreamRemote(Port),
            unknown => return Err(TemplateError::UnknownOperator(unknown.to_owned())),
        };
        match self.argument {
            None | Some("") => Ok(plain),
            Some(_) => Err(self.wrong("takes no argument")),
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

    fn start_time(&self) -> Result<Operator, TemplateError> {
        let format = TimeFormat::parse(self.argument.unwrap_or_default());
        format
            .map(Operator::StartTime)
            .ok_or_else(|| self.wrong("unknown or unfinished time specifier"))
    }

    /// `first?second` of a header argument.
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
        TemplateError::Argument(self.name.to_owned(), problem)
    }
}

impl Header {
    fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            ":authority" | "host" => Self::Authority,
            ":method" => Self::Method,
            ":path" => Self::Path,
            ":scheme" => Self::Scheme,
            name => Self::Name(HeaderName::from_bytes(name.as_bytes()).ok()?),
        })
    }
}
