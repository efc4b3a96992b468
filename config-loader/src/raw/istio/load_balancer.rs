//! Load balancing settings, as written.

use serde::Deserialize;

use crate::raw::{Field, Map};

/// Load balancing settings (`loadBalancer`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerSettings {
    /// Algorithm: `LEAST_REQUEST`, `RANDOM`, `ROUND_ROBIN` or `PASSTHROUGH`. Default: by the service, else
    /// `LEAST_REQUEST`.
    pub simple: Field<String>,
    /// Consistent hash, instead of `simple`.
    pub consistent_hash: Field<ConsistentHash>,
    /// Locality load balancing. Default: that of the mesh.
    pub locality_lb_setting: Field<LocalityLoadBalancerSetting>,
    /// Zone-aware load balancing, instead of `localityLbSetting`.
    pub zone_aware_lb_setting: Field<ZoneAwareLoadBalancerSetting>,
    /// Length of the warm-up of new endpoints, as in `warmup.duration`.
    pub warmup_duration_secs: Field<String>,
    /// Warm-up (slow start) of new endpoints. Default: off.
    pub warmup: Field<WarmupConfiguration>,
}

/// Consistent hash settings (`consistentHash`). One key and at most one hash table are set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsistentHash {
    /// Request header to hash.
    pub http_header_name: Field<String>,
    /// Cookie to hash.
    pub http_cookie: Field<HttpCookie>,
    /// Whether to hash the client's IP address.
    pub use_source_ip: Field<bool>,
    /// Query parameter to hash.
    pub http_query_parameter_name: Field<String>,
    /// Ring hash table (default).
    pub ring_hash: Field<RingHash>,
    /// Maglev hash table.
    pub maglev: Field<MagLev>,
    /// Deprecated: minimum number of entries of the ring.
    pub minimum_ring_size: Field<i64>,
}

/// Cookie to hash (`httpCookie`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpCookie {
    /// Name of the cookie; required.
    pub name: Field<String>,
    /// Path attribute of a generated cookie.
    pub path: Field<String>,
    /// Lifetime of a generated cookie; `0s` for a session cookie. If unset, the proxy generates no cookie.
    pub ttl: Field<String>,
    /// Further attributes of a generated cookie.
    pub attributes: Field<Vec<Field<CookieAttribute>>>,
}

/// Attribute of a cookie, such as `SameSite=Lax`: an entry of `httpCookie.attributes`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CookieAttribute {
    /// Name of the attribute.
    pub name: Field<String>,
    /// Value of the attribute; empty for a bare name.
    pub value: Field<String>,
}

/// Ring hash table (`ringHash`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RingHash {
    /// Minimum number of entries of the ring. Default: 1024.
    pub minimum_ring_size: Field<i64>,
}

/// Maglev hash table (`maglev`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MagLev {
    /// Number of slots, a prime of at least 3 and below 5000011. Default: 65537.
    pub table_size: Field<i64>,
}

/// Warm-up (slow start) of a new endpoint (`warmup`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WarmupConfiguration {
    /// Length of the warm-up, at least 1 ms; required.
    pub duration: Field<String>,
    /// Initial percentage of the endpoint's weight, 0 to 100. Default: 10.
    pub minimum_percent: Field<f64>,
    /// Shape of the growth, above 0: 1 (default) is linear, larger values grow faster at first.
    pub aggression: Field<f64>,
}

/// Locality load balancing settings (`localityLbSetting`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalityLoadBalancerSetting {
    /// Load distribution between localities; not together with `failover`.
    pub distribute: Field<Vec<Field<Distribute>>>,
    /// Failover between regions.
    pub failover: Field<Vec<Field<Failover>>>,
    /// Labels, `KEY` or `KEY=VALUE`, that are compared with the proxy's labels to give endpoints a priority.
    pub failover_priority: Field<Vec<Field<String>>>,
    /// Whether locality load balancing is on. Default: true.
    pub enabled: Field<bool>,
}

/// Load distribution for proxies in some localities: an entry of `distribute`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Distribute {
    /// Localities of the proxies, `REGION/ZONE/SUBZONE`; `*` at the end matches all.
    pub from: Field<String>,
    /// Percentage of their traffic for each locality, 1 to 100; the percentages add up to 100.
    pub to: Field<Map<i64>>,
}

/// Failover between two regions: an entry of `failover`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failover {
    /// Region of the proxies.
    pub from: Field<String>,
    /// Region that takes over.
    pub to: Field<String>,
}

/// Zone-aware load balancing settings (`zoneAwareLbSetting`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZoneAwareLoadBalancerSetting {
    /// Whether zone-aware load balancing is on. Default: true.
    pub enabled: Field<bool>,
    /// Failover between regions.
    pub failover: Field<Vec<Field<Failover>>>,
    /// Labels that are compared with the proxy's labels to give endpoints a priority; none of region or zone.
    pub failover_priority: Field<Vec<Field<String>>>,
    /// Minimum number of endpoints in the local region for zone-aware load balancing. Default: 6.
    pub min_cluster_size: Field<i64>,
}
