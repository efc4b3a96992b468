//! Load balancing settings, as written.

use serde::Deserialize;

use crate::raw::{Field, Map};

/// `loadBalancer`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerSettings {
    /// `simple`
    pub simple: Field<String>,
    /// `consistentHash`
    pub consistent_hash: Field<ConsistentHash>,
    /// `localityLbSetting`
    pub locality_lb_setting: Field<LocalityLoadBalancerSetting>,
    /// `zoneAwareLbSetting`
    pub zone_aware_lb_setting: Field<ZoneAwareLoadBalancerSetting>,
    /// `warmupDurationSecs`
    pub warmup_duration_secs: Field<String>,
    /// `warmup`
    pub warmup: Field<WarmupConfiguration>,
}

/// `consistentHash`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsistentHash {
    /// `httpHeaderName`
    pub http_header_name: Field<String>,
    /// `httpCookie`
    pub http_cookie: Field<HttpCookie>,
    /// `useSourceIp`
    pub use_source_ip: Field<bool>,
    /// `httpQueryParameterName`
    pub http_query_parameter_name: Field<String>,
    /// `ringHash`
    pub ring_hash: Field<RingHash>,
    /// `maglev`
    pub maglev: Field<MagLev>,
    /// `minimumRingSize`
    pub minimum_ring_size: Field<i64>,
}

/// `httpCookie`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpCookie {
    /// `name`
    pub name: Field<String>,
    /// `path`
    pub path: Field<String>,
    /// `ttl`
    pub ttl: Field<String>,
    /// `attributes`
    pub attributes: Field<Vec<Field<CookieAttribute>>>,
}

/// An entry of `httpCookie.attributes`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CookieAttribute {
    /// `name`
    pub name: Field<String>,
    /// `value`
    pub value: Field<String>,
}

/// `ringHash`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RingHash {
    /// `minimumRingSize`
    pub minimum_ring_size: Field<i64>,
}

/// `maglev`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MagLev {
    /// `tableSize`
    pub table_size: Field<i64>,
}

/// `warmup`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WarmupConfiguration {
    /// `duration`
    pub duration: Field<String>,
    /// `minimumPercent`
    pub minimum_percent: Field<f64>,
    /// `aggression`
    pub aggression: Field<f64>,
}

/// `localityLbSetting`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalityLoadBalancerSetting {
    /// `distribute`
    pub distribute: Field<Vec<Field<Distribute>>>,
    /// `failover`
    pub failover: Field<Vec<Field<Failover>>>,
    /// `failoverPriority`
    pub failover_priority: Field<Vec<Field<String>>>,
    /// `enabled`
    pub enabled: Field<bool>,
}

/// An entry of `distribute`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Distribute {
    /// `from`
    pub from: Field<String>,
    /// `to`
    pub to: Field<Map<i64>>,
}

/// An entry of `failover`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failover {
    /// `from`
    pub from: Field<String>,
    /// `to`
    pub to: Field<String>,
}

/// `zoneAwareLbSetting`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZoneAwareLoadBalancerSetting {
    /// `enabled`
    pub enabled: Field<bool>,
    /// `failover`
    pub failover: Field<Vec<Field<Failover>>>,
    /// `failoverPriority`
    pub failover_priority: Field<Vec<Field<String>>>,
    /// `minClusterSize`
    pub min_cluster_size: Field<i64>,
}
