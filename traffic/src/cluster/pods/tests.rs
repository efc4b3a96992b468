use super::*;
use crate::cluster::{Balance, by_hand};
use crate::registry::Registry;

/// The endpoints `10.0.0.1:80` (`web-0`), `10.0.0.2:80` (`web-1`) and `10.0.0.10:80`.
fn pods() -> (Pods, Box<[Endpoint]>) {
    let endpoints = [(1, "r/a"), (2, "r/a"), (10, "r/a")];
    let registry = Registry::default();
    let parts = by_hand::parts(&registry, "outbound|80||a", Balance::default(), &endpoints);
    let mut endpoints = parts.endpoints;
    for (endpoint, hostname) in endpoints.iter_mut().zip(["web-0", "web-1"]) {
        Arc::make_mut(&mut endpoint.common).hostname = Some(hostname.into());
    }
    (Pods::of(&endpoints), endpoints)
}

#[test]
fn pod_is_found_by_its_address_whatever_port_was_dialed() {
    let (pods, endpoints) = pods();
    for (dialed, expected) in [
        ("10.0.0.1:80", Some(0)),
        ("10.0.0.2:80", Some(1)),
        ("10.0.0.10:8080", Some(2)),
        ("[::ffff:10.0.0.2]:80", Some(1)),
        ("10.0.0.3:80", None),
        ("9.0.0.1:80", None),
        ("10.0.1.1:80", None),
        ("[::1]:80", None),
    ] {
        let found = pods.at(&endpoints, dialed.parse().unwrap());
        assert_eq!(found, expected.map(EndpointIdx), "{dialed}");
    }
}

#[test]
fn pod_is_found_by_its_hostname_or_its_dashed_address() {
    let (pods, endpoints) = pods();
    for (name, expected) in [
        ("web-0", Some(0)),
        ("web-1", Some(1)),
        ("web-2", None),
        ("10-0-0-10", Some(2)),
        ("10-0-0-1", Some(0)),
        ("10-0-0-9", None),
        ("--1", None),
        ("", None),
    ] {
        let found = pods.named(&endpoints, name);
        assert_eq!(found, expected.map(EndpointIdx), "{name}");
    }
}

#[test]
fn host_names_a_pod_where_the_rest_is_a_name_of_the_service() {
    for (host, expected) in [
        ("web-0.a.test", Some("web-0")),
        ("web-0.a", Some("web-0")),
        ("a.test", None),
        ("a", None),
        ("web-0.a.tes", None),
        ("web-0.b.test", None),
        ("x.web-0.a.test", None),
        ("web-0.", None),
        (".a.test", Some("")),
    ] {
        assert_eq!(pod_of_host(host, "a.test"), expected, "{host}");
    }
    // the namespace has the name of the service
    for (host, expected) in [("a.a", None), ("web-0.a.a", Some("web-0"))] {
        assert_eq!(pod_of_host(host, "a.a.test"), expected, "{host}");
    }
}
