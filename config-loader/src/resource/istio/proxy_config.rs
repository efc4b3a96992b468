//! ProxyConfig, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use traffic::trace::Percent;

use super::telemetry::CustomTag;

/// Checked ProxyConfig. Its values are read when a proxy starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Labels of the workloads; empty for all of the namespace, or of the mesh in the root namespace.
    pub selector: BTreeMap<String, String>,
    /// Number of worker threads; 0 for one per core.
    pub concurrency: Option<u16>,
    /// Variables of the proxy's environment.
    pub variables: BTreeMap<String, String>,
}

/// Settings of proxies, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// Values for flags that are not given, by the field that has them.
    pub flags: BTreeMap<&'static str, Vec<FlagValue>>,
    /// Values of a profile for flags of gateways.
    pub profile: Option<Vec<FlagValue>>,
    /// Certificates of authorities that the proxy trusts beside those of the mesh, in PEM.
    pub authorities: Option<Arc<str>>,
    /// Whether connections to gateways begin with a PROXY header, where the Gateway does not say.
    pub has_proxy_header: Option<bool>,
    /// Name of the mesh.
    pub mesh_id: Option<Arc<str>>,
    /// Name of the service in traces.
    pub service_cluster: Option<Arc<str>>,
    /// Form of the name of the service in traces.
    pub service_name: Option<ServiceNameForm>,
    /// Traces.
    pub tracing: Option<ProxyTracing>,
    /// Variables of the proxy's environment, where it has none of the name.
    pub variables: BTreeMap<String, String>,
    /// Receiver of spans as written, `HOST:PORT` with variables.
    pub zipkin_address: Option<Arc<str>>,
}

/// Name of a flag, and a value for it.
pub type FlagValue = (&'static str, String);

impl ProxySettings {
    /// Returns these settings, and those of `wider` in fields that these lack. Variables are merged by name.
    #[must_use]
    pub fn or(&self, wider: &Self) -> Self {
        let mut flags = wider.flags.clone();
        flags.extend(self.flags.clone());
        let mut variables = wider.variables.clone();
        variables.extend(self.variables.clone());
        Self {
            flags,
            profile: self.profile.clone().or_else(|| wider.profile.clone()),
            authorities: self
                .authorities
                .clone()
                .or_else(|| wider.authorities.clone()),
            has_proxy_header: self.has_proxy_header.or(wider.has_proxy_header),
            mesh_id: self.mesh_id.clone().or_else(|| wider.mesh_id.clone()),
            service_cluster: self
                .service_cluster
                .clone()
                .or_else(|| wider.service_cluster.clone()),
            service_name: self.service_name.or(wider.service_name),
            tracing: self.tracing.clone().or_else(|| wider.tracing.clone()),
            variables,
            zipkin_address: self
                .zipkin_address
                .clone()
                .or_else(|| wider.zipkin_address.clone()),
        }
    }

    /// Iterates over the values for flags of a gateway or sidecar. The first value of a flag counts.
    pub fn flag_values(&self, is_gateway: bool) -> impl Iterator<Item = &FlagValue> {
        let profile = self.profile.iter().flatten();
        let profile = profile.filter(move |_| is_gateway);
        self.flags.values().flatten().chain(profile)
    }
}

/// Form of the name of the service in traces (`tracingServiceName`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceNameForm {
    /// The label `app` and the namespace.
    AppAndNamespace,
    /// The canonical name.
    Canonical,
    /// The canonical name and the namespace.
    CanonicalAndNamespace,
}

/// Traces of proxies, where no Telemetry says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyTracing {
    /// Attributes of spans.
    pub custom_tags: Option<Arc<[CustomTag]>>,
    /// Whether spans have the attributes `istio.*`.
    pub has_istio_tags: Option<bool>,
    /// Maximum number of bytes of paths in spans.
    pub path_bytes_max: Option<usize>,
    /// Share of requests without an earlier decision that are sampled.
    pub sampling: Option<Percent>,
}
