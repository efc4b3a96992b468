//! MeshConfig as written: the mesh-wide settings of Istio, in a file or in the ConfigMap `istio`.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::OutboundTrafficPolicy;
use crate::raw::{Field, Map};

/// List of texts.
type Texts = Field<Vec<Field<String>>>;

/// MeshConfig as written, without the fields that have no effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MeshConfig {
    /// Path of the access log. Empty for none.
    pub access_log_file: Field<String>,
    /// Format of lines of the access log: `TEXT` (default) or `JSON`.
    pub access_log_encoding: Field<String>,
    /// Providers of authorization, tracing, logging and metrics.
    pub extension_providers: Field<Vec<Field<ExtensionProvider>>>,
    /// Port of the HTTP proxy of sidecars.
    pub proxy_http_port: Field<i64>,
    /// Port for connections to workloads. Default: 15006.
    pub proxy_inbound_listen_port: Field<i64>,
    /// Port for connections of workloads. Default: 15001.
    pub proxy_listen_port: Field<i64>,
    /// Policy for traffic to unknown destinations.
    pub outbound_traffic_policy: Field<OutboundTrafficPolicy>,
    /// Time that a client gets to speak first. Default: 0 s, which is none.
    pub protocol_detection_timeout: Field<String>,
    /// Namespace with mesh-wide defaults. Default: `istio-system`.
    pub root_namespace: Field<String>,
    /// Trust domain of identities. Default: `cluster.local`.
    pub trust_domain: Field<String>,
    /// Other names of the trust domain.
    pub trust_domain_aliases: Texts,
}

/// Provider of an extension: one of its fields beside `name`. Fields of type [`IgnoredAny`] have no effect.
#[expect(missing_docs, reason = "fields without effect")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionProvider {
    /// Name, a DNS label.
    pub name: Field<String>,
    /// External authorization over gRPC.
    pub envoy_ext_authz_grpc: Field<ExtAuthzProvider>,
    /// External authorization over HTTP.
    pub envoy_ext_authz_http: Field<ExtAuthzProvider>,
    pub datadog: Field<IgnoredAny>,
    pub envoy_file_access_log: Field<IgnoredAny>,
    pub envoy_http_als: Field<IgnoredAny>,
    pub envoy_otel_als: Field<IgnoredAny>,
    pub envoy_tcp_als: Field<IgnoredAny>,
    pub lightstep: Field<IgnoredAny>,
    pub opencensus: Field<IgnoredAny>,
    pub opentelemetry: Field<IgnoredAny>,
    pub prometheus: Field<IgnoredAny>,
    pub sds: Field<IgnoredAny>,
    pub skywalking: Field<IgnoredAny>,
    pub stackdriver: Field<IgnoredAny>,
    pub zipkin: Field<IgnoredAny>,
}

/// Provider of external authorization. The fields from `path_prefix` on are only for HTTP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtAuthzProvider {
    /// Host of the service, `[NAMESPACE/]HOST`. Required.
    pub service: Field<String>,
    /// Port of the service. Required.
    pub port: Field<i64>,
    /// Time limit of a check. Default: 600 s.
    pub timeout: Field<String>,
    /// Whether requests pass that could not be checked. Default: false.
    pub fail_open: Field<bool>,
    /// Whether the route is looked up again after a check that changed headers. Default: false.
    pub clear_route_cache: Field<bool>,
    /// Status for requests that could not be checked. Default: 403.
    pub status_on_error: Field<String>,
    /// Part of the request's body that is sent. Default: none.
    pub include_request_body_in_check: Field<RequestBody>,
    /// Text before the path of the request.
    pub path_prefix: Field<String>,
    /// Older name of `includeRequestHeadersInCheck`.
    pub include_headers_in_check: Texts,
    /// Request headers that are sent, beside `authorization`.
    pub include_request_headers_in_check: Texts,
    /// Headers of every check.
    pub include_additional_headers_in_check: Field<Map<String>>,
    /// Response headers that are set on an allowed request.
    pub headers_to_upstream_on_allow: Texts,
    /// Response headers that a denied client gets. Default: all.
    pub headers_to_downstream_on_deny: Texts,
    /// Response headers that are set on the response to an allowed request.
    pub headers_to_downstream_on_allow: Texts,
}

/// Part of a request's body that is sent to a provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestBody {
    /// Largest number of bytes. Required.
    pub max_request_bytes: Field<i64>,
    /// Whether the beginning of a longer body is sent. Default: false.
    pub allow_partial_message: Field<bool>,
    /// Whether it is sent as bytes, rather than as text. Default: false.
    pub pack_as_bytes: Field<bool>,
}
