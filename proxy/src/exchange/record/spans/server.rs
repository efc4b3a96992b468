//! The span of the server: the request as the client sees it.

use hyper::Method;

use super::attributes::{Name, STATUS_CODE, SpanAttributes, SpanKind, Start, Url};
use super::kept::{End, Spans};
use super::status::{GRPC_STATUS, grpc_name};
use crate::snapshot::Direction;
use crate::telemetry::{RequestProtocol, protobuf};

const USER_AGENT: Name = Name {
    semconv: "user_agent.original",
    envoy: "user_agent",
};

impl Spans {
    /// Writes the span.
    pub(super) fn write_server(&self, end: &End<'_>, out: &mut Vec<u8>) {
        let context = &end.context;
        let is_grpc = end.record.protocol == RequestProtocol::Grpc;
        let start = Start {
            trace_id: context.trace_id,
            span_id: context.span_id,
            parent_id: context.parent_id,
            flags: context.flags,
            is_parent_remote: context.has_parent(),
            state: self.head.state.as_ref(),
            kind: match context.is_single && self.direction == Direction::Outbound {
                true => SpanKind::Client,
                false => SpanKind::Server,
            },
            times: [end.times.started(), end.times.nanos(end.ended)],
        };
        let failure = self.server_failure(end);
        protobuf::message(out, 2, |out| {
            let port = end.connection.client.destination.port();
            self.server_name(is_grpc, port, |name| start.write(out, name));
            let own = end.own;
            out.extend_from_slice(&own.node);
            if self.settings.has_istio_tags {
                out.extend_from_slice(&own.istio);
            }
            let mut attributes = SpanAttributes::new(self, out);
            self.request_attributes(end, &mut attributes);
            self.response_attributes(end, &mut attributes);
            if let Some(failure) = &failure {
                failure.attribute(&mut attributes);
            }
            let dropped = attributes.finish();
            protobuf::integer(out, 10, dropped.into());
            if let Some(failure) = &failure {
                failure.status(out);
            }
        });
    }

    fn request_attributes(&self, end: &End<'_>, attributes: &mut SpanAttributes<'_>) {
        let head = &self.head;
        attributes.method(&head.method);
        let url = Url {
            scheme: self.scheme,
            prefix: "",
            uri: &head.uri,
            authority: self.authority(),
            has_query: self.settings.has_query,
            bytes_max: self.settings.path_bytes_max,
        };
        if attributes.has_semconv() {
            let path = head.uri.path().as_bytes();
            attributes.parts("url.path", &[path], url.bytes_max);
            if let Some(query) = url.query() {
                attributes.text("url.query", &*query);
            }
            attributes.text("url.scheme", self.scheme.as_str());
        }
        if attributes.has_envoy() {
            attributes.url("http.url", &url);
        }
        if let Some(route) = self.http_route() {
            let parts = route.map(str::as_bytes);
            attributes.parts("http.route", &parts, url.bytes_max);
        }
        attributes.server(self.authority(), self.scheme);
        attributes.ip("client.address", self.client.ip().to_canonical());
        attributes.peer(end.connection.client.source);
        attributes.version(head.version);
        if let Some(agent) = &head.user_agent {
            attributes.named(&USER_AGENT, agent.as_bytes());
        }
        let id = self.request_id.as_ref();
        attributes.header("guid:x-request-id", id);
        attributes.header("guid:x-client-trace-id", head.client_trace_id.as_ref());
        if end.record.protocol == RequestProtocol::Grpc {
            attributes.call(head.uri.path());
            attributes.header("grpc.content_type", head.content_type.as_ref());
            attributes.header("grpc.timeout", head.grpc_timeout.as_ref());
            if attributes.has_envoy() {
                attributes.text("grpc.authority", self.authority());
            }
        }
    }

    fn response_attributes(&self, end: &End<'_>, attributes: &mut SpanAttributes<'_>) {
        let record = end.record;
        match record.code {
            0 if attributes.has_envoy() => attributes.text(STATUS_CODE.envoy, "0"),
            0 => {}
            code => attributes.named_integer(&STATUS_CODE, code.into()),
        }
        if let Some(status) = record.grpc_status {
            self.grpc_status(status, attributes);
        }
        let cluster = match (end.picked, end.target) {
            (Some(picked), _) => Some(picked.cluster()),
            (None, Some(target)) => Some(target.cluster()),
            (None, None) => None,
        };
        if let Some(cluster) = cluster {
            attributes.cluster(cluster.name());
        }
        attributes.shown("response_flags", record.flags);
        attributes.integer("request_size", record.request_bytes);
        attributes.integer("response_size", record.response_bytes);
        attributes.text("strait.response_code_details", end.details);
        if let Some(route) = self.route() {
            attributes.place("strait.rule", &route.provenance);
        }
        if end.attempts > 1 {
            attributes.integer("strait.attempts", end.attempts.into());
        }
        if end.is_tunnel {
            let is_connect = self.head.method == Method::CONNECT;
            let kind = if is_connect { "connect" } else { "websocket" };
            attributes.text("strait.tunnel", kind);
        }
        if let Some(by) = end.context.decided_by.attribute() {
            attributes.text("strait.sampled_by", by);
        }
        if let Some(principal) = end.connection.peer().principal() {
            attributes.text("strait.source.principal", principal);
        }
        let own = end.connection.tls.as_ref();
        if let Some(principal) = own.and_then(|handshake| handshake.own_principal()) {
            attributes.text("strait.destination.principal", principal);
        }
    }

    /// Writes a gRPC status: by name, and as a number under Envoy's name.
    pub(super) fn grpc_status(&self, status: u8, attributes: &mut SpanAttributes<'_>) {
        if attributes.has_semconv() {
            attributes.text(GRPC_STATUS.semconv, grpc_name(status));
        }
        if attributes.has_envoy() {
            attributes.text(GRPC_STATUS.envoy, itoa::Buffer::new().format(status));
        }
    }
}
