//! MeshConfig, checked.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use kube::core::Selector;
use traffic::authz::ExtAuthz;
use traffic::route::PathNormalization;

use super::{
    CipherSuite, ConnectionPool, DefaultProviders, FileFormat, FileLog, FlagValue, LocalitySetting,
    OutlierDetection, ProviderKind, ProxySettings, RetryPolicy, TcpKeepalive, TelemetryProvider,
    TlsVersion,
};
use crate::resource::DefaultExports;

/// Checked MeshConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshConfig {
    /// Whether there is a mesh configuration, even an empty one.
    pub is_given: bool,
    /// Access log where no Telemetry says otherwise; `None` for none.
    pub access_log: Option<FileLog>,
    /// Format of the access log.
    pub access_log_format: FileFormat,
    /// Providers of external authorization, by name.
    pub authorizers: Vec<Arc<ExtAuthz>>,
    /// Providers of telemetry.
    pub providers: Vec<TelemetryProvider>,
    /// Providers where no Telemetry names others.
    pub default_providers: DefaultProviders,
    /// Values for flags of the proxy that are not given.
    pub flags: Vec<FlagValue>,
    /// Settings of proxies.
    pub proxies: ProxySettings,
    /// Normalization of paths.
    pub path_normalization: Option<PathNormalization>,
    /// Certificates of authorities that the mesh trusts beside its own, in PEM; empty for none.
    pub authorities: Arc<str>,
    /// Whether endpoints of the mesh get mutual TLS only by a rule.
    pub disables_auto_mtls: bool,
    /// Whether `tracing` of the settings of proxies turns no tracing on.
    pub disables_tracing: bool,
    /// Whether raw TCP connections without a route have no line in the access log.
    pub hides_unrouted: bool,
    /// Whether traffic to ports of a workload's services goes to the loopback address.
    pub serves_localhost: bool,
    /// Maximum time between lookups of a name that fail.
    pub dns_retry_max: Option<Duration>,
    /// TLS within the mesh.
    pub mesh_tls: TlsDefaults,
    /// TLS of other servers and endpoints.
    pub tls: TlsDefaults,
    /// Defaults of traffic.
    pub traffic: TrafficDefaults,
    /// Namespaces that may use resources without `exportTo`, as read at the start.
    pub exports: DefaultExports,
    /// Selectors of the namespaces whose objects are in effect, of which one must match; empty for all namespaces.
    pub namespaces: Vec<Selector>,
    /// Networks of clusters and addresses.
    pub networks: Vec<MeshNetwork>,
    /// Hosts or wildcards, and whether they are served by the local cluster alone.
    pub cluster_local: Vec<(Arc<str>, bool)>,
}

impl MeshConfig {
    /// The configuration for a proxy with settings of its own.
    #[must_use]
    pub fn of_proxy(&self, own: &ProxySettings) -> Self {
        Self {
            proxies: own.or(&self.proxies),
            ..self.clone()
        }
    }

    /// Network of an address; empty for the default network.
    pub fn network_of(&self, address: IpAddr) -> &str {
        let contains = |one: &&MeshNetwork| one.addresses.iter().any(|net| net.contains(&address));
        let found = self.networks.iter().find(contains);
        found.map_or("", |network| &network.name)
    }

    /// Iterates over the values for flags of a gateway or sidecar that are not given.
    pub fn flag_values(&self, is_gateway: bool) -> impl Iterator<Item = &FlagValue> {
        self.flags
            .iter()
            .chain(self.proxies.flag_values(is_gateway))
    }

    /// Receiver of spans where no provider is one, of the settings of proxies.
    pub fn zipkin_address(&self) -> Option<&Arc<str>> {
        let address = self.proxies.zipkin_address.as_ref();
        address.filter(|_| !self.disables_tracing)
    }

    /// Whether a receiver of spans names services by the semantic conventions of OpenTelemetry.
    pub fn names_services_by_conventions(&self) -> bool {
        let mut providers = self.providers.iter();
        providers.any(|one| matches!(&one.kind, ProviderKind::Tracer(tracer) if tracer.has_conventional_names))
    }

    /// The provider with this name, in any case. Without one of its own, `envoy` is the log at standard output.
    pub fn provider(&self, name: &str) -> Option<ProviderKind> {
        let mut own = self.providers.iter().rev();
        let own = own.find(|one| one.name.eq_ignore_ascii_case(name));
        if let Some(own) = own {
            return Some(own.kind.clone());
        }
        match &*name.to_ascii_lowercase() {
            "envoy" => Some(ProviderKind::File(FileLog {
                path: "/dev/stdout".into(),
                format: FileFormat::OfMesh,
            })),
            "prometheus" => Some(ProviderKind::Prometheus),
            "stackdriver" => Some(ProviderKind::Unsupported),
            _ => None,
        }
    }

    /// Whether the local cluster alone serves a host; by default, only `kubernetes.default` and services of
    /// `kube-system`. The longest host or wildcard decides.
    pub fn is_cluster_local(&self, host: &str, domain: &str) -> bool {
        let entries = self.cluster_local.iter();
        let matching = entries.filter(|(pattern, _)| match pattern.strip_prefix('*') {
            Some(suffix) => host.ends_with(suffix),
            None => **pattern == *host,
        });
        match matching.max_by_key(|(pattern, _)| (!pattern.starts_with('*'), pattern.len())) {
            Some((_, is_local)) => *is_local,
            None => {
                let service = host.strip_suffix(domain);
                let service = service.and_then(|service| service.strip_suffix(".svc."));
                service.is_some_and(|name| {
                    name == "kubernetes.default" || name.ends_with(".kube-system")
                })
            }
        }
    }
}

/// Network of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshNetwork {
    /// Name.
    pub name: Arc<str>,
    /// Names of the clusters whose endpoints are in the network.
    pub clusters: Vec<Arc<str>>,
    /// Addresses of endpoints in the network that no label, flag or cluster has a network for.
    pub addresses: Vec<IpNet>,
    /// Address and port of its gateway.
    pub gateway: Option<(Arc<str>, u16)>,
}

/// Settings of traffic where no DestinationRule or rule has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficDefaults {
    /// Timeout for connecting.
    pub connect_timeout: Option<Duration>,
    /// TCP keepalive probes; rules replace single fields.
    pub keepalive: Option<TcpKeepalive>,
    /// Locality load balancing settings.
    pub locality: Option<LocalitySetting>,
    /// Connection pool settings.
    pub connection_pool: Option<ConnectionPool>,
    /// Outlier detection settings.
    pub outlier_detection: Option<OutlierDetection>,
    /// Retries of outbound requests.
    pub retries: Option<RetryPolicy>,
    /// Whether HTTP/1.1 requests go upstream as HTTP/2 where no rule says otherwise.
    pub upgrades_http2: bool,
}

/// Settings of TLS where a server has none of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsDefaults {
    /// Minimum TLS version.
    pub version_min: TlsVersion,
    /// Known cipher suites up to TLS 1.2; empty for the TLS library's default.
    pub cipher_suites: Vec<CipherSuite>,
    /// Supported key exchange curves; empty for the TLS library's default.
    pub ecdh_curves: Vec<Arc<str>>,
}
