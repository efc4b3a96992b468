//! Spans of requests of the proxy's own: copies for mirrors, and calls of services that help to decide.

use std::sync::Arc;

use http::request::Parts;
use hyper::header::HOST;
use hyper::{Method, Uri};
use tokio::time::Instant;

use super::attributes::{STATUS_CODE, SpanAttributes, SpanKind, Start, Url};
use super::kept::{Spans, Times, authority};
use super::names;
use super::status::Failure;
use crate::exchange::select::target::PickedEndpoint;
use crate::exchange::worker::Worker;
use crate::runtime::clock;
use crate::telemetry::{Counter, protobuf};
use traffic::filter::Scheme;
use traffic::trace::{SpanNames, TraceContext, TracingSettings};

/// Purpose of a request of the proxy's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exchange) enum Purpose {
    /// A call of a service.
    Call {
        /// Whether it is a call over gRPC.
        is_grpc: bool,
    },
    /// A copy for a mirror.
    Mirror,
}

/// A request of the proxy's own as it goes out.
pub(in crate::exchange) struct OwnHead<'a> {
    pub(in crate::exchange) purpose: Purpose,
    pub(in crate::exchange) picked: &'a PickedEndpoint,
    pub(in crate::exchange) parts: &'a Parts,
}

/// Span of a request in flight.
pub(in crate::exchange) struct OwnSpan {
    settings: Arc<TracingSettings>,
    context: TraceContext,
    span_id: [u8; 8],
    times: Times,
    begun: Instant,
    purpose: Purpose,
    cluster: Arc<str>,
    method: Method,
    scheme: Scheme,
    uri: Uri,
    authority: Vec<u8>,
}

impl OwnSpan {
    /// Begins the span of a request with this head. It is the child of the server span.
    pub(in crate::exchange) fn begin(
        spans: &Spans,
        context: &TraceContext,
        span_id: [u8; 8],
        times: Times,
        head: OwnHead<'_>,
    ) -> Box<Self> {
        let OwnHead {
            purpose,
            picked,
            parts,
        } = head;
        Box::new(Self {
            settings: Arc::clone(&spans.settings),
            context: *context,
            span_id,
            times,
            begun: clock::now(),
            purpose,
            cluster: Arc::clone(picked.cluster().name()),
            method: parts.method.clone(),
            scheme: match purpose {
                Purpose::Call { .. } => Scheme::Http,
                Purpose::Mirror => spans.scheme,
            },
            uri: parts.uri.clone(),
            authority: authority(&parts.uri, parts.headers.get(HOST)).to_vec(),
        })
    }

    /// Ends the span with the status of the response, if there was one, and the failure, if it is one.
    pub(in crate::exchange) fn finish(
        &self,
        worker: &Worker,
        status: Option<u16>,
        failure: Option<Failure<'_>>,
    ) {
        let failure = failure.as_ref();
        let added = worker
            .traces
            .queue
            .add(1, |out| self.write(out, status, failure));
        if !added {
            worker.count(Counter::TraceSpansQueue);
        }
    }

    /// Path of the gRPC method, without its first slash.
    fn call(&self) -> &str {
        self.uri.path().trim_start_matches('/')
    }

    fn write_start(&self, start: &Start<'_>, out: &mut Vec<u8>) {
        let method = names::method(&self.method).as_bytes();
        let cluster = self.cluster.as_bytes();
        match (self.settings.names, self.purpose) {
            (SpanNames::Istio, Purpose::Mirror) => start.write(out, &[b"mirror"]),
            (SpanNames::Istio, Purpose::Call { .. }) => {
                start.write(out, &[b"async ", cluster, b" egress"]);
            }
            (SpanNames::Semconv, Purpose::Mirror) => start.write(out, &[b"mirror ", method]),
            (SpanNames::Semconv, Purpose::Call { is_grpc: true }) => {
                start.write(out, &[self.call().as_bytes()]);
            }
            (SpanNames::Semconv, Purpose::Call { is_grpc: false }) => start.write(out, &[method]),
        }
    }

    fn write(&self, out: &mut Vec<u8>, status: Option<u16>, failure: Option<&Failure<'_>>) {
        let context = &self.context;
        let start = Start {
            trace_id: context.trace_id,
            span_id: self.span_id,
            parent_id: context.span_id,
            flags: context.flags,
            is_parent_remote: false,
            state: None,
            kind: SpanKind::Client,
            times: [self.begun, clock::now()].map(|at| self.times.nanos(at)),
        };
        protobuf::message(out, 2, |out| {
            self.write_start(&start, out);
            let mut attributes = SpanAttributes::untagged(&self.settings, out);
            self.attributes(&mut attributes);
            if let Some(status) = status {
                attributes.named_integer(&STATUS_CODE, status.into());
            }
            if let Some(failure) = failure {
                failure.attribute(&mut attributes);
            }
            if self.purpose == Purpose::Mirror {
                protobuf::message(out, 13, |out| {
                    protobuf::bytes(out, 1, &context.trace_id);
                    protobuf::bytes(out, 2, &context.child(1));
                });
            }
            if let Some(failure) = failure {
                failure.status(out);
            }
        });
    }

    fn attributes(&self, attributes: &mut SpanAttributes<'_>) {
        attributes.method(&self.method);
        attributes.full_url(&Url {
            scheme: self.scheme,
            prefix: "",
            uri: &self.uri,
            authority: &self.authority,
            has_query: self.settings.has_query,
            bytes_max: self.settings.path_bytes_max,
        });
        attributes.server(&self.authority, self.scheme);
        attributes.cluster(&self.cluster);
        attributes.text("component", "proxy");
        match self.purpose {
            Purpose::Call { is_grpc: true } => {
                attributes.call(self.uri.path());
            }
            Purpose::Call { is_grpc: false } => {}
            Purpose::Mirror => attributes.boolean("strait.mirror", true),
        }
    }
}
