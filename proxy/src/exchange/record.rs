//! The outcome of an exchange, reported once to metrics and the access log.
//!
//! A [`Record`] begins with the request's head and assumes a downstream disconnect; the end of the exchange sets the
//! real outcome. A future that is dropped half-way is thus reported correctly.

pub mod end;
pub mod health;
mod limits;
pub mod log;
pub mod log_choice;
pub mod peer;
mod phases;
pub mod planned;
mod refused;
pub(in crate::exchange) mod spans;
mod tap;
pub(in crate::exchange) mod tapped;
mod traced;

use std::borrow::Cow;
use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::body::Frame;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Request, Response};
use tokio::time::Instant;

use self::end::End;
use self::log::LogFields;
use self::spans::Spans;
use crate::exchange::body::progress::Progress;
use crate::exchange::downstream::body::BodyFault;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::message::grpc_messages::Messages;
use crate::exchange::message::local_reply::{self, LocalReply};
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::pool::{Incoming, Phases};
use crate::runtime::clock;
use crate::snapshot::Route;
use crate::telemetry::{
    Gauge, RequestProtocol, RequestRecord, ResponseFlags, RouteStats, RuleStats,
};
use traffic::error::{Error, Kind};
use traffic::filter::timeout;
use traffic::limit::RouteLimits;
use traffic::trace::TraceContext;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Ready once policies deny a client, with the reason for the access log.
pub type Denial = Pin<Box<dyn Future<Output = String>>>;

/// Outcome of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Sent completely.
    Complete,
    /// The route's timeout expired during the body.
    TimedOut,
    /// The upstream failed during the body.
    UpstreamBroke(Kind),
}

/// Everything that the end of an exchange reports.
pub struct Record {
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    started: Instant,
    /// Wall-clock time of `started`, computed on first use.
    start_time: Cell<Option<SystemTime>>,
    /// Time when forwarding began: `started`, or the end of a delay.
    forwarding_began: Instant,
    /// The endpoint of the request; counted as active until the record ends.
    picked: Option<PickedEndpoint>,
    /// The cluster of the request.
    target: Option<Target>,
    /// Metrics of a rule with a `statPrefix`.
    route_stats: Option<Arc<RouteStats>>,
    /// Metrics of the rule.
    rule_stats: Option<Arc<RuleStats>>,
    progress: Option<Rc<Progress>>,
    log: Option<Box<LogFields>>,
    trace: Option<TraceContext>,
    /// Data for spans and taps; `None` if nothing reads it.
    spans: Option<Box<Spans>>,
    code: u16,
    flags: ResponseFlags,
    /// Flags to add in any case.
    added: ResponseFlags,
    /// Number of attempts.
    attempts: u32,
    /// Phases of the last attempt.
    pub(in crate::exchange) phases: Cell<Phases>,
    /// Whether they are not counted yet.
    phases_pending: bool,
    /// Status of the last attempt; 0 for none.
    attempt_code: u16,
    details: Cow<'static, str>,
    grpc: bool,
    /// Whether the client speaks gRPC-Web, and gets local replies in plain HTTP.
    web: bool,
    /// Reason why the body was refused, for a body that can be.
    body_fault: Option<BodyFault>,
    /// Limits that have counted the request before it was authorized.
    counted_by: Option<Arc<RouteLimits>>,
    /// Whether the method is HEAD.
    head: bool,
    grpc_status: Option<u8>,
    /// Bytes that a tunnel received from the client; those of a request's body are in `progress`.
    received_bytes: u64,
    sent_bytes: u64,
    /// Counter of the response's gRPC messages.
    messages: Messages,
    upstream_time: Option<Duration>,
    /// Whether the connection, or its stream, was switched to another protocol.
    tunnel: bool,
    ended: bool,
    /// Waits for a change of policies that denies the request, if it becomes a tunnel.
    pub(super) denial: Option<Denial>,
}

impl Record {
    /// Begins a record when a request's head was read.
    pub fn begin<B>(
        worker: &Rc<Worker>,
        connection: &Rc<Connection>,
        log: Option<Box<LogFields>>,
        request: &Request<B>,
    ) -> Box<Self> {
        worker.raise(Gauge::RequestsActive);
        let started = clock::now();
        Box::new(Self {
            worker: Rc::clone(worker),
            connection: Rc::clone(connection),
            started,
            start_time: Cell::new(None),
            forwarding_began: started,
            picked: None,
            target: None,
            route_stats: None,
            rule_stats: None,
            progress: None,
            log,
            trace: None,
            spans: None,
            code: 0,
            flags: ResponseFlags::DC,
            added: ResponseFlags::NONE,
            attempts: 0,
            phases: Cell::default(),
            phases_pending: false,
            attempt_code: 0,
            details: "downstream_remote_disconnect".into(),
            grpc: timeout::is_grpc(request.headers()),
            web: false,
            body_fault: None,
            counted_by: None,
            head: request.method() == Method::HEAD,
            grpc_status: None,
            received_bytes: 0,
            sent_bytes: 0,
            messages: Messages::default(),
            upstream_time: None,
            tunnel: false,
            ended: false,
            denial: None,
        })
    }

    /// The worker of the request.
    pub fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    /// The connection that the request came on.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Time when the request's head was read.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Wall-clock time of [`Self::started`]; the same at each call.
    pub fn start_time(&self) -> SystemTime {
        let known = self.start_time.get();
        let time = known.unwrap_or_else(|| {
            let now = SystemTime::now();
            now.checked_sub(self.started.elapsed()).unwrap_or(now)
        });
        self.start_time.set(Some(time));
        time
    }

    /// Whether the request is gRPC, or translated from gRPC-Web.
    pub fn is_grpc(&self) -> bool {
        self.grpc
    }

    /// Whether local replies to the request are in gRPC form.
    pub fn replies_grpc(&self) -> bool {
        self.grpc && !self.web
    }

    /// Records that a gRPC-Web request was translated to gRPC.
    pub fn record_translation(&mut self, fault: BodyFault) {
        self.grpc = true;
        self.web = true;
        self.body_fault = Some(fault);
    }

    /// Records the cluster of the request.
    pub fn record_target(&mut self, target: &Target) {
        if let Some(log) = &mut self.log {
            log.record_cluster(target.cluster().name());
        }
        self.target = Some(target.clone());
    }

    /// Records the endpoint of the first attempt, and counts the request as active there.
    pub fn record_first_endpoint(&mut self, picked: PickedEndpoint, progress: &Rc<Progress>) {
        self.record_attempt(picked);
        if self.grpc {
            progress.count_messages();
        }
        self.progress = Some(Rc::clone(progress));
    }

    /// Records the endpoint of an attempt, and moves the active request there from the previous endpoint.
    pub fn record_attempt(&mut self, picked: PickedEndpoint) {
        self.attempts += 1;
        self.phases_pending = true;
        self.begin_attempt_span(&picked);
        if let Some(before) = self.enter(picked) {
            before.attempted(std::mem::take(&mut self.attempt_code), &self.worker);
        }
    }

    /// Records the head of the response for the access log.
    pub fn record_logged_head(&mut self, headers: &HeaderMap) {
        if let Some(log) = &mut self.log {
            log.record_response(headers);
        }
    }

    /// Changes the endpoint of an attempt that had no connection yet.
    pub fn replace_endpoint(&mut self, picked: PickedEndpoint) {
        self.move_attempt_span(&picked);
        self.enter(picked);
    }

    /// Counts the request as active at an endpoint instead of the previous one, which is returned.
    fn enter(&mut self, picked: PickedEndpoint) -> Option<PickedEndpoint> {
        picked.enter();
        let before = self.picked.replace(picked)?;
        before.endpoint().state.leave();
        Some(before)
    }

    /// Records the status of an attempt, if it got a response.
    pub fn record_attempt_result(&mut self, attempted: &Result<Response<Incoming>, Error>) {
        let status = attempted.as_ref().map(Response::status);
        self.attempt_code = status.map_or(0, |status| status.as_u16());
        self.end_attempt_span(attempted);
        self.count_phases();
    }

    /// Number of attempts.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Fields of the access log line, if there will be one.
    pub fn log_mut(&mut self) -> Option<&mut LogFields> {
        self.log.as_deref_mut()
    }

    /// Records the response's head, as sent to the client.
    pub fn record_response_head(
        &mut self,
        code: u16,
        flags: ResponseFlags,
        details: impl Into<Cow<'static, str>>,
    ) {
        self.code = code;
        self.flags = flags;
        self.details = details.into();
    }

    /// Adds a flag that is kept whatever the outcome.
    pub fn add_flags(&mut self, flags: ResponseFlags) {
        self.added |= flags;
    }

    /// Records that forwarding begins only now; the time before is not the upstream's.
    pub fn record_forwarding_start(&mut self) {
        self.forwarding_began = clock::now();
    }

    /// Socket address of the endpoint, if it has one.
    pub fn upstream(&self) -> Option<SocketAddr> {
        self.picked.as_ref()?.endpoint().address.socket()
    }

    /// DNS name of the endpoint, if the name itself is the endpoint.
    pub fn upstream_name(&self) -> Option<&str> {
        self.picked.as_ref()?.dns_name()
    }

    /// Time from the beginning of the request to its last byte, if that was read.
    pub fn request_took(&self) -> Option<Duration> {
        let ended = self.progress.as_ref()?.ended(self.forwarding_began)?;
        Some(ended.saturating_duration_since(self.started))
    }

    /// Number of bytes of the request's body so far.
    pub fn received(&self) -> u64 {
        self.progress
            .as_ref()
            .map_or(0, |progress| progress.bytes())
    }

    /// Response flags so far.
    pub fn flags(&self) -> ResponseFlags {
        self.flags | self.added
    }

    /// Response code details, in Envoy's words.
    pub fn details(&self) -> &str {
        &self.details
    }

    /// Creates and records a local reply.
    pub fn reply(&mut self, local: &LocalReply) -> Response<Bytes> {
        self.connection.answered_here.set(true);
        let mut response = local.response(self.replies_grpc());
        if self.head {
            local_reply::headers_only(&mut response);
        }
        let code = response.status().as_u16();
        self.record_response_head(code, local.flags, local.details.clone());
        self.record_grpc_status(response.headers());
        self.sent_bytes = response.body().len() as u64;
        self.count_local_reply(local.flags);
        response
    }

    fn count_local_reply(&self, flags: ResponseFlags) {
        let counters = &self.worker.telemetry.counters;
        counters.local_reply(self.worker.id, flags);
    }

    /// Records a direct response of a route.
    pub fn record_direct_response(&mut self, response: &Response<Bytes>) {
        self.record_rule_response(response, "direct_response");
    }

    /// Records a response that a rule made itself, with these details.
    pub fn record_rule_response(&mut self, response: &Response<Bytes>, details: &'static str) {
        self.connection.answered_here.set(true);
        let code = response.status().as_u16();
        self.record_response_head(code, ResponseFlags::NONE, details);
        self.record_grpc_status(response.headers());
        self.count_local_reply(ResponseFlags::NONE);
        self.sent_bytes = response.body().len() as u64;
    }

    /// Records the AUDIT policy that matched the request.
    pub fn record_audit(&mut self, policy: &Arc<str>) {
        if let Some(log) = &mut self.log {
            log.record_audit(policy);
        }
    }

    /// Records the route of a request that a policy denies: it counts for the first destination.
    pub fn record_denial(&mut self, snapshot: &SnapshotRef, route: &Route) {
        self.record_route(route);
        let destination = route
            .split
            .as_ref()
            .and_then(|split| split.entries().next());
        let target = destination.and_then(|(_, one)| Target::find(snapshot, one.cluster));
        if let Some(target) = target {
            self.record_target(&target);
        }
    }

    /// Records the route of the request.
    pub fn record_route(&mut self, route: &Route) {
        if let Some(log) = &mut self.log
            && !route.name.is_empty()
        {
            log.record_route(&route.name);
        }
        self.route_stats.clone_from(&route.stats);
        self.rule_stats.clone_from(&route.rule_stats);
    }

    /// Records the arrival of the upstream's response head. Returns the time since the request's last byte, or `None`
    /// if the response came first.
    pub fn record_upstream_response(&mut self) -> Option<Duration> {
        let ended = self.progress.as_ref()?.ended(self.forwarding_began)?;
        self.upstream_time = Some(clock::now().saturating_duration_since(ended));
        self.upstream_time
    }

    /// Records that the exchange has become a tunnel.
    pub fn record_tunnel(&mut self) {
        self.tunnel = true;
        let tunnels = &self.connection.tunnels;
        tunnels.set(tunnels.get() + 1);
    }

    /// Records that policies have denied a tunnel.
    pub fn record_denied_tunnel(&mut self, reason: String) {
        self.details = reason.into();
    }

    /// Records a gRPC status in headers or trailers.
    pub fn record_grpc_status(&mut self, headers: &HeaderMap) {
        if self.grpc {
            self.grpc_status = grpc_status(headers).or(self.grpc_status);
        }
    }

    /// Records a frame of the response's body.
    pub fn record_frame(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            self.sent_bytes += data.len() as u64;
            if self.grpc {
                self.messages.saw(data);
            }
        } else if let Some(trailers) = frame.trailers_ref() {
            self.record_grpc_status(trailers);
            if let Some(log) = &mut self.log {
                log.record_trailers(trailers);
            }
        }
    }

    /// Records bytes that a tunnel received from and sent to the client.
    pub fn record_tunnel_bytes(&mut self, received: u64, sent: u64) {
        self.received_bytes += received;
        self.sent_bytes += sent;
    }

    /// Ends the record with this outcome: reports to metrics and access log.
    pub fn finish(mut self: Box<Self>, ending: Ending) {
        match ending {
            Ending::Complete => (),
            Ending::TimedOut => {
                self.flags = ResponseFlags::UT;
                self.details = "upstream_response_timeout".into();
            }
            Ending::UpstreamBroke(kind) => {
                let outcome = health::of_failure(kind);
                if let (Some(picked), Some(outcome)) = (&self.picked, outcome) {
                    picked.report(outcome);
                }
                self.break_attempt_span();
                self.flags = match kind {
                    Kind::UpstreamReset => ResponseFlags::UR,
                    Kind::UpstreamProtocol => ResponseFlags::UPE,
                    _ => ResponseFlags::UC,
                };
                self.details = match kind {
                    Kind::UpstreamReset => "upstream_reset_after_response_started{remote_reset}",
                    Kind::UpstreamProtocol => {
                        "upstream_reset_after_response_started{protocol_error}"
                    }
                    _ => "upstream_reset_after_response_started{connection_termination}",
                }
                .into();
            }
        }
        self.ended = true;
    }

    fn report(&mut self) {
        self.report_body();
        let duration = clock::now().saturating_duration_since(self.started);
        self.report_phases(duration);
        let worker = &self.worker;
        worker.lower(Gauge::RequestsActive);
        let body_bytes = self.progress.as_ref().map_or(0, |body| body.bytes());
        let stats = match (&self.picked, &self.target) {
            (Some(picked), _) => &picked.endpoint().stats,
            (None, Some(target)) => &target.cluster().stats,
            (None, None) => &worker.unrouted,
        };
        let record = RequestRecord {
            code: self.code,
            flags: self.flags(),
            protocol: match self.grpc {
                true => RequestProtocol::Grpc,
                false => RequestProtocol::Http,
            },
            grpc_status: self.grpc_status,
            security: peer::security(&self.connection, stats.labels().reporter),
            duration,
            request_bytes: body_bytes + self.received_bytes,
            response_bytes: self.sent_bytes,
            request_messages: self.progress.as_ref().map_or(0, |one| one.messages()),
            response_messages: self.messages.count(),
            trace: self.exemplar(duration),
        };
        let handshake = self.connection.tls.as_deref();
        let of_peer = peer::stats(handshake, stats, &worker.telemetry.stats);
        let stats = of_peer.as_ref().unwrap_or(stats);
        if !self.log.as_ref().is_some_and(|log| log.counts()) {
            stats.record(worker.id, &record);
        }
        if let Some(of_rule) = &self.route_stats {
            of_rule.record(worker.id, record.code);
        }
        if let Some(of_rule) = &self.rule_stats {
            of_rule.record(worker.id, record.code);
        }
        let has_spans = self.exported().is_some();
        let mut spans = self.spans.take();
        if self.log.is_some() || spans.is_some() {
            let end = End {
                record: &record,
                details: &self.details,
                attempts: self.attempts,
                upstream_time: self.upstream_time,
                request_time: self.request_took(),
                stats,
                rule: self.rule_stats.as_ref().map(|rule| rule.rule()),
                trace: self.trace.as_ref(),
                has_spans,
            };
            if let Some(log) = &self.log {
                let values = log.write(worker, &self.connection, self.picked.as_ref(), &end);
                if let Some(spans) = &mut spans {
                    spans.set_tags(values);
                }
            }
            if let Some(spans) = spans {
                self.report_kept(*spans, &end);
            }
        }
        let worker = &self.worker;
        if let Some(picked) = &self.picked {
            picked.attempted(self.attempt_code, worker);
            picked.endpoint().state.leave();
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.tunnel {
            let tunnels = &self.connection.tunnels;
            tunnels.set(tunnels.get() - 1);
        }
        if !self.ended {
            // the head may have been sent: the code stays
            self.flags = ResponseFlags::DC;
            self.details = "downstream_remote_disconnect".into();
        }
        self.report();
    }
}

fn grpc_status(headers: &HeaderMap) -> Option<u8> {
    headers.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}
