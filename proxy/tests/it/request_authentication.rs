//! RequestAuthentication at a gateway: tokens are signed by the test, and sent to a proxy that runs.

mod key_servers;
mod outputs;
mod tokens;

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, gateway, routes};
use crate::support::origin::{Back, Origin, Seen};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{Raw, Reply};

/// An issuer with one key.
pub(crate) struct Issuer {
    name: &'static str,
    kid: &'static str,
    key: Ed25519KeyPair,
}

impl Issuer {
    pub(crate) fn new(name: &'static str, kid: &'static str) -> Self {
        Self {
            name,
            kid,
            key: Ed25519KeyPair::generate().unwrap(),
        }
    }

    fn keys(&self) -> String {
        let x = BASE64_URL_SAFE_NO_PAD.encode(self.key.public_key());
        let kid = self.kid;
        format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{kid}","x":"{x}"}}]}}"#)
    }

    /// Returns a token of this issuer for the audience `shop`, which expires in ten minutes.
    pub(crate) fn token(&self, claims: &str) -> String {
        let (name, exp) = (self.name, now() + 600);
        let more = if claims.is_empty() { "" } else { "," };
        self.signed(&format!(
            r#"{{"iss":"{name}","aud":"shop","exp":{exp}{more}{claims}}}"#
        ))
    }

    fn signed(&self, payload: &str) -> String {
        let header = format!(r#"{{"alg":"EdDSA","kid":"{}"}}"#, self.kid);
        let [header, payload] = [&header, payload].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{header}.{payload}");
        let signature = self.key.sign(signed.as_bytes());
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// Returns the rule for its tokens, with its keys and these fields.
    pub(crate) fn rule(&self, fields: &str) -> String {
        let (name, keys) = (self.name, self.keys());
        format!("{{issuer: {name}, jwks: '{keys}', {fields}}}")
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// Returns a RequestAuthentication with these rules.
fn policy(rules: &[String]) -> String {
    format!(
        "apiVersion: security.istio.io/v1\nkind: RequestAuthentication\nmetadata: {{name: own, namespace: default}}\n\
         spec:\n  selector: {{matchLabels: {{app: edge}}}}\n  jwtRules: [{}]\n",
        rules.join(", ")
    )
}

/// Returns an AuthorizationPolicy of an action with one rule.
fn authorization(action: &str, rule: &str) -> String {
    format!(
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {{name: own, namespace: default}}\n\
         spec: {{action: {action}, rules: [{{{rule}}}]}}\n"
    )
}

/// A gateway before an origin.
struct Edge {
    proxy: Proxy,
    origin: Origin,
}

impl Edge {
    fn start(policies: &[String]) -> Self {
        Self::start_with(&[], policies, everything_to)
    }

    fn start_with(
        arguments: &[&str],
        policies: &[String],
        mesh: impl FnOnce(SocketAddr, &Origin) -> String,
    ) -> Self {
        let (start, origin) = (Start::new(), Origin::named(Back::H1, "origin"));
        let mesh = mesh(start.edge(), &origin);
        let proxy = start
            .args(["--labels", "istio=ingressgateway,app=edge"])
            .args(arguments.iter().copied())
            .file("mesh.yaml", mesh)
            .file("policies.yaml", documents(policies))
            .start();
        Self { proxy, origin }
    }

    /// Puts these policies into effect.
    fn set(&self, policies: &[String]) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        self.proxy.write("policies.yaml", documents(policies));
        eventually("policies are in effect", || generation() > before);
    }

    /// Sends a request with this target and lines of headers.
    fn request(&self, target: &str, headers: &str) -> Reply {
        let (method, target) = target.split_once(' ').unwrap_or(("GET", target));
        let text = format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n");
        Raw::connect(self.proxy.edge).send(text).reply()
    }

    /// Returns the status for a token in `Authorization`.
    fn bearer(&self, token: &str) -> u16 {
        self.request("/", &format!("authorization: Bearer {token}\r\n"))
            .status
    }

    /// Returns the request that the origin saw last.
    fn last(&self) -> Seen {
        self.origin.seen().pop().unwrap()
    }
}

/// Returns a mesh in which rules, in YAML, answer.
fn answered(edge: SocketAddr, rules: &str) -> String {
    documents([gateway(&[edge]), routes("all", "['*']", rules)])
}
