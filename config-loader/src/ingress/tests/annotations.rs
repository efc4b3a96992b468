use super::*;

fn rule(annotations: &str) -> String {
    let text = ingress("shop/a", annotations, &rules("x.example", &["p / web"]));
    let first = routes(&text, &IngressSettings::default()).remove(0);
    first.replace("shop/a x.example http: PathPrefix:/", "")
}

fn marks(annotations: &str) -> Value {
    let text = ingress("shop/a", annotations, &rules("x.example", &["p / web"]));
    let (translation, _) = expanded(&text, &IngressSettings::default());
    let route = translation
        .objects
        .iter()
        .find(|one| one.kind == Kind::HTTPRoute)
        .unwrap();
    let mut annotations = route.to_value()["metadata"]["annotations"].clone();
    annotations
        .as_object_mut()
        .unwrap()
        .remove("strait.io/missing-backend");
    annotations
}

fn service(annotations: &str) -> Value {
    let text = ingress("shop/a", annotations, &rules("x.example", &["p / web"]));
    let (translation, _) = expanded(&text, &IngressSettings::default());
    let rule = translation
        .objects
        .iter()
        .find(|one| one.kind == Kind::DestinationRule);
    let rule = rule.map(Translated::to_value).unwrap_or_default();
    rule["spec"]["trafficPolicy"]["portLevelSettings"][0].clone()
}

#[test]
fn annotations_become_filters() {
    for (annotations, expected) in [
        (
            "permanent-redirect: https://y.example/z",
            " {\"path\":{\"type\":\"ReplaceFullPath\",\"replaceFullPath\":\"/z\"},\"statusCode\":301,\"scheme\":\"https\",\"hostname\":\"y.example\"} ->",
        ),
        (
            "permanent-redirect: https://y.example; permanent-redirect-code: 308",
            " {\"path\":{\"type\":\"ReplaceFullPath\",\"replaceFullPath\":\"/\"},\"statusCode\":308,\"scheme\":\"https\",\"hostname\":\"y.example\"} ->",
        ),
        (
            "temporal-redirect: http://y.example:8080/; permanent-redirect: https://z.example",
            " {\"path\":{\"type\":\"ReplaceFullPath\",\"replaceFullPath\":\"/\"},\"statusCode\":302,\"scheme\":\"http\",\"hostname\":\"y.example\",\"port\":8080} ->",
        ),
        (
            "permanent-redirect: https://y.example$request_uri",
            " 500 ->",
        ),
        (
            "upstream-vhost: y.example",
            " {\"hostname\":\"y.example\"} -> web:80",
        ),
        (
            "x-forwarded-prefix: /x",
            " {\"set\":[{\"name\":\"X-Forwarded-Prefix\",\"value\":\"/x\"}]} -> web:80",
        ),
        (
            "rewrite-target: /new",
            " {\"path\":{\"type\":\"ReplaceFullPath\",\"replaceFullPath\":\"/new\"}} -> web:80",
        ),
        (
            "mirror-target: http://next.shop.svc.cluster.local$request_uri",
            " {\"backendRef\":{\"name\":\"next\",\"port\":80}} -> web:80",
        ),
        (
            "enable-cors: true; cors-allow-origin: https://a.example, https://b.example; cors-max-age: 60; cors-allow-headers: X-A; cors-allow-methods: GET; cors-allow-credentials: false",
            " {\"allowOrigins\":[\"https://a.example\",\"https://b.example\"],\"allowMethods\":[\"GET\"],\"allowHeaders\":[\"X-A\"],\"allowCredentials\":false,\"maxAge\":60} -> web:80",
        ),
        (
            "proxy-next-upstream: error http_502 non_idempotent; proxy-next-upstream-tries: 2",
            " -> web:80 retry {\"attempts\":1,\"codes\":[502]}",
        ),
        ("proxy-next-upstream: off", " -> web:80"),
        ("auth-type: basic", " 500 ->"),
        ("auth-url: https://$host/oauth2/auth", " 500 ->"),
        ("auth-url: https://auth.plain.test/check", " 500 ->"),
        (
            "auth-url: http://auth/; auth-signin: https://$upstream/",
            " 500 ->",
        ),
        ("backend-protocol: HTTPS; proxy-ssl-verify: on", " 500 ->"),
        (
            "backend-protocol: HTTPS; proxy-ssl-secret: other/pair",
            " 500 ->",
        ),
        (
            "custom-headers: shop/headers",
            " {\"set\":[{\"name\":\"X-Frame-Options\",\"value\":\"DENY\"}]} -> web:80",
        ),
        ("custom-headers: none", " -> web:80"),
        ("enable-modsecurity: false", " -> web:80"),
        ("whitelist-source-range: nonsense", " 500 ->"),
        ("use-regexp: true", " -> web:80"),
    ] {
        assert_eq!(rule(annotations), expected, "{annotations}");
    }
}

#[test]
fn methods_that_are_not_idempotent_are_not_retried() {
    let text = ingress(
        "shop/a",
        "proxy-next-upstream: error http_503",
        &rules("x.example", &["p / web"]),
    );
    assert_eq!(
        routes(&text, &IngressSettings::default()),
        [
            "shop/a x.example http: PathPrefix:/ PATCH|PathPrefix:/ POST -> web:80",
            "shop/a x.example http: PathPrefix:/ -> web:80 retry {\"attempts\":2,\"codes\":[503]}",
        ]
    );
}

#[test]
fn annotations_become_annotations_of_routes() {
    for (annotations, expected) in [
        (
            "proxy-body-size: 8m",
            json!({"strait.io/max-request-bytes": "8388608"}),
        ),
        ("proxy-body-size: 0", json!({})),
        (
            "whitelist-source-range: 192.0.2.0/24, 198.51.100.7",
            json!({"strait.io/allowed-sources": "192.0.2.0/24,198.51.100.7/32"}),
        ),
        (
            "denylist-source-range: 192.0.2.0/24",
            json!({"strait.io/denied-sources": "192.0.2.0/24"}),
        ),
        (
            "limit-rps: 10",
            json!({"strait.io/client-rate": "50/5s", "strait.io/client-rate-status": "503"}),
        ),
        (
            "limit-rpm: 30; limit-burst-multiplier: 2",
            json!({"strait.io/client-rate": "60/120s", "strait.io/client-rate-status": "503"}),
        ),
        (
            "backend-protocol: GRPC",
            json!({"strait.io/backend-protocol": "http2"}),
        ),
        (
            "proxy-read-timeout: 5",
            json!({"strait.io/idle-timeout": "5s"}),
        ),
        (
            "auth-url: http://auth.login.svc.cluster.local:4180/check; auth-method: HEAD; auth-always-set-cookie: true",
            json!({
                "strait.io/ext-authz": "http://auth.login.svc.cluster.local:4180/check",
                "strait.io/ext-authz-method": "HEAD",
                "strait.io/ext-authz-cookies": "always",
            }),
        ),
        (
            "auth-url: http://auth/check; auth-response-headers: X-User, X-Email; auth-signin: https://$host/start; auth-signin-redirect-param: to",
            json!({
                "strait.io/ext-authz": "http://auth/check",
                "strait.io/ext-authz-headers": "X-User,X-Email",
                "strait.io/ext-authz-sign-in": "https://$host/start?to=$scheme://$http_host$escaped_request_uri",
            }),
        ),
        ("auth-signin: https://a.test", json!({})),
    ] {
        assert_eq!(marks(annotations), expected, "{annotations}");
    }
}

#[test]
fn annotations_become_settings_of_services() {
    let port = json!({"number": 80});
    for (annotations, expected) in [
        (
            "backend-protocol: HTTPS; proxy-ssl-name: y.example",
            json!({"tls": {"mode": "SIMPLE", "insecureSkipVerify": true, "sni": "y.example"}, "port": port}),
        ),
        (
            "backend-protocol: HTTPS; proxy-ssl-secret: shop/pair; proxy-ssl-verify: on",
            json!({"tls": {"mode": "MUTUAL", "credentialName": "kubernetes://shop/pair", "subjectAltNames": ["web.shop.svc"]}, "port": port}),
        ),
        (
            "backend-protocol: GRPCS; proxy-ssl-secret: shop/ca; proxy-ssl-verify: on; proxy-ssl-name: y.example",
            json!({"tls": {"mode": "SIMPLE", "credentialName": "kubernetes://shop/ca", "subjectAltNames": ["y.example"], "sni": "y.example"}, "port": port}),
        ),
        (
            "backend-protocol: HTTPS; proxy-ssl-secret: shop/pair",
            json!({"tls": {"mode": "MUTUAL", "credentialName": "kubernetes://shop/pair", "insecureSkipVerify": true}, "port": port}),
        ),
        (
            "proxy-ssl-secret: shop/pair; proxy-ssl-verify: on",
            Value::Null,
        ),
        (
            "affinity: cookie; affinity-mode: persistent; session-cookie-name: route; session-cookie-max-age: 60",
            json!({"loadBalancer": {"consistentHash": {"httpCookie": {"name": "route", "path": "/", "ttl": "60s"}}}, "port": port}),
        ),
        (
            "upstream-hash-by: $http_x_user",
            json!({"loadBalancer": {"consistentHash": {"httpHeaderName": "x-user"}}, "port": port}),
        ),
        (
            "upstream-hash-by: $remote_addr",
            json!({"loadBalancer": {"consistentHash": {"useSourceIp": true}}, "port": port}),
        ),
        (
            "load-balance: ewma",
            json!({"loadBalancer": {"simple": "LEAST_REQUEST"}, "port": port}),
        ),
        (
            "proxy-connect-timeout: 3",
            json!({"connectionPool": {"tcp": {"connectTimeout": "3s"}}, "port": port}),
        ),
        ("proxy-ssl-name: y.example", Value::Null),
    ] {
        assert_eq!(service(annotations), expected, "{annotations}");
    }
}

/// Values with which an annotation asks for something.
fn value_of(name: &str) -> &'static str {
    match name {
        "enable-modsecurity" | "enable-owasp-core-rules" => "true",
        "limit-connections" | "global-rate-limit" => "5",
        "satisfy" => "any",
        _ => "x",
    }
}

#[test]
fn every_annotation_has_the_outcome_of_the_table() {
    for (name, treatment, _) in KNOWN {
        let annotation = format!("{name}: {}", value_of(name));
        let found = findings(
            &ingress("shop/a", &annotation, &rules("x.example", &["p / web"])),
            &IngressSettings::default(),
        );
        let is = |code: &str| found.iter().any(|one| one.starts_with(code));
        match treatment {
            Treatment::Closes => {
                assert!(is("IG041"), "{name}: {found:?}");
                assert_eq!(rule(&annotation), " 500 ->", "{name}");
            }
            Treatment::Drops => {
                assert!(is("IG042"), "{name}: {found:?}");
                assert_eq!(rule(&annotation), " -> web:80", "{name}");
            }
            Treatment::Follows => assert!(!is("IG040"), "{name}: {found:?}"),
        }
    }
    let text = ingress(
        "shop/a",
        "use-regexp: true",
        &rules("x.example", &["p / web"]),
    );
    let (translation, _) = expanded(&text, &IngressSettings::default());
    assert_eq!(translation.findings[0].code.0, "IG040");
    assert_eq!(
        translation.findings[0].help.as_deref(),
        Some("did you mean `use-regex`?")
    );
}

#[test]
fn closed_ingress_answers_500_and_others_go_on() {
    let closed = ingress(
        "shop/a",
        "server-snippet: 'return 200;'",
        &rules("x.example", &["p /a web"]),
    );
    let open = ingress("shop/b", "", &rules("x.example", &["p /b web"]));
    let all = routes(&format!("{closed}{open}"), &IngressSettings::default());
    assert_eq!(all[0], "shop/a x.example http: PathPrefix:/a 500 ->");
    assert!(
        all.contains(&"shop/b x.example http: PathPrefix:/b -> web:80".to_owned()),
        "{all:?}"
    );
}

#[test]
fn names_with_and_without_www_and_the_root_are_redirected() {
    let text = ingress(
        "shop/a",
        "from-to-www-redirect: true; app-root: /app",
        &rules("x.example", &["p / web"]),
    );
    assert_eq!(
        routes(&text, &IngressSettings::default()),
        [
            "shop/a x.example http: PathPrefix:/ -> web:80",
            "shop/a x.example http: Exact:/ {\"path\":{\"type\":\"ReplaceFullPath\",\"replaceFullPath\":\"/app\"},\"statusCode\":302} ->",
            "shop/a-2 www.x.example http:  {\"hostname\":\"x.example\",\"statusCode\":308} ->",
        ]
    );
}

#[test]
fn translated_objects_are_kept_and_have_the_place_of_their_ingress() {
    let text = "# first line\n---\n\n".to_owned()
        + "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: shop}\nspec:\n  ingressClassName: strait\n  rules:\n  - host: x.example\n    http:\n      paths:\n      - {path: /a, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}\n      - {path: /b, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}\n";
    let mut found = Diagnostics::default();
    let set = Arc::new(load_bytes(
        "a.yaml",
        format!("{text}{SERVICES}").as_bytes(),
        &mut found,
    ));
    let settings = IngressSettings::default();
    let mut translator = Translator::default();
    translator.update(&set, Some(&settings));
    let first = Arc::clone(&translator.expanded().set);
    let route = first.http_routes.values().next().unwrap();
    let lines: Vec<u32> = route
        .spec
        .rules
        .iter()
        .map(|rule| route.line_of(rule.line))
        .collect();
    assert_eq!(lines[..2], [13, 14]);
    assert_eq!(&*route.provenance.file, "a.yaml");
    assert_eq!(
        route.provenance.written_as.as_ref().unwrap().to_string(),
        "Ingress/shop/a"
    );
    let mut other = ResourceSet::clone(&set);
    other.revision += 1;
    let service = other.services.values().next().unwrap().clone();
    other.services.insert(Name::new("new", "web"), service);
    translator.update(&Arc::new(other), Some(&settings));
    let second = &translator.expanded().set;
    assert!(Arc::ptr_eq(
        route,
        second.http_routes.values().next().unwrap()
    ));
    translator.update(&set, None);
    assert_eq!(translator.expanded().set.http_routes.len(), 0);
}

#[test]
fn translated_object_has_its_name_again_once_the_written_one_is_gone() {
    let text = ingress("shop/a", "", &rules("x.example", &["p / web"]));
    let route = "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a, namespace: shop}, \
                 spec: {rules: [{}]}}\n";
    let load = |text: &str| {
        let text = format!("{text}{SERVICES}");
        Arc::new(load_bytes(
            "a.yaml",
            text.as_bytes(),
            &mut Diagnostics::default(),
        ))
    };
    let without = load(&text);
    // nothing else changes
    let with = Arc::new(ResourceSet {
        http_routes: load(&format!("{text}{route}")).http_routes.clone(),
        ..ResourceSet::clone(&without)
    });
    let settings = IngressSettings::default();
    let mut translator = Translator::default();
    let mut names = |set: &Arc<ResourceSet>| -> Vec<String> {
        translator.update(set, Some(&settings));
        let routes = translator.expanded().set.http_routes.keys();
        routes.map(|name| name.name.to_string()).collect()
    };
    assert_eq!(names(&without), ["a"]);
    assert_eq!(names(&with), ["a", "a-2"]);
    assert_eq!(names(&without), ["a"]);
    // a Gateway that somebody has written is older
    let gateways = &translator.expanded().set.kubernetes_gateways;
    let created = gateways.values().next().unwrap().created;
    assert!(created.is_some_and(|seconds| seconds > 253_000_000_000));
}
