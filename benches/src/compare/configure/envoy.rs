//! envoy.yaml: one HTTP connection manager with a route per prefix, as a control plane would send it; statistics on.

use std::ffi::OsString;
use std::path::Path;

use super::{ConfigFile, Plan};

const NAME: &str = "envoy.yaml";

/// The static bootstrap. The listener tells HTTP/2 from HTTP/1 by itself.
pub(super) fn file(plan: &Plan) -> ConfigFile {
    let routes: String = plan
        .prefixes
        .iter()
        .map(|prefix| {
            format!("              - {{ match: {{ prefix: \"{prefix}\" }}, route: {{ cluster: upstream }} }}\n")
        })
        .collect();
    let text = format!(
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
          \"@type\": {EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: main
          codec_type: AUTO
          route_config:
            name: main
            virtual_hosts:
            - name: all
              domains: [\"*\"]
              routes:
{routes}          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": {EXTENSIONS}.http.router.v3.Router }}
  clusters:
  - name: upstream
    type: STATIC
    connect_timeout: 10s
    load_assignment:
      cluster_name: upstream
      endpoints:
      - lb_endpoints:
        - endpoint:
            address: {{ socket_address: {{ address: 127.0.0.1, port_value: {upstream} }} }}
",
        admin = plan.admin,
        listen = plan.listen,
        upstream = plan.upstream,
    );
    ConfigFile::new(NAME, text)
}

const EXTENSIONS: &str = "type.googleapis.com/envoy.extensions.filters";

/// Without hot restart, several Envoys can run beside each other.
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
