//! Arguments about API servers that configuration comes from.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use config_loader::source::content::Reader;
use config_loader::{
    ApiServer, ApiServerTimes, ControlServer, ControlSettings, Kind, KubernetesSettings, XdsNode,
    XdsServer, XdsSettings,
};
use grpc_client::ClientTlsFiles;

use crate::identity::{Identity, Mode};
use crate::runtime::duration::duration;

/// API servers that configuration comes from.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Control")]
pub struct ControlArgs {
    /// Server that resources come from: kubernetes:// for the API server of this cluster (service account of the pod, or current
    /// context), kubernetes://CONTEXT for one of the kubeconfig, kubernetes://CONTEXT=REGION/ZONE/GROUP/NAME for the services
    /// and endpoints of another cluster, xds://HOST:PORT for an xDS server that serves resources, as Istio does for
    /// GENERATOR=api (xds+plaintext://HOST:PORT without TLS). May be repeated
    #[arg(
        long,
        value_name = "URL",
        env = "STRAIT_CONTROL",
        value_delimiter = ','
    )]
    pub control: Vec<ControlServer>,
    /// Kubeconfig for --control; default: KUBECONFIG, else ~/.kube/config, else the service account of the pod. It is read
    /// again when the API server refuses the credentials
    #[arg(
        long,
        value_name = "FILE",
        env = "STRAIT_KUBECONFIG",
        requires = "control"
    )]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace whose resources are read from --control; default: all. May be repeated
    #[arg(
        long = "control-namespace",
        value_name = "NAMESPACE",
        env = "STRAIT_CONTROL_NAMESPACE",
        value_delimiter = ',',
        requires = "control"
    )]
    pub control_namespaces: Vec<String>,
    /// Label selector of the resources that are read from --control, such as `team=web,stage!=test`. It does not hold for
    /// Services, EndpointSlices and Secrets
    #[arg(
        long,
        value_name = "SELECTOR",
        env = "STRAIT_CONTROL_SELECTOR",
        requires = "control"
    )]
    pub control_selector: Option<String>,
    /// Kind that the proxy does without if the API server does not let it be read, such as PeerAuthentication. Any other kind that
    /// may not be read keeps a proxy that starts from being ready; Secrets never do. May be repeated
    #[arg(
        long = "control-optional",
        value_name = "KIND",
        env = "STRAIT_CONTROL_OPTIONAL",
        value_delimiter = ',',
        value_parser = kind,
        requires = "control"
    )]
    pub control_optional: Vec<Option<Kind>>,
    /// Longest time that a proxy without a saved state waits for API servers of other clusters before it is ready
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        env = "STRAIT_CONTROL_WAIT",
        value_parser = duration
    )]
    pub control_wait: Duration,
    /// Maximum time that endpoints of another cluster are used while its API server cannot be reached; default: until
    /// health checks, outlier detection or the API server remove them
    #[arg(
        long,
        value_name = "DURATION",
        env = "STRAIT_ENDPOINT_TTL",
        value_parser = duration,
        requires = "control"
    )]
    pub endpoint_ttl: Option<Duration>,
    /// Whether pods, nodes and namespaces are read from --control: on, or off for a proxy that uses neither subsets by labels
    /// of pods, nor automatic mutual TLS, nor regions of nodes
    #[arg(
        long = "control-workloads",
        value_name = "on|off",
        env = "STRAIT_CONTROL_WORKLOADS",
        value_enum,
        default_value = "on",
        requires = "control"
    )]
    pub control_workloads: OnOff,
    /// Time that an endpoint waits for its pod, if its EndpointSlice comes first; after it the endpoint is used without labels and
    /// identity
    #[arg(
        long,
        value_name = "DURATION",
        env = "STRAIT_WORKLOAD_WAIT",
        value_parser = duration,
        default_value = "2s",
        requires = "control"
    )]
    pub workload_wait: Duration,
    /// Directory in which the last state of each --control is saved: a proxy that starts while an API server cannot be reached
    /// starts from it. Holds Secrets, so only its user may read it
    #[arg(long, value_name = "DIR", env = "STRAIT_STATE", requires = "control")]
    pub state: Option<PathBuf>,
    /// Connections to xDS servers.
    #[command(flatten)]
    pub xds: XdsArgs,
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// Settings of connections to xDS servers.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Control")]
pub struct XdsArgs {
    /// CA that the certificates of xDS servers are verified by, and that of the CA of --identity strait-ca, PEM; needed for xds://.
    /// Read at each connection
    #[arg(long, value_name = "FILE", env = "STRAIT_CONTROL_CA")]
    pub control_ca: Option<PathBuf>,
    /// Client certificate for xDS servers with its chain, PEM. Read at each connection
    #[arg(
        long,
        value_name = "FILE",
        env = "STRAIT_CONTROL_CERT",
        requires_all = ["control", "control_key"]
    )]
    pub control_cert: Option<PathBuf>,
    /// Key of --control-cert, PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "STRAIT_CONTROL_KEY",
        requires = "control_cert"
    )]
    pub control_key: Option<PathBuf>,
    /// File with a bearer token for xDS servers, such as that of a projected service account. Read at each connection; sent with
    /// TLS or to a loopback address only
    #[arg(
        long,
        value_name = "FILE",
        env = "STRAIT_CONTROL_TOKEN",
        requires = "control"
    )]
    pub control_token: Option<PathBuf>,
}

impl ControlArgs {
    /// Returns the sources that the arguments name, for a proxy that identifies itself with `node` and reads the
    /// Secrets of its namespace, and Ingresses if it `reads_ingresses`; `None` without `--control`.
    ///
    /// # Errors
    ///
    /// Fails when servers do not fit together; the text is for users.
    pub fn settings(
        &self,
        node: XdsNode,
        reads_ingresses: bool,
    ) -> Result<Option<ControlSettings>, String> {
        if self.control.is_empty() {
            return Ok(None);
        }
        let secrets_namespace = node.namespace.clone();
        // A sidecar uses the Secrets that a DestinationRule names, and reports a missing one. It serves no Gateways.
        let renounced = [Kind::BackendTLSPolicy, Kind::GatewayClass, Kind::Secret];
        let renounced = renounced.into_iter().filter(|_| node.is_sidecar);
        let optional = self.control_optional.iter().flatten().copied();
        Ok(Some(ControlSettings {
            kubernetes: KubernetesSettings {
                resources: Vec::new(),
                without: match reads_ingresses {
                    true => Vec::new(),
                    false => vec![Kind::Ingress, Kind::IngressClass],
                },
                optional: optional.chain(renounced).collect(),
                times: ApiServerTimes::default(),
                servers: self.api_servers()?,
                kubeconfig: self.kubeconfig.clone(),
                namespaces: self.control_namespaces.clone(),
                selector: self.control_selector.clone(),
                secrets_namespace: secrets_namespace.clone(),
                reads_referred: !node.is_sidecar,
                reads_workloads: self.control_workloads == OnOff::On,
                reader: Reader::Proxy,
                workload_wait: self.workload_wait,
                endpoint_ttl: self.endpoint_ttl,
            },
            xds: XdsSettings {
                servers: self.xds_servers()?,
                tls: ClientTlsFiles {
                    ca: self.xds.control_ca.clone(),
                    certificate: self.xds.control_cert.clone(),
                    key: self.xds.control_key.clone(),
                },
                token: self.xds.control_token.clone(),
                node,
                namespaces: self.control_namespaces.clone(),
                secrets_namespace,
                reads_workloads: self.control_workloads == OnOff::On,
            },
            state: self.state.clone(),
            wait: Some(self.control_wait),
        }))
    }

    /// Returns whether pods of the local cluster are read.
    pub fn reads_pods(&self) -> bool {
        let is_own = |server: &ControlServer| match server {
            ControlServer::Kubernetes(server) => server.cluster.is_none(),
            ControlServer::Xds(_) => true,
        };
        self.control_workloads == OnOff::On && self.control.iter().any(is_own)
    }

    fn api_servers(&self) -> Result<Vec<ApiServer>, String> {
        let mut servers: Vec<ApiServer> = Vec::new();
        for server in &self.control {
            let ControlServer::Kubernetes(server) = server else {
                continue;
            };
            if servers.iter().any(|other| other.context == server.context) {
                return Err(format!("--control {} is written twice", server.name()));
            }
            let is_own = |server: &ApiServer| server.cluster.is_none();
            if is_own(server) && servers.iter().any(is_own) {
                return Err(format!(
                    "--control names two API servers of this cluster: write the key of the other cluster, as {}=REGION/ZONE/GROUP/NAME",
                    server.name()
                ));
            }
            servers.push(server.clone());
        }
        // Resources of the local cluster take precedence over those of remote clusters.
        servers.sort_by_key(|server| server.cluster.is_some());
        Ok(servers)
    }

    fn xds_servers(&self) -> Result<Vec<XdsServer>, String> {
        let mut servers: Vec<XdsServer> = Vec::new();
        for server in &self.control {
            let ControlServer::Xds(server) = server else {
                continue;
            };
            let name = server.name();
            if servers.iter().any(|other| other.name() == name) {
                return Err(format!("--control {name} is written twice"));
            }
            if server.has_tls && self.xds.control_ca.is_none() {
                return Err(format!(
                    "--control {name} needs the CA that issued the server's certificate: add --control-ca FILE, or write \
                     xds+plaintext:// for a connection without TLS"
                ));
            }
            if !server.has_tls && !server.is_loopback() && self.xds.control_token.is_some() {
                return Err(format!(
                    "--control-token is not sent to {name} without TLS: write xds://, or leave the token out"
                ));
            }
            if self.control_selector.is_some() {
                return Err(format!(
                    "--control-selector does not limit what {name} sends: leave it out, or use an API server"
                ));
            }
            servers.push(server.clone());
        }
        Ok(servers)
    }
}

/// Parses a kind; `None` for empty text, as manifests leave variables empty.
fn kind(text: &str) -> Result<Option<Kind>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let kind = Kind::from_name(text).ok_or_else(|| {
        let kinds = Kind::ALL.map(Kind::as_str).join(", ");
        format!("expected one of the kinds that are read: {kinds}")
    })?;
    Ok(Some(kind))
}

/// Identity that the proxy presents to an xDS server.
pub fn node(identity: &Identity) -> XdsNode {
    let locality = identity.locality();
    let mut parts = locality.split('/').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    XdsNode {
        is_sidecar: identity.mode == Mode::Sidecar,
        name: rustix::system::uname().nodename().to_string_lossy().into(),
        address: own_address().to_string(),
        namespace: identity.namespace.clone(),
        domain: identity.domain.clone(),
        labels: identity.labels.clone(),
        cluster: identity.member().to_owned(),
        network: identity.network.clone(),
        service_account: identity
            .workload
            .service_account
            .clone()
            .unwrap_or_default(),
        locality: [part(), part(), part()],
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Returns the source address of connections to other machines; the loopback address if there is none.
fn own_address() -> IpAddr {
    // Connecting a UDP socket chooses its address and sends nothing. The address is one for documentation (RFC 5737).
    let chosen = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| {
        socket.connect(("192.0.2.1", 9))?;
        socket.local_addr()
    });
    chosen.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}
