//! External authorization of the requests of one route, each by a request to a fixed URL.
//!
//! Source: `auth_request` of nginx, with the headers of ingress-nginx.

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode, Uri};

use super::answer::Changes;
use super::http::{changes, strip};
use crate::exchange::authorize::count;
use crate::exchange::message::header_changes::is_copied;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::find_route::authority;
use crate::exchange::service_call::{CallError, ServiceCall, head};
use crate::snapshot::ServiceCluster;
use crate::telemetry::{Counter, Stage};
use traffic::authz::{RouteCheck, UrlVariables};
use traffic::filter::chain::ClusterCheck;

const X_AUTH_REQUEST_REDIRECT: HeaderName = HeaderName::from_static("x-auth-request-redirect");
const X_ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const X_ORIGINAL_URL: HeaderName = HeaderName::from_static("x-original-url");

/// Cookies of a check, for the response.
pub(in crate::exchange) struct Cookies {
    values: Vec<(HeaderName, HeaderValue)>,
    /// Whether responses of every status get them, rather than those from 200 to 399.
    always: bool,
}

impl Cookies {
    fn new(check: &RouteCheck, changes: &Changes) -> Self {
        let values = changes.response.0.iter();
        let values = values.map(|(name, value, _)| (name.clone(), value.clone()));
        Self {
            values: values.collect(),
            always: check.always_sets_cookies,
        }
    }

    /// Adds the cookies to the headers of a response.
    pub(in crate::exchange) fn add(self, status: StatusCode, headers: &mut HeaderMap) {
        if self.always || status.is_success() || status.is_redirection() {
            for (name, value) in self.values {
                headers.append(name, value);
            }
        }
    }
}

/// Asks the service about a request, and sets the headers of its answer on the request.
///
/// # Errors
///
/// The reply to a request that is denied, or could not be checked.
pub(in crate::exchange) async fn ask<B>(
    asked: &ClusterCheck,
    context: &RequestContext<'_>,
    request: &mut Request<B>,
    record: &Record,
) -> Result<Cookies, LocalReply> {
    let (worker, check) = (context.worker, &*asked.settings);
    let answer = send(asked, context, request, record).await;
    strip(Some(&check.headers), request.headers_mut());
    let answer = answer.and_then(|(status, headers)| {
        let is_decided = status.is_success()
            || [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        match is_decided {
            true => Ok((status, changes(&check.headers, &headers)?, headers)),
            false => Err(CallError::Status(status)),
        }
    });
    let is_allowed = matches!(&answer, Ok((status, ..)) if status.is_success());
    count(worker, Stage::Custom, !is_allowed, false);
    match answer {
        Ok((status, changes, _)) if status.is_success() => {
            changes.set.apply(request.headers_mut());
            Ok(Cookies::new(check, &changes))
        }
        Ok((status, changes, headers)) => {
            let cookies = Cookies::new(check, &changes);
            let answer = (status, &headers);
            Err(denied(check, answer, cookies, context, request))
        }
        Err(error) => {
            tracing::debug!(service = %check.host, %error, "external authorization failed");
            worker.count(Counter::ExtAuthzFailedClosed);
            Err(LocalReply::provider_failed(
                StatusCode::INTERNAL_SERVER_ERROR,
            ))
        }
    }
}

/// Sends the check, with the headers of the request but without its body.
async fn send<B>(
    asked: &ClusterCheck,
    context: &RequestContext<'_>,
    request: &Request<B>,
    record: &Record,
) -> Result<(StatusCode, HeaderMap), CallError> {
    let check = &*asked.settings;
    let host = match (check.port, check.needs_tls) {
        (80, false) | (443, true) => HeaderValue::from_str(&check.host),
        (port, _) => HeaderValue::try_from(format!("{}:{port}", check.host)),
    };
    let host = host.map_err(|_| CallError::Malformed)?;
    let mut parts = head(check.method.clone(), Uri::from(check.target.clone()));
    for (name, value) in request.headers() {
        if is_copied(name) {
            parts.headers.append(name, value.clone());
        }
    }
    let variables = variables(context, request);
    let url = format!(
        "{}://{}{}",
        variables.scheme, variables.authority, variables.target
    );
    for (name, value) in [
        (X_AUTH_REQUEST_REDIRECT, variables.target),
        (X_ORIGINAL_METHOD, request.method().as_str()),
        (X_ORIGINAL_URL, &*url),
    ] {
        let value = HeaderValue::from_str(value).map_err(|_| CallError::Malformed)?;
        parts.headers.insert(name, value);
    }
    let service = ServiceCluster {
        cluster: asked.cluster,
        authority: host.clone(),
    };
    let call = ServiceCall {
        worker: context.worker,
        snapshot: context.snapshot,
        service: &service,
        client: context.connection.client,
        timeout: RouteCheck::TIMEOUT,
        needs_tls: check.needs_tls,
        record: Some(record),
    };
    let (head, _) = call.http(parts, host, Bytes::new()).await?;
    Ok((head.status, head.headers))
}

/// Returns the reply to a request that is denied: a redirect of clients that have to sign in, or else the status.
fn denied<B>(
    check: &RouteCheck,
    (status, headers): (StatusCode, &HeaderMap),
    cookies: Cookies,
    context: &RequestContext<'_>,
    request: &Request<B>,
) -> LocalReply {
    let mut own = HeaderMap::new();
    if status != StatusCode::UNAUTHORIZED {
        cookies.add(status, &mut own);
        return LocalReply::denied_by_provider(status, own, Bytes::new());
    }
    for value in headers.get_all(WWW_AUTHENTICATE) {
        own.append(WWW_AUTHENTICATE, value.clone());
    }
    let location = check.sign_in.as_ref();
    let location = location.map(|url| url.expand(variables(context, request)));
    let location = location.and_then(|url| HeaderValue::try_from(url).ok());
    let status = match location {
        Some(location) => {
            own.insert(LOCATION, location);
            StatusCode::FOUND
        }
        None => status,
    };
    cookies.add(status, &mut own);
    LocalReply::denied_by_provider(status, own, Bytes::new())
}

fn variables<'a, B>(context: &RequestContext<'a>, request: &'a Request<B>) -> UrlVariables<'a> {
    let target = request.uri().path_and_query();
    UrlVariables {
        scheme: context.origin.scheme.as_str(),
        authority: authority(request).unwrap_or_default(),
        target: target.map_or("/", |target| target.as_str()),
    }
}
