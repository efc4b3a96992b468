//! ServiceEntries, WorkloadEntries and Sidecars with settings that have no effect, or an unexpected one. Istio has the
//! same warnings.

use super::{Table, document};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, cases| Table {
        around,
        path: "spec",
        with_references: false,
        cases,
    };
    vec![
        table(entry as fn(&str) -> String, ENTRIES),
        table(workload, WORKLOADS),
        table(sidecar, SIDECARS),
    ]
}

fn entry(spec: &str) -> String {
    document("ServiceEntry", "own", spec)
}

fn workload(spec: &str) -> String {
    document("WorkloadEntry", "own", spec)
}

fn sidecar(hosts: &str) -> String {
    document("Sidecar", "own", hosts)
}

const ENTRIES: &[super::Case] = &[
    (
        &[269],
        "
hosts: [a.com]
resolution: DNS
ports:
- {number: 443, name: a} # W SE269 {number: 443, name: a}",
        "
hosts: [a.com]
resolution: DNS
addresses: [10.0.0.1]
ports:
- {number: 443, name: a}",
    ),
    (
        &[269],
        "
hosts: [a.com]
ports:
- {number: 80, name: http, protocol: HTTP}
- {number: 81, name: a, protocol: tcp} # W SE269 {number: 81, name: a, protocol: tcp}
- {number: 82, name: b, protocol: ''} # W SE269 {number: 82, name: b, protocol: ''}",
        "
hosts: [a.com]
ports:
- {number: 80, name: http, protocol: HTTP}
- {number: 81, name: a, protocol: TLS}",
    ),
    (
        &[],
        "
hosts:
- a.com
- b.com # W SE302 b.com
resolution: DNS
addresses: [10.0.0.1]
ports: [{number: 443, name: tls, protocol: TLS}]",
        "
hosts:
- a.com
- b.com
resolution: DNS
ports: [{number: 443, name: tls, protocol: TLS}]",
    ),
    (
        &[],
        "
hosts:
- a.com
- b.com # W SE302 b.com
resolution: DNS_ROUND_ROBIN
addresses: [10.0.0.1]
ports: [{number: 80, name: http, protocol: HTTP}, {number: 443, name: https, protocol: HTTPS}]",
        "
hosts:
- a.com
- b.com
resolution: DNS_ROUND_ROBIN
addresses: [10.0.0.1]
ports: [{number: 80, name: http, protocol: HTTP}]",
    ),
    (
        &[],
        "
hosts: [a.com]
resolution: NONE
ports: [{number: 80, name: http, protocol: HTTP}]
workloadSelector: # W SE303 workloadSelector
  labels: {app: a}",
        "
hosts: [a.com]
resolution: STATIC
ports: [{number: 80, name: http, protocol: HTTP}]
workloadSelector:
  labels: {app: a}",
    ),
    (
        &[],
        "
hosts: [a.com]
workloadSelector: {labels: {app: a}} # W SE303 workloadSelector
ports:
- number: 80
  name: http
  protocol: HTTP
  targetPort: 8080 # W SE304 8080",
        "
hosts: [a.com]
resolution: DNS
ports:
- number: 80
  name: http
  protocol: HTTP
  targetPort: 8080",
    ),
    (
        &[],
        "
hosts: [a.com]
resolution: STATIC
ports: [{number: 80, name: http, protocol: HTTP}]
endpoints:
- address: 10.0.0.1
- network: n1 # W WE303 n1",
        "
hosts: [a.com]
resolution: STATIC
ports: [{number: 80, name: http, protocol: HTTP}]
endpoints:
- address: 10.0.0.1
- network: n1
  address: 10.0.0.2",
    ),
];

const WORKLOADS: &[super::Case] = &[(
    &[],
    "network: n1 # W WE303 n1",
    "
network: n1
address: 10.0.0.1",
)];

const SIDECARS: &[super::Case] = &[
    (
        &[],
        "
egress:
- hosts:
  - 'far/a.com' # W SC245 'far/a.com'
  - 'far/*'
  - './b.com'
  - 'ns/b.com' # W SC245 'ns/b.com'",
        "
egress:
- hosts:
  - 'near/a.com'
  - 'far/*'
  - './b.com'
  - '~far/b.com'",
    ),
    (
        &[],
        "
egress:
- port: {number: 80, name: http, protocol: HTTP}
  hosts:
  - '*/*.a.com'
  - 'far/x.a.com' # W SC245 'far/x.a.com'
  - './*.y.a.com' # W SC245 './*.y.a.com'
- hosts: ['far/x.a.com']",
        "
egress:
- port: {number: 80, name: http, protocol: HTTP}
  hosts:
  - 'far/*.a.com'
  - 'near/x.a.com'
  - 'far/a.com'
- hosts: ['far/x.a.com']",
    ),
    (
        &[],
        "
outboundTrafficPolicy:
  mode: ALLOW_ANY
  egressProxy: # W SC301 egressProxy
    host: out.ns.svc.cluster.local
    port: {number: 443}",
        "
outboundTrafficPolicy:
  mode: ALLOW_ANY",
    ),
];
