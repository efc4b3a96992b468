//! Delegates, whose conditions are combined with those of the root.

use super::{World, ask};
use crate::support::eventually;
use crate::support::mesh::routes;

fn delegate(name: &str, matches: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {name}}}\n\
         spec: {{http: [{{{matches}route: [{{destination: {{host: one.test}}}}]}}]}}\n"
    )
}

fn root(name: &str, matches: &str) -> String {
    let rule = format!("- {{{matches}delegate: {{name: to-{name}}}}}");
    routes(name, &format!("[{name}.test]"), &rule)
}

#[tokio::test]
async fn delegate_matches_are_intersected_and_conflicts_are_dropped() {
    let world = World::new();
    let proxy = world.proxy(&[
        root("a", "match: [{uri: {prefix: /a}}], "),
        delegate("to-a", "match: [{uri: {prefix: /a/b}}], "),
        root("c", "match: [{uri: {prefix: /a}}], "),
        delegate("to-c", "match: [{uri: {prefix: /c}}], "),
        root("ns", "match: [{sourceNamespace: default}], "),
        delegate("to-ns", "match: [{uri: {prefix: /a}}], "),
        root("all", ""),
        delegate("to-all", ""),
        root("gone", ""),
    ]);
    for (request, expected) in [
        ("a.test/a/b", "200 one /a/b a.test"),
        ("a.test/a/c", "404"),
        ("c.test/c", "404"),
        ("c.test/a", "404"),
        ("ns.test/a", "404"),
        ("all.test/a", "200 one /a all.test"),
        ("gone.test/a", "404"),
    ] {
        assert_eq!(ask(&proxy, request).await, expected, "{request}");
    }
    for name in ["c", "ns"] {
        let dropped =
            |line: &str| line.contains("X287") && line.contains(&format!("default/{name} "));
        eventually(name, || proxy.stderr().lines().any(dropped));
    }
}
