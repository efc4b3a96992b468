//! Arguments about where a server keeps its objects: a data directory, an etcd, or an API server.

use std::path::PathBuf;

use clap::Args;
use config_loader::ApiServer;
use config_server::store::etcd::EtcdSettings;
use config_server::transfer::Location;

/// The etcd that replicas share, instead of a store in the data directory.
#[derive(Debug, Args)]
pub struct EtcdArgs {
    /// Client URLs of an etcd cluster (3.4 or newer) that holds the objects, instead of the data directory
    #[arg(
        long,
        value_name = "URL,...",
        value_delimiter = ',',
        env = "STRAIT_CONTROL_ETCD"
    )]
    pub etcd: Vec<String>,
    /// CA of the certificates of etcd, PEM; needed for https
    #[arg(
        long,
        value_name = "FILE",
        requires = "etcd",
        env = "STRAIT_CONTROL_ETCD_CA"
    )]
    pub etcd_ca: Option<PathBuf>,
    /// Client certificate for etcd, PEM
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["etcd", "etcd_key"],
        env = "STRAIT_CONTROL_ETCD_CERT"
    )]
    pub etcd_cert: Option<PathBuf>,
    /// Key of that certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "etcd_cert",
        env = "STRAIT_CONTROL_ETCD_KEY"
    )]
    pub etcd_key: Option<PathBuf>,
    /// Prefix of all keys in etcd
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = "/strait",
        env = "STRAIT_CONTROL_ETCD_PREFIX"
    )]
    pub etcd_prefix: String,
}

impl EtcdArgs {
    /// Returns the settings of etcd; `None` without URLs.
    pub fn settings(&self) -> Option<EtcdSettings> {
        (!self.etcd.is_empty()).then(|| EtcdSettings {
            urls: self.etcd.clone(),
            ca: self.etcd_ca.clone(),
            certificate: self.etcd_cert.clone(),
            key: self.etcd_key.clone(),
            prefix: self.etcd_prefix.clone(),
        })
    }
}

/// Data directory with the tokens.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Data directory of the server
    #[arg(
        long,
        value_name = "DIR",
        env = "STRAIT_CONTROL_DATA",
        default_value = "strait-control"
    )]
    pub data: PathBuf,
    /// The etcd that replicas share.
    #[command(flatten)]
    pub etcd: EtcdArgs,
}

impl DataArgs {
    /// Returns the storage location that the arguments name.
    pub fn location(&self) -> Location {
        Location {
            data: self.data.clone(),
            etcd: self.etcd.settings(),
        }
    }
}

/// Parses `kubernetes://[CONTEXT]`.
pub(super) fn own_cluster(text: &str) -> Result<ApiServer, String> {
    let server: ApiServer = text.parse()?;
    match server.cluster {
        None => Ok(server),
        Some(_) => Err(format!(
            "`{text}` names another cluster, of which a part is read: write kubernetes://{}",
            server.context
        )),
    }
}
