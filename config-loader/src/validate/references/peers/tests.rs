use crate::diagnostic::Diagnostics;
use crate::validate::references::check;
use crate::{Fleet, ReadOptions, load_bytes};

/// Returns code, field and message of each diagnostic about peers, with `mesh` as the root namespace.
fn found(documents: &[String]) -> Vec<String> {
    let mut errors = Diagnostics::default();
    let text = documents.join("---\n");
    let set = load_bytes("a.yaml", text.as_bytes(), &mut errors);
    let fleet = Fleet {
        root_namespace: Some("mesh".into()),
        ..Fleet::default()
    };
    let found = check(&set, ReadOptions::default(), &fleet);
    let ours = found
        .into_iter()
        .filter(|found| found.code.0.starts_with("X33"));
    let told = ours.map(|found| {
        assert!(found.help.is_some(), "{}", found.message);
        format!("{} {}: {}", found.code, found.field, found.message)
    });
    told.collect()
}

fn policy(name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').expect("namespace/name");
    format!(
        "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\n\
         metadata: {{name: {name}, namespace: {namespace}}}\nspec: {{{spec}}}\n"
    )
}

/// Returns the Service `cart`, at port 8080 of the workloads `app: cart`.
fn service() -> String {
    "apiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\n\
     spec: {selector: {app: cart}, ports: [{name: http, port: 80, targetPort: 8080}]}\n"
        .to_owned()
}

/// Returns a DestinationRule for that service.
fn rule(spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: cart, namespace: shop}}\n\
         spec: {{host: cart, {spec}}}\n"
    )
}

const CART: &str = "selector: {matchLabels: {app: cart}}";
const STRICT: &str = "mtls: {mode: STRICT}";

#[test]
fn younger_policy_of_the_same_workloads_is_reported() {
    let both =
        |first: &str, second: &str| found(&[policy("shop/a", first), policy("shop/b", second)]);
    assert_eq!(
        both(STRICT, ""),
        [
            "X330 metadata.name: PeerAuthentication/shop/a is older and decides for namespace `shop`: this policy has \
          no effect"
        ]
    );
    let more = "selector: {matchLabels: {app: cart, version: v1}}";
    assert_eq!(
        both(CART, more),
        [
            "X330 metadata.name: PeerAuthentication/shop/a is older and decides for workloads that both select"
        ]
    );
    assert!(both(STRICT, CART).is_empty());
    assert!(both("selector: {matchLabels: {app: other}}", CART).is_empty());
    assert!(found(&[policy("shop/a", STRICT), policy("bank/a", STRICT)]).is_empty());
}

#[test]
fn selector_in_the_root_namespace_is_reported() {
    assert_eq!(
        found(&[policy("mesh/a", CART)]),
        [
            "X333 spec.selector: a selector in the root namespace selects no workload: this policy has no effect"
        ]
    );
    assert!(found(&[policy("mesh/a", STRICT)]).is_empty());
}

#[test]
fn port_that_no_service_has_is_reported() {
    let with = |port: u16| {
        let ports = format!("{CART}, portLevelMtls: {{{port}: {{mode: DISABLE}}}}");
        found(&[service(), policy("shop/a", &ports)])
    };
    assert_eq!(
        with(80),
        ["X331 spec.portLevelMtls.80: no service of these workloads has target port 80"]
    );
    assert!(with(8080).is_empty());
}

#[test]
fn plain_text_to_strict_workloads_is_reported() {
    let plain = "trafficPolicy: {tls: {mode: DISABLE}}";
    let said = |by: &str, path: &str| {
        format!(
            "X332 {path}.tls.mode: port 80 of `cart.shop.svc.cluster.local` requires mutual TLS \
             (PeerAuthentication/{by}): requests in plain text will get 503 UC"
        )
    };
    for name in ["shop/a", "mesh/a"] {
        let found = found(&[service(), rule(plain), policy(name, STRICT)]);
        assert_eq!(found, [said(name, "spec.trafficPolicy")]);
    }
    let of_port = format!("{CART}, portLevelMtls: {{8080: {{mode: STRICT}}}}");
    let found_of_port = found(&[service(), rule(plain), policy("shop/a", &of_port)]);
    assert_eq!(found_of_port, [said("shop/a", "spec.trafficPolicy")]);
    let of_subset =
        "subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {tls: {mode: DISABLE}}}]";
    let v1 = "selector: {matchLabels: {version: v1}}, mtls: {mode: STRICT}";
    let found_of_subset = found(&[service(), rule(of_subset), policy("shop/a", v1)]);
    assert_eq!(
        found_of_subset,
        [said("shop/a", "spec.subsets[0].trafficPolicy")]
    );

    let mutual = rule("trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}");
    assert!(found(&[service(), mutual, policy("shop/a", STRICT)]).is_empty());
    let permissive = "mtls: {mode: PERMISSIVE}";
    assert!(found(&[service(), rule(plain), policy("shop/a", permissive)]).is_empty());
    assert!(found(&[service(), rule(plain), policy("bank/a", STRICT)]).is_empty());
}
