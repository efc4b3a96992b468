//! Paths of HTTPRoutes: which of them a match covers, and what replaces a prefix.

use super::{Edge, ONE, path, route, rule};

#[test]
fn prefixes_end_at_a_segment_and_exact_paths_at_their_end() {
    let rules = [
        rule(&path("PathPrefix", "/a"), "a"),
        rule(&path("Exact", "/b"), "b"),
        rule(&path("PathPrefix", "/c/"), "c"),
    ];
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    for (target, expected) in [
        ("/a", "a"),
        ("/a/", "a"),
        ("/a/b", "a"),
        ("/a//b", "a"),
        ("/a?q=/b", "a"),
        ("/a/;v=1", "a"),
        ("/a/%2F", "a"),
        ("/%61", "a"),
        ("/x/../a", "a"),
        ("/ab", "404"),
        ("//a", "404"),
        ("/a;v=1", "404"),
        ("/a%2Fb", "404"),
        ("/a%2fb", "404"),
        ("/A", "404"),
        ("/a/..", "404"),
        ("/?/a", "404"),
        ("/b", "b"),
        ("/b?x", "b"),
        ("/b/", "404"),
        ("/b%2F", "404"),
        ("/b;", "404"),
        ("/b//", "404"),
        ("/c", "c"),
        ("/c/", "c"),
        ("/c//", "c"),
        ("/cx", "404"),
    ] {
        assert_eq!(edge.answer("shop.test", target), expected, "{target}");
    }
}

#[test]
fn prefix_is_replaced_by_segments() {
    let edge = Edge::start(ONE, &[]);
    let port = edge.proxy.edge.port();
    // each differs from the one before in what is configured
    for (prefix, with, target, expected) in [
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo/", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo/", "/xyz", "/foo", "/xyz"),
        ("/foo", "/xyz", "/foo/", "/xyz/"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/foo", "", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo", "/"),
        ("/foo", "", "/foo/", "/"),
        ("/foo", "/xyz", "/foo//bar", "/xyz//bar"),
        ("/foo", "/", "/foo//bar", "//bar"),
        (
            "/foo",
            "/xyz",
            "/foo/%2Fbar;v?q=%2F&a",
            "/xyz/%2Fbar;v?q=%2F&a",
        ),
        ("/", "/xyz", "/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo?q", "/xyz?q"),
    ] {
        let matched = path("PathPrefix", prefix);
        let modifier = format!("path: {{type: ReplacePrefixMatch, replacePrefixMatch: '{with}'}}");
        let rewrite = format!("{{type: URLRewrite, urlRewrite: {{{modifier}}}}}");
        let redirect = format!("{{type: RequestRedirect, requestRedirect: {{{modifier}}}}}");
        let rules = [
            format!(
                "{{matches: [{{{matched}}}], filters: [{rewrite}], backendRefs: [{{name: a, port: 80}}]}}"
            ),
            format!("{{matches: [{{{matched}}}], filters: [{redirect}]}}"),
        ];
        let [rewriting, redirecting] = rules;
        edge.set(&[
            route("one", "one.test", &rewriting),
            route("two", "two.test", &redirecting),
        ]);
        assert_eq!(edge.answer("one.test", target), "a");
        let seen = edge.origins[0].seen();
        assert_eq!(
            seen.last().unwrap().path(),
            expected,
            "{prefix} {with} {target}"
        );
        let reply = edge.send("GET", "two.test", target, "");
        let location = format!("location: http://two.test:{port}{expected}");
        assert!(reply.has(&location), "{prefix} {with} {target}: {reply:?}");
    }
}
