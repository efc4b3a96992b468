//! External authorization over gRPC: `envoy.service.auth.v3.Authorization/Check`.
//!
//! Source: envoy/service/auth/v3/external_auth.proto and attribute_context.proto; MeshConfig `envoyExtAuthzGrpc`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::SystemTime;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};

use super::answer::{Answer, Changes};
use super::check::{Asking, PARTIAL_BODY, Sent};
use super::messages::{
    Address, AttributeContext, CheckRequest, CheckResponse, DeniedResponse, HeaderOption,
    HttpRequest, OkResponse, Peer, Request as RequestAttributes, SocketAddress, TlsSession,
};
use crate::exchange::message::header_changes::{HeaderChanges, SetHeader, is_copied};
use crate::exchange::select::find_route::authority;
use crate::exchange::service_call::{CallError, ServiceCall};
use traffic::filter::{Scheme, http_version};

const METHOD: &str = "/envoy.service.auth.v3.Authorization/Check";

/// Asks a provider about a request.
pub(super) async fn ask<B>(
    call: &ServiceCall<'_>,
    asking: &Asking<'_>,
    scheme: Scheme,
    request: &Request<B>,
    sent: &Sent,
) -> Result<Answer, CallError> {
    let http = http_request(scheme, request, sent);
    let response = check(call, asking, Some(http)).await?;
    let code = response.status.map_or(0, |status| status.code);
    if code == 0 {
        let changes = response.ok_response.map(changes).transpose()?;
        return Ok(Answer::Allowed(Box::new(changes.unwrap_or_default())));
    }
    if response.error_response.is_some() {
        return Err(CallError::Malformed);
    }
    denial(response.denied_response.unwrap_or_default())
}

/// Asks a provider about a connection of another protocol than HTTP. Returns whether it may go on.
pub(super) async fn ask_about_connection(
    call: &ServiceCall<'_>,
    asking: &Asking<'_>,
) -> Result<bool, CallError> {
    let response = check(call, asking, None).await?;
    Ok(response.status.is_none_or(|status| status.code == 0))
}

async fn check(
    call: &ServiceCall<'_>,
    asking: &Asking<'_>,
    http: Option<HttpRequest>,
) -> Result<CheckResponse, CallError> {
    let request = http.map(|http| RequestAttributes {
        time: Some(SystemTime::now().into()),
        http: Some(http),
    });
    let client = asking.client;
    let tls_session = asking.server_name.map(|name| TlsSession {
        sni: name.to_owned(),
    });
    let attributes = AttributeContext {
        source: Some(peer(asking.remote, asking.principal)),
        destination: Some(peer(client.destination, asking.own_principal)),
        request,
        tls_session,
    };
    let request = CheckRequest {
        attributes: Some(attributes),
    };
    call.grpc(METHOD, &request).await
}

fn peer(address: SocketAddr, principal: Option<&str>) -> Peer {
    Peer {
        address: Some(Address {
            socket_address: Some(SocketAddress {
                address: address.ip().to_canonical().to_string(),
                port_value: address.port().into(),
            }),
        }),
        principal: principal.unwrap_or_default().to_owned(),
    }
}

fn http_request<B>(scheme: Scheme, request: &Request<B>, sent: &Sent) -> HttpRequest {
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |target| target.as_str());
    let host = authority(request).unwrap_or_default();
    let mut headers = texts(request.headers());
    let pseudo = [
        (":authority", host),
        (":method", request.method().as_str()),
        (":path", path),
        (":scheme", scheme.as_str()),
    ];
    headers.extend(pseudo.map(|(name, value)| (name.to_owned(), value.to_owned())));
    headers.remove("host");
    if let Some(is_partial) = sent.is_partial {
        headers.insert(PARTIAL_BODY.as_str().to_owned(), is_partial.to_string());
    }
    let (body, raw_body) = match sent.as_bytes {
        true => (String::new(), sent.body.clone()),
        false => (
            String::from_utf8_lossy(&sent.body).into_owned(),
            bytes::Bytes::new(),
        ),
    };
    let length = headers.get("content-length");
    HttpRequest {
        id: headers.get("x-request-id").cloned().unwrap_or_default(),
        method: request.method().as_str().to_owned(),
        size: length.and_then(|text| text.parse().ok()).unwrap_or(-1),
        headers,
        path: path.to_owned(),
        host: host.to_owned(),
        scheme: scheme.as_str().to_owned(),
        protocol: http_version(request.version()).to_owned(),
        body,
        raw_body,
    }
}

/// Returns headers by name; lines of one name are joined by `,`.
fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let text = texts.entry(name.as_str().to_owned());
        text.and_modify(|text| {
            text.push(',');
            text.push_str(&value);
        })
        .or_insert_with(|| value.into_owned());
    }
    texts
}

fn changes(ok: OkResponse) -> Result<Changes, CallError> {
    let removed = ok.headers_to_remove.into_iter();
    let removed = removed.filter_map(|name| HeaderName::try_from(name).ok());
    let query = ok.query_parameters_to_set.into_iter();
    Changes {
        set: headers(ok.headers)?,
        removed: removed.filter(is_copied).collect(),
        query: query.map(|pair| (pair.key, pair.value)).collect(),
        query_removed: ok.query_parameters_to_remove,
        response: headers(ok.response_headers_to_add)?,
    }
    .bounded()
}

/// Returns the headers that may be copied.
///
/// # Errors
///
/// Fails if a value is not valid: without it, that of the client would stay.
fn headers(options: Vec<HeaderOption>) -> Result<HeaderChanges, CallError> {
    let mut changes = HeaderChanges::default();
    for option in options {
        let how = match (option.append, option.append_action) {
            (Some(true), _) => SetHeader::Append,
            (Some(false), _) | (None, 0 | 2) => SetHeader::Overwrite,
            (None, 1) => SetHeader::IfAbsent,
            (None, 3) => SetHeader::IfPresent,
            (None, _) => return Err(CallError::Malformed),
        };
        let pair = option.header.unwrap_or_default();
        // pseudo-headers, which no answer may set, are not valid names
        let Ok(name) = HeaderName::try_from(pair.key) else {
            continue;
        };
        let value = match pair.raw_value.is_empty() {
            true => pair.value.into_bytes(),
            false => pair.raw_value,
        };
        let value = HeaderValue::try_from(value).map_err(|_| CallError::Malformed)?;
        if is_copied(&name) {
            changes.0.push((name, value, how));
        }
    }
    Ok(changes)
}

fn denial(denied: DeniedResponse) -> Result<Answer, CallError> {
    let status = denied.status.map_or(0, |status| status.code);
    let status = u16::try_from(status)
        .ok()
        .filter(|status| (200..=599).contains(status));
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let mut kept = HeaderMap::new();
    headers(denied.headers)?.apply(&mut kept);
    Ok(Answer::Denied {
        status: status.unwrap_or(StatusCode::FORBIDDEN),
        headers: kept,
        body: denied.body,
    })
}
