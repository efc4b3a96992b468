//! Configuration of Envoy: one listener with an HTTP connection manager and a route per prefix, as a control plane
//! would send it, or with a TCP proxy; statistics are on.

use std::ffi::OsString;
use std::path::Path;

use super::plan::{ConfigFile, Others, Plan, STREAMS_MAX, Work};
use super::token::{ISSUER, JWKS};

const NAME: &str = "envoy.yaml";

/// Returns the static bootstrap. Without TLS, the listener detects HTTP/2 by itself.
pub(super) fn file(plan: &Plan) -> ConfigFile {
    let text = format!(
        "admin:
  address: {{ socket_address: {{ address: 127.0.0.1, port_value: {admin} }} }}
static_resources:
  listeners:
  - name: main
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: {listen} }} }}
    filter_chains:
    - filters:
{filter}{tls}  clusters:
{collector}  - name: upstream
    type: STATIC
    connect_timeout: 10s
{protocol}    load_assignment:
      cluster_name: upstream
      endpoints:
      - lb_endpoints:
{endpoints}",
        admin = plan.admin,
        listen = plan.listen,
        endpoints = endpoints(plan),
        collector = collector(plan),
        filter = match plan.work {
            Work::Tcp => tcp_proxy(),
            Work::Http | Work::Grpc => connection_manager(plan),
        },
        tls = downstream_tls(plan),
        protocol = match plan.work {
            Work::Grpc => upstream_http2(),
            Work::Http | Work::Tcp => String::new(),
        },
    );
    ConfigFile::new(NAME, text)
}

/// The default policy is round robin.
fn endpoints(plan: &Plan) -> String {
    let port = plan.upstream;
    let endpoint = |address| {
        format!(
            "        - endpoint:
            address: {{ socket_address: {{ address: {address}, port_value: {port} }} }}
"
        )
    };
    plan.addresses().map(endpoint).collect()
}

fn connection_manager(plan: &Plan) -> String {
    let routes: String = plan
        .prefixes
        .iter()
        .map(|prefix| {
            format!("              - {{ match: {{ prefix: \"{prefix}\" }}, route: {{ cluster: upstream }} }}\n")
        })
        .collect();
    let policies = match plan.others {
        Others::Policies(count) => rbac(count),
        Others::Tokens { envoy_keeps_them } => jwt(envoy_keeps_them),
        Others::None | Others::Plain(_) | Others::Featured(_) | Others::Traces(_) => String::new(),
    };
    let tracing = match plan.others {
        Others::Traces(percent) => tracing(percent),
        _ => String::new(),
    };
    format!(
        "      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": {EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: main
          codec_type: AUTO
{tracing}          http2_protocol_options: {{ max_concurrent_streams: {STREAMS_MAX} }}
          route_config:
            name: main
            virtual_hosts:
            - name: all
              domains: [\"*\"]
              routes:
{routes}          http_filters:
{policies}          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": {EXTENSIONS}.filters.http.router.v3.Router }}
"
    )
}

/// Returns the tracer that Istio makes of a provider `opentelemetry`, with a span per attempt.
fn tracing(percent: u8) -> String {
    format!(
        "          tracing:
            client_sampling: {{ value: 100 }}
            random_sampling: {{ value: {percent} }}
            overall_sampling: {{ value: 100 }}
            spawn_upstream_span: true
            provider:
              name: envoy.tracers.opentelemetry
              typed_config:
                \"@type\": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig
                service_name: bench
                grpc_service: {{ envoy_grpc: {{ cluster_name: collector }} }}
"
    )
}

/// Returns the cluster of the collector, if there are traces.
fn collector(plan: &Plan) -> String {
    match plan.others {
        Others::Traces(_) => format!(
            "  - name: collector
    type: STATIC
    connect_timeout: 10s
{protocol}    load_assignment:
      cluster_name: collector
      endpoints:
      - lb_endpoints:
        - endpoint:
            address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
",
            protocol = upstream_http2(),
            port = plan.collector,
        ),
        _ => String::new(),
    }
}

/// Returns the filter that Istio makes of policies of action DENY.
fn rbac(count: usize) -> String {
    let policy = |index| {
        format!(
            "                  \"ns[default]-policy[other-{index}]-rule[0]\":
                    permissions:
                    - and_rules:
                        rules:
                        - or_rules: {{ rules: [{{ header: {{ name: \":method\", string_match: {{ exact: POST }} }} }}] }}
                        - or_rules:
                            rules:
                            - url_path: {{ path: {{ exact: /other-{index} }} }}
                            - url_path: {{ path: {{ prefix: /more-{index}/ }} }}
                    principals: [{{ and_ids: {{ ids: [{{ any: true }}] }} }}]
"
        )
    };
    let policies: String = (0..count).map(policy).collect();
    format!(
        "          - name: envoy.filters.http.rbac
            typed_config:
              \"@type\": {EXTENSIONS}.filters.http.rbac.v3.RBAC
              rules:
                action: DENY
                policies:
{policies}"
    )
}

/// Returns the filter that Istio makes of a RequestAuthentication, which has no cache.
fn jwt(keeps_tokens: bool) -> String {
    let cache = keeps_tokens.then_some("jwt_cache_config: {}");
    let cache = cache.unwrap_or_default();
    format!(
        "          - name: envoy.filters.http.jwt_authn
            typed_config:
              \"@type\": {EXTENSIONS}.filters.http.jwt_authn.v3.JwtAuthentication
              providers:
                tokens:
                  issuer: {ISSUER}
                  forward: true
                  payload_in_metadata: payload
                  local_jwks: {{ inline_string: '{JWKS}' }}
                  {cache}
              rules:
              - match: {{ prefix: / }}
                requires:
                  requires_any: {{ requirements: [{{ provider_name: tokens }}, {{ allow_missing: {{}} }}] }}
"
    )
}

fn tcp_proxy() -> String {
    format!(
        "      - name: envoy.filters.network.tcp_proxy
        typed_config:
          \"@type\": {EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: main
          cluster: upstream
"
    )
}

/// Tickets are on by default.
fn downstream_tls(plan: &Plan) -> String {
    let Some(tls) = &plan.tls else {
        return String::new();
    };
    format!(
        "      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          \"@type\": {EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [h2, http/1.1]
            tls_params: {{ tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3 }}
            tls_certificates:
            - certificate_chain: {{ filename: \"{certificate}\" }}
              private_key: {{ filename: \"{key}\" }}
",
        certificate = tls.certificate.display(),
        key = tls.key.display(),
    )
}

fn upstream_http2() -> String {
    format!(
        "    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        \"@type\": {EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{ http2_protocol_options: {{ max_concurrent_streams: {STREAMS_MAX} }} }}
"
    )
}

const EXTENSIONS: &str = "type.googleapis.com/envoy.extensions";

/// Returns the command line arguments of Envoy. Hot restart is off, so that several Envoys can run side by side.
pub(super) fn arguments(directory: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "--concurrency",
        "1",
        "--disable-hot-restart",
        "--log-level",
        "error",
        "--config-path",
    ]
    .map(OsString::from)
    .to_vec();
    arguments.push(directory.join(NAME).into());
    arguments
}
