use crate::diagnostic::Diagnostics;
use crate::validate::references::check;
use crate::{Fleet, ReadOptions, load_bytes};

/// Returns code, field and message of each diagnostic about policies across objects, with `mesh` as the root namespace.
fn found(documents: &[String]) -> Vec<String> {
    let mut errors = Diagnostics::default();
    let text = documents.join("---\n");
    let set = load_bytes("a.yaml", text.as_bytes(), &mut errors);
    let errors = errors.into_sorted();
    let mut wrong = errors
        .iter()
        .filter(|one| one.severity == crate::Severity::Error);
    assert!(wrong.next().is_none(), "{errors:?}");
    let fleet = Fleet {
        root_namespace: Some("mesh".into()),
        ..Fleet::default()
    };
    let found = check(&set, ReadOptions::default(), &fleet);
    let ours = found
        .into_iter()
        .filter(|found| found.code.0.starts_with("AZ") || found.code.0.starts_with("JW"));
    let told = ours.map(|found| {
        assert!(
            found.help.is_some() && found.location.line > 0,
            "{}",
            found.message
        );
        format!("{} {}: {}", found.code, found.field, found.message)
    });
    told.collect()
}

/// Returns an object of this kind and name, with a spec in flow style.
fn object(kind: &str, name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').expect("namespace/name");
    let group = match kind {
        "Service" => "v1",
        "AuthorizationPolicy" | "PeerAuthentication" | "RequestAuthentication" => {
            "security.istio.io/v1"
        }
        _ => "networking.istio.io/v1",
    };
    format!(
        "apiVersion: {group}\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{{spec}}}\n"
    )
}

fn policy(name: &str, spec: &str) -> String {
    object("AuthorizationPolicy", name, spec)
}

/// Returns a policy of the workloads `app: cart` with these rules.
fn cart(name: &str, action: &str, rules: &str) -> String {
    policy(
        &format!("shop/{name}"),
        &format!("selector: {{matchLabels: {{app: cart}}}}, action: {action}, rules: [{rules}]"),
    )
}

/// Returns the Service of the workloads `app: cart`, with ports for requests and for a database.
fn service() -> String {
    object(
        "Service",
        "shop/cart",
        "selector: {app: cart, version: v1}, ports: [{name: http, port: 80}, {name: tcp-db, port: 5432}]",
    )
}

fn gateway(tls: &str) -> String {
    let server = format!(
        "{{port: {{number: 443, name: web, protocol: HTTPS}}, hosts: ['*'], tls: {{{tls}}}}}"
    );
    object(
        "Gateway",
        "edge/web",
        &format!("selector: {{istio: ingressgateway}}, servers: [{server}]"),
    )
}

/// Returns a policy of the gateway.
fn edge(action: &str, rules: &str) -> String {
    policy(
        "edge/web",
        &format!(
            "selector: {{matchLabels: {{istio: ingressgateway}}}}, action: {action}, rules: [{rules}]"
        ),
    )
}

const SIMPLE: &str = "mode: SIMPLE, credentialName: a";
const GET: &str = "{to: [{operation: {methods: [GET]}}]}";
const NOTHING: Vec<String> = Vec::new();

#[test]
fn selector_without_a_known_workload_is_reported() {
    let of = |labels: &str| {
        let selector = format!("selector: {{matchLabels: {{{labels}}}}}, rules: [{{}}]");
        found(&[policy("shop/a", &selector), service()])
    };
    assert_eq!(of("app: cart"), NOTHING);
    assert_eq!(
        of("app: cart, tier: front"),
        NOTHING,
        "pods have further labels"
    );
    assert_eq!(
        of("app: carts"),
        [
            "AZ101 spec.selector.matchLabels: no Service or WorkloadEntry of namespace `shop` has a workload with \
             `app=carts`"
        ]
    );
    let alone = policy(
        "shop/a",
        "selector: {matchLabels: {app: carts}}, rules: [{}]",
    );
    assert_eq!(
        found(&[alone]),
        NOTHING,
        "nothing is known of the namespace"
    );
    let other = object(
        "Service",
        "edge/other",
        "selector: {app: other}, ports: [{port: 80, name: http}]",
    );
    assert_eq!(
        found(&[edge("DENY", "{}"), other, gateway(SIMPLE)]),
        NOTHING
    );
}

#[test]
fn rule_whose_conditions_exclude_each_other_is_reported() {
    let of = |rule: &str| found(&[cart("a", "ALLOW", &format!("{{{rule}}}"))]);
    let expected =
        ["AZ103 spec.rules[0]: no request matches this rule: its conditions exclude each other"];
    for rule in [
        "to: [{operation: {paths: [/a], notPaths: [/a, /b]}}]",
        "to: [{operation: {paths: ['/a/*'], notPaths: ['/a*']}}]",
        "to: [{operation: {notPaths: ['*']}}]",
        "from: [{source: {namespaces: [a]}}], when: [{key: source.namespace, values: [b]}]",
        "from: [{source: {principals: [td/ns/a/sa/b]}}], when: [{key: source.principal, values: ['td/ns/c/*']}]",
    ] {
        assert_eq!(of(rule), expected, "{rule}");
    }
    for rule in [
        "to: [{operation: {paths: ['/a*'], notPaths: [/a/secret]}}]",
        "from: [{source: {notPrincipals: ['*']}}]",
        "from: [{source: {namespaces: [a]}}, {source: {namespaces: [b]}}], when: [{key: source.namespace, values: [b]}]",
        "when: [{key: 'request.headers[x]', values: [a]}, {key: 'request.headers[x]', values: [b]}]",
    ] {
        assert_eq!(of(rule), NOTHING, "{rule}");
    }
}

#[test]
fn rule_that_another_one_covers_is_reported() {
    let same = "AZ104 spec.rules[0]: rule 0 of AuthorizationPolicy/shop/a already matches what this rule matches";
    let narrow = "{from: [{source: {namespaces: [web]}}], to: [{operation: {methods: [GET]}}]}";
    let two =
        |outer: &str, inner: &str| found(&[cart("a", "ALLOW", outer), cart("b", "ALLOW", inner)]);
    assert_eq!(two(GET, narrow), [same]);
    assert_eq!(two(GET, GET), [same], "of equal rules the later one");
    assert_eq!(two("{}", GET), [same]);
    assert_eq!(two(GET, "{to: [{operation: {methods: [POST]}}]}"), NOTHING);
    assert_eq!(
        two(narrow, "{from: [{source: {namespaces: [app]}}]}"),
        NOTHING
    );
    assert_eq!(
        two("{to: [{operation: {methods: [GET], notPaths: [/x]}}]}", GET).len(),
        1,
        "the first is covered"
    );
    let whole = policy("shop/a", "rules: [{to: [{operation: {methods: [GET]}}]}]");
    assert_eq!(found(&[whole.clone(), cart("b", "ALLOW", GET)]), [same]);
    let of_root = whole.replace("namespace: shop", "namespace: mesh");
    assert_eq!(found(&[of_root, cart("b", "ALLOW", GET)]).len(), 1);
    let elsewhere = whole.replace("namespace: shop", "namespace: bank");
    assert_eq!(found(&[elsewhere, cart("b", "ALLOW", GET)]), NOTHING);
    let denied = found(&[cart("z", "DENY", GET), cart("b", "ALLOW", narrow)]);
    assert_eq!(
        denied,
        ["AZ104 spec.rules[0]: rule 0 of AuthorizationPolicy/shop/z denies what this rule allows"]
    );
    assert_eq!(
        found(&[cart("z", "DENY", narrow), cart("b", "ALLOW", GET)]),
        NOTHING
    );
}

#[test]
fn rules_for_requests_are_reported_at_ports_without_requests() {
    let deny = |rule: &str| found(&[cart("a", "DENY", rule), service()]);
    assert_eq!(
        deny("{to: [{operation: {paths: ['/admin*']}}]}"),
        [
            "AZ106 spec.rules[0]: this rule also denies connections to ports without requests, where paths, methods and the \
             like are not compared: `tcp-db` of Service cart"
        ]
    );
    assert_eq!(
        deny("{to: [{operation: {paths: ['/admin*'], ports: ['80']}}]}"),
        NOTHING
    );
    assert_eq!(deny("{from: [{source: {namespaces: [a]}}]}"), NOTHING);
    let allow = |more: &[String]| {
        let all = [&[cart("a", "ALLOW", GET), service()], more].concat();
        found(&all)
    };
    assert_eq!(
        allow(&[]),
        [
            "AZ107 spec.rules: all rules compare fields of requests, so that each connection to ports without requests is \
             denied: `tcp-db` of Service cart"
        ]
    );
    let ports = "{to: [{operation: {ports: ['5432']}}]}";
    assert_eq!(allow(&[cart("b", "ALLOW", ports)]), NOTHING);
    let web = service().replace("tcp-db", "http-db");
    assert_eq!(found(&[cart("a", "ALLOW", GET), web]), NOTHING);
}

#[test]
fn identity_is_reported_where_clients_have_none() {
    let by_identity = "{from: [{source: {principals: [td/ns/a/sa/b]}}]}";
    let mode = |mode: &str| {
        object(
            "PeerAuthentication",
            "shop/a",
            &format!("mtls: {{mode: {mode}}}"),
        )
    };
    let deny = cart("a", "DENY", by_identity);
    assert_eq!(
        found(&[deny.clone(), mode("PERMISSIVE")]),
        [
            "AZ109 spec.rules[0]: a client in plain text has no identity, and is not denied: the workloads accept it \
             (PeerAuthentication/shop/a)"
        ]
    );
    assert_eq!(found(&[deny.clone(), mode("STRICT")]), NOTHING);
    assert_eq!(found(&[deny]), NOTHING, "the mode may be set elsewhere");
    assert_eq!(
        found(&[cart("a", "ALLOW", by_identity), mode("PERMISSIVE")]),
        NOTHING
    );
    let allow = edge("ALLOW", by_identity);
    assert_eq!(
        found(&[allow.clone(), gateway(SIMPLE)]),
        [
            "AZ109 spec.rules[0]: no client has an identity here: no server of the gateway asks for a certificate"
        ]
    );
    let mutual = gateway("mode: MUTUAL, credentialName: a");
    assert_eq!(found(&[allow, mutual]), NOTHING);
}

#[test]
fn denied_path_with_a_route_below_it_is_reported() {
    let route = |prefix: &str| {
        let rule = format!(
            "{{match: [{{uri: {{prefix: {prefix}}}}}], route: [{{destination: {{host: a.test}}}}]}}"
        );
        object(
            "VirtualService",
            "shop/a",
            &format!("hosts: [a.test], http: [{rule}]"),
        )
    };
    let deny = |paths: &str| {
        cart(
            "a",
            "DENY",
            &format!("{{to: [{{operation: {{paths: [{paths}]}}}}]}}"),
        )
    };
    assert_eq!(
        found(&[deny("/admin"), route("/admin")]),
        [
            "AZ111 spec.rules[0]: `/admin` is denied, and paths below it are not, which a route takes"
        ]
    );
    assert_eq!(
        found(&[deny("/admin, '/admin/*'"), route("/admin")]),
        NOTHING
    );
    assert_eq!(found(&[deny("'/admin*'"), route("/admin")]), NOTHING);
    assert_eq!(found(&[deny("/admin"), route("/")]), NOTHING);
}

/// Returns a RequestAuthentication of the workloads `app: cart`.
fn tokens(fields: &str) -> String {
    let rule = format!("{{issuer: 'https://i.test', jwksUri: 'https://i.test/keys'{fields}}}");
    object(
        "RequestAuthentication",
        "shop/a",
        &format!("selector: {{matchLabels: {{app: cart}}}}, jwtRules: [{rule}]"),
    )
}

#[test]
fn token_that_nothing_verifies_is_reported() {
    let by = |value: &str| {
        cart(
            "a",
            "ALLOW",
            &format!("{{from: [{{source: {{requestPrincipals: ['{value}']}}}}]}}"),
        )
    };
    let none = "AZ117 spec.rules[0]: no RequestAuthentication is for these workloads, so that no request has a verified token";
    assert_eq!(found(&[by("*")]), [none]);
    assert_eq!(
        found(&[by("*"), tokens("").replace("app: cart", "app: other"),]).len(),
        2
    );
    assert_eq!(found(&[by("https://i.test/*"), tokens("")]), NOTHING);
    assert_eq!(
        found(&[by("https://j.test/*"), tokens("")]),
        [
            "AZ117 spec.rules[0]: no RequestAuthentication for these workloads has issuer `https://j.test`"
        ]
    );
    let claim = "hosts: [a.test], gateways: [edge/web], http: [{match: [{headers: {'@request.auth.claims.role': {exact: a}}}], \
                 route: [{destination: {host: a.test}}]}]";
    let route = object("VirtualService", "edge/a", claim);
    assert_eq!(
        found(std::slice::from_ref(&route)),
        [
            "JW105 spec.http: a claim never matches: there is no RequestAuthentication, so that no request has a verified token"
        ]
    );
    assert_eq!(found(&[route, tokens("")]), NOTHING);
}

#[test]
fn request_authentication_that_requires_no_token_is_reported() {
    let open = "JW101 spec.jwtRules: requests without a token pass: no AuthorizationPolicy for these workloads requires one";
    assert_eq!(found(&[tokens("")]), [open]);
    assert_eq!(found(&[tokens(""), cart("a", "ALLOW", GET)]), [open]);
    let deny = "{from: [{source: {notRequestPrincipals: ['*']}}]}";
    assert_eq!(found(&[tokens(""), cart("a", "DENY", deny)]), NOTHING);
    assert_eq!(
        found(&[tokens(", outputPayloadToHeader: x-claims")]),
        NOTHING
    );
}

#[test]
fn preflight_that_no_policy_admits_is_reported() {
    let keys = "rules: [], jwtRules: [{issuer: 'https://i.test', jwksUri: 'https://i.test/keys'}]";
    let keys = object(
        "RequestAuthentication",
        "edge/a",
        &keys.replace("rules: [], ", ""),
    );
    let cors = "hosts: [a.test], gateways: [edge/web], http: [{corsPolicy: {allowOrigins: [{exact: 'https://b.test'}]}, \
                route: [{destination: {host: a.test}}]}]";
    let of = |action: &str, rules: &str, route: &str| {
        let route = object("VirtualService", "edge/a", route);
        found(&[edge(action, rules), gateway(SIMPLE), keys.clone(), route])
    };
    let token = "{from: [{source: {requestPrincipals: ['*']}}]}";
    let absent = "{from: [{source: {notRequestPrincipals: ['*']}}]}";
    let expected = [
        "AZ118 spec.rules: preflights of browsers have no token, so that they are denied before CORS answers them",
    ];
    assert_eq!(of("ALLOW", token, cors), expected);
    assert_eq!(of("DENY", absent, cors), expected);
    let options = "{to: [{operation: {methods: [OPTIONS]}}]}";
    assert_eq!(of("ALLOW", &format!("{token}, {options}"), cors), NOTHING);
    let others = absent.replace("}]}", "}], to: [{operation: {notMethods: [OPTIONS]}}]}");
    assert_eq!(of("DENY", &others, cors), NOTHING);
    let plain = cors.replace(
        "corsPolicy: {allowOrigins: [{exact: 'https://b.test'}]}, ",
        "",
    );
    assert_eq!(of("ALLOW", token, &plain), NOTHING);
}
