//! Segments to text.

use std::io::Write;
use std::net::SocketAddr;

use http::{HeaderMap, HeaderName, Version};

use super::{AddressPart, Header, Operator, Segment, TemplateContext};

impl Segment {
    pub(super) fn print(&self, out: &mut Vec<u8>, context: &TemplateContext<'_>) {
        match self {
            Self::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Self::Operator {
                operator,
                chars_max,
            } => {
                let start = out.len();
                operator.print(out, context);
                if let Some(chars_max) = chars_max {
                    shorten(out, start, *chars_max);
                }
            }
        }
    }
}

/// Cuts what was printed from `start` on to `chars_max` characters; bytes that are not UTF-8 count one each.
fn shorten(out: &mut Vec<u8>, start: usize, chars_max: usize) {
    let printed = &out[start..];
    let kept = match std::str::from_utf8(printed) {
        Ok(text) => text
            .char_indices()
            .nth(chars_max)
            .map_or(text.len(), |(at, _)| at),
        Err(_) => chars_max.min(printed.len()),
    };
    out.truncate(start + kept);
}

impl Operator {
    fn print(&self, out: &mut Vec<u8>, context: &TemplateContext<'_>) {
        let text = match self {
            Self::DownstreamLocal(part) => return part.print(out, context.downstream_local),
            Self::DownstreamRemote(part) => return part.print(out, context.downstream_remote),
            Self::UpstreamRemote(part) => return part.print(out, context.upstream_remote),
            Self::StartTime(format) => return format.print(out, context.start_time),
            Self::ResponseCode if context.response_code == 0 => "",
            Self::ResponseCode => return print(out, context.response_code),
            Self::ResponseFlags => return print(out, context.response_flags),
            Self::RequestHeader(first, second) => {
                let find = |header: &Header| header.find(context);
                let value = find(first).or_else(|| find(second.as_ref()?));
                return out.extend_from_slice(value.unwrap_or_default());
            }
            Self::ResponseHeader(first, second) => {
                let find = |name: &HeaderName| first_line(context.response_headers, name);
                let value = find(first).or_else(|| find(second.as_ref()?));
                return out.extend_from_slice(value.unwrap_or_default());
            }
            Self::Environment(name) => context
                .environment
                .get(&**name)
                .map(String::as_str)
                .unwrap_or_default(),
            Self::Hostname => context.hostname,
            Self::Protocol => protocol(context.protocol),
            Self::RequestedServerName => context.requested_server_name.unwrap_or_default(),
            Self::ResponseCodeDetails => context.response_code_details,
            Self::RouteName => context.route_name,
            Self::UpstreamCluster => context.upstream_cluster,
        };
        out.extend_from_slice(text.as_bytes());
    }
}

impl AddressPart {
    fn print(self, out: &mut Vec<u8>, address: Option<SocketAddr>) {
        match (self, address) {
            (_, None) => {}
            (Self::Both, Some(address)) => print(out, address),
            (Self::Ip, Some(address)) => print(out, address.ip()),
            (Self::Port, Some(address)) => print(out, address.port()),
        }
    }
}

impl Header {
    fn find<'a>(&self, context: &TemplateContext<'a>) -> Option<&'a [u8]> {
        let text = match self {
            Self::Authority => context.authority,
            Self::Method => context.method,
            Self::Name(name) => return first_line(context.request_headers, name),
            Self::Path => context.path,
            Self::Scheme => context.scheme,
        };
        (!text.is_empty()).then_some(text.as_bytes())
    }
}

fn first_line<'a>(headers: Option<&'a HeaderMap>, name: &HeaderName) -> Option<&'a [u8]> {
    Some(headers?.get(name)?.as_bytes())
}

fn print(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing to memory does not fail.
    let _ = write!(out, "{value}");
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}
