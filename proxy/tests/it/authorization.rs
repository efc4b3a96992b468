//! AuthorizationPolicy at a gateway: each test changes the policies of a proxy that runs, and sends requests as raw bytes.

mod access;
mod certificates;
mod connections;
mod explained;
mod external;
mod failsafe;
mod fields;
mod forwarded;
mod gloo;
mod http2;
mod identity;
mod paths;
mod shapes;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{Raw, Reply};

/// Labels of the gateway, which has the namespace `default`.
const LABELS: [&str; 2] = ["--labels", "istio=ingressgateway,app=edge"];

/// Gateway that answers every request with 200, unless a policy denies it.
struct Edge {
    proxy: Proxy,
}

/// Returns an AuthorizationPolicy of this name (`NAMESPACE/NAME`) with these fields in flow style.
fn policy(name: &str, fields: &str) -> String {
    annotated(name, "", fields)
}

fn annotated(name: &str, annotations: &str, fields: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    format!(
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n\
         metadata: {{name: {name}, namespace: {namespace}, annotations: {{{annotations}}}}}\nspec: {{{fields}}}\n"
    )
}

/// Returns a policy of an action with one rule.
fn of(action: &str, rule: &str) -> String {
    policy(
        &action.to_lowercase(),
        &format!("action: {action}, rules: [{{{rule}}}]"),
    )
}

/// Returns the rule with one operation.
fn to(fields: &str) -> String {
    format!("to: [{{operation: {{{fields}}}}}]")
}

/// Returns the rule with one source.
fn from(fields: &str) -> String {
    format!("from: [{{source: {{{fields}}}}}]")
}

/// Returns the rule with one condition on a header.
fn header(name: &str, values: &str) -> String {
    format!("when: [{{key: 'request.headers[{name}]', {values}}}]")
}

impl Edge {
    fn start(arguments: &[&str]) -> Self {
        let start = Start::new();
        let rules = "- directResponse: {status: 200, body: {string: served}}";
        let mesh = documents([gateway(&[start.edge()]), routes("all", "['*']", rules)]);
        let proxy = start
            .args(LABELS)
            .args(arguments.iter().copied())
            .file("mesh.yaml", mesh)
            .file("policies.yaml", "")
            .start();
        Self { proxy }
    }

    /// Puts these policies into effect.
    fn set(&self, policies: &[String]) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        self.proxy.write("policies.yaml", documents(policies));
        eventually("policies are in effect", || generation() > before);
    }

    /// Writes these policies, one of which is rejected, and its last good version stays.
    fn set_rejected(&self, policies: &[String]) {
        let rejected = || {
            let kind = [("kind", "AuthorizationPolicy")];
            self.proxy.metric("strait_config_resources_rejected", &kind)
        };
        assert_eq!(rejected(), 0.0);
        self.proxy.write("policies.yaml", documents(policies));
        eventually("a policy is rejected", || rejected() == 1.0);
    }

    /// Sends a request with this target, host and lines of headers.
    fn request(&self, target: &str, host: &str, headers: &str) -> Reply {
        let (method, target) = target.split_once(' ').unwrap_or(("GET", target));
        let text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        Raw::connect(self.proxy.edge).send(text).reply()
    }

    /// Checks that these requests are denied (`403`), served (`200`) or refused with another status.
    fn expect(&self, policy: &str, requests: &[(&str, u16)]) {
        for (target, status) in requests {
            let reply = self.request(target, "a.test", "");
            assert_eq!(reply.status, *status, "{policy}\n{target}");
        }
    }
}

/// Rows of a policy and requests: target and status.
type Rows<'a> = [(String, &'a [(&'a str, u16)])];

fn table(edge: &Edge, rows: &Rows<'_>) {
    for (policy, requests) in rows {
        edge.set(std::slice::from_ref(policy));
        edge.expect(policy, requests);
    }
}
