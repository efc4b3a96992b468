//! Settings of the servers that issue an identity.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::request::KeyKind;

/// Settings of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySettings {
    /// CA of an Istio mesh.
    IstioCa(IstioCaSettings),
    /// SPIFFE Workload API.
    WorkloadApi(WorkloadApiSettings),
}

/// Settings of an Istio CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IstioCaSettings {
    /// Host of the CA. Flag `--ca-address`.
    pub host: String,
    /// Port of the CA. Flag `--ca-address`.
    pub port: u16,
    /// Name in the certificate of the CA. Flag `--ca-server-name`, default `host`.
    pub server_name: Option<String>,
    /// File of the certificates that verify the CA, which are part of the bundle as well. Flag `--ca-root`.
    pub root: PathBuf,
    /// File of the token. Flag `--ca-token`.
    pub token: PathBuf,
    /// Cluster whose API server knows the token. Flag `--ca-cluster-id`.
    pub cluster_id: String,
    /// Life that is asked for. Flag `--identity-ttl`.
    pub ttl: Duration,
    /// Kind of the key. Flag `--identity-key`.
    pub key: KeyKind,
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
