//! Routes.

use super::*;
use crate::resource::gateway_api::{OriginHost, TCPRoute, TLSRoute};
use crate::resource::istio::Scheme;

pub(super) const TLS: &str =
    "{hostnames: [a.example], rules: [{backendRefs: [{name: a, port: 443}]}]}";
pub(super) const TCP: &str = "{rules: [{backendRefs: [{name: a, port: 1}]}]}";

pub(super) const ALL: &[(Kind, Cases)] = &[
    (Kind::HTTPRoute, REFERENCES),
    (Kind::HTTPRoute, MATCHES),
    (Kind::HTTPRoute, FILTERS),
    (Kind::HTTPRoute, RULES),
    (Kind::GRPCRoute, GRPC),
    (Kind::TLSRoute, TLS_ROUTES),
    (Kind::TCPRoute, TCP_ROUTES),
];

const REFERENCES: Cases = &[
    ("{}", &[]),
    (
        "{parentRefs: [{name: a}, {name: b}, {name: a, kind: Service, group: '', port: 80}]}",
        &[],
    ),
    (
        "{parentRefs: [{name: a, sectionName: b}, {name: a, sectionName: c}]}",
        &[],
    ),
    (
        "{parentRefs: [{name: a, port: 80}, {name: a, port: 81}]}",
        &[],
    ),
    (
        "{parentRefs: [{name: a, sectionName: b, port: 80}, {name: a, sectionName: b, port: 81}]}",
        &[],
    ),
    (
        "{parentRefs: [{name: a, namespace: ns}, {name: a}]}",
        &["GA115"],
    ),
    (
        "{parentRefs: [{name: a, sectionName: b}, {name: a}]}",
        &["GA115"],
    ),
    (
        "{parentRefs: [{name: a, sectionName: b}, {name: a, port: 80}]}",
        &["GA115"],
    ),
    ("{parentRefs: [{}]}", &["GA101"]),
    ("{parentRefs: [{name: a, sectionName: B}]}", &["GA103"]),
    ("{parentRefs: [{name: a, namespace: ''}]}", &["GA101"]),
    ("{hostnames: ['*.a.example', b.example]}", &[]),
    (
        "{hostnames: ['*', 'b.*', 1.2.3.4, 'a:80', A.b, '']}",
        &["GA104", "GA104", "GA104", "GA104", "GA104", "GA104"],
    ),
    ("{rules: [{backendRefs: [{name: a}]}]}", &["GA116"]),
    (
        "{rules: [{backendRefs: [{name: a, kind: Own, group: a.example}]}]}",
        &[],
    ),
    (
        "{rules: [{backendRefs: [{name: a, port: 80, weight: 0}]}]}",
        &[],
    ),
    (
        "{rules: [{backendRefs: [{name: a, port: 80, weight: 1000001}, {name: a, port: 80, weight: -1}]}]}",
        &["GA117", "GA117"],
    ),
    (
        "{rules: [{backendRefs: [{name: a, port: 70000}]}]}",
        &["CM016"],
    ),
    ("{rules: []}", &["GA102"]),
    ("{hostname: [a]}", &["CM021"]),
];

const MATCHES: Cases = &[
    (
        "{rules: [{matches: [{path: {value: /a}, method: GET}, {path: {type: Exact, value: '/a/%20;b'}}]}]}",
        &[],
    ),
    (
        "{rules: [{matches: [{path: {type: RegularExpression, value: '/a.*'}}]}]}",
        &[],
    ),
    ("{rules: [{matches: [{path: {value: a}}]}]}", &["GA119"]),
    (
        "{rules: [{matches: [{path: {value: //a}}, {path: {value: /a/../b}}, {path: {value: /a/.}}]}]}",
        &["GA119", "GA119", "GA119"],
    ),
    (
        "{rules: [{matches: [{path: {value: /%2f}}, {path: {value: '/a#b'}}, {path: {value: '/a b'}}, {path: {value: /%zz}}]}]}",
        &["GA119", "GA119", "GA119", "GA119"],
    ),
    (
        "{rules: [{matches: [{path: {type: Exact, value: '/a?b'}}]}]}",
        &["GA119"],
    ),
    (
        "{rules: [{matches: [{path: {type: Prefix, value: /a}}]}]}",
        &["CM017"],
    ),
    (
        "{rules: [{matches: [{path: {type: RegularExpression, value: '(a'}}]}]}",
        &["GA120"],
    ),
    (
        "{rules: [{matches: [{path: {type: RegularExpression, value: ''}}]}]}",
        &["GA120"],
    ),
    ("{rules: [{matches: [{method: get}]}]}", &["CM017"]),
    (
        "{rules: [{matches: [{headers: [{name: a, value: b}, {name: A, value: c}], queryParams: [{name: a, value: b}, {name: A, value: c}]}]}]}",
        &[],
    ),
    (
        "{rules: [{matches: [{headers: [{name: a, value: b}, {name: a, value: c}]}]}]}",
        &["GA121"],
    ),
    (
        "{rules: [{matches: [{queryParams: [{name: a, value: b}, {name: a, value: c}]}]}]}",
        &["GA121"],
    ),
    (
        "{rules: [{matches: [{headers: [{name: 'a b', value: b}, {name: a}, {value: a}]}]}]}",
        &["GA121", "GA101", "GA101"],
    ),
    (
        "{rules: [{matches: [{headers: [{name: a, type: RegularExpression, value: '*'}]}]}]}",
        &["GA120"],
    ),
    (
        "{rules: [{matches: [{headers: [{name: a, type: Prefix, value: b}]}]}]}",
        &["CM017"],
    ),
];

const FILTERS: Cases = &[
    (
        "{rules: [{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: '%b%'}], remove: [c]}}, \
         {type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80}}}, \
         {type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}, percent: 0}}]}]}",
        &[],
    ),
    ("{rules: [{filters: [{}]}]}", &["GA101"]),
    (
        "{rules: [{filters: [{type: ExtensionRef, extensionRef: {kind: 'a b'}}]}]}",
        &["GA041", "GA101", "GA101", "GA103"],
    ),
    (
        "{rules: [{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Host, value: a.test}], remove: \
         [Host]}}, {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: host, value: a}], add: [{name: HOST, \
         value: b}], remove: [host]}}]}]}",
        &["GA045", "GA045", "GA045"],
    ),
    (
        "{rules: [{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: 'b  c'}, \
         {name: d, value: ' e'}, {name: f, value: é}, {name: g, value: 'h i'}]}}]}]}",
        &["GA121", "GA121", "GA121"],
    ),
    (
        "{rules: [{filters: [{type: CORS, cors: {allowOrigins: ['http://a', 'http://a'], exposeHeaders: [a, a]}}]}]}",
        &["GA130", "GA130"],
    ),
    ("{rules: [{name: a}, {name: b}, {name: a}]}", &["GA105"]),
    (
        "{rules: [{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}, \
         {name: a, value: c}, {name: d}], add: [{name: 'e f', value: g}, {name: h, value: \"a\\nb\"}], remove: ['a b']}}]}]}",
        &["GA121", "GA101", "GA121", "GA121", "GA121"],
    ),
    (
        "{rules: [{filters: [{type: RequestRedirect, requestRedirect: {}}], backendRefs: [{name: a, port: 80}]}]}",
        &["GA122"],
    ),
    (
        "{rules: [{filters: [{type: RequestRedirect, requestRedirect: {}}, {type: URLRewrite, urlRewrite: {}}]}]}",
        &["GA123"],
    ),
    (
        "{rules: [{filters: [{type: URLRewrite, urlRewrite: {}}, {type: URLRewrite, urlRewrite: {}}]}]}",
        &["GA124"],
    ),
    ("{rules: [{filters: [{type: URLRewrite}]}]}", &["GA125"]),
    (
        "{rules: [{filters: [{type: URLRewrite, urlRewrite: {}, requestRedirect: {}}]}]}",
        &["GA125"],
    ),
    (
        "{rules: [{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replacePrefixMatch: /a}}}]}]}",
        &["GA125", "GA125"],
    ),
    (
        "{rules: [{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: '/a?b'}}}]}]}",
        &["GA119"],
    ),
    (
        "{rules: [{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /a}}}]}]}",
        &[],
    ),
    (
        "{rules: [{matches: [{path: {type: Exact, value: /a}}], filters: [{type: URLRewrite, urlRewrite: {path: \
         {type: ReplacePrefixMatch, replacePrefixMatch: /a}}}]}]}",
        &["GA126"],
    ),
    (
        "{rules: [{matches: [{path: {value: /a}}, {path: {value: /b}}], backendRefs: [{name: a, port: 80, filters: [\
         {type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: ''}}}]}]}]}",
        &["GA126"],
    ),
    (
        "{rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80}, percent: 1, \
         fraction: {numerator: 1}}}]}]}",
        &["GA127"],
    ),
    (
        "{rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80}, percent: 101}}]}]}",
        &["GA127"],
    ),
    (
        "{rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80}, \
         fraction: {numerator: 2, denominator: 1}}}]}]}",
        &["GA127"],
    ),
    (
        "{rules: [{filters: [{type: RequestMirror, requestMirror: {}}]}]}",
        &["GA101"],
    ),
    (
        "{rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80, weight: 1}}}]}]}",
        &["CM021"],
    ),
    (
        "{rules: [{filters: [{type: RequestRedirect, requestRedirect: {statusCode: 304}}]}]}",
        &["GA136"],
    ),
    (
        "{rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: ftp, hostname: '*.a.example', port: 0}}]}]}",
        &["CM017", "GA104", "CM016"],
    ),
    (
        "{rules: [{filters: [{type: ExtensionRef, extensionRef: {group: a.example, kind: Own, name: a}}, \
         {type: ExtensionRef, extensionRef: {group: a.example, kind: Own, name: b}}]}]}",
        &["GA041", "GA041"],
    ),
    (
        "{rules: [{filters: [{type: ExternalAuth, externalAuth: {protocol: GRPC}}, {type: Own}]}]}",
        &["GA041", "GA041"],
    ),
    ("{rules: [{filters: [{type: ExternalAuth}]}]}", &["GA125"]),
    (
        "{rules: [{filters: [{type: CORS, cors: {allowOrigins: ['*', 'https://a.example'], allowMethods: ['*', GET], \
         allowHeaders: ['*', a], exposeHeaders: ['*', a]}}]}]}",
        &["GA130", "GA130", "GA130"],
    ),
    (
        "{rules: [{filters: [{type: CORS, cors: {allowOrigins: [a.example], allowMethods: [get], allowHeaders: ['a b'], \
         exposeHeaders: ['a b'], maxAge: 0}}]}]}",
        &["GA130", "GA130", "GA130", "GA130", "GA130"],
    ),
];

const RULES: Cases = &[
    (
        "{rules: [{name: a, timeouts: {request: 10s, backendRequest: 2s}}]}",
        &[],
    ),
    (
        "{rules: [{timeouts: {request: 0s, backendRequest: 2s}}]}",
        &[],
    ),
    (
        "{rules: [{timeouts: {request: 1s, backendRequest: 2s}}]}",
        &["GA128"],
    ),
    ("{rules: [{timeouts: {request: 1.5s}}]}", &["GA131"]),
    (
        "{rules: [{retry: {codes: [500, 503], attempts: 1, backoff: 100ms}}]}",
        &[],
    ),
    (
        "{rules: [{retry: {codes: [500, 500, 600]}}]}",
        &["GA129", "GA129"],
    ),
    (
        "{rules: [{retry: {attempts: 0, backoff: 1}}]}",
        &["GA129", "CM028"],
    ),
    (
        "{rules: [{sessionPersistence: {sessionName: a}}]}",
        &["GA041"],
    ),
    ("{rules: [{name: A}]}", &["GA103"]),
];

const GRPC: Cases = &[
    ("{}", &[]),
    (
        "{rules: [{matches: [{method: {service: a.B, method: C}}, {method: {type: RegularExpression, method: 'C.*'}}]}]}",
        &[],
    ),
    ("{rules: [{matches: [{method: {}}]}]}", &["GA132"]),
    (
        "{rules: [{matches: [{method: {service: a-b, method: c.d}}]}]}",
        &["GA132", "GA132"],
    ),
    (
        "{rules: [{matches: [{method: {type: Own, method: c}}]}]}",
        &["CM017"],
    ),
    (
        "{rules: [{matches: [{headers: [{name: a, value: b}]}], backendRefs: [{name: a}]}]}",
        &["GA116"],
    ),
    ("{rules: [{filters: [{type: URLRewrite}]}]}", &["GA041"]),
    (
        "{rules: [{filters: [{type: URLRewrite, urlRewrite: {}}]}]}",
        &["GA041", "CM021"],
    ),
    (
        "{rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80}}}]}]}",
        &[],
    ),
    ("{rules: [{sessionPersistence: {}}]}", &["GA041"]),
];

const TLS_ROUTES: Cases = &[
    (TLS, &[]),
    ("{}", &["GA102", "GA102"]),
    (
        "{hostnames: [1.2.3.4], rules: [{backendRefs: [{name: a, port: 443}]}]}",
        &["GA104"],
    ),
    ("{hostnames: [a.example], rules: [{}]}", &["GA102"]),
    (
        "{hostnames: [a.example], rules: [{backendRefs: [{name: a, port: 443}]}, {backendRefs: [{name: a, port: 443}]}]}",
        &["GA102"],
    ),
];

const TCP_ROUTES: Cases = &[
    (TCP, &[]),
    ("{}", &["GA102"]),
    (
        "{hostnames: [a.example], rules: [{backendRefs: [{name: a, port: 443}]}]}",
        &["CM021"],
    ),
    (
        "{rules: [{backendRefs: [{name: a, port: 1, filters: []}]}]}",
        &["CM021"],
    ),
];

#[test]
fn routes_are_checked() {
    for (kind, cases) in ALL {
        check(*kind, cases);
    }
}

#[test]
fn lists_have_limits() {
    let many = |entry: &str, count: usize| vec![entry; count].join(", ");
    for (kind, spec, code) in [
        (
            "HTTPRoute",
            format!("{{parentRefs: [{}]}}", many("{}", 33)),
            "GA102",
        ),
        (
            "HTTPRoute",
            format!("{{hostnames: [{}]}}", many("a.example", 17)),
            "GA102",
        ),
        (
            "HTTPRoute",
            format!("{{rules: [{}]}}", many("{}", 17)),
            "GA102",
        ),
        (
            "HTTPRoute",
            format!("{{rules: [{{matches: [{}]}}]}}", many("{}", 65)),
            "GA102",
        ),
        (
            "HTTPRoute",
            format!(
                "{{rules: [{}]}}",
                many(&format!("{{matches: [{}]}}", many("{}", 43)), 3)
            ),
            "GA118",
        ),
        (
            "GRPCRoute",
            format!(
                "{{rules: [{}]}}",
                many(&format!("{{matches: [{}]}}", many("{}", 43)), 3)
            ),
            "GA118",
        ),
        (
            "HTTPRoute",
            format!(
                "{{rules: [{{backendRefs: [{}]}}]}}",
                many("{name: a, port: 80}", 17)
            ),
            "GA102",
        ),
        (
            "Gateway",
            format!("{{gatewayClassName: a, listeners: [{}]}}", many("{}", 65)),
            "GA102",
        ),
    ] {
        let (_, found) = load(kind, &spec);
        assert!(
            found.iter().any(|found| found.contains(code)),
            "{spec}: {found:?}"
        );
    }
    let (_, found) = load(
        "HTTPRoute",
        &format!(
            "{{rules: [{}]}}",
            many("{matches: [{}, {}, {}, {}, {}, {}, {}, {}]}", 16)
        ),
    );
    assert_eq!(found, [""; 0], "128 matches are allowed");
}

fn http_route(spec: &str) -> Arc<Object<HTTPRoute>> {
    let (set, found) = load("HTTPRoute", spec);
    assert!(
        found.iter().all(|found| !found.starts_with('E')),
        "{found:?}"
    );
    Arc::clone(&set.http_routes[&Name::new("ns", "own")])
}

#[test]
fn http_route_has_its_defaults() {
    let route = &http_route("{parentRefs: [{name: gw}]}").spec;
    let parent = &route.parents[0];
    assert!(parent.object.is("gateway.networking.k8s.io", "Gateway"));
    assert_eq!(
        (&*parent.object.namespace, parent.has_namespace),
        ("ns", false)
    );
    assert_eq!((&parent.section, parent.port), (&None, None));
    let [rule] = &*route.rules else {
        panic!("one rule");
    };
    assert!(rule.backends.is_empty());
    assert!(
        matches!(&*rule.matches, [only] if matches!(&only.path, PathMatch::Segments(path) if path.is_empty()))
    );
    let route = &http_route("{rules: [{matches: [{path: {value: /a/}}, {method: GET}], backendRefs: [{name: b, port: 80}], retry: {}}]}").spec;
    let rule = &route.rules[0];
    let paths = rule.matches.iter().map(|one| match &one.path {
        PathMatch::Segments(path) => path.to_string(),
        other => panic!("{other:?}"),
    });
    assert_eq!(paths.collect::<Vec<_>>(), ["/a", ""]);
    let backend = &rule.backends[0];
    assert!(backend.target.object.is("", "Service"));
    assert_eq!((backend.weight, backend.target.port), (1, Some(80)));
    assert_eq!(&*backend.target.object.namespace, "ns");
    let retry = rule.retry.as_ref().unwrap();
    assert_eq!((retry.attempts, retry.backoff), (2, None));
    assert_eq!((rule.timeout, rule.attempt_timeout), (None, None));
}

#[test]
fn filters_keep_their_order_and_values() {
    let route = http_route(
        "{rules: [{timeouts: {request: 1m30s, backendRequest: 500ms}, filters: [\
         {type: CORS, cors: {allowOrigins: ['https://*.a.example']}}, \
         {type: RequestMirror, requestMirror: {backendRef: {name: a, namespace: b, port: 80}, fraction: {numerator: 1, denominator: 4}}}, \
         {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: A, value: '%x'}, {name: a, value: z}], \
         add: [{name: B, value: c}], remove: [D]}}, \
         {type: ExtensionRef, extensionRef: {group: g.example, kind: Own, name: a}}, \
         {type: URLRewrite, urlRewrite: {hostname: a.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /x/}}}]}, \
         {filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]}",
    );
    let [rule, second] = &*route.spec.rules else {
        panic!("two rules");
    };
    assert_eq!(rule.timeout, Some(Duration::from_secs(90)));
    assert_eq!(rule.attempt_timeout, Some(Duration::from_millis(500)));
    let [
        Filter::Cors(cors),
        Filter::Mirror(mirror),
        Filter::RequestHeaders(edits),
        Filter::Unusable(unusable),
        Filter::Rewrite(rewrite),
    ] = &*rule.filters
    else {
        panic!("{:?}", rule.filters);
    };
    let origin = CorsOrigin::Of(Scheme::Https, OriginHost::Under("a.example".into()), 443);
    assert_eq!(
        (&*cors.allow_origins, cors.max_age),
        (&[origin][..], Duration::from_secs(5))
    );
    assert_eq!(
        (&*mirror.target.object.namespace, mirror.percentage),
        ("b", Percent::new(25.0))
    );
    let pair = |name: &str, value: &str| (Arc::from(name), Arc::from(value));
    assert_eq!(
        (&*edits.set, &*edits.add),
        (&[pair("a", "%x")][..], &[pair("b", "c")][..])
    );
    assert_eq!(edits.remove, [Arc::from("d")]);
    assert_eq!(&*unusable.filter_type, "ExtensionRef");
    assert_eq!(rewrite.hostname.as_deref(), Some("a.example"));
    assert_eq!(rewrite.path, PathModifier::Segments("/x".into()));
    let [Filter::Redirect(redirect)] = &*second.filters else {
        panic!("{:?}", second.filters);
    };
    assert_eq!((redirect.status, redirect.port), (302, None));
    assert_eq!(redirect.path, PathModifier::Keep);
}

#[test]
fn grpc_route_matches_services_and_methods() {
    let (set, _) = load(
        "GRPCRoute",
        "{rules: [{matches: [{method: {service: a.B}}, {method: {type: RegularExpression, method: 'C.*'}}]}, {}]}",
    );
    let route: &GRPCRoute = &set.grpc_routes[&Name::new("ns", "own")].spec;
    let [first, second] = &*route.rules else {
        panic!("two rules");
    };
    assert!(
        matches!(&first.matches[0].service, Some(StringMatch::Exact(name)) if &**name == "a.B")
    );
    assert!(matches!(
        &first.matches[1].method,
        Some(StringMatch::Regex(_))
    ));
    assert!(second.matches[0].service.is_none() && second.matches[0].method.is_none());
}

#[test]
fn routes_for_connections_have_one_rule() {
    let (set, _) = load("TLSRoute", TLS);
    let route: &TLSRoute = &set.tls_routes[&Name::new("ns", "own")].spec;
    assert_eq!((route.hostnames.len(), route.rule.backends.len()), (1, 1));
    let (set, _) = load("TCPRoute", TCP);
    let route: &TCPRoute = &set.tcp_routes[&Name::new("ns", "own")].spec;
    assert_eq!(route.rule.backends[0].target.port, Some(1));
}
