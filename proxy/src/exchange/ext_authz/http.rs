//! External authorization over HTTP: the head of the request is sent to the provider, and a status of 200 allows it.
//!
//! Source: Envoy's filter ext_authz, `http_service`; MeshConfig `envoyExtAuthzHttp`.

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode, Uri};

use super::answer::{Answer, Changes};
use super::check::{PARTIAL_BODY, Sent};
use crate::exchange::message::header_changes::{HeaderChanges, SetHeader, is_copied};
use crate::exchange::select::find_route::authority;
use crate::exchange::service_call::{CallError, ServiceCall, head};
use traffic::authz::HttpCheck;

const TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// Header of an answer with the names of request headers to remove, separated by commas.
const TO_REMOVE: &str = "x-envoy-auth-headers-to-remove";

/// Headers that are the client's credentials, or written by the proxy itself.
const OWN: [&str; 7] = [
    "authorization",
    "cookie",
    "x-forwarded-client-cert",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
];

/// Asks a provider about a request.
pub(super) async fn ask<B>(
    call: &ServiceCall<'_>,
    check: &HttpCheck,
    request: &Request<B>,
    sent: &Sent,
) -> Result<Answer, CallError> {
    let target = request.uri().path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    let uri: Uri = match check.path_prefix.is_empty() {
        true => target.parse(),
        false => format!("{}{target}", check.path_prefix).parse(),
    }
    .map_err(|_| CallError::Malformed)?;
    let mut parts = head(request.method().clone(), uri);
    for (name, value) in request.headers() {
        let is_included = *name == AUTHORIZATION || check.request_headers.include(name);
        if is_included && is_copied(name) {
            parts.headers.append(name, value.clone());
        }
    }
    for (name, value) in &check.added {
        parts.headers.insert(name, value.clone());
    }
    let milliseconds = u64::try_from(call.timeout.as_millis()).unwrap_or(u64::MAX);
    parts.headers.insert(TIMEOUT, milliseconds.into());
    if let Some(is_partial) = sent.is_partial {
        parts.headers.insert(PARTIAL_BODY, flag(is_partial));
    }
    let host = authority(request).map(HeaderValue::from_str);
    let host = host.and_then(Result::ok);
    let host = host.unwrap_or_else(|| call.service.authority.clone());
    let (head, body) = call.http(parts, host, sent.body.clone()).await?;
    match head.status {
        StatusCode::OK => {
            body?;
            Ok(Answer::Allowed(Box::new(changes(check, &head.headers)?)))
        }
        status if status.is_client_error() || status.is_redirection() || status.is_success() => {
            // a denial without its whole page is still one
            let body = body.unwrap_or_default();
            denial(check, status, &head.headers, body)
        }
        status => Err(CallError::Status(status)),
    }
}

/// Removes headers of a request that only the provider may set. Returns whether there was one, so that the route may be
/// another one.
///
/// Envoy keeps a header of the client that the answer has not. `authorization` and cookies are of the client, and stay.
pub(super) fn strip(check: Option<&HttpCheck>, headers: &mut HeaderMap) -> bool {
    let Some(check) = check.filter(|check| !check.to_upstream.is_empty()) else {
        return false;
    };
    let is_set = |name: &HeaderName| {
        let text = name.as_str();
        if OWN.contains(&text) || text.starts_with("x-envoy-") || !is_copied(name) {
            return false;
        }
        // programs like CGI take `-` and `_` as equal
        let folded = || HeaderName::try_from(text.replace('_', "-"));
        check.to_upstream.include(name)
            || text.contains('_') && folded().is_ok_and(|name| check.to_upstream.include(&name))
    };
    let forged: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_set(name))
        .cloned()
        .collect();
    for name in &forged {
        headers.remove(name);
    }
    !forged.is_empty()
}

pub(super) fn flag(value: bool) -> HeaderValue {
    HeaderValue::from_static(if value { "true" } else { "false" })
}

/// Iterates over the headers of an answer that may be copied.
fn copied(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| is_copied(name))
}

pub(super) fn changes(check: &HttpCheck, headers: &HeaderMap) -> Result<Changes, CallError> {
    let mut changes = Changes::default();
    for (name, value) in copied(headers) {
        if check.to_upstream.include(name) {
            add_line(&mut changes.set, name, value);
        }
        if check.to_client.include(name) {
            add_line(&mut changes.response, name, value);
        }
    }
    let removed = headers.get_all(TO_REMOVE).iter();
    let removed = removed.filter_map(|names| names.to_str().ok());
    let removed = removed.flat_map(|names| names.split(','));
    let removed = removed.filter_map(|name| HeaderName::try_from(name.trim()).ok());
    changes.removed = removed.filter(is_copied).collect();
    changes.bounded()
}

/// Adds a header of an answer to the changes. The first line of a name replaces the headers of the request; further lines
/// are added to it.
fn add_line(changes: &mut HeaderChanges, name: &HeaderName, value: &HeaderValue) {
    let how = match changes.0.iter().any(|(known, ..)| known == name) {
        true => SetHeader::Append,
        false => SetHeader::Overwrite,
    };
    changes.0.push((name.clone(), value.clone(), how));
}

fn denial(
    check: &HttpCheck,
    status: StatusCode,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Answer, CallError> {
    const ALWAYS: [&str; 2] = ["location", "www-authenticate"];
    let is_sent = |name: &HeaderName| {
        check.to_denied.is_empty()
            || check.to_denied.include(name)
            || ALWAYS.contains(&name.as_str())
    };
    let mut kept = HeaderMap::new();
    for (name, value) in copied(headers).filter(|(name, _)| is_sent(name)) {
        kept.append(name, value.clone());
    }
    Ok(Answer::Denied {
        status,
        headers: kept,
        body,
    })
}
