//! Every metric name, label name and help text, once.
//!
//! Uses nothing of the telemetry modules. A name that is printed anywhere else than through this file is a bug.

/// Name and help text of a family of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name as it is scraped.
    pub name: &'static str,
    /// One sentence for the reader of the exposition.
    pub help: &'static str,
}

/// Declares families: `CONSTANT "name" "help"`.
macro_rules! families {
    ($($(#[doc = $doc:literal])+ $constant:ident $name:literal $help:literal,)+) => {
        $($(#[doc = $doc])+ pub const $constant: Family = Family { name: $name, help: $help };)+

        /// Every family that is not made of [`Counter`]s or [`Gauge`]s.
        pub const FAMILIES: &[Family] = &[$($constant,)+];
    };
}

families! {
    /// Counter: finished HTTP and gRPC requests.
    REQUESTS "istio_requests_total" "Finished HTTP and gRPC requests, local replies included.",
    /// Histogram: milliseconds from the first byte of a request to the last of its response.
    REQUEST_DURATION "istio_request_duration_milliseconds" "Milliseconds from the first byte of the request to the last byte of its response.",
    /// Histogram: request body bytes.
    REQUEST_BYTES "istio_request_bytes" "Request body sizes in bytes.",
    /// Histogram: response body bytes.
    RESPONSE_BYTES "istio_response_bytes" "Response body sizes in bytes.",
    /// Counter: gRPC messages received from clients.
    REQUEST_MESSAGES "istio_request_messages_total" "gRPC messages in requests.",
    /// Counter: gRPC messages sent to clients.
    RESPONSE_MESSAGES "istio_response_messages_total" "gRPC messages in responses.",
    /// Counter: TCP connections opened.
    TCP_OPENED "istio_tcp_connections_opened_total" "TCP connections opened.",
    /// Counter: TCP connections closed.
    TCP_CLOSED "istio_tcp_connections_closed_total" "TCP connections closed.",
    /// Counter: bytes sent to the client of a TCP connection.
    TCP_SENT "istio_tcp_sent_bytes_total" "Bytes sent to clients of TCP connections.",
    /// Counter: bytes received from the client of a TCP connection.
    TCP_RECEIVED "istio_tcp_received_bytes_total" "Bytes received from clients of TCP connections.",
    /// Counter: downstream connections opened.
    DOWNSTREAM_OPENED "strait_downstream_connections_opened_total" "Downstream connections accepted, by listener and protocol.",
    /// Counter: downstream connections closed.
    DOWNSTREAM_CLOSED "strait_downstream_connections_closed_total" "Downstream connections closed, by listener and protocol.",
    /// Gauge: downstream connections open now.
    DOWNSTREAM_ACTIVE "strait_downstream_connections_active" "Downstream connections that are open, by listener and protocol.",
    /// Counter: requests of rules with a `statPrefix`.
    ROUTE_REQUESTS "strait_route_requests_total" "Requests that a rule with a statPrefix took, by prefix and class of status.",
    /// Counter: tries for which a cluster of a service was picked.
    MEMBER_TRIES "strait_member_tries_total" "Tries of requests and connections by the cluster of a service that they were sent to, its tier and the class of the status that came back; those of tier 1 and after failed over.",
    /// Counter: requests that one cluster failed and another took.
    FAILOVER_REPLAYS "strait_failover_replays_total" "Requests that were sent again to the next tier of clusters, by the two clusters and what the first came to.",
    /// Counter: changes of the tier in use.
    TIER_SHIFTS "strait_member_tier_shifts_total" "Times that the requests of a service began to go to another tier of clusters, by reason.",
    /// Gauge: the part of a service's traffic that a cluster has.
    MEMBER_SHARE "strait_member_share" "Part of a service's traffic that a cluster has now, 0 to 1.",
    /// Gauge: endpoints of a cluster that may be used.
    MEMBER_ENDPOINTS "strait_member_endpoints_available" "Endpoints of a cluster that may be used for a service.",
    /// Counter: local replies.
    LOCAL_REPLIES "strait_local_replies_total" "Responses made by this proxy itself, by response flag; a reply with two flags counts under both.",
    /// Counter: access log lines that were dropped.
    ACCESS_LOG_DROPPED "strait_access_log_dropped_total" "Access log lines dropped because the writer fell behind or could not write.",
    /// Counter: access log lines that were taken.
    ACCESS_LOG_LINES "strait_access_log_lines_total" "Access log lines handed to the writer.",
    /// Counter: lines of the process log that were dropped.
    LOG_DROPPED "strait_log_dropped_total" "Process log lines dropped because nobody read standard error.",
    /// Counter: reloads, by result.
    RELOADS "strait_reloads_total" "Configuration updates, by result.",
    /// Gauge: when the last reload succeeded.
    RELOAD_LAST_SUCCESS "strait_reload_last_success_timestamp_seconds" "Unix time of the last configuration update that came into force.",
    /// Gauge: how long the last reload took.
    RELOAD_DURATION "strait_reload_last_duration_seconds" "Seconds that the last configuration update took from its resources to being in force.",
    /// Gauge: generation of the snapshot in force.
    GENERATION "strait_snapshot_generation" "Number of the snapshot in force.",
    /// Gauge: resources held at their last good version.
    QUARANTINED "strait_quarantined_resources" "Resources whose newest version was refused, by kind; their last good version stays in force.",
    /// Gauge: security policies that are not enforced.
    UNENFORCED "strait_unenforced_policies" "Security policies in the configuration that this proxy does not enforce.",
    /// Gauge: when a certificate expires.
    CERTIFICATE_EXPIRATION "strait_certificate_expiration_timestamp_seconds" "Unix time at which the certificate in force expires, by the file or secret that it comes from.",
    /// Gauge: certificates whose newest version is not used.
    CERTIFICATE_REFUSED "strait_certificate_refused" "1 when the newest version of a certificate is refused; the last good one, if there is one, stays in force.",
    /// Gauge: always 1.
    BUILD_INFO "strait_build_info" "Always 1; the labels say what is running.",
    /// Gauge: always 1, where Istio's dashboards look for versions.
    ISTIO_BUILD "istio_build" "Always 1; the labels say which component runs, and its version.",
    /// Gauge: series held for requests.
    REQUEST_LABEL_SETS "strait_request_label_sets" "Label sets that hold request statistics.",
    /// Gauge: worker threads.
    WORKERS "strait_workers" "Worker threads.",
    /// Counter: CPU time.
    PROCESS_CPU "process_cpu_seconds_total" "CPU time that the process used, in seconds.",
    /// Gauge: resident memory.
    PROCESS_MEMORY "process_resident_memory_bytes" "Resident memory in bytes.",
    /// Gauge: open file descriptors.
    PROCESS_FDS "process_open_fds" "Open file descriptors.",
    /// Gauge: limit of open file descriptors.
    PROCESS_FDS_MAX "process_max_fds" "Limit of open file descriptors.",
    /// Gauge: threads.
    PROCESS_THREADS "process_threads" "Threads of the process.",
    /// Gauge: when the process started.
    PROCESS_START "process_start_time_seconds" "Unix time at which the process started.",
}

/// Label names, in the order in which Istio lists them.
pub mod label {
    /// `source` or `destination`: the side that reports.
    pub const REPORTER: &str = "reporter";
    /// Labels of the source workload, in the order of [`super::super::Workload`]'s fields.
    pub const SOURCE: [&str; 8] = [
        "source_workload",
        "source_workload_namespace",
        "source_principal",
        "source_app",
        "source_version",
        "source_cluster",
        "source_canonical_service",
        "source_canonical_revision",
    ];
    /// Labels of the destination workload, in the order of [`super::super::Workload`]'s fields.
    pub const DESTINATION: [&str; 8] = [
        "destination_workload",
        "destination_workload_namespace",
        "destination_principal",
        "destination_app",
        "destination_version",
        "destination_cluster",
        "destination_canonical_service",
        "destination_canonical_revision",
    ];
    /// Host of the destination service.
    pub const DESTINATION_SERVICE: &str = "destination_service";
    /// Name of the destination service.
    pub const DESTINATION_SERVICE_NAME: &str = "destination_service_name";
    /// Namespace of the destination service.
    pub const DESTINATION_SERVICE_NAMESPACE: &str = "destination_service_namespace";
    /// Name of the cluster that the proxy is in.
    pub const SOURCE_CLUSTER: &str = "source_cluster";
    /// Name of the cluster that serves the destination.
    pub const DESTINATION_CLUSTER: &str = "destination_cluster";
    /// Tier of a cluster, 0 first.
    pub const TIER: &str = "tier";
    /// Cluster that failed a request.
    pub const FROM: &str = "from";
    /// Cluster that a request went to.
    pub const TO: &str = "to";
    /// What a request came to.
    pub const CAUSE: &str = "cause";
    /// Port of a service.
    pub const PORT: &str = "port";
    /// Subset of a service.
    pub const SUBSET: &str = "subset";
    /// `http`, `grpc` or `tcp`.
    pub const REQUEST_PROTOCOL: &str = "request_protocol";
    /// HTTP status, 0 when none was sent.
    pub const RESPONSE_CODE: &str = "response_code";
    /// gRPC status as a number; absent for HTTP.
    pub const GRPC_RESPONSE_STATUS: &str = "grpc_response_status";
    /// Response flags as the access log prints them.
    pub const RESPONSE_FLAGS: &str = "response_flags";
    /// `mutual_tls`, `none` or `unknown`.
    pub const CONNECTION_SECURITY_POLICY: &str = "connection_security_policy";
    /// Name of a listener.
    pub const LISTENER: &str = "listener";
    /// `statPrefix` of a rule.
    pub const STAT_PREFIX: &str = "stat_prefix";
    /// `1xx` to `5xx`, `none` when no status was sent.
    pub const RESPONSE_CODE_CLASS: &str = "response_code_class";
    /// Protocol of a connection.
    pub const PROTOCOL: &str = "protocol";
    /// One response flag.
    pub const FLAG: &str = "flag";
    /// Why something was refused or failed.
    pub const REASON: &str = "reason";
    /// `delay` or `abort`.
    pub const FAULT: &str = "fault";
    /// Which limit was reached.
    pub const LIMIT: &str = "limit";
    /// `ok` or `failed`.
    pub const RESULT: &str = "result";
    /// Kind of a resource.
    pub const KIND: &str = "kind";
    /// File or secret.
    pub const SOURCE_OF_CERTIFICATE: &str = "source";
    /// Version of the binary.
    pub const VERSION: &str = "version";
    /// Component of a mesh.
    pub const COMPONENT: &str = "component";
    /// Version of a component.
    pub const TAG: &str = "tag";
    /// Source revision of the binary.
    pub const REVISION: &str = "revision";
}

/// How a [`Counter`] or [`Gauge`] appears when scraped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// The family; several series may share it and then stand next to each other.
    pub family: Family,
    /// The label that tells apart the series of one family, with its value.
    pub label: Option<(&'static str, &'static str)>,
}

/// Declares an enum of series: `Variant "name" [label = "value"] "help"`.
macro_rules! series {
    ($(#[doc = $enum_doc:literal])+ $enum:ident; $($(#[doc = $doc:literal])+ $variant:ident $name:literal [$($label:ident = $value:literal)?] $help:literal,)+) => {
        $(#[doc = $enum_doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $enum { $($(#[doc = $doc])+ $variant,)+ }

        impl $enum {
            /// Every variant, in the order of exposition.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// How many variants there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Name, label and help text.
            pub const fn series(self) -> Series {
                match self {
                    $(Self::$variant => Series {
                        family: Family { name: $name, help: $help },
                        label: series!(@label $($label = $value)?),
                    },)+
                }
            }
        }
    };
    (@label) => { None };
    (@label $label:ident = $value:literal) => { Some((label::$label, $value)) };
}

series! {
    /// What a worker counts besides requests: one cell per worker, summed when scraped.
    Counter;
    /// A connection was closed right after accept: the limit of open connections.
    DownstreamRefusedLimit "strait_downstream_connections_refused_total" [REASON = "connection_limit"] "Downstream connections closed right after they were accepted, by reason.",
    /// `accept` failed, for want of file descriptors for example.
    AcceptErrors "strait_downstream_accept_errors_total" [] "Calls of accept that failed.",
    /// An accepted connection went to another worker.
    HandedOff "strait_downstream_connections_handed_off_total" [] "Accepted connections that were handed to a worker with fewer of them.",
    /// The first bytes were no protocol that the listener serves.
    ProtocolUnknown "strait_downstream_protocol_errors_total" [REASON = "unknown_protocol"] "Downstream protocol errors, by reason.",
    /// No PROXY header where one is required, one that cannot be read, or not in time.
    ProtocolProxyHeader "strait_downstream_protocol_errors_total" [REASON = "proxy_header"] "Downstream protocol errors, by reason.",
    /// HTTP version that is not served.
    ProtocolVersion "strait_downstream_protocol_errors_total" [REASON = "version"] "Downstream protocol errors, by reason.",
    /// A header field that cannot be read.
    ProtocolHeader "strait_downstream_protocol_errors_total" [REASON = "header"] "Downstream protocol errors, by reason.",
    /// A header block over the limit of bytes or fields.
    ProtocolHeaderTooLarge "strait_downstream_protocol_errors_total" [REASON = "headers_too_large"] "Downstream protocol errors, by reason.",
    /// A request target over the limit, or one that cannot be read.
    ProtocolTarget "strait_downstream_protocol_errors_total" [REASON = "target"] "Downstream protocol errors, by reason.",
    /// A missing, doubled or unreadable Host.
    ProtocolHost "strait_downstream_protocol_errors_total" [REASON = "host"] "Downstream protocol errors, by reason.",
    /// Ambiguous framing: both lengths, doubled lengths, bad chunks.
    ProtocolFraming "strait_downstream_protocol_errors_total" [REASON = "framing"] "Downstream protocol errors, by reason.",
    /// A body that broke off or broke its framing.
    ProtocolBody "strait_downstream_protocol_errors_total" [REASON = "body"] "Downstream protocol errors, by reason.",
    /// A request head that did not arrive in time.
    ProtocolHeadTimeout "strait_downstream_protocol_errors_total" [REASON = "head_timeout"] "Downstream protocol errors, by reason.",
    /// HTTP/2: streams opened and reset faster than is allowed.
    ProtocolRapidReset "strait_downstream_protocol_errors_total" [REASON = "rapid_reset"] "Downstream protocol errors, by reason.",
    /// HTTP/2: frames without end: CONTINUATION, empty DATA, PING or SETTINGS floods.
    ProtocolFlood "strait_downstream_protocol_errors_total" [REASON = "flood"] "Downstream protocol errors, by reason.",
    /// HTTP/2: any other violation.
    ProtocolHttp2 "strait_downstream_protocol_errors_total" [REASON = "http2"] "Downstream protocol errors, by reason.",
    /// The first bytes were no TLS.
    TlsNotTls "strait_downstream_tls_errors_total" [REASON = "not_tls"] "TLS connections that were closed before they led anywhere, by reason.",
    /// A first message that cannot be read.
    TlsHelloMalformed "strait_downstream_tls_errors_total" [REASON = "malformed_hello"] "TLS connections that were closed before they led anywhere, by reason.",
    /// A first message over the limit.
    TlsHelloTooLarge "strait_downstream_tls_errors_total" [REASON = "large_hello"] "TLS connections that were closed before they led anywhere, by reason.",
    /// No whole first message in time.
    TlsHelloTimeout "strait_downstream_tls_errors_total" [REASON = "hello_timeout"] "TLS connections that were closed before they led anywhere, by reason.",
    /// The client closed within its first message.
    TlsHelloBrokenOff "strait_downstream_tls_errors_total" [REASON = "hello_broken_off"] "TLS connections that were closed before they led anywhere, by reason.",
    /// A name that no server has.
    TlsUnknownName "strait_downstream_tls_errors_total" [REASON = "unknown_name"] "TLS connections that were closed before they led anywhere, by reason.",
    /// No name, and no server for `*`.
    TlsNoName "strait_downstream_tls_errors_total" [REASON = "no_name"] "TLS connections that were closed before they led anywhere, by reason.",
    /// A client of a server for the mesh alone that does not offer its protocol.
    TlsNotMesh "strait_downstream_tls_errors_total" [REASON = "no_mesh_alpn"] "TLS connections that were closed before they led anywhere, by reason.",
    /// The server has no certificate that can be used.
    TlsNoCertificate "strait_downstream_tls_errors_total" [REASON = "no_certificate"] "TLS connections that were closed before they led anywhere, by reason.",
    /// The client ended the handshake by an alert.
    TlsAlert "strait_downstream_tls_errors_total" [REASON = "alert"] "TLS connections that were closed before they led anywhere, by reason.",
    /// A client without the certificate that it needs.
    TlsClientCertificateMissing "strait_downstream_tls_errors_total" [REASON = "client_certificate_missing"] "TLS connections that were closed before they led anywhere, by reason.",
    /// A client whose certificate is not let in.
    TlsClientCertificateRefused "strait_downstream_tls_errors_total" [REASON = "client_certificate_refused"] "TLS connections that were closed before they led anywhere, by reason.",
    /// The client closed within the handshake.
    TlsHandshakeClosed "strait_downstream_tls_errors_total" [REASON = "handshake_broken_off"] "TLS connections that were closed before they led anywhere, by reason.",
    /// Too many handshakes were under way.
    TlsHandshakeLimit "strait_downstream_tls_errors_total" [REASON = "handshake_limit"] "TLS connections that were closed before they led anywhere, by reason.",
    /// The handshake took too long.
    TlsHandshakeTimeout "strait_downstream_tls_errors_total" [REASON = "handshake_timeout"] "TLS connections that were closed before they led anywhere, by reason.",
    /// No cipher suite, group or signature that both sides know.
    TlsIncompatible "strait_downstream_tls_errors_total" [REASON = "incompatible"] "TLS connections that were closed before they led anywhere, by reason.",
    /// The client broke the protocol.
    TlsProtocol "strait_downstream_tls_errors_total" [REASON = "protocol"] "TLS connections that were closed before they led anywhere, by reason.",
    /// No version that both sides speak.
    TlsVersion "strait_downstream_tls_errors_total" [REASON = "version"] "TLS connections that were closed before they led anywhere, by reason.",
    /// A TLS handshake from the beginning.
    TlsHandshakesFull "strait_tls_handshakes_total" [RESULT = "full"] "TLS handshakes with clients, by result.",
    /// A TLS handshake that took up an earlier session.
    TlsHandshakesResumed "strait_tls_handshakes_total" [RESULT = "resumed"] "TLS handshakes with clients, by result.",
    /// A TLS handshake that failed.
    TlsHandshakesFailed "strait_tls_handshakes_total" [RESULT = "failed"] "TLS handshakes with clients, by result.",
    /// A request's head was read and its walk began.
    RequestsStarted "strait_requests_started_total" [] "Requests whose head was read.",
    /// A connection to an endpoint is up.
    UpstreamOpened "strait_upstream_connections_opened_total" [] "Upstream connections opened.",
    /// A connection to an endpoint is gone.
    UpstreamClosed "strait_upstream_connections_closed_total" [] "Upstream connections closed.",
    /// Connecting was refused or reset.
    ConnectRefused "strait_upstream_connect_failures_total" [REASON = "refused"] "Upstream connections that could not be made, by reason.",
    /// Connecting took longer than the connect timeout.
    ConnectTimeout "strait_upstream_connect_failures_total" [REASON = "timeout"] "Upstream connections that could not be made, by reason.",
    /// The TLS or HTTP/2 handshake failed.
    ConnectHandshake "strait_upstream_connect_failures_total" [REASON = "handshake"] "Upstream connections that could not be made, by reason.",
    /// Connecting failed otherwise: no route to the host, no file descriptors.
    ConnectOther "strait_upstream_connect_failures_total" [REASON = "other"] "Upstream connections that could not be made, by reason.",
    /// A TLS handshake with an endpoint began a session.
    UpstreamTlsFull "strait_upstream_tls_handshakes_total" [RESULT = "full"] "TLS handshakes with endpoints, by result.",
    /// A TLS handshake with an endpoint resumed a session.
    UpstreamTlsResumed "strait_upstream_tls_handshakes_total" [RESULT = "resumed"] "TLS handshakes with endpoints, by result.",
    /// A TLS handshake with an endpoint that failed.
    UpstreamTlsFailed "strait_upstream_tls_handshakes_total" [RESULT = "failed"] "TLS handshakes with endpoints, by result.",
    /// A pooled connection turned out closed and the request was sent again on a fresh one.
    UpstreamReplays "strait_upstream_replays_total" [] "Requests sent again because a pooled connection turned out to be closed and nothing of them was consumed.",
    /// The limit of connections kept one from being made.
    OverflowConnections "strait_upstream_overflows_total" [LIMIT = "connections"] "Times that a limit of a destination was reached, by limit.",
    /// A request did not wait for a connection: too many do.
    OverflowPending "strait_upstream_overflows_total" [LIMIT = "pending"] "Times that a limit of a destination was reached, by limit.",
    /// A request was not sent: too many are under way.
    OverflowRequests "strait_upstream_overflows_total" [LIMIT = "requests"] "Times that a limit of a destination was reached, by limit.",
    /// A request was not tried again: too many are.
    OverflowRetries "strait_upstream_overflows_total" [LIMIT = "retries"] "Times that a limit of a destination was reached, by limit.",
    /// A request was tried again: its connection could not be made.
    RetryConnectFailure "strait_upstream_retries_total" [REASON = "connect_failure"] "Tries of requests after the first, by reason.",
    /// A request was tried again: the gRPC status in its response's headers.
    RetryGrpcStatus "strait_upstream_retries_total" [REASON = "grpc_status"] "Tries of requests after the first, by reason.",
    /// A request was tried again: a header of its response.
    RetryHeader "strait_upstream_retries_total" [REASON = "header"] "Tries of requests after the first, by reason.",
    /// A request was tried again: its HTTP/2 stream was refused.
    RetryRefusedStream "strait_upstream_retries_total" [REASON = "refused_stream"] "Tries of requests after the first, by reason.",
    /// A request was tried again: it got no response.
    RetryReset "strait_upstream_retries_total" [REASON = "reset"] "Tries of requests after the first, by reason.",
    /// A request was tried again: the status of its response.
    RetryStatus "strait_upstream_retries_total" [REASON = "status"] "Tries of requests after the first, by reason.",
    /// A request was tried again: the try took too long.
    RetryTimeout "strait_upstream_retries_total" [REASON = "per_try_timeout"] "Tries of requests after the first, by reason.",
    /// A request that was tried again got a response that is passed on.
    RetriesSucceeded "strait_upstream_retried_requests_total" [RESULT = "succeeded"] "Requests that their policy tries again, by what came of it.",
    /// A request that was tried again failed in a way that is not tried again.
    RetriesFailed "strait_upstream_retried_requests_total" [RESULT = "failed"] "Requests that their policy tries again, by what came of it.",
    /// A request used all its tries.
    RetriesExhausted "strait_upstream_retried_requests_total" [RESULT = "exhausted"] "Requests that their policy tries again, by what came of it.",
    /// A request was not tried again: too many were.
    RetriesOverBudget "strait_upstream_retried_requests_total" [RESULT = "over_budget"] "Requests that their policy tries again, by what came of it.",
    /// A request was not tried again: its body was not kept.
    RetriesWithoutBody "strait_upstream_retried_requests_total" [RESULT = "body_not_kept"] "Requests that their policy tries again, by what came of it.",
    /// A request was not sent to the next tier of clusters: its body was not kept.
    FailoverWithoutBody "strait_failover_replays_refused_total" [REASON = "body_not_kept"] "Requests that were not sent again to the next tier of clusters, though it might have served them.",
    /// An endpoint was ejected: 5xx responses in a row.
    EjectedServerErrors "strait_outlier_ejections_total" [REASON = "5xx"] "Endpoints that outlier detection took out, by what was counted in a row.",
    /// An endpoint was ejected: 502, 503 and 504 responses in a row.
    EjectedGatewayErrors "strait_outlier_ejections_total" [REASON = "gateway_error"] "Endpoints that outlier detection took out, by what was counted in a row.",
    /// An endpoint was ejected: failures to get a response in a row.
    EjectedLocalErrors "strait_outlier_ejections_total" [REASON = "local_origin"] "Endpoints that outlier detection took out, by what was counted in a row.",
    /// An endpoint was not ejected because of the cap.
    EndpointsSpared "strait_outlier_ejections_total" [REASON = "spared_by_cap"] "Endpoints that outlier detection took out, by what was counted in a row.",
    /// An ejected endpoint came back.
    EndpointsReturned "strait_outlier_returns_total" [] "Endpoints that came back from an ejection.",
    /// A health check passed.
    ChecksPassed "strait_health_checks_total" [RESULT = "passed"] "Active health checks, by what came of them.",
    /// A health check failed.
    ChecksFailed "strait_health_checks_total" [RESULT = "failed"] "Active health checks, by what came of them.",
    /// An endpoint became healthy by its checks.
    TurnedHealthy "strait_health_changes_total" [RESULT = "healthy"] "Endpoints whose health checks came to another result than before.",
    /// An endpoint became unhealthy by its checks.
    TurnedUnhealthy "strait_health_changes_total" [RESULT = "unhealthy"] "Endpoints whose health checks came to another result than before.",
    /// A priority began to use all of its endpoints.
    Panics "strait_panics_total" [] "Times that a priority had too few healthy endpoints and began to use all of them.",
    /// Traffic was shared otherwise between priorities.
    PriorityShifts "strait_priority_shifts_total" [] "Times that traffic was shared otherwise between priorities.",
    /// A mirror answered a copy.
    MirrorsAnswered "strait_mirror_requests_total" [RESULT = "answered"] "Copies of requests for mirrors, by what became of them.",
    /// The request that a copy was made from broke off.
    MirrorsBrokenOff "strait_mirror_requests_total" [RESULT = "broken_off"] "Copies of requests for mirrors, by what became of them.",
    /// A copy failed.
    MirrorsFailed "strait_mirror_requests_total" [RESULT = "failed"] "Copies of requests for mirrors, by what became of them.",
    /// A copy was not made: the mirror has no endpoint.
    MirrorsWithoutEndpoint "strait_mirror_requests_total" [RESULT = "no_endpoint"] "Copies of requests for mirrors, by what became of them.",
    /// A copy was not made: too many are under way.
    MirrorsOverLimit "strait_mirror_requests_total" [RESULT = "over_limit"] "Copies of requests for mirrors, by what became of them.",
    /// A copy took too long.
    MirrorsTimedOut "strait_mirror_requests_total" [RESULT = "timed_out"] "Copies of requests for mirrors, by what became of them.",
    /// A copy was given up: its mirror took the body more slowly than it came.
    MirrorsTooSlow "strait_mirror_requests_total" [RESULT = "too_slow"] "Copies of requests for mirrors, by what became of them.",
    /// A request found a pooled connection.
    PoolReused "strait_pool_reused_total" [] "Requests that found a pooled connection.",
    /// A pooled connection was closed for being idle too long.
    PoolIdleTimeout "strait_pool_evicted_total" [REASON = "idle_timeout"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed for want of room.
    PoolIdleLimit "strait_pool_evicted_total" [REASON = "idle_limit"] "Pooled connections that were closed, by reason.",
    /// Pooled TLS connections were closed since requests named too many other hosts.
    PoolHostLimit "strait_pool_evicted_total" [REASON = "host_limit"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed by its peer.
    PoolPeerClosed "strait_pool_evicted_total" [REASON = "peer_closed"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed because its endpoint left the configuration.
    PoolEndpointGone "strait_pool_evicted_total" [REASON = "endpoint_gone"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed after as many requests as it may carry.
    PoolRequestsMax "strait_pool_evicted_total" [REASON = "requests_max"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed after as long as it may be used.
    PoolDurationMax "strait_pool_evicted_total" [REASON = "duration_max"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed for a request that may have another in its place, or because the limit was lowered.
    PoolHandedOver "strait_pool_evicted_total" [REASON = "handed_over"] "Pooled connections that were closed, by reason.",
    /// A rule's fault held a request back.
    FaultDelays "strait_faults_injected_total" [FAULT = "delay"] "Faults that rules injected into requests, by kind.",
    /// A rule's fault answered a request.
    FaultAborts "strait_faults_injected_total" [FAULT = "abort"] "Faults that rules injected into requests, by kind.",
    /// A rule's fault would have held a request back, but too many are.
    DelaysSkipped "strait_fault_delays_skipped_total" [] "Requests that went on undelayed because too many were held back already.",
    /// A task of a connection or request panicked; only that task ended.
    TaskPanics "strait_task_panics_total" [] "Tasks that panicked; each ended only its own connection or job.",
}

series! {
    /// What a worker has right now: one cell per worker, summed when scraped.
    Gauge;
    /// Requests between head and last byte.
    RequestsActive "strait_requests_active" [] "Requests that are in progress.",
    /// Upstream connections that are open, idle ones included.
    UpstreamActive "strait_upstream_connections_active" [] "Upstream connections that are open, idle ones included.",
    /// Pooled connections that wait for a request.
    PoolIdle "strait_pool_idle_connections" [] "Pooled upstream connections that no request uses.",
    /// Requests that a rule's fault holds back.
    DelaysActive "strait_fault_delays_active" [] "Requests that rules hold back right now.",
    /// Endpoints that are ejected.
    EndpointsEjected "strait_outlier_ejections_active" [] "Endpoints that are ejected right now.",
    /// Endpoints that fail their health checks.
    EndpointsUnhealthy "strait_endpoints_unhealthy" [] "Endpoints that fail their health checks, or wait for the first.",
    /// Copies of requests for mirrors that are under way.
    MirrorsActive "strait_mirrors_active" [] "Copies of requests for mirrors that are under way.",
    /// Upgraded connections (WebSocket and others) that are open.
    UpgradesActive "strait_upgrades_active" [] "Upgraded connections that are open.",
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn all_series() -> Vec<Series> {
        let counters = Counter::ALL.iter().map(|counter| counter.series());
        let gauges = Gauge::ALL.iter().map(|gauge| gauge.series());
        counters.chain(gauges).collect()
    }

    #[test]
    fn every_name_is_well_formed_and_explained() {
        let families = all_series().into_iter().map(|series| series.family);
        for family in families.chain(FAMILIES.iter().copied()) {
            assert!(family.help.ends_with('.'), "{}", family.name);
            let prefixes = ["istio_", "process_", "strait_"];
            assert!(
                prefixes
                    .iter()
                    .any(|prefix| family.name.starts_with(prefix))
            );
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(family.name.bytes().all(plain), "{}", family.name);
        }
    }

    #[test]
    fn the_reference_page_lists_exactly_these_names() {
        let page = include_str!("../../../docs/metrics.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let listed: HashSet<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        let families = all_series().into_iter().map(|series| series.family);
        let families = families.chain(FAMILIES.iter().copied());
        assert_eq!(listed, families.map(|family| family.name).collect());
    }

    #[test]
    fn counters_end_in_total_and_gauges_do_not() {
        for counter in Counter::ALL {
            assert!(counter.series().family.name.ends_with("_total"));
        }
        for gauge in Gauge::ALL {
            assert!(!gauge.series().family.name.ends_with("_total"));
        }
    }

    #[test]
    fn no_series_is_declared_twice() {
        let mut seen = HashSet::new();
        for series in all_series() {
            assert!(
                seen.insert((series.family.name, series.label)),
                "{series:?}"
            );
        }
        for family in FAMILIES {
            assert!(seen.insert((family.name, None)), "{family:?}");
        }
    }

    #[test]
    fn series_of_one_family_are_neighbours_with_one_help_text_and_one_label() {
        let mut done: Vec<Series> = Vec::new();
        for series in all_series() {
            let Some(last) = done.iter().rfind(|s| s.family.name == series.family.name) else {
                done.push(series);
                continue;
            };
            assert_eq!(last.family, series.family);
            assert_eq!(last.label.map(|l| l.0), series.label.map(|l| l.0));
            assert_eq!(done.last(), Some(last), "{} is split", series.family.name);
            done.push(series);
        }
    }
}
