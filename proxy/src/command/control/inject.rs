//! Arguments of `strait control --inject`, and of what it shares with `--serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::command::args::socket_address;

/// Settings of the webhook.
#[derive(Debug, Args)]
#[command(next_help_heading = "Injection")]
pub struct WebhookArgs {
    /// Add sidecars to pods that the API server creates, as a mutating webhook, instead of serving a data directory. Every
    /// instance serves
    #[arg(
        long,
        conflicts_with = "imports_between",
        env = "STRAIT_CONTROL_INJECT"
    )]
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
        requires = "in_cluster",
        env = "STRAIT_CONTROL_INJECT_SETTINGS"
    )]
    pub inject_settings: Option<PathBuf>,
    /// Services of --inject and --serve in the namespace of --lease-namespace, whose names the certificate has, beside those of
    /// --tls-name
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "strait-control",
        env = "STRAIT_CONTROL_SERVICE"
    )]
    pub service: Vec<String>,
    /// Take the namespace label `istio-injection: enabled` as consent; without it, only `istio.io/rev` with the revision of the
    /// settings and `strait.io/inject: enabled` are
    #[arg(
        long,
        requires = "inject",
        env = "STRAIT_CONTROL_ADOPT_ISTIO_INJECTION"
    )]
    pub adopt_istio_injection: bool,
    /// Address that serves /healthz/live, /healthz/ready and /metrics of --inject and --serve, such as 0.0.0.0:15021
    #[arg(
        long,
        value_name = "IP:PORT",
        requires = "in_cluster",
        env = "STRAIT_CONTROL_HEALTH",
        value_parser = socket_address
    )]
    pub health: Option<SocketAddr>,
}
