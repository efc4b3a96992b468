//! Header edits of rules and destinations.

use super::World;
use crate::support::client::{Client, Front, get};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::Proxy;

/// Returns a rule with request header edits, and destinations with edits of their own; each destination is `one.test`.
fn rule(edits: &str, destinations: &[&str]) -> String {
    let mut text = format!("- headers: {{request: {{{edits}}}}}\n  route:\n");
    for edits in destinations {
        text.push_str(&format!(
            "  - {{destination: {{host: one.test}}, weight: 1, headers: {{request: {{{edits}}}}}}}\n"
        ));
    }
    text
}

#[tokio::test]
async fn header_edits_of_rule_and_destination_are_combined() {
    let one = |edits: &str, destination: &str| rule(edits, &[destination]);
    let two = |edits: &str, destination: &str| rule(edits, &[destination, destination]);
    World::new()
        .check(&[
            // with one destination they are one scope
            (
                &one("set: {x: '1'}", "set: {x: '2'}"),
                &[("HOST/", "200 one / HOST x=2")],
            ),
            (
                &one("set: {x: '1'}", "remove: [x]"),
                &[("HOST/ | x: 9", "200 one / HOST x=1")],
            ),
            (
                &one("add: {x: '1'}", "add: {x: '2'}"),
                &[("HOST/ | x: 9", "200 one / HOST x=9+1+2")],
            ),
            // with several the rule comes last
            (
                &two("set: {x: '1'}", "set: {x: '2'}"),
                &[("HOST/", "200 one / HOST x=1")],
            ),
            (
                &two("remove: [x]", "set: {x: '2'}"),
                &[("HOST/ | x: 9", "200 one / HOST")],
            ),
            (
                &two("add: {x: '1'}", "add: {x: '2'}"),
                &[("HOST/", "200 one / HOST x=2+1")],
            ),
            // a further line, not a longer one
            (
                &one("add: {x: b}", ""),
                &[("HOST/ | x: a", "200 one / HOST x=a+b")],
            ),
            (
                &one("remove: [X]", ""),
                &[("HOST/ | x: a | x: b", "200 one / HOST")],
            ),
        ])
        .await;
}

#[tokio::test]
async fn operators_are_evaluated_before_any_header_is_set() {
    let values = [
        ("50%%", "200 one /p HOST x=50%"),
        ("%REQ(x)%-%REQ(none?:path)%", "200 one /p HOST x=9-/p"),
        ("%PROTOCOL%", "200 one /p HOST x=HTTP/1.1"),
        (
            "%UPSTREAM_CLUSTER%",
            "200 one /p HOST x=outbound|80||one.test",
        ),
        (
            "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
            "200 one /p HOST x=127.0.0.1",
        ),
        // an unnamed rule has none, and an empty value sets nothing
        ("%ROUTE_NAME%", "200 one /p HOST x=9"),
        ("sni=%REQUESTED_SERVER_NAME%", "200 one /p HOST x=sni="),
    ];
    let cases = values.map(|(value, expected)| {
        let rule = rule(&format!("set: {{x: '{value}'}}"), &[""]);
        (rule, [("HOST/p | x: 9", expected)])
    });
    World::new().check_made(&cases).await;
}

#[tokio::test]
async fn response_edits_reach_local_replies_of_matched_rules_only() {
    let world = World::new();
    let rules = "\
- match: [{uri: {prefix: /empty}}]
  headers: {response: {set: {x: '%RESPONSE_CODE%', x-set: 'yes'}, remove: [server]}}
  route: [{destination: {host: empty.test}}]
- match: [{uri: {prefix: /unknown}}]
  headers: {response: {set: {x: '%RESPONSE_CODE%', x-set: 'yes'}}}
  route: [{destination: {host: unknown.test}}]
- match: [{uri: {prefix: /one}}]
  headers: {response: {set: {x: '%RESPONSE_CODE%', x-set: 'yes'}, add: {date: more}}}
  route: [{destination: {host: one.test}}]
";
    let proxy = world.proxy(&[routes("a", "[a.test]", rules)]);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for (path, status, edited) in [
        ("/empty", 503, Some("503")),
        ("/unknown", 503, Some("503")),
        ("/one", 200, Some("200")),
        ("/none", 404, None),
    ] {
        let answer = client.call(get(path)).await;
        assert_eq!(
            (answer.status, answer.header("x")),
            (status, edited),
            "{path}"
        );
        assert_eq!(answer.header("x-set"), edited.map(|_| "yes"), "{path}");
    }
}

#[tokio::test]
async fn response_operators_have_the_values_of_the_sent_request() {
    let world = World::new();
    let set = "headers: {response: {set: {x: '%PROTOCOL% %REQ(:method)% %REQ(:authority)% %REQ(:path)% \
               %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %UPSTREAM_REMOTE_ADDRESS%'}}}";
    let rules = format!(
        "- match: [{{uri: {{exact: /one}}}}]\n  {set}\n  route: [{{destination: {{host: one.test}}}}]\n\
         - match: [{{uri: {{exact: /empty}}}}]\n  {set}\n  route: [{{destination: {{host: empty.test}}}}]\n\
         - match: [{{uri: {{exact: /moved}}}}]\n  {set}\n  redirect: {{uri: /}}\n\
         - match: [{{uri: {{exact: /fault}}}}]\n  {set}\n  fault: {{abort: {{httpStatus: 500, percentage: {{value: 100}}}}}}\n  \
         route: [{{destination: {{host: one.test}}}}]\n"
    );
    let proxy = world.proxy(&[routes("a", "[a.test]", &rules)]);
    let upstream = world.one.address.to_string();
    for (front, protocol) in [(Front::H1, "HTTP/1.1"), (Front::H2, "HTTP/2")] {
        let mut client = Client::connect(front, proxy.edge).await;
        for (path, became) in [
            ("/one", format!("- via_upstream {upstream}")),
            ("/empty", "UH no_healthy_upstream".to_owned()),
            ("/moved", "- direct_response".to_owned()),
            ("/fault", "FI fault_filter_abort".to_owned()),
        ] {
            let answer = client.get(path).await;
            let expected = format!("{protocol} GET a.test {path} {became}");
            assert_eq!(
                answer.header("x").map(str::trim_end),
                Some(&*expected),
                "{front:?}"
            );
        }
    }
}

#[tokio::test]
async fn content_type_of_a_local_reply_follows_the_edits_of_its_rule() {
    let rules = "\
- match: [{uri: {prefix: /add}}]
  headers: {response: {add: {content-type: text/html}}}
  directResponse: {status: 200, body: {string: a}}
- match: [{uri: {prefix: /remove}}]
  headers: {response: {remove: [content-type]}}
  directResponse: {status: 200, body: {string: a}}
- match: [{uri: {prefix: /set}}]
  headers: {response: {set: {content-type: text/html}}}
  directResponse: {status: 200, body: {string: a}}
- match: [{uri: {prefix: /redirect}}]
  headers: {response: {set: {content-type: text/html}}}
  redirect: {uri: /there}
- match: [{uri: {prefix: /unhealthy}}]
  headers: {response: {set: {content-type: text/html}}}
  route: [{destination: {host: empty.test}}]
- match: [{uri: {prefix: /unknown}}]
  headers: {response: {set: {content-type: text/html}}}
  route: [{destination: {host: unknown.test}}]
";
    let proxy = World::new().proxy(&[routes("a", "[a.test]", rules)]);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for (path, expected) in [
        ("/add", &["text/html"][..]),
        ("/remove", &["text/plain"]),
        ("/set", &["text/html"]),
        ("/redirect", &[]),
        ("/unhealthy", &["text/html"]),
        ("/unknown", &[]),
    ] {
        let answer = client.call(get(path)).await;
        let types: Vec<_> = answer.headers.get_all("content-type").iter().collect();
        assert_eq!(types, expected, "{path}");
    }
}

#[tokio::test]
async fn original_path_is_sent_where_an_expression_rewrites_nothing() {
    let origin = Origin::named(Back::H1, "up");
    let rule = "- {rewrite: {uriRegexRewrite: {match: /none, rewrite: /other}}, route: [{destination: {host: web.test}}]}";
    let proxy = Proxy::with(|edge| {
        let web = service("web", Back::H1, &[(origin.address, "v1")]);
        documents([gateway(&[edge]), web, routes("all", "['*']", rule)])
    });
    Client::connect(Front::H1, proxy.edge)
        .await
        .get("/a?b")
        .await;
    let seen = origin.only();
    assert_eq!(
        (seen.path(), seen.header("x-envoy-original-path")),
        ("/a?b", Some("/a?b"))
    );
}
