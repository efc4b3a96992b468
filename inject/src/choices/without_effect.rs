//! Annotations of other injectors that have no effect here, and misspelt ones.

use config_loader::diagnostic::suggest::nearest;
use serde_json::Value;

use crate::json::at;
use crate::report::Finding;

/// Annotations of Istio that are read.
const KNOWN: [&str; 27] = [
    "sidecar.istio.io/capNetBindService",
    "sidecar.istio.io/inject",
    "sidecar.istio.io/interceptionMode",
    "sidecar.istio.io/logLevel",
    "sidecar.istio.io/nativeSidecar",
    "sidecar.istio.io/proxyCPU",
    "sidecar.istio.io/proxyCPULimit",
    "sidecar.istio.io/proxyImage",
    "sidecar.istio.io/proxyMemory",
    "sidecar.istio.io/proxyMemoryLimit",
    "sidecar.istio.io/rewriteAppHTTPProbers",
    "sidecar.istio.io/userVolume",
    "sidecar.istio.io/userVolumeMount",
    "traffic.sidecar.istio.io/excludeInboundPorts",
    "traffic.sidecar.istio.io/excludeInterfaces",
    "traffic.sidecar.istio.io/excludeOutboundIPRanges",
    "traffic.sidecar.istio.io/excludeOutboundPorts",
    "traffic.sidecar.istio.io/includeInboundPorts",
    "traffic.sidecar.istio.io/includeOutboundIPRanges",
    "traffic.sidecar.istio.io/includeOutboundPorts",
    "config.linkerd.io/skip-inbound-ports",
    "config.linkerd.io/skip-outbound-ports",
    "config.linkerd.io/skip-subnets",
    "strait.io/access-log",
    "strait.io/capture",
    "strait.io/exit-with-pid",
    "strait.io/identity",
];

/// Further annotations that are read, of groups that have others as well.
const OWN: [&str; 4] = [
    "strait.io/image",
    "strait.io/inject",
    "strait.io/injected",
    "strait.io/log-level",
];

/// Annotations without effect, with the reason or what to use instead.
const WITHOUT_EFFECT: [(&str, &str); 14] = [
    (
        "istio.io/reroute-virtual-interfaces",
        "connections of virtual machines are not captured",
    ),
    (
        "prometheus.istio.io/merge-metrics",
        "metrics of the workload are scraped from the workload",
    ),
    (
        "prometheus.istio.io/scrape-targets",
        "metrics of the workload are scraped from the workload",
    ),
    (
        "sidecar.istio.io/agentLogLevel",
        "there is no agent beside the proxy; use sidecar.istio.io/logLevel",
    ),
    (
        "sidecar.istio.io/bootstrapOverride",
        "the proxy has no bootstrap of Envoy",
    ),
    (
        "sidecar.istio.io/componentLogLevel",
        "use sidecar.istio.io/logLevel",
    ),
    (
        "sidecar.istio.io/controlPlaneAuthPolicy",
        "the setting `control` counts",
    ),
    (
        "sidecar.istio.io/discoveryAddress",
        "the setting `control` counts",
    ),
    ("sidecar.istio.io/extraStatTags", "use a Telemetry"),
    (
        "sidecar.istio.io/proxyImageType",
        "there is one type of image",
    ),
    ("sidecar.istio.io/statsInclusionPrefixes", "use a Telemetry"),
    ("sidecar.istio.io/statsInclusionRegexps", "use a Telemetry"),
    ("sidecar.istio.io/statsInclusionSuffixes", "use a Telemetry"),
    (
        "traffic.sidecar.istio.io/kubevirtInterfaces",
        "connections of virtual machines are not captured",
    ),
];

/// Groups whose unknown names are likely misspelt.
const GROUPS: [&str; 3] = [
    "sidecar.istio.io/",
    "traffic.sidecar.istio.io/",
    "strait.io/",
];

/// Adds a finding for each annotation that has no effect.
pub(super) fn find(pod: &Value, findings: &mut Vec<Finding>) {
    let annotations = at(pod, &["metadata", "annotations"]).and_then(Value::as_object);
    for name in annotations.into_iter().flat_map(|map| map.keys()) {
        let effect = WITHOUT_EFFECT.iter().find(|(known, _)| known == name);
        let message = || format!("annotation `{name}` has no effect");
        if let Some((_, help)) = effect {
            findings.push(Finding::new("IN007", message(), *help));
        } else if KNOWN.contains(&&**name) || OWN.contains(&&**name) {
        } else if name.starts_with("config.linkerd.io/") || name == "linkerd.io/inject" {
            findings.push(Finding::new(
                "IN007",
                message(),
                "it is read by Linkerd only",
            ));
        } else if GROUPS.iter().any(|group| name.starts_with(group)) {
            let known = KNOWN.into_iter().chain(OWN);
            let near = nearest(
                name,
                known.chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name)),
            );
            let help = near.map_or_else(
                || "remove it".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            findings.push(Finding::new(
                "IN005",
                format!("annotation `{name}` is unknown"),
                help,
            ));
        }
    }
}
