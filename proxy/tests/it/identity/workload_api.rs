//! Identity from a SPIFFE Workload API.

use std::collections::HashMap;

use tonic::Code;

use super::agent::{Agent, Svid, SvidResponse};
use super::{awaits, client, get, mutual, sidecar};
use crate::support::eventually;
use crate::support::origin::{Back, Origin};
use crate::support::pki::{Authority, Pair};
use crate::support::proxy::Proxy;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::upstream_tls::{rule, service};

const CLIENT: &str = "spiffe://cluster.local/ns/edge/sa/client";
const CART: &str = "spiffe://cluster.local/ns/shop/sa/cart";
const PARTNER: &str = "spiffe://partner/ns/shop/sa/cart";

struct World {
    ours: Authority,
    partner: Authority,
}

impl World {
    fn new() -> Self {
        Self {
            ours: Authority::new("ours"),
            partner: Authority::new("partner"),
        }
    }

    /// Returns a message with an identity, and that identity.
    fn message(&self, id: &str) -> (SvidResponse, Pair) {
        let pair = self.ours.server(&[id]);
        let message = SvidResponse {
            svids: vec![Svid::new(id, &pair, &self.ours)],
            ..SvidResponse::default()
        };
        (message, pair)
    }

    /// Starts an endpoint with this identity, whose certificate this authority signed.
    fn endpoint(&self, id: &str, signer: &Authority) -> TlsOrigin {
        let terms = Terms::new(&signer.server(&[id])).for_clients_of(&self.ours);
        TlsOrigin::start(Speaks::H1, &terms)
    }
}

/// Returns a service at this endpoint, and the rule to accept peers with these names.
pub(super) fn accepting(origin: &TlsOrigin, names: &str) -> [String; 2] {
    let policy = format!("{{tls: {{mode: ISTIO_MUTUAL, subjectAltNames: [{names}]}}}}");
    [service(origin, "HTTP", ""), rule(&policy)]
}

fn bundles(proxy: &Proxy, domain: &str) -> f64 {
    proxy.metric(
        "strait_identity_bundle_certificates",
        &[("trust_domain", domain)],
    )
}

#[test]
fn identities_of_an_agent_are_rotated_without_a_failed_request() {
    let world = World::new();
    let (server_message, _) = world.message(CART);
    let (message, _) = world.message(CLIENT);
    let agents = [server_message, message].map(|message| Agent::start(Ok(message)));
    let app = Origin::named(Back::H1, "cart");
    let (server, at) = sidecar(&agents[0].flags("shop", "cart"), app.address, "STRICT");
    let server = server.start();
    let proxy = client(&agents[1].flags("edge", "client"), &mutual(at)).start();
    for round in 2..8 {
        for (agent, id) in [(&agents[0], CART), (&agents[1], CLIENT)] {
            agent.answers(Ok(world.message(id).0));
        }
        for one in [&server, &proxy] {
            eventually("it is rotated", || {
                assert_eq!(get(&proxy).status, 200);
                one.metric("strait_identity_renewals_total", &[("result", "succeeded")])
                    >= f64::from(round)
            });
        }
    }
}

#[test]
fn federated_peer_is_verified_by_the_bundle_of_its_trust_domain() {
    let world = World::new();
    let (mut message, _) = world.message(CLIENT);
    let federated = HashMap::from([("spiffe://partner".to_owned(), world.partner.der())]);
    message.federated_bundles = federated;
    let agent = Agent::start(Ok(message.clone()));
    let partner = world.endpoint(PARTNER, &world.partner);
    let names = format!("{PARTNER}, {CART}");
    let proxy = client(&agent.flags("edge", "client"), &accepting(&partner, &names)).start();
    assert_eq!(get(&proxy).status, 200);
    assert_eq!(
        (bundles(&proxy, "partner"), bundles(&proxy, "cluster.local")),
        (1.0, 1.0)
    );

    // the federated CA signs for our own trust domain, and ours for the partner's
    for (id, signer) in [(CART, &world.partner), (PARTNER, &world.ours)] {
        let impostor = world.endpoint(id, signer);
        proxy.write("more.yaml", accepting(&impostor, &names).join("---\n"));
        eventually("the impostor is tried", || {
            get(&proxy).status == 503 && impostor.failed() > 0
        });
        assert_eq!(get(&proxy).status, 503, "{id}");
    }

    proxy.write("more.yaml", accepting(&partner, &names).join("---\n"));
    eventually("the partner is reached", || get(&proxy).status == 200);
    message.federated_bundles.clear();
    agent.answers(Ok(message));
    eventually("the bundle is gone", || bundles(&proxy, "partner") == 0.0);
    eventually("new connections fail", || get(&proxy).status == 503);
}

#[test]
fn identity_is_chosen_by_hint_or_by_workload() {
    let world = World::new();
    let svid = |id: &str, hint: &str| Svid {
        hint: hint.to_owned(),
        ..Svid::new(id, &world.ours.server(&[id]), &world.ours)
    };
    let other = "spiffe://cluster.local/ns/edge/sa/other";
    let several = SvidResponse {
        svids: vec![
            svid(other, "internal"),
            svid(CLIENT, "external"),
            svid(CLIENT, "more"),
        ],
        ..SvidResponse::default()
    };
    let agent = Agent::start(Ok(several));
    for (more, expected) in [
        (&[][..], Ok(CLIENT)),
        (&["--workload-api-hint", "external"], Ok(CLIENT)),
        (&["--workload-api-hint", "internal"], Err("TLS015")),
        (&["--workload-api-hint", "none"], Err("ID005")),
        (&["--service-account", "third"], Err("ID005")),
    ] {
        let mut flags = agent.flags("edge", "client");
        if let ["--service-account", account] = more {
            *flags.last_mut().unwrap() = (*account).to_owned();
        } else {
            flags.extend(more.iter().map(|text| (*text).to_owned()));
        }
        match expected {
            Ok(id) => {
                let proxy = client(&flags, &[]).start();
                assert!(proxy.page("/certs").contains(id), "{more:?}");
            }
            Err(code) => {
                let proxy = client(&flags, &[]).spawn();
                let log = proxy.has_logged(code);
                assert!(log.contains(other), "{log}");
                assert!(awaits(&proxy, "--identity workload-api"));
            }
        }
    }
}

#[test]
fn identity_that_was_withdrawn_is_not_used() {
    let world = World::new();
    let (message, _) = world.message(CLIENT);
    let agent = Agent::start(Ok(message.clone()));
    let origin = world.endpoint(CART, &world.ours);
    let resources = [
        service(&origin, "HTTP", ""),
        rule("{tls: {mode: ISTIO_MUTUAL}}"),
    ];
    let proxy = client(&agent.flags("edge", "client"), &resources).start();
    assert_eq!(get(&proxy).status, 200);

    // an outage and messages that cannot be used change nothing
    agent.answers(Err(Code::Unavailable));
    proxy.has_logged("the agent has no answer: Unavailable");
    assert_eq!(get(&proxy).status, 200);
    let mut empty = message.clone();
    empty.svids[0].bundle.clear();
    for incomplete in [SvidResponse::default(), empty] {
        agent.answers(Ok(incomplete));
        proxy.has_logged("ID004");
        assert_eq!(get(&proxy).status, 200);
    }
    agent.answers(Ok(message.clone()));
    eventually("the problem is gone", || {
        !proxy.page("/certs").contains("no answer")
    });
    assert_eq!(get(&proxy).status, 200);

    agent.answers(Err(Code::PermissionDenied));
    eventually("it is not ready", || awaits(&proxy, "PermissionDenied"));
    assert_eq!(get(&proxy).status, 503);
    assert_eq!(origin.failed(), 0, "no plain text");
    proxy.has_logged("ID002");
    agent.answers(Ok(message));
    eventually("it is ready again", || proxy.is_ready());
    assert_eq!(get(&proxy).status, 200);
}

#[test]
fn other_paths_are_an_identity_if_any_is_accepted() {
    let world = World::new();
    let id = "spiffe://cluster.local/host/agent-7";
    let agent = Agent::start(Ok(world.message(id).0));
    let mut flags = agent.flags("edge", "client");
    let proxy = client(&flags, &[]).spawn();
    let log = proxy.has_logged("ID005");
    assert!(log.contains(id), "{log}");
    flags.extend(["--spiffe-id-format".to_owned(), "any".to_owned()]);
    let proxy = client(&flags, &[]).start();
    assert!(proxy.page("/certs").contains(id));
}
