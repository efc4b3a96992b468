//! GlobalTrafficPolicy as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// GlobalTrafficPolicy as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalTrafficPolicy {
    /// Load distribution between clusters.
    pub spec: Field<GlobalTrafficPolicySpec>,
    /// `status`: accepted and ignored
    pub status: Field<Map<IgnoredAny>>,
}

/// Load distribution of a service between clusters (`spec`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalTrafficPolicySpec {
    /// Mode: `Locality` (default, local cluster only), `FailOver` or `ActiveActive`.
    pub lb_type: Field<String>,
    /// Clusters that take part, each once.
    pub targets: Field<Vec<Field<TrafficTarget>>>,
}

/// Cluster that takes part: an entry of `targets`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficTarget {
    /// Key of the cluster, `region/zone/group/name`; required.
    pub cluster_key: Field<String>,
    /// Weight relative to the sum of all weights; 0 drains the cluster. Default: 100.
    pub weight: Field<i64>,
}
