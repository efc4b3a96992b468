//! Arguments about API servers that configuration comes from.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use config_loader::{ApiServer, ControlSettings, KubernetesSettings};

use crate::command::duration::duration;

/// API servers that configuration comes from.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Control")]
pub struct ControlArgs {
    /// API server that resources come from: kubernetes:// for that of this cluster (service account of the pod, or current
    /// context), kubernetes://CONTEXT for one of the kubeconfig, kubernetes://CONTEXT=REGION/ZONE/GROUP/NAME for the services
    /// and endpoints of another cluster. May be repeated
    #[arg(
        long,
        value_name = "URL",
        env = "STRAIT_CONTROL",
        value_delimiter = ','
    )]
    pub control: Vec<ApiServer>,
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
    /// How long endpoints of another cluster are used while its API server cannot be reached; default: until health checks,
    /// outlier detection or the API server take them out
    #[arg(
        long,
        value_name = "DURATION",
        env = "STRAIT_ENDPOINT_TTL",
        value_parser = duration,
        requires = "control"
    )]
    pub endpoint_ttl: Option<Duration>,
    /// Directory in which the last state of each --control is saved: a proxy that starts while an API server cannot be reached
    /// starts from it. Holds Secrets, so only its user may read it
    #[arg(long, value_name = "DIR", env = "STRAIT_STATE", requires = "control")]
    pub state: Option<PathBuf>,
}

impl ControlArgs {
    /// What is followed, for a proxy in this namespace; none without `--control`.
    ///
    /// # Errors
    ///
    /// When servers do not fit together, in words for a person.
    pub fn settings(&self, namespace: &str) -> Result<Option<ControlSettings>, String> {
        if self.control.is_empty() {
            return Ok(None);
        }
        for (index, server) in self.control.iter().enumerate() {
            let others = &self.control[..index];
            if others.iter().any(|other| other.context == server.context) {
                return Err(format!("--control {} is written twice", server.name()));
            }
            let is_own = |server: &ApiServer| server.cluster.is_none();
            if is_own(server) && others.iter().any(is_own) {
                return Err(format!(
                    "--control names two API servers of this cluster: write the key of the other cluster, as {}=REGION/ZONE/GROUP/NAME",
                    server.name()
                ));
            }
        }
        let mut servers = self.control.clone();
        // What the proxy's own cluster says goes before what others say.
        servers.sort_by_key(|server| server.cluster.is_some());
        let kubernetes = KubernetesSettings {
            servers,
            kubeconfig: self.kubeconfig.clone(),
            namespaces: self.control_namespaces.clone(),
            selector: self.control_selector.clone(),
            secrets_namespace: namespace.to_owned(),
            endpoint_ttl: self.endpoint_ttl,
        };
        Ok(Some(ControlSettings {
            kubernetes,
            state: self.state.clone(),
        }))
    }
}
