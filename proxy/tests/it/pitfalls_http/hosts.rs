//! Virtual host selection for requests.

use super::{World, ask};
use crate::support::mesh::{documents, gateway};
use crate::support::proxy::{Proxy, Start};

/// Returns a VirtualService with a namespace, an age and fields.
fn vs(name: &str, namespace: &str, day: u32, fields: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\n\
         metadata: {{name: {name}, namespace: {namespace}, creationTimestamp: '2024-01-{day:02}T00:00:00Z'}}\n\
         spec: {{{fields}}}\n"
    )
}

/// Returns a rule that answers with its name.
fn says(name: &str, conditions: &str) -> String {
    format!("{{{conditions}directResponse: {{status: 200, body: {{string: {name}}}}}}}")
}

fn host(host: &str, rule: &str) -> String {
    format!("hosts: ['{host}'], gateways: [default/edge], http: [{rule}]")
}

async fn check(proxy: &Proxy, asked: &[(&str, &str)]) {
    for (request, expected) in asked {
        assert_eq!(ask(proxy, request).await, *expected, "{request}");
    }
}

#[tokio::test]
async fn only_the_most_specific_host_is_used() {
    let world = World::new();
    let proxy = world.proxy(&[
        vs(
            "a",
            "default",
            1,
            &host("*.a.com", &says("a", "match: [{uri: {prefix: /}}], ")),
        ),
        vs(
            "b",
            "default",
            1,
            &host("x.a.com", &says("b", "match: [{uri: {prefix: /only}}], ")),
        ),
        vs("c", "default", 1, &host("b.com", &says("c", ""))),
    ]);
    check(
        &proxy,
        &[
            ("x.a.com/unmatched", "404"),
            ("x.a.com/only", "200 b"),
            ("y.a.com/other", "200 a"),
            ("z.y.a.com/other", "200 a"),
            ("a.com/", "404"),
            ("b.com/", "200 c"),
            ("B.COM:8080/", "200 c"),
            ("xb.com/", "404"),
        ],
    )
    .await;
    assert_eq!(proxy.logged("/unmatched")["response_flags"], "NR");
}

#[tokio::test]
async fn rules_for_one_host_are_ordered_by_age_with_catch_alls_last() {
    let world = World::new();
    let new = says("young", "match: [{uri: {prefix: /new}}], ");
    let same = |name| says(name, "match: [{uri: {prefix: /x}}], ");
    let proxy = world.proxy(&[
        vs("young", "default", 2, &host("a.com", &new)),
        vs("old", "default", 1, &host("a.com", &says("old", ""))),
        vs("later", "default", 9, &host("b.com", &same("later"))),
        vs("first", "default", 3, &host("b.com", &same("first"))),
    ]);
    check(
        &proxy,
        &[
            ("a.com/new", "200 young"),
            ("a.com/", "200 old"),
            ("b.com/x", "200 first"),
        ],
    )
    .await;
}

#[tokio::test]
async fn virtual_services_not_visible_to_the_gateway_are_not_served() {
    let start = Start::new().args(["--namespace", "istio-system"]);
    let edge = start.edge();
    let teams = gateway(&[edge]).replace(
        "[\"*\"]",
        "[\"team1/*.a.com\", \"*/b.com\", \"*/d.com\", \"*/e.com\"]",
    );
    let text = documents([
        teams,
        vs("own", "team1", 1, &host("x.a.com", &says("own", ""))),
        vs("other", "team2", 1, &host("y.a.com", &says("other", ""))),
        vs(
            "private",
            "app",
            1,
            &format!("exportTo: ['.'], {}", host("b.com", &says("private", ""))),
        ),
        vs(
            "mesh",
            "default",
            1,
            &format!("hosts: [d.com], http: [{}]", says("mesh", "")),
        ),
        vs(
            "both",
            "default",
            1,
            &format!(
                "hosts: [e.com], gateways: [mesh, edge], http: [{}]",
                says("both", "")
            ),
        ),
    ]);
    let proxy = start.file("mesh.yaml", text).start();
    check(
        &proxy,
        &[
            ("x.a.com/", "200 own"),
            ("y.a.com/", "404"),
            ("b.com/", "404"),
            ("d.com/", "404"),
            ("e.com/", "200 both"),
        ],
    )
    .await;
}

#[tokio::test]
async fn short_hosts_get_the_namespace_of_their_rule_and_dotted_hosts_do_not() {
    let world = World::new();
    let cart = |namespace: &str, address: std::net::SocketAddr| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n\
             metadata: {{name: cart, namespace: {namespace}}}\nspec:\n  hosts: [cart.{namespace}.svc.cluster.local]\n  \
             resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  \
             endpoints: [{{address: {}, ports: {{http: {}}}}}]\n",
            address.ip(),
            address.port()
        )
    };
    let to = |destination: &str| format!("{{route: [{{destination: {{host: {destination}}}}}]}}");
    let proxy = world.proxy(&[
        cart("ns1", world.one.address),
        cart("default", world.two.address),
        vs("a", "ns1", 1, &host("a.com", &to("cart"))),
        vs("b", "default", 1, &host("b.com", &to("cart"))),
        vs("c", "default", 1, &host("c.com", &to("cart.default"))),
    ]);
    check(
        &proxy,
        &[
            ("a.com/", "200 one / a.com"),
            ("b.com/", "200 two / b.com"),
            ("c.com/unknown", "503"),
        ],
    )
    .await;
    let line = proxy.logged("/unknown");
    assert_eq!(line["response_flags"], "NC");
    assert_eq!(line["response_code_details"], "cluster_not_found");
}

#[tokio::test]
async fn objects_of_one_age_are_ordered_by_name_then_namespace() {
    let x = |says_name: &str| says(says_name, "match: [{uri: {prefix: /x}}], ");
    let of =
        |name, namespace, says_name: &str| vs(name, namespace, 7, &host("a.com", &x(says_name)));
    let [first, second, third] = [
        of("a", "aa", "a-in-aa"),
        of("a", "zz", "a-in-zz"),
        of("b", "aa", "b"),
    ];
    // the order of these decides nothing, nor does whether a time was written
    let undated = |text: &str| text.replace(", creationTimestamp: '2024-01-07T00:00:00Z'", "");
    for (files, expected) in [
        ([&first, &second, &third], "200 a-in-aa"),
        ([&third, &second, &first], "200 a-in-aa"),
        ([&third, &second, &String::new()], "200 a-in-zz"),
        ([&second, &third, &String::new()], "200 a-in-zz"),
    ] {
        for is_dated in [true, false] {
            let start = Start::new();
            let edge = start.edge();
            let mut start = start.file("0.yaml", gateway(&[edge]));
            for (number, text) in files.iter().enumerate() {
                let text = match is_dated {
                    true => (*text).clone(),
                    false => undated(text),
                };
                start = start.file(&format!("{}.yaml", number + 1), text);
            }
            let proxy = start.start();
            check(&proxy, &[("a.com/x", expected)]).await;
        }
    }
}
