//! Limits and timeouts of connections of clients as written: `connectionSettings` of the settings of proxies.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::Field;

/// Limits and timeouts of connections of clients. Fields of type [`IgnoredAny`] have no effect.
#[expect(missing_docs, reason = "fields without effect")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionSettings {
    /// Defaults of fields that are not set: `SIDECAR` for none, or `EDGE` for a gateway that anybody can reach.
    pub profile: Field<String>,
    /// Maximum number of open connections.
    pub global_downstream_connection_limit: Field<i64>,
    /// Treatment of headers with underscores in their names.
    pub http_headers_with_underscores_action: Field<String>,
    /// Time without requests after which a connection is closed.
    pub http_idle_timeout: Field<String>,
    /// Maximum number of open streams per connection, HTTP/2.
    pub http_max_concurrent_streams: Field<i64>,
    /// Time after which a connection takes no further request.
    pub http_max_connection_duration: Field<String>,
    /// Maximum time of a request.
    pub http_max_stream_duration: Field<String>,
    /// Whether adjacent slashes of a path become one.
    pub http_merge_slashes: Field<bool>,
    /// Treatment of escaped slashes in paths.
    pub http_path_with_escaped_slashes_action: Field<String>,
    /// Time from the head of a request to the end of its body.
    pub http_request_timeout: Field<String>,
    /// Maximum number of open connections of one listener.
    pub listener_connection_limit: Field<i64>,
    /// Time for the head of a request.
    pub http_request_headers_timeout: Field<String>,
    /// Time without progress of a request.
    pub http_stream_idle_timeout: Field<String>,
    /// Receive window of a connection, HTTP/2, in bytes.
    pub http2_initial_connection_window_size: Field<i64>,
    /// Receive window of a stream, HTTP/2, in bytes.
    pub http2_initial_stream_window_size: Field<i64>,
    pub cluster_per_connection_buffer_limit_bytes: Field<IgnoredAny>,
    pub http_drain_timeout: Field<IgnoredAny>,
    pub listener_per_connection_buffer_limit_bytes: Field<IgnoredAny>,
}
