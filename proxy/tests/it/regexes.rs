//! Regular expressions of routes, in RE2 syntax, reported as they were written.

use crate::support::mesh::{documents, gateway, routes};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;

/// Path expression, a path that it matches, and a path that it does not match.
const PATHS: &[[&str; 3]] = &[
    [r"/a/[\w-.]+", "/a/x-y.z", "/a/x~y"],
    [r"/b/[^\w-/]+", "/b/~:", "/b/x"],
    [r"/c/[\d-z]", "/c/-", "/c/a"],
    [r"/d/[a&&b]", "/d/&", "/d/c"],
    [r"/e/[a~~b]", "/e/~", "/e/c"],
    [r"/f/\Qa.b\E", "/f/a.b", "/f/axb"],
    [r"/g/\101", "/g/A", "/g/a"],
    [r"/h/\p{^L}", "/h/1", "/h/a"],
];

/// Header value expression, a value that it matches, and a value that it does not match.
const VALUES: &[[&str; 3]] = &[
    ["/users/{id}", "/users/{id}", "/users/1"],
    ["a{,3}", "a{,3}", "aaa"],
    ["[[a]b]", "[b]", "a"],
    [r"\<a", "<a", "a"],
    [r"a\b{start}", "a{start}", "a"],
];

fn status(proxy: &Proxy, path: &str, header: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nx-value: {header}\r\n\r\n");
    Raw::connect(proxy.edge).send(&request).reply().status
}

#[test]
fn regular_expressions_are_those_of_re2() {
    let answer = "directResponse: {status: 200}\n";
    let paths = PATHS.iter().map(|[expression, ..]| {
        format!("- match: [{{uri: {{regex: '{expression}'}}}}]\n  {answer}")
    });
    let values = VALUES.iter().enumerate().map(|(number, [expression, ..])| {
        format!(
            "- match:\n  - uri: {{exact: /{number}}}\n    headers: {{x-value: {{regex: '{expression}'}}}}\n  {answer}"
        )
    });
    let rules: String = paths.chain(values).collect();
    let proxy = Proxy::with(|edge| documents([gateway(&[edge]), routes("all", "['*']", &rules)]));
    for [expression, yes, no] in PATHS {
        assert_eq!(status(&proxy, yes, ""), 200, "{expression} {yes}");
        assert_eq!(status(&proxy, no, ""), 404, "{expression} {no}");
    }
    for (number, [expression, yes, no]) in VALUES.iter().enumerate() {
        let path = format!("/{number}");
        assert_eq!(status(&proxy, &path, yes), 200, "{expression} {yes}");
        assert_eq!(status(&proxy, &path, no), 404, "{expression} {no}");
    }
    let explained = proxy.page(&format!("/explain?url=http://{}/a/x", proxy.edge));
    let written = format!("expected {:?}", PATHS[0][0]);
    assert!(explained.contains(&written), "{explained}");
}
