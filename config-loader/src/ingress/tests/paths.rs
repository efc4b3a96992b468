use super::*;

#[test]
fn paths_of_a_host_are_merged_over_namespaces_and_the_older_ingress_wins() {
    let a = ingress("shop/a", "", &rules("x.example", &["p /a web", "e /a web"]));
    let b = ingress(
        "other/b",
        "",
        &rules("x.example", &["p /a/ web", "p /b web"]),
    );
    let text = format!("{a}{b}");
    let settings = IngressSettings::default();
    assert_eq!(
        routes(&text, &settings),
        [
            "other/b x.example http: PathPrefix:/b -> web:80",
            "shop/a x.example http: PathPrefix:/a -> web:80",
            "shop/a x.example http: Exact:/a -> web:80",
            "shop/a x.example http: PathPrefix:/ 404 ->",
        ]
    );
    let found = findings(&text, &settings);
    assert!(
        found
            .iter()
            .any(|one| one.starts_with("IG010 `/a/` of x.example is a path of Ingress/shop/a")),
        "{found:?}"
    );
    let first = IngressSettings {
        host_owner: HostOwner::First,
        ..IngressSettings::default()
    };
    assert_eq!(routes(&text, &first).len(), 3);
    assert!(
        findings(&text, &first)
            .iter()
            .any(|one| one.starts_with("IG013 "))
    );
}

#[test]
fn default_backend_takes_what_no_path_of_the_ingress_matches() {
    let spec = format!(
        "defaultBackend: {{service: {{name: next, port: {{name: http}}}}}}, {}",
        rules("*.x.example", &["p /a web"])
    );
    let text = ingress("shop/a", "", &spec);
    assert_eq!(
        routes(&text, &IngressSettings::default()),
        [
            "shop/a *.x.example http: PathPrefix:/a -> web:80",
            "shop/a *.x.example http: PathPrefix:/ -> next:80",
            "shop/a-2 - http: PathPrefix:/ -> next:80",
        ]
    );
    let (translation, _) = expanded(&text, &IngressSettings::default());
    let route = translation
        .objects
        .iter()
        .find(|one| one.kind == Kind::HTTPRoute)
        .unwrap();
    let annotations = &route.to_value()["metadata"]["annotations"];
    assert_eq!(annotations["strait.io/wildcard"], "one-label");
    assert_eq!(annotations["strait.io/missing-backend"], "503");
}

#[test]
fn backends_that_cannot_be_used_are_reported() {
    let path = |backend: &str| {
        let spec = format!(
            "rules: [{{host: x.example, http: {{paths: [{{path: /, pathType: Prefix, backend: {{{backend}}}}}]}}}}]"
        );
        ingress("shop/a", "", &spec)
    };
    let settings = IngressSettings::default();
    for (backend, rule, code) in [
        (
            "service: {name: none, port: {number: 80}}",
            "-> none:80",
            "IG011",
        ),
        (
            "service: {name: none, port: {name: http}}",
            "503 ->",
            "IG011",
        ),
        (
            "service: {name: web, port: {number: 99}}",
            "-> web:99",
            "IG011",
        ),
        (
            "service: {name: web, port: {name: none}}",
            "503 ->",
            "IG011",
        ),
        (
            "resource: {apiGroup: a.example, kind: Bucket, name: b}",
            "500 ->",
            "IG012",
        ),
    ] {
        let text = path(backend);
        assert!(routes(&text, &settings)[0].ends_with(rule), "{backend}");
        assert!(findings(&text, &settings)[0].starts_with(code), "{backend}");
    }
    let named = path("service: {name: web, port: {name: admin}}");
    assert!(routes(&named, &settings)[0].ends_with("-> web:81"));
}

#[test]
fn expressions_are_those_of_the_ingress_or_of_the_host() {
    let a = ingress(
        "shop/a",
        "rewrite-target: /$2",
        &rules(
            "x.example",
            &["i /api(/|$)(.*) web", "p /old(/.*) web", "e /e web"],
        ),
    );
    let b = ingress("shop/b", "", &rules("x.example", &["p /b web"]));
    let text = format!("{a}{b}");
    let settings = IngressSettings::default();
    let full = |path: &str| {
        format!("{{\"path\":{{\"type\":\"ReplaceFullPath\",\"replaceFullPath\":\"{path}\"}}}}")
    };
    assert_eq!(
        routes(&text, &settings),
        [
            "shop/a x.example http: RegularExpression:/api(/|$)(.*) -> web:80".to_owned(),
            "shop/a x.example http: RegularExpression:/old(/.*) -> web:80".to_owned(),
            format!("shop/a x.example http: Exact:/e {} -> web:80", full("/")),
            "shop/a x.example http: PathPrefix:/ 404 ->".to_owned(),
            "shop/b x.example http: PathPrefix:/b -> web:80".to_owned(),
        ]
    );
    let codes = |settings: &IngressSettings| -> Vec<String> {
        let found = findings(&text, settings);
        found.iter().map(|one| one[..5].to_owned()).collect()
    };
    assert_eq!(codes(&settings), ["IG052", "IG052", "IG052", "IG051"]);
    let host = IngressSettings {
        nginx_regex: NginxRegex::Host,
        ..IngressSettings::default()
    };
    let all = routes(&text, &host);
    assert!(
        all.contains(&"shop/b x.example http: RegularExpression:/b -> web:80".to_owned()),
        "{all:?}"
    );
    assert!(codes(&host).is_empty(), "{:?}", codes(&host));
    let (translation, _) = expanded(&text, &settings);
    let route = translation
        .objects
        .iter()
        .find(|one| one.kind == Kind::HTTPRoute)
        .unwrap();
    let annotations = &route.to_value()["metadata"]["annotations"];
    assert_eq!(annotations["strait.io/rewrite-path"], "/\\2");
    assert_eq!(annotations["strait.io/path-expressions"], "prefix");
}

#[test]
fn canary_is_decided_by_header_then_cookie_then_weight() {
    let path = &["p /a web"];
    let stable = ingress("shop/a", "", &rules("x.example", path));
    let canary = ingress(
        "shop/b",
        "canary: true; canary-weight: 30; canary-by-header: X-Canary; canary-by-cookie: canary; rewrite-target: /x",
        &rules("x.example", &["p /a next"]),
    );
    let text = format!("{canary}{stable}");
    let settings = IngressSettings::default();
    let cookie = |value: &str| format!("cookie=(?:.*;\\s*)?canary={value}(?:\\s*;.*)?");
    assert_eq!(
        routes(&text, &settings),
        [
            "shop/a x.example http: PathPrefix:/a X-Canary=always -> next:80".to_owned(),
            "shop/a x.example http: PathPrefix:/a X-Canary=never -> web:80".to_owned(),
            format!(
                "shop/a x.example http: PathPrefix:/a {} -> next:80",
                cookie("always")
            ),
            format!(
                "shop/a x.example http: PathPrefix:/a {} -> web:80",
                cookie("never")
            ),
            "shop/a x.example http: PathPrefix:/a -> web:80*70 next:80*30".to_owned(),
            "shop/a x.example http: PathPrefix:/ 404 ->".to_owned(),
        ]
    );
    let found = findings(&text, &settings);
    assert!(
        found[0].contains("a canary has the annotations of the stable Ingress"),
        "{found:?}"
    );
    assert!(
        findings(&canary, &settings)
            .iter()
            .any(|one| one.starts_with("IG014 "))
    );
    assert_eq!(routes(&canary, &settings), Vec::<String>::new());
}
