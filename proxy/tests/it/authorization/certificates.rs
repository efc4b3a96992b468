//! Certificates of clients at a gateway: which identity they prove, if any, and names of servers in their handshakes.

use super::{from, of};
use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::tls::{Edge, Visitor, secret, server};

const KNOWN: &str = "spiffe://td1/ns/foo/sa/bar";

/// Gateway that asks clients for certificates of an authority.
struct Clients {
    edge: Edge,
    authority: Authority,
}

impl Clients {
    fn start() -> Self {
        let (ca, authority) = (Authority::new("ca"), Authority::new("clients"));
        let pair = ca.server(&["a.test", "b.test"]);
        let values = [
            ("tls.crt", &*pair.chain),
            ("tls.key", &*pair.key),
            ("ca.crt", &authority.pem()),
        ];
        let secret = secret("cred", &values);
        let servers = |edge| {
            let tls = "{mode: OPTIONAL_MUTUAL, credentialName: cred}";
            vec![server(edge, "https", "['*']", tls)]
        };
        let edge = Edge::start_with(ca, &[secret], servers, |start| {
            let domains = ["--trust-domain", "td1", "--trust-domain-aliases", "td2"];
            start.args(domains).file("policies.yaml", "")
        });
        Self { edge, authority }
    }

    fn set(&self, policy: &str) {
        let generation = || self.edge.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        self.edge.proxy.write("policies.yaml", documents([policy]));
        eventually("the policy is in effect", || generation() > before);
    }

    fn issue(&self, subject: &str, names: &[&str]) -> Pair {
        self.authority.issue(Leaf {
            subject,
            names,
            ..Leaf::default()
        })
    }

    /// Returns the status for a client with a certificate of these names.
    async fn status(&self, names: &[&str]) -> u16 {
        let pair = self.issue("client", names);
        self.edge.visitor().with(&pair).status("a.test").await
    }
}

#[tokio::test]
async fn only_the_one_uri_of_a_workload_is_an_identity() {
    let clients = Clients::start();
    clients.set(&of("ALLOW", &from("principals: [td1/ns/foo/sa/bar]")));
    assert_eq!(clients.edge.visitor().status("a.test").await, 403);
    for (names, status) in [
        (&[KNOWN][..], 200),
        (&[KNOWN, "bar.foo.test"], 200),
        (&["spiffe://td1/ns/foo/sa/barx"], 403),
        (&["spiffe://td1/ns/foo/sa/bar/extra"], 403),
        (&["spiffe://evil/td1/ns/foo/sa/bar"], 403),
        (&["spiffe://TD1/ns/foo/sa/bar"], 403),
        (&["spiffe://td2/ns/x/sa/y", KNOWN], 403),
        (&["https://td1/ns/foo/sa/bar"], 403),
        (&["bar.foo.test"], 403),
        (&[], 403),
    ] {
        assert_eq!(clients.status(names).await, status, "{names:?}");
    }
    let named = clients.issue(KNOWN, &["bar.foo.test"]);
    let visitor = || clients.edge.visitor();
    assert_eq!(visitor().with(&named).status("a.test").await, 403);
    let stranger = Authority::new("elsewhere").server(&[KNOWN]);
    assert_eq!(visitor().with(&stranger).status("a.test").await, 0);
    // what has no identity is what `notPrincipals` denies
    clients.set(&of("DENY", &from("notPrincipals: ['*']")));
    assert_eq!(clients.status(&[KNOWN]).await, 200);
    assert_eq!(
        clients.status(&[KNOWN, "spiffe://td1/ns/x/sa/y"]).await,
        403
    );
}

#[tokio::test]
async fn trust_domain_of_a_principal_stands_for_its_aliases() {
    let clients = Clients::start();
    let of_domain = |domain: &str| format!("spiffe://{domain}/ns/a/sa/b");
    for (policy, expected) in [
        (
            "principals: [cluster.local/ns/a/sa/b]",
            [200, 200, 403, 403],
        ),
        ("principals: [td2/ns/a/sa/b]", [200, 200, 403, 403]),
        ("principals: [td3/ns/a/sa/b]", [403, 403, 200, 403]),
        ("principals: ['*/ns/a/sa/b']", [200, 200, 200, 200]),
        ("trustDomains: [td1]", [200, 200, 403, 403]),
        ("trustDomains: ['td*']", [200, 200, 200, 403]),
        ("trustDomains: [cluster.local]", [403, 403, 403, 200]),
        ("serviceAccounts: [a/b]", [200; 4]),
    ] {
        clients.set(&of("ALLOW", &from(policy)));
        let domains = ["td1", "td2", "td3", "cluster.local"].into_iter();
        for (domain, status) in domains.zip(expected) {
            let found = clients.status(&[&of_domain(domain)]).await;
            assert_eq!(found, status, "{policy} {domain}");
        }
    }
}

#[tokio::test]
async fn identity_of_a_resumed_session_is_kept_and_that_of_a_new_certificate_counts_anew() {
    let clients = Clients::start();
    clients.set(&of("ALLOW", &from("principals: [td1/ns/foo/sa/bar]")));
    let known = clients.issue("client", &[KNOWN]);
    let visitor = clients.edge.visitor().with(&known).resuming();
    assert_eq!(visitor.status("a.test").await, 200);
    assert_eq!(visitor.status("a.test").await, 200);
    let labels = [("result", "resumed")];
    let name = "strait_downstream_tls_handshakes_total";
    eventually("the second session is resumed", || {
        clients.edge.proxy.metric(name, &labels) == 1.0
    });
    clients.set(&of("DENY", &from("principals: [td1/ns/foo/sa/bar]")));
    assert_eq!(visitor.status("a.test").await, 403);
    assert_eq!(clients.status(&["spiffe://td1/ns/foo/sa/new"]).await, 200);
}

#[tokio::test]
async fn server_name_is_that_of_the_handshake_and_empty_without_one() {
    let clients = Clients::start();
    let unnamed = Visitor {
        sni: false,
        ..clients.edge.visitor()
    };
    for (condition, expected) in [
        ("values: [a.test]", [200, 403, 403]),
        ("values: ['*.test']", [200, 200, 403]),
        ("values: ['*']", [200, 200, 403]),
        ("notValues: [a.test]", [403, 200, 200]),
    ] {
        let rule = format!("when: [{{key: connection.sni, {condition}}}]");
        clients.set(&of("ALLOW", &rule));
        let found = [
            clients.edge.visitor().status("A.test").await,
            clients.edge.visitor().status("b.test").await,
            unnamed.status("a.test").await,
        ];
        assert_eq!(found, expected, "{condition}");
    }
}
