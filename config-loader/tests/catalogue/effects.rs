//! Rows 283 to 286: DestinationRules without an effect because of other objects.

use super::{Table, document};

pub(super) fn tables() -> Vec<Table> {
    vec![Table {
        around: policy,
        path: "spec",
        with_references: true,
        cases: POLICIES,
    }]
}

/// Returns a DestinationRule next to a service with two endpoints, in the regions `r` and `q`, and a service with two
/// ports. Documents after `---` are appended.
fn policy(text: &str) -> String {
    let (spec, beside) = text.split_once("---\n").unwrap_or((text, ""));
    let endpoints = "endpoints: [{address: 10.0.0.2, locality: r/a, labels: {version: v1}}, \
        {address: 10.0.0.3, locality: q/a, labels: {version: v2}}]";
    let entry = |name: &str, more: &str| {
        let spec = format!("hosts: [{name}.ns.svc.cluster.local]\nresolution: STATIC\n{more}");
        document("ServiceEntry", name, &spec)
    };
    let (one, two) = (
        "ports: [{number: 80, name: http, protocol: HTTP}]",
        "ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: more, protocol: HTTP}]",
    );
    let route = |name: &str| {
        let destination = format!("{{destination: {{host: {name}}}}}");
        let spec = format!("hosts: [{name}.com]\nhttp: [{{route: [{destination}]}}]");
        document("VirtualService", name, &spec)
    };
    let documents = [
        entry("spread", &format!("{one}\n{endpoints}")),
        entry(
            "lone",
            &format!("{one}\nendpoints: [{{address: 10.0.0.4}}]"),
        ),
        entry("hashed", &format!("{two}\n{endpoints}")),
        route("spread"),
        document(
            "VirtualService",
            "hashed",
            "hosts: [hashed.com]\nhttp: [{route: [{destination: {host: hashed, port: {number: 81}}}]}]\n\
             tcp: [{route: [{destination: {host: hashed, port: {number: 80}}}]}]",
        ),
        document("DestinationRule", "own", spec),
    ];
    format!("{}---\n{beside}\n", documents.join("---\n"))
}

const POLICIES: &[super::Case] = &[
    (
        &[],
        "
host: hashed
trafficPolicy:
  portLevelSettings:
  - port: {number: 80}
    tls: {mode: DISABLE}
  - port: {number: 8080} # W X292
    tls: {mode: DISABLE}",
        "
host: hashed
trafficPolicy:
  portLevelSettings:
  - port: {number: 80}
    tls: {mode: DISABLE}
  - port: {number: 81}
    tls: {mode: DISABLE}",
    ),
    (
        &[283],
        "
host: spread
subsets:
- name: v1
  labels: {version: v1}
- name: v3 # W X283
  labels: {version: v3}",
        "
host: spread
subsets:
- name: v1
  labels: {version: v1}
- name: all",
    ),
    (
        &[284],
        "
host: spread
trafficPolicy: {tls: {}}
---
{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: wide, namespace: ns},
 spec: {host: '*.local', trafficPolicy: {tls: {}}}} # W X284",
        "
host: spread
trafficPolicy: {tls: {}}
---
{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: wide, namespace: ns},
 spec: {host: '*.other.local', trafficPolicy: {tls: {}}}}
---
{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: other, namespace: ns},
 spec: {hosts: [a.other.local], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}}",
    ),
    (
        &[285],
        "
host: lone
trafficPolicy:
  outlierDetection:
    interval: 1s
    maxEjectionPercent: 99 # W X285",
        "
host: lone
trafficPolicy:
  outlierDetection:
    interval: 1s
    maxEjectionPercent: 100",
    ),
    (
        &[285],
        "
host: spread
trafficPolicy: {outlierDetection: {}}
subsets:
- name: v1
  labels: {version: v1}
  trafficPolicy:
    portLevelSettings:
    - port: {number: 80}
      outlierDetection: {} # W X285",
        "
host: spread
trafficPolicy: {outlierDetection: {}}
subsets:
- name: v1
  labels: {version: v1}",
    ),
    (
        &[286],
        "
host: spread
trafficPolicy:
  portLevelSettings:
  - port: {number: 80}
    loadBalancer:
      consistentHash: {useSourceIp: true} # N X291",
        "
host: spread
trafficPolicy:
  loadBalancer:
    consistentHash: {useSourceIp: true}",
    ),
    (
        &[286],
        "
host: hashed
trafficPolicy:
  portLevelSettings:
  - port: {number: 80}
    loadBalancer:
      consistentHash: {useSourceIp: true} # W X286
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: more, namespace: ns},
 spec: {hosts: [more.com], http: [{route: [{destination: {host: hashed}}]}]}} # W X277 hashed",
        "
host: hashed
trafficPolicy:
  portLevelSettings:
  - port: {number: 80}
    loadBalancer:
      consistentHash: {useSourceIp: true}",
    ),
    (
        &[],
        "
host: spread
trafficPolicy:
  outlierDetection: {}
  loadBalancer:
    localityLbSetting:
      failover:
      - {from: r, to: q}
      - {from: q, to: p} # W X289",
        "
host: spread
trafficPolicy:
  outlierDetection: {}
  loadBalancer:
    localityLbSetting:
      failover:
      - {from: r, to: q}
      - {from: q, to: r}",
    ),
    (
        &[],
        "
host: spread
subsets:
- name: v1
  labels: {version: v1}
  trafficPolicy:
    outlierDetection: {maxEjectionPercent: 100}
    loadBalancer:
      zoneAwareLbSetting:
        failover:
        - from: r
          to: q # W X289 q",
        "
host: spread
subsets:
- name: v2
  labels: {version: v2}
  trafficPolicy:
    outlierDetection: {maxEjectionPercent: 100}
    loadBalancer:
      zoneAwareLbSetting:
        failover:
        - from: r
          to: q",
    ),
    (
        &[],
        "
host: spread
trafficPolicy:
  loadBalancer:
    localityLbSetting:
      distribute:
      - from: r # W X290
        to: {r: 80, q/b: 20}",
        "
host: spread
trafficPolicy:
  loadBalancer:
    localityLbSetting:
      distribute:
      - from: r
        to: {r: 80, q/*: 20}",
    ),
    (
        &[],
        "
host: spread
subsets:
- name: all
  trafficPolicy:
    loadBalancer:
      localityLbSetting:
        failover:
        - {from: r, to: q} # W DR172
---
{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: then, namespace: ns},
 spec: {host: spread, trafficPolicy: {loadBalancer: {simple: RANDOM}}}}",
        "
host: spread
subsets:
- name: all
  trafficPolicy:
    loadBalancer:
      localityLbSetting:
        failover:
        - {from: r, to: q}
---
{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: then, namespace: ns},
 spec: {host: spread, trafficPolicy: {outlierDetection: {}}}}",
    ),
    (
        &[],
        "
host: spread
trafficPolicy:
  loadBalancer: {simple: RANDOM}
---
{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: then, namespace: ns}, # W X324
 spec: {host: spread, trafficPolicy: {outlierDetection: {}}, subsets: [{name: all, trafficPolicy: {loadBalancer: {
  localityLbSetting: {failoverPriority: [version]}}}}]}} # W DR172",
        "
host: spread
trafficPolicy:
  outlierDetection: {}
---
{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: then, namespace: ns},
 spec: {host: spread, subsets: [{name: all, trafficPolicy: {loadBalancer: {
  localityLbSetting: {failoverPriority: [version]}}}}]}}",
    ),
    (
        &[],
        "
host: lone
trafficPolicy:
  outlierDetection: {maxEjectionPercent: 100}
  loadBalancer:
    localityLbSetting:
      failover:
      - {from: r, to: q} # W X289",
        "
host: lone
trafficPolicy:
  outlierDetection: {maxEjectionPercent: 100}
  loadBalancer:
    localityLbSetting:
      failoverPriority: [version]",
    ),
    (
        &[],
        "
host: pods
trafficPolicy:
  outlierDetection: {maxEjectionPercent: 100}
  loadBalancer:
    localityLbSetting:
      failover:
      - {from: r, to: q} # W X289
---
{apiVersion: v1, kind: Service, metadata: {name: pods, namespace: ns}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
 metadata: {name: pods-1, namespace: ns, labels: {kubernetes.io/service-name: pods}}, addressType: IPv4,
 ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.0.9], zone: a}]}",
        "
host: pods
trafficPolicy:
  outlierDetection: {maxEjectionPercent: 100}
  loadBalancer:
    localityLbSetting:
      failover:
      - {from: r, to: q}
---
{apiVersion: v1, kind: Service, metadata: {name: pods, namespace: ns}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
 metadata: {name: pods-1, namespace: ns, labels: {kubernetes.io/service-name: pods}}, addressType: IPv4,
 ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.0.9], zone: a}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
 metadata: {name: pods-2, namespace: ns,
  labels: {kubernetes.io/service-name: pods, multicluster.kubernetes.io/source-cluster: c2}},
 addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.1.9], zone: a}]}",
    ),
    (
        &[],
        "
host: pods
trafficPolicy:
  loadBalancer:
    localityLbSetting:
      distribute:
      - from: r # W X290
        to: {r/a: 80, q: 20}
---
{apiVersion: v1, kind: Service, metadata: {name: pods, namespace: ns}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
 metadata: {name: pods-1, namespace: ns, labels: {kubernetes.io/service-name: pods}}, addressType: IPv4,
 ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.0.9], zone: a}]}",
        "
host: pods
trafficPolicy:
  loadBalancer:
    localityLbSetting:
      distribute:
      - from: r
        to: {r/a: 100}
      - from: p/*
        to: {p: 100}
---
{apiVersion: v1, kind: Service, metadata: {name: pods, namespace: ns}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
 metadata: {name: pods-1, namespace: ns, labels: {kubernetes.io/service-name: pods}}, addressType: IPv4,
 ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.0.9], zone: a}]}",
    ),
];
