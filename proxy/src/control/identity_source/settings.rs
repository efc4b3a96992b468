//! Settings of the servers that issue an identity.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use config_loader::XdsNode;

use super::request::KeyKind;

/// Settings of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySettings {
    /// CA of an Istio mesh, or Strait's own.
    IstioCa(IstioCaSettings),
    /// SPIFFE Workload API.
    WorkloadApi(WorkloadApiSettings),
}

/// Settings of a CA with the service of Istio's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IstioCaSettings {
    /// Host of the CA. Flag `--ca-address`.
    pub host: String,
    /// Port of the CA. Flag `--ca-address`.
    pub port: u16,
    /// Name in the certificate of the CA. Flag `--ca-server-name`, default `host`.
    pub server_name: Option<String>,
    /// File of certificates that are part of the bundle. Flag `--ca-root`.
    pub root: Option<PathBuf>,
    /// File of the certificates that verify the CA's server: that of the flag `--ca-root`, or of `--control-ca`.
    pub server_root: PathBuf,
    /// File of revocation lists of the CA. Flag `--ca-crl`.
    pub crl: Option<PathBuf>,
    /// Whether the CA is Strait's own, which publishes its roots with each certificate, and renews a certificate of a
    /// workload that joined by token for that certificate.
    pub is_own: bool,
    /// File of the token. Flag `--ca-token`.
    pub token: PathBuf,
    /// Cluster whose API server knows the token. Flag `--ca-cluster-id`.
    pub cluster_id: String,
    /// Node of the stream that lists the proxy in `istioctl proxy-status`; `None` for no stream. Flag `--istio-report`.
    pub report: Option<XdsNode>,
    /// Life that is asked for. Flag `--identity-ttl`.
    pub ttl: Duration,
    /// Kind of the key. Flag `--identity-key`.
    pub key: KeyKind,
}

impl IstioCaSettings {
    /// Returns the flag that names the certificates by which the server is verified.
    pub(super) fn server_root_flag(&self) -> &'static str {
        match self.is_own && self.root.as_ref() != Some(&self.server_root) {
            true => "--control-ca",
            false => "--ca-root",
        }
    }
}

/// Settings of a SPIFFE Workload API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadApiSettings {
    /// Endpoint of the agent. Flag `--workload-api`.
    pub endpoint: AgentEndpoint,
    /// Hint of the identity to use, if the workload has several. Flag `--workload-api-hint`.
    pub hint: Option<String>,
}

/// Endpoint of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEndpoint {
    /// TCP address.
    Tcp(SocketAddr),
    /// Unix socket.
    Unix(PathBuf),
}
