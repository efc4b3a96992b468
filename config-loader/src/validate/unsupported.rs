//! Fields that are validated but have no effect in this version. Data only: a change that implements a field deletes
//! its row.

use std::sync::LazyLock;

use crate::kind::Kind;

/// Field that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Kind that has the field.
    pub kind: Kind,
    /// Path of the field, such as `spec.http[].retries`; empty for the kind as a whole. `*` matches any key.
    pub path: String,
    /// Values that have no effect.
    pub when: When,
}

/// Values of a field that have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All values.
    Written,
    /// These texts, ignoring case. The empty text means the absent field.
    Is(&'static [&'static str]),
    /// All texts except these, ignoring case.
    IsNot(&'static [&'static str]),
    /// Texts with this prefix.
    StartsWith(&'static str),
}

/// Returns every field that has no effect.
pub fn rows() -> &'static [Row] {
    static ALL: LazyLock<Vec<Row>> = LazyLock::new(|| {
        let written = WRITTEN.iter().flat_map(|(kind, paths)| {
            paths
                .iter()
                .map(|path| (*kind, String::from(*path), When::Written))
        });
        let values = SOME_VALUES
            .iter()
            .map(|(kind, path, when)| (*kind, String::from(*path), *when));
        let policies = TRAFFIC_POLICIES.iter().flat_map(|(prefix, has_whole)| {
            let paths =
                IN_TRAFFIC_POLICIES
                    .iter()
                    .chain(if *has_whole { IN_WHOLE_POLICIES } else { &[] });
            paths
                .map(move |(path, when)| (Kind::DestinationRule, format!("{prefix}.{path}"), *when))
        });
        let rows = written.chain(values).chain(policies);
        rows.map(|(kind, path, when)| Row { kind, path, when })
            .collect()
    });
    &ALL
}

/// Kinds and fields without any effect.
const WRITTEN: &[(Kind, &[&str])] = &[
    (
        Kind::BackendTrafficPolicy,
        &[
            "spec.targetSelectors",
            "spec.mergeType",
            "spec.admissionControl",
            "spec.bandwidthLimit",
            "spec.circuitBreaker",
            "spec.compression",
            "spec.compressor",
            "spec.connection",
            "spec.dns",
            "spec.faultInjection",
            "spec.healthCheck",
            "spec.http2",
            "spec.httpUpgrade",
            "spec.loadBalancer",
            "spec.proxyProtocol",
            "spec.responseOverride",
            "spec.retry",
            "spec.routeStatName",
            "spec.routingType",
            "spec.tcpKeepalive",
            "spec.telemetry",
            "spec.timeout",
            "spec.useClientProtocol",
            "spec.rateLimit.global.rules[].cost.request.metadata",
            "spec.rateLimit.global.rules[].cost.response",
            "spec.rateLimit.local.rules[].cost.request.metadata",
            "spec.rateLimit.local.rules[].cost.response",
        ],
    ),
    (
        Kind::Destination,
        &["status.requiredSubsets[].trafficShift.destinations[].options"],
    ),
    (Kind::EndpointSlice, &["endpoints[].hints"]),
    (Kind::GRPCRoute, &["spec.useDefaultGateways"]),
    (Kind::HTTPRoute, &["spec.useDefaultGateways"]),
    (Kind::KubernetesGateway, &["spec.defaultScope"]),
    (Kind::ProxyConfig, &["spec.image"]),
    (Kind::Service, &["spec.externalIPs"]),
    (Kind::TCPRoute, &["spec.useDefaultGateways"]),
    (Kind::TLSRoute, &["spec.useDefaultGateways"]),
];

/// Fields without a meaning for a data plane: they are for people, for controllers of a cluster, or for the tool that
/// made the object. They are validated, and their lack of an effect is intended.
pub const FOR_OTHERS: &[(Kind, &[&str])] = &[
    (Kind::BackendTrafficPolicy, &["spec.rateLimit.type"]),
    (
        Kind::Cluster,
        &[
            "spec.fsmMeshConfigName",
            "spec.fsmNamespace",
            "spec.kubeconfig",
            "status",
        ],
    ),
    (Kind::ConfigMap, &["binaryData", "immutable"]),
    (
        Kind::Destination,
        &[
            "spec.kubeService.subsets",
            "spec.externalService.name",
            "status.appliedAccessPolicies[].observedGeneration",
            "status.appliedAccessPolicies[].spec.destinationSelector",
            "status.requiredSubsets[].observedGeneration",
            "status.appliedTrafficPolicies[].observedGeneration",
            "status.appliedFederation.virtualMeshRef",
            "status.observedGeneration",
        ],
    ),
    (
        Kind::EndpointSlice,
        &[
            "endpoints[].conditions.serving",
            "endpoints[].conditions.terminating",
            "endpoints[].deprecatedTopology",
            "endpoints[].targetRef.apiVersion",
            "endpoints[].targetRef.fieldPath",
            "endpoints[].targetRef.resourceVersion",
            "endpoints[].targetRef.uid",
            "ports[].appProtocol",
        ],
    ),
    (
        Kind::Gateway,
        &[
            "spec.servers[].defaultEndpoint",
            "spec.servers[].name",
            "spec.servers[].port.name",
            "spec.servers[].port.targetPort",
        ],
    ),
    (Kind::GatewayClass, &["spec.description"]),
    (
        Kind::Service,
        &[
            "spec.allocateLoadBalancerNodePorts",
            "spec.clusterIP",
            "spec.clusterIPs",
            "spec.externalTrafficPolicy",
            "spec.healthCheckNodePort",
            "spec.ipFamilies",
            "spec.ipFamily",
            "spec.ipFamilyPolicy",
            "spec.loadBalancerClass",
            "spec.loadBalancerIP",
            "spec.loadBalancerSourceRanges",
            "spec.ports[].nodePort",
            "spec.publishNotReadyAddresses",
            "spec.topologyKeys",
            "status",
        ],
    ),
    (Kind::Secret, &["immutable"]),
    (Kind::ServiceEntry, &["spec.location"]),
    (Kind::ServiceImport, &["spec.ipFamilies", "status"]),
];

/// Fields of which some values have no effect.
const SOME_VALUES: &[(Kind, &str, When)] = &[
    (
        Kind::BackendTrafficPolicy,
        "spec.rateLimit.global.rules[].cost.request.from",
        When::Is(&["Metadata"]),
    ),
    (
        Kind::BackendTrafficPolicy,
        "spec.rateLimit.local.rules[].cost.request.from",
        When::Is(&["Metadata"]),
    ),
    (
        Kind::Gateway,
        "spec.servers[].port.protocol",
        When::Is(&["UDP"]),
    ),
    (
        Kind::ServiceEntry,
        "spec.ports[].protocol",
        When::Is(&["UDP"]),
    ),
    (
        Kind::ServiceEntry,
        "spec.resolution",
        When::Is(&["DYNAMIC_DNS"]),
    ),
    (
        Kind::Service,
        "spec.internalTrafficPolicy",
        When::Is(&["Local"]),
    ),
    (
        Kind::ServiceImport,
        "spec.internalTrafficPolicy",
        When::Is(&["Local"]),
    ),
    (
        Kind::ServiceImport,
        "spec.ports[].protocol",
        When::Is(&["SCTP", "UDP"]),
    ),
];

/// Paths of traffic policies in a DestinationRule, and whether each is a full policy.
const TRAFFIC_POLICIES: &[(&str, bool)] = &[
    ("spec.trafficPolicy", true),
    ("spec.trafficPolicy.portLevelSettings[]", false),
    ("spec.subsets[].trafficPolicy", true),
    ("spec.subsets[].trafficPolicy.portLevelSettings[]", false),
];

/// Fields of every traffic policy.
const IN_TRAFFIC_POLICIES: &[(&str, When)] = &[];

/// Fields of full traffic policies, which port policies do not have.
const IN_WHOLE_POLICIES: &[(&str, When)] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{self, Body};

    #[test]
    fn every_row_names_an_existing_field() {
        let for_others = FOR_OTHERS
            .iter()
            .flat_map(|(kind, paths)| paths.iter().map(|path| (*kind, String::from(*path))));
        let without_effect = rows().iter().map(|row| (row.kind, row.path.clone()));
        let named = without_effect.chain(for_others);
        for (kind, path) in named.filter(|(_, path)| !path.is_empty()) {
            let mut of_kind = kinds::rows().filter(|known| known.kind == kind);
            let has = of_kind.any(|known| {
                let prefix = if known.body == Body::Spec {
                    "spec."
                } else {
                    ""
                };
                let fields = (known.fields)();
                fields
                    .iter()
                    .any(|field| format!("{prefix}{}", field.path) == path)
            });
            assert!(has, "{kind} has no field {path}");
        }
    }
}
