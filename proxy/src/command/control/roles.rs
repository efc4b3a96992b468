//! Roles of `strait control` that serve a cluster, as arguments describe them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use config_server::{Hub, Roles, StatusFor, Webhook};

use super::args::ServerArgs;
use crate::command::args::OnOff;

/// Default address of the hub.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 6444);

/// Error message for a CA without a port to answer on.
pub(super) const NEEDS_SERVE: &str =
    "--issue-identities needs --serve beside other roles: it answers on the port of the hub";

/// Returns the roles that serve a cluster; `None` if there is none.
///
/// # Errors
///
/// If the roles do not go together; the text is for users.
pub(super) fn roles(
    args: &ServerArgs,
    connections_max: fn() -> usize,
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
    let identities = args.identities.settings();
    if identities.is_some() && args.serve.is_none() {
        return Err(NEEDS_SERVE.to_owned());
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
        files: args.files(),
        names: services.chain(args.tls_name.clone()).collect(),
        settings: args.webhook.inject_settings.clone(),
        leaves_after: Roles::default_leaves_after(),
        webhook,
        hub: args.serve.as_ref().map(|_| Hub {
            listen: args.listen.unwrap_or(LISTEN),
            connections_max: connections_max(),
            identities,
            serves_workloads: args.control_workloads == OnOff::On,
        }),
        status_for: status_for(),
    }))
}
