//! Arguments of `strait control --inject`, and the settings that they describe.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use config_server::Webhook;

use crate::command::args::socket_address;

/// Settings of the webhook.
#[derive(Debug, Args)]
#[command(next_help_heading = "Injection")]
pub struct WebhookArgs {
    /// Add sidecars to pods that the API server creates, as a mutating webhook, instead of serving anything else. Every
    /// instance serves
    #[arg(long, group = "writer", env = "STRAIT_CONTROL_INJECT")]
    pub inject: bool,
    /// Also refuse resources that `strait check` rejects, as a validating webhook of the same server
    #[arg(long, requires = "inject", env = "STRAIT_CONTROL_VALIDATE")]
    pub validate: bool,
    /// Address of the webhook, HTTPS only
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value = "0.0.0.0:9443",
        env = "STRAIT_CONTROL_INJECT_LISTEN",
        value_parser = socket_address
    )]
    pub inject_listen: SocketAddr,
    /// File with the settings of the injection, as `strait inject --show-settings` prints them; followed [default: the settings
    /// that it prints]
    #[arg(
        long,
        value_name = "FILE",
        requires = "inject",
        env = "STRAIT_CONTROL_INJECT_SETTINGS"
    )]
    pub inject_settings: Option<PathBuf>,
    /// Service of the webhook in the namespace of --lease-namespace, whose names its certificate has, beside those of --tls-name
    #[arg(
        long,
        value_name = "NAME",
        default_value = "strait-control",
        env = "STRAIT_CONTROL_INJECT_SERVICE"
    )]
    pub inject_service: String,
    /// Take the namespace label `istio-injection: enabled` as consent; without it, only `istio.io/rev` with the revision of the
    /// settings and `strait.io/inject: enabled` are
    #[arg(
        long,
        requires = "inject",
        env = "STRAIT_CONTROL_ADOPT_ISTIO_INJECTION"
    )]
    pub adopt_istio_injection: bool,
    /// Address that serves /healthz/live, /healthz/ready and /metrics of the webhook, such as 0.0.0.0:15021
    #[arg(
        long,
        value_name = "IP:PORT",
        requires = "inject",
        env = "STRAIT_CONTROL_HEALTH",
        value_parser = socket_address
    )]
    pub health: Option<SocketAddr>,
}

/// Settings that the webhook shares with the other roles of `strait control`.
pub(super) struct Shared<'a> {
    /// Kubeconfig of the API server.
    pub(super) kubeconfig: Option<&'a PathBuf>,
    /// Namespace of the Secret and the Service.
    pub(super) namespace: &'a str,
    /// Further names of the certificate.
    pub(super) names: &'a [String],
}

impl WebhookArgs {
    /// Returns the webhook that the arguments describe; `None` without `--inject`.
    ///
    /// # Errors
    ///
    /// Never: the URL of the API server is one.
    pub(super) fn webhook(&self, shared: &Shared<'_>) -> Result<Option<Webhook>, String> {
        if !self.inject {
            return Ok(None);
        }
        let (service, namespace) = (&self.inject_service, shared.namespace);
        let suffixes = ["svc", "svc.cluster.local"];
        let names = suffixes.map(|suffix| format!("{service}.{namespace}.{suffix}"));
        Ok(Some(Webhook {
            server: "kubernetes://".parse()?,
            kubeconfig: shared.kubeconfig.cloned(),
            listen: self.inject_listen,
            health: self.health,
            namespace: namespace.to_owned(),
            names: names.into_iter().chain(shared.names.to_vec()).collect(),
            settings: self.inject_settings.clone(),
            validates: self.validate,
            adopts_istio_injection: self.adopt_istio_injection,
            leaves_after: Webhook::default_leaves_after(),
        }))
    }
}
