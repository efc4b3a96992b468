//! Certificate changes while the gateway serves.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::client::Front;
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::tls::{Edge, credential, files, get, server};
use crate::support::{eventually, until};

const HOST: &str = "a.example";

/// Starts a gateway whose certificate files are in a directory that is replaced as Kubernetes does it.
fn from_files(directory: &Path, pair: &Pair, ca: Authority) -> Edge {
    mount(directory, "..first", pair);
    symlink("..data/tls.crt", directory.join("tls.crt")).unwrap();
    symlink("..data/tls.key", directory.join("tls.key")).unwrap();
    let path = directory.display();
    let tls = format!(
        "{{mode: SIMPLE, serverCertificate: '{path}/tls.crt', privateKey: '{path}/tls.key'}}"
    );
    Edge::start(ca, &[], |edge| vec![server(edge, "https", "['*']", &tls)])
}

/// Writes a certificate in the layout of a mounted Secret.
fn mount(directory: &Path, name: &str, pair: &Pair) {
    std::fs::create_dir(directory.join(name)).unwrap();
    files(
        &directory.join(name),
        &[("tls.crt", &pair.chain), ("tls.key", &pair.key)],
    );
    symlink(name, directory.join("..data_tmp")).unwrap();
    std::fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
}

async fn serves(edge: &Edge, pair: &Pair) {
    until("the certificate is served", async || {
        edge.visitor().certificate(HOST).await.unwrap() == pair.der
    })
    .await;
}

#[tokio::test]
async fn changed_certificate_files_are_reloaded_and_connections_stay_open() {
    let ca = Authority::new("ca");
    let (first, second) = (ca.server(&[HOST]), ca.server(&[HOST]));
    let directory = tempfile::tempdir().unwrap();
    let edge = from_files(directory.path(), &first, ca);
    let mut open = edge.visitor().client(Front::H2, HOST).await.unwrap();
    assert_eq!(open.call(get(HOST, "/")).await.status, 200);
    serves(&edge, &first).await;

    mount(directory.path(), "..second", &second);
    serves(&edge, &second).await;
    assert_eq!(open.call(get(HOST, "/")).await.status, 200);
    assert!(!open.ended.is_finished());
}

#[tokio::test]
async fn changed_certificate_secret_is_reloaded_and_connections_stay_open() {
    let ca = Authority::new("ca");
    let (first, second) = (ca.server(&[HOST]), ca.server(&[HOST]));
    let edge = Edge::start(ca, &[credential("cred", &first)], |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            "{mode: SIMPLE, credentialName: cred}",
        )]
    });
    let mut open = edge.visitor().client(Front::H1, HOST).await.unwrap();
    assert_eq!(open.call(get(HOST, "/")).await.status, 200);
    let visitor = edge.visitor().resuming();
    assert_eq!(visitor.status(HOST).await, 200);

    // A change that is none of the certificate's keeps the sessions.
    edge.proxy
        .write("unrelated.yaml", credential("unrelated", &second));
    eventually("it is loaded", || {
        edge.proxy.page("/config_dump").contains("unrelated")
            || edge.proxy.metric("strait_config_generation", &[]) > 1.0
    });
    let resumed = || {
        edge.proxy.metric(
            "strait_downstream_tls_handshakes_total",
            &[("result", "resumed")],
        )
    };
    assert_eq!(visitor.status(HOST).await, 200);
    assert_eq!(resumed(), 1.0);

    edge.proxy.write("more.yaml", credential("cred", &second));
    serves(&edge, &second).await;
    assert_eq!(open.call(get(HOST, "/")).await.status, 200);
    assert_eq!(visitor.status(HOST).await, 200);
    assert_eq!(resumed(), 1.0, "no session outlives its certificate");
}

#[tokio::test]
async fn invalid_certificate_is_not_loaded_and_logged_once() {
    let ca = Authority::new("ca");
    let (good, other) = (ca.server(&[HOST]), ca.server(&[HOST]));
    let expired = ca.issue(Leaf {
        names: &[HOST],
        years: (2020, 2021),
        ..Leaf::default()
    });
    let early = ca.issue(Leaf {
        names: &[HOST],
        years: (3000, 3001),
        ..Leaf::default()
    });
    let torn = Pair {
        key: other.key.clone(),
        ..good.clone()
    };
    let edge = Edge::start(ca, &[credential("cred", &good)], |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            "{mode: SIMPLE, credentialName: cred}",
        )]
    });
    let source = [("source", "secret default/cred")];
    let refused = || edge.proxy.metric("strait_certificate_rejected", &source);
    assert_eq!(refused(), 0.0);
    let expires = edge
        .proxy
        .metric("strait_certificate_expiration_timestamp_seconds", &source);
    assert_eq!(expires, 64_092_124_800.0);
    for (bad, code, word) in [
        (&torn, "TLS004", "does not belong"),
        (&expired, "TLS005", "expired at 2021-12-31T00:00:00Z"),
        (&early, "TLS006", "not valid before 3000-01-01T00:00:00Z"),
    ] {
        edge.proxy.write("more.yaml", credential("cred", bad));
        eventually(code, || edge.proxy.page("/certs").contains(word));
        assert_eq!(refused(), 1.0, "{code}");
        assert_eq!(edge.visitor().certificate(HOST).await.unwrap(), good.der);
        let log = edge.proxy.has_logged(word);
        let told = log
            .lines()
            .filter(|line| line.contains(code) && line.contains(word));
        assert_eq!(told.count(), 1, "{code}\n{log}");
        assert!(log.contains("mesh.yaml:") && log.contains("the last good one stays in effect"));
    }
    let page: serde_json::Value = serde_json::from_str(&edge.proxy.page("/certs")).unwrap();
    let entry = &page["certificates"][0];
    assert_eq!(entry["source"], "secret default/cred");
    assert_eq!(entry["last_good_version_in_use"], true);
    let chain = &entry["cert_chain"][0];
    assert_eq!(chain["subject_alt_names"][0]["dns"], HOST);
    assert_eq!(chain["expiration_time"], "4000-12-31T00:00:00Z");
    assert_eq!(chain["subject"], "CN=leaf");
    assert!(
        chain["days_until_expiration"]
            .as_str()
            .unwrap()
            .parse::<u32>()
            .unwrap()
            > 700_000
    );
    assert!(!edge.proxy.page("/certs").contains("PRIVATE"));

    edge.proxy.write("more.yaml", credential("cred", &other));
    serves(&edge, &other).await;
    eventually("all is well", || refused() == 0.0);
}

#[tokio::test]
async fn removed_secret_keeps_the_last_certificate() {
    let ca = Authority::new("ca");
    let pair = ca.server(&[HOST]);
    let edge = Edge::start(ca, &[credential("cred", &pair)], |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            "{mode: SIMPLE, credentialName: cred}",
        )]
    });
    assert_eq!(edge.visitor().status(HOST).await, 200);
    edge.proxy.remove("more.yaml");
    eventually("it is noticed", || {
        edge.proxy
            .page("/certs")
            .contains("there is no such secret")
    });
    assert_eq!(edge.visitor().status(HOST).await, 200);
}

#[tokio::test]
async fn secrets_of_another_namespace_are_not_used() {
    let ca = Authority::new("ca");
    let pair = ca.server(&[HOST]);
    let foreign =
        credential("cred", &pair).replace("{name: cred}", "{name: cred, namespace: other}");
    let edge = Edge::start(ca, &[foreign], |edge| {
        vec![server(
            edge,
            "https",
            "['*']",
            "{mode: SIMPLE, credentialName: 'kubernetes://other/cred'}",
        )]
    });
    assert_eq!(edge.visitor().status(HOST).await, 0);
    let log = edge.proxy.has_logged("secret other/cred");
    assert!(log.contains("TLS013"), "{log}");
}

#[test]
fn check_validates_certificates() {
    let ca = Authority::new("ca");
    let (pair, other) = (ca.server(&[HOST]), ca.server(&[HOST]));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    files(
        directory.path(),
        &[
            ("a.crt", &pair.chain),
            ("a.key", &pair.key),
            ("b.key", &other.key),
        ],
    );
    let address = "127.0.0.1:443".parse().unwrap();
    for (key, host, expected) in [
        ("a.key", HOST, "0 errors, 0 warnings"),
        ("b.key", HOST, "TLS004"),
        ("c.key", HOST, "TLS001"),
        ("a.key", "b.example", "TLS011"),
    ] {
        let tls = format!(
            "{{mode: SIMPLE, serverCertificate: '{path}/a.crt', privateKey: '{path}/{key}'}}"
        );
        let gateway =
            crate::support::tls::gateway(&[server(address, "https", &format!("[{host}]"), &tls)]);
        let mesh = directory.path().join("mesh.yaml");
        std::fs::write(&mesh, gateway).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["check", "--config"])
            .arg(&mesh)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(expected), "{key} {host}\n{text}");
        if expected.starts_with("TLS") {
            assert!(text.contains("mesh.yaml:7"), "{text}");
            assert!(
                text.contains("tls: {mode: SIMPLE"),
                "the line is shown: {text}"
            );
        }
        assert_eq!(output.status.success(), expected != "TLS004", "{text}");
    }
}
