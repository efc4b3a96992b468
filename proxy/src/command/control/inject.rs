//! Arguments of `strait control --inject`, and the settings that they describe.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use config_server::Webhook;

use super::args::ServerArgs;
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

/// Returns the webhook that the arguments describe.
///
/// # Errors
///
/// Never, but for a change of the form of API servers.
pub(super) fn webhook(args: &ServerArgs) -> Result<Option<Webhook>, String> {
    if !args.webhook.inject {
        return Ok(None);
    }
    let (service, namespace) = (&args.webhook.inject_service, &args.lease_namespace);
    let suffixes = ["svc", "svc.cluster.local"];
    let names = suffixes.map(|suffix| format!("{service}.{namespace}.{suffix}"));
    Ok(Some(Webhook {
        server: "kubernetes://".parse()?,
        kubeconfig: args.kubeconfig.clone(),
        listen: args.webhook.inject_listen,
        health: args.webhook.health,
        namespace: namespace.clone(),
        names: names.into_iter().chain(args.tls_name.clone()).collect(),
        settings: args.webhook.inject_settings.clone(),
        validates: args.webhook.validate,
        adopts_istio_injection: args.webhook.adopt_istio_injection,
        leaves_after: Webhook::default_leaves_after(),
    }))
}
