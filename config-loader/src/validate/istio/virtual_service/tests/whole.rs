//! Whole objects: every field, texts of diagnostics, and random objects.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::kind::Name;
use crate::resource::istio::{
    AbortStatus, GatewayRef, GrpcStatus, HeaderKey, HttpAction, RedirectPath, RedirectPort,
    RetryCondition, RewritePath, Scheme, StringMatch, UnmatchedPreflights, VirtualService,
};
use crate::resource::{ExportTo, Percent};
use crate::validate::istio::testing::{self, document, load};

fn good(body: &str) -> Arc<VirtualService> {
    let (set, found) = load(&document("VirtualService", body));
    assert!(found.is_empty(), "{found:#?}");
    let object = set.virtual_services.values().next();
    Arc::clone(&object.expect("it is good").spec)
}

#[test]
fn diagnostics_have_fixes() {
    let rule = |fields: &str| {
        format!("hosts: [a.com]\nhttp: [{{{fields}, route: [{{destination: {{host: a}}}}]}}]")
    };
    for (fields, message, help) in [
        (
            "timeout: 0s",
            "duration `0s` is shorter than 1ms",
            "write `1ms` or more, or remove the field for its default",
        ),
        (
            "retries: {attempts: 1, retryOn: '5xx, reset'}",
            "` reset` is not a retry condition",
            "write `reset` without blanks around it",
        ),
        (
            "retries: {attempts: 1, retryOn: gateway-eror}",
            "`gateway-eror` is not a retry condition",
            "did you mean `gateway-error`?",
        ),
        (
            "match: [{headers: {a: null}}]",
            "the match of header `a` is null: any value matches",
            "write `{}`, which says the same",
        ),
        (
            "fault: {abort: {grpcStatus: '14', percentage: {value: 1}}}",
            "`14` is not a gRPC status name",
            "did you mean `UNAVAILABLE`?",
        ),
        (
            "corsPolicy: {allowMethods: [get]}",
            "`get` is not an HTTP method",
            "methods are in upper case: write `GET`",
        ),
    ] {
        assert_eq!(
            testing::message("VirtualService", &rule(fields)),
            (message.to_owned(), help.to_owned())
        );
    }
}

#[test]
fn hosts_gateways_and_matches_are_parsed() {
    let service = good(
        "hosts: [reviews, '*.a.com']
gateways: [mesh, ./gw, other/gw]
exportTo: [.]
http:
- name: first
  match:
  - name: block
    uri: {prefix: /a}
    ignoreUriCase: true
    scheme: {exact: https}
    method: {regex: GET|POST}
    authority: {exact: a.com}
    headers: {X-User: {exact: joe}}
    withoutHeaders: {x-a: {}, x-b: {regex: '*'}, x-c: null}
    queryParams: {q: {prefix: a}}
    port: 8080
    sourceLabels: {app: web}
    sourceNamespace: ns1
    statPrefix: stats
  - gateways: [gw]
  route: [{destination: {host: a}}]",
    );
    assert_eq!(
        (&*service.hosts[1].value, service.hosts[1].line.0),
        ("*.a.com", 4)
    );
    let named = |namespace: &str| {
        GatewayRef::Named(Name {
            namespace: namespace.into(),
            name: "gw".into(),
        })
    };
    let gateways: Vec<&GatewayRef> = service
        .gateways
        .iter()
        .map(|gateway| &gateway.value)
        .collect();
    assert_eq!(gateways, [&GatewayRef::Mesh, &named("ns"), &named("other")]);
    assert_eq!(service.export_to, ExportTo::Namespaces(vec!["ns".into()]));
    assert!(service.is_for_mesh() && !service.is_delegate());
    let rule = &service.http[0];
    assert_eq!((&*rule.name, rule.line.0), ("first", 8));
    let block = &rule.matches[0];
    assert_eq!(
        (&*block.name, &*block.stat_prefix, block.line.0),
        ("block", "stats", 10)
    );
    assert!(block.ignore_uri_case);
    assert!(matches!(&block.uri, Some(StringMatch::Prefix(path)) if &**path == "/a"));
    assert!(matches!(&block.scheme, Some(StringMatch::Exact(scheme)) if &**scheme == "https"));
    assert!(
        block
            .method
            .as_ref()
            .is_some_and(|method| method.matches(b"POST") && !method.matches(b"POSTS"))
    );
    assert!(block.authority.is_some());
    assert_eq!(block.headers[0].key, HeaderKey::Named("x-user".into()));
    assert_eq!(block.without_headers.len(), 3);
    assert!(
        block
            .without_headers
            .iter()
            .all(|header| matches!(header.value, StringMatch::Present))
    );
    assert_eq!(&*block.query_params[0].name, "q");
    assert_eq!(
        (block.port, &rule.matches[1].gateways[..]),
        (Some(8080), &[named("ns")][..])
    );
    assert_eq!(block.source_labels["app"], "web");
    assert_eq!(block.source_namespace.as_deref(), Some("ns1"));
}

#[test]
fn a_forwarding_rule_is_parsed() {
    let service = good(
        "hosts: [a.com]
http:
- route:
  - destination: {host: a, subset: v1, port: {number: 80}}
    weight: 3
    headers: {request: {set: {X-B: b, X-A: a, Host: h.com}, remove: [X-C]}}
  - destination: {host: b}
    weight: 1
  timeout: 2s
  retries: {attempts: 2, perTryTimeout: 500ms, retryOn: '5xx,503', retryIgnorePreviousHosts: false, backoff: 5ms}
  rewrite: {uriRegexRewrite: {match: 'a(.)', rewrite: '\\1'}, authority: r.com}
  fault:
    delay: {fixedDelay: 1s, percentage: {value: 0.1}}
    abort: {grpcStatus: UNAVAILABLE, percentage: {value: 100}}
  mirror: {host: m}
  mirrorPercentage: {value: 12.5}
  corsPolicy:
    allowOrigins: [{exact: 'https://a.com'}]
    allowMethods: [GET]
    allowHeaders: [x-a]
    exposeHeaders: [x-b]
    maxAge: 24h
    allowCredentials: true
    unmatchedPreflights: IGNORE
  headers: {response: {add: {x-r: '%PROTOCOL%'}}}",
    );
    let rule = &service.http[0];
    let HttpAction::Route(route) = &rule.action else {
        panic!("a route");
    };
    let destination = &route[0].destination;
    assert_eq!(
        (
            &*destination.host,
            destination.subset.as_deref(),
            destination.port
        ),
        ("a", Some("v1"), Some(80))
    );
    assert_eq!(
        (route[0].weight, route[1].weight, route[1].line.0),
        (3, 1, 10)
    );
    let request = &route[0].headers.as_deref().expect("headers").request;
    assert_eq!(request.authority.as_deref(), Some("h.com"));
    let names: Vec<&str> = request.set.iter().map(|(name, _)| &**name).collect();
    assert_eq!((names, &*request.remove[0]), (vec!["x-a", "x-b"], "x-c"));
    assert_eq!(rule.timeout, Some(Duration::from_secs(2)));
    let retries = rule.retries.as_deref().expect("retries");
    assert_eq!(
        retries.retry_on,
        [RetryCondition::FiveXx, RetryCondition::Status(503)]
    );
    assert_eq!(
        (retries.attempts, retries.per_try_timeout),
        (2, Some(Duration::from_millis(500)))
    );
    assert_eq!(
        (retries.ignore_previous_hosts, retries.backoff),
        (Some(false), Duration::from_millis(5))
    );
    let rewrite = rule.rewrite.as_deref().expect("a rewrite");
    let RewritePath::Regex(regex) = &rewrite.path else {
        panic!("a regex");
    };
    assert!(regex.pattern.regex.is_match(b"xaby"), "it is not anchored");
    assert_eq!(
        (&*regex.replacement, rewrite.authority.as_deref()),
        ("\\1", Some("r.com"))
    );
    let fault = rule.fault.as_deref().expect("a fault");
    assert_eq!(
        fault
            .delay
            .map(|delay| delay.percentage.parts_per_million()),
        Some(1_000)
    );
    assert_eq!(
        fault.abort.map(|abort| abort.status),
        Some(AbortStatus::Grpc(GrpcStatus(14)))
    );
    assert_eq!(
        rule.mirror.as_deref().map(|mirror| &*mirror.host),
        Some("m")
    );
    assert_eq!(rule.mirror_percentage, Some(Percent::new(12.5)));
    let cors = rule.cors.as_deref().expect("a policy");
    assert_eq!(
        (cors.max_age, cors.allow_credentials),
        (Some(Duration::from_secs(86_400)), true)
    );
    assert_eq!(cors.unmatched_preflights, UnmatchedPreflights::Ignore);
    let response = &rule.headers.as_deref().expect("headers").response;
    assert_eq!(&*response.add[0].1, "%PROTOCOL%");
}

#[test]
fn missing_fields_have_their_defaults() {
    let service = good(
        "hosts: [a.com]
http:
- match: [{uri: {exact: /r}}]
  redirect: {scheme: https, derivePort: FROM_REQUEST_PORT}
- match: [{uri: {exact: /d}}]
  directResponse: {status: 503, body: {bytes: aGk=}}
- match: [{uri: {exact: /m}}]
  delegate: {name: d}
- mirrors: [{destination: {host: m}}]
  retries: {attempts: 1}
  route: [{destination: {host: a}}]",
    );
    assert!(service.is_for_mesh());
    assert_eq!(service.export_to, ExportTo::All);
    let [redirect, direct, delegate, route] = service.http.as_slice() else {
        panic!("four rules");
    };
    let HttpAction::Redirect(redirect) = &redirect.action else {
        panic!("a redirect");
    };
    assert_eq!(
        (&redirect.path, redirect.status),
        (&RedirectPath::Keep, 301)
    );
    assert_eq!(
        (redirect.scheme, redirect.port),
        (Some(Scheme::Https), RedirectPort::Request)
    );
    let HttpAction::DirectResponse(direct) = &direct.action else {
        panic!("a direct response");
    };
    assert_eq!((direct.status, &*direct.body), (503, &b"hi"[..]));
    let HttpAction::Delegate(delegate) = &delegate.action else {
        panic!("a delegate");
    };
    assert_eq!(
        (&*delegate.name.namespace, &*delegate.name.name),
        ("ns", "d")
    );
    assert_eq!(route.mirrors[0].percentage, Percent::ALL);
    let retries = route.retries.as_deref().expect("retries");
    assert_eq!(retries.backoff, Duration::from_millis(25));
    assert_eq!(retries.retry_on.len(), 4);
    assert!(route.timeout.is_none() && route.matches.is_empty() && route.cors.is_none());
}

/// Fields that can be added to a forwarding rule in any combination.
const SETTINGS: [&str; 10] = [
    "name: rule",
    "timeout: 1.5s",
    "retries: {attempts: 3, retryOn: 'connect-failure,503', perTryTimeout: 100ms}",
    "rewrite: {authority: b.com}",
    "fault: {abort: {httpStatus: 418, percentage: {value: 0.5}}}",
    "mirrors: [{destination: {host: m}, percentage: {value: 33.3}}]",
    "corsPolicy: {allowOrigins: [{regex: 'https://.*'}], maxAge: 1m}",
    "headers: {request: {add: {x-a: '%REQ(x-b)%'}}, response: {remove: [server]}}",
    "match: [{uri: {regex: '/v[0-9]+(/.*)?'}, headers: {x: {}}}]",
    "match: [{queryParams: {q: {exact: ''}}, method: {exact: GET}}, {port: 80}]",
];

fn rules() -> impl Strategy<Value = Vec<String>> {
    let match_at = SETTINGS.len() - 2;
    let settings = (subsequence(&SETTINGS[..match_at], 0..=match_at), 0..3_usize);
    let forward = settings.prop_map(move |(settings, matched)| {
        let settings = settings
            .into_iter()
            .chain(SETTINGS.get(match_at + matched).copied());
        let settings: Vec<&str> = settings.collect();
        format!(
            "{{route: [{{destination: {{host: a}}}}], {}}}",
            settings.join(", ")
        )
    });
    let other = select(vec![
        "{redirect: {uri: /x, redirectCode: 308}, match: [{uri: {prefix: /old}}]}",
        "{directResponse: {status: 200, body: {string: ok}}}",
        "{delegate: {name: d, namespace: other}}",
    ]);
    proptest::collection::vec(
        prop_oneof![4 => forward, 1 => other.prop_map(str::to_owned)],
        1..6,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn valid_rules_combine_without_diagnostics(rules in rules(), gateways in select(vec!["", "gateways: [gw]\n"])) {
        let list: Vec<String> = rules.iter().map(|rule| format!("- {rule}")).collect();
        let body = format!("hosts: [a.com, '*.b.com']\n{gateways}http:\n{}", list.join("\n"));
        let (set, found) = load(&document("VirtualService", &body));
        let errors: Vec<_> = found.iter().filter(|found| found.severity == crate::Severity::Error).collect();
        prop_assert!(errors.is_empty(), "{body}\n{errors:#?}");
        // Findings are warnings about what can never match.
        prop_assert!(found.iter().all(|found| found.code.0.starts_with("VS1")), "{found:#?}");
        let service = set.virtual_services.values().next().expect("it is good");
        prop_assert_eq!(service.spec.http.len(), rules.len());
    }
}

#[test]
fn checking_time_grows_linearly_with_rules_and_hosts() {
    let hosts: Vec<String> = (0..2_000).map(|index| format!("h{index}.com")).collect();
    let rules: Vec<String> = (0..2_000)
        .map(|index| format!("- {{match: [{{uri: {{prefix: /p{index}/}}}}], route: [{{destination: {{host: a}}}}]}}"))
        .collect();
    let service = good(&format!(
        "hosts: [{}]\nhttp:\n{}",
        hosts.join(", "),
        rules.join("\n")
    ));
    assert_eq!((service.hosts.len(), service.http.len()), (2_000, 2_000));
}
