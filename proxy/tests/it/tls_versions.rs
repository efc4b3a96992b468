//! TLS negotiation between client and gateway: versions, cipher suites, certificates, protocols, and resumed sessions.

use std::io::Write;
use std::process::{Command, Stdio};

use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::version::{TLS12, TLS13};

use crate::support::client::Front;
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::tls::{Edge, credential, get, server};

fn edge(tls: &str) -> Edge {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.example"]);
    Edge::start(ca, &[credential("cred", &pair)], |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            &format!("{{mode: SIMPLE, credentialName: cred, {tls}}}"),
        )]
    })
}

#[tokio::test]
async fn tls_versions_follow_the_server_settings() {
    for (tls, expected) in [
        ("", [200, 200]),
        ("minProtocolVersion: TLSV1_0", [200, 200]),
        ("minProtocolVersion: TLSV1_2", [200, 200]),
        ("minProtocolVersion: TLSV1_3", [0, 200]),
        ("maxProtocolVersion: TLSV1_2", [200, 0]),
        ("maxProtocolVersion: TLSV1_3", [200, 200]),
    ] {
        let edge = edge(tls);
        let visitor = edge.visitor();
        let old = visitor.clone().speaking(&TLS12).status("a.example").await;
        let new = visitor.speaking(&TLS13).status("a.example").await;
        assert_eq!([old, new], expected, "{tls}");
        let turned_away = expected.iter().filter(|status| **status == 0).count();
        edge.turns_away("tls_version", turned_away as f64);
    }
}

#[tokio::test]
async fn cipher_suites_apply_to_tls_1_2_only() {
    let edge = edge("cipherSuites: [AES128-SHA, ECDHE-ECDSA-AES256-GCM-SHA384]");
    let mut visitor = edge.visitor().speaking(&TLS12);
    visitor.suites = vec![suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256];
    assert_eq!(visitor.status("a.example").await, 0);
    edge.turns_away("no_shared_parameters", 1.0);
    visitor
        .suites
        .push(suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384);
    let stream = visitor.connect("a.example").await.unwrap();
    let agreed = stream.get_ref().1.negotiated_cipher_suite().unwrap();
    assert_eq!(agreed, suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384);
    let visitor = edge.visitor().speaking(&TLS13);
    assert_eq!(visitor.status("a.example").await, 200);
    let log = edge.proxy.has_logged("GW218");
    assert!(log.contains("AES128-SHA"), "{log}");
}

#[tokio::test]
async fn unsupported_curve_is_reported() {
    let edge = edge("ecdhCurves: [P-521, P-384]");
    assert_eq!(edge.visitor().status("a.example").await, 200);
    let log = edge.proxy.has_logged("TLS012");
    assert!(log.contains("P-521"), "{log}");
}

#[tokio::test]
async fn client_gets_the_certificate_type_it_supports() {
    let ca = Authority::new("ca");
    let names = &["a.example"][..];
    let ecdsa = ca.server(names);
    let rsa = ca.issue(Leaf {
        names,
        rsa: true,
        ..Leaf::default()
    });
    let secrets = [credential("rsa", &rsa), credential("ecdsa", &ecdsa)];
    let edge = Edge::start(ca, &secrets, |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            "{mode: SIMPLE, credentialNames: [rsa, ecdsa]}",
        )]
    });
    let is = |found: Vec<u8>, pair: &Pair| found == pair.der;
    let visitor = edge.visitor();
    assert!(is(visitor.certificate("a.example").await.unwrap(), &ecdsa));
    let mut old = visitor.speaking(&TLS12);
    old.suites = vec![suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256];
    assert!(is(old.certificate("a.example").await.unwrap(), &rsa));
    old.suites = vec![suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256];
    assert!(is(old.certificate("a.example").await.unwrap(), &ecdsa));
}

#[tokio::test]
async fn client_without_common_alpn_gets_http_1_1() {
    let edge = edge("");
    for (offered, agreed) in [
        (vec![], None),
        (vec![&b"http/1.1"[..]], Some(&b"http/1.1"[..])),
        (vec![b"http/1.1", b"h2"], Some(b"h2")),
        (vec![b"spdy/3"], None),
        (vec![b"http/1.0", b"acme"], None),
    ] {
        let mut visitor = edge.visitor();
        visitor.alpn = offered.iter().map(|name| name.to_vec()).collect();
        let stream = visitor.connect("a.example").await.unwrap();
        let found = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        assert_eq!(found.as_deref(), agreed, "{offered:?}");
        let front = if agreed == Some(b"h2") {
            Front::H2
        } else {
            Front::H1
        };
        let client = crate::support::client::Client::over(front, stream);
        let answer = client.await.unwrap().call(get("a.example", "/")).await;
        assert_eq!(answer.status, 200, "{offered:?}");
    }
}

#[tokio::test]
async fn second_connection_resumes_the_session_of_the_first() {
    let edge = edge("");
    for version in [&TLS12, &TLS13] {
        let visitor = edge.visitor().speaking(version).resuming();
        let resumed = || {
            edge.proxy.metric(
                "strait_downstream_tls_handshakes_total",
                &[("result", "resumed")],
            )
        };
        let before = resumed();
        // Whichever worker takes them.
        for _ in 0..5 {
            assert_eq!(visitor.status("a.example").await, 200);
        }
        assert_eq!(resumed() - before, 4.0, "{version:?}");
    }
}

/// Runs `openssl s_client` against the gateway with one request on standard input; returns its whole output.
fn openssl(edge: &Edge, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, edge.ca.pem()).unwrap();
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-ign_eof",
            "-servername",
            "a.example",
            "-verify_return_error",
        ])
        .arg("-CAfile")
        .arg(ca)
        .arg("-connect")
        .arg(edge.proxy.edge.to_string())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is installed: .ci/run sees to it");
    let request = b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    // A handshake that fails reads nothing.
    let _ = child.stdin.take().unwrap().write_all(request);
    let output = child.wait_with_output().unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn openssl_connects_with_tls_1_2_and_1_3() {
    let edge = edge("");
    for (arguments, version) in [
        (&["-tls1_3"][..], "TLSv1.3"),
        (&["-tls1_2"], "TLSv1.2"),
        (&["-tls1_3", "-groups", "P-384"], "TLSv1.3"),
        (
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"],
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
    ] {
        let text = openssl(&edge, arguments);
        assert!(text.contains("HTTP/1.1 200 OK"), "{text}");
        assert!(text.contains(version), "{text}");
        assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    }
}

#[test]
fn openssl_with_an_old_tls_version_is_rejected() {
    let edge = edge("");
    for version in ["-tls1_1", "-tls1"] {
        let text = openssl(&edge, &[version, "-cipher", "DEFAULT:@SECLEVEL=0"]);
        assert!(!text.contains("HTTP/1.1"), "{text}");
    }
    edge.turns_away("tls_version", 2.0);
}

#[test]
fn openssl_gets_an_alert_for_a_missing_certificate() {
    let (ca, clients) = (Authority::new("ca"), Authority::new("clients"));
    let pair = ca.server(&["a.example"]);
    let values = [
        ("tls.crt", &*pair.chain),
        ("tls.key", &pair.key),
        ("ca.crt", &clients.pem()),
    ];
    let secret = crate::support::tls::secret("cred", &values);
    let edge = Edge::start(ca, &[secret], |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            "{mode: MUTUAL, credentialName: cred}",
        )]
    });
    let text = openssl(&edge, &["-tls1_3"]);
    assert!(text.contains("certificate required"), "{text}");
    assert!(
        text.contains("Acceptable client certificate CA names"),
        "{text}"
    );
    assert!(
        text.contains("CN = clients") || text.contains("CN=clients"),
        "{text}"
    );
}
