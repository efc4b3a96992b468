//! Arguments about servers that issue the identity of the workload.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use config_loader::ControlServer;

use super::address::socket_address;
use super::control::{ControlArgs, node};
use crate::control::identity_source::{
    AgentEndpoint, IdentitySettings, IstioCaSettings, KeyKind, WorkloadApiSettings,
};
use crate::identity::{Identity, IdentityKind};
use crate::runtime::duration::duration;

/// Shortest and longest life that can be asked for. istiod issues certificates for up to 90 days.
const TTL: [Duration; 2] = [
    Duration::from_secs(60),
    Duration::from_secs(90 * 24 * 60 * 60),
];

/// Servers that issue the identity of the workload.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload identity")]
pub struct IdentitySourceArgs {
    /// Source of the workload's certificate, exactly one
    #[arg(long, value_enum, default_value_t = IdentityKindArg::Files, env = "STRAIT_IDENTITY")]
    pub identity: IdentityKindArg,
    /// CA of --identity istio-ca or strait-ca; default: istiod.istio-system.svc:15012, and the first xds:// server of --control
    /// for strait-ca
    #[arg(long, value_name = "HOST:PORT", env = "STRAIT_CA_ADDRESS", value_parser = host_port)]
    pub ca_address: Option<(String, u16)>,
    /// CA certificates, PEM, that verify other workloads, with those of the newest answer of this CA. They also verify the CA, but
    /// for strait-ca with --control-ca, which verifies it then. Changes are followed; default for istio-ca:
    /// /var/run/secrets/istio/root-cert.pem
    #[arg(long, value_name = "FILE", env = "STRAIT_CA_ROOT")]
    pub ca_root: Option<PathBuf>,
    /// Revocation lists of this CA, PEM: workloads whose certificate is in one are refused. A file that does not exist counts as
    /// empty; changes are followed; default for istio-ca: /var/run/secrets/istio/crl/ca-crl.pem
    #[arg(long, value_name = "FILE", env = "STRAIT_CA_CRL")]
    pub ca_crl: Option<PathBuf>,
    /// Name in the certificate of this CA; default: the host of --ca-address
    #[arg(long, value_name = "NAME", env = "STRAIT_CA_SERVER_NAME")]
    pub ca_server_name: Option<String>,
    /// Token of the service account, with the audience that the CA expects (istio-ca, strait-ca), or a join token of strait-ca.
    /// Read for each request, and sent to this CA only; default: /var/run/secrets/tokens/istio-token, and
    /// /var/run/strait/token/ca for strait-ca
    #[arg(long, value_name = "FILE", env = "STRAIT_CA_TOKEN")]
    pub ca_token: Option<PathBuf>,
    /// Cluster whose API server this CA asks about the token; default: the name in --cluster, else Kubernetes
    #[arg(long, value_name = "NAME", env = "STRAIT_CA_CLUSTER_ID")]
    pub ca_cluster_id: Option<String>,
    /// Life that is asked of this CA for a certificate, from 1m to 2160h. Whatever the CA grants, half of it later the
    /// certificate is renewed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "24h",
        env = "STRAIT_IDENTITY_TTL",
        value_parser = ttl
    )]
    pub identity_ttl: Duration,
    /// Kind of the key, a new one for each certificate. It never leaves the memory of the proxy
    #[arg(long, value_enum, default_value_t = IdentityKeyArg::EcdsaP256, env = "STRAIT_IDENTITY_KEY")]
    pub identity_key: IdentityKeyArg,
    /// List this proxy in `istioctl proxy-status`, by a stream to istiod at --ca-address; for --identity istio-ca
    #[arg(long, env = "STRAIT_ISTIO_REPORT")]
    pub istio_report: bool,
    /// SPIFFE Workload API of --identity workload-api: unix:///PATH or tcp://IP:PORT
    #[arg(long, value_name = "URI", env = "SPIFFE_ENDPOINT_SOCKET", value_parser = agent_endpoint)]
    pub workload_api: Option<AgentEndpoint>,
    /// Hint of the identity to use, if the workload has several; default: the first that fits the workload
    #[arg(long, value_name = "HINT", env = "STRAIT_WORKLOAD_API_HINT")]
    pub workload_api_hint: Option<String>,
}

/// `--identity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IdentityKindArg {
    /// Files that another program writes, such as a CSI driver: --workload-cert, --workload-key and --mesh-ca, or those in
    /// --mesh-certs
    Files,
    /// Certificates that the CA of an Istio mesh signs (--ca-address), for the token of the service account
    IstioCa,
    /// No identity, whatever files there are
    None,
    /// Certificates that `strait control --issue-identities` signs (--ca-address), for the token of the service account, or for
    /// a join token
    StraitCa,
    /// Identity of a SPIFFE Workload API (--workload-api), such as that of a SPIRE agent
    WorkloadApi,
}

impl From<IdentityKindArg> for IdentityKind {
    fn from(arg: IdentityKindArg) -> Self {
        match arg {
            IdentityKindArg::Files => Self::Files,
            IdentityKindArg::IstioCa => Self::IstioCa,
            IdentityKindArg::None => Self::None,
            IdentityKindArg::StraitCa => Self::StraitCa,
            IdentityKindArg::WorkloadApi => Self::WorkloadApi,
        }
    }
}

/// `--identity-key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IdentityKeyArg {
    /// ECDSA on P-256
    #[value(name = "ecdsa-p256")]
    EcdsaP256,
    /// RSA of 2048 bits, for peers without ECDSA
    #[value(name = "rsa-2048")]
    Rsa2048,
}

impl From<IdentityKeyArg> for KeyKind {
    fn from(arg: IdentityKeyArg) -> Self {
        match arg {
            IdentityKeyArg::EcdsaP256 => Self::EcdsaP256,
            IdentityKeyArg::Rsa2048 => Self::Rsa2048,
        }
    }
}

impl IdentitySourceArgs {
    /// Returns the settings of the server that issues the identity of a proxy; `None` if none does. `cluster` is the value
    /// of `--cluster`, and `control` are the servers of the configuration.
    ///
    /// # Errors
    ///
    /// Fails when flags name files as well, or no server; the text is for users.
    pub fn settings(
        &self,
        identity: &Identity,
        cluster: Option<&str>,
        control: &ControlArgs,
    ) -> Result<Option<IdentitySettings>, String> {
        let kind = IdentityKind::from(self.identity);
        if kind != IdentityKind::Files && identity.workload.names_files() {
            return Err(format!(
                "--identity {kind} excludes --workload-cert, --workload-key and --mesh-ca: a workload has one identity"
            ));
        }
        if self.istio_report && kind != IdentityKind::IstioCa {
            return Err(
                "--istio-report needs --identity istio-ca: istiod lists who shows its token"
                    .to_owned(),
            );
        }
        Ok(match kind {
            IdentityKind::Files | IdentityKind::None => None,
            IdentityKind::WorkloadApi => {
                let endpoint = self.workload_api.clone().ok_or(
                    "--identity workload-api needs the socket of the agent: set --workload-api or SPIFFE_ENDPOINT_SOCKET",
                )?;
                Some(IdentitySettings::WorkloadApi(WorkloadApiSettings {
                    endpoint,
                    hint: self.workload_api_hint.clone(),
                }))
            }
            IdentityKind::IstioCa => {
                let address = ("istiod.istio-system.svc".to_owned(), 15_012);
                let root = self.ca_root.clone();
                let root = root.unwrap_or_else(|| "/var/run/secrets/istio/root-cert.pem".into());
                let crl = self.ca_crl.clone();
                Some(IdentitySettings::IstioCa(IstioCaSettings {
                    root: Some(root.clone()),
                    report: self.istio_report.then(|| node(identity)),
                    crl: Some(
                        crl.unwrap_or_else(|| "/var/run/secrets/istio/crl/ca-crl.pem".into()),
                    ),
                    ..self.of_ca(address, root, cluster)
                }))
            }
            IdentityKind::StraitCa => {
                let server_root = control.xds.control_ca.as_ref().or(self.ca_root.as_ref());
                let server_root = server_root.ok_or(
                    "--identity strait-ca needs the certificates that verify the CA: set --control-ca",
                )?;
                let mut servers = control.control.iter().filter_map(|server| match server {
                    ControlServer::Xds(server) => Some((server.host.clone(), server.port)),
                    ControlServer::Kubernetes(_) => None,
                });
                let address = self.ca_address.clone().or_else(|| servers.next()).ok_or(
                    "--identity strait-ca needs the address of the CA: set --ca-address, or --control xds://HOST:PORT",
                )?;
                Some(IdentitySettings::IstioCa(IstioCaSettings {
                    is_own: true,
                    ..self.of_ca(address, server_root.clone(), cluster)
                }))
            }
        })
    }

    /// Returns the settings of a CA, whose default address is given, and whose server `server_root` verifies.
    fn of_ca(
        &self,
        address: (String, u16),
        server_root: PathBuf,
        cluster: Option<&str>,
    ) -> IstioCaSettings {
        let name = cluster.and_then(|key| key.rsplit('/').next());
        let cluster_id = self.ca_cluster_id.as_deref().or(name);
        let token = match self.identity {
            IdentityKindArg::StraitCa => "/var/run/strait/token/ca",
            _ => "/var/run/secrets/tokens/istio-token",
        };
        let (host, port) = self.ca_address.clone().unwrap_or(address);
        IstioCaSettings {
            host,
            port,
            server_name: self.ca_server_name.clone(),
            root: self.ca_root.clone(),
            crl: self.ca_crl.clone(),
            server_root,
            is_own: false,
            token: self.ca_token.clone().unwrap_or_else(|| token.into()),
            cluster_id: cluster_id.unwrap_or("Kubernetes").to_owned(),
            report: None,
            ttl: self.identity_ttl,
            key: self.identity_key.into(),
        }
    }
}

/// Parses `--ca-address`.
fn host_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || "write HOST:PORT, such as istiod.istio-system.svc:15012".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || (host.contains(':') && !is_bracketed) {
        return Err(wrong());
    }
    let port = port.parse().map_err(|_| wrong())?;
    Ok((host.trim_matches(['[', ']']).to_owned(), port))
}

/// Parses `--workload-api` (SPIFFE Workload Endpoint, section 4).
fn agent_endpoint(text: &str) -> Result<AgentEndpoint, String> {
    let unix = text.strip_prefix("unix://").or(text.strip_prefix("unix:"));
    match (unix, text.strip_prefix("tcp://")) {
        (Some(path), _) if path.starts_with('/') => Ok(AgentEndpoint::Unix(path.into())),
        (None, Some(address)) => socket_address(address).map(AgentEndpoint::Tcp),
        _ => Err("write unix:///PATH or tcp://IP:PORT".to_owned()),
    }
}

/// Parses `--identity-ttl`.
fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration(text)?;
    let [least, most] = TTL;
    match (least..=most).contains(&ttl) {
        true => Ok(ttl),
        false => Err("a certificate is issued for 1m to 2160h (90 days)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_a_ca_has_host_and_port() {
        for (text, expected) in [
            (
                "istiod.istio-system.svc:15012",
                Some(("istiod.istio-system.svc", 15012)),
            ),
            ("127.0.0.1:1", Some(("127.0.0.1", 1))),
            ("[::1]:15012", Some(("::1", 15012))),
            ("::1:15012", None),
            ("istiod", None),
            (":15012", None),
            ("istiod:http", None),
        ] {
            let found = host_port(text).ok();
            let found = found.as_ref().map(|(host, port)| (&**host, *port));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn endpoint_of_an_agent_is_a_socket() {
        let unix = AgentEndpoint::Unix("/run/agent.sock".into());
        assert_eq!(agent_endpoint("unix:///run/agent.sock"), Ok(unix.clone()));
        assert_eq!(agent_endpoint("unix:/run/agent.sock"), Ok(unix));
        let tcp = AgentEndpoint::Tcp(([127, 0, 0, 1], 8081).into());
        assert_eq!(agent_endpoint("tcp://127.0.0.1:8081"), Ok(tcp));
        for wrong in [
            "/run/agent.sock",
            "unix://agent",
            "tcp://agent:1",
            "http://a",
        ] {
            assert!(agent_endpoint(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn life_of_a_certificate_is_limited() {
        assert_eq!(ttl("24h"), Ok(Duration::from_secs(86_400)));
        for wrong in ["59s", "2161h", "never"] {
            assert!(ttl(wrong).is_err(), "{wrong}");
        }
    }
}
