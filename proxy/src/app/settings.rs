//! What the proxy is started with.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use config_loader::proxy_state::{ProxySpec, ProxyState};
use config_loader::{ApiServer, ControlSettings, ReadOptions};

use super::workload::WorkloadProcess;
use crate::admin::{AdminHosts, AppProbers};
use crate::codec;
use crate::control::remote_clusters::ClustersFile;
use crate::exchange::settings::ExchangeSettings;
use crate::identity::{Identity, MemberSettings, Mode};
use crate::telemetry::{AccessLogFormat, AccessLogTarget, BuildInfo};

/// Settings of the process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Files and directories of resources.
    pub paths: Vec<PathBuf>,
    /// API servers that resources come from, too.
    pub control: Option<ControlSettings>,
    /// Unix socket on which the process that runs hands over its sockets.
    pub takeover: Option<PathBuf>,
    /// Whether the service manager may have opened sockets, and is told when the proxy is ready.
    pub is_service: bool,
    /// How strictly they are read.
    pub read: ReadOptions,
    /// The remote clusters file; `identity` has its clusters as of the start.
    pub clusters: Option<ClustersFile>,
    /// The proxy's identity.
    pub identity: Identity,
    /// The number of workers.
    pub concurrency: NonZeroUsize,
    /// Address of the admin server.
    pub admin: SocketAddr,
    /// Host names that it accepts in addition to its addresses.
    pub admin_hosts: AdminHosts,
    /// Address of health pages and metrics for others than the admin server's users.
    pub health: Option<SocketAddr>,
    /// Whether a configuration that asks for no listener is what was wanted.
    pub allow_empty: bool,
    /// Whether the proxy becomes ready while a resource is rejected that has no last good version.
    pub ready_with_rejected: bool,
    /// DNS servers that are asked instead of the system's.
    pub dns_servers: Vec<SocketAddr>,
    /// Format of the access log; `None` for none.
    pub access_log: Option<AccessLogFormat>,
    /// Where the access log goes.
    pub access_log_target: AccessLogTarget,
    /// Filter of the process log.
    pub log_level: String,
    /// How long everything goes on after a signal to end, so that others learn that readiness fails.
    pub pre_drain: Duration,
    /// How long requests that run may take to finish in a drain.
    pub drain_time: Duration,
    /// How a sidecar serves its workload while it drains; none for a gateway.
    pub outbound_drain: Option<OutboundDrain>,
    /// The process whose end ends the proxy.
    pub exit_with: Option<WorkloadProcess>,
    /// Probes of the workload's containers.
    pub app_probers: AppProbers,
    /// Limits of downstream connections.
    pub codec: codec::Settings,
    /// Settings of the request path.
    pub exchange: ExchangeSettings,
}

impl Settings {
    /// Who the proxy is, as it tells config servers.
    pub fn proxy_state(&self) -> ProxyState {
        let followed = self.control.as_ref().map(|control| &control.kubernetes);
        ProxyState {
            namespace: self.identity.namespace.clone(),
            name: self.proxy_name(),
            spec: ProxySpec {
                cluster: self.identity.cluster.clone(),
                mode: match self.identity.mode {
                    Mode::Gateway => "gateway",
                    Mode::Sidecar => "sidecar",
                }
                .to_owned(),
                version: build_info().version,
                namespaces: followed.map_or_else(Vec::new, |found| found.namespaces.clone()),
                selector: followed
                    .and_then(|found| found.selector.clone())
                    .unwrap_or_default(),
            },
            ..ProxyState::default()
        }
    }

    /// What the proxy is called: the name of its machine, which is that of its pod, and the port of its admin server where that
    /// is not the default, since several proxies may share a machine.
    fn proxy_name(&self) -> String {
        let host = self.exchange.hostname.to_ascii_lowercase();
        let host = host.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        let host = host.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let host = if host.is_empty() { "proxy" } else { host };
        match self.admin.port() {
            15_000 => host.to_owned(),
            0 => format!("{host}-{}", std::process::id()),
            port => format!("{host}-{port}"),
        }
    }

    /// What is known of other clusters: what is told, and the keys of those whose API servers are followed.
    pub fn with_clusters_of_servers(&self, told: &[MemberSettings]) -> Vec<MemberSettings> {
        let mut all = told.to_vec();
        let servers = self
            .control
            .iter()
            .flat_map(|found| &found.kubernetes.servers);
        for key in servers.filter_map(|server: &ApiServer| server.cluster.as_ref()) {
            if !all.iter().any(|known| known.key == key.as_str()) {
                all.push(MemberSettings {
                    key: key.to_string(),
                    ..MemberSettings::default()
                });
            }
        }
        all
    }
}

/// How long outbound listeners of a sidecar go on after its inbound listeners have begun to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundDrain {
    /// At most.
    pub time: Duration,
    /// At least, also without any connection.
    pub minimum: Duration,
}

/// The revision is `STRAIT_REVISION` in the environment of the build, else that of the checkout that a release was built from.
pub(super) fn build_info() -> BuildInfo {
    BuildInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("STRAIT_REVISION")
            .unwrap_or_default()
            .to_owned(),
    }
}
