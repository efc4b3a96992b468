//! A finished request as taps show it.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::kept::{Attempt, AttemptEnd, Spans, Tapped};
use super::status::failed_word;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::record::end::End;
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::runtime::dates;
use crate::snapshot::{Direction, Route};
use crate::telemetry::{
    TapTiming, TappedAttempt, TappedDestination, TappedRequest, TappedRule, is_credential,
    is_signature, redacted,
};
use traffic::filter::http_version;
use traffic::trace::TraceContext;
use traffic::trace::context::hex;

/// End of a request that a tap shows.
pub(in crate::exchange) struct TappedEnd<'a> {
    pub(in crate::exchange) end: &'a End<'a>,
    pub(in crate::exchange) connection: &'a Connection,
    pub(in crate::exchange) picked: Option<&'a PickedEndpoint>,
    pub(in crate::exchange) target: Option<&'a Target>,
    pub(in crate::exchange) started: Instant,
    /// Wall-clock time of `started`.
    pub(in crate::exchange) time: SystemTime,
}

impl Spans {
    /// Puts together what taps show of the request.
    pub(in crate::exchange) fn tapped(
        &self,
        tapped: &Tapped,
        end: &TappedEnd<'_>,
    ) -> TappedRequest {
        let (connection, record) = (end.connection, end.end.record);
        let picked = end.picked.map(Where::of);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (cluster, tier, endpoint) = match picked {
            Some(one) => (Some(one.cluster), one.tier, Some(one.endpoint)),
            None => (None, None, None),
        };
        TappedRequest {
            time: dates::rfc3339(end.time),
            listener: connection.listener.address.to_string(),
            direction: direction(self.direction).to_owned(),
            client: self.client.ip().to_canonical().to_string(),
            client_identity: connection.peer().principal().map(str::to_owned),
            client_tls_ms: (tapped.handshake_micros > 0)
                .then(|| f64::from(tapped.handshake_micros) / 1000.0),
            protocol: http_version(self.head.version).to_owned(),
            method: self.head.method.as_str().to_owned(),
            scheme: self.scheme.as_str().to_owned(),
            host: text(self.authority()),
            path: self.shown_path(),
            request_id: self.request_id.as_ref().map(|id| text(id.as_bytes())),
            trace_id: end.end.trace.map(trace_id),
            status: record.code,
            grpc_status: record.grpc_status,
            flags: record.flags.to_string(),
            details: end.end.details.to_owned(),
            rule: self.route().map(rule),
            destination: end.target.map(destination),
            cluster,
            tier,
            endpoint,
            attempts_total: end.end.attempts,
            attempts: self.attempts.iter().map(|one| shown(one, end)).collect(),
            timing: timing(end.end),
            received_bytes: record.request_bytes,
            sent_bytes: record.response_bytes,
        }
    }

    /// Path and query, without the values of parameters that are credentials.
    fn shown_path(&self) -> String {
        let uri = &self.head.uri;
        let is_secret = |name: &str| is_credential(name) || is_signature(name);
        match uri.query() {
            Some(query) => format!("{}?{}", uri.path(), redacted(query, is_secret)),
            None => uri.path().to_owned(),
        }
    }
}

/// An endpoint with its cluster.
struct Where {
    cluster: String,
    tier: Option<u8>,
    endpoint: String,
}

impl Where {
    fn of(picked: &PickedEndpoint) -> Self {
        let (endpoint, pool) = (picked.endpoint(), picked.pool());
        Self {
            cluster: match pool {
                Some(pool) => pool.member.to_string(),
                None => endpoint.stats.cluster().to_string(),
            },
            tier: pool.map(|pool| pool.tier),
            endpoint: endpoint.address.to_string(),
        }
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Gateway => "gateway",
        Direction::Inbound => "inbound",
        Direction::Outbound => "outbound",
    }
}

fn trace_id(context: &TraceContext) -> String {
    let digits: [u8; 32] = hex(context.trace_id);
    String::from_utf8_lossy(&digits).into_owned()
}

fn rule(route: &Route) -> TappedRule {
    let provenance = &route.provenance;
    TappedRule {
        name: route.name.to_string(),
        object: provenance.object.to_string(),
        file: provenance.file.to_string(),
        line: provenance.line,
    }
}

/// The service of a target, whose name is `DIRECTION|PORT|SUBSET|HOST`.
fn destination(target: &Target) -> TappedDestination {
    let cluster = target.cluster();
    let mut parts = cluster.name().split('|').skip(1);
    let (port, subset) = (parts.next(), parts.next());
    TappedDestination {
        name: cluster.name().to_string(),
        host: cluster.host.to_string(),
        port: port.and_then(|port| port.parse().ok()),
        subset: subset
            .filter(|subset| !subset.is_empty())
            .map(str::to_owned),
    }
}

fn shown(attempt: &Attempt, end: &TappedEnd<'_>) -> TappedAttempt {
    let Where {
        cluster,
        tier,
        endpoint,
    } = Where::of(&attempt.picked);
    let phases = attempt.phases;
    let ended = attempt
        .ended
        .unwrap_or(end.started + end.end.record.duration);
    let mut shown = TappedAttempt {
        endpoint,
        cluster,
        tier,
        reason: attempt.cause.map(|cause| cause.reason.to_owned()),
        failover: attempt.cause.is_some_and(|cause| cause.is_failover),
        opened: phases.is_opened,
        stale: phases.is_stale,
        begin_ms: millis(attempt.begun.saturating_duration_since(end.started)),
        wait_ms: millis(phases.wait()),
        connect_ms: millis(phases.connect()),
        tls_ms: millis(phases.tls()),
        first_byte_ms: attempt.first_byte().map(millis),
        total_ms: millis(ended.saturating_duration_since(attempt.begun)),
        ..TappedAttempt::default()
    };
    match &attempt.end {
        AttemptEnd::Pending => {}
        AttemptEnd::Response {
            code, grpc_status, ..
        } => {
            shown.status = Some(*code);
            shown.grpc_status = *grpc_status;
        }
        AttemptEnd::Failed { kind, transport } => {
            shown.error = Some(failed_word(*kind, transport.as_deref()).to_owned());
            shown.transport_error = transport.as_deref().map(str::to_owned);
        }
    }
    shown
}

fn timing(end: &End<'_>) -> TapTiming {
    let first_byte = end.request_time.zip(end.upstream_time);
    TapTiming {
        request_ms: end.request_time.map(millis),
        first_byte_ms: first_byte.map(|(request, upstream)| millis(request + upstream)),
        last_byte_ms: millis(end.record.duration),
    }
}

/// Milliseconds with three decimals.
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
