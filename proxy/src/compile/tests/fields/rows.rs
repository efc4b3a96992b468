//! Effect of every field of DestinationRule, one row each.

/// Evidence that a field has an effect.
pub(in crate::compile) enum Shows {
    /// A cluster with this policy, compared with one with the other policy (or none), has this in its settings.
    Settings(&'static str, &'static str, &'static str),
    /// A test with this name in this file, below `proxy`.
    Test(&'static str, &'static str),
    /// It has no effect, and the loader says so with this code about this policy.
    Warning(&'static str, &'static str),
}

use Shows::{Settings, Test, Warning};

/// Fields of policies, but for those of [`HASHES`].
pub(in crate::compile) const FIELDS: &[(&str, Shows)] = &[
    (
        "loadBalancer.simple",
        Settings("loadBalancer: {simple: RANDOM}", "", "Simple(Random)"),
    ),
    (
        "loadBalancer.localityLbSetting.distribute[].from",
        Settings(
            "loadBalancer: {localityLbSetting: {distribute: [{from: '*', to: {r: 100}}]}}",
            "loadBalancer: {localityLbSetting: {distribute: [{from: elsewhere, to: {r: 100}}]}}",
            "Distribute(",
        ),
    ),
    (
        "loadBalancer.localityLbSetting.distribute[].to.*",
        Settings(
            "loadBalancer: {localityLbSetting: {distribute: [{from: '*', to: {r/z: 93, q: 7}}]}}",
            "",
            "Distribute([(Pattern([\"q\"]), 7), (Pattern([\"r\", \"z\"]), 93)])",
        ),
    ),
    (
        "loadBalancer.localityLbSetting.failover[].from",
        Settings(
            "loadBalancer: {localityLbSetting: {failover: [{from: r, to: q}]}}",
            "",
            "regions: [(\"r\", ",
        ),
    ),
    (
        "loadBalancer.localityLbSetting.failover[].to",
        Settings(
            "loadBalancer: {localityLbSetting: {failover: [{from: r, to: q}]}}",
            "",
            "regions: [(\"r\", \"q\")]",
        ),
    ),
    (
        "loadBalancer.localityLbSetting.failoverPriority[]",
        Settings(
            "loadBalancer: {localityLbSetting: {failoverPriority: [tier, version=v2]}}",
            "",
            "labels: [Label { key: \"tier\", value: None }, Label { key: \"version\", value: Some(\"v2\") }]",
        ),
    ),
    (
        "loadBalancer.localityLbSetting.enabled",
        Settings(
            "loadBalancer: {localityLbSetting: {enabled: false}}, outlierDetection: {}",
            "outlierDetection: {}",
            "spread: Flat",
        ),
    ),
    (
        "loadBalancer.zoneAwareLbSetting.enabled",
        Settings(
            "loadBalancer: {zoneAwareLbSetting: {enabled: false}}, outlierDetection: {}",
            "outlierDetection: {}",
            "spread: Flat",
        ),
    ),
    (
        "loadBalancer.zoneAwareLbSetting.failover[].from",
        Settings(
            "loadBalancer: {zoneAwareLbSetting: {failover: [{from: r, to: q}]}}",
            "",
            "(\"r\", ",
        ),
    ),
    (
        "loadBalancer.zoneAwareLbSetting.failover[].to",
        Settings(
            "loadBalancer: {zoneAwareLbSetting: {failover: [{from: r, to: q}]}}",
            "",
            "(\"r\", \"q\")",
        ),
    ),
    (
        "loadBalancer.zoneAwareLbSetting.failoverPriority[]",
        Settings(
            "loadBalancer: {zoneAwareLbSetting: {failoverPriority: [tier]}}",
            "",
            "\"tier\"",
        ),
    ),
    (
        "loadBalancer.zoneAwareLbSetting.minClusterSize",
        Settings(
            "loadBalancer: {zoneAwareLbSetting: {minClusterSize: 77}}",
            "",
            "77",
        ),
    ),
    (
        "loadBalancer.warmupDurationSecs",
        Settings(
            "loadBalancer: {warmupDurationSecs: 7s}",
            "",
            "Warmup { duration: 7s, least: 0.1, aggression: 1.0 }",
        ),
    ),
    (
        "loadBalancer.warmup.duration",
        Settings(
            "loadBalancer: {warmup: {duration: 7s}}",
            "",
            "Warmup { duration: 7s, least: 0.1, aggression: 1.0 }",
        ),
    ),
    (
        "loadBalancer.warmup.minimumPercent",
        Settings(
            "loadBalancer: {warmup: {duration: 7s, minimumPercent: 25}}",
            "loadBalancer: {warmup: {duration: 7s}}",
            "least: 0.25",
        ),
    ),
    (
        "loadBalancer.warmup.aggression",
        Settings(
            "loadBalancer: {warmup: {duration: 7s, aggression: 1.5}}",
            "loadBalancer: {warmup: {duration: 7s}}",
            "aggression: 1.5",
        ),
    ),
    (
        "connectionPool.tcp.maxConnections",
        Settings("connectionPool: {tcp: {maxConnections: 77}}", "", "77"),
    ),
    (
        "connectionPool.tcp.connectTimeout",
        Settings(
            "connectionPool: {tcp: {connectTimeout: 7s}}",
            "",
            "connect_timeout: 7s",
        ),
    ),
    (
        "connectionPool.tcp.tcpKeepalive.probes",
        Settings(
            "connectionPool: {tcp: {tcpKeepalive: {probes: 7}}}",
            "connectionPool: {tcp: {tcpKeepalive: {}}}",
            "probes: Some(7)",
        ),
    ),
    (
        "connectionPool.tcp.tcpKeepalive.time",
        Settings(
            "connectionPool: {tcp: {tcpKeepalive: {time: 7s}}}",
            "connectionPool: {tcp: {tcpKeepalive: {}}}",
            "time: Some(7s)",
        ),
    ),
    (
        "connectionPool.tcp.tcpKeepalive.interval",
        Settings(
            "connectionPool: {tcp: {tcpKeepalive: {interval: 7s}}}",
            "connectionPool: {tcp: {tcpKeepalive: {}}}",
            "interval: Some(7s)",
        ),
    ),
    (
        "connectionPool.tcp.maxConnectionDuration",
        Settings(
            "connectionPool: {tcp: {maxConnectionDuration: 7s}}",
            "",
            "7s",
        ),
    ),
    (
        "connectionPool.tcp.idleTimeout",
        Settings(
            "connectionPool: {tcp: {idleTimeout: 7s}}",
            "",
            "tcp_idle_timeout: Some(7s)",
        ),
    ),
    (
        "connectionPool.http.http1MaxPendingRequests",
        Settings(
            "connectionPool: {http: {http1MaxPendingRequests: 77}}",
            "",
            "77",
        ),
    ),
    (
        "connectionPool.http.http2MaxRequests",
        Settings("connectionPool: {http: {http2MaxRequests: 77}}", "", "77"),
    ),
    (
        "connectionPool.http.maxRequestsPerConnection",
        Settings(
            "connectionPool: {http: {maxRequestsPerConnection: 77}}",
            "",
            "77",
        ),
    ),
    (
        "connectionPool.http.maxRetries",
        Settings("connectionPool: {http: {maxRetries: 7}}", "", "Count(7)"),
    ),
    (
        "connectionPool.http.idleTimeout",
        Settings(
            "connectionPool: {http: {idleTimeout: 7s}}",
            "",
            " idle_timeout: 7s",
        ),
    ),
    (
        "connectionPool.http.h2UpgradePolicy",
        Settings("connectionPool: {http: {h2UpgradePolicy: UPGRADE}}", "", ""),
    ),
    (
        "connectionPool.http.useClientProtocol",
        Settings("connectionPool: {http: {useClientProtocol: true}}", "", ""),
    ),
    (
        "connectionPool.http.maxConcurrentStreams",
        Settings(
            "connectionPool: {http: {maxConcurrentStreams: 77}}",
            "",
            "77",
        ),
    ),
    (
        "connectionPool.http.http2KeepAlive.interval",
        Settings(
            "connectionPool: {http: {http2KeepAlive: {interval: 7s, timeout: 5s}}}",
            "",
            "KeepAlive { interval: 7s, ",
        ),
    ),
    (
        "connectionPool.http.http2KeepAlive.timeout",
        Settings(
            "connectionPool: {http: {http2KeepAlive: {interval: 7s, timeout: 5s}}}",
            "",
            "timeout: 5s }",
        ),
    ),
    (
        "outlierDetection.consecutiveErrors",
        Warning("outlierDetection: {consecutiveErrors: 7}", "DR135"),
    ),
    (
        "outlierDetection.splitExternalLocalOriginErrors",
        Settings(
            "outlierDetection: {splitExternalLocalOriginErrors: true}",
            "outlierDetection: {}",
            "split: true",
        ),
    ),
    (
        "outlierDetection.consecutiveLocalOriginFailures",
        Settings(
            "outlierDetection: {splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 7}",
            "outlierDetection: {splitExternalLocalOriginErrors: true}",
            "local_errors: 7",
        ),
    ),
    (
        "outlierDetection.consecutiveGatewayErrors",
        Settings(
            "outlierDetection: {consecutiveGatewayErrors: 7}",
            "outlierDetection: {}",
            "gateway_errors: 7",
        ),
    ),
    (
        "outlierDetection.consecutive5xxErrors",
        Settings(
            "outlierDetection: {consecutive5xxErrors: 7}",
            "outlierDetection: {}",
            "server_errors: 7",
        ),
    ),
    (
        "outlierDetection.interval",
        Settings(
            "outlierDetection: {interval: 7s}",
            "outlierDetection: {}",
            "interval: 7s",
        ),
    ),
    (
        "outlierDetection.baseEjectionTime",
        Settings(
            "outlierDetection: {baseEjectionTime: 7s}",
            "outlierDetection: {}",
            "base_time: 7s",
        ),
    ),
    (
        "outlierDetection.maxEjectionPercent",
        Settings(
            "outlierDetection: {maxEjectionPercent: 70}",
            "outlierDetection: {}",
            "percent_max: 70",
        ),
    ),
    (
        "outlierDetection.minHealthPercent",
        Settings(
            "outlierDetection: {minHealthPercent: 70}",
            "outlierDetection: {}",
            "panic_percent: 70",
        ),
    ),
    (
        "outlierDetection.outlierDetectionHttpErrorCodes[]",
        Settings(
            "outlierDetection: {outlierDetectionHttpErrorCodes: [429, 404]}",
            "outlierDetection: {}",
            "statuses: [404, 429]",
        ),
    ),
];

/// Fields of `loadBalancer.consistentHash`.
pub(in crate::compile) const HASHES: &[(&str, Shows)] = &[
    (
        "httpHeaderName",
        Settings("httpHeaderName: X-User", "", "Header(\"x-user\")"),
    ),
    (
        "httpCookie.name",
        Settings("httpCookie: {name: sid}", "", "name: \"sid\""),
    ),
    (
        "httpCookie.path",
        Settings(
            "httpCookie: {name: sid, path: /a}",
            "httpCookie: {name: sid}",
            "path: Some(\"/a\")",
        ),
    ),
    (
        "httpCookie.ttl",
        Settings(
            "httpCookie: {name: sid, ttl: 7s}",
            "httpCookie: {name: sid}",
            "ttl: Some(7s)",
        ),
    ),
    (
        "httpCookie.attributes[].name",
        Settings(
            "httpCookie: {name: sid, attributes: [{name: SameSite}]}",
            "httpCookie: {name: sid}",
            "attributes: [(\"SameSite\", ",
        ),
    ),
    (
        "httpCookie.attributes[].value",
        Settings(
            "httpCookie: {name: sid, attributes: [{name: SameSite, value: Lax}]}",
            "httpCookie: {name: sid, attributes: [{name: SameSite}]}",
            "attributes: [(\"SameSite\", \"Lax\")]",
        ),
    ),
    (
        "useSourceIp",
        Settings("useSourceIp: true", "", "key: SourceIp"),
    ),
    (
        "httpQueryParameterName",
        Settings("httpQueryParameterName: user", "", "Query(\"user\")"),
    ),
    (
        "ringHash.minimumRingSize",
        Settings(
            "useSourceIp: true, ringHash: {minimumRingSize: 7}",
            "useSourceIp: true",
            "RingHash { size_min: 7 }",
        ),
    ),
    (
        "maglev.tableSize",
        Settings(
            "useSourceIp: true, maglev: {tableSize: 7}",
            "useSourceIp: true, maglev: {}",
            "Maglev { size: 7 }",
        ),
    ),
    (
        "minimumRingSize",
        Settings(
            "useSourceIp: true, minimumRingSize: 7",
            "useSourceIp: true",
            "RingHash { size_min: 7 }",
        ),
    ),
];

/// Fields of policies that a port does not have.
pub(in crate::compile) const WHOLE: &[(&str, Shows)] = &[
    (
        "proxyProtocol.version",
        Settings(
            "proxyProtocol: {version: V2}",
            "proxyProtocol: {}",
            "proxy_protocol: Some(V2)",
        ),
    ),
    (
        "retryBudget.percent",
        Settings(
            "retryBudget: {percent: 7}",
            "retryBudget: {}",
            "Share { basis_points: 700, ",
        ),
    ),
    (
        "retryBudget.minRetryConcurrency",
        Settings(
            "retryBudget: {minRetryConcurrency: 7}",
            "retryBudget: {}",
            "min: 7",
        ),
    ),
    (
        "retryBudget.budgetInterval",
        Settings(
            "retryBudget: {budgetInterval: 7s}",
            "retryBudget: {}",
            "interval: Some(7s)",
        ),
    ),
];

/// Fields that are no part of a policy.
pub(in crate::compile) const HEAD: &[(&str, Shows)] = &[
    (
        "host",
        Test(
            "src/compile/tests/policies.rs",
            "only_the_most_specific_host_of_the_first_namespace_applies",
        ),
    ),
    (
        "subsets[].name",
        Test(
            "src/compile/tests/policies.rs",
            "subset_and_port_blocks_replace_whole_blocks",
        ),
    ),
    (
        "subsets[].labels.*",
        Test(
            "src/compile/tests/policies.rs",
            "subset_has_the_endpoints_with_its_labels",
        ),
    ),
    (
        "exportTo[]",
        Test(
            "tests/it/destination_rules.rs",
            "t92_rule_in_the_client_namespace_replaces_all_others",
        ),
    ),
    (
        "workloadSelector.matchLabels.*",
        Test(
            "tests/it/destination_rules.rs",
            "rule_with_a_workload_selector_applies_to_those_workloads_only",
        ),
    ),
];

/// Blocks whose fields are shown on live sockets by tests of their own.
pub(in crate::compile) const ON_SOCKETS: &[&str] = &["tls.", "tunnel."];
