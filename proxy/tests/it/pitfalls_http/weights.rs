//! Destination selection for requests.

use super::World;
use crate::support::client::{Client, Front, get};
use crate::support::eventually;
use crate::support::mesh::routes;
use crate::support::proxy::Proxy;

/// Returns the number of requests to a host by outcome: the first word of the body, or the status.
async fn outcomes(proxy: &Proxy, host: &str, requests: usize) -> Vec<(String, usize)> {
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..requests {
        let mut request = get("/");
        *request.uri_mut() = format!("http://{host}/").parse().unwrap();
        let answer = client.call(request).await;
        let name = match answer.status {
            200 => answer.text().split(' ').next().unwrap().to_owned(),
            status => status.to_string(),
        };
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().collect()
}

#[tokio::test]
async fn weights_are_relative_shares_and_zero_gets_no_traffic() {
    let world = World::new();
    let to = |destinations: &[(&str, u32)]| {
        let mut text = "- route:\n".to_owned();
        for (destination, weight) in destinations {
            text.push_str(&format!(
                "  - {{destination: {{{destination}}}, weight: {weight}}}\n"
            ));
        }
        text
    };
    let (one, two) = ("host: one.test", "host: two.test");
    let proxy = world.proxy(&[
        routes("a", "[a.test]", &to(&[(one, 1), (two, 3)])),
        routes("b", "[b.test]", &to(&[(one, 0)])),
        routes("c", "[c.test]", &to(&[(one, 0), (two, 5)])),
        routes(
            "d",
            "[d.test]",
            &to(&[("host: one.test, subset: none", 50), (one, 50)]),
        ),
        routes("e", "[e.test]", &to(&[("host: one.test, subset: one", 1)])),
    ]);
    let split = outcomes(&proxy, "a.test", 2000).await;
    assert_eq!(split.len(), 2, "{split:?}");
    // a quarter; five standard deviations are 97
    assert!(split[0].1.abs_diff(500) < 97, "{split:?}");
    for (host, name) in [("b.test", "one"), ("c.test", "two"), ("e.test", "one")] {
        let all = outcomes(&proxy, host, 50).await;
        assert_eq!(all, [(name.to_owned(), 50)], "{host}");
    }
    // a destination that does not exist keeps its share
    let half = outcomes(&proxy, "d.test", 400).await;
    assert_eq!((half[0].0.as_str(), half[1].0.as_str()), ("503", "one"));
    assert!(half[0].1.abs_diff(200) < 40, "{half:?}");
    eventually("the access log has its flag", || {
        let logged = proxy.access_log();
        let missing = logged.iter().find(|line| line["response_code"] == 503);
        missing.is_some_and(|line| line["response_flags"] == "NC")
    });
}
