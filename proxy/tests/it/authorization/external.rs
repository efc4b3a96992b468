//! External authorization: policies of action CUSTOM at a gateway, with providers that the test scripts.

mod changes;
mod connections;
mod grpc;
mod http;
mod identities;
mod once;

use std::fs;
use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tempfile::NamedTempFile;

use super::{LABELS, of, policy};
use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, service};
use crate::support::origin::{Back, Body, Origin, Seen, full};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{Raw, Reply};

/// A gateway before an origin, with a provider `p` that policies ask.
struct Edge {
    proxy: Proxy,
    origin: Origin,
    config: NamedTempFile,
    /// Mesh with the services.
    mesh: String,
}

/// Returns the mesh configuration with the provider `p` of these fields.
fn provider(kind: &str, fields: &str) -> String {
    format!(
        "extensionProviders:\n- {{name: p, {kind}: {{service: authz.test, port: 80, {fields}}}}}\n"
    )
}

/// Returns a policy that asks the provider about these requests: a rule in flow style.
fn ask(rule: &str) -> String {
    policy(
        "ask",
        &format!("action: CUSTOM, provider: {{name: p}}, rules: [{{{rule}}}]"),
    )
}

/// Provider that answers with this status.
fn answering(status: u16) -> Origin {
    Origin::start(Back::H1, move |_| async move { reply(status, &[]) })
}

/// Returns a response with a status and headers.
fn reply(status: u16, headers: &[(&'static str, &str)]) -> Response<Body> {
    let mut response = Response::new(full("from the provider"));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        response.headers_mut().append(*name, value.parse().unwrap());
    }
    response
}

/// Origin that answers with its body's length.
fn origin() -> Origin {
    Origin::start(Back::H1, |request: Request<Incoming>| async move {
        use http_body_util::BodyExt;
        let body = request.into_body().collect().await;
        let length = body.map_or(usize::MAX, |body| body.to_bytes().len());
        let mut response = Response::new(full(length.to_string()));
        response
            .headers_mut()
            .insert("x-from", "origin".parse().unwrap());
        response
    })
}

impl Edge {
    /// Starts a proxy whose provider has these fields and this address; it is asked about everything.
    fn start(kind: &str, fields: &str, back: Back, at: SocketAddr) -> Self {
        let (start, origin) = (Start::new(), origin());
        let config = NamedTempFile::new().unwrap();
        fs::write(config.path(), provider(kind, fields)).unwrap();
        let mesh = documents([
            everything_to(start.edge(), &origin),
            service("authz", back, &[(at, "v1")]),
        ]);
        let path = config.path().to_str().unwrap().to_owned();
        let proxy = start
            .args(LABELS)
            .args(["--mesh-config", &path])
            .file("mesh.yaml", &mesh)
            .file("policies.yaml", ask(""))
            .start();
        Self {
            proxy,
            origin,
            config,
            mesh,
        }
    }

    /// Starts a proxy with a provider over HTTP.
    fn http(fields: &str, provider: &Origin) -> Self {
        Self::start("envoyExtAuthzHttp", fields, provider.back, provider.address)
    }

    /// Makes a change, and waits until it is in effect.
    fn change(&self, change: impl FnOnce()) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        change();
        eventually("the change is in effect", || generation() > before);
    }

    /// Puts these policies into effect.
    fn set(&self, policies: &[String]) {
        self.change(|| self.proxy.write("policies.yaml", documents(policies)));
    }

    /// Puts a mesh configuration into effect.
    fn configure(&self, config: &str) {
        self.change(|| fs::write(self.config.path(), config).unwrap());
    }

    fn request(&self, target: &str, headers: &str) -> Reply {
        self.send(target, headers, "")
    }

    fn send(&self, target: &str, headers: &str, body: &str) -> Reply {
        let (method, target) = target.split_once(' ').unwrap_or(("GET", target));
        let text = format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n{body}");
        Raw::connect(self.proxy.edge).send(text).reply()
    }

    fn post(&self, target: &str, body: &str) -> Reply {
        let headers = format!("content-length: {}\r\n", body.len());
        self.send(&format!("POST {target}"), &headers, body)
    }

    /// Returns the request that the origin saw last.
    fn last(&self) -> Seen {
        self.origin.seen().pop().unwrap()
    }
}
