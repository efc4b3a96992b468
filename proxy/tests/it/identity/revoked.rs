//! Revocation lists of sources of identities.

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;

use super::agent::{Agent, Svid, SvidResponse};
use super::ca::Ca;
use super::workload_api::accepting;
use super::{HOUR, client, get};
use crate::support::eventually;
use crate::support::pki::{Authority, Pair};
use crate::support::proxy::Proxy;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

const CLIENT: &str = "spiffe://cluster.local/ns/edge/sa/client";
const CART: &str = "spiffe://cluster.local/ns/shop/sa/cart";

fn endpoint(pair: &Pair) -> TlsOrigin {
    TlsOrigin::start(Speaks::H1, &Terms::new(pair))
}

/// Whether new connections to the endpoint are refused, and served again without the list.
fn follows(proxy: &Proxy, set: impl Fn(bool)) {
    for is_revoked in [false, true, false] {
        set(is_revoked);
        let expected = if is_revoked { 503 } else { 200 };
        eventually("the list is followed", || get(proxy).status == expected);
    }
}

#[test]
fn peer_in_a_list_of_an_istio_ca_is_refused() {
    let ca = Ca::start(HOUR);
    let cart = ca.with(|state| state.authority.server(&[CART]));
    let list = ca.with(|state| state.authority.revoke(&[&cart]));
    let origin = endpoint(&cart);
    let mut flags = ca.flags("edge", "client");
    let path = ca.file("crl.pem");
    flags.extend(["--ca-crl".to_owned(), path.clone()]);
    // there is no file at first, and an empty one takes the list away
    let proxy = client(&flags, &accepting(&origin, CART)).start();
    assert_eq!(get(&proxy).status, 200);
    follows(&proxy, |is_revoked| {
        ca.write("crl.pem", if is_revoked { &list } else { "" });
    });

    ca.write("crl.pem", &list);
    eventually("the list is followed", || get(&proxy).status == 503);
    std::fs::remove_file(&path).unwrap();
    let more = Authority::new("more").pem();
    ca.write(
        "root.pem",
        &(ca.with(|state| state.authority.pem()) + &more),
    );
    eventually("the files are read", || {
        proxy.metric("strait_identity_bundle_certificates", &[]) == 2.0
    });
    assert_eq!(get(&proxy).status, 503, "without the file, the list stays");
    ca.write("crl.pem", "no list");
    proxy.has_logged("TLS008");
    assert_eq!(get(&proxy).status, 503, "as does the last good one");
}

#[test]
fn peer_in_a_list_of_the_workload_api_is_refused() {
    let authority = Authority::new("ours");
    let [cart, own] = [CART, CLIENT].map(|id| authority.server(&[id]));
    let list = authority.revoke(&[&cart]);
    let list = CertificateRevocationListDer::from_pem_slice(list.as_bytes()).unwrap();
    let message = |lists: Vec<Vec<u8>>| SvidResponse {
        svids: vec![Svid::new(CLIENT, &own, &authority)],
        crl: lists,
        ..SvidResponse::default()
    };
    let agent = Agent::start(Ok(message(Vec::new())));
    let origin = endpoint(&cart);
    let proxy = client(&agent.flags("edge", "client"), &accepting(&origin, CART)).start();
    follows(&proxy, |is_revoked| {
        let lists = if is_revoked {
            vec![list.to_vec()]
        } else {
            vec![]
        };
        agent.answers(Ok(message(lists)));
    });
}
