//! GlobalTrafficPolicy as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// GlobalTrafficPolicy as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalTrafficPolicy {
    /// `spec`
    pub spec: Field<GlobalTrafficPolicySpec>,
    /// `status`: accepted and ignored
    pub status: Field<Map<IgnoredAny>>,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalTrafficPolicySpec {
    /// `lbType`
    pub lb_type: Field<String>,
    /// `targets`
    pub targets: Field<Vec<Field<TrafficTarget>>>,
}

/// An entry of `targets` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficTarget {
    /// `clusterKey`
    pub cluster_key: Field<String>,
    /// `weight`
    pub weight: Field<i64>,
}
