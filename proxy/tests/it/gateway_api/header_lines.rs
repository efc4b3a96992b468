//! Header fields of several lines in matches.

use super::{Edge, ONE, path, route, rule};

fn header(kind: &str, value: &str) -> String {
    format!("headers: [{{type: {kind}, name: v, value: '{value}'}}]")
}

#[test]
fn lines_of_a_header_are_joined_before_they_are_matched() {
    let wanted = |kind: &str, value: &str, backend: &str| rule(&header(kind, value), backend);
    let mut rules = vec![
        wanted("Exact", "two", "a"),
        wanted("Exact", "one,two", "b"),
        wanted("RegularExpression", "one,(a|b)", "c"),
    ];
    // so many that they are looked up by value
    rules.extend((0..10).map(|number| rule(&header("Exact", &format!("{number},x")), "c")));
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    for (lines, expected) in [
        (&["two"][..], "a"),
        (&["one", "two"], "b"),
        (&["one,two"], "b"),
        (&["one", "a"], "c"),
        (&["7", "x"], "c"),
        (&["other", "two"], "404"),
        (&["two", ""], "404"),
        (&["one", "a", "b"], "404"),
        (&[], "404"),
    ] {
        let headers: String = lines.iter().map(|line| format!("v: {line}\r\n")).collect();
        let reply = edge.send("GET", "shop.test", "/", &headers);
        let answer = match reply.status {
            200 => String::from_utf8_lossy(&reply.body).into_owned(),
            status => status.to_string(),
        };
        assert_eq!(answer, expected, "{lines:?}");
    }
    let explained = edge.explain(&["-H", "v: one", "-H", "v: c"], "/");
    assert!(explained.contains("one,c"), "{explained}");
}

#[test]
fn edits_of_the_host_that_cannot_be_followed_harm_nothing() {
    let edit = |kind: &str, field: &str, edits: &str| {
        format!("{{type: {kind}HeaderModifier, {field}HeaderModifier: {{{edits}}}}}")
    };
    let backend = "backendRefs: [{name: a, port: 80}]";
    let rules = [
        (
            "/removed",
            edit("Request", "request", "remove: [Host, x-a]"),
        ),
        (
            "/response",
            edit(
                "Response",
                "response",
                "set: [{name: Host, value: x}], add: [{name: host, value: x}], remove: [host]",
            ),
        ),
        (
            "/set",
            edit(
                "Request",
                "request",
                "set: [{name: Host, value: inner.test}]",
            ),
        ),
    ];
    let rules = rules.map(|(value, filter)| {
        format!(
            "{{matches: [{{{}}}], filters: [{filter}], {backend}}}",
            path("Exact", value)
        )
    });
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    for (target, host) in [
        ("/removed", "shop.test"),
        ("/response", "shop.test"),
        ("/set", "inner.test"),
    ] {
        let reply = edge.send("GET", "shop.test", target, "x-a: 1\r\n");
        assert_eq!((reply.status, &*reply.body), (200, &b"a"[..]), "{target}");
        assert!(!reply.has("host: x"), "{target}: {reply:?}");
        let seen = edge.origins[0].seen().pop().expect("the request came");
        assert_eq!((seen.path(), seen.host()), (target, host));
        assert_eq!(seen.header("x-a").is_none(), target == "/removed");
    }
}
