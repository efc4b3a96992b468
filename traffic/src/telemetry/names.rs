//! Every metric name, label name and help text, once.
//!
//! Imports nothing of telemetry. A metric name that is printed must come from this file.

/// Name and help text of a family of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name of the metric.
    pub name: &'static str,
    /// Help text: one sentence for the reader of the exposition.
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
    DOWNSTREAM_CLOSED "strait_downstream_connections_closed_total" "Downstream connections closed, by listener, protocol and reason.",
    /// Gauge: downstream connections open now.
    DOWNSTREAM_ACTIVE "strait_downstream_connections_active" "Downstream connections that are open, by listener and protocol.",
    /// Counter: TLS sessions with clients.
    DOWNSTREAM_TLS_SESSIONS "strait_downstream_tls_sessions_total" "TLS handshakes with clients that succeeded, by version and cipher suite.",
    /// Counter: plain-text connections to a workload that also accepts mutual TLS of the mesh.
    INBOUND_PLAINTEXT "strait_inbound_plaintext_connections_total" "Plain-text connections to ports with PeerAuthentication mode PERMISSIVE, by source; STRICT would close them.",
    /// Counter: requests whose values became `other` in labels.
    LABEL_OVERFLOW "strait_metric_label_overflow_total" "Requests and connections that a metric counts with the label value other, because there are too many values.",
    /// Counter: requests of rules with a `statPrefix`.
    ROUTE_REQUESTS "strait_route_requests_total" "Requests matched by a rule with a statPrefix, by prefix and class of the response status.",
    /// Counter: requests of rules.
    RULE_REQUESTS "strait_rule_requests_total" "Requests by the rule that matched, and class of the response status; at most 1000 rules, then as rule other.",
    /// Gauge: endpoints of a destination.
    DESTINATION_ENDPOINTS "strait_destination_endpoints" "Endpoints of a destination that has had a request, by state: available, ejected, unhealthy, draining.",
    /// Gauge: endpoints of a destination that get no new requests.
    DESTINATION_UNAVAILABLE "strait_destination_endpoint_unavailable" "1 for endpoints of a destination that are ejected or unhealthy, by address and state; at most 20 of a destination, and 1000 in all.",
    /// Gauge: limits of a destination.
    DESTINATION_LIMIT "strait_destination_limit" "Limits of a destination that has had a request, by limit.",
    /// Gauge: current values of what limits limit.
    DESTINATION_IN_USE "strait_destination_in_use" "Current values of what limits limit, of a destination that has had a request; also without a limit.",
    /// Counter: failed connections to a destination.
    DESTINATION_CONNECT_FAILURES "strait_destination_connect_failures_total" "Connections to endpoints of a destination that could not be established, by reason.",
    /// Counter: overflows of limits of a destination.
    DESTINATION_OVERFLOWS "strait_destination_overflows_total" "Times that a circuit breaker limit of a destination was reached, by limit.",
    /// Counter: requests of a destination whose retry policy applied.
    DESTINATION_RETRIED_REQUESTS "strait_destination_retried_requests_total" "Requests to a destination whose retry policy applied, by result.",
    /// Counter: retries of requests to a destination.
    DESTINATION_RETRIES "strait_destination_retries_total" "Retries of requests to a destination, by reason.",
    /// Counter: TLS handshakes with endpoints of a destination.
    DESTINATION_TLS_HANDSHAKES "strait_destination_tls_handshakes_total" "TLS handshakes with endpoints of a destination, by result.",
    /// Histogram: times of the phases of attempts.
    UPSTREAM_PHASES "strait_upstream_phase_seconds" "Seconds that attempts spent in a phase, by destination service: wait for a connection, connect, tls, first_byte (from the last byte of the request), body.",
    /// Counter: attempts sent to a Kubernetes cluster of a service.
    CLUSTER_ATTEMPTS "strait_cluster_attempts_total" "Attempts sent to a Kubernetes cluster of a service, by cluster, tier and class of the response status; attempts in tier 1 and later are failovers.",
    /// Counter: requests that failed in one cluster and were sent to another.
    FAILOVER_REPLAYS "strait_failover_replays_total" "Requests that failed in one cluster and were sent to the next cluster tier, by the two clusters and the reason.",
    /// Counter: changes of the cluster tier in use.
    TIER_SHIFTS "strait_cluster_tier_shifts_total" "Times that the traffic of a service moved to another cluster tier, by reason.",
    /// Gauge: share of a service's traffic that goes to a Kubernetes cluster.
    CLUSTER_SHARE "strait_cluster_share" "Share of the traffic of a service that a Kubernetes cluster has now, 0 to 1.",
    /// Gauge: endpoints in a Kubernetes cluster that are neither ejected nor unhealthy.
    CLUSTER_ENDPOINTS "strait_cluster_endpoints_available" "Endpoints of a service in a Kubernetes cluster that are neither ejected nor unhealthy.",
    /// Counter: local replies.
    LOCAL_REPLIES "strait_local_replies_total" "Responses made by the proxy itself, by response flag; a reply with two flags counts under both.",
    /// Counter: access log lines that were dropped.
    ACCESS_LOG_DROPPED "strait_access_log_lines_dropped_total" "Access log lines dropped because the buffer was full or the log could not be written.",
    /// Counter: access log lines handed to the writer.
    ACCESS_LOG_LINES "strait_access_log_lines_total" "Access log lines handed to the writer.",
    /// Counter: sampling decisions.
    TRACES "strait_traces_total" "Requests to listeners that are traced, by decision (sampled, not_sampled) and its origin; a request that is kept late counts again.",
    /// Counter: requests to a collector.
    OTLP_EXPORTS "strait_otlp_exports_total" "Requests to the collector, by signal and result.",
    /// Gauge: bytes that wait to be exported.
    OTLP_QUEUE "strait_otlp_queue_bytes" "Bytes that wait for the collector, by signal.",
    /// Gauge: time of the last accepted request.
    OTLP_LAST_SUCCESS "strait_otlp_last_success_timestamp_seconds" "Unix time of the last request that the collector accepted, by signal.",
    /// Counter: lines of the process log that were dropped.
    PROCESS_LOG_DROPPED "strait_process_log_lines_dropped_total" "Process log lines dropped because the reader of standard error stalled.",
    /// Counter: reloads, by result.
    RELOADS "strait_config_reloads_total" "Configuration reloads, by result.",
    /// Gauge: time of the last successful reload.
    LAST_RELOAD_SUCCESS "strait_config_last_reload_success_timestamp_seconds" "Unix time of the last successful configuration reload.",
    /// Gauge: duration of the last reload.
    LAST_RELOAD_DURATION "strait_config_last_reload_duration_seconds" "Seconds that the last configuration reload took, from changed resources to the applied configuration.",
    /// Gauge: generation number of the applied configuration.
    GENERATION "strait_config_generation" "Generation number of the applied configuration.",
    /// Histogram: time from the receipt of a change to the snapshot in effect.
    PROPAGATION "strait_config_propagation_seconds" "Seconds from the receipt of a change from its source to the configuration in effect.",
    /// Gauge: the applied revision of a server.
    SOURCE_REVISION "strait_config_source_revision" "Newest revision of the server that is in effect, by source.",
    /// Counter: failed lists, watches and streams.
    SOURCE_ERRORS "strait_config_source_errors_total" "Lists, watches and streams of a source that failed, by source and reason.",
    /// Gauge: age of the last message of a server.
    MESSAGE_AGE "strait_config_source_last_message_age_seconds" "Age of the last message of a server: of an API server of the watch that is silent for longest, of an xDS server of its connection.",
    /// Gauge: whether a server answers.
    SOURCE_CONNECTED "strait_config_source_connected" "1 if a server has sent a message within the last 70 seconds, 0 otherwise, by source.",
    /// Gauge: age of the restored state of a server.
    STATE_AGE "strait_config_restored_state_age_seconds" "Age of the saved state that is in effect because the server has not answered yet.",
    /// Gauge: resources whose newest version is rejected.
    RESOURCES_REJECTED "strait_config_resources_rejected" "Resources whose newest version is rejected, by kind; the last good version stays applied.",
    /// Counter: decisions of authorization.
    AUTHZ_DECISIONS "strait_authz_decisions_total" "Decisions of authorization, by stage, result (allowed, denied) and transport (http, tcp); those of policies in dry run decide nothing.",
    /// Histogram: time of decisions of authorization.
    AUTHZ_EVALUATION "strait_authz_eval_seconds" "Time in which DENY and ALLOW policies decide about a request or connection; one decision in 1,024 of each worker is measured.",
    /// Counter: matches of authorization policies.
    AUTHZ_MATCHES "strait_authz_policy_matches_total" "Requests and connections that a rule of an AuthorizationPolicy decided, by policy and action; at most 1000 policies, then as namespace and name other.",
    /// Counter: matches of authorization policies in dry run.
    AUTHZ_SHADOW "strait_authz_shadow_total" "Requests and connections that a rule of an AuthorizationPolicy in dry run would have decided, by policy and action.",
    /// Gauge: authorization policies that apply to the proxy.
    AUTHZ_POLICIES "strait_authz_policies" "AuthorizationPolicies that apply to the proxy, by state: enforced, dry_run, denying (rejected and never valid: it denies what it selects), and quarantined (rejected: its last good version stays enforced or in dry run).",
    /// Gauge: security policies that are not enforced.
    POLICIES_UNENFORCED "strait_config_policies_unenforced" "Security policies in the configuration that this proxy does not enforce.",
    /// Gauge: expressions and operators that are left out.
    EXPRESSIONS_UNSUPPORTED "strait_config_expressions_unsupported" "Expressions and operators of the configuration that are not supported and left out.",
    /// Gauge: whether settings that are read at the start have changed.
    RESTART_PENDING "strait_config_restart_pending" "1 if settings that are read at the start have changed since.",
    /// Gauge: expiration time of a certificate.
    CERTIFICATE_EXPIRATION "strait_certificate_expiration_timestamp_seconds" "Unix time at which the certificate in use expires, by the file or Secret that it comes from.",
    /// Gauge: certificates whose newest version is rejected.
    CERTIFICATE_REJECTED "strait_certificate_rejected" "1 when the newest version of a certificate is rejected; the last good version, if there is one, stays in use.",
    /// Gauge: time until the identity of the workload expires.
    IDENTITY_EXPIRY "strait_identity_expiry_seconds" "Seconds until the certificate of the workload expires; 0 if there is none that is valid.",
    /// Counter: requests for an identity.
    IDENTITY_RENEWALS "strait_identity_renewals_total" "Requests for a certificate of the workload, by source and result (succeeded, failed, denied, invalid).",
    /// Gauge: CA certificates of a trust domain.
    IDENTITY_BUNDLE "strait_identity_bundle_certificates" "CA certificates that verify workloads, by trust domain.",
    /// Gauge: time of the last fetch of a key set.
    KEY_SET_FETCHED "strait_jwks_fetch_timestamp_seconds" "Unix time at which the key set in use was fetched, by its URL.",
    /// Gauge: always 1.
    BUILD_INFO "strait_build_info" "Always 1; the labels are the version and the revision of the binary.",
    /// Gauge: always 1. The name under which Istio's dashboards look for versions.
    ISTIO_BUILD "istio_build" "Always 1; the labels say which component runs, and its version.",
    /// Gauge: label sets that hold request metrics.
    REQUEST_LABEL_SETS "strait_request_label_sets" "Label sets that hold request metrics.",
    /// Counter: time that a worker was busy.
    WORKER_BUSY "strait_worker_busy_seconds_total" "Seconds in which a worker ran tasks rather than wait for events, by worker.",
    /// Histogram: delay of a worker's timer.
    WORKER_DELAY "strait_worker_delay_seconds" "Seconds by which the timer of a worker that has connections was late: how long other tasks ran before it.",
    /// Gauge: worker threads.
    WORKERS "strait_workers" "Worker threads.",
    /// Counter: CPU time.
    PROCESS_CPU "process_cpu_seconds_total" "CPU time that the process used, in seconds.",
    /// Gauge: resident memory.
    PROCESS_MEMORY "process_resident_memory_bytes" "Resident memory in bytes.",
    /// Gauge: virtual memory.
    PROCESS_VIRTUAL "process_virtual_memory_bytes" "Virtual memory in bytes.",
    /// Gauge: open file descriptors.
    PROCESS_FDS "process_open_fds" "Open file descriptors.",
    /// Gauge: limit of open file descriptors.
    PROCESS_FDS_MAX "process_max_fds" "Limit of open file descriptors.",
    /// Gauge: threads.
    PROCESS_THREADS "process_threads" "Threads of the process.",
    /// Gauge: start time of the process.
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
    /// Address of a source whose workload is unknown.
    pub const SOURCE_ADDRESS: &str = "source_address";
    /// Action of a policy: `ALLOW`, `DENY`, `AUDIT` or `CUSTOM`.
    pub const ACTION: &str = "action";
    /// Address of an endpoint.
    pub const ENDPOINT: &str = "endpoint";
    /// Name of a metric.
    pub const METRIC: &str = "metric";
    /// Namespace of a policy.
    pub const NAMESPACE: &str = "namespace";
    /// Name of a policy.
    pub const POLICY: &str = "policy";
    /// Step of authorization.
    pub const STAGE: &str = "stage";
    /// `http`, or `tcp` for other protocols.
    pub const TRANSPORT: &str = "transport";
    /// Host of the destination service.
    pub const DESTINATION_SERVICE: &str = "destination_service";
    /// Name of the destination service.
    pub const DESTINATION_SERVICE_NAME: &str = "destination_service_name";
    /// Namespace of the destination service.
    pub const DESTINATION_SERVICE_NAMESPACE: &str = "destination_service_namespace";
    /// Name of the local cluster.
    pub const SOURCE_CLUSTER: &str = "source_cluster";
    /// Name of the cluster that serves the destination.
    pub const DESTINATION_CLUSTER: &str = "destination_cluster";
    /// Tier of a cluster, 0 first.
    pub const TIER: &str = "tier";
    /// Kubernetes cluster in which a request failed.
    pub const FROM_CLUSTER: &str = "from_cluster";
    /// Kubernetes cluster to which the request was sent next.
    pub const TO_CLUSTER: &str = "to_cluster";
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
    /// Source of configuration: `files`, or the URL of a server.
    pub const CONFIG_SOURCE: &str = "source";
    /// Name of a listener.
    pub const LISTENER: &str = "listener";
    /// Phase of an attempt.
    pub const PHASE: &str = "phase";
    /// Resource of a rule, with its name or number.
    pub const RULE: &str = "rule";
    /// `statPrefix` of a rule.
    pub const STAT_PREFIX: &str = "stat_prefix";
    /// `1xx` to `5xx`, or `none` if no status was sent.
    pub const RESPONSE_CODE_CLASS: &str = "response_code_class";
    /// Cipher suite, by its OpenSSL name.
    pub const CIPHER: &str = "cipher";
    /// Number of a worker.
    pub const WORKER: &str = "worker";
    /// Protocol of a connection.
    pub const PROTOCOL: &str = "protocol";
    /// One response flag.
    pub const RESPONSE_FLAG: &str = "response_flag";
    /// Reason for a rejection or failure.
    pub const REASON: &str = "reason";
    /// `delay` or `abort`.
    pub const FAULT: &str = "fault";
    /// Limit that was reached.
    pub const LIMIT: &str = "limit";
    /// Outcome, such as `succeeded` or `failed`.
    pub const RESULT: &str = "result";
    /// State that an endpoint changed to: `healthy` or `unhealthy`.
    pub const STATE: &str = "state";
    /// Kind of a resource.
    pub const KIND: &str = "kind";
    /// File or Secret of a certificate.
    pub const SOURCE_OF_CERTIFICATE: &str = "source";
    /// Trust domain of a bundle.
    pub const TRUST_DOMAIN: &str = "trust_domain";
    /// Version of the binary, or of TLS.
    pub const VERSION: &str = "version";
    /// Component of a mesh.
    pub const COMPONENT: &str = "component";
    /// Version of a component.
    pub const TAG: &str = "tag";
    /// Whether a request is sampled.
    pub const DECISION: &str = "decision";
    /// Origin of a decision.
    pub const BY: &str = "by";
    /// `traces`.
    pub const SIGNAL: &str = "signal";
    /// Source revision of the binary.
    pub const REVISION: &str = "revision";
}

/// Exposed form of a [`Counter`] or [`Gauge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Family of the series; series of the same family must be adjacent in the enum.
    pub family: Family,
    /// Label that distinguishes the series of one family, with its value.
    pub label: Option<(&'static str, &'static str)>,
}

/// Declares an enum of series: `Variant "name" [label = "value"] "help"`.
macro_rules! series {
    ($(#[doc = $enum_doc:literal])+ $enum:ident; $($(#[doc = $doc:literal])+ $variant:ident $name:literal [$($label:ident = $value:literal)?] $help:literal,)+) => {
        $(#[doc = $enum_doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $enum { $($(#[doc = $doc])+ $variant,)+ }

        impl $enum {
            /// All variants, in the order of exposition.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Number of variants.
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
    /// Counters of workers, except for request metrics: one cell per worker, summed by a scrape.
    Counter;
    /// A connection was closed right after accept: the limit of open connections was reached.
    DownstreamRejectedLimit "strait_downstream_connections_rejected_total" [REASON = "connection_limit"] "Downstream connections closed right after they were accepted, by reason.",
    /// A connection to a socket for captured connections was not captured.
    NotCaptured "strait_downstream_connections_rejected_total" [REASON = "not_captured"] "Downstream connections closed right after they were accepted, by reason.",
    /// A plain-text connection to a workload that accepts only mutual TLS of the mesh.
    PlaintextRefused "strait_downstream_connections_rejected_total" [REASON = "plaintext"] "Downstream connections closed right after they were accepted, by reason.",
    /// A client with an undeclared protocol sent nothing in time; its connection was proxied as raw TCP.
    DetectionTimeouts "strait_protocol_detection_timeouts_total" [] "Captured connections whose client sent nothing within the detection timeout; carried as bytes.",
    /// `accept` failed, for example for lack of file descriptors.
    AcceptErrors "strait_downstream_accept_errors_total" [] "Failed accept calls.",
    /// An accepted connection was handed to another worker.
    HandedOff "strait_downstream_connections_handed_off_total" [] "Accepted connections that were handed to a worker with fewer connections.",
    /// The first bytes match no protocol that the listener serves.
    ProtocolUnknown "strait_downstream_protocol_errors_total" [REASON = "unknown_protocol"] "Malformed or abusive downstream requests, by reason.",
    /// A required PROXY header was missing or late, or a PROXY header was malformed.
    ProtocolProxyHeader "strait_downstream_protocol_errors_total" [REASON = "proxy_protocol"] "Malformed or abusive downstream requests, by reason.",
    /// The client speaks an HTTP version that is not served.
    ProtocolVersion "strait_downstream_protocol_errors_total" [REASON = "http_version"] "Malformed or abusive downstream requests, by reason.",
    /// A header field is malformed.
    ProtocolHeader "strait_downstream_protocol_errors_total" [REASON = "malformed_header"] "Malformed or abusive downstream requests, by reason.",
    /// The request headers exceed the limit of bytes or fields.
    ProtocolHeaderTooLarge "strait_downstream_protocol_errors_total" [REASON = "headers_too_large"] "Malformed or abusive downstream requests, by reason.",
    /// The request target is malformed or exceeds the limit.
    ProtocolTarget "strait_downstream_protocol_errors_total" [REASON = "request_target"] "Malformed or abusive downstream requests, by reason.",
    /// The Host header is missing, repeated or malformed.
    ProtocolHost "strait_downstream_protocol_errors_total" [REASON = "host"] "Malformed or abusive downstream requests, by reason.",
    /// Ambiguous framing: both lengths, doubled lengths, bad chunks.
    ProtocolFraming "strait_downstream_protocol_errors_total" [REASON = "framing"] "Malformed or abusive downstream requests, by reason.",
    /// The request body ended early or broke its framing.
    ProtocolBody "strait_downstream_protocol_errors_total" [REASON = "body"] "Malformed or abusive downstream requests, by reason.",
    /// The request headers did not arrive in time.
    ProtocolHeadTimeout "strait_downstream_protocol_errors_total" [REASON = "request_headers_timeout"] "Malformed or abusive downstream requests, by reason.",
    /// HTTP/2: streams opened and reset faster than is allowed.
    ProtocolRapidReset "strait_downstream_protocol_errors_total" [REASON = "rapid_reset"] "Malformed or abusive downstream requests, by reason.",
    /// HTTP/2: a flood of CONTINUATION, empty DATA, PING or SETTINGS frames.
    ProtocolFlood "strait_downstream_protocol_errors_total" [REASON = "flood"] "Malformed or abusive downstream requests, by reason.",
    /// HTTP/2: any other violation.
    ProtocolHttp2 "strait_downstream_protocol_errors_total" [REASON = "http2"] "Malformed or abusive downstream requests, by reason.",
    /// The first bytes were not TLS.
    TlsNotTls "strait_downstream_tls_errors_total" [REASON = "not_tls"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The ClientHello is malformed.
    TlsHelloMalformed "strait_downstream_tls_errors_total" [REASON = "malformed_client_hello"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The ClientHello exceeds the limit.
    TlsHelloTooLarge "strait_downstream_tls_errors_total" [REASON = "client_hello_too_large"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The ClientHello did not arrive in time.
    TlsHelloTimeout "strait_downstream_tls_errors_total" [REASON = "client_hello_timeout"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client closed the connection within its ClientHello.
    TlsHelloIncomplete "strait_downstream_tls_errors_total" [REASON = "client_hello_incomplete"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// No server has the SNI that the client sent.
    TlsUnknownSni "strait_downstream_tls_errors_total" [REASON = "unknown_sni"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client sent no SNI, and no server has the host `*`.
    TlsNoSni "strait_downstream_tls_errors_total" [REASON = "no_sni"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client does not offer the ALPN of the mesh to a server that requires it.
    TlsNoMeshAlpn "strait_downstream_tls_errors_total" [REASON = "no_mesh_alpn"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The server has no usable certificate.
    TlsNoServerCertificate "strait_downstream_tls_errors_total" [REASON = "no_server_certificate"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client ended the handshake with an alert.
    TlsClientAlert "strait_downstream_tls_errors_total" [REASON = "client_alert"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client sent no certificate although one is required.
    TlsClientCertificateMissing "strait_downstream_tls_errors_total" [REASON = "client_certificate_missing"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client's certificate was rejected.
    TlsClientCertificateRejected "strait_downstream_tls_errors_total" [REASON = "client_certificate_rejected"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client closed the connection within the handshake.
    TlsHandshakeIncomplete "strait_downstream_tls_errors_total" [REASON = "handshake_incomplete"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The limit of concurrent handshakes was reached.
    TlsHandshakeLimit "strait_downstream_tls_errors_total" [REASON = "handshake_limit"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The handshake took too long.
    TlsHandshakeTimeout "strait_downstream_tls_errors_total" [REASON = "handshake_timeout"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// Client and server share no cipher suite, group or signature scheme.
    TlsIncompatible "strait_downstream_tls_errors_total" [REASON = "no_shared_parameters"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// The client violated the TLS protocol.
    TlsProtocol "strait_downstream_tls_errors_total" [REASON = "protocol"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// Client and server share no TLS version.
    TlsVersion "strait_downstream_tls_errors_total" [REASON = "tls_version"] "Downstream TLS connections closed before they reached a route, by reason.",
    /// A full TLS handshake with a client.
    TlsHandshakesFull "strait_downstream_tls_handshakes_total" [RESULT = "full"] "Downstream TLS handshakes, by result.",
    /// A TLS handshake that resumed a session.
    TlsHandshakesResumed "strait_downstream_tls_handshakes_total" [RESULT = "resumed"] "Downstream TLS handshakes, by result.",
    /// A TLS handshake that failed.
    TlsHandshakesFailed "strait_downstream_tls_handshakes_total" [RESULT = "failed"] "Downstream TLS handshakes, by result.",
    /// A request's head was read.
    RequestsStarted "strait_requests_started_total" [] "Requests whose head was read.",
    /// An upstream connection was established.
    UpstreamOpened "strait_upstream_connections_opened_total" [] "Upstream connections opened.",
    /// An upstream connection was closed.
    UpstreamClosed "strait_upstream_connections_closed_total" [] "Upstream connections closed.",
    /// The connection was refused or reset.
    ConnectRefused "strait_upstream_connect_failures_total" [REASON = "refused"] "Upstream connections that could not be established, by reason.",
    /// The connect timeout was exceeded.
    ConnectTimeout "strait_upstream_connect_failures_total" [REASON = "timeout"] "Upstream connections that could not be established, by reason.",
    /// The TLS or HTTP/2 handshake failed.
    ConnectHandshake "strait_upstream_connect_failures_total" [REASON = "handshake"] "Upstream connections that could not be established, by reason.",
    /// Connecting failed for another reason: no route to the host, no file descriptors.
    ConnectOther "strait_upstream_connect_failures_total" [REASON = "other"] "Upstream connections that could not be established, by reason.",
    /// A pending connect moved to another endpoint.
    ConnectsMoved "strait_upstream_connects_moved_total" [] "Pending connects that were given up for another endpoint because theirs had left, or was ejected or unhealthy; not counted as retries.",
    /// A full TLS handshake with an endpoint.
    UpstreamTlsFull "strait_upstream_tls_handshakes_total" [RESULT = "full"] "Upstream TLS handshakes, by result.",
    /// A TLS handshake with an endpoint that resumed a session.
    UpstreamTlsResumed "strait_upstream_tls_handshakes_total" [RESULT = "resumed"] "Upstream TLS handshakes, by result.",
    /// A TLS handshake with an endpoint failed.
    UpstreamTlsFailed "strait_upstream_tls_handshakes_total" [RESULT = "failed"] "Upstream TLS handshakes, by result.",
    /// A pooled connection was already closed, so that the request was sent again on another one.
    StaleConnectionRetries "strait_upstream_stale_connection_retries_total" [] "Requests sent again on another connection because the pooled connection was already closed; not counted as retries.",
    /// The connection limit was reached.
    OverflowConnections "strait_upstream_overflows_total" [LIMIT = "connections"] "Times that a circuit breaker limit was reached, by limit.",
    /// The limit of pending requests was reached.
    OverflowPending "strait_upstream_overflows_total" [LIMIT = "pending_requests"] "Times that a circuit breaker limit was reached, by limit.",
    /// The limit of requests in flight was reached.
    OverflowRequests "strait_upstream_overflows_total" [LIMIT = "requests"] "Times that a circuit breaker limit was reached, by limit.",
    /// The limit of concurrent retries was reached.
    OverflowRetries "strait_upstream_overflows_total" [LIMIT = "retries"] "Times that a circuit breaker limit was reached, by limit.",
    /// A retry after a connection that could not be established.
    RetryConnectFailure "strait_upstream_retries_total" [REASON = "connect_failure"] "Retries, by reason.",
    /// A retry after a gRPC status in the response headers.
    RetryGrpcStatus "strait_upstream_retries_total" [REASON = "grpc_status"] "Retries, by reason.",
    /// A retry after a response header.
    RetryHeader "strait_upstream_retries_total" [REASON = "header"] "Retries, by reason.",
    /// A retry after a refused HTTP/2 stream.
    RetryRefusedStream "strait_upstream_retries_total" [REASON = "refused_stream"] "Retries, by reason.",
    /// A retry after a connection that closed without a response.
    RetryReset "strait_upstream_retries_total" [REASON = "reset"] "Retries, by reason.",
    /// A retry after a response status.
    RetryStatus "strait_upstream_retries_total" [REASON = "status"] "Retries, by reason.",
    /// A retry after an attempt that exceeded the per-try timeout.
    RetryTimeout "strait_upstream_retries_total" [REASON = "per_try_timeout"] "Retries, by reason.",
    /// A retry got a response that ended the retries.
    RetriesSucceeded "strait_upstream_retried_requests_total" [RESULT = "succeeded"] "Requests whose retry policy applied, by result.",
    /// A retry failed in a way that is not retried.
    RetriesFailed "strait_upstream_retried_requests_total" [RESULT = "failed"] "Requests whose retry policy applied, by result.",
    /// The request used all its retries.
    RetriesExhausted "strait_upstream_retried_requests_total" [RESULT = "exhausted"] "Requests whose retry policy applied, by result.",
    /// The request was not retried: the limit of concurrent retries was reached.
    RetriesOverflowed "strait_upstream_retried_requests_total" [RESULT = "overflow"] "Requests whose retry policy applied, by result.",
    /// The request was not retried: its body was not buffered.
    RetriesWithoutBody "strait_upstream_retried_requests_total" [RESULT = "body_not_buffered"] "Requests whose retry policy applied, by result.",
    /// The request was not sent to the next cluster tier: its body was not buffered.
    FailoverWithoutBody "strait_failover_replays_skipped_total" [REASON = "body_not_buffered"] "Requests that failed and were not sent to the next cluster tier although it was available, by reason.",
    /// An endpoint was ejected after consecutive 5xx responses.
    EjectedServerErrors "strait_outlier_ejections_total" [REASON = "consecutive_5xx"] "Endpoints ejected by outlier detection, by reason.",
    /// An endpoint was ejected after consecutive 502, 503 and 504 responses.
    EjectedGatewayErrors "strait_outlier_ejections_total" [REASON = "consecutive_gateway_failure"] "Endpoints ejected by outlier detection, by reason.",
    /// An endpoint was ejected after consecutive failures to get a response.
    EjectedLocalErrors "strait_outlier_ejections_total" [REASON = "consecutive_local_origin_failure"] "Endpoints ejected by outlier detection, by reason.",
    /// An endpoint was not ejected because of `maxEjectionPercent`.
    EjectionsOverflowed "strait_outlier_ejections_overflow_total" [] "Ejections that maxEjectionPercent prevented, counted once per sweep for each endpoint.",
    /// An endpoint was unejected.
    Unejections "strait_outlier_unejections_total" [] "Endpoints unejected after their ejection time.",
    /// A request was denied because its provider of external authorization could not check it.
    ExtAuthzFailedClosed "strait_ext_authz_failures_total" [RESULT = "denied"] "Requests that a provider of external authorization could not check, by result.",
    /// A request passed although its provider of external authorization could not check it.
    ExtAuthzFailedOpen "strait_ext_authz_failures_total" [RESULT = "allowed"] "Requests that a provider of external authorization could not check, by result.",
    /// A request with valid tokens.
    TokensVerified "strait_jwt_verifications_total" [RESULT = "verified"] "Requests with JSON Web Tokens, by result.",
    /// A request with a token that is not valid.
    TokensRefused "strait_jwt_verifications_total" [RESULT = "refused"] "Requests with JSON Web Tokens, by result.",
    /// A token whose signature was verified before.
    TokenCacheHits "strait_jwt_cache_total" [RESULT = "hit"] "Lookups in the caches of verified tokens, by result.",
    /// A token that was not verified before.
    TokenCacheMisses "strait_jwt_cache_total" [RESULT = "miss"] "Lookups in the caches of verified tokens, by result.",
    /// A key set was fetched.
    KeySetsFetched "strait_jwks_fetches_total" [RESULT = "fetched"] "Fetches of key sets of issuers, by result.",
    /// A key set could not be fetched.
    KeySetsFailed "strait_jwks_fetches_total" [RESULT = "failed"] "Fetches of key sets of issuers, by result.",
    /// A health check passed.
    ChecksPassed "strait_health_checks_total" [RESULT = "passed"] "Active health checks, by result.",
    /// A health check failed.
    ChecksFailed "strait_health_checks_total" [RESULT = "failed"] "Active health checks, by result.",
    /// An endpoint became healthy.
    TurnedHealthy "strait_health_check_transitions_total" [STATE = "healthy"] "Endpoints whose active health checks changed their state, by the new state.",
    /// An endpoint became unhealthy.
    TurnedUnhealthy "strait_health_check_transitions_total" [STATE = "unhealthy"] "Endpoints whose active health checks changed their state, by the new state.",
    /// A priority entered panic mode.
    PanicModeEntries "strait_panic_mode_entries_total" [] "Times that a priority entered panic mode: too few endpoints were healthy, so all of them are used.",
    /// The load distribution between priorities changed.
    PriorityLoadChanges "strait_priority_load_changes_total" [] "Times that the load distribution between priorities changed.",
    /// The mirror sent a response.
    MirrorsCompleted "strait_mirror_requests_total" [RESULT = "completed"] "Mirrored requests, by result.",
    /// The original request was aborted.
    MirrorsAborted "strait_mirror_requests_total" [RESULT = "request_aborted"] "Mirrored requests, by result.",
    /// The mirrored request failed.
    MirrorsFailed "strait_mirror_requests_total" [RESULT = "failed"] "Mirrored requests, by result.",
    /// The request was not mirrored: the mirror has no healthy endpoint.
    MirrorsWithoutUpstream "strait_mirror_requests_total" [RESULT = "no_healthy_upstream"] "Mirrored requests, by result.",
    /// The request was not mirrored: too many mirrored requests were in flight.
    MirrorsOverflowed "strait_mirror_requests_total" [RESULT = "overflow"] "Mirrored requests, by result.",
    /// The mirrored request exceeded its timeout.
    MirrorsTimedOut "strait_mirror_requests_total" [RESULT = "timeout"] "Mirrored requests, by result.",
    /// The mirrored request was canceled: the mirror read the body more slowly than it arrived.
    MirrorsTooSlow "strait_mirror_requests_total" [RESULT = "too_slow"] "Mirrored requests, by result.",
    /// A request was sent on a pooled connection.
    PoolReused "strait_pool_connections_reused_total" [] "Requests that were sent on a pooled connection.",
    /// A pooled connection exceeded its idle timeout.
    PoolIdleTimeout "strait_pool_connections_evicted_total" [REASON = "idle_timeout"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed because the limit of idle connections was reached.
    PoolIdleLimit "strait_pool_connections_evicted_total" [REASON = "idle_limit"] "Pooled connections that were closed, by reason.",
    /// Pooled TLS connections were closed because requests named too many other hosts.
    PoolHostLimit "strait_pool_connections_evicted_total" [REASON = "host_limit"] "Pooled connections that were closed, by reason.",
    /// The endpoint closed a pooled connection.
    PoolPeerClosed "strait_pool_connections_evicted_total" [REASON = "peer_closed"] "Pooled connections that were closed, by reason.",
    /// The endpoint of a pooled connection left the configuration.
    PoolEndpointRemoved "strait_pool_connections_evicted_total" [REASON = "endpoint_removed"] "Pooled connections that were closed, by reason.",
    /// A pooled connection carried its maximum number of requests.
    PoolRequestsMax "strait_pool_connections_evicted_total" [REASON = "max_requests"] "Pooled connections that were closed, by reason.",
    /// A pooled connection reached its maximum duration.
    PoolDurationMax "strait_pool_connections_evicted_total" [REASON = "max_duration"] "Pooled connections that were closed, by reason.",
    /// A pooled connection was closed because of the connection limit: another request needs the slot, or the limit was
    /// lowered.
    PoolConnectionLimit "strait_pool_connections_evicted_total" [REASON = "connection_limit"] "Pooled connections that were closed, by reason.",
    /// A delay was injected.
    FaultDelays "strait_faults_injected_total" [FAULT = "delay"] "Injected faults, by type.",
    /// An abort was injected.
    FaultAborts "strait_faults_injected_total" [FAULT = "abort"] "Injected faults, by type.",
    /// A delay was not injected: too many requests were delayed already.
    FaultDelaysOverflowed "strait_fault_delays_overflow_total" [] "Delays that were not injected because too many requests were delayed already.",
    /// A local rate limit let a request pass.
    RateLimitAllowed "strait_rate_limit_total" [RESULT = "allowed"] "Requests that rate limits counted, by result.",
    /// A local rate limit refused a request.
    RateLimitDenied "strait_rate_limit_total" [RESULT = "denied"] "Requests that rate limits counted, by result.",
    /// The rate limit service let a request pass.
    RateLimitServiceAllowed "strait_rate_limit_total" [RESULT = "service_allowed"] "Requests that rate limits counted, by result.",
    /// The rate limit service refused a request.
    RateLimitServiceDenied "strait_rate_limit_total" [RESULT = "service_denied"] "Requests that rate limits counted, by result.",
    /// The rate limit service failed, and the request passed.
    RateLimitFailureAllowed "strait_rate_limit_total" [RESULT = "failure_allowed"] "Requests that rate limits counted, by result.",
    /// The rate limit service failed, and the request was refused.
    RateLimitFailureDenied "strait_rate_limit_total" [RESULT = "failure_denied"] "Requests that rate limits counted, by result.",
    /// A rate limit in shadow mode would have refused a request.
    RateLimitShadowDenied "strait_rate_limit_total" [RESULT = "shadow_denied"] "Requests that rate limits counted, by result.",
    /// A key of a rate limit had no bucket of its own, because there were too many.
    RateLimitKeysOverflowed "strait_rate_limit_keys_overflow_total" [] "Requests whose key shared a bucket of a rate limit because the rule had too many keys.",
    /// A body was larger than its limit.
    BodiesTooLarge "strait_request_bodies_too_large_total" [] "Requests that were refused or ended because of the size of their body.",
    /// A request without a trace context.
    TraceContextsNone "strait_trace_contexts_total" [RESULT = "none"] "Trace contexts of requests to listeners that are traced, by result.",
    /// A request whose trace goes on.
    TraceContextsValid "strait_trace_contexts_total" [RESULT = "valid"] "Trace contexts of requests to listeners that are traced, by result.",
    /// A request with a context that cannot be read; it begins a new trace.
    TraceContextsInvalid "strait_trace_contexts_total" [RESULT = "invalid"] "Trace contexts of requests to listeners that are traced, by result.",
    /// A request with contexts of different traces.
    TraceContextsConflict "strait_trace_contexts_total" [RESULT = "conflict"] "Trace contexts of requests to listeners that are traced, by result.",
    /// Spans that the collector accepted.
    TraceSpansExported "strait_trace_spans_exported_total" [] "Spans that the collector accepted.",
    /// Spans that found no room in the buffer of their worker.
    TraceSpansQueue "strait_trace_spans_dropped_total" [REASON = "queue"] "Spans that were not exported, by reason.",
    /// Spans of a batch that was repeated too often.
    TraceSpansRetry "strait_trace_spans_dropped_total" [REASON = "retry"] "Spans that were not exported, by reason.",
    /// Spans that the collector rejected.
    TraceSpansRejected "strait_trace_spans_dropped_total" [REASON = "rejected"] "Spans that were not exported, by reason.",
    /// Spans beyond the rate of requests that are kept late.
    TraceSpansKeepRate "strait_trace_spans_dropped_total" [REASON = "keep_rate"] "Spans that were not exported, by reason.",
    /// Spans that were not sent when the process ended.
    TraceSpansShutdown "strait_trace_spans_dropped_total" [REASON = "shutdown"] "Spans that were not exported, by reason.",
    /// A request was handed to the reader of a tap.
    TapSent "strait_tap_requests_total" [RESULT = "sent"] "Requests that matched the filter of a tap, by result.",
    /// A request that a tap matched was beyond its rate.
    TapOverRate "strait_tap_requests_total" [RESULT = "over_rate"] "Requests that matched the filter of a tap, by result.",
    /// A request was dropped because the reader of a tap was too slow.
    TapDropped "strait_tap_requests_total" [RESULT = "dropped"] "Requests that matched the filter of a tap, by result.",
    /// A task of a connection or request panicked; only that task ended.
    TaskPanics "strait_task_panics_total" [] "Internal tasks that panicked; a panic ends only its own connection or job.",
}

series! {
    /// Gauges of workers: one cell per worker, summed by a scrape.
    Gauge;
    /// Requests in flight.
    RequestsActive "strait_requests_active" [] "Requests in flight.",
    /// Upstream connections that are open, idle ones included.
    UpstreamActive "strait_upstream_connections_active" [] "Upstream connections that are open, idle ones included.",
    /// Idle pooled connections.
    PoolIdle "strait_pool_connections_idle" [] "Pooled upstream connections that no request uses.",
    /// Requests that an injected delay holds now.
    FaultDelaysActive "strait_fault_delays_active" [] "Requests that an injected delay holds back now.",
    /// Endpoints that are ejected.
    EndpointsEjected "strait_outlier_ejections_active" [] "Endpoints that are ejected now.",
    /// Endpoints that fail their active health checks, or wait for the first one.
    EndpointsUnhealthy "strait_endpoints_unhealthy" [] "Endpoints that fail their active health checks, or wait for their first.",
    /// Mirrored requests in flight.
    MirrorsActive "strait_mirror_requests_active" [] "Mirrored requests in flight.",
    /// Bytes of request bodies that retries may need.
    BufferedForRetries "strait_buffered_bytes" [KIND = "retry"] "Bytes of bodies that are held, by purpose.",
    /// Bytes of request bodies that mirrors have not read yet.
    BufferedForMirrors "strait_buffered_bytes" [KIND = "mirror"] "Bytes of bodies that are held, by purpose.",
    /// Bytes of responses that wait for clients to read.
    BufferedForClients "strait_buffered_bytes" [KIND = "response"] "Bytes of bodies that are held, by purpose.",
    /// Taps that are open.
    TapsOpen "strait_taps_open" [] "Taps that are open (strait tap).",
    /// Upgraded connections that are open.
    UpgradesActive "strait_upgrades_active" [] "Upgraded connections (WebSocket and others) that are open.",
}

impl Counter {
    /// Number among the counters that each destination has as well: those from failed connections to retried requests;
    /// `None` for others.
    pub const fn of_destination(self) -> Option<usize> {
        let (first, last) = (Self::ConnectRefused, Self::RetriesWithoutBody);
        match self as usize >= first as usize && self as usize <= last as usize {
            true => Some(self as usize - first as usize),
            false => None,
        }
    }

    /// Family of destinations for such a counter; `None` if it is not exposed by destination.
    pub fn destination_family(self) -> Option<Family> {
        self.of_destination()?;
        Some(match self.series().family.name {
            "strait_upstream_connect_failures_total" => DESTINATION_CONNECT_FAILURES,
            "strait_upstream_overflows_total" => DESTINATION_OVERFLOWS,
            "strait_upstream_retried_requests_total" => DESTINATION_RETRIED_REQUESTS,
            "strait_upstream_retries_total" => DESTINATION_RETRIES,
            "strait_upstream_tls_handshakes_total" => DESTINATION_TLS_HANDSHAKES,
            _ => return None,
        })
    }
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
    fn counters_of_destinations_are_those_of_upstreams() {
        let counted = Counter::ALL.iter().filter_map(|one| one.of_destination());
        let numbers: Vec<usize> = counted.collect();
        assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
        let families = Counter::ALL.iter().filter_map(|one| {
            let of_destination = one.destination_family()?.name.to_owned();
            Some((one.series().family.name, of_destination))
        });
        let families: HashSet<_> = families.collect();
        assert_eq!(families.len(), 5);
        for (of_all, of_destination) in families {
            assert_eq!(
                of_all.replace("_upstream_", "_destination_"),
                of_destination
            );
        }
    }

    #[test]
    fn every_name_is_valid_and_has_help() {
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
    fn series_of_one_family_are_adjacent_with_one_help_and_one_label() {
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
