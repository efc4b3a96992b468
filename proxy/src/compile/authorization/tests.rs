//! Properties of sets of policies: none allows a request that its parts deny.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use config_loader::Diagnostics;
use http::{HeaderMap, HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use traffic::authz::{Peer, Subject};
use traffic::route::RequestHead;

/// Rules that policies of any action may have.
const RULES: [&str; 7] = [
    "{}",
    "{to: [{operation: {paths: [/a]}}]}",
    "{to: [{operation: {notPaths: ['/a*']}}]}",
    "{to: [{operation: {methods: [GET], ports: ['80']}}]}",
    "{from: [{source: {ipBlocks: [10.0.0.1]}}], to: [{operation: {hosts: [a.test]}}]}",
    "{from: [{source: {notIpBlocks: [10.0.0.1]}}]}",
    "{when: [{key: 'request.headers[x]', values: [v]}]}",
];

/// Actions of policies.
const ACTIONS: [&str; 6] = [
    "ALLOW",
    "ALLOW",
    "DENY",
    "AUDIT",
    "CUSTOM, provider: {name: p}",
    "CUSTOM, provider: {name: q}",
];

/// A policy: an action, rules of [`RULES`], and whether it is in dry run.
type Drawn = (usize, Vec<usize>, bool);

fn drawn() -> impl Strategy<Value = Drawn> {
    let rules = proptest::collection::vec(0..RULES.len(), 1..3);
    (0..ACTIONS.len(), rules, proptest::bool::weighted(0.2))
}

fn document(number: usize, (action, rules, is_dry_run): &Drawn) -> String {
    let rules: Vec<&str> = rules.iter().map(|rule| RULES[*rule]).collect();
    format!(
        "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n\
         metadata: {{name: p{number}, annotations: {{istio.io/dry-run: '{is_dry_run}'}}}}\n\
         spec: {{action: {}, rules: [{}]}}\n",
        ACTIONS[*action],
        rules.join(", ")
    )
}

/// Returns what all of these policies mean together.
fn compiled(all: &[Drawn]) -> Authorization {
    let texts = all.iter().enumerate();
    let text: String = texts.map(|(number, one)| document(number, one)).collect();
    let mut found = Diagnostics::default();
    let set = config_loader::load_bytes("a.yaml", text.as_bytes(), &mut found);
    assert_eq!(set.authorization_policies.len(), all.len());
    let (identity, stats) = (Identity::default(), StatsRegistry::new(1));
    let objects = set.authorization_policies.values().enumerate();
    let rules = objects
        .map(|(number, object)| Arc::new(PolicyRules::of(object, number, &identity, &stats)));
    let rules: Vec<Arc<PolicyRules>> = rules.collect();
    Authorization {
        http: policies(&rules, |rules| &rules.http),
        tcp: policies(&rules, |rules| &rules.tcp),
    }
}

/// A request or a connection, and the providers that deny it.
#[derive(Clone, Debug)]
struct Client {
    is_tcp: bool,
    method: Method,
    path: &'static str,
    source: [u8; 4],
    port: u16,
    header: bool,
    denying: BTreeSet<&'static str>,
}

fn client() -> impl Strategy<Value = Client> {
    let method = proptest::sample::select(vec![Method::GET, Method::POST]);
    let path = proptest::sample::select(vec!["/a", "/ab", "/b"]);
    let source = proptest::sample::select(vec![[10, 0, 0, 1], [10, 0, 0, 2]]);
    let port = proptest::sample::select(vec![80, 81]);
    let denying = proptest::sample::subsequence(vec!["p", "q"], 0..=2);
    let bits = (any::<bool>(), any::<bool>());
    (method, path, source, port, denying, bits).prop_map(
        |(method, path, source, port, denying, (is_tcp, header))| Client {
            is_tcp,
            method,
            path,
            source,
            port,
            header,
            denying: denying.into_iter().collect(),
        },
    )
}

impl Client {
    /// Whether all stages let the client pass.
    fn passes(&self, all: &[Drawn]) -> bool {
        let authorization = compiled(all);
        let mut headers = HeaderMap::new();
        if self.header {
            headers.insert("x", HeaderValue::from_static("v"));
        }
        let head = RequestHead {
            is_http2: false,
            method: &self.method,
            scheme: "http",
            authority: "a.test",
            host: "a.test",
            path: self.path,
            query: None,
            headers: &headers,
            claims: None,
        };
        let (policies, request) = match self.is_tcp {
            true => (&authorization.tcp, None),
            false => (&authorization.http, Some(head)),
        };
        let subject = Subject {
            peer: Peer::parse("spiffe://td/ns/a/sa/b"),
            source_ip: self.source.into(),
            remote_ip: self.source.into(),
            destination: SocketAddr::from(([10, 0, 0, 9], self.port)),
            sni: "",
            request,
            claims: None,
        };
        let mut custom = policies.custom.iter();
        let is_denied = custom.any(|(provider, rules)| {
            self.denying.contains(&**provider) && rules.first_match(&subject).is_some()
        });
        !is_denied && policies.decide(&subject).is_allowed()
    }
}

/// Whether a policy decides nothing.
fn is_silent((action, _, is_dry_run): &Drawn) -> bool {
    *is_dry_run || ACTIONS[*action] == "AUDIT"
}

fn is_allow(one: &Drawn) -> bool {
    !is_silent(one) && ACTIONS[one.0] == "ALLOW"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn policies_never_allow_what_each_part_of_them_denies(
        parts in proptest::collection::vec(proptest::collection::vec(drawn(), 1..3), 1..4),
        client in client(),
    ) {
        let passes = parts.iter().any(|part| client.passes(part));
        prop_assert!(passes || !client.passes(&parts.concat()));
    }

    #[test]
    fn further_policy_never_does_what_its_action_cannot(
        all in proptest::collection::vec(drawn(), 0..5),
        more in drawn(),
        client in client(),
    ) {
        let before = client.passes(&all);
        let after = client.passes(&[&all[..], std::slice::from_ref(&more)].concat());
        if is_silent(&more) {
            prop_assert_eq!(before, after);
        } else if !is_allow(&more) {
            prop_assert!(before || !after, "DENY and CUSTOM never allow");
        } else if all.iter().any(is_allow) {
            prop_assert!(after || !before, "a further ALLOW never denies");
        } else {
            prop_assert!(before || !after, "the first ALLOW never allows");
        }
    }
}
