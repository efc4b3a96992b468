//! Settings that the proxy is started with.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config_loader::proxy_state::{ProxySpec, ProxyState};
use config_loader::resource::istio::MeshConfig;
use config_loader::{ApiServer, ControlSettings, ReadOptions, ResourceSet};

use super::export_settings::ExportSettings;
use super::origins::{OriginKind, SettingOrigin};
use super::trace_settings::TraceSettings;
use super::workload::WorkloadProcess;
use crate::admin::{AdminHosts, AppProbers};
use crate::codec;
use crate::control::Started;
use crate::control::identity_source::IdentitySettings;
use crate::control::key_sets::KeySetSettings;
use crate::control::mesh_config::MeshConfigFile;
use crate::control::pod_labels::PodLabelsFile;
use crate::control::proxy_config::ProxyConfigValues;
use crate::control::remote_clusters::ClustersFile;
use crate::exchange::settings::ExchangeSettings;
use crate::identity::{Environment, Identity, MemberSettings, Mode};
use crate::runtime::threads;
use crate::telemetry::{AccessLogFormat, AccessLogTarget, BuildInfo, DurationBounds, LogSample};

/// Flag of the number of workers.
pub const CONCURRENCY: &str = "concurrency";

/// Reads the settings of the process again, with another mesh configuration.
#[derive(Clone)]
pub struct Reread(Arc<ReadSettings>);

type ReadSettings = dyn Fn(&MeshConfig) -> Result<Settings, String> + Send + Sync;

impl Reread {
    /// Makes it from a function, whose errors are for users.
    pub fn new(
        read: impl Fn(&MeshConfig) -> Result<Settings, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }

    /// Reads the settings.
    pub(super) fn with(&self, config: &MeshConfig) -> Result<Settings, String> {
        (self.0)(config)
    }
}

impl std::fmt::Debug for Reread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reread").finish_non_exhaustive()
    }
}

/// Settings of the process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Files and directories of resources.
    pub paths: Vec<PathBuf>,
    /// API servers that serve resources, in addition to `paths`.
    pub control: Option<ControlSettings>,
    /// Unix socket on which the running process hands over its sockets.
    pub takeover: Option<PathBuf>,
    /// Whether the service manager may have opened sockets and is notified when the proxy is ready.
    pub is_service: bool,
    /// Strictness of reading resources.
    pub read: ReadOptions,
    /// Whether security policies stay in effect for 60 s after their source has deleted all of them.
    pub keeps_policies: bool,
    /// Remote clusters file; `identity` has its clusters as of the start.
    pub clusters: Option<ClustersFile>,
    /// Labels of the pod, in a file that is followed.
    pub pod_labels: Option<PodLabelsFile>,
    /// Mesh configuration; `identity` has its providers as of the start.
    pub mesh_config: Option<MeshConfigFile>,
    /// Values of ProxyConfigs, and findings about the start.
    pub started: Started,
    /// Origins of settings that resources have values for.
    pub origins: Vec<SettingOrigin>,
    /// Reads these settings again; `None` if they follow no mesh configuration.
    pub reread: Option<Reread>,
    /// Identity of the proxy.
    pub identity: Identity,
    /// Server that issues the identity of the workload; `None` for files, or no identity.
    pub identity_source: Option<IdentitySettings>,
    /// The number of workers.
    pub concurrency: NonZeroUsize,
    /// Address of the admin server.
    pub admin: SocketAddr,
    /// Host names that the admin server accepts in addition to its addresses.
    pub admin_hosts: AdminHosts,
    /// Address of a server with only the health pages and metrics.
    pub health: Option<SocketAddr>,
    /// Address of a server with only the metrics.
    pub metrics: Option<SocketAddr>,
    /// Buckets of durations of requests.
    pub duration_bounds: Arc<DurationBounds>,
    /// Whether metrics are compressed for clients that accept it.
    pub compresses: bool,
    /// Whether a configuration without listeners is intended.
    pub allow_empty: bool,
    /// Whether the proxy becomes ready while a resource is rejected that has no last good version.
    pub ready_with_rejected: bool,
    /// DNS servers to use instead of the system's.
    pub dns_servers: Vec<SocketAddr>,
    /// Fetching of key sets of issuers.
    pub key_sets: KeySetSettings,
    /// Format of the access log; `None` for no access log.
    pub access_log: Option<AccessLogFormat>,
    /// Target of the access log.
    pub access_log_target: AccessLogTarget,
    /// Share of requests with a line in that log.
    pub access_log_sample: LogSample,
    /// Traces and their export; `None` for no tracing.
    pub traces: Option<TraceSettings>,
    /// Export of logs and metrics.
    pub exports: ExportSettings,
    /// Notes about variables of OpenTelemetry, to be logged.
    pub trace_notes: Vec<String>,
    /// Filter of the process log.
    pub log_level: String,
    /// Time between a signal to end and the drain, in which load balancers learn that the proxy is not ready.
    pub pre_drain: Duration,
    /// Maximum time for requests in flight to finish in a drain.
    pub drain_time: Duration,
    /// Drain of a sidecar's outbound listeners; `None` for a gateway.
    pub outbound_drain: Option<OutboundDrain>,
    /// Process whose end ends the proxy.
    pub exit_with: Option<WorkloadProcess>,
    /// Probes of the workload's containers.
    pub app_probers: AppProbers,
    /// Maximum number of downstream connections.
    pub connections_max: usize,
    /// Maximum number of downstream connections of one listener.
    pub listener_connections_max: usize,
    /// Limits of downstream connections.
    pub codec: codec::Settings,
    /// Settings of the request path.
    pub exchange: ExchangeSettings,
}

impl Settings {
    /// Returns the settings with the values of ProxyConfigs: one with a selector wins over settings of this proxy alone, one
    /// without only over the mesh configuration, and none over a flag.
    pub fn with_proxy_configs(mut self, resources: &ResourceSet) -> Self {
        let values = ProxyConfigValues::of(resources, &self.identity);
        self.started.configs = values.clone();
        let environment = Arc::make_mut(&mut self.exchange.environment);
        for (name, value) in values.variables {
            environment.entry(name).or_insert(value);
        }
        self.identity.environment = Environment(Arc::clone(&self.exchange.environment));
        let Some(workers) = values.workers else {
            return self;
        };
        let at = self.origins.iter().position(|one| one.flag == CONCURRENCY);
        let told = at.map(|at| self.origins.remove(at));
        let new = SettingOrigin {
            flag: CONCURRENCY,
            value: workers.count.to_string(),
            origin: workers.origin,
            kind: OriginKind::Mesh,
            instead_of: None,
        };
        let effective = match told {
            Some(told) if told.kind == OriginKind::Flag => SettingOrigin {
                instead_of: (told.value != new.value).then_some((new.value, new.origin)),
                ..told
            },
            Some(told) if told.kind == OriginKind::Own && !workers.is_selected => told,
            _ => {
                let count = NonZeroUsize::new(workers.count.into());
                let count = count.unwrap_or_else(threads::default_concurrency);
                let retried = &mut self.exchange.retry_body_bytes_per_worker;
                *retried = retried.saturating_mul(self.concurrency.get()) / count;
                self.concurrency = count;
                new
            }
        };
        self.started.findings.extend(effective.finding());
        self.origins.push(effective);
        self
    }

    /// Whether a setting that is read at the start, by the name of its flag, has this value.
    pub fn has(&self, flag: &str, value: &str) -> bool {
        let Identity {
            workload,
            root_namespace,
            sockets,
            mode,
            ..
        } = &self.identity;
        let listens = |address: Option<SocketAddr>| {
            let address = address.map_or_else(|| "off".to_owned(), |address| address.to_string());
            *mode == Mode::Gateway || address == value
        };
        match flag {
            "admin" => self.admin.to_string() == value,
            CONCURRENCY => self.concurrency.to_string() == value,
            "health" => self
                .health
                .is_some_and(|address| address.to_string() == value),
            "http-proxy-listener" => listens(sockets.http_proxy),
            "inbound-listener" => listens(sockets.inbound),
            "interception-mode" => {
                *mode == Mode::Gateway || sockets.is_transparent == (value == "TPROXY")
            }
            "outbound-listener" => listens(sockets.outbound),
            "root-namespace" => root_namespace == value,
            "trust-domain" => workload.trust_domain == value,
            _ => true,
        }
    }

    /// Returns the namespaces that servers are asked for; empty for all.
    pub fn read_namespaces(&self) -> Vec<String> {
        let control = self.control.as_ref();
        control.map_or_else(Vec::new, |control| control.kubernetes.namespaces.clone())
    }

    /// Returns the identity of the proxy as it reports it to config servers.
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
                namespaces: self.read_namespaces(),
                selector: followed
                    .and_then(|found| found.selector.clone())
                    .unwrap_or_default(),
            },
            ..ProxyState::default()
        }
    }

    /// Name of the proxy: the host name, which in a pod is the pod's name, plus the port of the admin server where it
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

    /// Returns the given remote clusters, plus the keys of those whose API servers are followed.
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

/// Time that outbound listeners of a sidecar stay open after its inbound listeners have begun to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboundDrain {
    /// Maximum.
    pub time: Duration,
    /// Minimum, even without any connection.
    pub minimum: Duration,
}

/// Version and revision of the build. The revision is `STRAIT_REVISION` of the build environment, else that of the
/// checkout of a release.
pub(super) fn build_info() -> BuildInfo {
    BuildInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("STRAIT_REVISION")
            .unwrap_or_default()
            .to_owned(),
    }
}
