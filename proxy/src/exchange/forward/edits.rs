//! Header edits and rewrites of rules, with the values for their templates.

use std::time::SystemTime;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Uri, Version};

use crate::exchange::message::headers::{X_FORWARDED_HOST, X_REQUEST_ID};
use crate::exchange::record::Record;
use crate::exchange::select::affinity::HashedHead;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::find_route;
use crate::exchange::select::target::PickedEndpoint;
use crate::snapshot::Destination;
use crate::upstream::{ConnectionInfo, Protocol};
use traffic::filter::rewrite::{ORIGINAL_HOST, ORIGINAL_PATH};
use traffic::filter::{Redirect, RouteFilters, TemplateContext};

/// Head for hash keys: the request after its route's edits, before an endpoint is picked.
pub(super) fn hashed_head<'r, B>(
    context: &RequestContext<'_>,
    destination: &Destination,
    request: &'r Request<B>,
    record: &Record,
) -> HashedHead<'r> {
    let headers = request.headers();
    let template_context = TemplateContext {
        duration: record.started().elapsed(),
        request_id: headers.get(X_REQUEST_ID),
        upstream_cluster: &destination.name,
        method: request.method().as_str(),
        path: path_of(request.uri()),
        protocol: request.version(),
        authority: find_route::authority(request).unwrap_or_default(),
        ..context.template_context(record.start_time(), SystemTime::now())
    };
    let filters = &context.found.route().filters;
    HashedHead::edited(request, filters, destination, &template_context)
}

fn path_of(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", PathAndQuery::as_str)
}

/// Destination of a request, and the endpoint once it is picked.
#[derive(Clone, Copy)]
pub(in crate::exchange) struct SentTo<'a> {
    /// Filters that edit the request.
    pub(in crate::exchange) filters: &'a RouteFilters,
    pub(in crate::exchange) destination: &'a Destination,
    pub(in crate::exchange) picked: Option<&'a PickedEndpoint>,
}

impl<'a> SentTo<'a> {
    /// Creates the destination of a request that the filters of its route edit.
    pub(super) fn by_route(
        context: &RequestContext<'a>,
        destination: &'a Destination,
        picked: Option<&'a PickedEndpoint>,
    ) -> Self {
        Self {
            filters: &context.found.route().filters,
            destination,
            picked,
        }
    }
}

/// Applies the header edits and the path rewrite of filters; returns the authority for the upstream, unless it equals Host.
pub(in crate::exchange) fn request(
    context: &RequestContext<'_>,
    sent_to: SentTo<'_>,
    parts: &mut Parts,
    record: &Record,
    authority: Option<HeaderValue>,
) -> Option<HeaderValue> {
    let SentTo {
        filters,
        destination,
        picked,
    } = sent_to;
    if !filters.leaves_request_headers() {
        let sent_to = authority.as_ref().or(parts.headers.get(HOST)).cloned();
        let sent_to = sent_to.as_ref();
        let request_id = parts.headers.get(X_REQUEST_ID).cloned();
        let template_context = TemplateContext {
            attempts: 1,
            duration: record.started().elapsed(),
            request_id: request_id.as_ref(),
            upstream_name: picked.and_then(PickedEndpoint::dns_name),
            upstream_remote: picked.and_then(|picked| picked.endpoint().address.socket()),
            upstream_cluster: &destination.name,
            method: parts.method.as_str(),
            path: path_of(&parts.uri),
            protocol: parts.version,
            authority: sent_to
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default(),
            ..context.template_context(record.start_time(), SystemTime::now())
        };
        filters.edit_request(destination.position, &mut parts.headers, &template_context);
    }
    // also if the expression matches nothing
    if filters.path.is_some()
        && let Ok(before) = HeaderValue::from_str(path_of(&parts.uri))
    {
        parts.headers.insert(ORIGINAL_PATH, before);
    }
    if let Some(path) = filters.rewrite_path(parts.uri.path(), parts.uri.query()) {
        let mut uri = std::mem::take(&mut parts.uri).into_parts();
        uri.path_and_query = Some(path);
        parts.uri = Uri::from_parts(uri).unwrap_or_default();
    }
    let Some(rewritten) = filters.authority(destination.position) else {
        return authority;
    };
    if let Some(asked_for) = authority.or_else(|| parts.headers.get(HOST).cloned()) {
        if context.worker.setting(|all| all.forwarded_host) && asked_for != *rewritten {
            parts.headers.append(X_FORWARDED_HOST, asked_for.clone());
        }
        parts.headers.insert(ORIGINAL_HOST, asked_for);
    }
    Some(rewritten.clone())
}

/// Destination and upstream connection of a response; a local reply may have neither.
#[derive(Clone, Copy)]
pub(in crate::exchange) struct CameFrom<'a> {
    pub(in crate::exchange) destination: Option<&'a Destination>,
    pub(in crate::exchange) ends: Option<&'a ConnectionInfo>,
}

/// The request, saved for the templates of response edits; only if the route has any.
pub(in crate::exchange) struct RequestSnapshot {
    version: Version,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    /// The request as sent upstream.
    sent: SentRequest,
}

/// Properties of the upstream request, for the templates of response edits.
#[derive(Default)]
struct SentRequest {
    authority: Option<HeaderValue>,
    request_id: Option<HeaderValue>,
    protocol: &'static str,
}

impl SentRequest {
    fn of(parts: &Parts, authority: Option<&HeaderValue>, protocol: Protocol) -> Self {
        Self {
            authority: authority.cloned(),
            request_id: parts.headers.get(X_REQUEST_ID).cloned(),
            protocol: protocol.name(),
        }
    }
}

impl RequestSnapshot {
    pub(in crate::exchange) fn of<B>(request: &Request<B>) -> Self {
        Self {
            version: request.version(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            sent: SentRequest::default(),
        }
    }

    /// Replaces the saved request by the one that is sent: after the edits of the route, as in Envoy.
    pub(in crate::exchange) fn sent(
        &mut self,
        parts: &Parts,
        authority: Option<&HeaderValue>,
        protocol: Protocol,
    ) {
        self.uri = parts.uri.clone();
        self.headers = parts.headers.clone();
        self.sent = SentRequest::of(parts, authority, protocol);
    }
}

impl RequestContext<'_> {
    /// Template values that are known in any case.
    fn template_context(&self, start_time: SystemTime, now: SystemTime) -> TemplateContext<'_> {
        TemplateContext {
            downstream_remote: Some(self.origin.client),
            downstream_direct_remote: Some(self.connection.client.source),
            downstream_tls: self.connection.tls_context(),
            downstream_local: Some(self.connection.client.destination),
            requested_server_name: self.connection.server_name(),
            now,
            start_time,
            random: Some(self.worker.rng()),
            hostname: &self.worker.hostname,
            route_name: &self.found.route().name,
            scheme: self.origin.scheme.as_str(),
            environment: &self.worker.environment,
            ..TemplateContext::default()
        }
    }

    /// Creates the response of a redirect rule.
    pub fn redirect<B>(&self, redirect: &Redirect, request: &Request<B>) -> Response<Bytes> {
        find_route::redirect(redirect, self.connection, self.origin.scheme, request)
    }

    /// Edits a direct response or redirect of the route.
    pub fn edit_reply<B>(
        &self,
        request: &Request<B>,
        record: &Record,
        response: &mut Response<Bytes>,
    ) {
        let filters = &self.found.route().filters;
        if !filters.leaves_response_headers() {
            self.edit_local(None, &RequestSnapshot::of(request), record, response);
        }
    }

    /// Edits a local reply. As in Envoy, its content type is added after the edits, unless they set one, and only if
    /// there is a body.
    pub(in crate::exchange) fn edit_local(
        &self,
        destination: Option<&Destination>,
        kept: &RequestSnapshot,
        record: &Record,
        response: &mut Response<Bytes>,
    ) {
        let own = response.headers_mut().remove(CONTENT_TYPE);
        let came_from = CameFrom {
            destination,
            ends: None,
        };
        self.edit_response(came_from, kept, record, response);
        let headers = response.headers_mut();
        let is_set = headers.contains_key(CONTENT_TYPE);
        match own {
            None => drop(headers.remove(CONTENT_TYPE)),
            Some(own) if record.replies_grpc() || !is_set => {
                drop(headers.insert(CONTENT_TYPE, own))
            }
            Some(_) => {}
        }
    }

    /// Edits a response, with template values for the destination and for the upstream connection.
    pub(in crate::exchange) fn edit_response<B>(
        &self,
        came_from: CameFrom<'_>,
        kept: &RequestSnapshot,
        record: &Record,
        response: &mut Response<B>,
    ) {
        let CameFrom { destination, ends } = came_from;
        let host = || kept.headers.get(HOST)?.to_str().ok();
        let sent_to = kept.sent.authority.as_ref();
        let sent_to = sent_to.and_then(|value| value.to_str().ok());
        let authority = sent_to.or(kept.uri.authority().map(Authority::as_str));
        let template_context = TemplateContext {
            protocol: kept.version,
            duration: record.started().elapsed(),
            request_duration: record.request_took(),
            response_duration: ends.map(|_| record.started().elapsed()),
            bytes_received: record.received(),
            attempts: record.attempts(),
            request_id: kept
                .sent
                .request_id
                .as_ref()
                .or(kept.headers.get(X_REQUEST_ID)),
            upstream_local: ends.and_then(|ends| ends.local),
            upstream_name: record.upstream_name(),
            upstream_protocol: ends.map_or("", |_| kept.sent.protocol),
            upstream_tls: ends.and_then(ConnectionInfo::tls_context),
            upstream_remote: record.upstream(),
            upstream_cluster: destination.map_or("", |destination| &*destination.name),
            response_flags: record.flags(),
            response_code_details: record.details(),
            response_code: response.status().as_u16(),
            method: kept.method.as_str(),
            path: path_of(&kept.uri),
            authority: authority.or_else(host).unwrap_or_default(),
            request_headers: Some(&kept.headers),
            ..self.template_context(record.start_time(), SystemTime::now())
        };
        let position = destination.map(|destination| destination.position);
        self.found.route().filters.edit_response(
            position,
            response.headers_mut(),
            &template_context,
        );
    }
}
