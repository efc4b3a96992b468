//! Rows 275 to 282: references of VirtualServices and Gateways, and the precedence of conflicting objects.

use super::{Table, document, service};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, cases| Table {
        around,
        path: "",
        with_references: true,
        cases,
    };
    vec![
        table(forwarding as fn(&str) -> String, FORWARDING),
        table(carrying, FORWARDING),
        table(at_gateways, AT_GATEWAYS),
        table(in_world, IN_WORLD),
        table(servers, SERVERS),
    ]
}

/// Returns Services `reviews`, with one port and the subset `v1`, and `ratings`, with two ports, and a Gateway for
/// `*.a.com`.
fn world() -> String {
    let entry = |name: &str, ports: &str| {
        let spec = format!(
            "hosts: [{name}.ns.svc.cluster.local]\nresolution: STATIC\nports: [{ports}]\n\
             endpoints: [{{address: 10.0.0.1, labels: {{version: v1}}}}]"
        );
        document("ServiceEntry", name, &spec)
    };
    let documents = [
        entry("reviews", "{number: 80, name: http, protocol: HTTP}"),
        entry(
            "ratings",
            "{number: 80, name: http, protocol: HTTP}, {number: 81, name: grpc, protocol: GRPC}",
        ),
        document(
            "DestinationRule",
            "reviews",
            "host: reviews\nsubsets: [{name: v1, labels: {version: v1}}]",
        ),
        document(
            "Gateway",
            "edge",
            "servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*.a.com']}]",
        ),
    ];
    documents.join("---\n")
}

fn in_world(documents: &str) -> String {
    format!("{}---\n{}\n", world(), documents.trim())
}

/// Returns a VirtualService of the mesh with this HTTP rule.
fn forwarding(fields: &str) -> String {
    let fields = super::indent(fields, "  ");
    in_world(&service(&format!("hosts: [b.com]\nhttp:\n-\n{fields}")))
}

/// Returns a VirtualService of the mesh with this `tcp` rule.
fn carrying(fields: &str) -> String {
    let fields = super::indent(fields, "  ");
    in_world(&service(&format!("hosts: [b.com]\ntcp:\n-\n{fields}")))
}

/// Returns a VirtualService with these fields next to a rule that forwards to `reviews`; `OK` is replaced by the same
/// action.
fn at_gateways(spec: &str) -> String {
    let forward = "route: [{destination: {host: reviews}}]";
    let spec = spec.trim_matches('\n').replace("OK", forward);
    in_world(&service(&spec))
}

const FORWARDING: &[super::Case] = &[
    (
        &[275],
        "route:\n- destination:\n    subset: v1\n    host: review # W X275 review",
        "route:\n- destination:\n    subset: v1\n    host: reviews",
    ),
    (
        &[275],
        "route:\n- destination: {host: reviews.ns} # W X275 reviews.ns",
        "route:\n- destination: {host: reviews.ns.svc.cluster.local}",
    ),
    (
        &[276],
        "route:\n- destination:\n    host: reviews\n    subset: v2 # W X276 v2",
        "route:\n- destination:\n    host: reviews\n    subset: v1",
    ),
    (
        &[277],
        "route:\n- destination:\n    host: reviews\n    port:\n      number: 81 # W X277 81",
        "route:\n- destination:\n    host: reviews\n    port:\n      number: 80",
    ),
    (
        &[277],
        "route:\n- weight: 1\n  destination:\n    host: ratings # W X277 ratings",
        "route:\n- weight: 1\n  destination:\n    host: ratings\n    port: {number: 81}",
    ),
];

const AT_GATEWAYS: &[super::Case] = &[
    (
        &[275],
        "
hosts: [b.com]
http:
- OK
  mirrors:
  - percentage: {value: 1}
    destination: {host: missing} # W X275 missing",
        "
hosts: [b.com]
http:
- OK
  mirrors:
  - percentage: {value: 1}
    destination: {host: reviews}",
    ),
    (
        &[278],
        "
hosts: [x.a.com]
gateways:
- edge
- egde # W X278 egde
http: [{OK}]",
        "
hosts: [x.a.com]
gateways:
- edge
- mesh
http: [{OK}]",
    ),
    (
        &[278],
        "
hosts: [x.a.com]
gateways: [edge]
http:
- match:
  - uri: {prefix: /a}
    gateways:
    - edge
    - other/edge # W X278 other/edge
  OK",
        "
hosts: [x.a.com]
gateways: [edge]
http:
- match:
  - uri: {prefix: /a}
    gateways:
    - edge
    - ns/edge
  OK",
    ),
    (
        &[278],
        "
hosts: [x.a.com]
gateways: [edge]
tls:
- match:
  - sniHosts: [x.a.com]
    gateways: [none] # W X278 none
  OK
tcp:
- match:
  - port: 1
    gateways: [missing] # W X278 missing
  OK",
        "
hosts: [x.a.com]
gateways: [edge]
tls:
- match:
  - sniHosts: [x.a.com]
    gateways: [edge]
  OK
tcp:
- match:
  - port: 1
    gateways: [edge]
  OK",
    ),
    (
        &[279],
        "
hosts:
- x.a.com
- a.com # W X279 a.com
gateways: [edge]
http: [{OK}]",
        "
hosts:
- x.a.com
- '*.y.a.com'
gateways: [edge]
http: [{OK}]",
    ),
    (
        &[280],
        "
hosts: [x.a.com]
gateways: [edge]
http:
- match: [{uri: {prefix: /d}}]
  delegate:
    namespace: ns
    name: missing # W X280 missing
- OK",
        "
hosts: [x.a.com]
gateways: [edge]
http:
- match: [{uri: {prefix: /d}}]
  redirect: {uri: /}
- OK",
    ),
];

const IN_WORLD: &[super::Case] = &[
    (
        &[316],
        "
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: stray, namespace: ns}
spec:
  host: reveiws # W X316 reveiws
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: out, namespace: ns}
spec:
  host: out.com # W X316 out.com
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: wild, namespace: ns}
spec:
  host: '*.out.com' # W X316 *.out.com
",
        "
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: other, namespace: ns}
spec:
  host: ratings
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: together, namespace: ns}
spec:
  host: ratings.ns.svc.clusterset.local
",
    ),
    (
        &[317],
        "
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext-a, namespace: ns, creationTimestamp: '2024-01-01T00:00:00Z'}
spec:
  hosts: [ext.com, ext.org]
  resolution: DNS
  ports:
  - {number: 80, name: http, protocol: HTTP}
  - {number: 443, name: tls, protocol: TLS}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext-b, namespace: ns, creationTimestamp: '2024-01-02T00:00:00Z'}
spec:
  hosts: [ext.org, EXT.com]
  resolution: DNS
  ports:
  - {number: 80, name: http, protocol: HTTP2} # W X317
  - {number: 443, name: tls, protocol: TLS}
  - {number: 81, name: other, protocol: HTTP}
",
        "
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext-a, namespace: ns, creationTimestamp: '2024-01-01T00:00:00Z'}
spec:
  hosts: [ext.com]
  resolution: DNS
  ports:
  - {number: 80, name: http, protocol: HTTP}
  - {number: 81, name: grpc, protocol: GRPC}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext-b, namespace: ns, creationTimestamp: '2024-01-02T00:00:00Z'}
spec:
  hosts: [ext.com]
  resolution: DNS
  ports:
  - {number: 80, name: http, protocol: HTTP}
  - {number: 81, name: grpc, protocol: HTTP2}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext-c, namespace: ns, creationTimestamp: '2024-01-02T00:00:00Z'}
spec:
  hosts: [other.com]
  resolution: DNS
  ports: [{number: 80, name: http, protocol: HTTP2}]
",
    ),
    (
        &[],
        "
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext, namespace: ns}
spec:
  hosts: [ext.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: out, namespace: ns}
spec:
  hosts: [out.a.com]
  gateways: [edge]
  http:
  - route:
    - destination: {host: ext.com} # W X303
",
        "
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext, namespace: ns}
spec:
  hosts: [ext.com]
  resolution: DNS
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: out, namespace: ns}
spec:
  hosts: [out.a.com]
  gateways: [edge]
  http:
  - route:
    - destination: {host: ext.com}
",
    ),
    (
        &[],
        "
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext, namespace: ns}
spec:
  hosts: [ext.com]
  resolution: NONE
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: out, namespace: ns}
spec:
  hosts: [out.a.com]
  gateways: [mesh, edge]
  http:
  - route:
    - destination: {host: ext.com} # W X303
",
        "
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext, namespace: ns}
spec:
  hosts: [ext.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: out, namespace: ns}
spec:
  hosts: [out.a.com]
  gateways: [mesh]
  http:
  - route:
    - destination: {host: ext.com}
",
    ),
    (
        &[280],
        "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: root, namespace: ns}
spec:
  hosts: [b.com]
  http:
  - match: [{uri: {prefix: /one}}]
    delegate: {name: one}
  - match: [{uri: {prefix: /two}}]
    delegate: {name: two} # W X280 two
  - match: [{uri: {prefix: /three}}]
    delegate: {name: three} # W X280 three
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: one, namespace: ns},
 spec: {http: [{redirect: {uri: /}}]}}
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: two, namespace: ns},
 spec: {hosts: [two.com], http: [{redirect: {uri: /}}]}}
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: three, namespace: ns},
 spec: {exportTo: [other], http: [{redirect: {uri: /}}]}}
",
        "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: root, namespace: ns}
spec:
  hosts: [b.com]
  http:
  - match: [{uri: {prefix: /one}}]
    delegate: {name: one}
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: one, namespace: ns},
 spec: {http: [{redirect: {uri: /}}]}}
",
    ),
    (
        &[281],
        "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: young, creationTimestamp: '2025-01-02T00:00:00Z'}
spec:
  hosts:
  - c.com
  - b.com # W X281 b.com
  http: [{redirect: {uri: /}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: old, creationTimestamp: '2025-01-01T00:00:00Z'}
spec:
  hosts: [b.com]
  http: [{redirect: {uri: /}}]
",
        "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: young, creationTimestamp: '2025-01-02T00:00:00Z'}
spec:
  hosts:
  - c.com
  - b.com
  http: [{redirect: {uri: /}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: old, creationTimestamp: '2025-01-01T00:00:00Z'}
spec:
  hosts: [d.com]
  http: [{redirect: {uri: /}}]
",
    ),
];

/// Returns a newer Gateway next to one with port 80 for HTTP and port 443 for TLS to `a.com`.
fn servers(entry: &str) -> String {
    let old = document(
        "Gateway",
        "old",
        "servers:\n- {port: {number: 80, name: a, protocol: HTTP}, hosts: ['*']}\n\
         - {port: {number: 443, name: b, protocol: TLS}, hosts: [a.com], tls: {mode: PASSTHROUGH}}",
    );
    let young = document("Gateway", "young", &format!("servers:\n{}", entry.trim()));
    format!("{old}---\n{young}")
}

const SERVERS: &[super::Case] = &[
    (
        &[282],
        "- {port: {number: 80, name: a, protocol: TCP}, hosts: ['*']} # W X282 80",
        "- {port: {number: 80, name: a, protocol: GRPC}, hosts: ['*']}",
    ),
    (
        &[282],
        "- {port: {number: 443, name: a, protocol: TLS}, hosts: [b.com, A.com], tls: {mode: PASSTHROUGH}} # W X282 443",
        "- {port: {number: 443, name: a, protocol: TLS}, hosts: [b.com, '*.a.com'], tls: {mode: PASSTHROUGH}}",
    ),
    (
        &[282],
        "- {port: {number: 443, name: a, protocol: HTTP}, hosts: [b.com]} # W X282 443",
        "- {port: {number: 443, name: a, protocol: HTTP}, hosts: [b.com], bind: 10.0.0.1}",
    ),
    (
        &[],
        "- {port: {number: 8443, name: a, protocol: HTTPS}, hosts: ['*.b.com'], tls: {mode: SIMPLE, credentialName: c}}\n\
         - {port: {number: 8443, name: b, protocol: HTTPS}, hosts: [x.b.com], tls: {mode: MUTUAL, credentialName: c}} # N X319 x.b.com",
        "- {port: {number: 8443, name: a, protocol: HTTPS}, hosts: ['*.b.com'], tls: {mode: MUTUAL, credentialName: c}}\n\
         - {port: {number: 8443, name: b, protocol: HTTPS}, hosts: [x.b.com], tls: {mode: MUTUAL, credentialName: c}}",
    ),
];
