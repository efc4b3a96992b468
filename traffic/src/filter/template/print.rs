//! Printing of segments.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;

use super::context::TemplateContext;
use super::header::{Header, first_line};
use super::identifiers::{trace_id, uuid};
use super::operator::{AddressPart, Operator, Segment};
use super::sizes::{request_bytes, response_bytes};
use super::write::{http_version, print, print_some, word};
use crate::telemetry::ResponseFlags;
use crate::trace::context::hex;

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

/// Shortens the text from `start` on to `chars_max` characters; each byte that is not UTF-8 counts as one.
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
            Self::Absent => "",
            Self::AttemptCount => return print(out, context.attempts),
            Self::BytesReceived => return print(out, context.bytes_received),
            // headers are sent before any body byte
            Self::BytesSent => {
                let sent = context.finished.map_or(0, |one| one.bytes_sent);
                return print(out, sent);
            }
            Self::DownstreamDirectRemote(part) => {
                return part.print(out, context.downstream_direct_remote);
            }
            Self::DownstreamLocal(part) => return part.print(out, context.downstream_local),
            Self::DownstreamRemote(part) => return part.print(out, context.downstream_remote),
            Self::DownstreamTls(field) => return field.print(out, context.downstream_tls),
            Self::UpstreamLocal(part) => return part.print(out, context.upstream_local),
            Self::UpstreamRemote(part) => return part.print(out, context.upstream_remote),
            Self::UpstreamTls(field) => return field.print(out, context.upstream_tls),
            Self::UpstreamName(part) => match context.upstream_name {
                Some(name) => name,
                None => return part.print(out, context.upstream_remote),
            },
            Self::Duration => return print(out, context.duration.as_millis()),
            Self::RequestDuration => return print_some(out, context.request_duration),
            Self::ResponseDuration => return print_some(out, context.response_duration),
            Self::EmitTime(format) => return format.print(out, context.now),
            Self::StartTime(format) => return format.print(out, context.start_time),
            Self::ResponseCode if context.response_code == 0 && context.finished.is_none() => "",
            Self::ResponseCode => return print(out, context.response_code),
            Self::ResponseFlags => return print(out, context.response_flags),
            Self::ResponseFlagsLong => return long_names(out, context.response_flags),
            Self::GrpcStatus(form) => return form.print(out, context),
            Self::RequestHeadersBytes => return print(out, request_bytes(context)),
            Self::ResponseHeadersBytes => return print(out, response_bytes(context)),
            Self::StreamId | Self::TraceId | Self::UniqueId => return self.print_id(out, context),
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
            Self::Log(operator) => return operator.print(out, context),
            Self::Protocol if context.finished.is_some_and(|one| one.is_tcp) => "",
            Self::Protocol => http_version(context.protocol),
            Self::RequestedServerName => context.requested_server_name.unwrap_or_default(),
            Self::ResponseCodeDetails => return word(out, context.response_code_details),
            Self::RouteName => context.route_name,
            Self::UpstreamCluster => context.upstream_cluster,
            Self::UpstreamProtocol => context.upstream_protocol,
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn print_id(&self, out: &mut Vec<u8>, context: &TemplateContext<'_>) {
        if let (Self::TraceId, Some(trace)) = (self, context.finished.and_then(|one| one.trace)) {
            return out.extend_from_slice(&hex::<16, 32>(trace.trace_id));
        }
        let id = match self {
            Self::StreamId => context.request_id.map(HeaderValue::as_bytes),
            Self::TraceId => context.request_headers.and_then(trace_id),
            _ => {
                if let Some(random) = context.random {
                    out.extend_from_slice(&uuid(&mut *random.borrow_mut()));
                }
                None
            }
        };
        out.extend_from_slice(id.unwrap_or_default());
    }
}

impl AddressPart {
    fn print(self, out: &mut Vec<u8>, address: Option<SocketAddr>) {
        match (self, address) {
            (_, None) => {}
            (Self::Both, Some(address)) => print(out, address),
            (Self::Ip, Some(address)) => print(out, address.ip()),
            (Self::Port, Some(address)) => print(out, address.port()),
            (Self::Network(bits), Some(address)) => {
                // a prefix too long for the address family has no network
                if let Ok(network) = IpNet::new(address.ip(), bits) {
                    print(out, network.trunc());
                }
            }
        }
    }
}

fn long_names(out: &mut Vec<u8>, flags: ResponseFlags) {
    let start = out.len();
    for name in flags.long_names() {
        if out.len() > start {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
    }
    if out.len() == start {
        out.push(b'-');
    }
}
