//! Limits and timeouts of connections of clients (`connectionSettings`): validation.

use super::Check;
use super::shared::location;
use crate::diagnostic::codes::istio::{MC006, MC101};
use crate::raw::Field;
use crate::raw::istio::ConnectionSettings as Raw;
use crate::resource::istio::FlagValue;
use crate::span::Span;
use crate::validate::{api, scalar};

/// Values of the profile `EDGE` at a gateway, where no field sets another one.
const EDGE: [FlagOf; 7] = [
    ("http-idle-timeout", "1h"),
    ("http-stream-idle-timeout", "5m"),
    ("http2-max-concurrent-streams", "100"),
    ("http2-stream-window", "65536"),
    ("http2-connection-window", "1048576"),
    ("http-request-headers-timeout", "60s"),
    ("header-underscores", "reject"),
];

/// Name of a flag, and a constant value.
type FlagOf = (&'static str, &'static str);

/// Treatments of header names with underscores, as the flag names them. Istio's documentation leaves out the prefix.
const UNDERSCORES: [(&str, Option<&str>); 7] = [
    ("ALLOW", Some("allow")),
    ("DROP_HEADER", Some("drop")),
    ("HEADERS_WITH_UNDERSCORES_ALLOW", Some("allow")),
    ("HEADERS_WITH_UNDERSCORES_DROP_HEADER", Some("drop")),
    ("HEADERS_WITH_UNDERSCORES_REJECT_REQUEST", Some("reject")),
    ("HEADERS_WITH_UNDERSCORES_UNSPECIFIED", None),
    ("REJECT_REQUEST", Some("reject")),
];

/// Treatment of escaped slashes in paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscapedSlashes {
    Decode,
    Keep,
    Redirect,
    Reject,
    Unspecified,
}

/// Flags of connection settings.
#[derive(Debug, Default)]
pub(super) struct ConnectionFlags {
    /// Flags of fields.
    pub(super) set: Vec<FlagValue>,
    /// Flags of the profile, which are about gateways only.
    pub(super) of_gateways: Vec<FlagValue>,
}

/// Returns the flags of the settings, which are at `span` of the document.
pub(super) fn connection_flags(raw: &Raw, span: Span, check: &mut Check<'_>) -> ConnectionFlags {
    let profiles = [
        ("EDGE", true),
        ("PROFILE_UNSPECIFIED", false),
        ("SIDECAR", false),
        ("UNSPECIFIED", false),
    ];
    let is_edge = api::enum_of(&raw.profile, &profiles, check).unwrap_or(false);
    let mut set = Vec::new();
    for (flag, field) in [
        ("http-idle-timeout", &raw.http_idle_timeout),
        (
            "http-max-connection-duration",
            &raw.http_max_connection_duration,
        ),
        ("http-max-stream-duration", &raw.http_max_stream_duration),
        (
            "http-request-headers-timeout",
            &raw.http_request_headers_timeout,
        ),
        ("http-request-timeout", &raw.http_request_timeout),
        ("http-stream-idle-timeout", &raw.http_stream_idle_timeout),
    ] {
        if scalar::duration_or_zero(field, check).is_some() {
            set.extend(field.get().map(|time| (flag, time.clone())));
        }
    }
    let most = i64::from(i32::MAX);
    for (flag, field, least) in [
        (
            "max-connections",
            &raw.global_downstream_connection_limit,
            1,
        ),
        (
            "listener-max-connections",
            &raw.listener_connection_limit,
            1,
        ),
        (
            "http2-max-concurrent-streams",
            &raw.http_max_concurrent_streams,
            1,
        ),
        (
            "http2-connection-window",
            &raw.http2_initial_connection_window_size,
            65_535,
        ),
        (
            "http2-stream-window",
            &raw.http2_initial_stream_window_size,
            65_535,
        ),
    ] {
        let value = scalar::in_range(field, least..=most, "number", MC006, check);
        set.extend(value.map(|value| (flag, value.to_string())));
    }
    let underscores = &raw.http_headers_with_underscores_action;
    let underscores = scalar::enum_of(underscores, &UNDERSCORES, check).flatten();
    set.extend(underscores.map(|it| ("header-underscores", it.to_owned())));
    set.extend(paths(raw, check));
    without_effect(raw, span, check);
    let mut of_gateways: Vec<FlagValue> = Vec::new();
    if is_edge {
        of_gateways.extend(EDGE.map(|(flag, value)| (flag, value.to_owned())));
        of_gateways.push(("path-normalization", "decode-and-merge-slashes".to_owned()));
    }
    ConnectionFlags { set, of_gateways }
}

/// Returns the flag of the fields about paths.
fn paths(raw: &Raw, check: &mut Check<'_>) -> Option<FlagValue> {
    let field = &raw.http_path_with_escaped_slashes_action;
    let names = [
        ("KEEP_UNCHANGED", EscapedSlashes::Keep),
        (
            "PATH_WITH_ESCAPED_SLASHES_UNSPECIFIED",
            EscapedSlashes::Unspecified,
        ),
        ("REJECT_REQUEST", EscapedSlashes::Reject),
        ("UNESCAPE_AND_FORWARD", EscapedSlashes::Decode),
        ("UNESCAPE_AND_REDIRECT", EscapedSlashes::Redirect),
    ];
    let escaped = scalar::enum_of(field, &names, check).unwrap_or(EscapedSlashes::Unspecified);
    let merges = raw.http_merge_slashes.get().copied();
    if matches!(escaped, EscapedSlashes::Redirect | EscapedSlashes::Reject) {
        let message = "escaped slashes are decoded, and the request is served by the decoded path";
        let found = check.warning(MC101, field.span(), message);
        found.help("write UNESCAPE_AND_FORWARD for the same, or KEEP_UNCHANGED");
    }
    let decodes = !matches!(escaped, EscapedSlashes::Keep | EscapedSlashes::Unspecified);
    let normalization = match (decodes, merges) {
        (false, None) if escaped == EscapedSlashes::Unspecified => return None,
        (false, Some(true)) => "merge-slashes",
        (false, Some(false) | None) => "base",
        (true, Some(true)) => "decode-and-merge-slashes",
        (true, Some(false) | None) => {
            let message = "adjacent slashes become one as well where escaped slashes are decoded";
            let found = check.warning(MC101, field.span(), message);
            found.help("write `httpMergeSlashes: true`, or KEEP_UNCHANGED");
            "decode-and-merge-slashes"
        }
    };
    Some(("path-normalization", normalization.to_owned()))
}

/// Reports the fields without an effect.
fn without_effect(raw: &Raw, span: Span, check: &mut Check<'_>) {
    for (name, field, help) in [
        (
            "clusterPerConnectionBufferLimitBytes",
            &raw.cluster_per_connection_buffer_limit_bytes,
            "remove it: docs/limits.md has the buffers of connections",
        ),
        (
            "httpDrainTimeout",
            &raw.http_drain_timeout,
            "write `drainDuration`",
        ),
        (
            "listenerPerConnectionBufferLimitBytes",
            &raw.listener_per_connection_buffer_limit_bytes,
            "remove it: docs/limits.md has the buffers of connections",
        ),
    ] {
        if field.is_set() {
            let message = format!("`connectionSettings.{name}` has no effect");
            check
                .warning(MC101, location(field, span), message)
                .help(help);
        }
    }
}

/// Returns the flag of Envoy's runtime values that is followed: the limit of connections.
pub(super) fn of_runtime(
    values: &Field<crate::raw::Map<String>>,
    check: &mut Check<'_>,
) -> Option<FlagValue> {
    let mut limit = None;
    let entries = values.get().into_iter().flat_map(crate::raw::Map::iter);
    for (name, key, value) in entries {
        let count = value.get().and_then(|text| text.parse::<u32>().ok());
        match (name, count.filter(|count| *count > 0)) {
            ("overload.global_downstream_max_connections", Some(count)) => {
                limit = Some(("max-connections", count.to_string()));
            }
            ("overload.global_downstream_max_connections", None) => {
                let found = check.error(
                    MC006,
                    key.span(),
                    "the limit of connections is no number above 0",
                );
                found.help("write the maximum number of connections as a text, such as \"50000\"");
            }
            _ => {
                let message = format!("`runtimeValues` `{name}` has no effect");
                let found = check.warning(MC101, key.span(), message);
                found.help("remove it: there is no runtime of Envoy; see docs/limits.md");
            }
        }
    }
    limit
}
