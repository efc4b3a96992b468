//! Tests of BackendTLSPolicies, as tables.

use super::*;
use crate::catalog::gateway_api::tests::{core, object, set};
use crate::catalog::gateway_api::{ReferenceProblem, backend};

const SYSTEM: &str = "wellKnownCACertificates: System";

/// Returns a policy that was created in a year.
fn policy(name: &str, year: u16, targets: &str, authorities: &str) -> String {
    let spec = format!("targetRefs: [{targets}], validation: {{hostname: a.test, {authorities}}}");
    let created = format!("metadata: {{creationTimestamp: '{year}-01-01T00:00:00Z', ");
    let text = object("BackendTLSPolicy", &format!("shop/{name}"), &spec);
    text.replace("metadata: {", &created)
}

fn target(name: &str, section: &str) -> String {
    let section = match section {
        "" => String::new(),
        section => format!(", sectionName: {section}"),
    };
    format!("{{group: '', kind: Service, name: {name}{section}}}")
}

fn references(names: &str) -> String {
    let names = names.split(' ').map(|name| match name.split_once('/') {
        None => format!("{{group: '', kind: ConfigMap, name: {name}}}"),
        Some((kind, name)) => format!("{{group: '', kind: {kind}, name: {name}}}"),
    });
    let names: Vec<String> = names.collect();
    format!("caCertificateRefs: [{}]", names.join(", "))
}

fn world(policies: &[String]) -> Vec<String> {
    let ports = "spec: {ports: [{name: one, port: 1}, {name: two, port: 2}]}";
    let pem = "ca.crt: '-----BEGIN CERTIFICATE-----'";
    let mut documents = vec![
        core("Service", "shop/cart", ports),
        core("ConfigMap", "shop/ca", &format!("data: {{{pem}}}")),
        core("ConfigMap", "shop/empty", "data: {ca.crt: ''}"),
        core("Secret", "shop/ca", &format!("stringData: {{{pem}}}")),
    ];
    documents.extend(policies.iter().cloned());
    documents
}

/// Describes what policies come to: the reason, and the targets that each decides.
fn judged(policies: &[String]) -> Vec<String> {
    let set = set(&world(policies));
    let all = set.backend_tls_policies.values();
    let lines = all.map(|policy| {
        let judged = judge(View::from(&set), policy);
        let reason = match &judged.problem {
            None => "Accepted".to_owned(),
            Some(PolicyProblem::Conflicted(with)) => format!("Conflicted {}", with.name),
            Some(other) => format!("{other:?}"),
        };
        let won = judged
            .targets
            .iter()
            .map(|one| if one.is_ok() { '+' } else { '-' });
        let problems = judged.reference_problems.iter();
        let problems = problems.map(|(target, problem)| {
            let problem = match problem {
                ReferenceProblem::InvalidKind => "kind",
                _ => "reference",
            };
            format!(" {}:{problem}", target.name)
        });
        let (won, problems): (String, String) = (won.collect(), problems.collect());
        format!("{} {reason} {won}{problems}", policy.id.name)
    });
    lines.collect()
}

#[test]
fn oldest_policy_has_a_target_and_a_port_comes_before_the_whole() {
    let whole = target("cart", "");
    let one = target("cart", "one");
    let both = format!("{one}, {}", target("cart", "two"));
    let of = |name: &str, year, targets: &str| policy(name, year, targets, SYSTEM);
    for (policies, expected) in [
        (vec![of("a", 2024, &whole)], vec!["a Accepted +"]),
        (
            vec![of("a", 2025, &whole), of("b", 2024, &whole)],
            vec!["a Conflicted b -", "b Accepted +"],
        ),
        (
            vec![of("a", 2024, &whole), of("b", 2024, &whole)],
            vec!["a Accepted +", "b Conflicted a -"],
        ),
        (
            vec![of("a", 2025, &one), of("b", 2024, &one)],
            vec!["a Conflicted b -", "b Accepted +"],
        ),
        (
            vec![of("a", 2025, &one), of("b", 2024, &whole)],
            vec!["a Accepted +", "b Accepted +"],
        ),
        (
            vec![of("a", 2025, &both), of("b", 2024, &one)],
            vec!["a Accepted -+", "b Accepted +"],
        ),
        (
            vec![of("a", 2025, &target("none", ""))],
            vec!["a TargetNotFound(\"Service shop/none does not exist\") -"],
        ),
        (
            vec![of("a", 2025, &target("cart", "none"))],
            vec!["a TargetNotFound(\"Service shop/cart has no port with the name `none`\") -"],
        ),
        (
            vec![of("a", 2025, "{group: a.b, kind: C, name: cart}")],
            vec!["a Invalid -"],
        ),
    ] {
        assert_eq!(judged(&policies), expected, "{policies:?}");
    }
}

#[test]
fn policy_needs_one_reference_to_ca_certificates_that_holds() {
    for (names, expected) in [
        ("ca", "a Accepted +"),
        ("Secret/ca", "a Accepted +"),
        ("none ca", "a Accepted + none:reference"),
        ("none", "a NoValidCaCertificate + none:reference"),
        ("empty", "a NoValidCaCertificate + empty:reference"),
        ("Pod/ca", "a NoValidCaCertificate + ca:kind"),
    ] {
        let policy = policy("a", 2024, &target("cart", ""), &references(names));
        assert_eq!(judged(&[policy]), [expected], "{names}");
    }
}

#[test]
fn backend_has_the_policy_of_its_port() {
    let rows = [
        (vec![], "HTTPRoute", 1, Ok(None)),
        (
            vec![policy("a", 2024, &target("cart", ""), SYSTEM)],
            "HTTPRoute",
            1,
            Ok(Some("a")),
        ),
        (
            vec![policy("a", 2024, &target("cart", "two"), SYSTEM)],
            "HTTPRoute",
            1,
            Ok(None),
        ),
        (
            vec![
                policy("a", 2024, &target("cart", ""), SYSTEM),
                policy("b", 2025, &target("cart", "two"), SYSTEM),
            ],
            "GRPCRoute",
            2,
            Ok(Some("b")),
        ),
        (
            vec![policy("a", 2024, &target("cart", ""), &references("none"))],
            "TLSRoute",
            1,
            Err("a"),
        ),
        (
            vec![policy("a", 2024, &target("cart", ""), &references("none"))],
            "TCPRoute",
            1,
            Ok(None),
        ),
        // a conflict is no way around the older policy
        (
            vec![
                policy("a", 2024, &target("cart", ""), &references("none")),
                policy("b", 2025, &target("cart", ""), SYSTEM),
            ],
            "HTTPRoute",
            1,
            Err("a"),
        ),
    ];
    for (policies, kind, port, expected) in rows {
        let hostnames = match kind {
            "TLSRoute" => "hostnames: [a.test], ",
            _ => "",
        };
        let spec = format!(
            "parentRefs: [{{name: main}}], {hostnames}rules: [{{backendRefs: [{{name: cart, port: {port}}}]}}]"
        );
        let mut documents = world(&policies);
        documents.push(object(kind, "shop/r", &spec));
        let set = set(&documents);
        let http = set
            .http_routes
            .values()
            .map(|route| (&route.id, &route.spec.rules[0].backends[0].target));
        let grpc = set
            .grpc_routes
            .values()
            .map(|route| (&route.id, &route.spec.rules[0].backends[0].target));
        let tls = set
            .tls_routes
            .values()
            .map(|route| (&route.id, &route.spec.rule.backends[0].target));
        let tcp = set
            .tcp_routes
            .values()
            .map(|route| (&route.id, &route.spec.rule.backends[0].target));
        let (id, target) = http.chain(grpc).chain(tls).chain(tcp).next().unwrap();
        let found = backend(View::from(&set), id, target, "cluster.local");
        let found = match &found {
            Ok(host) => Ok(host.tls_policy.as_ref().map(|policy| &*policy.name)),
            Err(ReferenceProblem::UnverifiableTls(policy)) => Err(&*policy.name),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{kind} {policies:?}");
    }
}

#[test]
fn websocket_over_tls_needs_tls_settings() {
    let wss = core(
        "Service",
        "shop/wss",
        "spec: {ports: [{name: ws, port: 1, appProtocol: kubernetes.io/wss}]}",
    );
    let route = object(
        "HTTPRoute",
        "shop/r",
        "parentRefs: [{name: main}], rules: [{backendRefs: [{name: wss, port: 1}]}]",
    );
    let rule = |tls: &str| {
        format!(
            "---\n{{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {{name: a, namespace: shop}}, \
             spec: {{host: wss, trafficPolicy: {{{tls}}}}}}}\n"
        )
    };
    for (more, expected) in [
        (None, false),
        (Some(rule("tls: {mode: DISABLE}")), false),
        (Some(rule("tls: {mode: SIMPLE}")), true),
        (
            Some(rule(
                "tls: {mode: SIMPLE}, portLevelSettings: [{port: {number: 1}, tls: {mode: DISABLE}}]",
            )),
            false,
        ),
        (Some(policy("a", 2024, &target("wss", "ws"), SYSTEM)), true),
    ] {
        let documents = [wss.clone(), route.clone()].into_iter().chain(more.clone());
        let set = set(&documents.collect::<Vec<_>>());
        let route = set.http_routes.values().next().unwrap();
        let target = &route.spec.rules[0].backends[0].target;
        let found = backend(View::from(&set), &route.id, target, "cluster.local");
        assert_eq!(found.is_ok(), expected, "{more:?} {found:?}");
    }
}
