use super::*;

const SECRET: &str =
    "---\n{apiVersion: v1, kind: Secret, metadata: {name: cert, namespace: shop}, data: {}}\n";

fn tls(spec: &str) -> String {
    format!("tls: [{{hosts: [x.example], secretName: cert}}], {spec}")
}

#[test]
fn hosts_with_a_certificate_have_a_listener_and_are_redirected_as_annotated() {
    let spec = tls(&rules("x.example", &["p / web"]));
    let settings = IngressSettings::default();
    let of =
        |annotations: &str| routes(&(ingress("shop/a", annotations, &spec) + SECRET), &settings);
    let both = ["shop/a x.example http,tls:a: PathPrefix:/ -> web:80"];
    let redirected = [
        "shop/a x.example tls:a: PathPrefix:/ -> web:80",
        "shop/a-2 x.example http: PathPrefix:/ {\"scheme\":\"https\",\"statusCode\":308} ->",
    ];
    assert_eq!(of(""), both);
    assert_eq!(of("ssl-redirect: false"), both);
    assert_eq!(of("ssl-redirect: true"), redirected);
    assert_eq!(of("force-ssl-redirect: true"), redirected);
    let of_nginx = |annotations: &str| {
        routes(
            &(of_class("nginx", "shop/a", annotations, &spec) + SECRET),
            &nginx(),
        )
    };
    assert_eq!(of_nginx(""), redirected);
    assert_eq!(of_nginx("ssl-redirect: false"), both);
}

#[test]
fn challenge_of_an_authority_is_served_over_http_beside_the_redirect() {
    let main = ingress(
        "shop/a",
        "ssl-redirect: true",
        &tls(&rules("x.example", &["p / web"])),
    );
    let solver = ingress(
        "shop/cm",
        "",
        &rules("x.example", &["e /.well-known/acme-challenge/token next"]),
    );
    let all = routes(
        &format!("{main}{solver}{SECRET}"),
        &IngressSettings::default(),
    );
    let challenge =
        "shop/cm x.example http,tls:a: Exact:/.well-known/acme-challenge/token -> next:80";
    assert!(all.contains(&challenge.to_owned()), "{all:?}");
}

#[test]
fn missing_certificates_are_reported() {
    let settings = IngressSettings::default();
    let spec = tls(&rules("x.example", &["p / web"]));
    let text = ingress("shop/a", "", &spec);
    assert!(findings(&text, &settings)[0].starts_with("IG020 Secret shop/cert"));
    let without = format!(
        "tls: [{{hosts: [x.example]}}], {}",
        rules("x.example", &["p / web"])
    );
    let text = ingress("shop/a", "", &without);
    assert!(findings(&text, &settings)[0].starts_with("IG021 "));
    let settings = IngressSettings {
        default_certificate: Some(Name::new("edge", "fallback")),
        ..IngressSettings::default()
    };
    assert!(findings(&text, &settings).is_empty());
    assert_eq!(
        routes(&text, &settings),
        ["shop/a x.example http,strait-ingress.default: PathPrefix:/ -> web:80"]
    );
    let (translation, _) = expanded(&text, &settings);
    let set = translation
        .objects
        .iter()
        .find(|one| one.kind == Kind::ListenerSet)
        .unwrap();
    assert_eq!(set.name, Name::new("edge", "strait-ingress.default"));
}

#[test]
fn client_certificates_that_another_listener_does_not_demand_close_the_ingress() {
    let clients = "auth-tls-secret: shop/ca";
    let plain = ingress("shop/a", "", &tls(&rules("x.example", &["p /a web"])));
    let guarded = ingress("shop/b", clients, &tls(&rules("x.example", &["p /b web"])));
    let settings = IngressSettings::default();
    let all = routes(&format!("{plain}{guarded}{SECRET}"), &settings);
    assert!(
        all.iter()
            .any(|one| one.starts_with("shop/b x.example tls:a: PathPrefix:/b 500")),
        "{all:?}"
    );
    let alone = routes(&format!("{guarded}{SECRET}"), &settings);
    assert_eq!(
        alone[0],
        "shop/b x.example http: PathPrefix:/ 404 ->".replace("http:", "http,tls:b:")
    );
    assert!(
        alone
            .iter()
            .any(|one| one.contains("tls:b: PathPrefix:/b -> web:80")),
        "{alone:?}"
    );
    assert!(
        alone
            .iter()
            .all(|one| !one.contains(" http: PathPrefix:/b -> web")),
        "{alone:?}"
    );
}

#[test]
fn tls_is_passed_through_by_host() {
    let text = ingress(
        "shop/a",
        "ssl-passthrough: true",
        &rules("x.example", &["p / web"]),
    );
    let (translation, expanded) = expanded(&text, &IngressSettings::default());
    let route = translation
        .objects
        .iter()
        .find(|one| one.kind == Kind::TLSRoute)
        .unwrap();
    let spec = &route.to_value()["spec"];
    assert_eq!(spec["hostnames"][0], "x.example");
    assert_eq!(spec["rules"][0]["backendRefs"][0]["name"], "web");
    assert_eq!(expanded.set.tls_routes.len(), 1);
}
