//! Strait and Envoy in a row decide alike, in both orders. Skipped, with a message, on machines without Envoy.

use std::collections::BTreeSet;

use super::*;
use crate::support::envoy::Envoy;
use crate::support::mesh::everything_to_address;
use crate::support::proxy::free_address;
use crate::support::until;

const SAMPLED: &str = "10";
const REQUESTS: usize = 400;

fn cluster(name: &str, address: SocketAddr, more: &str) -> String {
    let (ip, port) = (address.ip(), address.port());
    format!(
        "  - {{name: {name}, type: STATIC, connect_timeout: 1s, {more} load_assignment: {{cluster_name: {name}, endpoints: \
         [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: {ip}, port_value: {port}}}}}}}}}]}}]}}}}\n"
    )
}

fn config(address: SocketAddr, next: SocketAddr, collector: SocketAddr) -> String {
    const TYPES: &str = "type.googleapis.com/envoy";
    let http2 = format!(
        "typed_extension_protocol_options: {{envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {{\"@type\": \
         {TYPES}.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {{http2_protocol_options: {{}}}}}}}},"
    );
    format!(
        "static_resources:
  listeners:
  - address: {{socket_address: {{address: {ip}, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": {TYPES}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: x
          preserve_external_request_id: true
          tracing:
            random_sampling: {{value: {SAMPLED}}}
            provider:
              name: envoy.tracers.opentelemetry
              typed_config: {{\"@type\": {TYPES}.config.trace.v3.OpenTelemetryConfig, service_name: envoy, grpc_service: {{timeout: 1s, envoy_grpc: {{cluster_name: collector}}}}}}
          route_config: {{virtual_hosts: [{{name: a, domains: [\"*\"], routes: [{{match: {{prefix: /}}, route: {{cluster: next}}}}]}}]}}
          http_filters: [{{name: envoy.filters.http.router, typed_config: {{\"@type\": {TYPES}.extensions.filters.http.router.v3.Router}}}}]
  clusters:
{}{}",
        cluster("next", next, ""),
        cluster("collector", collector, &http2),
        ip = address.ip(),
        port = address.port(),
    )
}

fn traces(collector: &Collector) -> BTreeSet<String> {
    collector.spans().iter().map(Span::trace).collect()
}

#[tokio::test]
async fn envoy_samples_the_same_requests() {
    for envoy_first in [false, true] {
        let (of_strait, of_envoy) = (Collector::start(Back::H1), Collector::start(Back::H2));
        let origin = Origin::named(Back::H1, "hello");
        let address = free_address();
        let mut arguments = vec!["--trace-sampling", SAMPLED];
        arguments.extend(LOOPBACK_IS_INTERNAL);
        let next = if envoy_first { origin.address } else { address };
        let proxy = traced(&of_strait, &arguments, |edge| {
            everything_to_address(edge, Back::H1, next)
        });
        let behind = if envoy_first {
            proxy.edge
        } else {
            origin.address
        };
        let config = config(address, behind, of_envoy.address());
        let Some(_envoy) = Envoy::start(&config, &[address]) else {
            return;
        };
        let first = if envoy_first { address } else { proxy.edge };
        let mut client = Client::connect(Front::H1, first).await;
        for _ in 0..REQUESTS {
            assert_eq!(client.call(with(&[])).await.status, 200);
        }
        let sampled = origin
            .seen()
            .iter()
            .filter(|seen| flags(seen) == "01")
            .count();
        assert!((1..REQUESTS).contains(&sampled), "{sampled}");
        until("both have all traces", async || {
            [&of_strait, &of_envoy]
                .map(traces)
                .iter()
                .all(|traces| traces.len() >= sampled)
        })
        .await;
        assert_eq!(traces(&of_strait), traces(&of_envoy), "{envoy_first}");
        assert_eq!(traces(&of_strait).len(), sampled);
    }
}
