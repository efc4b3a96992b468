//! Access log fields of a request, kept only if there will be a line.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::request::Parts;
use hyper::header::{HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri, Version};

use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::downstream::connection::{Connection, DownstreamProtocol};
use crate::exchange::downstream::origin::X_FORWARDED_FOR;
use crate::exchange::message::headers::X_REQUEST_ID;
use crate::exchange::record::end::{End, Outcome};
use crate::exchange::record::log_choice::LogChoice;
use crate::exchange::record::planned::{Planned, TagValues};
use crate::exchange::record::refused;
use crate::exchange::select::target::PickedEndpoint;
use crate::exchange::worker::Worker;
use crate::telemetry::{
    Entry, Host, HttpVersion, RequestProtocol, RequestRecord, ResponseFlags, Security,
};
use crate::upstream::{ConnectionInfo, Protocol};
use traffic::filter::rewrite::ORIGINAL_PATH;
use traffic::registry::Address;

/// Parts of a request for its access log line; clones of shared bytes, without copying text.
pub struct LogFields {
    start: SystemTime,
    client: SocketAddr,
    method: Method,
    uri: Uri,
    version: Version,
    authority: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    original_path: Option<HeaderValue>,
    forwarded_for: Option<HeaderValue>,
    request_id: Option<HeaderValue>,
    route: Option<Arc<str>>,
    cluster: Option<Arc<str>>,
    ends: Option<Rc<ConnectionInfo>>,
    transport_failure: Option<Arc<str>>,
    audit: Option<Arc<str>>,
    /// More values, for lines that are not those of the flags in a fixed format.
    planned: Option<Box<Planned>>,
}

impl LogFields {
    /// Saves the fields of the line, if there is a log.
    pub fn begin<B>(
        choice: Option<LogChoice>,
        client: SocketAddr,
        request: &Request<B>,
    ) -> Option<Box<Self>> {
        let planned = match choice? {
            LogChoice::Fixed => None,
            LogChoice::Planned(plan) => Some(Box::new(Planned::begin(*plan, request))),
        };
        let headers = request.headers();
        Some(Box::new(Self {
            start: SystemTime::now(),
            client,
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            authority: authority(request.uri(), headers),
            user_agent: headers.get(USER_AGENT).cloned(),
            original_path: None,
            forwarded_for: headers.get(X_FORWARDED_FOR).cloned(),
            request_id: headers.get(X_REQUEST_ID).cloned(),
            route: None,
            cluster: None,
            ends: None,
            transport_failure: None,
            audit: None,
            planned,
        }))
    }

    /// Replaces fields by those of the upstream request, which Envoy's log shows; only the path stays the client's.
    pub fn record_upstream_request(&mut self, parts: &Parts, protocol: Protocol) {
        let headers = &parts.headers;
        self.forwarded_for = headers.get(X_FORWARDED_FOR).cloned();
        self.request_id = headers.get(X_REQUEST_ID).cloned();
        self.user_agent = headers.get(USER_AGENT).cloned();
        self.original_path = headers.get(ORIGINAL_PATH).cloned();
        self.authority = authority(&parts.uri, headers);
        if let Some(planned) = &mut self.planned {
            planned.record_upstream_request(parts, protocol);
        }
    }

    /// Records the head of the response, as far as a format asks for it.
    pub fn record_response(&mut self, headers: &HeaderMap) {
        if let Some(planned) = &mut self.planned {
            planned.record_response(headers);
        }
    }

    /// Records the trailers of the response, as far as a format asks for them.
    pub fn record_trailers(&mut self, trailers: &HeaderMap) {
        if let Some(planned) = &mut self.planned {
            planned.record_trailers(trailers);
        }
    }

    /// Records the AUDIT policy that matched the request.
    pub fn record_audit(&mut self, policy: &Arc<str>) {
        self.audit = Some(Arc::clone(policy));
    }

    /// Records the route of the request.
    pub fn record_route(&mut self, route: &Arc<str>) {
        self.route = Some(Arc::clone(route));
    }

    /// Records the cluster of the request.
    pub fn record_cluster(&mut self, cluster: &Arc<str>) {
        self.cluster = Some(Arc::clone(cluster));
    }

    /// Records the upstream connection.
    pub fn record_connection(&mut self, ends: &Rc<ConnectionInfo>) {
        self.ends = Some(Rc::clone(ends));
    }

    /// Records the transport's reason for a failed connection.
    pub fn record_transport_failure(&mut self, reason: &Arc<str>) {
        self.transport_failure = Some(Arc::clone(reason));
    }

    /// Whether [`Self::write`] counts the request, with its own values as labels.
    pub fn counts(&self) -> bool {
        self.planned
            .as_ref()
            .is_some_and(|planned| planned.counts())
    }

    /// Sends the line to the logger. Returns the values of custom tags with operators.
    pub fn write(
        &self,
        worker: &Worker,
        connection: &Connection,
        picked: Option<&PickedEndpoint>,
        end: &End<'_>,
    ) -> TagValues {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let path = self
            .original_path
            .as_ref()
            .map_or(path.as_bytes(), HeaderValue::as_bytes);
        let upstream_host = match (&self.ends, picked) {
            (Some(ends), _) => Some(host(&ends.remote)),
            (None, Some(picked)) => Some(host(&picked.endpoint().address)),
            (None, None) => None,
        };
        // with a federation, the cluster of the picked member
        let upstream_cluster = match picked {
            Some(picked) => Some(&**picked.cluster().name()),
            None => self.cluster.as_deref(),
        };
        let pool = picked.and_then(PickedEndpoint::pool);
        let destination_cluster = match (pool, picked) {
            (Some(pool), _) => Some(&*pool.member),
            (None, Some(picked)) => Some(&**picked.endpoint().stats.cluster()),
            (None, None) => None,
        };
        let entry = Entry {
            start: self.start,
            method: Some(self.method.as_str()),
            path: Some(path),
            version: version(self.version),
            response_code: end.record.code,
            flags: end.record.flags,
            response_code_details: Some(end.details),
            audit: self.audit.as_deref(),
            connection_termination_details: None,
            upstream_transport_failure_reason: self.transport_failure.as_deref(),
            bytes_received: end.record.request_bytes,
            bytes_sent: end.record.response_bytes,
            duration: end.record.duration,
            upstream_service_time: end.upstream_time,
            x_forwarded_for: self.forwarded_for.as_ref().map(HeaderValue::as_bytes),
            user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
            request_id: self.request_id.as_ref().map(HeaderValue::as_bytes),
            authority: self.authority.as_ref().map(HeaderValue::as_bytes),
            upstream_host,
            upstream_cluster,
            destination_cluster,
            destination_tier: pool.map(|pool| pool.tier),
            attempts: end.attempts,
            upstream_local_address: self.ends.as_ref().and_then(|ends| ends.local),
            downstream_local_address: Some(connection.client.destination),
            downstream_remote_address: Some(self.client),
            requested_server_name: connection.server_name(),
            downstream_peer_uri_san: connection.peer().principal(),
            route_name: self.route.as_deref(),
        };
        match &self.planned {
            None => {
                worker.access_log.log(&entry);
                TagValues::default()
            }
            Some(planned) => {
                let ends = self.ends.as_deref();
                planned.write(worker, connection, &entry, &Outcome { end, ends })
            }
        }
    }
}

/// A request that the codec refuses before it reaches the exchange.
#[derive(Clone, Copy, Debug)]
pub struct Unserved<'a> {
    /// The request, if its head could be read.
    pub request: Option<&'a Request<DownstreamBody>>,
    /// Status of the reply.
    pub code: u16,
    /// Response flag for an error of the client.
    pub flags: ResponseFlags,
    /// Response code details, in Envoy's words.
    pub details: &'a str,
    /// Time spent waiting for the request.
    pub duration: Duration,
}

impl Unserved<'_> {
    /// Reports to metrics and the access log.
    pub fn record(&self, worker: &Worker, connection: &Connection) {
        let record = RequestRecord {
            code: self.code,
            flags: self.flags,
            protocol: RequestProtocol::Http,
            grpc_status: None,
            security: Security::Unknown,
            duration: self.duration,
            request_bytes: 0,
            response_bytes: 0,
            request_messages: 0,
            response_messages: 0,
            trace: None,
        };
        if self.flags != ResponseFlags::NONE {
            let counters = &worker.telemetry.counters;
            counters.local_reply(worker.id, self.flags);
        }
        let snapshot = worker.snapshot();
        let (key, local) = (&connection.listener, connection.client.destination);
        let choice = LogChoice::of(worker, &snapshot, key, local);
        let Some(request) = self.request else {
            worker.unrouted.record(worker.id, &record);
            return self.log_unread(worker, connection, choice);
        };
        refused::report(worker, connection, request, &record, self.details);
        let log = LogFields::begin(choice, connection.client.source, request);
        if !log.as_ref().is_some_and(|log| log.counts()) {
            worker.unrouted.record(worker.id, &record);
        }
        if let Some(log) = log {
            let end = End::refused(&record, self.details, &worker.unrouted);
            log.write(worker, connection, None, &end);
        }
    }

    /// Logs a request whose head could not be read.
    fn log_unread(&self, worker: &Worker, connection: &Connection, choice: Option<LogChoice>) {
        let entry = Entry {
            start: SystemTime::now(),
            version: Some(match connection.protocol {
                DownstreamProtocol::Http1 => HttpVersion::Http11,
                DownstreamProtocol::Http2 => HttpVersion::Http2,
            }),
            response_code: self.code,
            flags: self.flags,
            response_code_details: Some(self.details),
            duration: self.duration,
            downstream_local_address: Some(connection.client.destination),
            downstream_remote_address: Some(connection.client.source),
            ..Entry::default()
        };
        match choice {
            None => {}
            Some(LogChoice::Fixed) => worker.access_log.log(&entry),
            Some(LogChoice::Planned(plan)) => plan.write(worker, &entry, false),
        }
    }
}

fn authority(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    match uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => headers.get(HOST).cloned(),
    }
}

pub(in crate::exchange) fn host(address: &Address) -> Host<'_> {
    match address {
        Address::Ip(address) => Host::Ip(*address),
        Address::Name { name, .. } => Host::Text(name.as_bytes()),
        Address::Unix(path) => Host::Text(path.as_os_str().as_bytes()),
    }
}

fn version(version: Version) -> Option<HttpVersion> {
    match version {
        Version::HTTP_10 => Some(HttpVersion::Http10),
        Version::HTTP_11 => Some(HttpVersion::Http11),
        Version::HTTP_2 => Some(HttpVersion::Http2),
        _ => None,
    }
}
