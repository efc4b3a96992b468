//! Fields of a scenario of `strait simulate` as they are written.

use serde::Deserialize;

use crate::raw::{Field, IntOrString, Map};
use crate::written_proxies::RawProxy;

/// List of values with positions.
pub(super) type List<T> = Field<Vec<Field<T>>>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Scenario {
    pub config: Field<String>,
    #[serde(rename = "as")]
    pub proxy: Field<RawProxy>,
    pub interval: Field<String>,
    pub load: Field<Load>,
    pub endpoints: Field<Endpoints>,
    pub events: List<Event>,
    pub expect: List<Expect>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Load {
    pub url: Field<String>,
    pub method: Field<String>,
    pub headers: Field<Map<String>>,
    pub rate: Field<IntOrString>,
    #[serde(rename = "for")]
    pub duration: Field<String>,
    pub proxies: Field<i64>,
    pub workers: Field<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Endpoints {
    pub latency: Field<Latency>,
    pub concurrency: Field<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Latency {
    pub p50: Field<String>,
    pub p99: Field<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Event {
    pub at: Field<String>,
    pub cluster: Field<String>,
    pub zone: Field<String>,
    pub host: Field<String>,
    pub endpoint: Field<String>,
    pub errors: Field<IntOrString>,
    pub status: Field<i64>,
    pub latency: Field<String>,
    pub stop: Field<bool>,
    pub hang: Field<bool>,
    pub restore: Field<bool>,
    pub rate: Field<IntOrString>,
    pub config: Field<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Expect {
    pub failed: Field<IntOrString>,
    pub share: Field<Map<IntOrString>>,
    pub attempts_per_request: Field<IntOrString>,
    pub p50: Field<String>,
    pub p99: Field<String>,
    pub overflow: Field<IntOrString>,
    pub ejected: Field<IntOrString>,
    pub from: Field<String>,
    pub to: Field<String>,
    pub after: Field<String>,
    pub within: Field<String>,
}
