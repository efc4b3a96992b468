//! Arguments of `strait control --inject` and `--serve`, and the roles that they describe.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use config_server::{Hub, Roles, StatusFor, Webhook};

use super::args::ServerArgs;
use super::connections_max;
use crate::command::args::socket_address;

/// Default address of the hub.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 6444);

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

/// Returns the roles that serve a cluster; `None` if there is none.
///
/// # Errors
///
/// Never, but for a change of the form of API servers.
pub(super) fn roles(
    args: &ServerArgs,
    status_for: impl FnOnce() -> Option<StatusFor>,
) -> Result<Option<Roles>, String> {
    let webhook = args.webhook.inject.then_some(Webhook {
        listen: args.webhook.inject_listen,
        validates: args.webhook.validate,
        adopts_istio_injection: args.webhook.adopt_istio_injection,
    });
    if webhook.is_none() && args.serve.is_none() {
        return Ok(None);
    }
    let namespace = &args.lease_namespace;
    let services = args.webhook.service.iter().flat_map(|service| {
        let suffixes = ["svc", "svc.cluster.local"];
        suffixes.map(|suffix| format!("{service}.{namespace}.{suffix}"))
    });
    let server = match &args.serve {
        Some(server) => server.clone(),
        None => "kubernetes://".parse()?,
    };
    Ok(Some(Roles {
        server,
        kubeconfig: args.kubeconfig.clone(),
        health: args.webhook.health,
        namespace: namespace.clone(),
        names: services.chain(args.tls_name.clone()).collect(),
        settings: args.webhook.inject_settings.clone(),
        leaves_after: Roles::default_leaves_after(),
        webhook,
        hub: args.serve.as_ref().map(|_| Hub {
            listen: args.listen.unwrap_or(LISTEN),
            connections_max: connections_max(),
        }),
        status_for: status_for(),
    }))
}
