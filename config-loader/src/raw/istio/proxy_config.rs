//! ProxyConfig as written: the kind, and the settings of proxies in the mesh configuration (`defaultConfig`) and in an
//! annotation.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::telemetry::CustomTag;
use super::{ClientTlsSettings, ConnectionSettings, LabelSelector};
use crate::raw::{Field, Map};

/// ProxyConfig as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyConfig {
    /// Workloads in the resource's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Number of worker threads; 0 for one per core.
    pub concurrency: Field<i64>,
    /// Variables of the proxy's environment.
    pub environment_variables: Field<Map<String>>,
    /// Image of the proxy's container, which the injector sets.
    pub image: Field<IgnoredAny>,
}

/// Settings of proxies as written: `defaultConfig` of the mesh configuration, or the annotation `proxy.istio.io/config`.
/// Fields of type [`IgnoredAny`] have no effect.
#[expect(missing_docs, reason = "fields without effect")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxySettings {
    /// Certificates of authorities that the proxy trusts beside those of the mesh.
    pub ca_certificates_pem: Field<Vec<Field<String>>>,
    /// Number of worker threads; 0 for one per core.
    pub concurrency: Field<i64>,
    /// Limits and timeouts of connections of clients.
    pub connection_settings: Field<ConnectionSettings>,
    /// Time for requests in flight to finish when listeners close. Default: 45 s.
    pub drain_duration: Field<String>,
    /// Proxies in front of gateways.
    pub gateway_topology: Field<GatewayTopology>,
    /// Mode in which connections of the workload are captured.
    pub interception_mode: Field<String>,
    /// Name of the mesh. Default: its trust domain.
    pub mesh_id: Field<String>,
    /// Port of the admin server. Default: 15000.
    pub proxy_admin_port: Field<i64>,
    /// Headers that proxies add.
    pub proxy_headers: Field<ProxyHeaders>,
    /// Variables of the proxy's environment.
    pub proxy_metadata: Field<Map<String>>,
    /// Values of Envoy's runtime, of which the limit of connections is followed.
    pub runtime_values: Field<Map<String>>,
    /// Name of the service in traces.
    pub service_cluster: Field<String>,
    /// Whether metrics are compressed for clients that accept it. Default: true.
    pub stats_compression: Field<bool>,
    /// Port of the health pages. Default: 15020.
    pub status_port: Field<i64>,
    /// Time that a sidecar serves its workload after SIGTERM. Default: 5 s.
    pub termination_drain_duration: Field<String>,
    /// Traces.
    pub tracing: Field<ProxyTracing>,
    /// Form of the name of the service in traces.
    pub tracing_service_name: Field<String>,
    /// Older place of `tracing.zipkin.address`.
    pub zipkin_address: Field<String>,
    pub availability_zone: Field<IgnoredAny>,
    pub binary_path: Field<IgnoredAny>,
    pub config_path: Field<IgnoredAny>,
    pub control_plane_auth_policy: Field<IgnoredAny>,
    pub custom_config_file: Field<IgnoredAny>,
    pub discovery_address: Field<IgnoredAny>,
    pub discovery_refresh_delay: Field<IgnoredAny>,
    pub envoy_access_log_service: Field<IgnoredAny>,
    pub envoy_metrics_service: Field<IgnoredAny>,
    pub envoy_metrics_service_address: Field<IgnoredAny>,
    pub extra_stat_tags: Field<IgnoredAny>,
    pub file_flush_interval: Field<IgnoredAny>,
    pub file_flush_min_size_kb: Field<IgnoredAny>,
    pub hold_application_until_proxy_starts: Field<IgnoredAny>,
    pub image: Field<IgnoredAny>,
    pub parent_shutdown_duration: Field<IgnoredAny>,
    pub private_key_provider: Field<IgnoredAny>,
    pub proxy_bootstrap_template_path: Field<IgnoredAny>,
    pub proxy_stats_matcher: Field<IgnoredAny>,
    pub readiness_probe: Field<IgnoredAny>,
    pub sds: Field<IgnoredAny>,
    pub stat_name_length: Field<IgnoredAny>,
    pub statsd_udp_address: Field<IgnoredAny>,
}

/// Proxies in front of gateways (`gatewayTopology`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayTopology {
    /// Treatment of `x-forwarded-client-cert`.
    pub forward_client_cert_details: Field<String>,
    /// Number of trusted proxies in front.
    pub num_trusted_proxies: Field<i64>,
    /// Whether connections begin with a PROXY header.
    pub proxy_protocol: Field<IgnoredAny>,
}

/// Traces of proxies (`tracing`). Fields of type [`IgnoredAny`] have no effect.
#[expect(missing_docs, reason = "fields without effect")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyTracing {
    /// Attributes of spans, by name.
    pub custom_tags: Field<Map<CustomTag>>,
    /// Whether spans have the attributes `istio.*`. Default: true.
    pub enable_istio_tags: Field<bool>,
    /// Maximum length of paths in spans. Default: 256.
    pub max_path_tag_length: Field<i64>,
    /// Share of requests without an earlier decision that are sampled, in percent. Default: 1.
    pub sampling: Field<f64>,
    pub datadog: Field<IgnoredAny>,
    pub lightstep: Field<IgnoredAny>,
    pub open_census_agent: Field<IgnoredAny>,
    pub stackdriver: Field<IgnoredAny>,
    /// TLS to the collector.
    pub tls_settings: Field<ClientTlsSettings>,
    /// Zipkin, or another receiver of its spans.
    pub zipkin: Field<ZipkinTracing>,
}

/// Receiver of spans (`tracing.zipkin`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZipkinTracing {
    /// `HOST:PORT`; `$(NAME)` is a variable of the proxy.
    pub address: Field<String>,
}

/// Headers that proxies add (`proxyHeaders`). Fields of type [`IgnoredAny`] have no effect.
#[expect(missing_docs, reason = "fields without effect")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyHeaders {
    /// The response header `server`.
    pub server: Field<ServerHeader>,
    /// The request header `x-forwarded-host`.
    pub x_forwarded_host: Field<EnabledHeader>,
    /// The request header `x-envoy-attempt-count`.
    pub attempt_count: Field<DisabledHeader>,
    /// Headers with times: `x-envoy-upstream-service-time` and `x-envoy-expected-rq-timeout-ms`.
    pub envoy_debug_headers: Field<DisabledHeader>,
    /// Treatment of `x-forwarded-client-cert`.
    pub forwarded_client_cert: Field<String>,
    pub metadata_exchange_headers: Field<IgnoredAny>,
    pub preserve_http1_header_case: Field<IgnoredAny>,
    /// The request header `x-request-id`.
    pub request_id: Field<DisabledHeader>,
    pub set_current_client_cert_details: Field<IgnoredAny>,
    /// The request header `x-forwarded-port`.
    pub x_forwarded_port: Field<EnabledHeader>,
}

/// The response header `server`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerHeader {
    /// Whether that of the endpoint is kept. Default: false.
    pub disabled: Field<bool>,
    /// Value. Default: `istio-envoy`.
    pub value: Field<String>,
}

/// Header that is added by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisabledHeader {
    /// Whether it is left out. Default: false.
    pub disabled: Field<bool>,
}

/// Header that is not added by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnabledHeader {
    /// Whether it is added. Default: false.
    pub enabled: Field<bool>,
}
