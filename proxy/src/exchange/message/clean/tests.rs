//! Tests of added and removed headers, and of trusted clients.

use std::net::SocketAddr;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::exchange::downstream::connection::{DownstreamProtocol, Handshake};
use crate::exchange::settings::ClientCertHeader;
use crate::snapshot::ListenerKey;

/// Cleans the headers of a request, with 10.0.0.0/8 as internal addresses.
fn forwarded(peer: &str, before: &[(&'static str, &'static str)]) -> HeaderMap {
    forwarded_with(&settings("10.0.0.0/8"), peer, before).1
}

fn settings(internal: &str) -> ExchangeSettings {
    let networks = internal.split_whitespace();
    ExchangeSettings {
        internal_addresses: networks.map(|network| network.parse().unwrap()).collect(),
        ..ExchangeSettings::default()
    }
}

fn forwarded_with(
    settings: &ExchangeSettings,
    peer: &str,
    before: &[(&'static str, &'static str)],
) -> (Trust, HeaderMap) {
    let local: SocketAddr = "10.0.0.1:80".parse().unwrap();
    let connection = Connection::new(
        ListenerKey::from(local),
        SocketAddr::new(peer.parse().unwrap(), 1),
        local,
        DownstreamProtocol::Http1,
    );
    let mut headers = HeaderMap::new();
    for (name, value) in before {
        headers.append(*name, HeaderValue::from_static(value));
    }
    let origin = Origin::of(
        &connection,
        settings.trusted_hops,
        settings.is_sidecar,
        &headers,
    );
    let mut rng = SmallRng::seed_from_u64(1);
    let Cleaned { trust, added, .. } =
        forward(&mut headers, &connection, &origin, settings, &mut rng);
    insert(added, &mut headers);
    (trust, headers)
}

/// Inserts fields that are not inserted yet, and checks that writing them gives the same result.
fn insert(added: Option<Added<'_>>, headers: &mut HeaderMap) {
    let Some(added) = added else {
        return;
    };
    let mut written = Vec::new();
    added.write_to(&mut written);
    let mut lines: Vec<String> = Vec::new();
    let before = headers.clone();
    added.insert_into(headers);
    for (name, value) in &*headers {
        if !before.contains_key(name) {
            lines.push(format!("{name}: {}\r\n", value.to_str().unwrap()));
        }
    }
    assert_eq!(String::from_utf8(written).unwrap(), lines.concat());
    assert_eq!(
        headers.len(),
        before.len() + lines.len(),
        "none in place of another"
    );
}

#[test]
fn control_headers_apply_only_for_internal_clients() {
    let control = [("x-envoy-retry-on", "5xx")];
    for (networks, peer, before, internal, controls) in [
        ("", "10.1.2.3", &control[..], false, false),
        ("", "127.0.0.1", &control, false, false),
        ("10.0.0.0/8", "10.1.2.3", &control, true, true),
        ("10.0.0.0/8", "10.1.2.3", &[], true, false),
        (
            "10.0.0.0/8",
            "10.1.2.3",
            &[("x-envoy-internal", "true")],
            true,
            false,
        ),
        ("10.0.0.0/8", "203.0.113.9", &control, false, false),
    ] {
        let (trust, _) = forwarded_with(&settings(networks), peer, before);
        let expected = Trust {
            internal,
            controls,
            from_cluster: false,
        };
        assert_eq!(trust, expected, "{peer} of {networks:?}, {before:?}");
    }
}

#[test]
fn sidecar_passes_client_headers_on_and_removes_claimed_certificates() {
    let settings = ExchangeSettings {
        is_sidecar: true,
        ..settings("")
    };
    let claimed = [
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-proto", "https"),
        ("x-request-id", "one"),
        (
            "x-forwarded-client-cert",
            "URI=spiffe://cluster.local/ns/a/sa/b",
        ),
        ("x-envoy-retry-on", "5xx"),
    ];
    let (trust, headers) = forwarded_with(&settings, "10.1.2.3", &claimed);
    assert!(!trust.internal && !trust.controls);
    for (name, value) in &claimed[..3] {
        assert_eq!(headers[*name], *value);
    }
    for (name, _) in &claimed[3..] {
        assert!(!headers.contains_key(*name), "{name}");
    }
    let (_, headers) = forwarded_with(&settings, "10.1.2.3", &[]);
    assert!(!headers.contains_key("x-forwarded-for"));
    assert_eq!(headers["x-forwarded-proto"], "http");
    assert_eq!(headers["x-request-id"].len(), 36);
    assert_eq!(headers["x-envoy-attempt-count"], "1");
}

#[test]
fn trusted_hops_set_address_and_scheme() {
    let settings = ExchangeSettings {
        trusted_hops: 1,
        ..settings("10.0.0.0/8")
    };
    let told = [
        ("x-forwarded-for", "198.51.100.7, 192.0.2.1"),
        ("x-forwarded-proto", "https"),
    ];
    let (_, headers) = forwarded_with(&settings, "10.1.2.3", &told);
    assert_eq!(headers["x-forwarded-proto"], "https");
    assert_eq!(headers["x-envoy-external-address"], "192.0.2.1");
    let (_, headers) = forwarded_with(&settings, "10.1.2.3", &[]);
    assert_eq!(headers["x-forwarded-proto"], "http");
    assert_eq!(headers["x-envoy-internal"], "true");
}

/// A connection of a client that presented a certificate, or not.
fn connection_of(certificate: Option<&'static str>) -> Connection {
    let local: SocketAddr = "10.0.0.1:443".parse().unwrap();
    let client = "203.0.113.9:1".parse().unwrap();
    Connection::new(
        ListenerKey::from(local),
        client,
        local,
        DownstreamProtocol::Http1,
    )
    .with_tls(Handshake {
        client_cert: certificate.map(HeaderValue::from_static),
        ..Handshake::default()
    })
}

#[test]
fn gateway_treats_client_certificate_headers_as_the_flag_says() {
    use ClientCertHeader::{AlwaysForwardOnly, AppendForward, ForwardOnly, Sanitize, SanitizeSet};
    let of = |details, certificate, sent: Option<&'static str>| {
        let connection = connection_of(certificate);
        let mut headers = HeaderMap::new();
        headers.extend(sent.map(|sent| (X_FORWARDED_CLIENT_CERT, HeaderValue::from_static(sent))));
        let origin = Origin::of(&connection, 0, false, &headers);
        let settings = ExchangeSettings {
            client_cert_header: details,
            ..ExchangeSettings::default()
        };
        let mut rng = SmallRng::seed_from_u64(1);
        let cleaned = forward(&mut headers, &connection, &origin, &settings, &mut rng);
        insert(cleaned.added, &mut headers);
        let found = headers.get("x-forwarded-client-cert")?;
        Some(found.to_str().unwrap().to_owned())
    };
    let sent = Some("By=me");
    for (details, verified, plain, bare) in [
        (SanitizeSet, Some("Hash=ab"), None, Some("Hash=ab")),
        (Sanitize, None, None, None),
        (ForwardOnly, Some("By=me"), None, None),
        (AppendForward, Some("By=me,Hash=ab"), None, Some("Hash=ab")),
        (AlwaysForwardOnly, Some("By=me"), Some("By=me"), None),
    ] {
        let found = [
            of(details, Some("Hash=ab"), sent),
            of(details, None, sent),
            of(details, Some("Hash=ab"), None),
        ];
        let expected = [verified, plain, bare].map(|it| it.map(str::to_owned));
        assert_eq!(found, expected, "{details:?}");
    }
}

#[test]
fn client_certificate_header_comes_from_the_tls_terminator() {
    let connection = connection_of(Some("Hash=ab"));
    let mut headers = HeaderMap::new();
    headers.insert(X_FORWARDED_CLIENT_CERT, HeaderValue::from_static("By=me"));
    let origin = Origin::of(&connection, 0, false, &headers);
    let settings = ExchangeSettings::default();
    let mut rng = SmallRng::seed_from_u64(1);
    let Cleaned { added, .. } = forward(&mut headers, &connection, &origin, &settings, &mut rng);
    assert!(added.is_none(), "they replace what the client sent");
    let mut bare = HeaderMap::new();
    let Cleaned { added, .. } = forward(&mut bare, &connection, &origin, &settings, &mut rng);
    insert(added, &mut bare);
    for headers in [headers, bare] {
        assert_eq!(headers["x-forwarded-client-cert"], "Hash=ab");
        assert_eq!(headers["x-forwarded-proto"], "https");
    }
}

#[test]
fn peer_is_appended_to_forwarded_for() {
    assert_eq!(
        forwarded("203.0.113.9", &[])["x-forwarded-for"],
        "203.0.113.9"
    );
    let headers = forwarded(
        "203.0.113.9",
        &[
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "2.2.2.2"),
        ],
    );
    assert_eq!(headers.get_all("x-forwarded-for").iter().count(), 1);
    assert_eq!(headers["x-forwarded-for"], "1.1.1.1,2.2.2.2,203.0.113.9");
}

#[test]
fn ipv4_peers_of_a_dual_stack_socket_are_written_as_ipv4() {
    assert_eq!(
        forwarded("::ffff:203.0.113.9", &[])["x-forwarded-for"],
        "203.0.113.9"
    );
}

#[test]
fn headers_of_an_external_client_are_replaced() {
    let headers = forwarded(
        "203.0.113.9",
        &[
            ("x-envoy-internal", "true"),
            ("x-envoy-max-retries", "9"),
            ("x-envoy-original-host", "x.test"),
            ("x-envoy-original-path", "/x"),
            ("x-forwarded-proto", "https"),
            ("x-request-id", "mine"),
            ("x-forwarded-client-cert", "By=me"),
        ],
    );
    assert!(!headers.contains_key("x-forwarded-client-cert"));
    assert!(!headers.contains_key("x-envoy-internal"));
    assert!(!headers.contains_key("x-envoy-max-retries"));
    assert!(!headers.contains_key("x-envoy-original-host"));
    assert!(!headers.contains_key("x-envoy-original-path"));
    assert_eq!(headers["x-forwarded-proto"], "http");
    assert_eq!(headers["x-envoy-external-address"], "203.0.113.9");
    assert_ne!(headers["x-request-id"], "mine");
}

#[test]
fn internal_client_keeps_control_headers_and_request_id() {
    let headers = forwarded(
        "10.1.2.3",
        &[("x-envoy-max-retries", "9"), ("x-request-id", "mine")],
    );
    assert_eq!(headers["x-envoy-internal"], "true");
    assert_eq!(headers["x-envoy-max-retries"], "9");
    assert_eq!(headers["x-request-id"], "mine");
    assert!(!headers.contains_key("x-envoy-external-address"));
}

#[test]
fn internal_peer_behind_another_hop_is_external() {
    let headers = forwarded("10.1.2.3", &[("x-forwarded-for", "203.0.113.9")]);
    assert!(!headers.contains_key("x-envoy-internal"));
    assert_eq!(headers["x-envoy-external-address"], "10.1.2.3");
}

#[test]
fn request_id_is_a_version_4_uuid() {
    let mut rng = SmallRng::seed_from_u64(3);
    for _ in 0..100 {
        let id = uuid(&mut rng);
        let text = std::str::from_utf8(&id).unwrap();
        let groups: Vec<&str> = text.split('-').collect();
        assert_eq!(
            groups.iter().map(|group| group.len()).collect::<Vec<_>>(),
            [8, 4, 4, 4, 12]
        );
        assert!(
            text.bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
        );
        assert_eq!(&groups[2][..1], "4");
        assert!("89ab".contains(&groups[3][..1]));
    }
    assert_ne!(uuid(&mut rng), uuid(&mut rng));
}
