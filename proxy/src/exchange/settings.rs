//! Settings of the request path that do not come from resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::header::HeaderValue;

use super::downstream::origin::InternalAddresses;

/// Default of [`ExchangeSettings::retry_body_bytes`]: Envoy's limit of a request's buffer.
pub const RETRY_BODY_BYTES: usize = 1024 * 1024;

/// Default of [`ExchangeSettings::failover_replay_bytes`].
pub const FAILOVER_REPLAY_BYTES: usize = 64 * 1024;

/// Most bytes of request bodies that all workers together keep for other attempts, by default.
pub const RETRY_BODY_BYTES_TOTAL: usize = 64 * 1024 * 1024;

/// Settings of the request path that do not come from resources.
#[derive(Clone, Debug)]
pub struct ExchangeSettings {
    /// Value of the `server` response header; `None` leaves the upstream's. Default: `istio-envoy`, which
    /// dashboards and tests expect.
    pub server_name: Option<HeaderValue>,
    /// The same for the responses of a sidecar to its own workload. Default: `envoy`, as Istio has it there.
    pub outbound_server_name: Option<HeaderValue>,
    /// Whether the proxy is a sidecar: then the headers that say who a client is are the application's. Default: no.
    pub is_sidecar: bool,
    /// Whether an external client's `x-request-id` is kept instead of replaced. Default: no.
    pub keep_request_id: bool,
    /// Networks whose clients are internal. Default: none. Source: `--internal-addresses`.
    pub internal_addresses: InternalAddresses,
    /// How many proxies in front of this one are trusted: what they say of the client's address and scheme is
    /// believed. Default: 0. Source: `--trusted-hops`.
    pub trusted_hops: usize,
    /// Whether `x-forwarded-host` has the client's host when a rule changes the host. Default: no. Source:
    /// `--forwarded-host`.
    pub forwarded_host: bool,
    /// Whether the host of a mirror's copy has `-shadow` behind its name, as older Istio had it. Default: no.
    pub shadow_host_suffix: bool,
    /// Most bytes of one request body that are kept for another try. Default: 1 MiB.
    pub retry_body_bytes: usize,
    /// Most bytes of request bodies that one worker keeps for other attempts. Default: its part of 64 MiB.
    pub retry_body_bytes_per_worker: usize,
    /// Most bytes of one request body that may be sent again to the next tier of clusters; no more than are kept for
    /// another try. Default: 64 KiB. Source: `--failover-replay-bytes`.
    pub failover_replay_bytes: usize,
    /// Name of this machine, for `%HOSTNAME%`.
    pub hostname: Arc<str>,
    /// The process's environment as it was at the start, for `%ENVIRONMENT(X)%`.
    pub environment: Arc<BTreeMap<String, String>>,
}

impl Default for ExchangeSettings {
    fn default() -> Self {
        Self {
            server_name: Some(HeaderValue::from_static("istio-envoy")),
            outbound_server_name: Some(HeaderValue::from_static("envoy")),
            is_sidecar: false,
            keep_request_id: false,
            internal_addresses: InternalAddresses::default(),
            trusted_hops: 0,
            forwarded_host: false,
            shadow_host_suffix: false,
            retry_body_bytes: RETRY_BODY_BYTES,
            retry_body_bytes_per_worker: RETRY_BODY_BYTES_TOTAL,
            failover_replay_bytes: FAILOVER_REPLAY_BYTES,
            hostname: Arc::from(""),
            environment: Arc::default(),
        }
    }
}
