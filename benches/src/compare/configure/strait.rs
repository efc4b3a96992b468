//! Mesh resources for Strait: a Gateway, a ServiceEntry with the upstream, and VirtualServices with the prefixes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{ConfigFile, Plan};

/// The directory that Strait watches, below its own.
pub const WATCHED: &str = "resources";

/// The resources, a file each.
pub(super) fn files(plan: &Plan) -> Vec<ConfigFile> {
    let watched = Path::new(WATCHED);
    let mut files = vec![
        ConfigFile::new(watched.join("gateway.yaml"), gateway(plan.listen)),
        ConfigFile::new(watched.join("upstream.yaml"), service_entry(plan.upstream)),
    ];
    for (index, prefixes) in plan
        .prefixes
        .chunks(plan.prefixes_per_object.max(1))
        .enumerate()
    {
        files.push(ConfigFile::new(
            virtual_service_path(index),
            virtual_service(index, prefixes),
        ));
    }
    files
}

/// How Strait is started.
pub(super) fn arguments(plan: &Plan, directory: &Path) -> Vec<OsString> {
    let admin = format!("127.0.0.1:{}", plan.admin);
    let mut arguments: Vec<OsString> = vec![
        "run".into(),
        "--config".into(),
        directory.join(WATCHED).into(),
    ];
    let rest = [
        "--concurrency",
        "1",
        "--access-log",
        "off",
        "--admin",
        &admin,
        "--labels",
        "istio=ingressgateway",
    ];
    arguments.extend(rest.map(OsString::from));
    arguments
}

/// Where the VirtualService with this index is, below Strait's directory.
pub fn virtual_service_path(index: usize) -> PathBuf {
    Path::new(WATCHED).join(format!("routes-{index:05}.yaml"))
}

/// A VirtualService that sends these prefixes to the upstream.
pub fn virtual_service(index: usize, prefixes: &[String]) -> String {
    let mut text = format!(
        "apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: routes-{index:05}
  namespace: default
spec:
  hosts: [\"*\"]
  gateways: [main]
  http:
"
    );
    for prefix in prefixes {
        text.push_str(&format!(
            "  - match:
    - uri:
        prefix: {prefix}
    route:
    - destination:
        host: upstream.bench.example
        port:
          number: 80
"
        ));
    }
    text
}

fn gateway(listen: u16) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: main
  namespace: default
spec:
  selector:
    istio: ingressgateway
  servers:
  - port:
      number: {listen}
      name: http
      protocol: HTTP
    bind: 127.0.0.1
    hosts: [\"*\"]
"
    )
}

fn service_entry(upstream: u16) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: upstream
  namespace: default
spec:
  hosts: [upstream.bench.example]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports:
  - number: 80
    name: http
    protocol: HTTP
  endpoints:
  - address: 127.0.0.1
    ports:
      http: {upstream}
"
    )
}
