//! BackendTrafficPolicy as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::RateLimit;
use crate::raw::{Field, IntOrString};

/// BackendTrafficPolicy as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTrafficPolicy {
    /// Object that the policy is attached to; the older form of `targetRefs`.
    pub target_ref: Field<TargetReference>,
    /// Objects that the policy is attached to, in its namespace.
    pub target_refs: Field<Vec<Field<TargetReference>>>,
    /// Limits on requests.
    pub rate_limit: Field<RateLimit>,
    /// Limit on the bodies of requests.
    pub request_buffer: Field<RequestBuffer>,
    /// Labels of objects that the policy is attached to.
    pub target_selectors: Field<IgnoredAny>,
    /// Merging with the policy of the Gateway.
    pub merge_type: Field<IgnoredAny>,
    /// Thresholds for shedding load.
    pub admission_control: Field<IgnoredAny>,
    /// Limit on bytes per second.
    pub bandwidth_limit: Field<IgnoredAny>,
    /// Limits on connections and requests to endpoints.
    pub circuit_breaker: Field<IgnoredAny>,
    /// Compression of responses; the older form of `compressor`.
    pub compression: Field<IgnoredAny>,
    /// Compression of responses.
    pub compressor: Field<IgnoredAny>,
    /// Settings of connections to endpoints.
    pub connection: Field<IgnoredAny>,
    /// Lookups of DNS names.
    pub dns: Field<IgnoredAny>,
    /// Faults that are injected.
    pub fault_injection: Field<IgnoredAny>,
    /// Health checks and outlier detection.
    pub health_check: Field<IgnoredAny>,
    /// Settings of HTTP/2.
    pub http2: Field<IgnoredAny>,
    /// Upgrades that are allowed.
    pub http_upgrade: Field<IgnoredAny>,
    /// Choice of endpoints.
    pub load_balancer: Field<IgnoredAny>,
    /// PROXY header for endpoints.
    pub proxy_protocol: Field<IgnoredAny>,
    /// Replacements of responses.
    pub response_override: Field<IgnoredAny>,
    /// Retries.
    pub retry: Field<IgnoredAny>,
    /// Name in metrics of routes.
    pub route_stat_name: Field<IgnoredAny>,
    /// Whether requests go to endpoints or to the address of the service.
    pub routing_type: Field<IgnoredAny>,
    /// Keepalives of connections to endpoints.
    pub tcp_keepalive: Field<IgnoredAny>,
    /// Traces and metrics.
    pub telemetry: Field<IgnoredAny>,
    /// Timeouts.
    pub timeout: Field<IgnoredAny>,
    /// Whether endpoints are spoken to in the protocol of the client.
    pub use_client_protocol: Field<IgnoredAny>,
}

/// Object that a policy is attached to, in its namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetReference {
    /// API group of the object; empty for the core group.
    pub group: Field<String>,
    /// Kind of the object.
    pub kind: Field<String>,
    /// Name of the object.
    pub name: Field<String>,
    /// Rule of a VirtualService, by its name. Default: all of them.
    pub section_name: Field<String>,
}

/// Limit on the bodies of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestBuffer {
    /// Bytes of a request's body, such as `1Mi`.
    pub limit: Field<IntOrString>,
}
