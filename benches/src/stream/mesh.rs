//! Objects of the mesh: services with ten endpoints each, a route for each service, and a gateway.

use std::net::Ipv4Addr;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::server::{Api, ROUTES};
use crate::compare::client::free_port;
use crate::compare::failure::Failure;

/// Maximum number of concurrent writes while the server is filled.
const WRITES: usize = 200;

/// Number of endpoints of a service.
const ENDPOINTS: u32 = 10;

/// First address of the initial endpoints (`FIRST`), and of endpoints that are set by a change (`CHANGED`).
const FIRST: u32 = u32::from_be_bytes([127, 1, 0, 0]);
const CHANGED: u32 = u32::from_be_bytes([127, 128, 0, 0]);

const GATEWAYS: &str = "/apis/networking.istio.io/v1/namespaces/bench/gateways";
const SERVICES: &str = "/api/v1/namespaces/bench/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";

/// Mesh that the server is filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mesh {
    services: u32,
    /// Port that the proxy listens on.
    pub(super) gateway: u16,
    /// Port of all endpoints.
    upstream: u16,
}

/// Change as a merge patch, and the response header that shows it is in effect.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) patch: Value,
    /// Host whose responses show the change.
    pub(super) host: String,
    /// Response header and its new value.
    pub(super) shown: (&'static str, String),
}

impl Mesh {
    pub(super) fn new(services: u32, upstream: u16) -> Result<Mesh, Failure> {
        Ok(Mesh {
            services,
            gateway: free_port()?,
            upstream,
        })
    }

    /// Returns the number of objects.
    pub(super) fn objects(self) -> u32 {
        self.services * 3 + 1
    }

    /// Returns the host of a service behind the gateway.
    pub(super) fn host(self, number: u32) -> String {
        format!("service-{}.example", number % self.services)
    }

    /// Creates all objects.
    pub(super) async fn fill(self, api: &Api) -> Result<(), Failure> {
        api.write(Method::POST, GATEWAYS, &self.edge()).await?;
        let mut tasks = JoinSet::new();
        for number in 0..self.services {
            for (path, object) in self.service(number) {
                if tasks.len() >= WRITES {
                    finished(tasks.join_next().await)?;
                }
                let api = api.clone();
                tasks.spawn(async move { api.write(Method::POST, path, &object).await.map(drop) });
            }
        }
        while let Some(done) = tasks.join_next().await {
            finished(Some(done))?;
        }
        Ok(())
    }

    /// Returns a change of the response header of a service's route.
    pub(super) fn route_change(self, number: u32, value: u32) -> Change {
        let set = json!({"x-change": value.to_string()});
        let rule = self.rule(number, &set);
        Change {
            path: format!("{ROUTES}/service-{}", number % self.services),
            patch: json!({"spec": {"http": [rule]}, "metadata": {"labels": {"bench": value.to_string()}}}),
            host: self.host(number),
            shown: ("x-change", value.to_string()),
        }
    }

    /// Returns a change that leaves a service one endpoint, at a new address.
    pub(super) fn endpoint_change(self, number: u32, value: u32) -> Change {
        let address = Ipv4Addr::from(CHANGED + value).to_string();
        Change {
            path: format!("{SLICES}/service-{}", number % self.services),
            patch: json!({"endpoints": [endpoint(&address)], "metadata": {"labels": {"bench": value.to_string()}}}),
            host: self.host(number),
            shown: ("x-endpoint", address),
        }
    }

    fn edge(self) -> Value {
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
            "spec": {"servers": [{
                "port": {"number": self.gateway, "name": "http", "protocol": "HTTP"},
                "bind": "127.0.0.1", "hosts": ["*"],
            }]},
        })
    }

    fn rule(self, number: u32, set: &Value) -> Value {
        let host = format!("service-{}.bench.svc.cluster.local", number % self.services);
        json!({
            "route": [{"destination": {"host": host, "port": {"number": 80}}}],
            "headers": {"response": {"set": set}},
        })
    }

    fn service(self, number: u32) -> [(&'static str, Value); 3] {
        let name = format!("service-{number}");
        let first = FIRST + number * ENDPOINTS;
        let endpoints = (first..first + ENDPOINTS)
            .map(|address| endpoint(&Ipv4Addr::from(address).to_string()))
            .collect::<Vec<_>>();
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "ports": [{"name": "http", "port": self.upstream}], "endpoints": endpoints,
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"name": "http", "port": 80}], "selector": {"app": name}},
        });
        let rule = self.rule(number, &json!({"x-change": "0"}));
        let routes = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": name},
            "spec": {"hosts": [self.host(number)], "gateways": ["edge"], "http": [rule]},
        });
        [(SERVICES, service), (SLICES, slice), (ROUTES, routes)]
    }
}

fn endpoint(address: &str) -> Value {
    json!({"addresses": [address], "conditions": {"ready": true}})
}

fn finished(
    done: Option<Result<Result<(), Failure>, tokio::task::JoinError>>,
) -> Result<(), Failure> {
    done.ok_or_else(|| Failure::new("no write is in flight"))?
        .map_err(|error| Failure::new(error.to_string()))?
}
