//! Identity of the workload from files with the names of other programs.

use std::path::Path;
use std::time::{Duration, Instant};

use super::client;
use crate::support::eventually;
use crate::support::pki::{Authority, Pair};
use crate::support::raw::{GET, Raw};
use crate::support::tls::files;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::upstream_tls::{rule, service};

const SETS: [[&str; 3]; 4] = [
    ["cert-chain.pem", "key.pem", "root-cert.pem"],
    ["tls.crt", "tls.key", "ca.crt"],
    ["svid.pem", "svid_key.pem", "svid_bundle.pem"],
    ["certificates.pem", "private_key.pem", "ca_certificates.pem"],
];

fn write(directory: &Path, names: [&str; 3], pair: &Pair, ca: &Authority) {
    let texts = [pair.chain.as_str(), &pair.key, &ca.pem()].map(str::to_owned);
    let each = names.iter().zip(&texts);
    let each: Vec<(&str, &str)> = each.map(|(name, text)| (*name, &**text)).collect();
    files(directory, &each);
}

fn flags(directory: &Path) -> Vec<String> {
    let directory = directory.to_str().unwrap();
    let flags = ["--mesh-certs", directory, "--namespace", "edge"];
    flags.map(str::to_owned).to_vec()
}

fn endpoint(ca: &Authority) -> TlsOrigin {
    let pair = ca.server(&["spiffe://cluster.local/ns/shop/sa/cart"]);
    TlsOrigin::start(Speaks::H1, &Terms::new(&pair).for_clients_of(ca))
}

const OWN: &str = "spiffe://cluster.local/ns/edge/sa/client";

#[test]
fn each_set_of_names_is_an_identity_and_two_are_an_error() {
    let ca = Authority::new("mesh");
    let origin = endpoint(&ca);
    let resources = [
        service(&origin, "HTTP", ""),
        rule("{tls: {mode: ISTIO_MUTUAL}}"),
    ];
    for (index, names) in SETS.into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let pair = ca.server(&[OWN]);
        write(directory.path(), names, &pair, &ca);
        let proxy = client(&flags(directory.path()), &resources).start();
        assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 200);
        let shown = origin.callers().last().unwrap().certificate.clone();
        assert_eq!(shown, Some(pair.der.clone()), "{names:?}");

        write(
            directory.path(),
            SETS[(index + 1) % 4],
            &ca.server(&[OWN]),
            &ca,
        );
        proxy.has_logged("it has two identities");
        assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 200);
        let mut second = client(&flags(directory.path()), &resources).spawn();
        assert_eq!(second.wait().code(), Some(1));
        assert!(
            second.stderr().contains("it has two identities"),
            "{}",
            second.stderr()
        );
    }
}

#[test]
fn incomplete_set_names_the_file_that_is_missing() {
    let (directory, ca) = (tempfile::tempdir().unwrap(), Authority::new("mesh"));
    write(directory.path(), SETS[1], &ca.server(&[OWN]), &ca);
    std::fs::rename(
        directory.path().join("tls.key"),
        directory.path().join("key.pem"),
    )
    .unwrap();
    let proxy = client(&flags(directory.path()), &[]).spawn();
    let log = proxy.has_logged("tls.key: there is no such file");
    assert!(log.contains("TLS001"), "{log}");
}

#[test]
fn key_and_chain_that_change_one_after_the_other_are_no_finding() {
    let (directory, ca) = (tempfile::tempdir().unwrap(), Authority::new("mesh"));
    let origin = endpoint(&ca);
    let resources = [
        service(&origin, "HTTP", ""),
        rule("{tls: {mode: ISTIO_MUTUAL}}"),
    ];
    write(directory.path(), SETS[1], &ca.server(&[OWN]), &ca);
    let proxy = client(&flags(directory.path()), &resources).start();
    let next = ca.server(&[OWN]);
    files(directory.path(), &[("tls.key", &next.key)]);
    let (changed, mut requests) = (Instant::now(), 0);
    eventually("the new certificate is shown", || {
        if changed.elapsed() > Duration::from_secs(2) {
            files(directory.path(), &[("tls.crt", &next.chain)]);
        }
        assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 200);
        requests += 1;
        origin.callers().last().unwrap().certificate == Some(next.der.clone())
    });
    assert!(requests > 10, "{requests}");
    assert!(!proxy.stderr().contains("TLS004"), "{}", proxy.stderr());
}
