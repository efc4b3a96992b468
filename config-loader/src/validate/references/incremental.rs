//! Property test: incrementally updated diagnostics equal those of a full check.

use std::sync::Arc;

use proptest::prelude::*;

use super::References;
use crate::catalog::{DefaultDomain, Naming};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::store::{Change, Store};
use crate::{Fleet, ReadOptions};

/// Files, each with its possible texts.
const FILES: &[&[&str]] = &[
    &[
        "{kind: Service, apiVersion: v1, metadata: {name: web, namespace: a}, spec: {ports: [{name: http, port: 80}]}}",
        "{kind: Service, apiVersion: v1, metadata: {name: web, namespace: a}, spec: {ports: [{name: http, port: 81}, {name: grpc, port: 82}]}}",
        "{kind: Service, apiVersion: v1, metadata: {name: web, namespace: a, annotations: {networking.istio.io/exportTo: '.'}}, spec: {ports: [{name: http, port: 80}]}}",
    ],
    &[
        "{kind: EndpointSlice, apiVersion: discovery.k8s.io/v1, metadata: {name: web-1, namespace: a, labels: {kubernetes.io/service-name: web, version: v1}}, addressType: IPv4, ports: [{name: http, port: 80}], endpoints: [{addresses: [10.0.0.1]}]}",
        "{kind: EndpointSlice, apiVersion: discovery.k8s.io/v1, metadata: {name: web-1, namespace: a, labels: {kubernetes.io/service-name: web, version: v2}}, addressType: IPv4, ports: [{name: http, port: 80}], endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]}",
    ],
    &[
        "{kind: Pod, apiVersion: v1, metadata: {name: p1, namespace: a, labels: {app: x, version: v1}}, status: {podIP: 10.0.0.1}}",
        "{kind: Pod, apiVersion: v1, metadata: {name: p1, namespace: a, labels: {app: x, version: v2}}, status: {podIP: 10.0.0.2}}",
    ],
    &[
        "{kind: ServiceEntry, apiVersion: networking.istio.io/v1, metadata: {name: one, namespace: a}, spec: {hosts: [x.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 1.1.1.1, labels: {version: v1}}]}}",
        "{kind: ServiceEntry, apiVersion: networking.istio.io/v1, metadata: {name: one, namespace: a}, spec: {hosts: ['*.example'], ports: [{number: 80, name: http, protocol: HTTP}], resolution: NONE}}",
        "{kind: ServiceEntry, apiVersion: networking.istio.io/v1, metadata: {name: one, namespace: a}, spec: {hosts: [x.example], addresses: [10.9.0.1], ports: [{number: 80, name: tcp, protocol: TCP}], resolution: STATIC, workloadSelector: {labels: {app: x}}}}",
    ],
    &[
        "{kind: ServiceEntry, apiVersion: networking.istio.io/v1, metadata: {name: two, namespace: b}, spec: {hosts: [x.example, y.example], addresses: [10.9.0.1], ports: [{number: 80, name: http, protocol: HTTP}, {number: 90, name: other, protocol: HTTP}], resolution: DNS, exportTo: [.]}}",
        "{kind: ServiceEntry, apiVersion: networking.istio.io/v1, metadata: {name: two, namespace: a}, spec: {hosts: [web.a.svc.cluster.local, y.example, web.a.svc.clusterset.local], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 1.1.1.1}, {address: 1.1.1.2, labels: {version: v1}}]}}",
    ],
    &[
        "{kind: WorkloadEntry, apiVersion: networking.istio.io/v1, metadata: {name: w, namespace: a, labels: {app: x, version: v1}}, spec: {address: 2.2.2.2}}",
        "{kind: WorkloadEntry, apiVersion: networking.istio.io/v1, metadata: {name: w, namespace: a, labels: {app: x, version: v2}}, spec: {address: 2.2.2.2}}",
    ],
    &[
        "{kind: DestinationRule, apiVersion: networking.istio.io/v1, metadata: {name: d, namespace: a}, spec: {host: web, subsets: [{name: v1, labels: {version: v1}}]}}",
        "{kind: DestinationRule, apiVersion: networking.istio.io/v1, metadata: {name: d, namespace: a}, spec: {host: x.example, trafficPolicy: {outlierDetection: {maxEjectionPercent: 10}, portLevelSettings: [{port: {number: 80}, loadBalancer: {consistentHash: {httpHeaderName: h}}}]}}}",
        "{kind: DestinationRule, apiVersion: networking.istio.io/v1, metadata: {name: d, namespace: a}, spec: {host: '*.example', subsets: [{name: v1, labels: {version: v1}}]}}",
    ],
    &[
        "{kind: DestinationRule, apiVersion: networking.istio.io/v1, metadata: {name: e, namespace: a}, spec: {host: y.example, trafficPolicy: {loadBalancer: {localityLbSetting: {failover: [{from: r, to: s}]}}, outlierDetection: {maxEjectionPercent: 10}}}}",
        "{kind: DestinationRule, apiVersion: networking.istio.io/v1, metadata: {name: e, namespace: b}, spec: {host: nothing.example, subsets: [{name: v2, labels: {version: v2}}]}}",
    ],
    &[
        "{kind: Gateway, apiVersion: networking.istio.io/v1, metadata: {name: edge, namespace: a}, spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}}",
        "{kind: Gateway, apiVersion: networking.istio.io/v1, metadata: {name: edge, namespace: a}, spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [x.example]}]}}",
    ],
    &[
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: v, namespace: a}, spec: {hosts: [x.example], gateways: [edge], http: [{route: [{destination: {host: web, subset: v1}}]}]}}",
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: v, namespace: a}, spec: {hosts: [y.example], gateways: [edge], http: [{delegate: {name: part}}, {route: [{destination: {host: x.example, subset: v2}}]}]}}",
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: v, namespace: a}, spec: {hosts: [x.example], http: [{route: [{destination: {host: web.a}}], mirror: {host: web.a.svc.cluster.local}}]}}",
    ],
    &[
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: part, namespace: a}, spec: {http: [{route: [{destination: {host: y.example, port: {number: 90}}}]}]}}",
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: part, namespace: a}, spec: {hosts: [x.example], http: [{route: [{destination: {host: unknown.example}}]}]}}",
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: part, namespace: a}, spec: {hosts: [x.example], gateways: [edge], http: [{route: [{destination: {host: weeb, subset: v1}}]}]}}",
    ],
    &[
        "{kind: Service, apiVersion: v1, metadata: {name: alias, namespace: a}, spec: {type: ExternalName, externalName: web.a.svc.cluster.local}}",
        "{kind: Service, apiVersion: v1, metadata: {name: alias, namespace: a}, spec: {type: ExternalName, externalName: y.example, ports: [{port: 81}]}}",
        "{kind: Service, apiVersion: v1, metadata: {name: alias, namespace: a}, spec: {type: ExternalName, externalName: alias.a.svc.cluster.local}}",
    ],
    &[
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: to-alias, namespace: a}, spec: {hosts: [z.example], gateways: [edge], http: [{route: [{destination: {host: alias, subset: v1, port: {number: 80}}}]}]}}",
        "{kind: VirtualService, apiVersion: networking.istio.io/v1, metadata: {name: to-alias, namespace: a}, spec: {hosts: [z.example], gateways: [edge, other], http: [{route: [{destination: {host: alias}}]}]}}",
    ],
    &[
        "{kind: ServiceImport, apiVersion: multicluster.x-k8s.io/v1alpha1, metadata: {name: web, namespace: a}, spec: {type: ClusterSetIP, ips: [10.9.0.1], ports: [{port: 80}]}}",
        "{kind: ServiceImport, apiVersion: flomesh.io/v1alpha1, metadata: {name: web, namespace: a}, spec: {ports: [{port: 80, endpoints: [{clusterKey: default/default/default/c2, target: {ip: 10.1.1.1, port: 80, path: /c2}}]}]}}",
    ],
    &[
        "{kind: GlobalTrafficPolicy, apiVersion: flomesh.io/v1alpha1, metadata: {name: web, namespace: a}, spec: {lbType: FailOver, targets: [{clusterKey: default/default/default/c3}]}}",
    ],
    &[
        "{kind: MultiClusterService, apiVersion: networking.karmada.io/v1alpha1, metadata: {name: web, namespace: a}, spec: {types: [CrossCluster], ports: [{port: 81}], providerClusters: [{name: c2}]}}",
    ],
    &[
        "{kind: ServiceExport, apiVersion: flomesh.io/v1alpha1, metadata: {name: web, namespace: a}, spec: {pathRewrite: {from: '^/a$', to: /}, rules: [{portNumber: 80, path: /c1, pathType: Exact}]}}",
    ],
    &[
        "{kind: AuthorizationPolicy, apiVersion: security.istio.io/v1, metadata: {name: p, namespace: a}, spec: {selector: {matchLabels: {app: y}}, action: DENY, rules: [{to: [{operation: {paths: [/a]}}], from: [{source: {principals: [a]}}]}]}}",
        "{kind: AuthorizationPolicy, apiVersion: security.istio.io/v1, metadata: {name: p, namespace: a}, spec: {rules: [{from: [{source: {requestPrincipals: ['*']}}]}, {}]}}",
    ],
    &[
        "{kind: RequestAuthentication, apiVersion: security.istio.io/v1, metadata: {name: t, namespace: a}, spec: {jwtRules: [{issuer: i, jwksUri: 'https://i.example/keys'}]}}",
        "{kind: RequestAuthentication, apiVersion: security.istio.io/v1, metadata: {name: t, namespace: a}, spec: {selector: {matchLabels: {app: x}}, jwtRules: [{issuer: i, jwksUri: 'https://i.example/keys'}]}}",
    ],
    &[
        "{kind: BackendTrafficPolicy, apiVersion: gateway.envoyproxy.io/v1alpha1, metadata: {name: p, namespace: a}, spec: {targetRefs: [{group: networking.istio.io, kind: VirtualService, name: part}]}}",
        "{kind: BackendTrafficPolicy, apiVersion: gateway.envoyproxy.io/v1alpha1, metadata: {name: p, namespace: a}, spec: {targetRefs: [{kind: Service, name: alias}]}}",
    ],
    &[
        "{kind: Telemetry, apiVersion: telemetry.istio.io/v1, metadata: {name: t, namespace: a}, spec: {accessLogging: [{providers: [{name: envoy}]}]}}",
        "{kind: Telemetry, apiVersion: telemetry.istio.io/v1, metadata: {name: t, namespace: a}, spec: {selector: {matchLabels: {app: x}}, metrics: [{}]}}",
    ],
    &[
        "{kind: Telemetry, apiVersion: telemetry.istio.io/v1, metadata: {name: u, namespace: a}, spec: {tracing: [{randomSamplingPercentage: 1}]}}",
    ],
    &[
        "{kind: ProxyConfig, apiVersion: networking.istio.io/v1beta1, metadata: {name: p, namespace: a}, spec: {concurrency: 2}}",
    ],
    &[
        "{kind: PeerAuthentication, apiVersion: security.istio.io/v1, metadata: {name: p, namespace: a}, spec: {mtls: {mode: STRICT}}}",
    ],
    &[
        "{kind: Sidecar, apiVersion: networking.istio.io/v1, metadata: {name: s, namespace: a}, spec: {workloadSelector: {labels: {app: x}}, egress: [{hosts: [./x.example, b/*]}]}}",
        "{kind: Sidecar, apiVersion: networking.istio.io/v1, metadata: {name: s, namespace: a}, spec: {egress: [{port: {number: 81}, hosts: ['*/web.a.svc.cluster.local']}]}}",
    ],
    &[
        "{kind: Sidecar, apiVersion: networking.istio.io/v1, metadata: {name: t, namespace: a}, spec: {workloadSelector: {labels: {version: v1}}, egress: [{hosts: ['*/*.example']}]}}",
        "{kind: Sidecar, apiVersion: networking.istio.io/v1, metadata: {name: t, namespace: a}, spec: {outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: y.example, port: {number: 80}}}}}",
    ],
    &[
        "{kind: Gateway, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: api, namespace: a}, spec: {gatewayClassName: strait, listeners: [{name: x, protocol: HTTP, port: 80}]}}",
        "{kind: Gateway, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: api, namespace: a}, spec: {gatewayClassName: strait, listeners: [{name: z, protocol: HTTP, port: 81, hostname: '*.example', allowedRoutes: {namespaces: {from: All}}}]}}",
        "{kind: Gateway, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: api, namespace: a}, spec: {gatewayClassName: other, listeners: [{name: x, protocol: TCP, port: 80}]}}",
    ],
    &[
        "{kind: HTTPRoute, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: r, namespace: a}, spec: {parentRefs: [{name: api, sectionName: x}], rules: [{backendRefs: [{name: web, port: 80}]}]}}",
        "{kind: HTTPRoute, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: r, namespace: a}, spec: {parentRefs: [{name: api}, {group: '', kind: Service, name: web}], hostnames: [x.example], rules: [{backendRefs: [{name: web, namespace: b, port: 81}]}]}}",
    ],
    &[
        "{kind: HTTPRoute, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: r, namespace: b}, spec: {parentRefs: [{name: api, namespace: a}], hostnames: [y.test], rules: [{backendRefs: [{name: web, namespace: a, port: 81}]}]}}",
    ],
    &[
        "{kind: GRPCRoute, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: g, namespace: a}, spec: {parentRefs: [{name: api}], rules: [{backendRefs: [{name: alias, port: 80}, {name: web, port: 82}]}]}}",
    ],
    &[
        "{kind: ReferenceGrant, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: b, namespace: a}, spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: b}], to: [{group: '', kind: Service}]}}",
    ],
    &[
        "{kind: GatewayClass, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: other}, spec: {controllerName: strait.io/gateway-controller}}",
        "{kind: GatewayClass, apiVersion: gateway.networking.k8s.io/v1, metadata: {name: other}, spec: {controllerName: strait.io/gateway-controller, parametersRef: {group: a.example, kind: P, name: p}}}",
    ],
];

fn fleet(default_domain: DefaultDomain, namespace: Option<&str>) -> Fleet {
    Fleet {
        naming: Naming {
            default_domain,
            ..Naming::default()
        },
        namespace: namespace.map(Arc::from),
        ..Fleet::default()
    }
}

fn sorted(found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut all = Diagnostics::default();
    all.extend(found);
    let mut all = all.into_sorted();
    all.dedup();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn findings_after_changes_equal_those_of_a_fresh_check(
        changes in proptest::collection::vec((0..FILES.len(), 0_usize..4), 1..40),
        of_cluster_set in any::<bool>(),
        at_gateway in any::<bool>(),
    ) {
        let default_domain = match of_cluster_set {
            true => DefaultDomain::ClusterSet,
            false => DefaultDomain::Cluster,
        };
        let fleet = fleet(default_domain, at_gateway.then_some("b"));
        let options = ReadOptions { first_ejection_is_capped: true, ..ReadOptions::default() };
        let mut store = Store::new();
        let mut following = References::default();
        for (number, text) in changes {
            let texts = FILES[number];
            let file = format!("{number}.yaml");
            let change = match texts.get(text) {
                Some(text) => Change::text(&store, &file, text),
                None => Change::Gone,
            };
            store.apply(vec![(file.into(), change)]);
            prop_assert!(store.refusals().is_empty());
            let found = following.check(store.set(), options, &fleet);
            let fresh = References::default().check(store.set(), options, &fleet);
            prop_assert_eq!(sorted(found), sorted(fresh));
        }
    }
}

#[test]
fn all_texts_are_good() {
    for texts in FILES {
        for text in *texts {
            let mut store = Store::new();
            let change = Change::text(&store, "a.yaml", text);
            store.apply(vec![("a.yaml".into(), change)]);
            assert_eq!(store.set().len(), 1, "{text}: {:?}", store.diagnostics());
        }
    }
}
