//! Filters of backends, and the shares and places of mirrors.

use std::process::Command;

use super::{Edge, ONE, path, route};
use crate::support::eventually;

fn mirror(to: &str, share: &str) -> String {
    format!(
        "{{type: RequestMirror, requestMirror: {{backendRef: {{name: {to}, port: 80}}{share}}}}}"
    )
}

fn set(value: &str) -> String {
    format!(
        "{{type: RequestHeaderModifier, requestHeaderModifier: {{set: [{{name: x-a, value: {value}}}]}}}}"
    )
}

/// Rule for a prefix with these filters and backends.
fn rule(prefix: &str, filters: &[String], backends: &str) -> String {
    let (matched, filters) = (path("PathPrefix", prefix), filters.join(", "));
    format!("{{matches: [{{{matched}}}], filters: [{filters}], backendRefs: [{backends}]}}")
}

fn backend(name: &str, weight: u32, filters: &[String]) -> String {
    let filters = filters.join(", ");
    format!("{{name: {name}, port: 80, weight: {weight}, filters: [{filters}]}}")
}

const REWRITE: &str = "{type: URLRewrite, urlRewrite: {hostname: inner.test, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}";
const REDIRECT: &str =
    "{type: RequestRedirect, requestRedirect: {hostname: other.test, port: 8080, statusCode: 307}}";

#[test]
fn filters_of_a_backend_apply_to_its_share_alone() {
    let rules = [rule(
        "/",
        &[
            set("rule"),
            "{type: URLRewrite, urlRewrite: {hostname: rule.test}}".to_owned(),
        ],
        &[
            backend("a", 1, &[set("backend"), REWRITE.to_owned()]),
            backend("b", 1, &[]),
            // a redirect needs no backend that exists
            backend("none", 1, &[REDIRECT.to_owned()]),
        ]
        .join(", "),
    )];
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    let mut answers = [0; 3];
    for _ in 0..300 {
        let reply = edge.send("GET", "shop.test", "/x?q", "");
        answers[match (reply.status, &*reply.body) {
            (200, b"a") => 0,
            (200, b"b") => 1,
            _ => {
                assert_eq!(reply.status, 307);
                assert!(
                    reply.has("location: http://other.test:8080/x?q"),
                    "{reply:?}"
                );
                2
            }
        }] += 1;
    }
    // a share of 100 has a standard deviation of 8.2
    assert!(
        answers.iter().all(|one| (50..150).contains(one)),
        "{answers:?}"
    );
    for (at, host, path, value) in [
        (0, "inner.test", "/new/x?q", "backend"),
        (1, "rule.test", "/x?q", "rule"),
    ] {
        let all = edge.origins[at].seen();
        assert_eq!(all.len(), answers[at]);
        for seen in all {
            assert_eq!((seen.host(), seen.path()), (host, path));
            assert_eq!(seen.header("x-a"), Some(value));
        }
    }
}

#[test]
fn filters_of_the_only_backend_follow_those_of_the_rule() {
    let old = "{type: URLRewrite, urlRewrite: {hostname: rule.test, path: {type: ReplaceFullPath, replaceFullPath: /full}}}";
    let cors = "{type: CORS, cors: {allowOrigins: ['*']}}";
    let extension = "{type: ExtensionRef, extensionRef: {group: a.test, kind: Own, name: a}}";
    let rules = [
        rule(
            "/a",
            &[set("rule"), old.to_owned()],
            &backend("a", 1, &[REWRITE.to_owned()]),
        ),
        rule("/r", &[], &backend("a", 1, &[REDIRECT.to_owned()])),
        rule("/z", &[], &backend("a", 0, &[REDIRECT.to_owned()])),
        rule("/c", &[], &backend("a", 1, &[cors.to_owned()])),
        rule(
            "/e",
            &[],
            &backend("a", 1, &[REDIRECT.to_owned(), extension.to_owned()]),
        ),
    ];
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    for (target, status) in [
        ("/r", 307),
        ("/z", 500),
        ("/c", 500),
        ("/e", 500),
        ("/a/1", 200),
    ] {
        let reply = edge.send("GET", "shop.test", target, "");
        assert_eq!(reply.status, status, "{target}");
    }
    let seen = edge.origins[0].only();
    assert_eq!((seen.host(), seen.path()), ("inner.test", "/new/1"));
    assert_eq!(seen.header("x-a"), Some("rule"));
}

#[test]
fn mirror_of_a_backend_copies_its_share_alone() {
    let rules = rule(
        "/",
        &[],
        &[
            backend("a", 1, &[mirror("c", ""), set("late")]),
            backend("b", 1, &[]),
        ]
        .join(", "),
    );
    let edge = Edge::start(ONE, &[route("r", "", &rules)]);
    for _ in 0..40 {
        assert_eq!(edge.send("GET", "shop.test", "/", "").status, 200);
    }
    let seen = |at: usize| edge.origins[at].seen();
    eventually("each request of the share is copied", || {
        seen(2).len() == seen(0).len()
    });
    assert_eq!(seen(0).len() + seen(1).len(), 40);
    assert!(seen(0).iter().all(|one| one.header("x-a") == Some("late")));
    assert!(seen(2).iter().all(|one| one.header("x-a").is_none()));
}

#[test]
fn mirrors_are_drawn_one_by_one_by_percent_or_fraction() {
    let part =
        |numerator: u32| format!(", fraction: {{numerator: {numerator}, denominator: 1000}}");
    let rules = [
        rule(
            "/whole",
            &[mirror("b", ", percent: 100"), mirror("c", &part(0))],
            &backend("a", 1, &[]),
        ),
        rule(
            "/none",
            &[mirror("b", ", percent: 0"), mirror("c", &part(1000))],
            &backend("a", 1, &[]),
        ),
        rule(
            "/half",
            &[mirror("b", ", percent: 50"), mirror("c", &part(500))],
            &backend("a", 1, &[]),
        ),
    ];
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    let copies = |at: usize, prefix: &str| {
        let seen = edge.origins[at].seen();
        let paths = seen.iter().map(|one| one.path().to_owned());
        let mut paths: Vec<String> = paths.filter(|one| one.starts_with(prefix)).collect();
        paths.sort();
        paths
    };
    let send = |prefix: &str, count: u32| {
        for number in 0..count {
            assert_eq!(edge.answer("shop.test", &format!("{prefix}/{number}")), "a");
        }
    };
    send("/whole", 60);
    send("/none", 60);
    send("/half", 200);
    let done = || {
        edge.proxy
            .metric("strait_mirror_requests_total", &[("result", "completed")])
    };
    let all = || edge.origins[1].seen().len() + edge.origins[2].seen().len();
    eventually("the copies are complete", || {
        copies(1, "/whole").len() == 60
            && copies(2, "/none").len() == 60
            && edge.proxy.metric("strait_mirror_requests_active", &[]) == 0.0
            && done() == all() as f64
    });
    assert_eq!(
        (copies(2, "/whole").len(), copies(1, "/none").len()),
        (0, 0)
    );
    let (first, second) = (copies(1, "/half"), copies(2, "/half"));
    // 100 of 200 have a standard deviation of 7
    for share in [&first, &second] {
        assert!((60..140).contains(&share.len()), "{}", share.len());
    }
    // one draw for both would copy the same requests
    let common = first.iter().filter(|one| second.contains(one)).count();
    assert!((20..85).contains(&common), "{common}");
}

#[test]
fn mirror_copies_the_request_as_it_is_at_its_place() {
    let rules = rule(
        "/old",
        &[
            mirror("b", ""),
            set("one"),
            mirror("c", ""),
            REWRITE.to_owned(),
        ],
        &backend("a", 1, &[]),
    );
    let edge = Edge::start(ONE, &[route("r", "", &rules)]);
    assert_eq!(edge.answer("shop.test", "/old/x"), "a");
    eventually("the mirrors get copies", || {
        edge.origins[1..].iter().all(|one| one.seen().len() == 1)
    });
    for (at, host, path, value) in [
        (0, "inner.test", "/new/x", Some("one")),
        (1, "shop.test", "/old/x", None),
        (2, "shop.test", "/old/x", Some("one")),
    ] {
        let seen = edge.origins[at].only();
        assert_eq!((seen.host(), seen.path()), (host, path), "{at}");
        assert_eq!(seen.header("x-a"), value, "{at}");
    }
}

#[test]
fn explain_shows_the_filters_of_backends() {
    let backends = [
        backend("a", 3, &[REWRITE.to_owned(), mirror("c", ", percent: 20")]),
        backend("b", 1, &[REDIRECT.to_owned()]),
    ];
    let edge = Edge::start(
        ONE,
        &[route("r", "", &rule("/old", &[], &backends.join(", ")))],
    );
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["explain", "--config"])
        .arg(edge.proxy.mesh())
        .args(["GET", &format!("http://{}/old/x", edge.proxy.edge)])
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    for part in [
        "path /old/x -> /new/x",
        "authority becomes inner.test",
        "mirror 20 % to outbound|80||c.edge.svc",
        "redirected with 307 to http://other.test:8080/old/x",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}
