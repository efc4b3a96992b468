//! Renewal under load, and rotation of the root.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::ca::Ca;
use super::{client, mutual, sidecar};
use crate::support::eventually;
use crate::support::origin::{Back, Origin};
use crate::support::pki::Authority;
use crate::support::proxy::Proxy;
use crate::support::raw::{GET, Raw};
use crate::support::tls_origin::Terms;

/// Sidecar and gateway with identities of the same CA, and the workload.
pub(super) struct Mesh {
    pub(super) server: Proxy,
    pub(super) client: Proxy,
    _app: Origin,
}

impl Mesh {
    /// Starts both with the flags of their namespace and account.
    pub(super) fn start(flags: impl Fn(&str, &str) -> Vec<String>) -> Self {
        let app = Origin::named(Back::H1, "cart");
        let (server, at) = sidecar(&flags("shop", "cart"), app.address, "STRICT");
        let client = client(&flags("edge", "client"), &mutual(at));
        Self {
            server: server.start(),
            client: client.start(),
            _app: app,
        }
    }

    /// Sends requests on one open connection and on new ones while `run` runs; returns how many were answered. Panics if
    /// one fails.
    pub(super) fn under_load(&self, run: impl FnOnce()) -> usize {
        let (is_over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for is_kept in [true, false] {
                let (is_over, count, edge) = (&is_over, &count, self.client.edge);
                scope.spawn(move || {
                    let mut open = Raw::connect(edge);
                    while !is_over.load(Ordering::Relaxed) {
                        let status = match is_kept {
                            true => open.send(GET).reply().status,
                            false => Raw::connect(edge).send(GET).reply().status,
                        };
                        assert_eq!(status, 200);
                        count.fetch_add(1, Ordering::Relaxed);
                        std::thread::park_timeout(Duration::from_millis(10));
                    }
                });
            }
            run();
            is_over.store(true, Ordering::Relaxed);
        });
        count.into_inner()
    }
}

#[test]
fn certificates_are_renewed_at_half_of_their_life_under_load() {
    let life = Duration::from_secs(4);
    let ca = Ca::start(life);
    let mesh = Mesh::start(|namespace, account| ca.flags(namespace, account));
    let asked = || ["shop/cart", "edge/client"].map(|token| ca.received(token));
    let count = mesh.under_load(|| {
        eventually("each is renewed ten times", || {
            asked().iter().all(|asked| asked.len() > 10)
        });
    });
    assert!(count > 1_000, "{count} requests");
    for pair in asked().iter().flat_map(|asked| asked.windows(2)) {
        let life = (pair[0].until - pair[0].at).as_secs_f64();
        let part = (pair[1].at - pair[0].at).as_secs_f64() / life;
        // the request itself takes a part of so short a life
        assert!((0.48..0.60).contains(&part), "{part} of {life} s");
    }
}

#[test]
fn root_is_rotated_without_a_failed_handshake() {
    let ca = Ca::start(Duration::from_secs(4));
    let mesh = Mesh::start(|namespace, account| ca.flags(namespace, account));
    let (old, new) = (
        ca.with(|state| state.authority.pem()),
        Authority::new("new mesh"),
    );
    let new_pem = new.pem();
    let server = Terms::new(&new.server(&["127.0.0.1"]));
    let bundles = |expected: f64| {
        for proxy in [&mesh.server, &mesh.client] {
            eventually("the bundle is followed", || {
                let labels = [("trust_domain", "cluster.local")];
                proxy.metric("strait_identity_bundle_certificates", &labels) == expected
            });
        }
    };
    let signs = || ["shop/cart", "edge/client"].map(|token| ca.received(token).len());
    let is_renewed = |before: [usize; 2]| {
        eventually("both are renewed", || {
            signs()
                .iter()
                .zip(before)
                .all(|(now, before)| *now > before + 1)
        });
    };
    bundles(1.0);
    mesh.under_load(|| {
        ca.write("root.pem", &format!("{old}{new_pem}"));
        bundles(2.0);
        ca.with(|state| state.authority = new);
        ca.server.change(&server);
        is_renewed(signs());
        ca.write("root.pem", &new_pem);
        bundles(1.0);
        is_renewed(signs());
    });
}
