//! Changes of all kinds of resources, one after the other: what follows them is what a fresh start has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use config_loader::{Diagnostics, Kind, ObjectRef, ResourceSet, Severity, load_bytes};
use proptest::prelude::*;

use crate::compile::tests::incremental::dump;
use crate::compile::tests::world::{World, ask};
use crate::compile::{Inputs, ServiceCache, compile, compile_again};
use crate::identity::{Identity, Mode};
use crate::snapshot::Snapshot;
use crate::tls::Store;
use traffic::registry::Moment;

const ISTIO: &str = "networking.istio.io/v1";
const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

/// Places of one object each: API version, kind, namespace, name, and what the object may be.
const PLACES: &[(&str, &str, &str, &str, &[&str])] = &[
    (
        ISTIO,
        "Gateway",
        "default",
        "gw",
        &[
            "spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}",
            "spec: {servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ['*']}]}",
            "spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*.example', 'default/*']}, \
         {port: {number: 8080, name: more, protocol: HTTP}, hosts: ['*'], tls: {httpsRedirect: true}}]}",
            "spec: {servers: [{port: {number: 80, name: tcp, protocol: TCP}, hosts: ['*']}, \
         {port: {number: 443, name: tls, protocol: TLS}, hosts: ['*'], tls: {mode: PASSTHROUGH}}]}",
            "spec: {selector: {app: other}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}",
        ],
    ),
    (
        GATEWAY_API,
        "Gateway",
        "ns1",
        "api",
        &[
            "spec: {gatewayClassName: strait, listeners: [{name: a, port: 81, protocol: HTTP}, {name: b, port: 81, protocol: HTTP, hostname: '*.example'}]}",
            "spec: {gatewayClassName: strait, listeners: [{name: a, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}",
            "spec: {gatewayClassName: other, listeners: [{name: a, port: 81, protocol: HTTP}]}",
        ],
    ),
    (
        GATEWAY_API,
        "HTTPRoute",
        "ns1",
        "one",
        &[
            "spec: {parentRefs: [{name: api}], rules: [{backendRefs: [{name: a, port: 80}, {name: b, namespace: ns1, port: 80}]}]}",
            "spec: {parentRefs: [{name: api, sectionName: b}], hostnames: [one.example, two.test], rules: [{matches: [{path: {value: /a}}], \
         backendRefs: [{name: a, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x]}}]}]}]}",
            "spec: {parentRefs: [{name: api}], hostnames: ['*.example'], rules: [{matches: [{path: {type: Exact, value: /a}}], \
         filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80}}}], backendRefs: [{name: none, port: 80}]}]}",
        ],
    ),
    (
        GATEWAY_API,
        "HTTPRoute",
        "default",
        "two",
        &[
            "spec: {parentRefs: [{name: api, namespace: ns1}], hostnames: [one.example], rules: [{backendRefs: [{name: a, namespace: ns1, port: 80}]}]}",
            "spec: {parentRefs: [{group: '', kind: Service, name: a, namespace: ns1}], rules: [{backendRefs: [{name: a, namespace: ns1, port: 80}]}]}",
        ],
    ),
    (
        GATEWAY_API,
        "HTTPRoute",
        "ns1",
        "three",
        &[
            "spec: {parentRefs: [{group: '', kind: Service, name: a}], rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: b, port: 80}]}]}",
            "spec: {parentRefs: [{group: '', kind: Service, name: a, port: 80}, {group: '', kind: Service, name: b}], \
         rules: [{matches: [{path: {value: /}}], backendRefs: [{name: a, port: 80}]}]}",
        ],
    ),
    (
        GATEWAY_API,
        "Gateway",
        "default",
        "more",
        &[
            "spec: {gatewayClassName: strait, listeners: [{name: c, port: 81, protocol: HTTP, hostname: '*.test', \
         allowedRoutes: {namespaces: {from: All}}}]}",
            "spec: {gatewayClassName: strait, listeners: [{name: c, port: 81, protocol: HTTP, hostname: '*.b.test', \
         allowedRoutes: {namespaces: {from: All}}}, {name: d, port: 8080, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}",
            "spec: {gatewayClassName: strait, listeners: [{name: c, port: 81, protocol: HTTP, hostname: two.test}]}",
        ],
    ),
    (
        GATEWAY_API,
        "HTTPRoute",
        "ns1",
        "wide",
        &[
            "spec: {parentRefs: [{name: api}, {name: more, namespace: default}], rules: [{matches: [{path: {value: /a}}, \
         {method: POST}], backendRefs: [{name: b, port: 80}]}]}",
            "spec: {parentRefs: [{name: more, namespace: default}, {name: api, sectionName: a}], hostnames: ['*.test', x.b.test, '*.b.test', two.test], \
         rules: [{matches: [{path: {value: /a}, headers: [{name: x, value: v}]}, {path: {value: /b}}], backendRefs: [{name: a, port: 80}]}]}",
            "spec: {parentRefs: [{name: more, namespace: default, sectionName: d}], rules: [{backendRefs: [{name: b, port: 80}]}]}",
        ],
    ),
    (
        GATEWAY_API,
        "GRPCRoute",
        "ns1",
        "calls",
        &[
            "spec: {parentRefs: [{name: api}], hostnames: ['*.test', '*.example'], rules: [{matches: [{method: {service: s.A}}], \
         backendRefs: [{name: a, port: 80}]}]}",
            "spec: {parentRefs: [{name: more, namespace: default}], rules: [{backendRefs: [{name: b, port: 80}]}]}",
        ],
    ),
    (
        GATEWAY_API,
        "ReferenceGrant",
        "ns1",
        "grant",
        &[
            "spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}], to: [{group: '', kind: Service}]}",
        ],
    ),
    (
        ISTIO,
        "Gateway",
        "istio-system",
        "two",
        &[
            "spec: {servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ['*']}]}",
            "spec: {servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ['*']}, \
         {port: {number: 80, name: more, protocol: HTTP}, hosts: ['*']}]}",
        ],
    ),
    (
        ISTIO,
        "VirtualService",
        "default",
        "one",
        &[
            "spec: {hosts: [one.example], gateways: [gw, istio-system/two, mesh], http: [{route: [{destination: {host: out.example}}]}]}",
            "spec: {hosts: [one.example], exportTo: [other], gateways: [gw, mesh], http: [{route: [{destination: {host: out.example}}]}]}",
            "spec: {hosts: [one.example, a.ns1.svc.cluster.local], gateways: [gw, istio-system/two, mesh], http: [\
         {match: [{uri: {prefix: /d}}], delegate: {name: part, namespace: ns1}}, {match: [{port: 8080}], redirect: {uri: /8080}}, \
         {match: [{uri: {prefix: /a}}], route: [{destination: {host: a.ns1.svc.cluster.local}}]}]}",
            "spec: {hosts: [one.example], gateways: [gw, mesh], http: [{match: [{port: 8080}], route: [{destination: {host: out.example}}]}]}",
            "spec: {hosts: [one.example], gateways: [gw], tcp: [{route: [{destination: {host: b.ns1.svc.cluster.local, port: {number: 80}}}]}], \
         tls: [{match: [{sniHosts: [one.example]}], route: [{destination: {host: out.example, port: {number: 80}}}]}]}",
        ],
    ),
    (
        ISTIO,
        "VirtualService",
        "istio-system",
        "two",
        &[
            "spec: {hosts: ['*.example'], exportTo: [.], gateways: [default/gw, two, mesh], http: [\
         {route: [{destination: {host: a.ns1.svc.cluster.local, subset: v1}}]}]}",
            "spec: {hosts: [b.ns1.svc.cluster.local], gateways: [default/gw, two, mesh], http: [\
         {route: [{destination: {host: b.ns1.svc.cluster.local}}], mirror: {host: out.example}}]}",
            "spec: {hosts: ['*'], gateways: [default/gw, two], http: [{match: [{uri: {prefix: /all}}], \
         route: [{destination: {host: alias.ns1.svc.cluster.local}}]}]}",
            "spec: {hosts: [two.example], gateways: [default/gw, two], http: [{route: [\
         {destination: {host: b.ns1.svc.clusterset.local}, weight: 1}, {destination: {host: a.ns1.svc.cluster.local}, weight: 1}]}]}",
        ],
    ),
    (
        ISTIO,
        "VirtualService",
        "ns1",
        "part",
        &[
            "spec: {http: [{match: [{uri: {prefix: /d/e}}], route: [{destination: {host: out.example}}]}]}",
            "spec: {http: [{route: [{destination: {host: b}}]}]}",
            "spec: {hosts: [a.ns1.svc.cluster.local], gateways: [default/gw], http: [{directResponse: {status: 200}}]}",
            "spec: {exportTo: [other], http: [{route: [{destination: {host: b}}]}]}",
        ],
    ),
    (
        ISTIO,
        "DestinationRule",
        "ns1",
        "a",
        &[
            "spec: {host: a, trafficPolicy: {loadBalancer: {simple: RANDOM}}, subsets: [{name: v1, labels: {version: v1}}]}",
            "spec: {host: '*.example', trafficPolicy: {connectionPool: {tcp: {maxConnections: 3}}}}",
            "spec: {host: web, exportTo: [.], trafficPolicy: {connectionPool: {tcp: {maxConnections: 5}}}}",
        ],
    ),
    (
        ISTIO,
        "DestinationRule",
        "default",
        "b",
        &[
            "spec: {host: out.example, trafficPolicy: {tls: {mode: SIMPLE}}}",
            "spec: {host: web.default.svc.cluster.local, subsets: [{name: v1, labels: {version: v1}}]}",
            "spec: {host: web.default.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}}",
        ],
    ),
    (
        ISTIO,
        "DestinationRule",
        "default",
        "c",
        &[
            "spec: {host: web.default.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {maxConnections: 9}}}}",
            "spec: {host: web.default.svc.cluster.local, subsets: [{name: v2, labels: {version: v2}}]}",
        ],
    ),
    (
        ISTIO,
        "ServiceEntry",
        "default",
        "out",
        &[
            "spec: {hosts: [out.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, \
         endpoints: [{address: 10.7.0.1, labels: {version: v1}}]}",
            "spec: {hosts: [out.example], exportTo: [other], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, \
         endpoints: [{address: 10.7.0.1}]}",
            "spec: {hosts: [out.example, '*.wide.example'], addresses: [10.8.0.1], ports: [{number: 80, name: http, protocol: HTTP}, \
         {number: 8080, name: grpc, protocol: GRPC}], resolution: STATIC, endpoints: [{address: 10.7.0.2}]}",
            "spec: {hosts: [out.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}",
            "spec: {hosts: [out.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: NONE}",
        ],
    ),
    (
        ISTIO,
        "ServiceEntry",
        "default",
        "over",
        &[
            "spec: {hosts: [out.example], ports: [{number: 81, name: http, protocol: HTTP, targetPort: 8181}], resolution: STATIC, \
         endpoints: [{address: 10.7.1.1}]}",
            "spec: {hosts: [out.example], exportTo: [other], ports: [{number: 80, name: web, protocol: HTTP2}], resolution: DNS, \
         endpoints: [{address: name.test}]}",
            "spec: {hosts: [out.example, b.ns1.svc.cluster.local], ports: [{number: 80, name: web, protocol: HTTP}], resolution: STATIC, \
         workloadSelector: {labels: {app: x}}}",
        ],
    ),
    (
        ISTIO,
        "WorkloadEntry",
        "default",
        "w",
        &[
            "spec: {address: 10.6.0.1, labels: {app: x, version: v1}}",
            "spec: {address: 10.6.0.2, labels: {app: z}}",
            "spec: {address: work.test, labels: {app: x}}",
        ],
    ),
    (
        ISTIO,
        "Sidecar",
        "default",
        "s",
        &[
            "spec: {egress: [{hosts: ['*/a.ns1.svc.cluster.local', './*']}]}",
            "spec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}, ingress: [{port: {number: 9080, protocol: HTTP, name: in}, \
         defaultEndpoint: 127.0.0.1:8080}]}",
        ],
    ),
    (
        "networking.k8s.io/v1",
        "Ingress",
        "default",
        "i",
        &[
            "spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}",
            "spec: {defaultBackend: {service: {name: b, port: {number: 80}}}}",
        ],
    ),
    (
        "networking.k8s.io/v1",
        "IngressClass",
        "default",
        "c",
        &[
            "spec: {controller: strait.io/ingress-controller}",
            "spec: {controller: example.com/other}",
        ],
    ),
    (
        "gateway.envoyproxy.io/v1alpha1",
        "BackendTrafficPolicy",
        "default",
        "p",
        &[
            "spec: {targetRefs: [{group: networking.istio.io, kind: VirtualService, name: one}], requestBuffer: {limit: 1Ki}}",
            "spec: {targetRefs: [{group: networking.istio.io, kind: Gateway, name: gw}], rateLimit: {local: {rules: [{limit: \
         {requests: 1, unit: Day}}]}}}",
        ],
    ),
    (
        "security.istio.io/v1",
        "PeerAuthentication",
        "ns1",
        "p",
        &[
            "spec: {mtls: {mode: DISABLE}}",
            "spec: {mtls: {mode: STRICT}}",
        ],
    ),
    (
        "telemetry.istio.io/v1",
        "Telemetry",
        "ns1",
        "t",
        &[
            "spec: {accessLogging: [{providers: [{name: envoy}]}]}",
            "spec: {accessLogging: [{providers: [{name: envoy}], disabled: true}], metrics: [{providers: [{name: prometheus}], \
         overrides: [{disabled: true}]}]}",
        ],
    ),
    (
        "networking.istio.io/v1beta1",
        "ProxyConfig",
        "ns1",
        "p",
        &["spec: {concurrency: 1}", "spec: {concurrency: 2}"],
    ),
    (
        "v1",
        "Service",
        "ns1",
        "a",
        &[
            "spec: {ports: [{name: http, port: 80}]}",
            "spec: {ports: [{name: http, port: 80}, {name: more, port: 8080}], selector: {app: x}, clusterIP: 10.96.0.1}",
            "spec: {clusterIP: None, ports: [{name: http, port: 80}]}",
            "spec: {type: ExternalName, externalName: b.ns1.svc.cluster.local}",
        ],
    ),
    (
        "v1",
        "Service",
        "ns1",
        "b",
        &[
            "spec: {ports: [{name: http, port: 80}]}",
            "spec: {ports: [{name: grpc, port: 80}], sessionAffinity: ClientIP, clusterIP: 10.96.0.2}",
            "spec: {type: ExternalName, externalName: out.example, ports: [{port: 80}]}",
        ],
    ),
    (
        "v1",
        "Service",
        "ns1",
        "alias",
        &[
            "spec: {type: ExternalName, externalName: a.ns1.svc.cluster.local}",
            "spec: {type: ExternalName, externalName: out.example}",
            "spec: {type: ExternalName, externalName: b.ns1.svc.cluster.local, ports: [{name: http, port: 81}]}",
            "spec: {ports: [{name: http, port: 80}]}",
        ],
    ),
    (
        "v1",
        "Service",
        "default",
        "web",
        &[
            "spec: {ports: [{name: http, port: 80, targetPort: 8080}], selector: {app: web}}",
            "spec: {ports: [{name: tcp, port: 80, targetPort: 8080}], selector: {app: web}}",
        ],
    ),
    (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "ns1",
        "a-1",
        &[
            "addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.0.1]}]",
            "addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]",
        ],
    ),
    (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "ns1",
        "b-far",
        &[
            "addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.9.0.1]}]",
        ],
    ),
    (
        "flomesh.io/v1alpha1",
        "Cluster",
        "",
        "c9",
        &["spec: {region: eu, zone: a, group: prod, gatewayHost: 10.2.0.9, gatewayPort: 8080}"],
    ),
    (
        "v1",
        "Pod",
        "ns1",
        "p1",
        &[
            "spec: {nodeName: n1}, status: {podIP: 10.0.0.1}",
            "spec: {nodeName: n2, serviceAccountName: web}, status: {podIP: 10.0.0.2}",
        ],
    ),
    ("v1", "Node", "", "n1", &["spec: {}"]),
    ("v1", "Namespace", "", "ns1", &["spec: {}"]),
    (
        "flomesh.io/v1alpha1",
        "ServiceImport",
        "ns1",
        "b",
        &[
            "spec: {ports: [{name: http, port: 80, endpoints: [{clusterKey: default/default/default/c2, \
         target: {host: '', ip: 10.2.0.1, port: 80, path: /b}}]}], ips: [10.96.0.9]}",
            "spec: {type: Headless, ports: [{name: http, port: 80, endpoints: [{clusterKey: default/default/default/c2, \
         target: {host: one.example, ip: 10.2.0.2, port: 80, path: ''}}]}]}",
        ],
    ),
    (
        "flomesh.io/v1alpha1",
        "ServiceExport",
        "ns1",
        "a",
        &[
            "spec: {rules: [{portNumber: 80, path: /a, pathType: Prefix}]}",
            "spec: {rules: [{portNumber: 8080, path: /a, pathType: Exact}]}",
        ],
    ),
    (
        "flomesh.io/v1alpha1",
        "GlobalTrafficPolicy",
        "ns1",
        "b",
        &[
            "spec: {lbType: ActiveActive}",
            "spec: {lbType: FailOver, targets: [{clusterKey: default/default/default/c2}]}",
        ],
    ),
    (
        "networking.karmada.io/v1alpha1",
        "MultiClusterService",
        "ns1",
        "a",
        &[
            "spec: {types: [CrossCluster]}",
            "spec: {types: [CrossCluster], ports: [{port: 80}], providerClusters: [{name: c2}]}",
        ],
    ),
    (
        "discovery.mesh.gloo.solo.io/v1",
        "Destination",
        "ns1",
        "a",
        &[
            "spec: {kubeService: {ref: {name: a, namespace: ns1, clusterName: local}, ports: [{port: 80, name: http, protocol: TCP}]}}, \
         status: {appliedTrafficPolicies: [{ref: {name: p}, spec: {}}], requiredSubsets: [{trafficPolicyRef: {name: p}, \
         trafficShift: {destinations: [{weight: 50, kubeService: {name: b, namespace: ns1, clusterName: local}}, \
         {weight: 50, kubeService: {name: a, namespace: ns1, clusterName: local, subset: {version: v1}}}]}}]}",
            "spec: {kubeService: {ref: {name: a, namespace: ns1, clusterName: local}, ports: [{port: 80, name: http, protocol: TCP}]}}",
        ],
    ),
];

/// Requests whose answers are compared.
const REQUESTS: &[&str] = &[
    "one.example/",
    "one.example/d/e",
    "one.example/a",
    "two.example/",
    "a.ns1.svc.cluster.local/",
    "b.ns1.svc.cluster.local/",
    "alias.ns1.svc.cluster.local/",
    "alias.ns1.svc.cluster.local/all",
    "out.example/",
    "two.test/a",
    "x.b.test/a",
    "x.b.test/b",
    "y.b.test/",
];

/// One step.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An object becomes another one; one of a number that there is not goes.
    Object(usize, usize),
    /// A name has another address.
    Name(&'static str, u8),
    /// An object of [`WITHHELD`] comes or goes.
    Withheld(usize),
    /// Seconds without a change.
    Wait(u64),
}

/// Objects that may be rejected without ever having been good.
const WITHHELD: &[(Kind, &str, &str)] = &[
    (Kind::GlobalTrafficPolicy, "ns1", "a"),
    (Kind::MultiClusterService, "ns1", "a"),
    (Kind::MultiClusterService, "ns1", "b"),
    (Kind::PeerAuthentication, "ns1", "other"),
];

fn step() -> impl Strategy<Value = Step> {
    let name = prop_oneof![Just("name.test"), Just("work.test"), Just("out.example")];
    prop_oneof![
        20 => (0..PLACES.len(), 0..6_usize).prop_map(|(place, choice)| Step::Object(place, choice)),
        // what decides about listeners and hosts
        10 => (0..13_usize, 0..6_usize).prop_map(|(place, choice)| Step::Object(place, choice)),
        1 => (name, 1..3_u8).prop_map(|(name, byte)| Step::Name(name, byte)),
        2 => (0..WITHHELD.len()).prop_map(Step::Withheld),
        2 => (10..100_u64).prop_map(Step::Wait),
    ]
}

/// The object that a place may hold, alone in a set.
fn object(place: usize, choice: usize) -> ResourceSet {
    let (version, kind, namespace, name, choices) = PLACES[place];
    let rest = choices[choice];
    let namespace = match namespace {
        "" => String::new(),
        namespace => format!("namespace: {namespace}, "),
    };
    let labels = match kind {
        "EndpointSlice" if name == "b-far" => {
            "kubernetes.io/service-name: b, multicluster.kubernetes.io/source-cluster: c9"
        }
        "EndpointSlice" => "kubernetes.io/service-name: a",
        "Namespace" => "topology.istio.io/network: n9",
        "Node" => "topology.kubernetes.io/region: r1",
        "Pod" => "version: v1, app: x",
        _ => "",
    };
    let text = format!(
        "{{apiVersion: {version}, kind: {kind}, metadata: {{{namespace}name: {name}, labels: {{{labels}}}}}, {rest}}}"
    );
    let mut found = Diagnostics::default();
    let set = load_bytes(&format!("{place}.yaml"), text.as_bytes(), &mut found);
    let errors = found.iter().filter(|one| one.severity == Severity::Error);
    assert_eq!(errors.count(), 0, "{text}: {found:?}");
    assert_eq!(set.len(), 1, "{text}");
    set
}

/// Resources that change; unchanged ones stay the very same objects.
#[derive(Default)]
struct Resources {
    now: ResourceSet,
    loaded: HashMap<(usize, usize), ResourceSet>,
}

impl Resources {
    fn put(&mut self, place: usize, choice: usize) {
        let is_there = choice < PLACES[place].4.len();
        let choice = if is_there { choice } else { 0 };
        let loaded = self.loaded.entry((place, choice));
        let loaded = loaded.or_insert_with(|| object(place, choice));
        macro_rules! put {
            ($($kind:ident)*) => {$(
                for (name, object) in &loaded.$kind {
                    match is_there {
                        true => drop(self.now.$kind.insert(name.clone(), Arc::clone(object))),
                        false => drop(self.now.$kind.remove(name)),
                    }
                }
            )*};
        }
        put!(virtual_services destination_rules gateways peer_authentications sidecars service_entries workload_entries
            clusters global_traffic_policies service_imports service_exports multi_cluster_services destinations services
            endpoint_slices pods nodes namespaces kubernetes_gateways http_routes grpc_routes reference_grants);
    }
}

fn answers(snapshot: &Snapshot) -> Vec<String> {
    let ports = [80, 81, 8080].into_iter();
    let all = ports.flat_map(|port| REQUESTS.iter().map(move |request| (port, request)));
    all.map(|(port, request)| format!("{port} {request}: {}", ask(snapshot, port, request)))
        .collect()
}

/// Follows steps from a set with an object in each place, or from an empty one.
fn follow(mode: Mode, is_filled: bool, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::empty();
    if mode == Mode::Sidecar {
        world.identity = Identity {
            mode,
            labels: [("app".to_owned(), "web".to_owned())].into(),
            ..Identity::default()
        };
    }
    let (mut resources, mut cache) = (Resources::default(), ServiceCache::default());
    for place in (0..PLACES.len()).filter(|_| is_filled) {
        resources.put(place, 0);
    }
    let (mut previous, mut seconds) = (Snapshot::default(), 0);
    let certificates = Store::default();
    for step in [Step::Wait(0)].iter().chain(steps) {
        match *step {
            Step::Object(place, choice) => resources.put(place, choice),
            Step::Name(name, byte) => {
                world
                    .registry
                    .set_resolution(name, vec![[10, 2, 0, byte].into()]);
            }
            Step::Withheld(number) => {
                let (kind, namespace, name) = WITHHELD[number];
                let id = ObjectRef::new(kind, namespace, name);
                let withheld = Arc::make_mut(&mut resources.now.withheld);
                if !withheld.remove(&id) {
                    withheld.insert(id);
                }
            }
            Step::Wait(time) => seconds += time,
        }
        seconds += 1;
        let now = Moment(seconds * 1000);
        let inputs = Inputs {
            resources: &resources.now,
            identity: &world.identity,
            registry: &world.registry,
            stats: &world.stats,
            certificates: &certificates,
            now: Moment(1),
        };
        let mut snapshot = compile_again(&inputs, &previous, &mut cache);
        snapshot.retire(&previous, now, Duration::from_secs(60));
        let fresh = compile(&inputs, &Snapshot::default());
        prop_assert_eq!(dump(&snapshot), dump(&fresh), "{:?} after {:?}", mode, step);
        prop_assert_eq!(
            answers(&snapshot),
            answers(&fresh),
            "{:?} after {:?}",
            mode,
            step
        );
        previous = snapshot;
    }
    Ok(())
}

/// Sequences of 50 steps for each mode; more by an environment variable.
fn sequences() -> u32 {
    let told = std::env::var("STRAIT_TEST_SEQUENCES");
    told.ok().and_then(|told| told.parse().ok()).unwrap_or(32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sequences(), ..ProptestConfig::default() })]

    #[test]
    fn gateway_follows_changes_of_all_kinds(is_filled: bool, steps in prop::collection::vec(step(), 50)) {
        follow(Mode::Gateway, is_filled, &steps)?;
    }

    #[test]
    fn sidecar_follows_changes_of_all_kinds(is_filled: bool, steps in prop::collection::vec(step(), 50)) {
        follow(Mode::Sidecar, is_filled, &steps)?;
    }
}

/// Places by the kind and name of their objects.
fn at(kind: &str, name: &str) -> usize {
    let mut places = PLACES.iter();
    let found = places.position(|place| (place.1, place.3) == (kind, name));
    found.expect("it is in the list")
}

const GONE: usize = usize::MAX;

#[test]
fn service_removed_after_a_listener_is_unknown() {
    for entry in [GONE, 1] {
        let steps = [
            Step::Object(at("ServiceEntry", "over"), GONE),
            Step::Object(at("Gateway", "gw"), 1),
            Step::Object(at("ServiceEntry", "out"), entry),
            Step::Wait(75),
        ];
        follow(Mode::Gateway, true, &steps).unwrap();
    }
}

#[test]
fn shift_follows_the_hosts_of_virtual_services() {
    let (route, wide) = (at("VirtualService", "one"), at("VirtualService", "two"));
    for steps in [
        [(route, 2), (route, 0)],
        [(wide, 1), (wide, 0)],
        [(route, 2), (route, GONE)],
    ] {
        let steps = steps.map(|(place, choice)| Step::Object(place, choice));
        follow(Mode::Sidecar, true, &steps).unwrap();
    }
}
