//! Mesh resources for Strait: a Gateway, a ServiceEntry with the upstream, and VirtualServices with the prefixes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::feature::Feature;
use super::plan::{ConfigFile, Others, Plan, Work};
use super::token::{ISSUER, JWKS};

mod costs;
mod features;

/// Directory of resources that Strait watches, below its own directory.
pub const WATCHED: &str = "resources";

/// Returns the resource files, one resource each. Rules that no request matches come first, so that route lookup has to
/// skip them.
pub(super) fn files(plan: &Plan) -> Vec<ConfigFile> {
    let watched = Path::new(WATCHED);
    let mut files = vec![ConfigFile::new(watched.join("gateway.yaml"), gateway(plan))];
    if let Some(feature) = plan.feature {
        let resources = costs::files(plan, feature).into_iter();
        files.extend(resources.map(|(name, text)| ConfigFile::new(watched.join(name), text)));
        return files;
    }
    files.push(ConfigFile::new(
        watched.join("upstream.yaml"),
        service_entry(plan),
    ));
    if plan.endpoints > 1 {
        files.push(ConfigFile::new(watched.join("balance.yaml"), round_robin()));
    }
    if plan.work == Work::Tcp {
        files.push(ConfigFile::new(virtual_service_path(0), tcp_route()));
        return files;
    }
    let others = match plan.others {
        Others::None | Others::Traces(_) => String::new(),
        Others::Policies(count) => {
            files.push(ConfigFile::new(
                watched.join("policies.yaml"),
                policies(count),
            ));
            String::new()
        }
        Others::Tokens { .. } => {
            files.push(ConfigFile::new(watched.join("tokens.yaml"), tokens()));
            String::new()
        }
        Others::Plain(count) => features::plain_rules(count),
        Others::Featured(count) => features::featured_rules(count),
    };
    for (index, prefixes) in plan
        .prefixes
        .chunks(plan.prefixes_per_object.max(1))
        .enumerate()
    {
        let rules = others.clone() + &rules(prefixes);
        files.push(ConfigFile::new(
            virtual_service_path(index),
            virtual_service_of(index, &rules),
        ));
    }
    files
}

/// Returns policies that deny none of the requests.
fn policies(count: usize) -> String {
    let policy = |index| {
        format!(
            "apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: other-{index}, namespace: default}}
spec: {{action: DENY, rules: [{{to: [{{operation: {{methods: [POST], paths: [/other-{index}, /more-{index}/*]}}}}]}}]}}
---
"
        )
    };
    (0..count).map(policy).collect()
}

/// Returns the RequestAuthentication with the issuer of the token.
fn tokens() -> String {
    format!(
        "apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {{name: tokens, namespace: default}}
spec: {{jwtRules: [{{issuer: {ISSUER}, jwks: '{JWKS}', forwardOriginalToken: true}}]}}
"
    )
}

/// Returns the command line arguments of Strait.
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
        "--admin",
        &admin,
        "--labels",
        "istio=ingressgateway",
    ];
    arguments.extend(rest.map(OsString::from));
    let of_feature = costs::arguments(plan.feature.unwrap_or(Feature::None));
    arguments.extend(of_feature.iter().map(OsString::from));
    if let Others::Traces(percent) = plan.others {
        let collector = format!("--otlp-endpoint=grpc://127.0.0.1:{}", plan.collector);
        let sampling = format!("--trace-sampling={percent}");
        arguments.extend([collector, sampling].map(OsString::from));
    }
    arguments
}

/// Returns the path of the VirtualService with this index, below Strait's directory.
pub fn virtual_service_path(index: usize) -> PathBuf {
    Path::new(WATCHED).join(format!("routes-{index:05}.yaml"))
}

/// Returns a VirtualService that routes these prefixes to the upstream.
pub fn virtual_service(index: usize, prefixes: &[String]) -> String {
    virtual_service_of(index, &rules(prefixes))
}

fn virtual_service_of(index: usize, rules: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: routes-{index:05}
  namespace: default
spec:
  hosts: [\"*\"]
  gateways: [main]
  http:
{rules}"
    )
}

/// Returns one rule per prefix.
fn rules(prefixes: &[String]) -> String {
    let mut text = String::new();
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

fn tcp_route() -> String {
    "apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: routes-00000
  namespace: default
spec:
  hosts: [\"*\"]
  gateways: [main]
  tcp:
  - route:
    - destination:
        host: upstream.bench.example
        port:
          number: 80
"
    .to_owned()
}

/// Returns the Gateway. It needs no HTTP/2 setting: Strait detects HTTP/2 without TLS by its first bytes.
fn gateway(plan: &Plan) -> String {
    let (name, protocol) = match (plan.work, &plan.tls) {
        (Work::Tcp, _) => ("tcp", "TCP"),
        (_, Some(_)) => ("https", "HTTPS"),
        (Work::Grpc, None) => ("grpc", "GRPC"),
        (Work::Http, None) => ("http", "HTTP"),
    };
    let mut text = format!(
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
      name: {name}
      protocol: {protocol}
    bind: 127.0.0.1
    hosts: [\"*\"]
",
        listen = plan.listen,
    );
    if let Some(tls) = &plan.tls {
        text.push_str(&format!(
            "    tls:
      mode: SIMPLE
      serverCertificate: {}
      privateKey: {}
      minProtocolVersion: TLSV1_3
",
            tls.certificate.display(),
            tls.key.display()
        ));
    }
    text
}

/// Returns a DestinationRule for round robin, which the other proxies use; Istio's default is least request.
fn round_robin() -> String {
    "apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: balance
  namespace: default
spec:
  host: upstream.bench.example
  trafficPolicy:
    loadBalancer:
      simple: ROUND_ROBIN
"
    .to_owned()
}

fn service_entry(plan: &Plan) -> String {
    let (name, protocol) = match plan.work {
        Work::Http => ("http", "HTTP"),
        Work::Grpc => ("grpc", "GRPC"),
        Work::Tcp => ("tcp", "TCP"),
    };
    let port = plan.upstream;
    let endpoints: String = plan
        .addresses()
        .map(|address| format!("  - address: {address}\n    ports:\n      {name}: {port}\n"))
        .collect();
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
    name: {name}
    protocol: {protocol}
  endpoints:
{endpoints}"
    )
}
