//! Settings of the request path that do not come from resources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;

use super::downstream::origin::InternalAddresses;

/// Default of [`ExchangeSettings::retry_body_bytes`]: Envoy's buffer limit for requests.
pub const RETRY_BODY_BYTES: usize = 1024 * 1024;

/// Default of [`ExchangeSettings::failover_replay_bytes`].
pub const FAILOVER_REPLAY_BYTES: usize = 64 * 1024;

/// Default of the maximum number of bytes of request bodies that all workers together buffer for retries.
pub const RETRY_BODY_BYTES_TOTAL: usize = 64 * 1024 * 1024;

/// Treatment of `x-forwarded-client-cert`; a client is verified if it presented a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertHeader {
    /// Any client's header is passed on.
    AlwaysForwardOnly,
    /// The certificate of a verified client is added to its header.
    AppendForward,
    /// The header of a verified client is passed on.
    ForwardOnly,
    /// There is no header.
    Sanitize,
    /// The certificate of a verified client is the header.
    SanitizeSet,
}

impl ClientCertHeader {
    /// Whether the proxy writes the certificate of a verified client.
    pub fn has_own(self) -> bool {
        matches!(self, Self::AppendForward | Self::SanitizeSet)
    }

    /// Whether the header of a client is passed on.
    pub fn keeps(self, is_verified: bool) -> bool {
        match self {
            Self::AlwaysForwardOnly => true,
            Self::AppendForward | Self::ForwardOnly => is_verified,
            Self::Sanitize | Self::SanitizeSet => false,
        }
    }
}

/// Headers that the proxy does not add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedHeaders {
    /// `x-envoy-attempt-count`.
    pub attempt_count: bool,
    /// `x-envoy-upstream-service-time` and `x-envoy-expected-rq-timeout-ms`.
    pub debug: bool,
    /// `x-request-id`.
    pub request_id: bool,
}

/// Settings of the request path that do not come from resources.
#[derive(Clone, Debug)]
pub struct ExchangeSettings {
    /// `server` response header; `None` to keep the upstream's. Default: `istio-envoy`, which dashboards and tests
    /// expect.
    pub server_name: Option<HeaderValue>,
    /// `server` response header of a sidecar towards its own workload. Default: `envoy`, as in Istio.
    pub outbound_server_name: Option<HeaderValue>,
    /// Whether the proxy is a sidecar, which leaves headers about the client's identity to the application. Default:
    /// no.
    pub is_sidecar: bool,
    /// Treatment of `x-forwarded-client-cert`. Default: as at a sidecar, only the verified certificate. Source:
    /// `--client-cert-header`.
    pub client_cert_header: ClientCertHeader,
    /// Whether an external client's `x-request-id` is kept. Default: no, it is replaced.
    pub keep_request_id: bool,
    /// Networks of internal clients. Default: none. Source: `--internal-addresses`.
    pub internal_addresses: InternalAddresses,
    /// Number of trusted proxies in front of this one: the client address and scheme that they report are used.
    /// Default: 0. Source: `--trusted-hops`.
    pub trusted_hops: usize,
    /// Length of the networks by which rate limits tell clients with IPv6 apart. Default: 64. Source:
    /// `--rate-limit-ipv6-prefix`.
    pub ipv6_client_prefix: u8,
    /// Whether rate limits that read no headers count requests before those are authorized. Default: no. Source:
    /// `--rate-limit-before-authorization`.
    pub limits_before_authorization: bool,
    /// Whether raw TCP connections and tunnels are judged again when policies change. Default: no. Source:
    /// `--authz-recheck-tcp`.
    pub recheck_tcp: bool,
    /// Domain of limits that the rate limit service counts. Default: `strait`. Source: `--rate-limit-domain`.
    pub rate_limit_domain: Arc<str>,
    /// Time for an answer of the rate limit service. Default: 20 ms, as in Envoy. Source: `--rate-limit-timeout`.
    pub rate_limit_timeout: Duration,
    /// Whether requests are refused when the rate limit service fails. Default: no. Source:
    /// `--rate-limit-fail-closed`.
    pub rate_limit_fail_closed: bool,
    /// Whether `x-forwarded-host` contains the client's host when a rule rewrites the host. Default: no. Source:
    /// `--forwarded-host`.
    pub forwarded_host: bool,
    /// Whether `x-forwarded-port` has the port that the client dialed. Default: no. Source: `--forwarded-port`.
    pub forwarded_port: bool,
    /// Headers that are not added. Default: none. Source: `--omit-headers`.
    pub omitted: OmittedHeaders,
    /// Maximum time from the end of a request to the end of its response. Default: none. Source:
    /// `--http-max-stream-duration`.
    pub request_time_max: Option<Duration>,
    /// Maximum time from the head of a request to the end of its body. Default: none. Source: `--http-request-timeout`.
    pub request_receive_max: Option<Duration>,
    /// Whether the host of mirrored requests gets the suffix `-shadow`, as in older Istio versions. Default: no.
    pub shadow_host_suffix: bool,
    /// Maximum number of bytes of one request body that are buffered for retries. Default: 1 MiB.
    pub retry_body_bytes: usize,
    /// Maximum number of bytes of request bodies that one worker buffers for retries. Default: its share of 64 MiB.
    pub retry_body_bytes_per_worker: usize,
    /// Maximum number of bytes of one request body that may be sent again for a failover replay, within
    /// `retry_body_bytes`. Default: 64 KiB. Source: `--failover-replay-bytes`.
    pub failover_replay_bytes: usize,
    /// Whether histograms of durations have exemplars of sampled requests. Default: yes. Source: `--exemplars`.
    pub exemplars: bool,
    /// Maximum number of combinations of values of requests as labels of metrics. Default: 1,000. Source:
    /// `--metric-series-max`.
    pub metric_series_max: usize,
    /// Host name of the machine, for `%HOSTNAME%`.
    pub hostname: Arc<str>,
    /// Environment of the process at its start, for `%ENVIRONMENT(X)%`.
    pub environment: Arc<BTreeMap<String, String>>,
}

impl ExchangeSettings {
    /// Returns the number of trusted proxies in front of this one, and whether it is a sidecar.
    pub fn trust(&self) -> (usize, bool) {
        (self.trusted_hops, self.is_sidecar)
    }
}

impl Default for ExchangeSettings {
    fn default() -> Self {
        Self {
            server_name: Some(HeaderValue::from_static("istio-envoy")),
            outbound_server_name: Some(HeaderValue::from_static("envoy")),
            is_sidecar: false,
            client_cert_header: ClientCertHeader::SanitizeSet,
            keep_request_id: false,
            internal_addresses: InternalAddresses::default(),
            trusted_hops: 0,
            ipv6_client_prefix: 64,
            limits_before_authorization: false,
            recheck_tcp: false,
            rate_limit_domain: Arc::from("strait"),
            rate_limit_timeout: Duration::from_millis(20),
            rate_limit_fail_closed: false,
            forwarded_host: false,
            forwarded_port: false,
            omitted: OmittedHeaders::default(),
            request_time_max: None,
            request_receive_max: None,
            shadow_host_suffix: false,
            retry_body_bytes: RETRY_BODY_BYTES,
            retry_body_bytes_per_worker: RETRY_BODY_BYTES_TOTAL,
            failover_replay_bytes: FAILOVER_REPLAY_BYTES,
            exemplars: true,
            metric_series_max: 1000,
            hostname: Arc::from(""),
            environment: Arc::default(),
        }
    }
}
