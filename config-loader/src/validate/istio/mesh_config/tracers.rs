//! Receivers of spans and log records: `opentelemetry`, `zipkin` and `envoyOtelAls` of `extensionProviders`.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::providers::service;
use crate::diagnostic::codes::istio::{MC002, TL005, TL011};
use crate::raw::Field;
use crate::raw::istio::{ExtensionProvider, OpenTelemetryProvider, TracerHeader as RawHeader};
use crate::raw::istio::{OtelLogProvider, ZipkinProvider};
use crate::resource::istio::{RecordLog, Tracer, TracerHeader, TracerProtocol};
use crate::span::Span;
use crate::validate::istio::{log_format, shared};
use crate::validate::{Check, api, scalar};

/// Time limit of a request over OTLP without one.
const OTLP_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit of a request to Zipkin without one.
const ZIPKIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the receiver; the inner option is empty if it cannot be used, and the outer one if the provider is of another
/// type.
pub(super) fn tracer(raw: &ExtensionProvider, check: &mut Check<'_>) -> Option<Option<Tracer>> {
    if let Some(provider) = raw.opentelemetry.get() {
        return Some(opentelemetry(provider, raw.opentelemetry.span(), check));
    }
    let provider = raw.zipkin.get()?;
    Some(zipkin(provider, raw.zipkin.span(), check))
}

fn opentelemetry(raw: &OpenTelemetryProvider, span: Span, check: &mut Check<'_>) -> Option<Tracer> {
    let detectors = raw.resource_detectors.get();
    let dynatrace = detectors.map(|detectors| &detectors.dynatrace);
    for (name, field) in [
        ("dynatraceSampler", Some(&raw.dynatrace_sampler)),
        ("resourceDetectors.dynatrace", dynatrace),
    ] {
        if let Some(field) = field.filter(|field| field.is_set()) {
            let at = shared::location(field, span);
            let found = check.warning(TL011, at, format!("`{name}` has no effect"));
            found.help("remove it: the percentage of the Telemetry decides");
        }
    }
    let http = raw.http.get();
    let grpc = raw.grpc.get();
    let timeout = match http {
        Some(http) => scalar::duration(&http.timeout, check),
        None => grpc.and_then(|grpc| scalar::duration(&grpc.timeout, check)),
    };
    let written = match http {
        Some(http) => Some(&http.headers),
        None => grpc.map(|grpc| &grpc.initial_metadata),
    };
    let forms = [
        ("ISTIO_CANONICAL", false),
        ("OTEL_SEMANTIC_CONVENTIONS", true),
    ];
    let names = api::enum_of(&raw.service_attribute_enrichment, &forms, check);
    let has_conventional_names = names.unwrap_or(false);
    let (host, port) = service(&raw.service, &raw.port, span, check)?;
    Some(Tracer {
        namespace: namespace(&raw.service),
        host,
        port,
        protocol: match http {
            Some(_) => TracerProtocol::Http,
            None => TracerProtocol::Grpc,
        },
        path: match http {
            Some(http) => path(&http.path, "/v1/traces", check),
            None => "".into(),
        },
        timeout: timeout.unwrap_or(OTLP_TIMEOUT),
        headers: written.map_or_else(Vec::new, |written| headers(written, check)),
        path_bytes_max: path_bytes_max(&raw.max_tag_length),
        has_conventional_names,
    })
}

fn zipkin(raw: &ZipkinProvider, span: Span, check: &mut Check<'_>) -> Option<Tracer> {
    let options = [("USE_B3", false), ("USE_B3_WITH_W3C_PROPAGATION", true)];
    let has_w3c = api::enum_of(&raw.trace_context_option, &options, check).unwrap_or(false);
    let timeout = scalar::duration(&raw.timeout, check).unwrap_or(ZIPKIN_TIMEOUT);
    let headers = headers(&raw.headers, check);
    let path = path(&raw.path, "/api/v2/spans", check);
    let (host, port) = service(&raw.service, &raw.port, span, check)?;
    Some(Tracer {
        namespace: namespace(&raw.service),
        host,
        port,
        protocol: TracerProtocol::Zipkin {
            has_short_ids: shared::flag(&raw.enable_64bit_trace_id),
            has_w3c,
        },
        path,
        timeout,
        headers,
        path_bytes_max: path_bytes_max(&raw.max_tag_length),
        has_conventional_names: false,
    })
}

/// Returns the receiver of the access log; `None` if it cannot be used.
pub(super) fn record_log(
    raw: &OtelLogProvider,
    span: Span,
    check: &mut Check<'_>,
) -> Option<RecordLog> {
    let format = raw.log_format.get();
    let text = format.and_then(|format| {
        let text = shared::text(&format.text)?;
        log_format::text_format(text, false, format.text.span(), check)
    });
    let mut attributes = Vec::new();
    for (key, value) in format
        .and_then(|format| format.labels.get())
        .into_iter()
        .flatten()
    {
        let at = format.map_or(span, |format| format.labels.span());
        let Some(value) = value.as_str() else {
            let found = check.error(TL005, at, format!("the value of `{key}` is no text"));
            found.help("write a text with operators, such as `\"%RESPONSE_CODE%\"`");
            continue;
        };
        let value = log_format::template(value, at, check);
        attributes.extend(value.map(|value| (Arc::from(&**key), value)));
    }
    let (host, port) = service(&raw.service, &raw.port, span, check)?;
    Some(RecordLog {
        receiver: Tracer {
            namespace: namespace(&raw.service),
            host,
            port,
            protocol: TracerProtocol::Grpc,
            path: "".into(),
            timeout: OTLP_TIMEOUT,
            headers: Vec::new(),
            path_bytes_max: None,
            has_conventional_names: false,
        },
        name: shared::text_arc(&raw.log_name).unwrap_or_else(|| "otel_envoy_accesslog".into()),
        text,
        attributes,
    })
}

fn namespace(service: &Field<String>) -> Option<Arc<str>> {
    let (namespace, _) = shared::text(service)?.split_once('/')?;
    Some(namespace.into())
}

fn path(field: &Field<String>, default: &str, check: &mut Check<'_>) -> Arc<str> {
    let text = shared::text(field).unwrap_or(default);
    if !text.starts_with('/') || api::not_of_a_path(text).is_some() {
        let found = check.error(MC002, field.span(), format!("`{text}` is not a path"));
        found.help("write a path that begins with `/`");
    }
    text.into()
}

fn path_bytes_max(field: &Field<i64>) -> Option<usize> {
    let bytes = usize::try_from(*field.get()?).ok()?;
    (bytes > 0).then_some(bytes)
}

fn headers(
    list: &Field<Vec<Field<RawHeader>>>,
    check: &mut Check<'_>,
) -> Vec<(HeaderName, TracerHeader)> {
    let mut headers = Vec::new();
    for (field, raw) in scalar::items(list, check) {
        let name = shared::text(&raw.name).unwrap_or_default();
        let value = match (shared::text(&raw.env_name), shared::text(&raw.value)) {
            (Some(variable), _) => Some(TracerHeader::Variable(variable.into())),
            (None, value) => HeaderValue::from_str(value.unwrap_or_default())
                .ok()
                .map(TracerHeader::Value),
        };
        match HeaderName::try_from(name).ok().zip(value) {
            Some(header) => headers.push(header),
            None => {
                let found = check.error(TL005, field.span(), "not a header");
                found.help("write `name`, and `value` or `envName`");
            }
        }
    }
    headers
}
