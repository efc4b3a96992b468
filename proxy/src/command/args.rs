//! Arguments that several commands share.

mod address;
mod client_cert;
mod connections;
mod control;
mod gateways;
mod headers;
mod identity_source;
mod ingress;
mod limits;
mod metrics;
mod output;
mod sidecar;
mod tracing;
mod workload;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args, ValueEnum};
use config_loader::diagnostic::render;
use config_loader::ingress::IngressSettings;
use config_loader::resource::istio::{MeshConfig, ProxySettings};
use config_loader::{Diagnostic, ReadOptions, Revision};

pub(super) use address::socket_address;
pub use client_cert::ClientCertHeaderArg;
pub use connections::ConnectionArgs;
pub use control::{ControlArgs, OnOff, node};
pub use gateways::{GatewayArgs, GatewayPoolArgs};
pub use headers::HeaderArgs;
pub use identity_source::IdentitySourceArgs;
pub use ingress::{IngressArgs, IngressClassArgs, IngressReadingArgs};
pub use limits::{LimitArgs, LimitServiceArgs};
pub use metrics::{MetricsArgs, SwitchArg};
pub use output::{AdminArgs, OutputArg};
pub use sidecar::{OriginalDestinationArg, OutboundTrafficPolicyArg, SidecarArgs};

use super::own_settings::{self, OwnSettings};
use crate::control::mesh_config::MeshConfigFile;
use crate::control::pod_labels::PodLabelsFile;
use crate::control::remote_clusters::ClustersFile;
pub use tracing::{CompressionArg, TracingArgs};
pub use workload::WorkloadArgs;
pub(crate) use workload::parse_trust_domain;

use crate::identity::{
    Environment, ExportListener, Identity, MeshDefaults, MeshName, Mode, OwnPod, Replay,
};
use config_loader::catalog::DefaultDomain;
use traffic::route::PathNormalization;

/// Files that resources come from.
#[derive(Clone, Debug, Args)]
pub struct FilesArgs {
    /// File or directory of resources (YAML or JSON); directories are read recursively. May be repeated
    #[arg(
        short = 'f',
        long = "config",
        visible_alias = "filename",
        value_name = "PATH",
        env = "STRAIT_CONFIG",
        value_delimiter = ','
    )]
    pub paths: Vec<PathBuf>,
}

/// Sources of the configuration.
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("source").args(["paths", "control"]).required(true).multiple(true)))]
pub struct ConfigArgs {
    /// Files that resources come from.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Servers that resources come from.
    #[command(flatten)]
    pub control: ControlArgs,
    /// Strictness of reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Strictness of reading resources.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReadingArgs {
    /// Treatment of unknown fields of a resource
    #[arg(long, value_enum, default_value_t = UnknownFieldsArg::Error, env = "STRAIT_UNKNOWN_FIELDS", help_heading = "Compatibility")]
    pub unknown_fields: UnknownFieldsArg,
    /// Meaning of `timeout: 0s` in a rule of a VirtualService
    #[arg(long, value_enum, default_value_t = ZeroTimeoutArg::Error, env = "STRAIT_ZERO_TIMEOUT", help_heading = "Compatibility")]
    pub zero_timeout: ZeroTimeoutArg,
    /// Apply `sourceSubnet` in `tcp` rules of a VirtualService, which Istio ignores
    #[arg(
        long,
        env = "STRAIT_ENFORCE_SOURCE_SUBNET",
        help_heading = "Compatibility"
    )]
    pub enforce_source_subnet: bool,
    /// Revision of the proxy: resources of Istio and of the Gateway API with another value in their label `istio.io/rev` are not
    /// read; default: all are read
    #[arg(
        long,
        value_name = "NAME",
        env = "STRAIT_RESOURCE_REVISION",
        value_parser = revision,
        help_heading = "Compatibility"
    )]
    pub revision: Option<Revision>,
}

/// Parses `--revision`, which lives as long as the process.
fn revision(text: &str) -> Result<Revision, String> {
    match text.is_empty() {
        true => Err("write the value of a label, such as strait".to_owned()),
        false => Ok(Box::leak(text.into())),
    }
}

/// `--unknown-fields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnknownFieldsArg {
    /// Reject the resource: most unknown fields are misspelled
    Error,
    /// Use the resource without the field
    Warning,
}

/// `--zero-timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ZeroTimeoutArg {
    /// Reject the resource, as Istio does
    Error,
    /// No timeout
    None,
}

impl ReadingArgs {
    /// Returns the read options of these arguments and of a proxy's identity.
    pub fn options(&self, identity: &Identity) -> ReadOptions {
        ReadOptions {
            unknown_fields_pass: self.unknown_fields == UnknownFieldsArg::Warning,
            zero_timeout_passes: self.zero_timeout == ZeroTimeoutArg::None,
            enforce_source_subnet: self.enforce_source_subnet,
            first_ejection_is_capped: identity.mesh.first_ejection_is_capped,
            exports: identity.mesh_config.exports,
            revision: self.revision,
        }
    }
}

/// Identity of the proxy.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Identity")]
pub struct IdentityArgs {
    /// Role of the proxy: an edge gateway or a workload's sidecar
    #[arg(long, value_enum, default_value_t = ModeArg::Gateway, env = "STRAIT_MODE")]
    pub mode: ModeArg,
    /// Kubernetes cluster that the proxy runs in: region/zone/group/name, or just the name; default: local, for
    /// `check` any
    #[arg(long, value_name = "KEY", env = "STRAIT_CLUSTER", value_parser = cluster_key)]
    pub cluster: Option<String>,
    /// Locality of the proxy: region/zone/subzone; default: region and zone of --cluster
    #[arg(
        long,
        value_name = "LOCALITY",
        default_value = "",
        env = "STRAIT_LOCALITY",
        hide_default_value = true
    )]
    pub locality: String,
    /// Namespace of the workload, for short names, visibility and Secrets; default: that of the pod (POD_NAMESPACE), else
    /// `default`
    #[arg(long, value_name = "NAME", env = "STRAIT_NAMESPACE")]
    pub namespace: Option<String>,
    /// The proxy's own pod: its labels, service account, locality and network count where no flag says otherwise, if pods are
    /// read from an API server
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub pod: Option<String>,
    /// Namespace of the proxy's own pod.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", hide = true)]
    pub pod_namespace: Option<String>,
    /// Labels of the workload, matched against Gateway selectors and sourceLabels: key=value,...
    #[arg(long, value_name = "K=V,...", env = "STRAIT_LABELS", value_delimiter = ',', value_parser = label)]
    pub labels: Vec<Option<(String, String)>>,
    /// File with the labels of the pod, as a volume of the downward API has them; they take the place of --labels. It is
    /// followed
    #[arg(long, value_name = "FILE", env = "STRAIT_POD_LABELS", value_parser = read_pod_labels)]
    pub pod_labels: Option<PodLabelsFile>,
    /// Network of the proxy, for failoverPriority
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        env = "STRAIT_NETWORK",
        hide_default_value = true
    )]
    pub network: String,
    /// Domain that short service names are completed with
    #[arg(
        long,
        value_name = "DOMAIN",
        default_value = "cluster.local",
        env = "STRAIT_DOMAIN"
    )]
    pub domain: String,
    /// Namespace that holds mesh-wide defaults
    #[arg(
        long,
        value_name = "NAME",
        default_value = "istio-system",
        env = "STRAIT_ROOT_NAMESPACE"
    )]
    pub root_namespace: String,
    /// Istio's MeshConfig, YAML, or the ConfigMap that has it: settings of the mesh, most of which are followed, and values for
    /// flags that are not given
    #[arg(long, value_name = "FILE", env = "STRAIT_MESH_CONFIG", value_parser = read_mesh_config)]
    pub mesh_config: Option<MeshConfigFile>,
    /// File with the annotations of the pod, as a volume of the downward API has them: settings of this proxy, which win over those
    /// of --proxy-config
    #[arg(long, value_name = "FILE", env = "STRAIT_POD_ANNOTATIONS", value_parser = own_settings::of_annotations)]
    pub pod_annotations: Option<OwnSettings>,
    /// Settings of this proxy, YAML or JSON, as `defaultConfig` of Istio's MeshConfig has them, which they win over. Istio's
    /// injector sets the variable
    #[arg(long, value_name = "YAML", env = "PROXY_CONFIG", value_parser = own_settings::of_text)]
    pub proxy_config: Option<OwnSettings>,
    /// Its identity within the mesh.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Retry plain 503 responses if a rule has no `retries`, as older versions of Istio did
    #[arg(long, env = "STRAIT_COMPAT_RETRY_503", help_heading = "Compatibility")]
    pub compat_retry_503: bool,
    /// Apply locality failover only with outlierDetection, as Istio does
    #[arg(
        long,
        env = "STRAIT_FAILOVER_NEEDS_OUTLIER_DETECTION",
        help_heading = "Compatibility"
    )]
    pub failover_needs_outlier_detection: bool,
    /// Limits of outlier detection.
    #[command(flatten)]
    pub ejection: EjectionArgs,
    /// Comparison of `hosts` in policies of action DENY and CUSTOM
    #[arg(
        long,
        value_enum,
        default_value_t = AuthzHostsArg::Bare,
        env = "STRAIT_AUTHZ_HOSTS",
        help_heading = "Compatibility"
    )]
    pub authz_hosts: AuthzHostsArg,
    /// Normalization of paths, before routes and policies match them, and in what endpoints get [default: base, or that of the
    /// mesh configuration]
    #[arg(long, value_enum, env = "STRAIT_PATH_NORMALIZATION")]
    pub path_normalization: Option<PathNormalizationArg>,
    /// Service that counts rate limits.
    #[command(flatten)]
    pub limits: LimitServiceArgs,
    /// Providers that policies of action CUSTOM may name for one workload
    #[arg(
        long,
        value_enum,
        default_value_t = CustomProvidersArg::All,
        env = "STRAIT_AUTHZ_CUSTOM_PROVIDERS",
        help_heading = "Compatibility"
    )]
    pub authz_custom_providers: CustomProvidersArg,
    /// Services that several clusters serve.
    #[command(flatten)]
    pub members: MembersArgs,
    /// Gateways of the Gateway API.
    #[command(flatten)]
    pub gateways: GatewayArgs,
    /// Ingresses.
    #[command(flatten)]
    pub ingress: IngressArgs,
    /// Settings of sidecars.
    #[command(flatten)]
    pub sidecar: SidecarArgs,
}

/// Limits of outlier detection.
#[derive(Clone, Copy, Debug, Args)]
pub struct EjectionArgs {
    /// Whether one endpoint may always be ejected, whatever maxEjectionPercent is, as long as another is left
    #[arg(
        long,
        value_enum,
        default_value_t = FirstEjectionArg::Allow,
        env = "STRAIT_OUTLIER_FIRST_EJECTION",
        help_heading = "Compatibility"
    )]
    pub outlier_first_ejection: FirstEjectionArg,
}

/// Settings of services that several clusters serve.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Several clusters")]
pub struct MembersArgs {
    /// Gloo mesh of the proxy, NAME.NAMESPACE; default: that of the Destinations of the local cluster
    #[arg(long, value_name = "MESH", env = "STRAIT_GLOO_MESH", value_parser = mesh_name)]
    pub gloo_mesh: Option<MeshName>,
    /// Remote clusters file, YAML: `clusters:`, a list of {key, network, locality, gateway: {host, port, tls}}. Its changes
    /// are followed
    #[arg(long, value_name = "FILE", env = "STRAIT_CLUSTERS", value_parser = read_clusters_file)]
    pub clusters: Option<ClustersFile>,
    /// Gateway server that serves the routes of ServiceExports, by port number or port name; default: every HTTP server,
    /// with or without TLS. May be repeated
    #[arg(
        long = "export-listener",
        value_name = "PORT|NAME",
        env = "STRAIT_EXPORT_LISTENER",
        value_delimiter = ',',
        value_parser = export_listener
    )]
    pub export_listeners: Vec<Option<ExportListener>>,
    /// Failed requests that a FailOver policy replays in the next clusters
    #[arg(long, value_enum, default_value_t = FailoverReplayArg::Safe, env = "STRAIT_FAILOVER_REPLAY")]
    pub failover_replay: FailoverReplayArg,
    /// Meaning of weight 0 in a GlobalTrafficPolicy
    #[arg(long, value_enum, default_value_t = ZeroWeightArg::Drain, env = "STRAIT_ZERO_WEIGHT")]
    pub zero_weight: ZeroWeightArg,
    /// Meaning of short service names as destinations and as hosts of requests
    #[arg(long, value_enum, default_value_t = DefaultDomainArg::Cluster, env = "STRAIT_DEFAULT_DOMAIN")]
    pub default_domain: DefaultDomainArg,
    /// Let the local cluster serve even if a MultiClusterService does not name it as a provider, as Karmada does
    #[arg(long, env = "STRAIT_LOCAL_WHEN_NOT_PROVIDER")]
    pub local_when_not_provider: bool,
}

/// `--failover-replay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailoverReplayArg {
    /// None: only new requests use the next clusters
    Off,
    /// Requests without a connection or response, 502 to 504, and other 5xx if the method is idempotent
    Safe,
    /// Every request without a response or with a status above 499, as FSM does
    Fsm,
}

/// `--zero-weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ZeroWeightArg {
    /// The cluster gets no traffic
    Drain,
    /// The same as 100, as in FSM
    Fsm,
}

/// `--default-domain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DefaultDomainArg {
    /// `web` as a destination is the service in --domain; names with a dot are taken as they are
    #[value(name = "cluster.local")]
    Cluster,
    /// `web`, `web.ns1` and `web.ns1.svc` are the service under clusterset.local, if it has that host
    #[value(name = "clusterset.local")]
    ClusterSet,
}

/// `--outlier-first-ejection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FirstEjectionArg {
    /// Always, as in older versions of Envoy
    Allow,
    /// Within maxEjectionPercent only, as in newer versions of Envoy: below 10 endpoints, the default of 10 percent ejects none
    Cap,
}

/// `--authz-hosts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuthzHostsArg {
    /// A value without a port also matches a host with a port or a final dot
    Bare,
    /// As the client sent the host, as Istio does: `example.com:80` passes a policy that denies `example.com`
    Exact,
}

/// `--path-normalization`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PathNormalizationArg {
    /// Dot segments are resolved, unreserved characters decoded, and backslashes become slashes; the default
    Base,
    /// Not at all: policies that forbid paths are easy to get around
    None,
    /// As base, and adjacent slashes become one
    MergeSlashes,
    /// As merge-slashes, after %2F and %5C are decoded
    DecodeAndMergeSlashes,
}

impl From<PathNormalizationArg> for PathNormalization {
    fn from(arg: PathNormalizationArg) -> Self {
        match arg {
            PathNormalizationArg::Base => Self::Base,
            PathNormalizationArg::None => Self::None,
            PathNormalizationArg::MergeSlashes => Self::MergeSlashes,
            PathNormalizationArg::DecodeAndMergeSlashes => Self::DecodeAndMergeSlashes,
        }
    }
}

/// `--authz-custom-providers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CustomProvidersArg {
    /// Any number: all whose policies select a request are asked
    All,
    /// One, as in Istio by default: with several, what their policies select is denied
    One,
}

impl EjectionArgs {
    /// Returns whether `maxEjectionPercent` applies to the first ejection as well.
    pub fn first_is_capped(&self) -> bool {
        self.outlier_first_ejection == FirstEjectionArg::Cap
    }
}

/// `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Serve the Gateways whose selector matches --labels
    Gateway,
    /// Carry the traffic of the workload beside it, as its Sidecar says
    Sidecar,
}

impl IdentityArgs {
    /// Namespace of the workload.
    pub fn namespace(&self) -> &str {
        let said = self.namespace.as_deref();
        said.or(self.pod_namespace.as_deref()).unwrap_or("default")
    }

    /// Pod that the proxy runs in, if the arguments name one.
    fn pod(&self) -> Option<OwnPod> {
        let namespace = self.pod_namespace.as_deref();
        Some(OwnPod {
            name: self.pod.clone().filter(|name| !name.is_empty())?,
            namespace: namespace.unwrap_or(self.namespace()).to_owned(),
        })
    }

    /// Returns the mesh configuration as of the start.
    fn mesh_config(&self) -> MeshConfig {
        let file = self.mesh_config.as_ref();
        file.map(|file| file.config.clone()).unwrap_or_default()
    }

    /// Returns the settings of this proxy alone.
    fn own(&self) -> ProxySettings {
        let own = [&self.pod_annotations, &self.proxy_config];
        let [pod, text] = own.map(|own| own.clone().unwrap_or_default().settings);
        pod.or(&text)
    }

    /// Returns the attributes of the resource by annotations.
    pub(super) fn resource(&self) -> BTreeMap<String, String> {
        let own = self.pod_annotations.as_ref();
        own.map(|own| own.annotations.resource.clone())
            .unwrap_or_default()
    }

    /// Returns the warnings about them.
    pub(super) fn own_warnings(&self) -> Vec<Diagnostic> {
        let own = [&self.pod_annotations, &self.proxy_config].into_iter();
        let own = own.flatten().flat_map(|own| own.warnings.clone());
        own.collect()
    }

    /// Returns the labels of the workload.
    fn labels(&self) -> BTreeMap<String, String> {
        match &self.pod_labels {
            Some(file) => file.labels.0.clone(),
            None => self.labels.iter().flatten().cloned().collect(),
        }
    }

    /// Returns the settings of Ingresses; `None` if the proxy serves none.
    fn served_ingresses(&self) -> Option<Arc<IngressSettings>> {
        let controller = &self.gateways.of_controller.gateway_controller;
        self.ingress.settings(self.namespace(), controller)
    }

    /// Returns the identity that these arguments describe.
    pub fn identity(&self) -> Identity {
        let mode = match self.mode {
            ModeArg::Gateway => Mode::Gateway,
            ModeArg::Sidecar => Mode::Sidecar,
        };
        let (own, limits) = (self.own(), self.limits.rate_limit_service.clone());
        let local = || Identity::default().cluster;
        Identity {
            mode,
            cluster: self.cluster.clone().unwrap_or_else(local),
            locality: self.locality.clone(),
            namespace: self.namespace().to_owned(),
            pod: self.pod(),
            labels: self.labels(),
            network: self.network.clone(),
            domain: self.domain.clone(),
            root_namespace: self.root_namespace.clone(),
            mesh_certs: self.workload.mesh_certs.clone(),
            workload: self.workload.identity(&self.domain),
            gloo_mesh: self.members.gloo_mesh.clone(),
            members: match &self.members.clusters {
                Some(told) => told.members(),
                None => Vec::new(),
            },
            export_listeners: self
                .members
                .export_listeners
                .iter()
                .flatten()
                .cloned()
                .collect(),
            mesh_config: Arc::new(self.mesh_config().of_proxy(&own)),
            own: Arc::new(own),
            rate_limit_service: limits.and_then(|service| service.0),
            tracing: Some(Arc::default()),
            traces_by_flags: false,
            traces_by_address: false,
            samples_by_flags: false,
            environment: Environment::default(),
            logs_by_flags: false,
            counts_rules: false,
            gateways: self.gateways.settings(),
            ingress: self.served_ingresses(),
            sockets: self.sidecar.sockets(mode),
            mesh: MeshDefaults {
                unknown_destinations: self.sidecar.unknown_destinations(),
                compat_retry_503: self.compat_retry_503,
                failover_needs_outlier_detection: self.failover_needs_outlier_detection,
                first_ejection_is_capped: self.ejection.first_is_capped(),
                exact_policy_hosts: self.authz_hosts == AuthzHostsArg::Exact,
                one_provider: self.authz_custom_providers == CustomProvidersArg::One,
                path_normalization: self.path_normalization.map(Into::into),
                zero_weight_is_full_weight: self.members.zero_weight == ZeroWeightArg::Fsm,
                local_when_not_provider: self.members.local_when_not_provider,
                default_domain: match self.members.default_domain {
                    DefaultDomainArg::Cluster => DefaultDomain::Cluster,
                    DefaultDomainArg::ClusterSet => DefaultDomain::ClusterSet,
                },
                failover_replay: match self.members.failover_replay {
                    FailoverReplayArg::Off => Replay::Off,
                    FailoverReplayArg::Safe => Replay::Safe,
                    FailoverReplayArg::Fsm => Replay::Fsm,
                },
            },
        }
    }
}

pub(super) fn cluster_key(text: &str) -> Result<String, String> {
    let segments: Vec<&str> = text.split('/').collect();
    let well_formed = |segment: &&str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        (1..=253).contains(&segment.len()) && segment.bytes().all(allowed)
    };
    if !segments.iter().all(well_formed) {
        return Err("segments are 1 to 253 letters, digits, '.', '_' or '-'".to_owned());
    }
    match segments.len() {
        1 => Ok(format!("default/default/default/{text}")),
        4 => Ok(text.to_owned()),
        _ => Err("expected region/zone/group/name, or just a name".to_owned()),
    }
}

/// Parses the name of a mesh: its namespace, which has no dots, comes last.
pub(super) fn mesh_name(text: &str) -> Result<MeshName, String> {
    match text.rsplit_once('.') {
        Some((name, namespace)) if !name.is_empty() && !namespace.is_empty() => Ok(MeshName {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }),
        _ => Err("expected NAME.NAMESPACE".to_owned()),
    }
}

/// Reads the remote clusters file; its errors are reported like those of resources.
pub(super) fn read_clusters_file(path: &str) -> Result<ClustersFile, String> {
    ClustersFile::read(Path::new(path)).map_err(|found| {
        let text = render::text(&found, render::Style::Plain);
        format!("the file is not used\n{text}")
    })
}

/// Reads the labels of the pod; their errors are reported like those of resources.
pub(super) fn read_pod_labels(path: &str) -> Result<PodLabelsFile, String> {
    PodLabelsFile::read(Path::new(path)).map_err(|found| {
        let text = render::text(&found, render::Style::Plain);
        format!("the file is not used\n{text}")
    })
}

/// Reads the mesh configuration; its errors are reported like those of resources.
pub(super) fn read_mesh_config(path: &str) -> Result<MeshConfigFile, String> {
    MeshConfigFile::read(Path::new(path)).map_err(|found| {
        let text = render::text(&found, render::Style::Plain);
        format!("the file is not used\n{text}")
    })
}

/// Parses a server of a Gateway; `None` for empty text, as manifests leave variables empty.
fn export_listener(text: &str) -> Result<Option<ExportListener>, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match text.parse() {
        _ if text.is_empty() => Ok(None),
        Ok(0) => Err("a port is from 1 to 65535".to_owned()),
        Ok(port) => Ok(Some(ExportListener::Port(port))),
        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err("a port is from 1 to 65535".to_owned())
        }
        Err(_) if text.bytes().all(allowed) => Ok(Some(ExportListener::Name(text.to_owned()))),
        Err(_) => Err("expected a port, or the name of one".to_owned()),
    }
}

/// Parses one label; `None` for empty text, as manifests leave variables empty.
fn label(text: &str) -> Result<Option<(String, String)>, String> {
    match text.split_once('=') {
        _ if text.is_empty() => Ok(None),
        Some((key, value)) if !key.is_empty() => Ok(Some((key.to_owned(), value.to_owned()))),
        _ => Err("expected key=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_addresses_are_rejected_with_a_complete_example() {
        let whole = socket_address("[::1]:80").map(|address| address.to_string());
        assert_eq!(whole.as_deref(), Ok("[::1]:80"));
        for (wrong, error) in [
            (
                "31510",
                "the address lacks an IP; write for example 127.0.0.1:31510",
            ),
            (
                ":31510",
                "the address lacks an IP; write for example 127.0.0.1:31510",
            ),
            (
                "0.0.0.0",
                "the address lacks a port; write for example 0.0.0.0:PORT",
            ),
            (
                "10.0.0.1:",
                "the address lacks a port; write for example 10.0.0.1:PORT",
            ),
            (
                "::1",
                "the address lacks a port; write for example [::1]:PORT",
            ),
            (
                "localhost:80",
                "the address is not an IP and a port; write for example 127.0.0.1:80",
            ),
            (
                "localhost",
                "the address is not an IP and a port; write for example 127.0.0.1:PORT",
            ),
            (
                "",
                "the address lacks an IP; write for example 127.0.0.1:PORT",
            ),
            ("127.0.0.1:65536", "a port is a number up to 65535"),
            ("99999", "a port is a number up to 65535"),
        ] {
            assert_eq!(socket_address(wrong).unwrap_err(), error, "{wrong:?}");
        }
    }

    #[test]
    fn cluster_keys_are_completed_and_checked() {
        assert_eq!(cluster_key("c1").unwrap(), "default/default/default/c1");
        assert_eq!(cluster_key("eu/a/blue/c1").unwrap(), "eu/a/blue/c1");
        for wrong in ["", "a/b", "a/b/c/d/e", "a//b/c", "a b"] {
            assert!(cluster_key(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn mesh_argument_needs_a_name_and_a_namespace() {
        let mesh = mesh_name("istiod.1-23.gloo-mesh").unwrap();
        assert_eq!(
            (&*mesh.name, &*mesh.namespace),
            ("istiod.1-23", "gloo-mesh")
        );
        for wrong in ["", "mesh", ".gloo", "mesh."] {
            assert!(mesh_name(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn listeners_of_exports_are_ports_or_their_names() {
        let name = |name: &str| Ok(Some(ExportListener::Name(name.to_owned())));
        assert_eq!(export_listener("https-mesh"), name("https-mesh"));
        let port = Ok(Some(ExportListener::Port(15443)));
        assert_eq!(export_listener("15443"), port);
        assert_eq!(export_listener(""), Ok(None));
        for wrong in ["0", "65536", "a b", "10.0.0.1:80"] {
            assert!(export_listener(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn labels_are_parsed_as_pairs() {
        let pair = |key: &str, value: &str| Ok(Some((key.to_owned(), value.to_owned())));
        assert_eq!(
            label("istio=ingressgateway"),
            pair("istio", "ingressgateway")
        );
        assert_eq!(label("empty="), pair("empty", ""));
        assert_eq!(label(""), Ok(None));
        assert!(label("istio").is_err());
        assert!(label("=x").is_err());
    }
}
