//! Tests of trusted headers, as tables.

use super::super::connection::{DownstreamProtocol, Handshake};
use super::*;
use crate::snapshot::ListenerKey;

fn connection(peer: &str, tls: bool) -> Connection {
    let local: SocketAddr = "10.0.0.1:80".parse().unwrap();
    let peer = SocketAddr::new(peer.parse().unwrap(), 4711);
    let key = ListenerKey::from(local);
    let plain = Connection::new(key, peer, local, DownstreamProtocol::Http1);
    if tls {
        plain.with_tls(Handshake::default())
    } else {
        plain
    }
}

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

#[test]
fn trusted_hops_select_the_client_in_forwarded_for() {
    let list = &[
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-for", "192.0.2.2, 2001:db8::3"),
    ][..];
    for (hops, lines, client) in [
        (0, list, "203.0.113.9:4711"),
        (1, list, "[2001:db8::3]:0"),
        (2, list, "192.0.2.2:0"),
        (3, list, "192.0.2.1:0"),
        (4, list, "203.0.113.9:4711"),
        (1, &[], "203.0.113.9:4711"),
        (1, &[("x-forwarded-for", "unknown")], "203.0.113.9:4711"),
        (1, &[("x-forwarded-for", "")], "203.0.113.9:4711"),
        (
            1,
            &[("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", " ")],
            "192.0.2.1:0",
        ),
        (1, &[("x-forwarded-for", "192.0.2.1,")], "203.0.113.9:4711"),
    ] {
        let origin = Origin::of(
            &connection("203.0.113.9", false),
            hops,
            false,
            &headers(lines),
        );
        assert_eq!(
            origin.client.to_string(),
            client,
            "{hops} hops of {lines:?}"
        );
    }
}

#[test]
fn trusted_hop_overrides_the_scheme_of_the_connection() {
    use Scheme::{Http, Https};
    for (tls, hops, told, scheme) in [
        (false, 0, None, Http),
        (true, 0, None, Https),
        (false, 0, Some("https"), Http),
        (true, 0, Some("http"), Https),
        (false, 1, Some("https"), Https),
        (false, 1, Some("HTTPS"), Https),
        (true, 1, Some("http"), Http),
        (true, 1, Some("gopher"), Https),
        (true, 1, None, Https),
    ] {
        let lines: Vec<_> = told
            .map(|told| ("x-forwarded-proto", told))
            .into_iter()
            .collect();
        let origin = Origin::of(&connection("10.0.0.2", tls), hops, false, &headers(&lines));
        assert_eq!(
            origin.scheme, scheme,
            "tls {tls}, {hops} hops, told {told:?}"
        );
    }
}

#[test]
fn only_direct_clients_from_listed_networks_are_internal() {
    let list = |text: &str| -> InternalAddresses {
        let networks = text.split_whitespace();
        networks.map(|network| network.parse().unwrap()).collect()
    };
    for (networks, peer, passed_on, internal) in [
        ("", "10.1.2.3", false, false),
        ("", "127.0.0.1", false, false),
        ("", "::1", false, false),
        ("", "fd00::1", false, false),
        ("10.0.0.0/8", "10.1.2.3", false, true),
        ("10.0.0.0/8", "10.1.2.3", true, false),
        ("10.0.0.0/8", "11.1.2.3", false, false),
        ("10.0.0.0/8", "::ffff:10.0.0.1", false, true),
        ("10.0.0.0/8", "fd00::1", false, false),
        ("10.0.0.0/8 fd00::/8", "fd00::1", false, true),
        ("203.0.113.9/32", "203.0.113.9", false, true),
        ("203.0.113.9/32", "203.0.113.8", false, false),
        ("0.0.0.0/0", "203.0.113.9", false, true),
        ("0.0.0.0/0", "2001:db8::1", false, false),
    ] {
        let found = list(networks).include(&connection(peer, false), passed_on);
        assert_eq!(
            found, internal,
            "{peer} of {networks:?}, passed on: {passed_on}"
        );
    }
}

#[test]
fn sidecar_takes_scheme_and_client_of_the_headers() {
    let peer = connection("10.0.0.2", false);
    for (hops, list, client) in [
        (0, "192.0.2.1", "192.0.2.1:0"),
        (0, "192.0.2.2, 192.0.2.1", "192.0.2.1:0"),
        (1, "192.0.2.2, 192.0.2.1", "192.0.2.2:0"),
        (1, "192.0.2.1", "10.0.0.2:4711"),
        (0, "unknown", "10.0.0.2:4711"),
    ] {
        let lines = [("x-forwarded-proto", "https"), ("x-forwarded-for", list)];
        let origin = Origin::of(&peer, hops, true, &headers(&lines));
        assert_eq!(origin.scheme, Scheme::Https);
        assert_eq!(origin.client.to_string(), client, "{hops} hops of {list}");
    }
    let origin = Origin::of(&peer, 0, true, &headers(&[]));
    assert_eq!(origin.scheme, Scheme::Http);
    assert_eq!(origin.client.to_string(), "10.0.0.2:4711");
}
