//! Identity of the proxy: mode, cluster, namespace, labels, network.

mod gateways;
mod workload;

use config_loader::catalog::{DefaultDomain, Naming};
use config_loader::ingress::IngressSettings;
use config_loader::resource::istio::{MeshConfig, ProxySettings};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

pub use gateways::{GatewayPattern, GatewaySettings, ListenPort};
pub use traffic::cluster::Replay;
use traffic::route::PathNormalization;
use traffic::trace::TracingSettings;
pub use workload::{FileSet, IdentityKind, WorkloadIdentity};

/// Role of the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Edge or east-west gateway: serves the Gateways whose selector matches.
    #[default]
    Gateway,
    /// Sidecar next to a workload.
    Sidecar,
}

/// Identity of the proxy, from flags, environment and its own pod. The data of the pod and the remote clusters change
/// while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Gateway or sidecar. Flag `--mode`, default gateway.
    pub mode: Mode,
    /// Cluster key `region/zone/group/cluster`. Flag `--cluster`, default `default/default/default/local`.
    pub cluster: String,
    /// `region/zone/subzone` of the workload; empty for region and zone of `cluster`. Flag `--locality`.
    pub locality: String,
    /// Namespace of the workload. Flag `--namespace`, default `default`.
    pub namespace: String,
    /// Labels of the workload, compared with Gateway selectors and `sourceLabels`. Flag `--labels`.
    pub labels: BTreeMap<String, String>,
    /// Network name, empty by default. Flag `--network`.
    pub network: String,
    /// Pod of the proxy, for settings without a flag; `None` if pods are not read. Flag `--pod`.
    pub pod: Option<OwnPod>,
    /// Domain that short host names are completed with. Flag `--domain`, default `cluster.local`.
    pub domain: String,
    /// Namespace that holds mesh-wide defaults. Flag `--root-namespace`, default `istio-system`.
    pub root_namespace: String,
    /// Directory of the mesh identity, which has one of the sets of files [`FileSet`]. Flag `--mesh-certs`, default
    /// `/etc/certs`.
    pub mesh_certs: String,
    /// Identity of the workload within the mesh.
    pub workload: WorkloadIdentity,
    /// Gloo mesh of the proxy; `None` for that of the Destinations of its cluster. Flag `--gloo-mesh`.
    pub gloo_mesh: Option<MeshName>,
    /// Settings of remote clusters, from the remote clusters file, which is followed. Flag `--clusters`, default none.
    pub members: Vec<MemberSettings>,
    /// Gateway servers that serve exports to other clusters; empty for every server that speaks HTTP. Flag
    /// `--export-listener`.
    pub export_listeners: Vec<ExportListener>,
    /// Mesh configuration, which is followed. Flag `--mesh-config`, default none.
    pub mesh_config: Arc<MeshConfig>,
    /// Settings of this proxy alone, which win over those of the mesh configuration. Flags `--pod-annotations` and
    /// `--proxy-config`.
    pub own: Arc<ProxySettings>,
    /// Whether flags say what is logged, so that the mesh configuration does not. Flags `--access-log` and
    /// `--access-log-path`.
    pub logs_by_flags: bool,
    /// Whether requests are counted by rule. Source: `--rule-metrics`.
    pub counts_rules: bool,
    /// Service that counts rate limits over all proxies. Flag `--rate-limit-service`, default none.
    pub rate_limit_service: Option<NamedService>,
    /// Settings of tracing that flags and variables say; `None` if they turn it off.
    pub tracing: Option<Arc<TracingSettings>>,
    /// Whether flags or variables name the collector, so that the mesh configuration does not.
    pub traces_by_flags: bool,
    /// Whether `tracing.zipkin.address` of the settings of proxies gets the spans that no provider gets.
    pub traces_by_address: bool,
    /// Whether flags or variables say which requests are sampled, so that the mesh configuration does not.
    pub samples_by_flags: bool,
    /// Variables of the proxy.
    pub environment: Environment,
    /// Gateways of the Gateway API that the proxy serves.
    pub gateways: GatewaySettings,
    /// Settings of Ingresses; `None` if the proxy serves none. Flag `--ingress`.
    pub ingress: Option<Arc<IngressSettings>>,
    /// Sockets on which a sidecar accepts connections.
    pub sockets: SidecarSockets,
    /// Defaults of the mesh for settings that no rule has.
    pub mesh: MeshDefaults,
}

/// Variables of the proxy, whose values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(pub Arc<BTreeMap<String, String>>);

impl Environment {
    /// Returns the value of a variable.
    pub fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Settings by flags that the mesh configuration changes while the proxy runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedSettings {
    /// Defaults of the mesh.
    pub mesh: MeshDefaults,
    /// Other names of the trust domain.
    pub trust_domain_aliases: Vec<String>,
    /// Service that counts rate limits.
    pub rate_limit_service: Option<NamedService>,
    /// Whether an address in the settings of proxies gets the spans that no provider gets.
    pub traces_by_address: bool,
}

/// Pod that the proxy runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPod {
    /// Namespace of the pod. Environment `POD_NAMESPACE`, default `--namespace`.
    pub namespace: String,
    /// Name of the pod. Environment `POD_NAME`.
    pub name: String,
}

/// Sockets on which a sidecar accepts connections, apart from listeners that a Sidecar resource names. A gateway has
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SidecarSockets {
    /// Address for redirected connections of the workload. Flag `--outbound-listener`, default `[::]:15001`.
    pub outbound: Option<SocketAddr>,
    /// Address for redirected connections to the workload. Flag `--inbound-listener`, default `[::]:15006`.
    pub inbound: Option<SocketAddr>,
    /// Whether redirected connections begin with a PROXY header that has the address the client dialed. Flag
    /// `--original-destination`, default `socket`.
    pub proxy_header: bool,
    /// Whether connections to the workload are intercepted transparently and keep the client's address. Flag
    /// `--interception-mode`, default `REDIRECT`, which does not.
    pub is_transparent: bool,
    /// Address for clients that use the sidecar as their HTTP proxy. Flag `--http-proxy-listener`, default none.
    pub http_proxy: Option<SocketAddr>,
}

impl SidecarSockets {
    /// Returns whether a connection to this address certainly reaches the HTTP proxy of this machine. Other addresses
    /// of the machine are not known here.
    pub fn is_http_proxy(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let is_local = ip.is_loopback() || ip.is_unspecified();
        let of_proxy =
            |own: SocketAddr| overlap(own, address) && (is_local || own.ip().to_canonical() == ip);
        self.http_proxy.is_some_and(of_proxy)
    }

    /// Returns two flags whose listeners have the same address, if there are any.
    pub fn collision(&self) -> Option<[&'static str; 2]> {
        let named = [
            ("--outbound-listener", self.outbound),
            ("--inbound-listener", self.inbound),
            ("--http-proxy-listener", self.http_proxy),
        ];
        let named = named.map(|(flag, address)| address.map(|address| (flag, address)));
        let mut before: Vec<(&'static str, SocketAddr)> = Vec::new();
        for (flag, address) in named.into_iter().flatten() {
            let mut others = before.iter();
            if let Some((other, _)) = others.find(|(_, other)| overlap(*other, address)) {
                return Some([*other, flag]);
            }
            before.push((flag, address));
        }
        None
    }
}

/// Returns whether a connection to one address may arrive at a socket that listens on the other one: they have the same
/// port, and the same IP address or an unspecified one. Whether the machine has the address is not known here.
pub fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (one_ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    let is_any = one_ip.is_unspecified() || other_ip.is_unspecified();
    one.port() == other.port() && (is_any || one_ip == other_ip)
}

impl Default for SidecarSockets {
    fn default() -> Self {
        let all = |port| Some(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
        Self {
            outbound: all(15001),
            inbound: all(15006),
            proxy_header: false,
            is_transparent: false,
            http_proxy: None,
        }
    }
}

/// Service that the proxy calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedService {
    /// Namespace in which a short host is completed; `None` for that of the proxy.
    pub namespace: Option<String>,
    /// Host of the service.
    pub host: String,
    /// Port of the service.
    pub port: u16,
}

/// Gloo mesh.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeshName {
    /// Name of the mesh.
    pub name: String,
    /// Namespace of the mesh.
    pub namespace: String,
}

/// Gateway servers that serve other clusters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExportListener {
    /// Servers whose port has this name.
    Name(String),
    /// Servers on this port.
    Port(u16),
}

/// Settings of a Kubernetes cluster of the fleet that no resource has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberSettings {
    /// Key `region/zone/group/cluster`.
    pub key: String,
    /// Network of endpoints that name none; empty for the default network.
    pub network: String,
    /// `region/zone/subzone` of endpoints that name none; empty for region and zone of `key`.
    pub locality: String,
    /// Trust domain of the cluster's workloads; `None` for that of the proxy.
    pub trust_domain: Option<String>,
    /// Gateway of the cluster, if it is configured.
    pub gateway: Option<MemberGateway>,
}

/// Gateway through which a cluster accepts traffic of other clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberGateway {
    /// IP address or DNS name.
    pub host: String,
    /// Port of the gateway.
    pub port: u16,
    /// TLS of connections of imports to the gateway; `None` for plain text.
    pub tls: Option<GatewayTls>,
}

/// TLS settings of connections to the gateway of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayTls {
    /// Server name (SNI) that the certificate must match; `None` for the host of the import's target.
    pub server_name: Option<Arc<str>>,
    /// File of the CA certificates that verify the gateway; `None` for those of the operating system.
    pub authorities: Option<Arc<str>>,
    /// Files of the proxy's certificate and key, if the gateway requires a client certificate.
    pub shows: Option<(Arc<str>, Arc<str>)>,
    /// Location of the settings, for diagnostics only.
    pub place: GatewayTlsLocation,
}

/// Location of the TLS settings of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayTlsLocation {
    /// Path of the file.
    pub file: Arc<str>,
    /// Field path, such as `clusters[0].gateway.tls`.
    pub path: Arc<str>,
    /// Line of the field.
    pub line: u32,
    /// Fields that name files, each with its line.
    pub fields: Vec<(Arc<str>, u32)>,
}

impl Hash for MemberSettings {
    /// Hashes everything that affects behavior; locations do not.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self {
            key,
            network,
            locality,
            trust_domain,
            gateway,
        } = self;
        (key, network, locality, trust_domain).hash(hasher);
        let Some(MemberGateway { host, port, tls }) = gateway else {
            return hasher.write_u8(0);
        };
        (host, port).hash(hasher);
        let of_tls = tls.as_ref().map(|tls| {
            let GatewayTls {
                server_name,
                authorities,
                shows,
                place: _,
            } = tls;
            (server_name, authorities, shows)
        });
        of_tls.hash(hasher);
    }
}

/// Defaults of the mesh for settings that no rule has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshDefaults {
    /// Whether plain 503 responses are retried, as in older versions of Istio. Flag `--compat-retry-503`, default no.
    pub compat_retry_503: bool,
    /// Whether locality failover requires outlier detection, as in Istio. Flag `--failover-needs-outlier-detection`,
    /// default no.
    pub failover_needs_outlier_detection: bool,
    /// Whether `maxEjectionPercent` applies to the first ejection as well, as in newer versions of Envoy. Flag
    /// `--outlier-first-ejection=cap`, default no.
    pub first_ejection_is_capped: bool,
    /// Whether weight 0 in a GlobalTrafficPolicy counts as 100, as in FSM. Flag `--zero-weight=fsm`, default no: it
    /// drains the cluster.
    pub zero_weight_is_full_weight: bool,
    /// Whether the local cluster serves although a MultiClusterService does not name it, as in Karmada. Flag
    /// `--local-when-not-provider`, default no.
    pub local_when_not_provider: bool,
    /// Whether hosts of DENY and CUSTOM policies are compared only as the client sent them, as in Istio. Flag
    /// `--authz-hosts=exact`, default no: they also match a host with a port or a final dot.
    pub exact_policy_hosts: bool,
    /// Whether policies of action CUSTOM may name only one provider for a workload, as in Istio; with several, what they
    /// select is denied. Flag `--authz-custom-providers=one`, default no: all are asked.
    pub one_provider: bool,
    /// Policy of a sidecar for traffic to unknown destinations. Flag `--outbound-traffic-policy`, default `ALLOW_ANY`.
    pub unknown_destinations: UnknownDestinations,
    /// Failed requests that are replayed in the next tier of clusters. Flag `--failover-replay`, default `safe`.
    pub failover_replay: Replay,
    /// Meaning of short service names. Flag `--default-domain`, default `cluster.local`.
    pub default_domain: DefaultDomain,
    /// Normalization of paths; `None` for that of the mesh configuration. Flag `--path-normalization`.
    pub path_normalization: Option<PathNormalization>,
}

/// Policy for a workload's traffic to unknown destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownDestinations {
    /// Forward to the address that the workload dialed. The default.
    #[default]
    AllowAny,
    /// Refuse.
    RegistryOnly,
}

impl Identity {
    /// Returns the settings that are followed.
    pub fn followed(&self) -> FollowedSettings {
        FollowedSettings {
            mesh: self.mesh,
            trust_domain_aliases: self.workload.trust_domain_aliases.clone(),
            rate_limit_service: self.rate_limit_service.clone(),
            traces_by_address: self.traces_by_address,
        }
    }

    /// Replaces the settings that are followed.
    pub fn follow(&mut self, settings: &FollowedSettings) {
        let FollowedSettings {
            mesh,
            trust_domain_aliases,
            rate_limit_service,
            traces_by_address,
        } = settings;
        self.mesh = *mesh;
        self.workload
            .trust_domain_aliases
            .clone_from(trust_domain_aliases);
        self.rate_limit_service.clone_from(rate_limit_service);
        self.traces_by_address = *traces_by_address;
    }

    /// Returns the identity without settings of the mesh configuration that no part of a snapshot is made from.
    pub fn of_parts(&self) -> Self {
        let MeshConfig {
            disables_auto_mtls,
            mesh_tls,
            tls,
            traffic,
            cluster_local,
            serves_localhost,
            // read where a snapshot is put together
            is_given: _,
            access_log: _,
            access_log_format: _,
            providers: _,
            default_providers: _,
            authorizers: _,
            proxies: _,
            path_normalization: _,
            hides_unrouted: _,
            // read beside snapshots
            dns_retry_max: _,
            // in effect by the resources and the certificates that they select
            authorities: _,
            namespaces: _,
            networks,
            // in effect by values of flags
            disables_tracing: _,
            flags: _,
            exports: _,
        } = &*self.mesh_config;
        let mesh_config = MeshConfig {
            disables_auto_mtls: *disables_auto_mtls,
            mesh_tls: mesh_tls.clone(),
            tls: tls.clone(),
            traffic: traffic.clone(),
            cluster_local: cluster_local.clone(),
            serves_localhost: *serves_localhost,
            networks: networks.clone(),
            ..MeshConfig::default()
        };
        Self {
            mesh_config: Arc::new(mesh_config),
            ..self.clone()
        }
    }

    /// Normalization of paths.
    pub fn path_normalization(&self) -> PathNormalization {
        let given = self.mesh.path_normalization;
        given
            .or(self.mesh_config.path_normalization)
            .unwrap_or_default()
    }

    /// Whether requests are traced where no provider of the mesh configuration is named.
    pub fn has_collector(&self) -> bool {
        self.traces_by_flags || self.traces_by_address
    }

    /// Returns the trust domains of clients in the mesh: those of the workload, and those of remote clusters.
    pub fn trust_domains(&self) -> impl Iterator<Item = &str> {
        let members = self.members.iter();
        let told = members.filter_map(|member| member.trust_domain.as_deref());
        self.workload.trust_domains().chain(told)
    }

    /// Returns the rules by which short service names are resolved.
    pub fn naming(&self) -> Naming {
        Naming {
            domain: self.domain.as_str().into(),
            default_domain: self.mesh.default_domain,
        }
    }

    /// Returns whether the location of the mesh identity is configured: its files, or a directory other than the
    /// default.
    pub fn is_told_mesh_certificates(&self) -> bool {
        let is_elsewhere = self.mesh_certs != Self::default().mesh_certs;
        self.workload.kind == IdentityKind::Files && (self.workload.names_files() || is_elsewhere)
    }

    /// Returns `region/zone/subzone` of the workload, without unknown parts at the end.
    pub fn locality(&self) -> String {
        if !self.locality.is_empty() {
            return self.locality.clone();
        }
        locality_of_key(&self.cluster)
    }

    /// Name of the cluster that the workload is in.
    pub fn member(&self) -> &str {
        self.cluster.rsplit('/').next().unwrap_or_default()
    }
}

/// Returns `region/zone` of a cluster key; empty for a key of which only the name was given.
pub fn locality_of_key(key: &str) -> String {
    let mut parts = key.split('/');
    match (parts.next(), parts.next()) {
        (Some("default"), Some("default")) => String::new(),
        (Some(region), Some(zone)) => format!("{region}/{zone}"),
        _ => String::new(),
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            mode: Mode::Gateway,
            cluster: "default/default/default/local".to_owned(),
            locality: String::new(),
            namespace: "default".to_owned(),
            labels: BTreeMap::new(),
            network: String::new(),
            pod: None,
            domain: "cluster.local".to_owned(),
            root_namespace: "istio-system".to_owned(),
            mesh_certs: "/etc/certs".to_owned(),
            workload: WorkloadIdentity::default(),
            gloo_mesh: None,
            members: Vec::new(),
            export_listeners: Vec::new(),
            mesh_config: Arc::default(),
            own: Arc::default(),
            samples_by_flags: false,
            logs_by_flags: false,
            counts_rules: true,
            rate_limit_service: None,
            tracing: None,
            traces_by_flags: false,
            traces_by_address: false,
            environment: Environment::default(),
            gateways: GatewaySettings::default(),
            ingress: None,
            sockets: SidecarSockets::default(),
            mesh: MeshDefaults::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Option<SocketAddr> {
        (address != "off").then(|| address.parse().expect("an address"))
    }

    #[test]
    fn flags_with_one_address_are_found() {
        for (outbound, inbound, http_proxy, expected) in [
            ("[::]:15001", "[::]:15006", "off", None),
            ("[::]:15001", "[::]:15006", "127.0.0.1:15007", None),
            ("127.0.0.1:15001", "127.0.0.2:15001", "off", None),
            (
                "[::]:15001",
                "127.0.0.1:15001",
                "off",
                Some(["--outbound-listener", "--inbound-listener"]),
            ),
            (
                "off",
                "127.0.0.1:15006",
                "127.0.0.1:15006",
                Some(["--inbound-listener", "--http-proxy-listener"]),
            ),
        ] {
            let sockets = SidecarSockets {
                outbound: at(outbound),
                inbound: at(inbound),
                http_proxy: at(http_proxy),
                ..SidecarSockets::default()
            };
            assert_eq!(
                sockets.collision(),
                expected,
                "{outbound} {inbound} {http_proxy}"
            );
        }
    }

    #[test]
    fn addresses_of_the_http_proxy_are_known() {
        for (own, address, expected) in [
            ("off", "127.0.0.1:15007", false),
            ("127.0.0.1:15007", "127.0.0.1:15007", true),
            ("127.0.0.1:15007", "[::ffff:127.0.0.1]:15007", true),
            ("127.0.0.1:15007", "0.0.0.0:15007", true),
            ("127.0.0.1:15007", "127.0.0.1:15008", false),
            ("127.0.0.1:15007", "10.0.0.7:15007", false),
            ("[::]:15007", "127.0.0.1:15007", true),
            ("[::]:15007", "[::1]:15007", true),
            ("10.0.0.7:15007", "10.0.0.7:15007", true),
        ] {
            let sockets = SidecarSockets {
                http_proxy: at(own),
                ..SidecarSockets::default()
            };
            let address = at(address).expect("an address");
            assert_eq!(sockets.is_http_proxy(address), expected, "{own} {address}");
        }
    }
}
