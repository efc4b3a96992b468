//! Rows 9 to 13 and 123 to 186: DestinationRules, and connection pools of Sidecars.
//!
//! A rule about a block applies in every position of the block, so its cases are checked in the policy of a rule, of a
//! subset, and of a port of both.

use super::balancing::{BALANCERS, LOCALITIES};
use super::upstream::{CONNECTION_POOLS, TLS};
use super::{Table, document};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, path, cases| Table {
        around,
        path,
        with_references: false,
        cases,
    };
    let mut tables = vec![
        table(whole as fn(&str) -> String, "spec", WHOLE),
        table(
            in_ingress,
            "spec.ingress[0].connectionPool",
            CONNECTION_POOLS,
        ),
        table(in_sidecar, "spec.inboundConnectionPool", CONNECTION_POOLS),
    ];
    for (around, path, is_of_port) in LEVELS {
        tables.push(table(around, path, BALANCERS));
        tables.push(table(around, path, CONNECTION_POOLS));
        tables.push(table(around, path, LOCALITIES));
        tables.push(table(around, path, OUTLIERS));
        tables.push(table(around, path, TLS));
        if !is_of_port {
            tables.push(table(around, path, POLICIES));
        }
    }
    tables
}

/// Function that turns a text into a file.
type Around = fn(&str) -> String;

/// Positions of a policy: function that embeds it, field path, and whether it is a port policy.
const LEVELS: [(Around, &str, bool); 4] = [
    (in_rule, "spec.trafficPolicy", false),
    (in_subset, "spec.subsets[0].trafficPolicy", false),
    (in_port, "spec.trafficPolicy.portLevelSettings[0]", true),
    (
        in_port_of_subset,
        "spec.subsets[0].trafficPolicy.portLevelSettings[0]",
        true,
    ),
];

fn whole(spec: &str) -> String {
    document("DestinationRule", "own", spec)
}

/// Returns the policy of a rule. A comment on the first line is about the policy as a whole.
pub(super) fn in_rule(policy: &str) -> String {
    let (found, policy) = super::first_comment(policy);
    let policy = super::indent(policy, "  ");
    whole(&format!("host: a\ntrafficPolicy: {found}\n{policy}"))
}

fn in_subset(policy: &str) -> String {
    let (found, policy) = super::first_comment(policy);
    let policy = super::indent(policy, "    ");
    whole(&format!(
        "host: a\nsubsets:\n- name: v1\n  labels: {{version: v1}}\n  trafficPolicy: {found}\n{policy}"
    ))
}

fn of_port(policy: &str) -> String {
    let policy = super::indent(policy, "  ");
    format!("portLevelSettings:\n- port: {{number: 80}}\n{policy}")
}

fn in_port(policy: &str) -> String {
    in_rule(&of_port(policy))
}

fn in_port_of_subset(policy: &str) -> String {
    in_subset(&of_port(policy))
}

fn in_sidecar(pool: &str) -> String {
    let pool = pool.replace("connectionPool", "inboundConnectionPool");
    document("Sidecar", "own", &pool)
}

fn in_ingress(pool: &str) -> String {
    let pool = super::indent(pool, "  ");
    document(
        "Sidecar",
        "own",
        &format!(
            "ingress:\n- port: {{number: 80, name: http, protocol: HTTP}}\n  defaultEndpoint: 127.0.0.1:80\n{pool}"
        ),
    )
}

const WHOLE: &[super::Case] = &[
    (
        &[4, 5, 6],
        "
host: a
exportTo:
- ns
- . # E CM004 .
- a/b # E CM005 a/b
- '~' # E CM006 '~'",
        "
host: a
exportTo:
- ns
- other",
    ),
    (
        &[7],
        "host: a\nexportTo: ['*', ns] # E CM007 '*'",
        "host: a\nexportTo: ['*']",
    ),
    (
        &[16],
        "
host: a
trafficPolicy:
  portLevelSettings:
  - port: {number: 0} # E CM016 0
    tls: {}
  - port: {number: 65536} # E CM016 65536
    tls: {}
  - port: {} # E CM016 port
    tls: {}",
        "
host: a
trafficPolicy:
  portLevelSettings:
  - port: {number: 1}
    tls: {}
  - port: {number: 65535}
    tls: {}",
    ),
    (
        &[18],
        "
host: a
subsets:
- name: v1
- null # E CM018 null
trafficPolicy:
  outlierDetection: {}
  loadBalancer:
    localityLbSetting:
      failover:
      - null # E CM018 null
      failoverPriority:
      - null # E CM018 null",
        "
host: a
subsets:
- name: v1
trafficPolicy:
  outlierDetection: {}
  loadBalancer:
    localityLbSetting:
      failover: []
      failoverPriority: []",
    ),
    (
        &[],
        "
host: a
trafficPolicy:
  portLevelSettings:
  - port: {number: 80}
    tls: {}
  - port: {number: 80} # W DR306 port: {number: 80}
    tls: {}",
        "
host: a
trafficPolicy:
  portLevelSettings:
  - port: {number: 80}
    tls: {}
  - port: {number: 81}
    tls: {}",
    ),
    (
        &[9],
        "
host: a
workloadSelector: {matchLabels: {app: a}}
exportTo: ['*'] # E CM009 '*'",
        "
host: a
workloadSelector: {matchLabels: {app: a}}
exportTo: [.]",
    ),
    (
        &[9, 10],
        "
host: a
workloadSelector: {matchLabels: {app: a}}
exportTo: # E CM010 exportTo
- ns
- other # E CM009 other",
        "
host: a
workloadSelector: {matchLabels: {app: a}}
exportTo:
- ns",
    ),
    (
        &[11],
        "
host: a
workloadSelector:
  matchLabels:
    app: a
    '': b # E CM011 ''",
        "
host: a
workloadSelector:
  matchLabels:
    app: a
    b: ''",
    ),
    (
        &[12],
        "
host: a
workloadSelector:
  matchLabels:
    app: a*  # E CM012 a*",
        "
host: a
workloadSelector:
  matchLabels:
    app: a",
    ),
    (
        &[13],
        "
host: a
workloadSelector: {} # W CM013 workloadSelector",
        "
host: a
workloadSelector: {matchLabels: {app: a}}",
    ),
    (&[123], "host: '' # E DR123 ''", "host: '*.a.com'"),
    (&[123], "host: a:80 # E DR123 a:80", "host: a"),
    (&[123], "host: a_b.com # E DR123 a_b.com", "host: a-b.com"),
    (
        &[126],
        "
host: a
subsets:
- labels: {version: v1} # E DR126 labels: {version: v1}",
        "
host: a
subsets:
- labels: {version: v1}
  name: v1",
    ),
    (
        &[126],
        "
host: a
subsets:
- name: v_1 # E DR126 v_1
- name: v.2 # E DR126 v.2",
        "
host: a
subsets:
- name: v-1
- name: V2",
    ),
    (
        &[127],
        "
host: a
subsets:
- name: v1
- name: v2
- name: v1 # E DR127 v1",
        "
host: a
subsets:
- name: v1
- name: v2
- name: v3",
    ),
    (
        &[128],
        "
host: a
subsets:
- name: v1
  labels:
    a b: c # E CM014 a b
    d: e f # E CM015 e f",
        "
host: a
subsets:
- name: v1
  labels:
    a/b: c
    d: ''",
    ),
];

const POLICIES: &[super::Case] = &[
    (
        &[124],
        "# E DR124 trafficPolicy\nportLevelSettings: []",
        "portLevelSettings: [{port: {number: 80}, tls: {}}]",
    ),
    (
        &[125],
        "
tunnel: {targetHost: b.com, targetPort: 443}
proxyProtocol: {} # E DR125 proxyProtocol",
        "tunnel: {targetHost: b.com, targetPort: 443}",
    ),
    (
        &[129],
        "
portLevelSettings:
- port: {number: 80}
  tls: {}
- tls: {} # E DR129 tls: {}",
        "
portLevelSettings:
- port: {number: 80}
  tls: {}
- port: {number: 81}
  tls: {}",
    ),
    (
        &[130],
        "
portLevelSettings:
- port: {number: 80} # E DR130 port: {number: 80}",
        "
portLevelSettings:
- port: {number: 80}
  outlierDetection: {}",
    ),
    (
        &[177],
        "
tunnel:
  protocol: GET # E DR177 GET
  targetHost: b.com
  targetPort: 443",
        "
tunnel:
  protocol: POST
  targetHost: b.com
  targetPort: 443",
    ),
    (
        &[178],
        "
tunnel:
  targetHost: b_c # E DR178 b_c
  targetPort: 443",
        "
tunnel:
  protocol: ''
  targetHost: 10.0.0.1
  targetPort: 443",
    ),
    (
        &[178],
        "tunnel: {targetPort: 443} # E DR178 tunnel",
        "tunnel: {targetHost: '::1', targetPort: 443}",
    ),
    (
        &[178],
        "tunnel: {targetHost: '*.b.com', targetPort: 443} # E DR178 '*.b.com'",
        "tunnel: {targetHost: a.b.com, targetPort: 443}",
    ),
    (
        &[179],
        "
tunnel:
  targetHost: b.com
  targetPort: 65536 # E DR179 65536",
        "
tunnel:
  targetHost: b.com
  targetPort: 65535",
    ),
    (
        &[179],
        "
tunnel: # E DR179 tunnel
  targetHost: b.com",
        "
tunnel:
  protocol: CONNECT
  targetHost: b.com
  targetPort: 1",
    ),
    (
        &[180],
        "proxyProtocol: {version: V3} # E DR180 V3",
        "proxyProtocol: {version: V2}",
    ),
    (
        &[],
        "retryBudget: {percent: 101} # E DR304 101",
        "retryBudget: {percent: 100}",
    ),
    (
        &[],
        "retryBudget: {minRetryConcurrency: -1} # E DR305 -1",
        "retryBudget: {minRetryConcurrency: 1}",
    ),
];

const OUTLIERS: &[super::Case] = &[
    (
        &[131],
        "
outlierDetection:
  baseEjectionTime: 0s # E CM001 0s
  interval: 1.5ms # E CM002 1.5ms",
        "
outlierDetection:
  baseEjectionTime: 1ms
  interval: 1.5s",
    ),
    (
        &[132],
        "
outlierDetection:
  splitExternalLocalOriginErrors: false
  consecutiveLocalOriginFailures: 1 # E DR132 1",
        "
outlierDetection:
  splitExternalLocalOriginErrors: true
  consecutiveLocalOriginFailures: 1",
    ),
    (
        &[132],
        "outlierDetection: {consecutiveLocalOriginFailures: 5} # E DR132 5",
        "outlierDetection: {consecutiveLocalOriginFailures: 0}",
    ),
    (
        &[133],
        "outlierDetection: {maxEjectionPercent: 101} # E DR133 101",
        "outlierDetection: {maxEjectionPercent: 100}",
    ),
    (
        &[133],
        "outlierDetection: {maxEjectionPercent: -1} # E DR133 -1",
        "outlierDetection: {maxEjectionPercent: 0}",
    ),
    (
        &[134],
        "outlierDetection: {minHealthPercent: 101} # E DR134 101",
        "outlierDetection: {minHealthPercent: 100}",
    ),
    (
        &[135],
        "outlierDetection: {consecutiveErrors: 5} # W DR135 5",
        "outlierDetection: {consecutive5xxErrors: 5, consecutiveGatewayErrors: 5}",
    ),
    (
        &[136],
        "outlierDetection: {outlierDetectionHttpErrorCodes: [500, 99]} # E DR136 99",
        "outlierDetection: {outlierDetectionHttpErrorCodes: [500, 100]}",
    ),
    (
        &[136],
        "outlierDetection: {outlierDetectionHttpErrorCodes: [600]} # E DR136 600",
        "outlierDetection: {outlierDetectionHttpErrorCodes: [599]}",
    ),
    (
        &[],
        "outlierDetection: {consecutive5xxErrors: -1} # E DR305 -1",
        "outlierDetection: {consecutive5xxErrors: 0}",
    ),
];
