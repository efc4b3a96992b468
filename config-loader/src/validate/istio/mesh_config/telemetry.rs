//! Telemetry: access log, and providers of `extensionProviders` and `defaultProviders`.

use std::sync::Arc;

use serde::de::IgnoredAny;

use super::tracers;
use crate::diagnostic::codes::istio::{MC009, TL005, TL010, TL011};
use crate::raw::Field;
use crate::raw::istio::{ExtensionProvider, FileAccessLog, MeshConfig as Raw};
use crate::resource::istio::{
    DefaultProviders, FileFormat, FileLog, MeshConfig, ProviderKind, TRACERS_OF_FLAGS,
    TelemetryProvider,
};
use crate::span::Span;
use crate::validate::istio::{log_format, shared};
use crate::validate::{Check, api, scalar};

const STDOUT: &str = "/dev/stdout";

/// Returns the format of the access log.
pub(super) fn access_log_format(raw: &Raw, check: &mut Check<'_>) -> FileFormat {
    let encodings = [("TEXT", false), ("JSON", true)];
    let is_json = api::enum_of(&raw.access_log_encoding, &encodings, check).unwrap_or(false);
    let span = raw.access_log_format.span();
    let Some(text) = shared::text(&raw.access_log_format) else {
        return match is_json {
            true => FileFormat::Json,
            false => FileFormat::Text,
        };
    };
    let format = match is_json {
        false => log_format::text_format(text, false, span, check),
        true => match serde_json::from_str(text) {
            Ok(object) => log_format::json_format(&object, false, span, check),
            Err(error) => {
                let message = format!("accessLogFormat is not a JSON object: {error}");
                let found = check.error(MC009, span, message);
                found.help("write an object, or `accessLogEncoding: TEXT`");
                None
            }
        },
    };
    format.map_or(FileFormat::Text, FileFormat::Custom)
}

/// Returns the access log where no Telemetry says otherwise; none without `accessLogFile`.
pub(super) fn access_log(raw: &Raw, format: &FileFormat) -> Option<FileLog> {
    Some(FileLog {
        path: shared::text(&raw.access_log_file)?.into(),
        format: format.clone(),
    })
}

/// Returns the providers where no Telemetry names others.
pub(super) fn default_providers(raw: &Raw, check: &mut Check<'_>) -> DefaultProviders {
    let Some(raw) = raw.default_providers.get() else {
        return DefaultProviders::default();
    };
    DefaultProviders {
        access_logging: shared::texts(&raw.access_logging, check),
        metrics: shared::texts(&raw.metrics, check),
        tracing: shared::texts(&raw.tracing, check),
    }
}

/// Warns about default providers that do not exist.
pub(super) fn unknown_defaults(raw: &Raw, mesh: &MeshConfig, check: &mut Check<'_>) {
    let Some(raw) = raw.default_providers.get() else {
        return;
    };
    let lists = [&raw.access_logging, &raw.metrics, &raw.tracing];
    let mut named = Vec::new();
    for list in lists {
        named.extend(scalar::items(list, check));
    }
    for (field, name) in named {
        if mesh.provider(name).is_none() && !TRACERS_OF_FLAGS.contains(&&**name) {
            let message = format!("there is no provider `{name}`: nothing is sent to it");
            let found = check.warning(TL010, field.span(), message);
            found.help("add it to `extensionProviders`");
        }
    }
}

/// Returns the providers of telemetry.
pub(super) fn providers(
    field: &Field<Vec<Field<ExtensionProvider>>>,
    check: &mut Check<'_>,
) -> Vec<TelemetryProvider> {
    let mut providers = Vec::new();
    for (field, raw) in scalar::items(field, check) {
        let Some(name) = shared::text_arc(&raw.name) else {
            continue;
        };
        let kind = kind(raw, field.span(), check);
        providers.extend(kind.map(|kind| TelemetryProvider { name, kind }));
    }
    providers
}

/// Returns the kind of a provider; `None` for one of external authorization, or without a type.
fn kind(raw: &ExtensionProvider, span: Span, check: &mut Check<'_>) -> Option<ProviderKind> {
    if let Some(file) = raw.envoy_file_access_log.get() {
        return Some(ProviderKind::File(file_log(raw, file, check)));
    }
    if raw.prometheus.is_set() {
        return Some(ProviderKind::Prometheus);
    }
    if let Some(tracer) = tracers::tracer(raw, check) {
        return tracer.map(|tracer| ProviderKind::Tracer(Arc::new(tracer)));
    }
    if let Some(log) = raw.envoy_otel_als.get() {
        let log = tracers::record_log(log, raw.envoy_otel_als.span(), check)?;
        return Some(ProviderKind::Records(Arc::new(log)));
    }
    let unsupported = without_effect(raw);
    let (name, field, kind, help) = unsupported.into_iter().find(|(_, one, ..)| one.is_set())?;
    let span = shared::location(field, span);
    let found = check.warning(
        TL011,
        span,
        format!("providers of type `{name}` have no effect"),
    );
    found.help(help);
    Some(kind)
}

/// Type without an effect: name, field, kind, and advice.
type WithoutEffect<'r> = (
    &'static str,
    &'r Field<IgnoredAny>,
    ProviderKind,
    &'static str,
);

fn without_effect(raw: &ExtensionProvider) -> [WithoutEffect<'_>; 8] {
    [
        (
            "envoyHttpAls",
            &raw.envoy_http_als,
            ProviderKind::OtherLog,
            LOGS,
        ),
        (
            "envoyTcpAls",
            &raw.envoy_tcp_als,
            ProviderKind::OtherLog,
            LOGS,
        ),
        ("datadog", &raw.datadog, ProviderKind::Unsupported, TRACES),
        (
            "lightstep",
            &raw.lightstep,
            ProviderKind::Unsupported,
            TRACES,
        ),
        (
            "opencensus",
            &raw.opencensus,
            ProviderKind::Unsupported,
            TRACES,
        ),
        (
            "skywalking",
            &raw.skywalking,
            ProviderKind::Unsupported,
            TRACES,
        ),
        (
            "stackdriver",
            &raw.stackdriver,
            ProviderKind::Unsupported,
            TRACES,
        ),
        ("sds", &raw.sds, ProviderKind::Unsupported, "remove it"),
    ]
}

const LOGS: &str = "write `envoyFileAccessLog` or `envoyOtelAls`";
const TRACES: &str = "send spans by OpenTelemetry: its collector passes them on";

fn file_log(provider: &ExtensionProvider, raw: &FileAccessLog, check: &mut Check<'_>) -> FileLog {
    let path = shared::text(&raw.path).unwrap_or(STDOUT);
    if !path.starts_with('/') {
        let found = check.error(
            TL005,
            raw.path.span(),
            format!("`{path}` is not an absolute path"),
        );
        found.help("write `/dev/stdout`, `/dev/stderr`, or the path of a file");
    }
    let omits_empty = shared::flag(&raw.omit_empty_values);
    let of_mesh = !omits_empty && shared::text(&provider.name) == Some("envoy");
    let format = match raw.log_format.get() {
        None if of_mesh => Some(FileFormat::OfMesh),
        None => None,
        Some(format) => {
            shared::exclude(
                [
                    ("text", shared::text_span(&format.text)),
                    ("labels", shared::block(&format.labels)),
                ],
                TL005,
                "keep the one that is meant",
                check,
            );
            let labels = format.labels.get();
            match (shared::text(&format.text), labels) {
                (Some(text), _) => {
                    log_format::text_format(text, omits_empty, format.text.span(), check)
                        .map(FileFormat::Custom)
                }
                (None, Some(labels)) if !labels.is_empty() => {
                    log_format::json_format(labels, omits_empty, format.labels.span(), check)
                        .map(FileFormat::Custom)
                }
                (None, Some(_)) => Some(FileFormat::Json),
                (None, None) => None,
            }
        }
    };
    FileLog {
        path: Arc::from(path),
        format: format.unwrap_or_default(),
    }
}
