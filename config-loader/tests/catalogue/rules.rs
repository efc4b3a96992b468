//! Rows 21 to 47: top-level fields of a VirtualService, and combinations of fields in HTTP rules.

use super::{Table, rule, service};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, cases| Table {
        around,
        path: "",
        with_references: false,
        cases,
    };
    vec![
        table(service as fn(&str) -> String, HEAD),
        table(with_rule, WITH_RULE),
        table(rule, RULE),
        table(in_delegate, DELEGATE),
    ]
}

/// Returns a VirtualService with a valid HTTP rule.
fn with_rule(head: &str) -> String {
    service(&format!(
        "{}\nhttp: [{{route: [{{destination: {{host: a}}}}]}}]",
        head.trim_matches('\n')
    ))
}

/// Returns a delegate with this rule.
fn in_delegate(fields: &str) -> String {
    service(&format!("http:\n-\n{}", super::indent(fields, "  ")))
}

const HEAD: &[super::Case] = &[
    (
        &[21],
        "
gateways: [gw] # E VS021 gateways
http: [{redirect: {uri: /}}]",
        "
gateways: []
http: [{redirect: {uri: /}}]",
    ),
    (
        &[22],
        "
http: [{redirect: {uri: /}}]
tls: # E VS022 tls
- match: [{sniHosts: [a.com]}]
  route: [{destination: {host: a}}]",
        "
hosts: [a.com]
http: [{redirect: {uri: /}}]
tls:
- match: [{sniHosts: [a.com]}]
  route: [{destination: {host: a}}]",
    ),
    (
        &[23],
        "
http: [{redirect: {uri: /}}]
tcp: # E VS023 tcp
- route: [{destination: {host: a}}]",
        "
hosts: [a.com]
http: [{redirect: {uri: /}}]
tcp:
- route: [{destination: {host: a}}]",
    ),
    (
        &[33],
        "
hosts: [outbound_.80_._.a.b] # E VS033 outbound_.80_._.a.b
tls:
- match: [{sniHosts: [outbound_.80_._.a.b]}]
  route: [{destination: {host: a}}]",
        "
hosts: [outbound_.80_._.a.b]
gateways: [gw]
tls:
- match: [{sniHosts: [outbound_.80_._.a.b]}]
  route: [{destination: {host: a}}]",
    ),
    (
        &[33],
        "
hosts:
- a.com
- outbound_.80_._. # E VS033 outbound_.80_._.
gateways: [gw]
tls:
- match: [{sniHosts: [a.com]}]
  route: [{destination: {host: a}}]",
        "
hosts:
- a.com
- outbound_.80_.v1_.b.c
gateways: [gw]
tls:
- match: [{sniHosts: [a.com]}]
  route: [{destination: {host: a}}]",
    ),
    (
        &[34],
        "
hosts: [a.com]
http: [] # E VS034 http",
        "
hosts: [a.com]
tcp: [{route: [{destination: {host: a}}]}]",
    ),
    (
        &[35],
        "
hosts: [a.com]
gateways: [gw, mesh]
http:
- match:
  - headers:
      '@request.auth.claims.sub': {exact: a} # E VS035 '@request.auth.claims.sub'
  redirect: {uri: /}",
        "
hosts: [a.com]
gateways: [gw]
http:
- match:
  - headers:
      '@request.auth.claims.sub': {exact: a}
  redirect: {uri: /}",
    ),
    (
        &[35],
        "
hosts: [a.com]
http:
- match:
  - withoutHeaders:
      '@request.auth.claims[a][b]': {exact: a} # E VS035 '@request.auth.claims[a][b]'
  redirect: {uri: /}",
        "
hosts: [a.com]
gateways: [gw]
http:
- match:
  - withoutHeaders:
      '@request.auth.claims[a][b]': {exact: a}
  redirect: {uri: /}",
    ),
];

const WITH_RULE: &[super::Case] = &[
    (
        &[24],
        "
hosts: [a.com]
gateways:
- gw
- /gw # E VS024 /gw
- ns/ # E VS024 ns/",
        "
hosts: [a.com]
gateways:
- gw
- ns/gw
- ./gw",
    ),
    (
        &[25],
        "hosts: [a.com]\ngateways: [n.s/gw] # E VS025 n.s/gw",
        "hosts: [a.com]\ngateways: [n-s/gw]",
    ),
    (
        &[26],
        "hosts: [a.com]\ngateways: [ns/g_w] # E VS026 ns/g_w",
        "hosts: [a.com]\ngateways: [ns/g-w]",
    ),
    (
        &[27],
        "hosts: [a.com]\ngateways: ['*'] # E VS027 '*'",
        "hosts: [a.com]\ngateways: [mesh]",
    ),
    (
        &[28],
        "hosts: [a.com]\ngateways: [gw.ns.svc.cluster.local] # W VS028 gw.ns.svc.cluster.local",
        "hosts: [a.com]\ngateways: [ns/gw]",
    ),
    (
        &[29],
        "
hosts:
- a_b.com # E VS029 a_b.com
- a.com:80 # E VS029 a.com:80
- http://b.com # E VS029 http://b.com
- a.1 # E VS029 a.1
- '' # E VS029 ''",
        "
hosts:
- a-b.com
- '*.c.com'
- 10.0.0.1
- '::1'
- reviews",
    ),
    (
        &[30],
        "
hosts:
- a.*.com # E VS030 a.*.com
- b*.com # E VS030 b*.com",
        "
hosts:
- '*.a.com'
- '*-b.com'",
    ),
    (
        &[31],
        "hosts: ['*'] # E VS031 '*'",
        "hosts: ['*']\ngateways: [gw]",
    ),
    (
        &[31],
        "hosts: ['*'] # E VS031 '*'\ngateways: [gw, mesh]",
        "hosts: [a.com]\ngateways: [gw, mesh]",
    ),
    (
        &[32],
        "
hosts:
- a.com
- b.com
- A.com # E VS032 A.com",
        "
hosts:
- a.com
- b.com
- '*.a.com'",
    ),
    (
        &[32],
        "
hosts:
- '*.com'
- x.a.com # E VS032 x.a.com",
        "
hosts:
- '*.a.com'
- a.com",
    ),
];

const RULE: &[super::Case] = &[
    (
        &[36],
        "name: r # E VS036 name: r",
        "name: r\nredirect: {uri: /}",
    ),
    (
        &[36],
        "route: [] # E VS036 route: []",
        "route: [{destination: {host: a}}]",
    ),
    (
        &[37],
        "
redirect: {uri: /}
route: [{destination: {host: a}}] # E VS037 route",
        "
redirect: {uri: /}
route: []",
    ),
    (
        &[38],
        "
redirect: {uri: /}
fault: # E VS038 fault
  abort: {httpStatus: 503, percentage: {value: 1}}",
        "
route: [{destination: {host: a}}]
fault:
  abort: {httpStatus: 503, percentage: {value: 1}}",
    ),
    (
        &[39],
        "
rewrite: {uri: /}
redirect: {uri: /} # E VS039 redirect",
        "
rewrite: {uri: /}
route: [{destination: {host: a}}]",
    ),
    (
        &[40],
        "
redirect: {uri: /}
directResponse: {status: 200} # E VS040 directResponse",
        "
directResponse: {status: 200}",
    ),
    (
        &[41],
        "
directResponse: {status: 200}
route: [{destination: {host: a}}] # E VS041 route",
        "
directResponse: {status: 200}
route: []",
    ),
    (
        &[42],
        "
directResponse: {status: 200}
fault: {delay: {fixedDelay: 1s, percentage: {value: 1}}} # E VS042 fault",
        "
directResponse: {status: 200}",
    ),
    (
        &[43],
        "
directResponse: {status: 200}
rewrite: {uri: /} # E VS043 rewrite",
        "
directResponse: {status: 200}
timeout: 1s",
    ),
    (
        &[44],
        "
route: [{destination: {host: a}}]
mirror: {host: b}
mirrors: # E VS044 mirrors
- destination: {host: c}",
        "
route: [{destination: {host: a}}]
mirror: {host: b}
mirrors: []",
    ),
    (
        &[45],
        "
delegate: {name: d}
route: [{destination: {host: a}}] # E VS045 route",
        "
delegate: {name: d}
timeout: 1s",
    ),
    (
        &[46],
        "
delegate: {name: d}
redirect: {uri: /} # E VS046 redirect",
        "
delegate: {name: d, namespace: other}
rewrite: {uri: /}",
    ),
];

const DELEGATE: &[super::Case] = &[(
    &[47],
    "
match: [{uri: {prefix: /a}}]
delegate: {name: d} # E VS047 delegate",
    "
match: [{uri: {prefix: /a}}]
route: [{destination: {host: a}}]",
)];
