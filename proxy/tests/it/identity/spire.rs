//! Identity from a real SPIRE server and agent.
//!
//! Set `SPIRE` to a folder with `spire-server` and `spire-agent`; without it the tests are skipped.

mod deployment;

use std::process::Command;

use self::deployment::{LIFE, Spire};
use super::rotation::Mesh;
use super::workload_api::accepting;
use super::{awaits, client, get, mutual, sidecar};
use crate::support::eventually;
use crate::support::origin::{Back, Origin};
use crate::support::pki::Authority;
use crate::support::proxy::Proxy;
use crate::support::raw::{GET, Raw};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

const CLIENT: &str = "spiffe://cluster.local/ns/edge/sa/client";
const CART: &str = "spiffe://cluster.local/ns/shop/sa/cart";
const PARTNER: &str = "spiffe://partner/ns/shop/sa/cart";

/// Selector of every process of this test.
fn own_user() -> String {
    let output = Command::new("id").arg("-u").output().unwrap();
    let user = String::from_utf8(output.stdout).unwrap();
    format!("unix:uid:{}", user.trim())
}

/// Registers both workloads. The agent gives both identities to both proxies, which choose.
fn registered(spire: &Spire) {
    spire.register("client", CLIENT, &own_user(), &[]);
    spire.register("cart", CART, &own_user(), &[]);
}

fn renewals(proxy: &Proxy) -> f64 {
    proxy.metric("strait_identity_renewals_total", &[("result", "succeeded")])
}

fn bundle(proxy: &Proxy, domain: &str) -> f64 {
    let name = "strait_identity_bundle_certificates";
    proxy.metric(name, &[("trust_domain", domain)])
}

#[test]
fn identities_of_spire_are_rotated_with_their_authority_without_a_failed_request() {
    let Some(spire) = Spire::start() else { return };
    registered(&spire);
    let mesh = Mesh::start(|namespace, account| spire.flags(namespace, account));
    let both = [&mesh.server, &mesh.client];
    let findings = || both.map(|proxy| proxy.stderr().matches("ID00").count());
    let before = findings();
    let is_renewed = |more: f64| {
        let before = both.map(renewals);
        for (proxy, before) in both.into_iter().zip(before) {
            eventually("it is renewed", || renewals(proxy) >= before + more);
        }
    };
    let trusts = |expected: f64| {
        for proxy in both {
            let holds = || bundle(proxy, "cluster.local") == expected;
            eventually("the bundle is followed", holds);
        }
    };
    trusts(1.0);
    let count = mesh.under_load(|| {
        is_renewed(3.0);
        let old = spire.authority("show", &[], "active");
        let new = spire.authority("prepare", &[], "prepared_authority");
        trusts(2.0);
        let named = ["-authorityID", &new];
        spire.authority("activate", &named, "activated_authority");
        is_renewed(2.0);
        let named = ["-authorityID", &old];
        spire.authority("taint", &named, "tainted_authority");
        is_renewed(1.0);
        spire.authority("revoke", &named, "revoked_authority");
        trusts(1.0);
        is_renewed(1.0);
    });
    assert!(count > 1_000, "{count} requests");
    for (proxy, id) in both.into_iter().zip([CART, CLIENT]) {
        assert!(proxy.page("/certs").contains(id));
    }
    assert_eq!(findings(), before);
}

#[test]
fn identity_of_spire_is_used_until_it_expires_while_the_agent_is_gone() {
    let Some(mut spire) = Spire::start() else {
        return;
    };
    registered(&spire);
    let app = Origin::named(Back::H1, "cart");
    let (server, at) = sidecar(&spire.flags("shop", "cart"), app.address, "STRICT");
    let server = server.start();
    let proxy = client(&spire.flags("edge", "client"), &mutual(at)).start();
    assert_eq!(get(&proxy).status, 200);

    spire.stop_agent();
    for one in [&proxy, &server] {
        one.has_logged("the agent has no answer: Unavailable");
        assert!(one.is_ready());
    }
    assert_eq!(get(&proxy).status, 200);
    for one in [&proxy, &server] {
        eventually("it has expired", || awaits(one, "expired at"));
        assert!(one.has_logged("ID003").contains("ID001"));
    }
    let before = app.connections();
    assert_eq!(get(&proxy).status, 503);
    assert!(Raw::connect(at).send(GET).is_closed(), "no plain text");
    assert_eq!(app.connections(), before);

    spire.start_agent();
    for one in [&proxy, &server] {
        eventually("it is ready again", || one.is_ready());
    }
    assert_eq!(get(&proxy).status, 200);

    // an operator removes the entry: not even the certificate that is valid still is used
    spire.unregister("client");
    eventually("it is withdrawn", || awaits(&proxy, "no identity is that"));
    spire.unregister("cart");
    eventually("it is withdrawn", || awaits(&server, "PermissionDenied"));
    assert_eq!(get(&proxy).status, 503);
    registered(&spire);
    for one in [&proxy, &server] {
        eventually("it is ready again", || one.is_ready());
    }
    assert_eq!(get(&proxy).status, 200);
    assert!(LIFE < 60, "the certificate expires within the deadline");
}

#[test]
fn entry_of_another_process_is_named_and_a_federated_bundle_verifies_its_peers_only() {
    let Some(spire) = Spire::start() else { return };
    // as long as no entry fits the process, SPIRE refuses
    spire.register("teller", CART, "unix:uid:4711", &[]);
    let waiting = client(&spire.flags("edge", "client"), &[]).spawn();
    let log = waiting.has_logged("ID002");
    for text in ["no identity issued", "register the workload"] {
        assert!(log.contains(text), "{log}");
    }
    assert!(awaits(&waiting, "no identity issued"));

    let partner = Authority::new("partner");
    spire.trusts("spiffe://partner", &partner.pem());
    spire.register("client", CLIENT, &own_user(), &["spiffe://partner"]);
    eventually("it is ready", || waiting.is_ready());

    let flags = spire.flags("shop", "cart");
    let wrong = client(&flags, &[]).spawn();
    let log = wrong.has_logged("ID005");
    assert!(log.contains(CLIENT) && !log.contains(CART), "{log}");
    assert!(log.contains("--service-account"), "{log}");

    let endpoint = |id: &str, signer: &Authority| {
        TlsOrigin::start(Speaks::H1, &Terms::new(&signer.server(&[id])))
    };
    let names = format!("{PARTNER}, {CART}");
    let [good, impostor] = [PARTNER, CART].map(|id| endpoint(id, &partner));
    let flags = spire.flags("edge", "client");
    let proxy = client(&flags, &accepting(&good, &names)).start();
    assert_eq!(
        (bundle(&proxy, "partner"), bundle(&proxy, "cluster.local")),
        (1.0, 1.0)
    );
    assert_eq!(get(&proxy).status, 200);
    proxy.write("more.yaml", accepting(&impostor, &names).join("---\n"));
    eventually("the impostor is tried", || {
        get(&proxy).status == 503 && impostor.failed() > 0
    });
}
