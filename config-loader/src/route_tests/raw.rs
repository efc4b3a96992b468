//! Fields of a file of `strait test` as they are written.

use serde::Deserialize;

use crate::raw::{Field, IntOrString, Map};
use crate::written_proxies::RawProxy;

/// List of values with positions.
pub(super) type List<T> = Field<Vec<Field<T>>>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct File {
    pub config: Field<String>,
    #[serde(rename = "as")]
    pub proxy: Field<RawProxy>,
    pub tests: List<Test>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Test {
    pub name: Field<String>,
    pub source: Field<Source>,
    pub given: Field<Given>,
    pub request: Field<Request>,
    pub requests: Field<Request>,
    pub connection: Field<Connection>,
    pub expect: Field<Expect>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Source {
    pub namespace: Field<String>,
    pub labels: Field<Map<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Given {
    pub unhealthy: List<Unhealthy>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Unhealthy {
    pub cluster: Field<String>,
    pub zone: Field<String>,
    pub host: Field<String>,
    pub endpoint: Field<String>,
}

/// `request`, and with `count` and `vary` also `requests`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Request {
    pub method: Field<String>,
    pub url: Field<String>,
    pub headers: Field<Map<String>>,
    pub client: Field<String>,
    pub identity: Field<String>,
    pub claims: Field<serde_json::Value>,
    pub listener: Field<IntOrString>,
    pub count: Field<i64>,
    pub vary: Field<Vary>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Vary {
    pub header: Field<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Connection {
    pub port: Field<i64>,
    pub sni: Field<String>,
    pub address: Field<String>,
    pub client: Field<String>,
    pub client_cert: Field<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Expect {
    pub status: Field<i64>,
    pub flags: Field<String>,
    pub rule: Field<String>,
    pub allowed: Field<bool>,
    pub destination: Field<Destination>,
    pub destinations: List<Destination>,
    pub mirrors: List<Destination>,
    pub clusters: Field<Map<f64>>,
    pub endpoints: Field<Map<f64>>,
    pub path: Field<String>,
    pub authority: Field<String>,
    pub request_headers: Field<Map<String>>,
    pub response_headers: Field<Map<String>>,
    pub timeout: Field<String>,
    pub retries: Field<Retries>,
    pub redirect: Field<Redirect>,
    pub same_endpoint_for_same: Field<String>,
    pub spread: Field<Spread>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Destination {
    pub host: Field<String>,
    pub subset: Field<String>,
    pub port: Field<i64>,
    pub weight: Field<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Retries {
    pub attempts: Field<i64>,
    pub on: List<String>,
    pub per_try_timeout: Field<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Redirect {
    pub status: Field<i64>,
    pub location: Field<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Spread {
    pub min_endpoints: Field<i64>,
}
