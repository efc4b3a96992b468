//! How an exchange ended: recorded once, in one place, in metrics and access log.
//!
//! A [`Record`] begins with the request's head and starts as a downstream disconnect; the end of the exchange
//! sets the outcome. A future that is dropped half-way thus still counts as what it was.

pub mod health;
pub mod log;
pub mod peer;

use std::borrow::Cow;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::body::Frame;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Request, Response};
use tokio::time::Instant;

use self::log::{End, LogFields};
use crate::error::Kind;
use crate::exchange::body::progress::Progress;
use crate::exchange::downstream::body::Base64Fault;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::Origin;
use crate::exchange::message::grpc_messages::Messages;
use crate::exchange::message::local_reply::{self, LocalReply};
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::exchange::worker::Worker;
use crate::filter::timeout;
use crate::runtime::clock;
use crate::snapshot::Route;
use crate::telemetry::{Gauge, RequestProtocol, RequestRecord, ResponseFlags, RouteStats};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// How the response came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All of it was sent.
    Complete,
    /// The route's timeout ran out in the middle of the body.
    TimedOut,
    /// The upstream broke off in the middle of the body.
    UpstreamBroke(Kind),
}

/// Everything that the end of an exchange reports.
pub struct Record {
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    started: Instant,
    /// The same as wall-clock time, computed on first use.
    start_time: Cell<Option<SystemTime>>,
    /// When it went on after its head was in; later only after a delay.
    went_on: Instant,
    /// The endpoint that the request went to; counted as active until the record ends.
    picked: Option<PickedEndpoint>,
    /// The cluster that it is for.
    target: Option<Target>,
    /// Counts the requests of a rule with a `statPrefix`.
    route_stats: Option<Arc<RouteStats>>,
    progress: Option<Rc<Progress>>,
    log: Option<Box<LogFields>>,
    code: u16,
    flags: ResponseFlags,
    /// What else is said of it, however it ends.
    added: ResponseFlags,
    /// How often the request was sent to an endpoint.
    attempts: u32,
    /// Status of the last of these attempts; 0 for none.
    attempt_code: u16,
    details: Cow<'static, str>,
    grpc: bool,
    /// Whether its client speaks gRPC-Web, which gets local replies as clients of plain HTTP do; with the fault of its
    /// base64.
    web: Option<Base64Fault>,
    /// Whether the method is HEAD.
    head: bool,
    grpc_status: Option<u8>,
    /// Bytes that a tunnel took from the client; those of a request's body are in `progress`.
    received_bytes: u64,
    sent_bytes: u64,
    /// Counts messages of the response, for gRPC.
    messages: Messages,
    upstream_time: Option<Duration>,
    /// Whether the connection, or its stream, carries another protocol now.
    tunnel: bool,
    ended: bool,
}

impl Record {
    /// Begins a record when a request's head is in.
    pub fn begin<B>(
        worker: &Rc<Worker>,
        connection: &Rc<Connection>,
        origin: &Origin,
        request: &Request<B>,
    ) -> Box<Self> {
        worker.raise(Gauge::RequestsActive);
        let started = clock::now();
        Box::new(Self {
            worker: Rc::clone(worker),
            connection: Rc::clone(connection),
            started,
            start_time: Cell::new(None),
            went_on: started,
            picked: None,
            target: None,
            route_stats: None,
            progress: None,
            log: LogFields::begin(&worker.access_log, origin.client, request),
            code: 0,
            flags: ResponseFlags::DC,
            added: ResponseFlags::NONE,
            attempts: 0,
            attempt_code: 0,
            details: "downstream_remote_disconnect".into(),
            grpc: timeout::is_grpc(request.headers()),
            web: None,
            head: request.method() == Method::HEAD,
            grpc_status: None,
            received_bytes: 0,
            sent_bytes: 0,
            messages: Messages::default(),
            upstream_time: None,
            tunnel: false,
            ended: false,
        })
    }

    /// The connection that the request came on.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// When the request's head was in.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The same by the clock on the wall, alike at each call.
    pub fn start_time(&self) -> SystemTime {
        let known = self.start_time.get();
        let time = known.unwrap_or_else(|| {
            let now = SystemTime::now();
            now.checked_sub(self.started.elapsed()).unwrap_or(now)
        });
        self.start_time.set(Some(time));
        time
    }

    /// Whether the request is of gRPC, or of gRPC-Web and translated.
    pub fn is_grpc(&self) -> bool {
        self.grpc
    }

    /// Whether local replies to the request are those of gRPC.
    pub fn replies_grpc(&self) -> bool {
        self.grpc && self.web.is_none()
    }

    /// Notes that the request was of gRPC-Web, and is of gRPC now.
    pub fn translated(&mut self, fault: Base64Fault) {
        self.grpc = true;
        self.web = Some(fault);
    }

    /// Why the client's base64 could not be decoded, if so.
    pub fn base64_fault(&self) -> Option<&'static str> {
        self.web.as_ref()?.get()
    }

    /// Notes the cluster that the request is for.
    pub fn target(&mut self, target: &Target) {
        if let Some(log) = &mut self.log {
            log.target(target.cluster().name());
        }
        self.target = Some(target.clone());
    }

    /// Notes the endpoint that the request goes to, and counts the request in there.
    pub fn went_to(&mut self, picked: PickedEndpoint, progress: &Rc<Progress>) {
        self.attempt_begins(picked);
        if self.grpc {
            progress.count_messages();
        }
        self.progress = Some(Rc::clone(progress));
    }

    /// Notes the endpoint that an attempt goes to, and counts the request as active there instead of at the one before.
    pub fn attempt_begins(&mut self, picked: PickedEndpoint) {
        self.attempts += 1;
        if let Some(before) = self.goes_to(picked) {
            before.attempted(std::mem::take(&mut self.attempt_code), &self.worker);
        }
    }

    /// Notes the endpoint that an attempt goes to; returns the one before. Alone, for an attempt that had no connection yet.
    pub fn goes_to(&mut self, picked: PickedEndpoint) -> Option<PickedEndpoint> {
        picked.enter();
        let before = self.picked.replace(picked)?;
        before.endpoint().state.leave();
        Some(before)
    }

    /// Notes the status of an attempt, if it got a response.
    pub fn attempt_ended<B, E>(&mut self, attempted: &Result<Response<B>, E>) {
        let status = attempted.as_ref().map(Response::status);
        self.attempt_code = status.map_or(0, |status| status.as_u16());
    }

    /// How often the request was sent to an endpoint.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// What the access log line will say, if there will be one.
    pub fn log_mut(&mut self) -> Option<&mut LogFields> {
        self.log.as_deref_mut()
    }

    /// Notes the response's head, as it goes to the client.
    pub fn responded(
        &mut self,
        code: u16,
        flags: ResponseFlags,
        details: impl Into<Cow<'static, str>>,
    ) {
        self.code = code;
        self.flags = flags;
        self.details = details.into();
    }

    /// Adds a flag that stays, however the exchange ends.
    pub fn also(&mut self, flags: ResponseFlags) {
        self.added |= flags;
    }

    /// Notes that the request goes on only now; the time before is not the upstream's.
    pub fn went_on(&mut self) {
        self.went_on = clock::now();
    }

    /// Address of the endpoint that the request went to, if it has one.
    pub fn upstream(&self) -> Option<SocketAddr> {
        self.picked.as_ref()?.endpoint().address.socket()
    }

    /// DNS name of the endpoint that the request went to, if it is one endpoint by that name.
    pub fn upstream_name(&self) -> Option<&str> {
        self.picked.as_ref()?.dns_name()
    }

    /// From the beginning of the request to its last byte, if that is read.
    pub fn request_took(&self) -> Option<Duration> {
        let ended = self.progress.as_ref()?.ended(self.went_on)?;
        Some(ended.saturating_duration_since(self.started))
    }

    /// Bytes of the request's body so far.
    pub fn received(&self) -> u64 {
        self.progress
            .as_ref()
            .map_or(0, |progress| progress.bytes())
    }

    /// What is said so far of how the exchange went.
    pub fn flags(&self) -> ResponseFlags {
        self.flags | self.added
    }

    /// Why, in Envoy's words.
    pub fn details(&self) -> &str {
        &self.details
    }

    /// Makes a local reply and notes it.
    pub fn reply(&mut self, local: &LocalReply) -> Response<Bytes> {
        self.connection.answered_here.set(true);
        let mut response = local.response(self.replies_grpc());
        if self.head {
            local_reply::headers_only(&mut response);
        }
        let code = response.status().as_u16();
        self.responded(code, local.flags, local.details.clone());
        self.saw_headers(response.headers());
        self.sent_bytes = response.body().len() as u64;
        self.count_local_reply(local.flags);
        response
    }

    fn count_local_reply(&self, flags: ResponseFlags) {
        let counters = &self.worker.telemetry.counters;
        counters.local_reply(self.worker.id, flags);
    }

    /// Notes a response that a route made by itself.
    pub fn answered(&mut self, response: &Response<Bytes>) {
        self.answered_as(response, "direct_response");
    }

    /// Notes a response that a rule made by itself, with these details.
    pub fn answered_as(&mut self, response: &Response<Bytes>, details: &'static str) {
        self.connection.answered_here.set(true);
        let code = response.status().as_u16();
        self.responded(code, ResponseFlags::NONE, details);
        self.saw_headers(response.headers());
        self.count_local_reply(ResponseFlags::NONE);
        self.sent_bytes = response.body().len() as u64;
    }

    /// Notes the route that took the request.
    pub fn routed(&mut self, route: &Route) {
        if let Some(log) = &mut self.log
            && !route.name.is_empty()
        {
            log.routed(&route.name);
        }
        self.route_stats.clone_from(&route.stats);
    }

    /// Notes that the upstream's response head is here; returns the time since the request's last byte went out, or
    /// nothing if the response came before it.
    pub fn upstream_took(&mut self) -> Option<Duration> {
        let ended = self.progress.as_ref()?.ended(self.went_on)?;
        self.upstream_time = Some(clock::now().saturating_duration_since(ended));
        self.upstream_time
    }

    /// Notes that the exchange goes on as a tunnel.
    pub fn tunnels(&mut self) {
        self.tunnel = true;
        let tunnels = &self.connection.tunnels;
        tunnels.set(tunnels.get() + 1);
    }

    /// Notes a gRPC status that came in headers.
    pub fn saw_headers(&mut self, headers: &HeaderMap) {
        if self.grpc {
            self.grpc_status = grpc_status(headers).or(self.grpc_status);
        }
    }

    /// Notes a frame of the response's body.
    pub fn saw_frame(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            self.sent_bytes += data.len() as u64;
            if self.grpc {
                self.messages.saw(data);
            }
        } else if let Some(trailers) = frame.trailers_ref() {
            self.saw_headers(trailers);
        }
    }

    /// Notes bytes that a tunnel moved: from the client, and to the client.
    pub fn tunneled(&mut self, received: u64, sent: u64) {
        self.received_bytes += received;
        self.sent_bytes += sent;
    }

    /// Ends the record: reports to metrics and access log.
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

    fn tell(&mut self) {
        let worker = &self.worker;
        worker.lower(Gauge::RequestsActive);
        let duration = clock::now().saturating_duration_since(self.started);
        let body_bytes = self.progress.as_ref().map_or(0, |body| body.bytes());
        let stats = match (&self.picked, &self.target) {
            (Some(picked), _) => &picked.endpoint().stats,
            (None, Some(target)) => &target.cluster().stats,
            (None, None) => &worker.unrouted,
        };
        let record = RequestRecord {
            code: self.code,
            flags: self.flags(),
            protocol: if self.grpc {
                RequestProtocol::Grpc
            } else {
                RequestProtocol::Http
            },
            grpc_status: self.grpc_status,
            security: peer::security(&self.connection, stats.labels().reporter),
            duration,
            request_bytes: body_bytes + self.received_bytes,
            response_bytes: self.sent_bytes,
            request_messages: self.progress.as_ref().map_or(0, |one| one.messages()),
            response_messages: self.messages.count(),
        };
        let handshake = self.connection.tls.as_deref();
        let of_peer = peer::stats(handshake, stats, &worker.telemetry.stats);
        of_peer.as_ref().unwrap_or(stats).record(worker.id, &record);
        if let Some(stats) = &self.route_stats {
            stats.record(worker.id, record.code);
        }
        if let Some(log) = &self.log {
            let end = End {
                record: &record,
                details: &self.details,
                attempts: self.attempts,
                upstream_time: self.upstream_time,
            };
            log.write(
                &worker.access_log,
                &self.connection,
                self.picked.as_ref(),
                &end,
            );
        }
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
            // the head may be out already: the code stays what was sent
            self.flags = ResponseFlags::DC;
            self.details = "downstream_remote_disconnect".into();
        }
        self.tell();
    }
}

fn grpc_status(headers: &HeaderMap) -> Option<u8> {
    headers.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}
