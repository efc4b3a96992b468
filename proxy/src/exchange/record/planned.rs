//! Lines of requests in formats of the user, with filters: values beyond those of a fixed format.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::request::Parts;
use hyper::Request;
use hyper::header::{HeaderMap, HeaderValue};

use super::end::Outcome;
use super::log_choice::ChosenPlan;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::message::headers::X_REQUEST_ID;
use crate::exchange::worker::Worker;
use crate::runtime::clock;
use crate::telemetry::{Entry, RequestStats};
use crate::upstream::{ConnectionInfo, Protocol};
use traffic::filter::{Finished, Needs, TemplateContext};

/// Values of a request beyond those of a fixed format.
pub struct Planned {
    plan: ChosenPlan,
    /// Request headers that formats and filters read: the client's, then the upstream request's.
    request: HeaderMap,
    response: HeaderMap,
    trailers: HeaderMap,
    request_id: Option<HeaderValue>,
    /// Target of the upstream request.
    uri: Option<Uri>,
    /// Protocol of the upstream request.
    protocol: Option<Protocol>,
}

impl Planned {
    /// Saves what formats and filters read of a request.
    pub(super) fn begin<B>(plan: ChosenPlan, request: &Request<B>) -> Self {
        let mut planned = Self {
            plan,
            request: HeaderMap::new(),
            response: HeaderMap::new(),
            trailers: HeaderMap::new(),
            request_id: request.headers().get(X_REQUEST_ID).cloned(),
            uri: None,
            protocol: None,
        };
        planned.request = planned.kept(Needs::of_request, request.headers());
        planned
    }

    fn kept(&self, of: fn(&Needs, &HeaderMap) -> HeaderMap, headers: &HeaderMap) -> HeaderMap {
        let kept = self.plan.plan().map(|plan| of(plan.needs(), headers));
        let mut kept = kept.unwrap_or_default();
        if let Some(tags) = self.plan.tags() {
            kept.extend(of(tags.needs(), headers));
        }
        if let Some(formats) = self.plan.tag_formats() {
            kept.extend(of(formats.needs(), headers));
        }
        kept
    }

    /// Whether the request is counted with its own values as labels.
    pub(super) fn counts(&self) -> bool {
        self.plan.tags().is_some()
    }

    /// Replaces values by those of the upstream request, which Envoy's log shows.
    pub(super) fn record_upstream_request(&mut self, parts: &Parts, protocol: Protocol) {
        self.protocol = Some(protocol);
        self.request = self.kept(Needs::of_request, &parts.headers);
        self.request_id = parts.headers.get(X_REQUEST_ID).cloned();
        self.uri = Some(parts.uri.clone());
    }

    /// Saves what formats and filters read of a response.
    pub(super) fn record_response(&mut self, headers: &HeaderMap) {
        self.response = self.kept(Needs::of_response, headers);
    }

    /// Saves what formats and filters read of trailers.
    pub(super) fn record_trailers(&mut self, trailers: &HeaderMap) {
        self.trailers = self.kept(Needs::of_trailers, trailers);
    }

    /// Writes the lines, and counts the request if its values are labels. Returns the values of custom tags with operators.
    pub(super) fn write(
        &self,
        worker: &Worker,
        connection: &Connection,
        entry: &Entry<'_>,
        outcome: &Outcome<'_>,
    ) -> TagValues {
        let end = outcome.end;
        let labels = end.stats.labels();
        let is_inbound = self.plan.is_inbound();
        let finished = Finished {
            is_tcp: false,
            is_inbound,
            bytes_sent: end.record.response_bytes,
            grpc_status: end.record.grpc_status,
            termination_details: None,
            transport_failure: entry.upstream_transport_failure_reason,
            response_trailers: Some(&self.trailers),
            destination_cluster: entry.destination_cluster,
            destination_tier: entry.destination_tier,
            service: Some(&labels.service),
            downstream_peer: is_inbound.then_some(&*labels.source),
            upstream_peer: (!is_inbound).then_some(&*labels.destination),
            node: Some(&self.plan.snapshot().node),
            rule: end.rule,
            trace: end.trace,
        };
        // that of a connection, which a failed attempt may not have had
        let has_failed = entry.upstream_transport_failure_reason.is_some();
        let protocol = self.protocol.filter(|_| !has_failed);
        let context = TemplateContext {
            downstream_direct_remote: Some(connection.client.source),
            downstream_tls: connection.tls_context(),
            upstream_protocol: protocol.map_or("", Protocol::name),
            upstream_tls: outcome.ends.and_then(ConnectionInfo::tls_context),
            request_duration: end.request_time,
            response_duration: response_time(end.request_time, end.upstream_time),
            request_id: self.request_id.as_ref(),
            random: Some(worker.rng()),
            hostname: &worker.hostname,
            scheme: connection.scheme().as_str(),
            request_headers: Some(&self.request),
            response_headers: Some(&self.response),
            environment: &worker.environment,
            finished: Some(&finished),
            ..entry.context()
        };
        let upstream = self.uri.as_ref().and_then(Uri::path_and_query);
        let context = match upstream {
            Some(path) => TemplateContext {
                path: path.as_str(),
                ..context
            },
            None => context,
        };
        if let Some(tags) = self.plan.tags() {
            let table = &mut *worker.tags.borrow_mut();
            let found = tags.find(table, end.stats, &context, clock::now().into_std());
            found.record(worker.id, end.record);
        }
        self.plan.log(worker, entry, &context);
        let formats = self.plan.tag_formats().filter(|_| end.has_spans);
        formats.map_or_else(Vec::new, |formats| formats.values(&context))
    }
}

/// Values of custom tags with operators, one for each custom tag; empty without any.
pub(super) type TagValues = Vec<Option<HeaderValue>>;

/// Time from the beginning of the request to the head of the response.
fn response_time(request: Option<Duration>, upstream: Option<Duration>) -> Option<Duration> {
    Some(request? + upstream?)
}

impl ChosenPlan {
    fn log(&self, worker: &Worker, entry: &Entry<'_>, context: &TemplateContext<'_>) {
        match self.plan() {
            Some(plan) => plan.log(worker.id, entry, context),
            None if self.is_fixed() => worker.access_log.log(entry),
            None => {}
        }
    }

    /// Writes the lines of a connection, or of a request whose head could not be read.
    pub fn write(&self, worker: &Worker, entry: &Entry<'_>, is_tcp: bool) {
        self.with_context(worker, entry, is_tcp, |context| {
            self.log(worker, entry, context)
        });
    }

    /// Finds the metrics of a connection whose values are labels; `None` if there are no such labels.
    pub fn metrics_of_connection(
        &self,
        worker: &Worker,
        entry: &Entry<'_>,
        base: &Arc<RequestStats>,
    ) -> Option<Arc<RequestStats>> {
        let tags = self.tags()?;
        let now = clock::now().into_std();
        Some(self.with_context(worker, entry, true, |context| {
            let table = &mut *worker.tags.borrow_mut();
            Arc::clone(tags.find(table, base, context, now))
        }))
    }

    fn with_context<T>(
        &self,
        worker: &Worker,
        entry: &Entry<'_>,
        is_tcp: bool,
        act: impl FnOnce(&TemplateContext<'_>) -> T,
    ) -> T {
        let finished = Finished {
            is_tcp,
            is_inbound: self.is_inbound(),
            bytes_sent: entry.bytes_sent,
            termination_details: entry.connection_termination_details,
            transport_failure: entry.upstream_transport_failure_reason,
            destination_cluster: entry.destination_cluster,
            destination_tier: entry.destination_tier,
            node: Some(&self.snapshot().node),
            ..Finished::default()
        };
        let context = TemplateContext {
            random: Some(worker.rng()),
            hostname: &worker.hostname,
            environment: &worker.environment,
            finished: Some(&finished),
            ..entry.context()
        };
        act(&context)
    }
}
