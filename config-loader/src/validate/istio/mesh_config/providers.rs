//! Providers of external authorization and of rate limits (`extensionProviders`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};
use traffic::authz::{CheckedBody, ExtAuthz, HeaderNames, HttpCheck, Pattern};

use crate::diagnostic::codes::istio::{MC001, MC002, MC003, MC004, MC005};
use crate::raw::istio::{ExtAuthzProvider, ExtensionProvider, RequestBody};
use crate::raw::{Field, Map};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, api, scalar};

/// Time limit of a check without one.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Largest part of a body that may be sent to a provider.
const BODY_BYTES_MAX: i64 = 1 << 20;

/// Headers that say how a message is read, and where it goes.
const FRAMING: [&str; 6] = [
    "connection",
    "content-length",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Returns the providers of external authorization.
pub(super) fn authorizers(
    field: &Field<Vec<Field<ExtensionProvider>>>,
    check: &mut Check<'_>,
) -> Vec<Arc<ExtAuthz>> {
    let mut authorizers: Vec<Arc<ExtAuthz>> = Vec::new();
    let mut names = BTreeSet::new();
    for (field, provider) in scalar::items(field, check) {
        let Some(name) = provider_name(provider, field.span(), check) else {
            continue;
        };
        if !names.insert(Arc::clone(&name)) {
            let message = format!("there is another provider `{name}`");
            let found = check.error(MC001, provider.name.span(), message);
            found.help("give each provider a name of its own");
        }
        authorizers.extend(ext_authz(name, provider, field.span(), check).map(Arc::new));
    }
    authorizers
}

fn provider_name(raw: &ExtensionProvider, span: Span, check: &mut Check<'_>) -> Option<Arc<str>> {
    let name = shared::text(&raw.name).unwrap_or_default();
    let has_upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
    if has_upper || !scalar::is_dns_label(name) {
        let span = shared::location(&raw.name, span);
        let found = check.error(MC001, span, format!("`{name}` is not a name of a provider"));
        found.help("write up to 63 lower-case letters, digits and hyphens");
        return None;
    }
    Some(name.into())
}

/// Reports a provider of several types.
fn one_type(raw: &ExtensionProvider, check: &mut Check<'_>) {
    let of_type = |field: &Field<_>| shared::block(field);
    let grpc = ("envoyExtAuthzGrpc", of_type(&raw.envoy_ext_authz_grpc));
    let http = ("envoyExtAuthzHttp", of_type(&raw.envoy_ext_authz_http));
    let limits = shared::block(&raw.envoy_rate_limit_grpc);
    let limits = ("envoyRateLimitGrpc", limits);
    for pair in [[grpc, http], [grpc, limits], [http, limits]] {
        shared::exclude(pair, MC002, "keep the one that the service speaks", check);
    }
}

/// Returns a provider of external authorization; `None` for one of another type.
fn ext_authz(
    name: Arc<str>,
    raw: &ExtensionProvider,
    span: Span,
    check: &mut Check<'_>,
) -> Option<ExtAuthz> {
    one_type(raw, check);
    let others = [
        &raw.datadog,
        &raw.envoy_http_als,
        &raw.envoy_tcp_als,
        &raw.lightstep,
        &raw.opencensus,
        &raw.prometheus,
        &raw.sds,
        &raw.skywalking,
        &raw.stackdriver,
    ];
    let (field, is_http) = match raw.envoy_ext_authz_grpc.is_set() {
        true => (&raw.envoy_ext_authz_grpc, false),
        false => (&raw.envoy_ext_authz_http, true),
    };
    let Some(provider) = field.get() else {
        let is_other = raw.envoy_file_access_log.is_set() || others.iter().any(|one| one.is_set());
        let is_other = is_other || raw.envoy_rate_limit_grpc.is_set();
        let is_other = is_other || raw.opentelemetry.is_set() || raw.zipkin.is_set();
        let is_other = is_other || raw.envoy_otel_als.is_set();
        if !is_other && !field.is_invalid() {
            let found = check.error(MC002, span, format!("provider `{name}` has no type"));
            found.help("write one, such as `envoyExtAuthzGrpc` or `envoyFileAccessLog`");
        }
        return None;
    };
    let http = if is_http {
        Some(http_check(provider, check))
    } else {
        only_http(provider, check);
        None
    };
    let (host, port) = service(&provider.service, &provider.port, field.span(), check)?;
    Some(ExtAuthz {
        name,
        host,
        port,
        timeout: scalar::duration(&provider.timeout, check).unwrap_or(TIMEOUT),
        fail_open: shared::flag(&provider.fail_open),
        status_on_error: status_on_error(&provider.status_on_error, check),
        clears_route_cache: shared::flag(&provider.clear_route_cache),
        body: body(&provider.include_request_body_in_check, check),
        http,
    })
}

/// Adds the flags that the provider of rate limits sets.
pub(super) fn rate_limit_flags(
    field: &Field<Vec<Field<ExtensionProvider>>>,
    flags: &mut Vec<(&'static str, String)>,
    check: &mut Check<'_>,
) {
    let all = field.get().into_iter().flatten().filter_map(Field::get);
    let fields = all.map(|one| &one.envoy_rate_limit_grpc);
    let mut limiters = fields.filter_map(|field| Some((field.span(), field.get()?)));
    let Some((span, raw)) = limiters.next() else {
        return;
    };
    if let Some((other, _)) = limiters.next() {
        let found = check.error(MC002, other, "another provider counts rate limits");
        found.help("keep one of them");
    }
    if let Some((_, port)) = service(&raw.service, &raw.port, span, check) {
        let host = shared::text_or_empty(&raw.service);
        flags.push(("rate-limit-service", format!("{host}:{port}")));
    }
    let timeout = scalar::duration(&raw.timeout, check).and(shared::text(&raw.timeout));
    let domain = shared::text(&raw.domain);
    for (flag, text) in [
        ("rate-limit-timeout", timeout),
        ("rate-limit-domain", domain),
    ] {
        flags.extend(text.map(|text| (flag, text.to_owned())));
    }
    if raw.fail_open.get() == Some(&false) {
        flags.push(("rate-limit-fail-closed", "true".to_owned()));
    }
}

/// Returns host and port of the service.
pub(super) fn service(
    service: &Field<String>,
    port: &Field<i64>,
    span: Span,
    check: &mut Check<'_>,
) -> Option<(Arc<str>, u16)> {
    let port = api::required_port(port, span, "port", MC002, check);
    let text = shared::text(service).unwrap_or_default();
    let host = text.split_once('/').map_or(text, |(_, host)| host);
    if !scalar::is_fqdn(host) {
        let at = shared::location(service, span);
        let found = check.error(MC002, at, format!("`{text}` is not a service"));
        found
            .help("write its host, such as `authorizer.shop.svc.cluster.local`, or NAMESPACE/HOST");
        return None;
    }
    Some((host.into(), port?))
}

fn status_on_error(field: &Field<String>, check: &mut Check<'_>) -> StatusCode {
    let Some(text) = shared::text(field) else {
        return StatusCode::FORBIDDEN;
    };
    let status = text
        .parse()
        .ok()
        .filter(|status| (200..=599).contains(status));
    let status = status.and_then(|status: u16| StatusCode::from_u16(status).ok());
    status.unwrap_or_else(|| {
        let found = check.error(MC005, field.span(), format!("`{text}` is not a status"));
        found.help("write a number from 200 to 599, such as \"503\"");
        StatusCode::FORBIDDEN
    })
}

fn body(field: &Field<RequestBody>, check: &mut Check<'_>) -> Option<CheckedBody> {
    let raw = field.get()?;
    let bytes = raw.max_request_bytes.get().copied().unwrap_or(0);
    if !(1..=BODY_BYTES_MAX).contains(&bytes) {
        let at = shared::location(&raw.max_request_bytes, field.span());
        let message =
            format!("maxRequestBytes is {bytes}, not a number from 1 to {BODY_BYTES_MAX}");
        let found = check.error(MC004, at, message);
        found.help("write the number of bytes that the provider needs");
    }
    Some(CheckedBody {
        bytes_max: usize::try_from(bytes).unwrap_or(0),
        allows_part: shared::flag(&raw.allow_partial_message),
        as_bytes: shared::flag(&raw.pack_as_bytes),
    })
}

/// Reports fields of a gRPC provider that only an HTTP provider has.
fn only_http(raw: &ExtAuthzProvider, check: &mut Check<'_>) {
    let lists = [
        ("includeHeadersInCheck", &raw.include_headers_in_check),
        (
            "includeRequestHeadersInCheck",
            &raw.include_request_headers_in_check,
        ),
        (
            "headersToUpstreamOnAllow",
            &raw.headers_to_upstream_on_allow,
        ),
        (
            "headersToDownstreamOnDeny",
            &raw.headers_to_downstream_on_deny,
        ),
        (
            "headersToDownstreamOnAllow",
            &raw.headers_to_downstream_on_allow,
        ),
    ];
    let lists = lists
        .into_iter()
        .map(|(name, field)| (name, shared::list(field)));
    let added = &raw.include_additional_headers_in_check;
    let others = [
        ("pathPrefix", shared::text_span(&raw.path_prefix)),
        ("includeAdditionalHeadersInCheck", shared::map_span(added)),
    ];
    for (name, span) in lists.chain(others).filter(|(_, span)| !span.is_none()) {
        let message = format!("`{name}` is no field of envoyExtAuthzGrpc");
        let found = check.error(MC002, span, message);
        found.help("remove it: a gRPC service sees all headers, and names those to set");
    }
}

fn http_check(raw: &ExtAuthzProvider, check: &mut Check<'_>) -> HttpCheck {
    let prefix = shared::text_or_empty(&raw.path_prefix);
    if !prefix.is_empty() && (!prefix.starts_with('/') || api::not_of_a_path(&prefix).is_some()) {
        let message = format!("`{prefix}` is not the beginning of a path");
        let found = check.error(MC002, raw.path_prefix.span(), message);
        found.help("write a path that begins with `/`");
    }
    let included = match raw.include_request_headers_in_check.get() {
        Some(names) if !names.is_empty() => &raw.include_request_headers_in_check,
        _ => &raw.include_headers_in_check,
    };
    HttpCheck {
        path_prefix: prefix,
        request_headers: header_names(included, check),
        added: added(&raw.include_additional_headers_in_check, check),
        to_upstream: header_names(&raw.headers_to_upstream_on_allow, check),
        to_denied: header_names(&raw.headers_to_downstream_on_deny, check),
        to_client: header_names(&raw.headers_to_downstream_on_allow, check),
    }
}

fn header_names(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> HeaderNames {
    let mut patterns = Vec::new();
    for (entry, name) in scalar::items(field, check) {
        let pattern = match name.strip_prefix('*') {
            Some(suffix) => Pattern::Suffix(suffix.to_ascii_lowercase().into()),
            None => Pattern::of(&name.to_ascii_lowercase()),
        };
        let rest = name.strip_prefix('*').or(name.strip_suffix('*'));
        let rest = rest.unwrap_or(name);
        if !scalar::is_header_name(rest) {
            let message = format!("`{name}` is no name of a header, or its beginning or end");
            let found = check.error(MC003, entry.span(), message);
            found.help("write a name, or its beginning or end, such as `x-auth-*`");
        }
        patterns.push(pattern);
    }
    HeaderNames(patterns.into())
}

fn added(field: &Field<Map<String>>, check: &mut Check<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let mut added = Vec::new();
    for (name, key, value) in field.get().into_iter().flat_map(Map::iter) {
        let text = value.get().map_or("", String::as_str);
        let is_framing = FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known));
        match (HeaderName::try_from(name), HeaderValue::from_str(text)) {
            (Ok(name), Ok(value)) if !is_framing => added.push((name, value)),
            _ => {
                let message = format!("`{name}: {text}` is not a header that can be added");
                let found = check.error(MC003, key.span(), message);
                found.help("write a header name, and a value without control characters");
            }
        }
    }
    added
}
