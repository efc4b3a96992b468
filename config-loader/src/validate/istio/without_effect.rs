//! Fields of the mesh configuration and of the settings of proxies that have no effect: findings with the reason.

use super::Check;
use crate::diagnostic::codes::istio::{MC101, MC106};
use crate::parse::{Node, Value};

/// Fields without an effect.
pub(super) struct WithoutEffect {
    /// Paths of fields whose effect is missing, each with advice.
    missing: &'static [(&'static str, &'static str)],
    /// Paths of fields that are about other programs.
    of_others: &'static [&'static str],
    /// Missing ones with the value that the proxy follows anyway.
    followed: &'static [(&'static str, &'static str)],
}

/// Fields of the mesh configuration.
pub(super) const OF_MESH: WithoutEffect = WithoutEffect {
    missing: &[
        (
            "enableEnvoyAccessLogService",
            "log by a provider `envoyFileAccessLog`",
        ),
        (
            "enablePrometheusMerge",
            "scrape the application and the proxy: metrics of the application are on its own port only",
        ),
        (
            "inboundClusterStatName",
            "remove it: there are no statistics of Envoy; see docs/metrics.md",
        ),
        (
            "outboundClusterStatName",
            "remove it: there are no statistics of Envoy; see docs/metrics.md",
        ),
        (
            "serviceEntryVisibility",
            "write `exportTo` of the ServiceEntries",
        ),
        (
            "serviceScopeConfigs",
            "write `serviceSettings`, or a MultiClusterService",
        ),
        ("zoneAwareLbSetting", "write `localityLbSetting`"),
    ],
    of_others: &[
        "ca",
        "certificates",
        "configSources",
        "hboneIdleTimeout",
        "ingressClass",
        "ingressControllerMode",
        "ingressSelector",
        "ingressService",
        "verifyCertificateAtClient",
    ],
    followed: &[("enablePrometheusMerge", "true")],
};

/// Fields of the settings of proxies.
pub(super) const OF_PROXIES: WithoutEffect = WithoutEffect {
    missing: &[
        (
            "customConfigFile",
            "remove it: there is no bootstrap of Envoy",
        ),
        (
            "envoyAccessLogService",
            "log by a provider `envoyFileAccessLog`",
        ),
        ("envoyMetricsService", SCRAPE),
        ("privateKeyProvider", "mount the key as a file"),
        ("proxyHeaders.metadataExchangeHeaders", HEADERS),
        ("proxyHeaders.preserveHttp1HeaderCase", HEADERS),
        ("proxyHeaders.setCurrentClientCertDetails", HEADERS),
        (
            "proxyBootstrapTemplatePath",
            "remove it: there is no bootstrap of Envoy",
        ),
        (
            "proxyStatsMatcher",
            "remove it: there are no statistics of Envoy; docs/metrics.md has ours",
        ),
        (
            "readinessProbe",
            "probe the application by its own health checks",
        ),
        ("statsdUdpAddress", SCRAPE),
        ("tracing.datadog", TRACES),
        ("tracing.lightstep", TRACES),
        ("tracing.openCensusAgent", TRACES),
        ("tracing.stackdriver", TRACES),
    ],
    of_others: &[
        "availabilityZone",
        "binaryPath",
        "configPath",
        "controlPlaneAuthPolicy",
        "discoveryAddress",
        "discoveryRefreshDelay",
        "envoyMetricsServiceAddress",
        "extraStatTags",
        "fileFlushInterval",
        "fileFlushMinSizeKb",
        "holdApplicationUntilProxyStarts",
        "image",
        "parentShutdownDuration",
        "sds",
        "statNameLength",
    ],
    followed: &[],
};

const HEADERS: &str = "see docs/configuration.md for the headers of requests and responses";
const SCRAPE: &str = "scrape the metrics of the proxy; see docs/metrics.md";
const TRACES: &str = "send spans by OpenTelemetry: its collector passes them on";

impl WithoutEffect {
    /// Fields of the root.
    pub(super) fn roots(&self) -> impl Iterator<Item = &'static str> {
        let missing = self.missing.iter().map(|(path, _)| *path);
        missing.chain(self.of_others.iter().copied())
    }

    /// Reports the fields without an effect of the mapping `root`, which is at `prefix`.
    pub(super) fn report(&self, root: &Node, prefix: &str, check: &mut Check<'_>) {
        for (path, help) in self.missing {
            let Some((parent, name)) = find(root, path) else {
                continue;
            };
            let is_followed = |(field, wanted): &(&str, &str)| {
                field == path && parent.get(name).and_then(setting).as_deref() == Some(*wanted)
            };
            if !self.followed.iter().any(is_followed) {
                let message = format!("`{prefix}{path}` has no effect");
                let found = check.warning(MC101, parent.key_span(name), message);
                found.help(*help);
            }
        }
        for path in self
            .of_others
            .iter()
            .filter(|path| root.get(path).is_some())
        {
            let message = format!("`{prefix}{path}` is not about this proxy, and has no effect");
            let found = check.note(MC106, root.key_span(path), message);
            found.help("keep it for istiod, its injector or Envoy, or remove it");
        }
    }
}

/// Returns the mapping with the last field of a path, and the name of the field, if it is there.
fn find<'n, 'p>(root: &'n Node, path: &'p str) -> Option<(&'n Node, &'p str)> {
    let (parent, name) = match path.split_once('.') {
        Some((parent, name)) => (root.get(parent)?, name),
        None => (root, path),
    };
    parent.get(name).is_some().then_some((parent, name))
}

/// Returns a scalar as text.
fn setting(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Float(_) | Value::List(_) | Value::Map(_) => None,
    }
}
