//! Certificates for upstream TLS that change, break, or are missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::pki::{Leaf, Pair};
use crate::support::raw::{GET, Raw};
use crate::support::tls::{files, secret};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::upstream_tls::{Files, get, rule, service, start, started};

const MUTUAL: &str = "mode: MUTUAL, clientCertificate: '@client.pem', privateKey: '@client.key', caCertificates: '@ca.pem'";

fn replace(material: &Files, pair: &Pair) {
    // as careful as those who renew certificates are: each file at once
    for (name, text) in [("client.key", &pair.key), ("client.pem", &pair.chain)] {
        let next = material.path().join("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, material.path().join(name)).unwrap();
    }
}

fn mutual(material: &Files) -> TlsOrigin {
    let server = material.ca.server(&["a.test"]);
    TlsOrigin::start(
        Speaks::H1,
        &Terms::new(&server).for_clients_of(&material.ca),
    )
}

#[test]
fn certificate_renewal_under_load_fails_no_request() {
    let material = Files::new();
    let origin = mutual(&material);
    let proxy = start(&[service(&origin, "HTTP", ""), rule(&material.tls(MUTUAL))]);
    let (stop, served) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (stop, served, edge) = (Arc::clone(&stop), Arc::clone(&served), proxy.edge);
            std::thread::spawn(move || {
                let mut client = Raw::connect(edge);
                while !stop.load(Ordering::Relaxed) {
                    let reply = client.send(GET).reply();
                    assert_eq!(
                        reply.status,
                        200,
                        "{}",
                        String::from_utf8_lossy(&reply.body)
                    );
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..3 {
        let pair = material.ca.issue(Leaf::default());
        replace(&material, &pair);
        eventually("the new certificate is shown", || {
            let callers = origin.callers();
            callers
                .iter()
                .any(|caller| caller.certificate.as_ref() == Some(&pair.der))
        });
        let before = served.load(Ordering::Relaxed);
        eventually("requests go on", || {
            served.load(Ordering::Relaxed) > before + 50
        });
    }
    stop.store(true, Ordering::Relaxed);
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    assert_eq!(origin.failed(), 0);
    let closed = || proxy.metric("strait_upstream_connections_active", &[]);
    eventually("connections by what is old are gone", || closed() <= 8.0);
}

#[test]
fn invalid_or_removed_files_keep_the_last_certificate() {
    let material = Files::new();
    let origin = mutual(&material);
    let proxy = started(
        &[service(&origin, "HTTP", ""), rule(&material.tls(MUTUAL))],
        |start| start.args(["--concurrency", "1"]),
    );
    assert_eq!(get(&proxy).status, 200);
    let expired = material.ca.issue(Leaf {
        years: (2020, 2021),
        ..Leaf::default()
    });
    let broken = Pair {
        chain: "nonsense".to_owned(),
        ..expired.clone()
    };
    for (pair, code) in [(&broken, "TLS002"), (&expired, "TLS005")] {
        replace(&material, pair);
        eventually(code, || {
            let log = proxy.stderr();
            log.contains(code) && log.contains("spec.trafficPolicy.tls.clientCertificate")
        });
        origin.change(&Terms::new(&material.ca.server(&["a.test"])).for_clients_of(&material.ca));
        assert_eq!(get(&proxy).status, 200);
    }
    std::fs::remove_file(material.path().join("ca.pem")).unwrap();
    eventually("it is told", || {
        proxy.page("/certs").contains("there is no such file")
    });
    assert_eq!(get(&proxy).status, 200);
    proxy.has_logged("the last good one stays in effect");
    let first = origin.callers()[0].certificate.clone();
    assert!(
        origin
            .callers()
            .iter()
            .all(|caller| caller.certificate == first)
    );
}

#[test]
fn changed_authority_applies_to_the_next_request() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["a.test"])));
    let tls = "mode: SIMPLE, credentialName: cred";
    let all = |ca: String| {
        documents([
            service(&origin, "HTTP", ""),
            rule(&material.tls(tls)),
            secret("cred", &[("ca.crt", &*ca)]),
        ])
    };
    let proxy = start(&[]);
    proxy.write("more.yaml", all(material.ca.pem()));
    eventually("it is trusted", || get(&proxy).status == 200);
    // the connections that were made by the other one are not used again
    proxy.write("more.yaml", all(material.other.pem()));
    eventually("it is not", || get(&proxy).status == 503);
    proxy.write("more.yaml", all(material.ca.pem()));
    eventually("it is again", || get(&proxy).status == 200);
}

#[test]
fn certificate_file_created_later_is_loaded() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["a.test"])));
    let tls = "mode: SIMPLE, caCertificates: '@late.pem'";
    let proxy = start(&[service(&origin, "HTTP", ""), rule(&material.tls(tls))]);
    assert_eq!(get(&proxy).status, 503);
    assert_eq!(
        (origin.callers().len(), origin.failed()),
        (0, 0),
        "no connection is opened"
    );
    files(material.path(), &[("late.pem", &material.ca.pem())]);
    eventually("it is found", || get(&proxy).status == 200);
}

#[test]
fn check_validates_certificate_files_of_destination_rules() {
    let material = Files::new();
    for (tls, expected) in [
        (MUTUAL, "0 errors, 0 warnings"),
        ("mode: SIMPLE, caCertificates: '@none.pem'", "TLS001"),
        ("mode: SIMPLE, caCertificates: '@broken.pem'", "TLS007"),
        (
            "mode: SIMPLE, caCertificates: '@ca.pem', caCrl: '@broken.pem'",
            "TLS008",
        ),
        (
            "mode: MUTUAL, clientCertificate: '@client.pem', privateKey: '@broken.pem', caCertificates: '@ca.pem'",
            "TLS003",
        ),
        (
            "mode: MUTUAL, clientCertificate: '@ca.pem', privateKey: '@client.key', caCertificates: '@ca.pem'",
            "TLS004",
        ),
    ] {
        let entry = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a}\nspec: {hosts: [a.test], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1}]}\n";
        let mesh = material.path().join("mesh.yaml");
        std::fs::write(
            &mesh,
            documents([rule(&material.tls(tls)), entry.to_owned()]),
        )
        .unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["check", "--config"])
            .arg(&mesh)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(expected), "{tls}\n{text}");
        assert!(
            !expected.starts_with("TLS") || text.contains("mesh.yaml:7"),
            "{text}"
        );
    }
}
