//! Configuration of a route with a single feature, which every request uses: the upstream, its policy, and the rule.

use crate::compare::configure::feature::{ENDPOINTS, Feature, HEADER, ORIGIN};
use crate::compare::configure::plan::{Plan, address, prefix};

const HOST: &str = "upstream.bench.example";

/// Host of the second destination and of mirrored requests; its endpoints are at the same upstream.
const SECOND: &str = "second.bench.example";

/// Locality of the proxy and of the nearer endpoints.
pub(super) const LOCALITY: &str = "near/a";

/// Returns all resources except the Gateway, as pairs of file name and text.
pub(super) fn files(plan: &Plan, feature: Feature) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("upstream.yaml", upstream(plan, feature)),
        ("routes-00000.yaml", virtual_service(feature)),
    ];
    if matches!(feature, Feature::MirrorOff | Feature::Weights) {
        let second = endpoints(plan, 0, LOCALITY);
        files.push(("second.yaml", service_entry("second", SECOND, &second)));
    }
    if let Some(policy) = policy(feature) {
        files.push(("policy.yaml", destination_rule(&policy)));
    }
    files
}

/// Returns arguments in addition to those of every scenario.
pub(super) fn arguments(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::AccessLog => &["--access-log", "text", "--access-log-path", "/dev/null"],
        Feature::LocalityFailover => &["--access-log", "off", "--locality", LOCALITY],
        Feature::Traces => &[
            "--access-log",
            "off",
            "--otlp-endpoint",
            "http://127.0.0.1:9",
            "--trace-sampling",
            "1",
        ],
        _ => &["--access-log", "off"],
    }
}

fn upstream(plan: &Plan, feature: Feature) -> String {
    let mut text = endpoints(plan, 0, LOCALITY);
    if feature == Feature::LocalityFailover {
        text.push_str(&endpoints(plan, ENDPOINTS, "far/a"));
    }
    service_entry("upstream", HOST, &text)
}

fn endpoints(plan: &Plan, first: u16, locality: &str) -> String {
    let port = plan.upstream;
    let endpoint = |index| {
        format!(
            "  - address: {}
    locality: {locality}
    labels:
      version: v1
    ports:
      http: {port}
",
            address(index)
        )
    };
    (first..first + ENDPOINTS).map(endpoint).collect()
}

fn service_entry(name: &str, host: &str, endpoints: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: {name}
  namespace: default
spec:
  hosts: [{host}]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports:
  - number: 80
    name: http
    protocol: HTTP
  endpoints:
{endpoints}"
    )
}

fn virtual_service(feature: Feature) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: routes-00000
  namespace: default
spec:
  hosts: [\"*\"]
  gateways: [main]
  http:
  - match:
    - uri:
{}{}    route:
{}",
        matched(feature),
        action(feature),
        route(feature)
    )
}

fn matched(feature: Feature) -> String {
    let prefix = prefix(0);
    let (name, value) = HEADER;
    match feature {
        Feature::RegexMatch => "        regex: /route-[0-9]+/.*\n".to_owned(),
        Feature::HeaderMatch => format!(
            "        prefix: {prefix}
      headers:
        {name}:
          exact: {value}
"
        ),
        _ => format!("        prefix: {prefix}\n"),
    }
}

/// Returns the fields of a rule other than its destinations.
fn action(feature: Feature) -> String {
    let origin = ORIGIN.1;
    match feature {
        Feature::Cors => format!(
            "    corsPolicy:
      allowOrigins:
      - exact: {origin}
      allowMethods: [GET, POST]
      maxAge: 24h
"
        ),
        Feature::FaultOff => FAULT_OFF.to_owned(),
        Feature::HeaderOperations => HEADER_OPERATIONS.to_owned(),
        Feature::MirrorOff => format!(
            "    mirrors:
    - destination:
        host: {SECOND}
        port:
          number: 80
      percentage:
        value: 0
"
        ),
        Feature::NoRetries => "    retries:\n      attempts: 0\n".to_owned(),
        Feature::Retries => RETRIES.to_owned(),
        Feature::Rewrite => "    rewrite:\n      uri: /\n".to_owned(),
        Feature::Timeout => "    timeout: 10s\n".to_owned(),
        _ => String::new(),
    }
}

const FAULT_OFF: &str = "    fault:
      delay:
        fixedDelay: 5s
        percentage:
          value: 0
      abort:
        httpStatus: 503
        percentage:
          value: 0
";

const HEADER_OPERATIONS: &str = "    headers:
      request:
        set:
          x-set: \"1\"
        remove: [x-debug]
      response:
        add:
          x-served-by: bench
";

const RETRIES: &str = "    retries:
      attempts: 3
      perTryTimeout: 2s
      retryOn: 5xx,reset,connect-failure
";

fn route(feature: Feature) -> String {
    match feature {
        Feature::Subset => destination(HOST, "        subset: v1\n"),
        Feature::Weights => {
            let half = "      weight: 50\n";
            destination(HOST, half) + &destination(SECOND, half)
        }
        _ => destination(HOST, ""),
    }
}

fn destination(host: &str, more: &str) -> String {
    format!(
        "    - destination:
        host: {host}
        port:
          number: 80
{more}"
    )
}

/// Returns the fields of a DestinationRule other than its host.
fn policy(feature: Feature) -> Option<String> {
    let text = match feature {
        Feature::CircuitBreakers => CIRCUIT_BREAKERS.to_owned(),
        Feature::HashByHeader => format!(
            "  trafficPolicy:
    loadBalancer:
      consistentHash:
        httpHeaderName: {}
",
            HEADER.0
        ),
        Feature::LocalityFailover => format!("{FAILOVER}{OUTLIER_DETECTION}"),
        Feature::OutlierDetection => format!("  trafficPolicy:\n{OUTLIER_DETECTION}"),
        Feature::Subset => "  subsets:\n  - name: v1\n    labels:\n      version: v1\n".to_owned(),
        _ => return None,
    };
    Some(text)
}

const CIRCUIT_BREAKERS: &str = "  trafficPolicy:
    connectionPool:
      tcp:
        maxConnections: 1000
      http:
        http1MaxPendingRequests: 1000
        http2MaxRequests: 1000
";

const FAILOVER: &str = "  trafficPolicy:
    loadBalancer:
      localityLbSetting:
        failover:
        - from: near
          to: far
";

const OUTLIER_DETECTION: &str = "    outlierDetection:
      consecutive5xxErrors: 5
      baseEjectionTime: 30s
";

fn destination_rule(policy: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: policy
  namespace: default
spec:
  host: {HOST}
{policy}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::configure::plan::{Others, Work};

    fn plan(feature: Feature) -> Plan {
        Plan {
            listen: 1001,
            admin: 1002,
            upstream: 1003,
            collector: 1004,
            endpoints: 1,
            prefixes: vec![prefix(0)],
            prefixes_per_object: 1,
            work: Work::Http,
            http2: false,
            tls: None,
            others: Others::None,
            feature: Some(feature),
            nginx_module: None,
            connections_max: 10,
        }
    }

    /// Returns all files of the feature as one YAML stream.
    fn text(feature: Feature) -> String {
        let files = crate::compare::configure::strait::files(&plan(feature));
        let texts: Vec<String> = files.into_iter().map(|file| file.text).collect();
        texts.join("---\n")
    }

    #[test]
    fn resources_of_every_feature_have_no_error() {
        for feature in Feature::ALL {
            let text = text(feature);
            let mut diagnostics = config_loader::Diagnostics::default();
            let set = config_loader::load_bytes("it.yaml", text.as_bytes(), &mut diagnostics);
            let mut found = diagnostics.iter();
            let is_refused = found.any(|found| found.severity == config_loader::Severity::Error);
            assert!(!is_refused, "{feature:?}: {diagnostics:?}\n{text}");
            assert_eq!(set.len(), text.split("---\n").count(), "{feature:?}");
        }
    }

    #[test]
    fn every_feature_differs_from_every_other_one() {
        let of = |feature| (text(feature), arguments(feature));
        for (index, feature) in Feature::ALL.into_iter().enumerate() {
            for other in &Feature::ALL[..index] {
                assert_ne!(of(feature), of(*other), "{feature:?} and {other:?}");
            }
        }
    }

    #[test]
    fn rule_matches_the_requests_and_has_the_feature_alone() {
        let features = [
            (Feature::Cors, "corsPolicy:"),
            (Feature::FaultOff, "fault:"),
            (Feature::HeaderMatch, "          exact: bench-1"),
            (Feature::HeaderOperations, "      response:"),
            (Feature::MirrorOff, "mirrors:"),
            (Feature::RegexMatch, "regex:"),
            (Feature::Retries, "retryOn:"),
            (Feature::Rewrite, "rewrite:"),
            (Feature::Timeout, "timeout: 10s"),
            (Feature::Weights, "weight: 50"),
            (Feature::CircuitBreakers, "connectionPool:"),
            (Feature::HashByHeader, "httpHeaderName: x-bench"),
            (Feature::LocalityFailover, "failover:"),
            (Feature::Subset, "subset: v1"),
        ];
        for feature in Feature::ALL {
            let text = text(feature);
            for (owner, part) in features {
                assert_eq!(
                    text.contains(part),
                    owner == feature,
                    "{feature:?}: {part}\n{text}"
                );
            }
            let nearer = text.matches("locality: near/a").count() as u16;
            let has_second = matches!(feature, Feature::MirrorOff | Feature::Weights);
            assert_eq!(nearer, ENDPOINTS * if has_second { 2 } else { 1 });
        }
    }

    #[test]
    fn failover_has_as_many_other_endpoints_in_another_region() {
        let text = text(Feature::LocalityFailover);
        let far = |locality: &str| text.matches(&format!("locality: {locality}")).count();
        assert_eq!((far("near/a"), far("far/a")), (4, 4));
        for index in 0..2 * ENDPOINTS {
            let endpoint = format!("- address: {}\n", address(index));
            assert_eq!(text.matches(&endpoint).count(), 1, "{endpoint}");
        }
    }

    #[test]
    fn access_log_is_on_for_its_own_feature_only() {
        for feature in Feature::ALL {
            let is_off = arguments(feature).starts_with(&["--access-log", "off"]);
            assert_eq!(is_off, feature != Feature::AccessLog, "{feature:?}");
        }
    }
}
