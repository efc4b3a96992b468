//! Who this proxy is: mode, cluster, namespace, labels, network.

use config_loader::catalog::{DefaultDomain, Naming};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Which side of the traffic this proxy stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// An edge or east-west gateway: serves what Gateways with a matching selector describe.
    #[default]
    Gateway,
    /// A sidecar next to a workload.
    Sidecar,
}

/// The proxy's identity, from flags, environment and its own pod. What the pod says and the remote clusters change while it runs.
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
    /// The proxy's own pod, which says what no flag says; none if pods are not read. Flag `--pod`.
    pub pod: Option<OwnPod>,
    /// Domain that short host names are completed with. Flag `--domain`, default `cluster.local`.
    pub domain: String,
    /// Namespace that holds mesh-wide defaults. Flag `--root-namespace`, default `istio-system`.
    pub root_namespace: String,
    /// Directory of the mesh identity: `cert-chain.pem`, `key.pem`, `root-cert.pem`. Flag `--mesh-certs`, default
    /// `/etc/certs`.
    pub mesh_certs: String,
    /// The identity of the workload within the mesh.
    pub workload: WorkloadIdentity,
    /// The mesh of Gloo that the proxy is in; none for that of the Destinations of its cluster. Flag `--gloo-mesh`.
    pub gloo_mesh: Option<MeshName>,
    /// What is known of other clusters. Flag `--clusters`, default nothing; its file is followed.
    pub members: Vec<MemberSettings>,
    /// Where other clusters are served what is exported; empty for every server that speaks HTTP. Flag
    /// `--export-listener`.
    pub export_listeners: Vec<ExportListener>,
    /// Where a sidecar takes connections.
    pub sockets: SidecarSockets,
    /// What the mesh does where a rule says nothing.
    pub mesh: MeshDefaults,
}

/// The pod that the proxy runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPod {
    /// Its namespace. Environment `POD_NAMESPACE`, default `--namespace`.
    pub namespace: String,
    /// Its name. Environment `POD_NAME`.
    pub name: String,
}

/// The identity of the workload within the mesh. A file that is not named is that of `mesh_certs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadIdentity {
    /// File of its certificate. Flag `--workload-cert`.
    pub certificate: Option<String>,
    /// File of its key. Flag `--workload-key`.
    pub key: Option<String>,
    /// File of the authorities that other workloads are verified by. Flag `--mesh-ca`.
    pub authorities: Option<String>,
    /// Trust domain of SPIFFE ids. Flag `--trust-domain`, default `cluster.local`.
    pub trust_domain: String,
    /// Other names of the trust domain. Flag `--trust-domain-aliases`.
    pub trust_domain_aliases: Vec<String>,
    /// The service account that it runs as; none for any. Flag `--service-account`.
    pub service_account: Option<String>,
}

impl WorkloadIdentity {
    /// The trust domain, and its other names.
    pub fn trust_domains(&self) -> impl Iterator<Item = &str> {
        let aliases = self.trust_domain_aliases.iter();
        std::iter::once(&self.trust_domain)
            .chain(aliases)
            .map(String::as_str)
    }

    fn names_files(&self) -> bool {
        [&self.certificate, &self.key, &self.authorities]
            .into_iter()
            .any(Option::is_some)
    }
}

impl Default for WorkloadIdentity {
    fn default() -> Self {
        Self {
            certificate: None,
            key: None,
            authorities: None,
            trust_domain: "cluster.local".to_owned(),
            trust_domain_aliases: Vec::new(),
            service_account: None,
        }
    }
}

/// Where a sidecar takes connections, apart from listeners that a Sidecar resource names. A gateway has none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SidecarSockets {
    /// Connections of the workload that were redirected. Flag `--outbound-listener`, default `[::]:15001`.
    pub outbound: Option<SocketAddr>,
    /// Connections to the workload that were redirected. Flag `--inbound-listener`, default `[::]:15006`.
    pub inbound: Option<SocketAddr>,
    /// Whether redirected connections begin with a PROXY header, which says where the client wanted to go. Flag
    /// `--original-destination`, default `socket`.
    pub proxy_header: bool,
    /// Whether connections to the workload are intercepted in its place and keep the client's address. Flag
    /// `--interception-mode`, default `REDIRECT`, which does not.
    pub is_transparent: bool,
    /// Requests of clients that use the sidecar as their HTTP proxy. Flag `--http-proxy-listener`, default none.
    pub http_proxy: Option<SocketAddr>,
}

impl SidecarSockets {
    /// Whether a connection to this address surely comes back to the HTTP proxy of this machine. Other addresses of the machine
    /// are not known here.
    pub fn is_http_proxy(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let is_local = ip.is_loopback() || ip.is_unspecified();
        let of_proxy =
            |own: SocketAddr| overlap(own, address) && (is_local || own.ip().to_canonical() == ip);
        self.http_proxy.is_some_and(of_proxy)
    }

    /// Two flags whose listeners have one address, if there are such.
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

/// Whether a connection to one of two addresses may arrive at a socket that listens at the other one: they have one port,
/// and one IP address, or all of a machine. The machine must have the address, too, which is not known here.
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

/// A mesh of Gloo.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeshName {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// Servers of Gateways that serve other clusters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExportListener {
    /// Those whose port has this name.
    Name(String),
    /// Those on this port.
    Port(u16),
}

/// What is known of a Kubernetes cluster of the fleet that no resource says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberSettings {
    /// `region/zone/group/cluster`.
    pub key: String,
    /// Network of its endpoints that say none; empty for the default one.
    pub network: String,
    /// `region/zone/subzone` of its endpoints that say none; empty for region and zone of `key`.
    pub locality: String,
    /// Its gateway, if that is said.
    pub gateway: Option<MemberGateway>,
}

/// The gateway by which a cluster takes what others send it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberGateway {
    /// IP address or DNS name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How connections of imports to it are encrypted; in plain text if that is not said.
    pub tls: Option<GatewayTls>,
}

/// TLS towards the gateway of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayTls {
    /// The name that it is asked for and that its certificate must be for; none for the host of the import's target.
    pub server_name: Option<Arc<str>>,
    /// File of the authorities that its certificate must be signed by; none for those of the operating system.
    pub authorities: Option<Arc<str>>,
    /// Files of the proxy's own certificate and its key, where it wants to see one.
    pub shows: Option<(Arc<str>, Arc<str>)>,
    /// Where it was written; nothing follows from that.
    pub place: GatewayTlsLocation,
}

/// Where the TLS of a gateway was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayTlsLocation {
    /// The file.
    pub file: Arc<str>,
    /// The path within it, such as `clusters[0].gateway.tls`.
    pub path: Arc<str>,
    /// Its line.
    pub line: u32,
    /// Those of its fields that name files, each with its line.
    pub fields: Vec<(Arc<str>, u32)>,
}

impl Hash for MemberSettings {
    /// Takes in all that something follows from.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self {
            key,
            network,
            locality,
            gateway,
        } = self;
        (key, network, locality).hash(hasher);
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

/// What the mesh does where a rule says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshDefaults {
    /// Whether plain 503 responses are tried again, as in older Istio. Flag `--compat-retry-503`, default no.
    pub compat_retry_503: bool,
    /// Whether failover that is asked for waits for outlier detection, as in Istio. Flag
    /// `--failover-needs-outlier-detection`, default no.
    pub failover_needs_outlier_detection: bool,
    /// Whether `maxEjectionPercent` holds for the first ejection too, as in newer Envoy. Flag
    /// `--outlier-first-ejection=cap`, default no.
    pub first_ejection_is_capped: bool,
    /// Whether weight 0 in a GlobalTrafficPolicy counts as 100, as in FSM. Flag `--zero-weight=fsm`, default no: it
    /// drains the cluster.
    pub zero_weight_is_full_weight: bool,
    /// Whether the proxy's own cluster serves although a MultiClusterService does not name it, as in Karmada. Flag
    /// `--local-when-not-provider`, default no.
    pub local_when_not_provider: bool,
    /// Whether a sidecar lets traffic to unknown destinations pass. Flag `--outbound-traffic-policy`, default
    /// `ALLOW_ANY`.
    pub unknown_destinations: UnknownDestinations,
    /// What of a failed request goes to the next tier of clusters. Flag `--failover-replay`, default `safe`.
    pub failover_replay: Replay,
    /// What short names of services mean. Flag `--default-domain`, default `cluster.local`.
    pub default_domain: DefaultDomain,
}

/// What becomes of a workload's traffic to unknown destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownDestinations {
    /// It goes where the workload sent it. The default.
    #[default]
    AllowAny,
    /// It is refused.
    RegistryOnly,
}

/// What of a failed request goes to the next tier of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Replay {
    /// Nothing.
    Off,
    /// What can do no harm twice. The default.
    #[default]
    Safe,
    /// Whatever got no response, or one above 499, as FSM has it.
    Fsm,
}

impl Identity {
    /// What short names of services mean.
    pub fn naming(&self) -> Naming {
        Naming {
            domain: self.domain.as_str().into(),
            default_domain: self.mesh.default_domain,
        }
    }

    /// Whether it was told where its mesh identity is: files, or another directory than the usual one.
    pub fn is_told_mesh_certificates(&self) -> bool {
        self.workload.names_files() || self.mesh_certs != Self::default().mesh_certs
    }

    /// `region/zone/subzone` of the workload, parts that are not known left out at the end.
    pub fn locality(&self) -> String {
        if !self.locality.is_empty() {
            return self.locality.clone();
        }
        locality_of_key(&self.cluster)
    }

    /// The name of the cluster that the workload is in.
    pub fn member(&self) -> &str {
        self.cluster.rsplit('/').next().unwrap_or_default()
    }
}

/// `region/zone` of a cluster key; empty for one of which nothing but the name was given.
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
