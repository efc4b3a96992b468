//! What is read and checked but has no effect in this version. Data only: work that gives a field its meaning deletes
//! its row.

use crate::kind::Kind;

/// One field that has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind that has the field.
    pub kind: Kind,
    /// Its path, such as `spec.http[].retries`; empty for the kind as a whole. `*` stands for any key.
    pub path: &'static str,
    /// Which values have no effect.
    pub when: When,
}

/// Which values of a field have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All.
    Written,
    /// These texts; the empty text stands for the absent field.
    Is(&'static [&'static str]),
    /// All texts but these, whatever their case.
    IsNot(&'static [&'static str]),
    /// Texts that start so.
    StartsWith(&'static str),
}

/// Every field that has no effect.
pub fn rows() -> impl Iterator<Item = Row> {
    let written = WRITTEN.iter().flat_map(|(kind, paths)| {
        paths.iter().map(|path| Row {
            kind: *kind,
            path,
            when: When::Written,
        })
    });
    written.chain(SOME_VALUES.iter().copied())
}

/// Kinds and fields that have no effect at all.
const WRITTEN: &[(Kind, &[&str])] = &[
    (
        Kind::DestinationRule,
        &[
            "spec.trafficPolicy.connectionPool.http.h2UpgradePolicy",
            "spec.trafficPolicy.connectionPool.http.http1MaxPendingRequests",
            "spec.trafficPolicy.connectionPool.http.http2KeepAlive",
            "spec.trafficPolicy.connectionPool.http.http2MaxRequests",
            "spec.trafficPolicy.connectionPool.http.maxConcurrentStreams",
            "spec.trafficPolicy.connectionPool.http.maxRequestsPerConnection",
            "spec.trafficPolicy.connectionPool.http.maxRetries",
            "spec.trafficPolicy.connectionPool.http.useClientProtocol",
            "spec.trafficPolicy.connectionPool.tcp.idleTimeout",
            "spec.trafficPolicy.connectionPool.tcp.maxConnectionDuration",
            "spec.trafficPolicy.connectionPool.tcp.maxConnections",
            "spec.trafficPolicy.connectionPool.tcp.tcpKeepalive",
            "spec.trafficPolicy.loadBalancer.consistentHash",
            "spec.trafficPolicy.loadBalancer.localityLbSetting",
            "spec.trafficPolicy.loadBalancer.warmup",
            "spec.trafficPolicy.loadBalancer.warmupDurationSecs",
            "spec.trafficPolicy.loadBalancer.zoneAwareLbSetting",
            "spec.trafficPolicy.outlierDetection",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.h2UpgradePolicy",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.http1MaxPendingRequests",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.http2KeepAlive",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.http2MaxRequests",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.maxConcurrentStreams",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.maxRequestsPerConnection",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.maxRetries",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.http.useClientProtocol",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.tcp.idleTimeout",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.tcp.maxConnectionDuration",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.tcp.maxConnections",
            "spec.trafficPolicy.portLevelSettings[].connectionPool.tcp.tcpKeepalive",
            "spec.trafficPolicy.portLevelSettings[].loadBalancer.consistentHash",
            "spec.trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting",
            "spec.trafficPolicy.portLevelSettings[].loadBalancer.warmup",
            "spec.trafficPolicy.portLevelSettings[].loadBalancer.warmupDurationSecs",
            "spec.trafficPolicy.portLevelSettings[].loadBalancer.zoneAwareLbSetting",
            "spec.trafficPolicy.portLevelSettings[].outlierDetection",
            "spec.trafficPolicy.portLevelSettings[].tls",
            "spec.trafficPolicy.proxyProtocol",
            "spec.trafficPolicy.retryBudget",
            "spec.trafficPolicy.tls",
            "spec.trafficPolicy.tunnel",
            "spec.subsets[].trafficPolicy.connectionPool.http.h2UpgradePolicy",
            "spec.subsets[].trafficPolicy.connectionPool.http.http1MaxPendingRequests",
            "spec.subsets[].trafficPolicy.connectionPool.http.http2KeepAlive",
            "spec.subsets[].trafficPolicy.connectionPool.http.http2MaxRequests",
            "spec.subsets[].trafficPolicy.connectionPool.http.maxConcurrentStreams",
            "spec.subsets[].trafficPolicy.connectionPool.http.maxRequestsPerConnection",
            "spec.subsets[].trafficPolicy.connectionPool.http.maxRetries",
            "spec.subsets[].trafficPolicy.connectionPool.http.useClientProtocol",
            "spec.subsets[].trafficPolicy.connectionPool.tcp.idleTimeout",
            "spec.subsets[].trafficPolicy.connectionPool.tcp.maxConnectionDuration",
            "spec.subsets[].trafficPolicy.connectionPool.tcp.maxConnections",
            "spec.subsets[].trafficPolicy.connectionPool.tcp.tcpKeepalive",
            "spec.subsets[].trafficPolicy.loadBalancer.consistentHash",
            "spec.subsets[].trafficPolicy.loadBalancer.localityLbSetting",
            "spec.subsets[].trafficPolicy.loadBalancer.warmup",
            "spec.subsets[].trafficPolicy.loadBalancer.warmupDurationSecs",
            "spec.subsets[].trafficPolicy.loadBalancer.zoneAwareLbSetting",
            "spec.subsets[].trafficPolicy.outlierDetection",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.h2UpgradePolicy",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.http1MaxPendingRequests",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.http2KeepAlive",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.http2MaxRequests",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.maxConcurrentStreams",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.maxRequestsPerConnection",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.maxRetries",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.http.useClientProtocol",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.tcp.idleTimeout",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.tcp.maxConnectionDuration",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.tcp.maxConnections",
            "spec.subsets[].trafficPolicy.portLevelSettings[].connectionPool.tcp.tcpKeepalive",
            "spec.subsets[].trafficPolicy.portLevelSettings[].loadBalancer.consistentHash",
            "spec.subsets[].trafficPolicy.portLevelSettings[].loadBalancer.localityLbSetting",
            "spec.subsets[].trafficPolicy.portLevelSettings[].loadBalancer.warmup",
            "spec.subsets[].trafficPolicy.portLevelSettings[].loadBalancer.warmupDurationSecs",
            "spec.subsets[].trafficPolicy.portLevelSettings[].loadBalancer.zoneAwareLbSetting",
            "spec.subsets[].trafficPolicy.portLevelSettings[].outlierDetection",
            "spec.subsets[].trafficPolicy.portLevelSettings[].tls",
            "spec.subsets[].trafficPolicy.proxyProtocol",
            "spec.subsets[].trafficPolicy.retryBudget",
            "spec.subsets[].trafficPolicy.tls",
            "spec.subsets[].trafficPolicy.tunnel",
        ],
    ),
    (
        Kind::Gateway,
        &[
            "spec.servers[].defaultEndpoint",
            "spec.servers[].tls.caCertCredentialName",
            "spec.servers[].tls.caCertificates",
            "spec.servers[].tls.caCrl",
            "spec.servers[].tls.cipherSuites",
            "spec.servers[].tls.credentialName",
            "spec.servers[].tls.credentialNames",
            "spec.servers[].tls.maxProtocolVersion",
            "spec.servers[].tls.minProtocolVersion",
            "spec.servers[].tls.mode",
            "spec.servers[].tls.privateKey",
            "spec.servers[].tls.serverCertificate",
            "spec.servers[].tls.subjectAltNames",
            "spec.servers[].tls.tlsCertificates",
            "spec.servers[].tls.verifyCertificateHash",
            "spec.servers[].tls.verifyCertificateSpki",
        ],
    ),
    (
        Kind::Destination,
        &[
            "spec.externalService.addresses",
            "status.appliedAccessPolicies",
            "status.appliedFederation.tcpKeepalive",
            "status.appliedTrafficPolicies",
            "status.requiredSubsets",
        ],
    ),
    (Kind::GlobalTrafficPolicy, &[""]),
    (Kind::MultiClusterService, &[""]),
    (
        Kind::Service,
        &["spec.externalIPs", "spec.trafficDistribution"],
    ),
    (
        Kind::ServiceEntry,
        &[
            "spec.addresses",
            "spec.endpoints[].locality",
            "spec.endpoints[].network",
            "spec.endpoints[].serviceAccount",
            "spec.subjectAltNames",
        ],
    ),
    (Kind::ServiceExport, &[""]),
    (
        Kind::ServiceImport,
        &["spec.ips", "spec.serviceAccountName"],
    ),
    (Kind::Sidecar, &[""]),
    (
        Kind::VirtualService,
        &[
            "spec.http[].corsPolicy",
            "spec.http[].fault",
            "spec.http[].mirror",
            "spec.http[].mirrorPercent",
            "spec.http[].mirrorPercentage",
            "spec.http[].mirrors",
            "spec.http[].retries",
            "spec.tcp",
            "spec.tls",
        ],
    ),
    (
        Kind::WorkloadEntry,
        &["spec.locality", "spec.network", "spec.serviceAccount"],
    ),
];

/// Fields of which some values have no effect.
const SOME_VALUES: &[Row] = &[
    Row {
        kind: Kind::DestinationRule,
        path: "spec.trafficPolicy.loadBalancer.simple",
        when: When::Is(&["PASSTHROUGH"]),
    },
    Row {
        kind: Kind::DestinationRule,
        path: "spec.trafficPolicy.portLevelSettings[].loadBalancer.simple",
        when: When::Is(&["PASSTHROUGH"]),
    },
    Row {
        kind: Kind::DestinationRule,
        path: "spec.subsets[].trafficPolicy.loadBalancer.simple",
        when: When::Is(&["PASSTHROUGH"]),
    },
    Row {
        kind: Kind::DestinationRule,
        path: "spec.subsets[].trafficPolicy.portLevelSettings[].loadBalancer.simple",
        when: When::Is(&["PASSTHROUGH"]),
    },
    Row {
        kind: Kind::Gateway,
        path: "spec.servers[].port.protocol",
        when: When::IsNot(&["HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY"]),
    },
    Row {
        kind: Kind::Gateway,
        path: "spec.servers[].bind",
        when: When::StartsWith("unix:"),
    },
    Row {
        kind: Kind::Gateway,
        path: "spec.servers[].bind",
        when: When::StartsWith("@"),
    },
    Row {
        kind: Kind::Service,
        path: "spec.externalTrafficPolicy",
        when: When::Is(&["Local"]),
    },
    Row {
        kind: Kind::Service,
        path: "spec.internalTrafficPolicy",
        when: When::Is(&["Local"]),
    },
    Row {
        kind: Kind::Service,
        path: "spec.sessionAffinity",
        when: When::Is(&["ClientIP"]),
    },
    Row {
        kind: Kind::ServiceImport,
        path: "spec.sessionAffinity",
        when: When::Is(&["ClientIP"]),
    },
    Row {
        kind: Kind::ServiceImport,
        path: "spec.type",
        when: When::Is(&["Headless"]),
    },
    Row {
        kind: Kind::ServiceEntry,
        path: "spec.resolution",
        when: When::Is(&["", "NONE", "DYNAMIC_DNS"]),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{self, Body};

    #[test]
    fn every_row_names_a_field_that_its_kind_has() {
        for row in rows().filter(|row| !row.path.is_empty()) {
            let known = kinds::rows()
                .find(|known| known.kind == row.kind)
                .expect("every kind has a row");
            let prefix = if known.body == Body::Spec {
                "spec."
            } else {
                ""
            };
            let fields = (known.fields)();
            if fields.is_empty() {
                continue;
            }
            let has = fields
                .iter()
                .any(|field| format!("{prefix}{}", field.path) == row.path);
            assert!(has, "{} has no field {}", row.kind, row.path);
        }
    }
}
