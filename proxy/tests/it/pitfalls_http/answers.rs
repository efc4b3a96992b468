//! Rewrites, redirects and direct responses.

use super::{World, ask, to_one};
use crate::support::client::{Client, Front};
use crate::support::mesh::routes;

#[tokio::test]
async fn rewrites_replace_the_matched_prefix_literally() {
    let slash = to_one("match: [{uri: {prefix: /foo}}]\nrewrite: {uri: /}");
    let both = to_one("match: [{uri: {prefix: /foo/}}]\nrewrite: {uri: /}");
    let whole = to_one("rewrite: {uri: /x}");
    let regex = to_one("match: [{uri: {regex: '/v[0-9]+/.*'}}]\nrewrite: {uri: /z}");
    let every = to_one("rewrite: {uriRegexRewrite: {match: a, rewrite: b}}");
    let empty = to_one("rewrite: {uriRegexRewrite: {match: '/(b?).*', rewrite: '\\1'}}");
    World::new()
        .check(&[
            (
                &slash,
                &[
                    ("HOST/foo/bar", "200 one //bar HOST"),
                    ("HOST/foo", "200 one / HOST"),
                    ("HOST/foobar", "200 one /bar HOST"),
                    ("HOST/foo?x=1", "200 one /?x=1 HOST"),
                ],
            ),
            (
                &both,
                &[("HOST/foo/bar", "200 one /bar HOST"), ("HOST/foo", "404")],
            ),
            (&whole, &[("HOST/a", "200 one /xa HOST")]),
            (&regex, &[("HOST/v1/a?q=1", "200 one /z?q=1 HOST")]),
            (&every, &[("HOST/aa?a=a", "200 one /bb?a=a HOST")]),
            (&empty, &[("HOST/aa", "200 one /aa HOST")]),
        ])
        .await;
}

#[tokio::test]
async fn rewrite_authority_wins_over_header_edits() {
    let destination = |more: &str| {
        format!(
            "- {more}\n  route:\n  - destination: {{host: one.test}}\n    headers: {{request: {{set: {{Host: c.com}}}}}}"
        )
    };
    let rewrite = destination("rewrite: {authority: b.com}");
    let of_rule = destination("headers: {request: {set: {':authority': d.com}}}");
    let of_destination = destination("name: only");
    World::new()
        .check(&[
            (&rewrite, &[("HOST/", "200 one / b.com")]),
            (&of_rule, &[("HOST/", "200 one / d.com")]),
            (&of_destination, &[("HOST/", "200 one / c.com")]),
        ])
        .await;
}

#[tokio::test]
async fn redirects_have_the_configured_location() {
    let prefix = "- match: [{uri: {prefix: /old}}]\n  redirect: {uri: /new}";
    World::new()
        .check(&[
            (
                prefix,
                &[
                    ("HOST/old/deep?q=1", "301 http://HOST/new?q=1"),
                    ("HOST/other", "404"),
                ],
            ),
            (
                "- redirect: {authority: b.com}",
                &[("HOST/p?q", "301 http://b.com/p?q")],
            ),
            (
                "- redirect: {scheme: https}",
                &[
                    ("HOST:80/", "301 https://HOST/"),
                    ("HOST:8080/", "301 https://HOST:8080/"),
                    ("HOST/a?b", "301 https://HOST/a?b"),
                ],
            ),
            (
                "- redirect: {scheme: https, port: 443}",
                &[
                    ("HOST/", "301 https://HOST/"),
                    ("HOST:8080/", "301 https://HOST/"),
                ],
            ),
            (
                "- redirect: {port: 8081}",
                &[("HOST:8080/", "301 http://HOST:8081/")],
            ),
            (
                "- match: [{uri: {prefix: /v1/}}]\n  redirect: {prefixRewrite: /v2/, redirectCode: 308}",
                &[("POST HOST/v1/a?q", "308 http://HOST/v2/a?q")],
            ),
            (
                "- redirect: {uri: '/new?own=1'}",
                &[("HOST/p?q=2", "301 http://HOST/new?own=1")],
            ),
        ])
        .await;
}

#[tokio::test]
async fn redirect_port_can_be_derived_from_the_listener() {
    let world = World::new();
    let rule = "- redirect: {derivePort: FROM_REQUEST_PORT}";
    let proxy = world.proxy(&[routes("a", "[a.com]", rule)]);
    let port = proxy.edge.port();
    let expected = format!("301 http://a.com:{port}/");
    assert_eq!(ask(&proxy, "a.com/").await, expected);
}

#[tokio::test]
async fn direct_response_is_sent_unchanged() {
    let world = World::new();
    let rules = "\
- match: [{uri: {exact: /busy}}]
  retries: {attempts: 3, retryOn: 5xx}
  timeout: 1s
  directResponse: {status: 503, body: {string: busy}}
- match: [{uri: {exact: /typed}}]
  headers: {response: {set: {content-type: application/json, x-edited: 'yes'}}}
  directResponse: {status: 200, body: {bytes: e30=}}
- match: [{uri: {exact: /moved}}]
  headers: {response: {set: {x-edited: 'yes'}}}
  redirect: {uri: /new}
- match: [{uri: {exact: /nothing}}]
  directResponse: {status: 204, body: {string: ignored}}
";
    let proxy = world.proxy(&[routes("a", "[a.test]", rules)]);
    assert_eq!(ask(&proxy, "a.test/busy").await, "503 busy");
    let line = proxy.logged("/busy");
    assert_eq!(line["response_flags"], "-");
    assert_eq!(line["response_code_details"], "direct_response");
    for front in [Front::H1, Front::H2] {
        let mut client = Client::connect(front, proxy.edge).await;
        let typed = client.get("/typed").await;
        assert_eq!((typed.status, typed.text()), (200, "{}"));
        assert_eq!(typed.header("content-type"), Some("application/json"));
        assert_eq!(typed.header("x-edited"), Some("yes"));
        let moved = client.get("/moved").await;
        assert_eq!((moved.status, moved.header("x-edited")), (301, Some("yes")));
        let nothing = client.get("/nothing").await;
        assert_eq!((nothing.status, nothing.text()), (204, ""));
        assert_eq!(nothing.header("content-type"), None);
    }
    assert_eq!(ask(&proxy, "HEAD a.test/busy").await, "503");
}
