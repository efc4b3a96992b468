//! Rows 108 to 122: rules for connections, and unreachable rules.

use super::{Table, service};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, cases| Table {
        around,
        path: "",
        with_references: false,
        cases,
    };
    vec![
        table(carried as fn(&str) -> String, CARRIED),
        table(ordered, ORDERED),
    ]
}

/// Returns a VirtualService with these rules.
fn carried(rules: &str) -> String {
    service(&format!(
        "hosts: [a.com, '*.b.com', 10.0.0.1]\n{}",
        rules.trim_matches('\n')
    ))
}

const CARRIED: &[super::Case] = &[
    (
        &[108],
        "
tls:
- route: [{destination: {host: a}}] # E VS108 route: [{destination: {host: a}}]",
        "
tls:
- match: [{sniHosts: [a.com]}]
  route: [{destination: {host: a}}]",
    ),
    (
        &[108],
        "
tls:
- route: [{destination: {host: a}}]
  match: [] # E VS108 match",
        "
tls:
- route: [{destination: {host: a}}]
  match: [{sniHosts: [a.com]}]",
    ),
    (
        &[109],
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - port: 443 # E VS109 port: 443",
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - port: 443
    sniHosts: [a.com]",
    ),
    (
        &[110],
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts:
    - a.com
    - a_b.b.com # E VS110 a_b.b.com",
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts:
    - a.com
    - '*.c.b.com'",
    ),
    (
        &[111],
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts:
    - x.b.com
    - c.com # E VS111 c.com
    - '*.com' # E VS111 '*.com'
    - b.com # E VS111 b.com",
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts:
    - x.b.com
    - A.com
    - '*.b.com'",
    ),
    (
        &[112],
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts:
    - a.com
    - 10.0.0.1 # W VS112 10.0.0.1",
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts:
    - a.com",
    ),
    (
        &[113],
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [a.com]
    destinationSubnets:
    - 10.0.0.0/8
    - 10.0.0.0/33 # E VS113 10.0.0.0/33",
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [a.com]
    destinationSubnets:
    - 10.0.0.0/8
    - fd00::/8",
    ),
    (
        &[113],
        "
tcp:
- route: [{destination: {host: a}}]
  match:
  - destinationSubnets: [10.0.0] # E VS113 10.0.0",
        "
tcp:
- route: [{destination: {host: a}}]
  match:
  - destinationSubnets: [10.0.0.1]",
    ),
    (
        &[114],
        "
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 70000 # E CM016 70000
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [a.com]
    port: 0 # E CM016 0",
        "
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 27017
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [a.com]
    port: 443",
    ),
    (
        &[115],
        "
tls:
- match: # E VS115 match
  - sniHosts: [a.com]
tcp:
- match: [{port: 1}]
  route: [] # E VS115 route",
        "
tls:
- match:
  - sniHosts: [a.com]
  route: [{destination: {host: a}}]
tcp:
- match: [{port: 1}]
  route: [{destination: {host: a}}]",
    ),
    (
        &[116],
        "
tls:
- match: [{sniHosts: [a.com]}]
  route:
  - destination: {host: a}
    weight: -5 # E VS106 -5
- match: [{sniHosts: [x.b.com]}]
  route: # E VS107 route
  - destination: {host: a}
  - destination: {host: b}",
        "
tls:
- match: [{sniHosts: [a.com]}]
  route:
  - destination: {host: a}
    weight: 5
- match: [{sniHosts: [x.b.com]}]
  route:
  - destination: {host: a}
    weight: 1
  - destination: {host: b}",
    ),
    (
        &[117],
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [a.com]
    sourceLabels:
      a b: c # E CM014 a b
    gateways:
    - ns/ # E VS024 ns/
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [x.b.com]
    sourceLabels:
      app: b c # E CM015 b c
    sourceNamespace: n_s # E VS059 n_s
tcp:
- route: [{destination: {host: a}}]
  match:
  - gateways: [ns/a_b] # E VS026 ns/a_b
    sourceLabels:
      app: -a # E CM015 -a",
        "
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [a.com]
    sourceLabels: {a-b: c}
    gateways: [ns/gw]
tcp:
- route: [{destination: {host: a}}]
  match:
  - gateways: [mesh]
    sourceLabels: {app: a}
    sourceNamespace: ns",
    ),
    (
        &[118],
        "
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 1
    sourceSubnet: 10.0.0.0/8 # W VS118 10.0.0.0/8",
        "
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 1",
    ),
    (
        &[],
        "
gateways: [edge]
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 1
    destinationSubnets: [10.0.0.0/8] # W VS310 destinationSubnets
    sourceLabels: {app: a} # W VS310 sourceLabels
  - port: 2
    sourceNamespace: ns # W VS310 ns",
        "
gateways: [edge]
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 1
    gateways: [edge]
tls:
- route: [{destination: {host: a}}]
  match:
  - sniHosts: [a.com]
    destinationSubnets: [10.0.0.0/8]
    sourceLabels: {app: a}
    sourceNamespace: ns",
    ),
    (
        &[],
        "
gateways: [mesh, edge]
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 1
    sourceLabels: {app: a} # W VS310 sourceLabels
  - port: 2
    gateways: [mesh]
    sourceLabels: {app: a}",
        "
gateways: [mesh]
tcp:
- route: [{destination: {host: a}}]
  match:
  - port: 1
    sourceLabels: {app: a}
    sourceNamespace: ns
    destinationSubnets: [10.0.0.0/8]",
    ),
    (
        &[],
        "
gateways: [mesh, edge]
http:
- route: [{destination: {host: a}}]
  match:
  - gateways: [edge]
    uri: {prefix: /a}
    sourceLabels: {app: a} # W VS311 sourceLabels
    sourceNamespace: ns # W VS311 ns",
        "
gateways: [mesh, edge]
http:
- route: [{destination: {host: a}}]
  match:
  - uri: {prefix: /a}
    sourceLabels: {app: a}
    sourceNamespace: ns",
    ),
];

/// Returns a VirtualService with these HTTP rules, one per line; `OK` is replaced by a forwarding action.
fn ordered(rules: &str) -> String {
    let rules = rules.replace("OK", "route: [{destination: {host: a}}]");
    service(&format!(
        "hosts: [a.com, '*.b.com']\n{}",
        rules.trim_matches('\n')
    ))
}

const ORDERED: &[super::Case] = &[
    (
        &[119],
        "
http:
- OK
- match: [{uri: {prefix: /a}}] # W VS119 match: [{uri: {prefix: /a}}]
  OK",
        "
http:
- match: [{uri: {prefix: /a}}]
  OK
- OK",
    ),
    (
        &[119],
        "
http:
- match:
  - uri: {prefix: /}
  OK
- OK # W VS119 route: [{destination: {host: a}}]",
        "
http:
- match:
  - uri: {prefix: /}
    port: 80
  OK
- OK",
    ),
    (
        &[119],
        "
tcp:
- OK
- OK # W VS119 route: [{destination: {host: a}}]",
        "
tcp:
- match: [{port: 1}]
  OK
- OK",
    ),
    (
        &[120],
        "
http:
- match:
  - name: one
    uri: {exact: /a}
  - uri: {exact: /b}
  - name: other # W VS120 name: other
    uri: {exact: /a}
  OK",
        "
http:
- match:
  - name: one
    uri: {exact: /a}
  - uri: {exact: /b}
  - name: other
    uri: {exact: /c}
  OK",
    ),
    (
        &[121],
        "
http:
- match:
  - uri: {exact: /a}
  - uri: {exact: /b}
  OK
- match: # W VS121 match
  - uri: {exact: /b}
  OK",
        "
http:
- match:
  - uri: {exact: /a}
  - uri: {exact: /b}
  OK
- match:
  - uri: {exact: /c}
  OK",
    ),
    (
        &[121],
        "
tls:
- match: [{sniHosts: [a.com]}]
  OK
- match: [{sniHosts: [a.com]}] # W VS121 match: [{sniHosts: [a.com]}]
  OK",
        "
tls:
- match: [{sniHosts: [a.com], port: 1}]
  OK
- match: [{sniHosts: [a.com]}]
  OK",
    ),
    (
        &[120],
        "
tls:
- match: [{sniHosts: [a.com]}]
  OK
- match:
  - sniHosts: [a.com] # W VS120 sniHosts: [a.com]
  - sniHosts: [x.b.com]
  OK",
        "
tls:
- match: [{sniHosts: [a.com]}]
  OK
- match:
  - sniHosts: [a.com]
    port: 1
  - sniHosts: [x.b.com]
  OK",
    ),
    (
        &[120],
        "
tls:
- match: [{sniHosts: [a.com, x.b.com]}]
  OK
- match:
  - sniHosts:
    - y.b.com
    - A.com # W VS120 A.com
  OK",
        "
tls:
- match: [{sniHosts: [a.com, x.b.com]}]
  OK
- match:
  - sniHosts:
    - y.b.com
    - '*.b.com'
  OK",
    ),
    (
        &[120],
        "
tcp:
- match:
  - port: 1
  - port: 1 # W VS120 port: 1
  OK
- match:
  - port: 2
  - port: 1 # W VS120 port: 1
  OK",
        "
tcp:
- match:
  - port: 1
  - port: 2
  OK
- match:
  - port: 3
  - port: 4
  OK",
    ),
    (
        &[120],
        "
tcp:
- match: [{destinationSubnets: [10.0.0.0/8, 10.0.0.1]}]
  OK
- match:
  - destinationSubnets:
    - fd00::/8
    - 10.1.0.0/8 # W VS120 10.1.0.0/8
  OK",
        "
tcp:
- match: [{destinationSubnets: [10.0.0.0/8, 10.0.0.1]}]
  OK
- match:
  - destinationSubnets:
    - fd00::/8
    - 10.0.0.2
  OK",
    ),
    (
        &[121],
        "
tls:
- match: [{sniHosts: [a.com]}, {sniHosts: [x.b.com]}]
  OK
- match: [{sniHosts: [x.b.com, a.com]}] # W VS121 match: [{sniHosts: [x.b.com, a.com]}]
  OK",
        "
tls:
- match: [{sniHosts: [a.com]}, {sniHosts: [x.b.com]}]
  OK
- match: [{sniHosts: [y.b.com]}]
  OK",
    ),
    (
        &[119],
        "
tcp:
- match: [{}]
  OK
- match: [{port: 1}] # W VS119 match: [{port: 1}]
  OK",
        "
tcp:
- match: [{port: 1}]
  OK
- match: [{}]
  OK",
    ),
    (
        &[122],
        "
http:
- match:
  - uri: {prefix: /a}
  OK
- match:
  - uri: {exact: /other}
  - uri: {prefix: /a/b} # W VS122 uri: {prefix: /a/b}
  OK",
        "
http:
- match:
  - uri: {prefix: /a/b}
  OK
- match:
  - uri: {exact: /other}
  - uri: {prefix: /a}
  OK",
    ),
];
