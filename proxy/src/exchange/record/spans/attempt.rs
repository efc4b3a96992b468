//! Spans of attempts: one for each time that a request was sent to an endpoint.

use std::time::Duration;

use super::attributes::{Name, STATUS_CODE, SpanAttributes, SpanKind, Start, Url};
use super::events;
use super::kept::{Attempt, AttemptEnd, End, Spans, authority};
use crate::telemetry::{RequestProtocol, protobuf};
use crate::upstream::ConnectionInfo;
use traffic::certificate::PeerCertificate;
use traffic::registry::Address;

/// Time from which the phases of an attempt are attributes.
const PHASE_MIN: Duration = Duration::from_millis(1);

impl Spans {
    /// Writes the span of an attempt.
    pub(super) fn write_attempt(&self, attempt: &Attempt, end: &End<'_>, out: &mut Vec<u8>) {
        let context = &end.context;
        let is_grpc = end.record.protocol == RequestProtocol::Grpc;
        let is_last = self
            .attempts
            .last()
            .is_some_and(|last| last.number == attempt.number);
        let is_response = matches!(attempt.end, AttemptEnd::Response { .. });
        // the response of the last attempt went on to the client; its end is that of the request
        let is_passed_on = is_last && is_response && end.attempts == attempt.number;
        let ended = attempt.ended.filter(|_| !is_passed_on).unwrap_or(end.ended);
        let grpc_status = match &attempt.end {
            AttemptEnd::Response { grpc_status, .. } if is_grpc => match is_passed_on {
                true => end.record.grpc_status.or(*grpc_status),
                false => *grpc_status,
            },
            _ => None,
        };
        let start = Start {
            trace_id: context.trace_id,
            span_id: context.child(attempt.number),
            parent_id: context.span_id,
            flags: attempt.flags,
            is_parent_remote: false,
            state: self.head.state.as_ref(),
            kind: SpanKind::Client,
            times: [end.times.nanos(attempt.begun), end.times.nanos(ended)],
        };
        let failure = self.attempt_failure(attempt, grpc_status, is_passed_on);
        protobuf::message(out, 2, |out| {
            let cluster = attempt.picked.cluster().name();
            self.attempt_name(is_grpc, cluster, |name| start.write(out, name));
            let mut attributes = SpanAttributes::new(self, out);
            self.sent_attributes(attempt, &mut attributes, is_grpc);
            self.endpoint_attributes(attempt, &mut attributes);
            if let AttemptEnd::Response { code, .. } = &attempt.end {
                attributes.named_integer(&STATUS_CODE, (*code).into());
            }
            if let Some(status) = grpc_status {
                self.grpc_status(status, &mut attributes);
            }
            phases(attempt, &mut attributes);
            if let Some(failure) = &failure {
                failure.attribute(&mut attributes);
            }
            let dropped = attributes.finish();
            protobuf::integer(out, 10, dropped.into());
            events::write(attempt, start.times[0], self.settings.has_events, out);
            if let Some(failure) = &failure {
                failure.status(out);
            }
        });
    }

    /// Attributes of the request as it was sent.
    fn sent_attributes(
        &self,
        attempt: &Attempt,
        attributes: &mut SpanAttributes<'_>,
        is_grpc: bool,
    ) {
        attributes.method(&self.head.method);
        let (uri, host) = match &self.sent {
            Some((uri, host)) => (uri, host.as_ref()),
            None => (&self.head.uri, self.head.host.as_ref()),
        };
        let authority = authority(uri, host);
        let hop = attempt.picked.endpoint().hop.as_ref();
        let has_path = uri.path().starts_with('/');
        let prefix = hop.filter(|_| has_path).map_or("", |hop| &hop.path_prefix);
        attributes.full_url(&Url {
            scheme: self.scheme,
            prefix,
            uri,
            authority,
            has_query: self.settings.has_query,
            bytes_max: self.settings.path_bytes_max,
        });
        attributes.server(authority, self.scheme);
        if is_grpc {
            attributes.call(uri.path());
        }
        attributes.text("component", "proxy");
    }

    fn endpoint_attributes(&self, attempt: &Attempt, attributes: &mut SpanAttributes<'_>) {
        const RESENDS: Name = Name {
            semconv: "http.request.resend_count",
            envoy: "retry.count",
        };
        let picked = &attempt.picked;
        let cluster = picked.cluster().name();
        attributes.text("upstream_cluster", cluster.as_bytes());
        if attributes.has_envoy() {
            attributes.text("upstream_cluster.name", cluster.as_bytes());
        }
        if attempt.number > 1 {
            attributes.named_integer(&RESENDS, u64::from(attempt.number) - 1);
        }
        if let AttemptEnd::Response { ends, version, .. } = &attempt.end {
            attributes.version(*version);
            connection(ends, attributes);
        } else if let Address::Ip(address) = picked.endpoint().address {
            // none carried it to its end, and someone looks for the slow endpoint
            attributes.shown("strait.destination.endpoint", address);
            if attributes.has_envoy() {
                attributes.shown("upstream_address", address);
            }
        }
        match picked.pool() {
            Some(pool) => {
                attributes.text("strait.destination.cluster", &*pool.member);
                attributes.integer("strait.destination.tier", pool.tier.into());
            }
            None => {
                let stats = &picked.endpoint().stats;
                attributes.text("strait.destination.cluster", stats.cluster().as_bytes());
            }
        }
        if let Some(cause) = attempt.cause {
            attributes.text(
                match cause.is_failover {
                    true => "strait.failover.reason",
                    false => "strait.retry.reason",
                },
                cause.reason,
            );
        }
    }
}

/// Attributes of the connection that carried an attempt.
fn connection(ends: &ConnectionInfo, attributes: &mut SpanAttributes<'_>) {
    if let Address::Ip(address) = ends.remote {
        attributes.peer(address);
        if attributes.has_envoy() {
            attributes.shown("upstream_address", address);
        }
    }
    let tls = ends.tls.as_ref();
    let certificate = tls.and_then(|tls| tls.certificate.as_ref());
    let facts = certificate.and_then(|certificate| certificate.facts());
    if let Some(principal) = facts.and_then(|facts| facts.uri()) {
        attributes.text("strait.destination.principal", principal);
    }
    let own = tls.and_then(|tls| tls.own.as_ref());
    if let Some(principal) = own.and_then(|own| own.facts.uri()) {
        attributes.text("strait.source.principal", principal);
    }
}

/// Attributes of the phases that took long.
fn phases(attempt: &Attempt, attributes: &mut SpanAttributes<'_>) {
    let phases = attempt.phases;
    for (name, time) in [
        ("strait.wait_ms", Some(phases.wait())),
        ("strait.connect_ms", Some(phases.connect())),
        ("strait.tls_ms", Some(phases.tls())),
        ("strait.first_byte_ms", attempt.first_byte()),
    ] {
        if let Some(time) = time.filter(|time| *time >= PHASE_MIN) {
            attributes.milliseconds(name, time.as_secs_f64() * 1e3);
        }
    }
}
