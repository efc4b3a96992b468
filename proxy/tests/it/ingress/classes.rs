//! Classes, the ways of ingress-nginx, and certificates that change.

use std::time::Duration;

use super::*;
use crate::support::tls::secret;

const TAKE_OVER: [&str; 2] = [
    "--ingress-controller",
    "strait.io/ingress-controller,k8s.io/ingress-nginx",
];

fn class(name: &str, controller: &str, is_default: bool) -> String {
    let annotation = match is_default {
        true => ", annotations: {ingressclass.kubernetes.io/is-default-class: \"true\"}",
        false => "",
    };
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {{name: {name}{annotation}}}\n\
         spec: {{controller: {controller}}}\n"
    )
}

fn classes(is_default: bool) -> [String; 3] {
    [
        class("strait", "strait.io/ingress-controller", is_default),
        class("nginx", "k8s.io/ingress-nginx", false),
        class("foreign", "example.com/ingress", false),
    ]
}

/// Returns an Ingress of another class than `strait`; an empty one is none.
fn of_class(class: &str, ingress: &str) -> String {
    let class = match class {
        "" => String::new(),
        class => format!("  ingressClassName: {class}\n"),
    };
    ingress.replace("  ingressClassName: strait\n", &class)
}

fn by_annotation(class: &str, name: &str) -> String {
    let text = of_class(
        "",
        &ingress(name, "", &rules(&format!("{name}.test"), &["p / a"])),
    );
    let annotation = format!("annotations: {{kubernetes.io/ingress.class: {class}}}");
    text.replace("annotations: {}", &annotation)
}

#[test]
fn class_decides_which_ingresses_are_served() {
    let named = |name: &str, class: &str| {
        let rules = rules(&format!("{name}.test"), &["p / a"]);
        of_class(class, &ingress(name, "", &rules))
    };
    let mut both = named("both", "nginx");
    both = both.replace(
        "annotations: {}",
        "annotations: {kubernetes.io/ingress.class: strait}",
    );
    let ingresses = [
        named("ours", "strait"),
        named("nginx", "nginx"),
        named("foreign", "foreign"),
        named("missing", "missing"),
        named("none", ""),
        by_annotation("strait", "annotated"),
        by_annotation("nginx", "annotated-nginx"),
        both,
    ];
    let served = |edge: &Edge, expected: &[&str]| {
        for name in [
            "ours",
            "nginx",
            "foreign",
            "missing",
            "none",
            "annotated",
            "annotated-nginx",
            "both",
        ] {
            let answer = match expected.contains(&name) {
                true => "a",
                false => "404",
            };
            assert_eq!(edge.answer(&format!("{name}.test"), "/"), answer, "{name}");
        }
    };
    let ours = ["ours", "annotated", "both"];
    let edge = Edge::start_beside(&[], &classes(false), &ingresses);
    served(&edge, &ours);
    // a class that becomes the default one, while the proxy runs
    let more = [class("main", "strait.io/ingress-controller", true)];
    edge.set(&[&ingresses[..], &more[..]].concat());
    served(&edge, &[&ours[..], &["none"]].concat());
    let without = Edge::start_beside(&["--ingress-without-class"], &classes(false), &ingresses);
    served(&without, &[&ours[..], &["none"]].concat());
    let taking = [&TAKE_OVER[..], &["--ingress-class", "strait,nginx"]].concat();
    let taking = Edge::start_beside(&taking, &classes(false), &ingresses);
    served(
        &taking,
        &[&ours[..], &["nginx", "annotated-nginx"]].concat(),
    );
}

#[test]
fn challenge_is_served_over_http_beside_the_redirect_of_its_host() {
    let web =
        "tls: [{hosts: [x.test], secretName: web}]\n  ".to_owned() + &rules("x.test", &["p / a"]);
    let web = of_class("nginx", &ingress("web", "", &web));
    let edge = Edge::start_beside(&TAKE_OVER, &classes(false), std::slice::from_ref(&web));
    let path = "/.well-known/acme-challenge/token";
    let redirected = |target: &str| {
        let reply = edge.send("GET", "x.test", target, "");
        assert_eq!(reply.status, 308);
        assert!(
            reply.has(&format!("location: https://x.test{target}")),
            "{reply:?}"
        );
    };
    redirected("/");
    redirected(path);
    let solver = ingress("solver", "", &rules("x.test", &[&format!("e {path} b")]));
    edge.set(&[web.clone(), of_class("nginx", &solver)]);
    edge.all("x.test", &[(path, "b")]);
    redirected("/");
    redirected("/.well-known/acme-challenge/other");
    edge.set(&[web]);
    redirected(path);
}

#[test]
fn surprises_of_nginx_are_as_documented_and_reported() {
    let tls = "tls: [{hosts: [t.test], secretName: web}]\n  ";
    let ingresses = [
        (
            "expression",
            "use-regex: true",
            rules("e.test", &["i /v[0-9] a"]),
        ),
        ("beside", "", rules("e.test", &["p /Plain b"])),
        ("slash", "", rules("s.test", &["p /x/ a"])),
        (
            "secured",
            "",
            format!("{tls}{}", rules("t.test", &["p / a"])),
        ),
        ("stable", "", rules("c.test", &["p / a"])),
        (
            "canary",
            "canary: true; canary-weight: 100; permanent-redirect: https://other.test",
            rules("c.test", &["p / b"]),
        ),
    ];
    let ingresses = ingresses
        .map(|(name, annotations, spec)| of_class("nginx", &ingress(name, annotations, &spec)));
    let answers = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&TAKE_OVER[..], arguments].concat();
        let edge = Edge::start_beside(&arguments, &classes(false), &ingresses);
        let all = [
            ("e.test", "/V1-and-more"),
            ("e.test", "/plain-or-not"),
            ("s.test", "/x"),
            ("s.test", "/x//y"),
            ("t.test", "/"),
            ("c.test", "/"),
        ];
        let all = all.map(|(host, target)| edge.answer(host, target));
        all.into()
    };
    assert_eq!(answers(&[]), ["a", "404", "a", "a", "308", "b"]);
    assert_eq!(
        answers(&["--ingress-nginx-regex", "host"]),
        ["a", "b", "a", "a", "308", "b"]
    );
    let edge = Edge::start_beside(&TAKE_OVER, &classes(false), &ingresses);
    let report = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["migrate", "ingress", "-o", "report", "-f"])
        .arg(edge.proxy.mesh().join("ingress.yaml"))
        .arg("-f")
        .arg(edge.proxy.mesh().join("mesh.yaml"))
        .args(TAKE_OVER)
        .output()
        .unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    for part in [
        "IG050",
        "IG052",
        "a canary has the annotations of the stable Ingress",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[tokio::test]
async fn certificate_of_all_hosts_is_rotated_without_a_restart() {
    let ca = Authority::new("ca");
    let pairs = [
        ca.server(&["one.test", "two.test"]),
        ca.server(&["one.test", "two.test"]),
    ];
    let rule = |host: &str| {
        let text = rules(host, &["p / a"]);
        text.strip_prefix("rules: [")
            .unwrap()
            .strip_suffix(']')
            .unwrap()
            .to_owned()
    };
    // without `hosts`, the certificate is that of the rules
    let spec = format!(
        "tls: [{{secretName: web}}]\n  rules: [{}, {}]",
        rule("one.test"),
        rule("two.test")
    );
    let edge = Edge::start(&[ingress("web", "", &spec)]);
    let visitor = Visitor::new(edge.secured, &ca);
    assert!(visitor.certificate("one.test").await.is_err());
    for pair in &pairs {
        let values = [("tls.crt", &*pair.chain), ("tls.key", &pair.key)];
        let text = secret("web", &values).replace("name: web", "name: web, namespace: shop");
        edge.proxy.write("secrets.yaml", text);
        for host in ["one.test", "two.test"] {
            let mut arrived = false;
            for _ in 0..200 {
                arrived = matches!(visitor.certificate(host).await, Ok(der) if der == pair.der);
                if arrived {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert!(arrived, "{host}");
            assert_eq!(visitor.status(host).await, 200);
        }
    }
    edge.proxy.remove("secrets.yaml");
    let mut is_closed = false;
    for _ in 0..200 {
        is_closed = visitor.certificate("one.test").await.is_err();
        if is_closed {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(is_closed, "a certificate that is gone closes its hosts");
}
