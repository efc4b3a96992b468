//! MeshConfig as written: the mesh-wide settings of Istio, in a file or in the ConfigMap `istio`.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{
    ConnectionPoolSettings, HttpRetry, LocalityLoadBalancerSetting, OutboundTrafficPolicy,
    OutlierDetection, ProxySettings, TcpKeepalive,
};
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
    /// Operators of lines of the access log: text, or a JSON object. Default: Istio's.
    pub access_log_format: Field<String>,
    /// Authorities that the mesh trusts beside its own.
    pub ca_certificates: Field<Vec<Field<CertificateData>>>,
    /// Timeout for connecting. Default: 10 s.
    pub connect_timeout: Field<String>,
    /// Settings of proxies.
    pub default_config: Field<ProxySettings>,
    /// Whether HTTP/1.1 requests go upstream as HTTP/2: `DO_NOT_UPGRADE` (default) or `UPGRADE`.
    pub h2_upgrade_policy: Field<String>,
    /// Namespaces that may use DestinationRules without `exportTo`.
    pub default_destination_rule_export_to: Texts,
    /// Retries of rules without `retries`.
    pub default_http_retry_policy: Field<HttpRetry>,
    /// Providers where no Telemetry names others.
    pub default_providers: Field<DefaultProviders>,
    /// Namespaces that may use Services and ServiceEntries without `exportTo`.
    pub default_service_export_to: Texts,
    /// Settings of DestinationRules that have none.
    pub default_traffic_policy: Field<DefaultTrafficPolicy>,
    /// Namespaces that may use VirtualServices without `exportTo`.
    pub default_virtual_service_export_to: Texts,
    /// Whether raw TCP connections without a route have no line in the access log. Default: false.
    pub disable_envoy_listener_log: Field<bool>,
    /// Selectors of namespaces, of which one must match. Default: all namespaces.
    pub discovery_selectors: Field<Vec<Field<NamespaceSelector>>>,
    /// Maximum time between lookups of a name that fail. Default: 60 s.
    pub dns_refresh_rate: Field<String>,
    /// Whether `tracing` of the settings of proxies turns tracing on. Default: true.
    pub enable_tracing: Field<bool>,
    /// Whether endpoints of the mesh get mutual TLS without a rule. Default: true.
    pub enable_auto_mtls: Field<bool>,
    /// Providers of authorization, tracing, logging and metrics.
    pub extension_providers: Field<Vec<Field<ExtensionProvider>>>,
    /// Address that traffic to a workload goes to.
    pub inbound_traffic_policy: Field<InboundTrafficPolicy>,
    /// Locality load balancing settings.
    pub locality_lb_setting: Field<LocalityLoadBalancerSetting>,
    /// TLS within the mesh.
    #[serde(rename = "meshMTLS")]
    pub mesh_mtls: Field<TlsConfig>,
    /// Normalization of the paths of requests.
    pub path_normalization: Field<ProxyPathNormalization>,
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
    /// Settings of services.
    pub service_settings: Field<Vec<Field<ServiceSettings>>>,
    /// TCP keepalive probes of connections to endpoints. Default: off.
    pub tcp_keepalive: Field<TcpKeepalive>,
    /// TLS of other servers and endpoints.
    pub tls_defaults: Field<TlsConfig>,
    /// Trust domain of identities. Default: `cluster.local`.
    pub trust_domain: Field<String>,
    /// Other names of the trust domain.
    pub trust_domain_aliases: Texts,
}

/// Address that traffic to a workload goes to (`inboundTrafficPolicy`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InboundTrafficPolicy {
    /// `PASSTHROUGH` (default), to the address that the client dialed, or `LOCALHOST`.
    pub mode: Field<String>,
}

/// Providers where no Telemetry names others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultProviders {
    /// Providers of access logs.
    pub access_logging: Texts,
    /// Providers of metrics.
    pub metrics: Texts,
    /// Providers of traces; the first one counts.
    pub tracing: Texts,
}

/// Access log in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileAccessLog {
    /// Path of the file, `/dev/stdout` (default) or `/dev/stderr`.
    pub path: Field<String>,
    /// Format of a line. Default: Istio's text.
    pub log_format: Field<LogFormat>,
    /// Whether missing values are left out. Default: false.
    pub omit_empty_values: Field<bool>,
}

/// Format of a line: one of its fields, or both for OTLP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogFormat {
    /// Text with operators.
    pub text: Field<String>,
    /// Keys of a JSON object, with operators as values.
    pub labels: Field<serde_json::Map<String, serde_json::Value>>,
}

/// Normalization of the paths of requests (`pathNormalization`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyPathNormalization {
    /// `BASE` (default), `NONE`, `MERGE_SLASHES` or `DECODE_AND_MERGE_SLASHES`.
    pub normalization: Field<String>,
}

/// Selector of namespaces by their labels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceSelector {
    /// Labels with their values.
    pub match_labels: Field<Map<String>>,
    /// Conditions on labels.
    pub match_expressions: Field<Vec<Field<NamespaceCondition>>>,
}

/// Condition on a label of a namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceCondition {
    /// Key of the label.
    pub key: Field<String>,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: Field<String>,
    /// Values of the label.
    pub values: Texts,
}

/// Settings of services (`serviceSettings`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSettings {
    /// Hosts or wildcards.
    pub hosts: Texts,
    /// Settings of these hosts.
    pub settings: Field<ClusterLocal>,
}

/// Settings of some hosts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterLocal {
    /// Whether the local cluster alone serves them. Default: false.
    pub cluster_local: Field<bool>,
}

/// Settings of DestinationRules that have none (`defaultTrafficPolicy`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultTrafficPolicy {
    /// Connection pool settings.
    pub connection_pool: Field<ConnectionPoolSettings>,
    /// Outlier detection settings.
    pub outlier_detection: Field<OutlierDetection>,
}

/// Authority that the mesh trusts. Fields of type [`IgnoredAny`] have no effect.
#[expect(missing_docs, reason = "fields without effect")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateData {
    /// Its certificates.
    pub pem: Field<String>,
    pub cert_signers: Field<IgnoredAny>,
    pub spiffe_bundle_url: Field<IgnoredAny>,
    pub trust_domains: Field<IgnoredAny>,
}

/// Settings of TLS (`meshMTLS`, `tlsDefaults`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsConfig {
    /// Minimum TLS version: `TLS_AUTO` (default), `TLSV1_2` or `TLSV1_3`.
    pub min_protocol_version: Field<String>,
    /// Key exchange curves.
    pub ecdh_curves: Texts,
    /// Cipher suites up to TLS 1.2.
    pub cipher_suites: Texts,
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
    /// Rate limits over gRPC. Not in Istio.
    pub envoy_rate_limit_grpc: Field<RateLimitProvider>,
    pub datadog: Field<IgnoredAny>,
    /// Access log in a file.
    pub envoy_file_access_log: Field<FileAccessLog>,
    pub envoy_http_als: Field<IgnoredAny>,
    /// Access log over OTLP.
    pub envoy_otel_als: Field<OtelLogProvider>,
    pub envoy_tcp_als: Field<IgnoredAny>,
    pub lightstep: Field<IgnoredAny>,
    pub opencensus: Field<IgnoredAny>,
    /// Spans over OTLP.
    pub opentelemetry: Field<OpenTelemetryProvider>,
    pub prometheus: Field<IgnoredAny>,
    pub sds: Field<IgnoredAny>,
    pub skywalking: Field<IgnoredAny>,
    pub stackdriver: Field<IgnoredAny>,
    /// Spans to Zipkin.
    pub zipkin: Field<ZipkinProvider>,
}

/// Receiver of spans over OTLP. Fields of type [`IgnoredAny`] have no effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenTelemetryProvider {
    /// Host of the service, `[NAMESPACE/]HOST`. Required.
    pub service: Field<String>,
    /// Port of the service. Required.
    pub port: Field<i64>,
    /// Maximum number of bytes of a path in spans. Default: 256.
    pub max_tag_length: Field<i64>,
    /// OTLP/HTTP instead of OTLP/gRPC.
    pub http: Field<TracerHttp>,
    /// Settings of OTLP/gRPC.
    pub grpc: Field<TracerGrpc>,
    /// Sources of attributes of the resource; the environment is always one.
    pub resource_detectors: Field<ResourceDetectors>,
    /// Names of services: `ISTIO_CANONICAL` (default) or `OTEL_SEMANTIC_CONVENTIONS`.
    pub service_attribute_enrichment: Field<String>,
    /// Sampling by Dynatrace.
    pub dynatrace_sampler: Field<IgnoredAny>,
}

/// Receiver of the access log over OTLP/gRPC.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OtelLogProvider {
    /// Host of the service, `[NAMESPACE/]HOST`. Required.
    pub service: Field<String>,
    /// Port of the service. Required.
    pub port: Field<i64>,
    /// Attribute `log_name` of the resource. Default: `otel_envoy_accesslog`.
    pub log_name: Field<String>,
    /// Text and attributes of records.
    pub log_format: Field<LogFormat>,
}

/// Settings of OTLP/HTTP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TracerHttp {
    /// Path of requests. Default: `/v1/traces`.
    pub path: Field<String>,
    /// Time limit of a request. Default: 10 s.
    pub timeout: Field<String>,
    /// Headers of requests.
    pub headers: Field<Vec<Field<TracerHeader>>>,
}

/// Settings of OTLP/gRPC.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TracerGrpc {
    /// Time limit of a call. Default: 10 s.
    pub timeout: Field<String>,
    /// Metadata of calls.
    pub initial_metadata: Field<Vec<Field<TracerHeader>>>,
}

/// Header of requests to a receiver of spans.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TracerHeader {
    /// Name. Required.
    pub name: Field<String>,
    /// Value.
    pub value: Field<String>,
    /// Variable of the proxy that has the value.
    pub env_name: Field<String>,
}

/// Sources of attributes of the resource.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDetectors {
    /// `OTEL_RESOURCE_ATTRIBUTES`.
    pub environment: Field<IgnoredAny>,
    /// Files of Dynatrace; without effect.
    pub dynatrace: Field<IgnoredAny>,
}

/// Zipkin, or another receiver of its spans.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZipkinProvider {
    /// Host of the service, `[NAMESPACE/]HOST`. Required.
    pub service: Field<String>,
    /// Port of the service. Required.
    pub port: Field<i64>,
    /// Path of requests. Default: `/api/v2/spans`.
    pub path: Field<String>,
    /// Maximum number of bytes of a path in spans. Default: 256.
    pub max_tag_length: Field<i64>,
    /// Whether ids of new traces have 64 bits. Default: false.
    #[serde(rename = "enable64bitTraceId")]
    pub enable_64bit_trace_id: Field<bool>,
    /// Formats of contexts: `USE_B3` (default) or `USE_B3_WITH_W3C_PROPAGATION`.
    pub trace_context_option: Field<String>,
    /// Time limit of a request. Default: 5 s.
    pub timeout: Field<String>,
    /// Headers of requests.
    pub headers: Field<Vec<Field<TracerHeader>>>,
}

/// Service that counts rate limits over all proxies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RateLimitProvider {
    /// Host of the service, `[NAMESPACE/]HOST`. Required.
    pub service: Field<String>,
    /// Port of the service. Required.
    pub port: Field<i64>,
    /// Time for an answer. Default: 20 ms.
    pub timeout: Field<String>,
    /// Domain that the service is asked about. Default: `strait`.
    pub domain: Field<String>,
    /// Whether requests pass that could not be counted. Default: true.
    pub fail_open: Field<bool>,
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
