//! Equivalent rules for Strait and for Envoy, as Istio would translate them.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

/// Ports and endpoint addresses of a variant.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    pub(super) listen: u16,
    pub(super) admin: u16,
    /// Endpoints by zone, starting with the zone of the proxy; or gateways by cluster.
    pub(super) zones: Vec<Vec<SocketAddr>>,
}

/// Load distribution between the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// 50, 30 and 20 percent.
    ActiveActive,
    /// Failover: all traffic goes to the first available cluster.
    FailOver,
}

impl Policy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Policy::ActiveActive => "ActiveActive",
            Policy::FailOver => "FailOver",
        }
    }
}

/// Retry policy of the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retries {
    /// Istio's default of two retries; the route sets no policy.
    Default,
    /// No retries: `attempts: 0`.
    None,
    /// Two retries, also of 5xx responses, with 50 ms per attempt.
    ShortAttempts,
}

impl Retries {
    pub(super) fn name(self) -> &'static str {
        match self {
            Retries::Default => "default",
            Retries::None => "none",
            Retries::ShortAttempts => "`5xx`, attempts of 50 ms",
        }
    }
}

/// Returns the mesh resources for Strait.
pub(super) fn strait(ports: &Ports, retries: Retries) -> String {
    let mut endpoints = String::new();
    for (zone, addresses) in ["a", "b"].iter().zip(&ports.zones) {
        for address in addresses {
            let (ip, port) = (address.ip(), address.port());
            endpoints += &format!(
                "  - {{address: {ip}, ports: {{http: {port}}}, locality: region/{zone}}}\n"
            );
        }
    }
    format!(
        "{}---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: drill}}
spec:
  hosts: [drill.example]
  resolution: STATIC
  ports: [{{number: 80, name: http, protocol: HTTP}}]
  endpoints:
{endpoints}",
        rules(ports, retries, "drill.example")
    )
}

/// Returns the resources of a proxy at the edge of three clusters, whose gateways serve one service.
pub(super) fn clusters(ports: &Ports, policy: Policy, retries: Retries) -> String {
    let key = |number: usize| format!("default/default/default/c{}", number + 1);
    let mut gateways = String::new();
    let mut targets = String::new();
    for ((number, addresses), weight) in ports.zones.iter().enumerate().zip([50, 30, 20]) {
        let key = key(number);
        for address in addresses {
            let (ip, port) = (address.ip(), address.port());
            gateways += &format!(
                "    - {{clusterKey: {key}, target: {{host: '', ip: {ip}, port: {port}, path: ''}}}}\n"
            );
        }
        targets += &format!("  - {{clusterKey: {key}, weight: {weight}}}\n");
    }
    format!(
        "{}---
apiVersion: v1
kind: Service
metadata: {{name: drill}}
spec: {{ports: [{{name: http, port: 80}}]}}
---
apiVersion: flomesh.io/v1alpha1
kind: ServiceImport
metadata: {{name: drill}}
spec:
  ports:
  - name: http
    port: 80
    endpoints:
{gateways}---
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata: {{name: drill, annotations: {{multicluster.flomesh.io/failover-order: ordered}}}}
spec:
  lbType: {}
  targets:
{targets}",
        rules(ports, retries, "drill.default.svc.cluster.local"),
        policy.name(),
    )
}

/// Returns Gateway, route and policy for a host.
fn rules(ports: &Ports, retries: Retries, host: &str) -> String {
    let retries = match retries {
        Retries::Default => "",
        Retries::None => "    retries: {attempts: 0}\n",
        Retries::ShortAttempts => "    retries: {attempts: 2, perTryTimeout: 50ms, retryOn: 5xx}\n",
    };
    format!(
        "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{name: edge}}
spec:
  servers:
  - port: {{number: {listen}, name: http, protocol: HTTP}}
    bind: 127.0.0.1
    hosts: ['*']
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: drill}}
spec:
  hosts: ['*']
  gateways: [edge]
  http:
  - timeout: 250ms
{retries}    route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: drill}}
spec:
  host: {host}
  trafficPolicy:
    outlierDetection:
      consecutive5xxErrors: 5
      interval: 250ms
      baseEjectionTime: 1s
      maxEjectionPercent: 100
",
        listen = ports.listen,
    )
}

/// Returns the command line arguments of Strait: two workers, in the first zone, in the cluster `edge`.
pub(super) fn strait_arguments(file: &Path, ports: &Ports) -> Vec<OsString> {
    let admin = format!("127.0.0.1:{}", ports.admin);
    let mut arguments: Vec<OsString> = vec!["run".into(), "--config".into(), file.into()];
    let rest = [
        "--concurrency",
        "2",
        "--access-log",
        "off",
        "--admin",
        &admin,
        "--locality",
        "region/a",
        "--cluster",
        "edge",
    ];
    arguments.extend(rest.map(OsString::from));
    arguments
}

/// Returns a static bootstrap for Envoy with one priority per zone.
pub(super) fn envoy(ports: &Ports, retries: Retries) -> String {
    let mut endpoints = String::new();
    for (priority, addresses) in ports.zones.iter().enumerate() {
        endpoints += &format!("      - priority: {priority}\n        lb_endpoints:\n");
        for address in addresses {
            let (ip, port) = (address.ip(), address.port());
            endpoints += &format!(
                "        - endpoint: {{ address: {{ socket_address: {{ address: {ip}, port_value: {port} }} }} }}\n"
            );
        }
    }
    const PREVIOUS: &str = "retry_host_predicate: [{ name: envoy.retry_host_predicates.previous_hosts, typed_config: \
        { \"@type\": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate } }], \
        host_selection_retry_max_attempts: 5, num_retries: 2";
    let retries = match retries {
        Retries::Default => format!(
            ", retry_policy: {{ retry_on: \"connect-failure,refused-stream,unavailable,cancelled\", {PREVIOUS} }}"
        ),
        Retries::None => String::new(),
        Retries::ShortAttempts => {
            format!(", retry_policy: {{ retry_on: 5xx, per_try_timeout: 0.05s, {PREVIOUS} }}")
        }
    };
    let Ports { listen, admin, .. } = ports;
    format!(
        "admin:
  address: {{ socket_address: {{ address: 127.0.0.1, port_value: {admin} }} }}
static_resources:
  listeners:
  - name: main
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: {listen} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": {EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: main
          route_config:
            virtual_hosts:
            - name: all
              domains: [\"*\"]
              include_request_attempt_count: true
              routes:
              - {{ match: {{ prefix: / }}, route: {{ cluster: drill, timeout: 0.25s{retries} }} }}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": {EXTENSIONS}.filters.http.router.v3.Router }}
  clusters:
  - name: drill
    type: STATIC
    connect_timeout: 10s
    lb_policy: LEAST_REQUEST
    common_lb_config: {{ healthy_panic_threshold: {{ value: 0 }} }}
    outlier_detection:
      {{ consecutive_5xx: 5, interval: 0.25s, base_ejection_time: 1s, max_ejection_percent: 100, \
enforcing_success_rate: 0 }}
    circuit_breakers:
      thresholds:
      - {{ max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, max_retries: 100000 }}
    load_assignment:
      cluster_name: drill
      endpoints:
{endpoints}"
    )
}

const EXTENSIONS: &str = "type.googleapis.com/envoy.extensions";

/// Returns the command line arguments of Envoy. Hot restart is off, so that several Envoys can run side by side.
pub(super) fn envoy_arguments(file: &Path) -> Vec<OsString> {
    let arguments = [
        "--concurrency",
        "2",
        "--disable-hot-restart",
        "--log-level",
        "error",
        "--config-path",
    ];
    let mut arguments: Vec<OsString> = arguments.map(OsString::from).to_vec();
    arguments.push(file.into());
    arguments
}
