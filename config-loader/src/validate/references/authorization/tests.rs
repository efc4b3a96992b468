use crate::diagnostic::Diagnostics;
use crate::validate::references::check;
use crate::{Fleet, ProxyWorkload, ReadOptions, load_bytes};

/// Returns code, field and message of each diagnostic about policies across objects, with `mesh` as the root namespace.
fn found(documents: &[String]) -> Vec<String> {
    found_for(None, documents)
}

/// Returns the same for a proxy of namespace `shop` with these labels, as a sidecar or a gateway.
fn found_by(labels: [&str; 2], is_sidecar: bool, documents: &[String]) -> Vec<String> {
    let [key, value] = labels.map(str::to_owned);
    let labels = [(key, value)].into();
    found_for(Some(ProxyWorkload { labels, is_sidecar }), documents)
}

fn found_for(workload: Option<ProxyWorkload>, documents: &[String]) -> Vec<String> {
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
        namespace: workload.as_ref().map(|_| "shop".into()),
        workload,
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
fn policies_about_requests_are_reported_at_ports_without_a_declared_protocol() {
    let undeclared = || service().replace("tcp-db", "db");
    let custom = "action: CUSTOM, provider: {name: p}, rules: [{}]";
    let custom = policy(
        "shop/a",
        &format!("selector: {{matchLabels: {{app: cart}}}}, {custom}"),
    );
    let all = |policy: &str, service: String| {
        let found = found(&[policy.to_owned(), service]);
        let found = found.into_iter().filter(|line| line.starts_with("AZ133"));
        found.collect::<Vec<_>>()
    };
    let start = "AZ133 spec: clients of `db` of Service cart, whose protocol is not declared, may send other bytes than requests: ";
    assert_eq!(
        all(&custom, undeclared()),
        [format!("{start}a provider over HTTP denies them")]
    );
    assert_eq!(all(&custom, service()), NOTHING);
    let verified = tokens("");
    let effect = "no token is verified, and headers stay as the client sends them";
    assert_eq!(all(&verified, undeclared()), [format!("{start}{effect}")]);
    assert_eq!(all(&verified, service()), NOTHING);
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

#[test]
fn address_that_is_not_that_of_the_client_is_reported() {
    let blocks = |name: &str| {
        let source = format!("source: {{{name}: [10.0.0.0/8]}}");
        cart("a", "ALLOW", &format!("{{from: [{{{source}}}]}}"))
    };
    let (direct, remote) = (blocks("ipBlocks"), blocks("remoteIpBlocks"));
    let chosen = [
        "AZ114 spec.rules[0]: clients choose this address: a sidecar takes it from `x-forwarded-for`",
    ];
    let cart_labels = ["app", "cart"];
    let sidecar = |policy: &String| found_by(cart_labels, true, std::slice::from_ref(policy));
    assert_eq!(sidecar(&remote), chosen);
    assert_eq!(sidecar(&blocks("notRemoteIpBlocks")), chosen);
    assert_eq!(sidecar(&direct), NOTHING);
    let by_gateway = remote.replace("source: {", "source: {principals: [td/ns/edge/sa/web], ");
    assert_eq!(sidecar(&by_gateway), NOTHING);
    assert_eq!(
        found(std::slice::from_ref(&remote)),
        NOTHING,
        "of which proxy is not known"
    );
    let other = found_by(["app", "other"], true, std::slice::from_ref(&remote));
    assert_eq!(other, NOTHING);

    let balancer = |fields: &str| {
        let fields =
            format!("selector: {{app: cart}}, ports: [{{port: 80, name: http}}], {fields}");
        object("Service", "shop/lb", &fields)
    };
    let gateway =
        |policy: &String, service: String| found_by(cart_labels, false, &[policy.clone(), service]);
    let masked = ["AZ114 spec.rules[0]: a node may replace the address of the client by its own"];
    assert_eq!(gateway(&direct, balancer("type: LoadBalancer")), masked);
    assert_eq!(gateway(&direct, balancer("type: NodePort")), masked);
    assert_eq!(gateway(&direct, balancer("type: ClusterIP")), NOTHING);
    let local = "type: LoadBalancer, externalTrafficPolicy: Local";
    assert_eq!(gateway(&direct, balancer(local)), NOTHING);
    assert_eq!(gateway(&remote, balancer("type: LoadBalancer")), NOTHING);
    let elsewhere = balancer("type: LoadBalancer").replace("app: cart", "app: other");
    let found = gateway(&direct, elsewhere);
    assert!(
        !found.iter().any(|one| one.starts_with("AZ114")),
        "{found:?}"
    );
}

#[test]
fn denied_value_of_a_header_that_clients_choose_is_reported() {
    let rule = |values: &str| format!("{{when: [{{key: 'request.headers[x-a]', {values}}}]}}");
    let of = |action: &str, values: &str| found(&[edge(action, &rule(values)), gateway(SIMPLE)]);
    assert_eq!(
        of("DENY", "values: [bad]"),
        [
            "AZ116 spec.rules[0]: a client that changes the header `x-a`, or leaves it out, is not denied"
        ]
    );
    assert_eq!(of("DENY", "values: ['*']"), NOTHING);
    assert_eq!(of("DENY", "notValues: [good]"), NOTHING);
    assert_eq!(of("ALLOW", "values: [good]"), NOTHING);
    let inside = cart("a", "DENY", &rule("values: [bad]"));
    assert_eq!(
        found(&[inside, gateway(SIMPLE)]),
        NOTHING,
        "a gateway may set it"
    );
    let deny = edge("DENY", &rule("values: [bad]"));
    let set = tokens(", outputClaimToHeaders: [{header: x-a, claim: a}]")
        .replace("app: cart", "istio: ingressgateway");
    let set = set.replace("namespace: shop", "namespace: edge");
    assert_eq!(found(&[deny, gateway(SIMPLE), set]), NOTHING);
}

#[test]
fn header_of_tokens_that_clients_may_send_is_reported() {
    let set = tokens(", outputClaimToHeaders: [{header: x-role, claim: role}]");
    let forged =
        "clients may write the header `x-role`, which is set from tokens for other workloads only";
    let read = "{when: [{key: 'request.headers[x-role]', values: [admin]}]}";
    let read = cart("a", "ALLOW", read);
    assert_eq!(found(&[set.clone(), read.clone()]), NOTHING);
    let other = set.replace("app: cart", "app: other");
    let expected = format!("JW104 spec.rules[0]: {forged}");
    assert_eq!(found(&[other.clone(), read.clone()]), [expected]);
    assert_eq!(found(std::slice::from_ref(&read)), NOTHING);

    let route = "hosts: [a.test], gateways: [edge/web], http: [{match: [{headers: {x-role: {exact: a}}}], \
                 route: [{destination: {host: a.test}}]}]";
    let route = object("VirtualService", "edge/a", route);
    let of_gateway = |labels: &str| set.replace("app: cart", labels);
    let here = of_gateway("istio: ingressgateway");
    assert_eq!(found(&[here, gateway(SIMPLE), route.clone()]), NOTHING);
    let there = of_gateway("istio: eastwestgateway");
    let expected = format!("JW104 spec.http: {forged}");
    assert_eq!(found(&[there, gateway(SIMPLE), route]), [expected]);
}

#[test]
fn names_that_nothing_has_are_reported() {
    let service = |name: &str| {
        object(
            "Service",
            name,
            "selector: {app: cart}, ports: [{port: 80}]",
        )
    };
    let of = |namespace: &str| {
        object(
            "AuthorizationPolicy",
            &format!("{namespace}/p"),
            "rules: [{}]",
        )
    };
    let unknown =
        "AZ102 metadata.namespace: no Service, WorkloadEntry or pod of namespace `shpo` is known";
    assert_eq!(found(&[of("shpo"), service("shop/cart")]), [unknown]);
    assert_eq!(found(&[of("shop"), service("shop/cart")]), NOTHING);
    assert_eq!(found(&[of("mesh"), service("shop/cart")]), NOTHING);
    assert_eq!(found(&[of("shpo")]), NOTHING, "nothing is known");

    let namespace =
        |name: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    let from = |principal: &str| {
        let rule = format!("{{from: [{{source: {{principals: ['{principal}']}}}}]}}");
        [
            cart("a", "ALLOW", &rule),
            namespace("shop"),
            namespace("web"),
        ]
    };
    let reported = |principal: &str, what: &str| {
        let expected = format!(
            "AZ108 spec.rules[0]: no client has the identity `{principal}`: its {what} is unknown"
        );
        assert_eq!(found(&from(principal)), [expected]);
    };
    assert_eq!(found(&from("cluster.local/ns/web/sa/a")), NOTHING);
    assert_eq!(found(&from("cluster.local/ns/*")), NOTHING);
    reported("cluster.local/ns/wbe/sa/a", "namespace `wbe`");
    assert_eq!(
        found(&from("td.test/ns/web/sa/a")),
        NOTHING,
        "trust domains are not known"
    );

    let host = |host: &str| {
        let rule = format!("{{to: [{{operation: {{hosts: ['{host}']}}}}]}}");
        let gateway = gateway(SIMPLE).replace("['*']", "['a.test', b.test, '*.example.com']");
        [edge("ALLOW", &rule), gateway]
    };
    let expected = "AZ112 spec.rules[0]: no server of the gateway has the host `b.tset`";
    assert_eq!(found(&host("b.tset")), [expected]);
    let expected = "AZ112 spec.rules[0]: no server of the gateway has the host `*.tset`";
    assert_eq!(found(&host("*.tset")), [expected]);
    for served in [
        "*",
        "*.test",
        "a.test",
        "A.test:443",
        "x.example.com",
        "*.com",
        "*.x.example.com",
        "a.*",
    ] {
        assert_eq!(found(&host(served)), NOTHING, "{served}");
    }
}

#[test]
fn target_that_does_not_exist_is_reported() {
    let policy = object(
        "AuthorizationPolicy",
        "edge/p",
        "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: egde}], action: DENY, rules: [{}]",
    );
    let gateway = |name: &str| {
        let spec = "gatewayClassName: strait, listeners: [{name: a, protocol: HTTP, port: 80}]";
        let text = object("Gateway", name, spec);
        text.lines()
            .map(|line| match line.starts_with("apiVersion") {
                true => "apiVersion: gateway.networking.k8s.io/v1\n".to_owned(),
                false => format!("{line}\n"),
            })
            .collect::<String>()
    };
    let missing = "AZ102 spec.targetRefs: Gateway edge/egde does not exist: the policy decides nothing for it";
    assert_eq!(found(&[policy.clone(), gateway("edge/edge")]), [missing]);
    assert_eq!(found(&[policy.clone(), gateway("shop/egde")]), [missing]);
    assert_eq!(found(&[policy, gateway("edge/egde")]), NOTHING);
}
