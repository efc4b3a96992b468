//! Arguments of a sidecar: its listeners, and the policy for traffic to unknown destinations.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

use super::address::socket_address;
use crate::command::iptables::InterceptionMode;
use crate::identity::{Mode, SidecarSockets, UnknownDestinations};

/// Settings of sidecars.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sidecar")]
pub struct SidecarArgs {
    /// Address that receives redirected connections of the workload; off: only listeners that a Sidecar names
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "[::]:15001",
        env = "STRAIT_OUTBOUND_LISTENER",
        value_parser = listener
    )]
    pub outbound_listener: SidecarListener,
    /// Address that receives redirected connections to the workload; off: only listeners that a Sidecar names
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "[::]:15006",
        env = "STRAIT_INBOUND_LISTENER",
        value_parser = listener
    )]
    pub inbound_listener: SidecarListener,
    /// Address of the HTTP proxy for clients of the workload that set `http_proxy` and need no capture: absolute-form
    /// requests and CONNECT follow the routes of the mesh; usually 127.0.0.1:15007; off: no HTTP proxy
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "off",
        env = "STRAIT_HTTP_PROXY_LISTENER",
        value_parser = listener
    )]
    pub http_proxy_listener: SidecarListener,
    /// Source of the address that the client dialed, for redirected connections
    #[arg(long, value_enum, default_value_t = OriginalDestinationArg::Socket, env = "STRAIT_ORIGINAL_DESTINATION")]
    pub original_destination: OriginalDestinationArg,
    /// Mode in which connections to the workload are captured, as for `strait iptables install`
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "MODE",
        default_value = "REDIRECT",
        env = "STRAIT_INTERCEPTION_MODE"
    )]
    pub interception_mode: InterceptionMode,
    /// Treatment of traffic for hosts and addresses that no resource names, unless the Sidecar sets it
    #[arg(long, value_enum, default_value_t = OutboundTrafficPolicyArg::AllowAny, env = "STRAIT_OUTBOUND_TRAFFIC_POLICY")]
    pub outbound_traffic_policy: OutboundTrafficPolicyArg,
}

/// Address to listen on; `None` for `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidecarListener(Option<SocketAddr>);

/// `--original-destination`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OriginalDestinationArg {
    /// The header of the PROXY protocol that each begins with
    ProxyHeader,
    /// The kernel, which redirected them as `strait iptables` asks it to
    Socket,
}

/// `--outbound-traffic-policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutboundTrafficPolicyArg {
    /// It goes where the workload sent it
    #[value(name = "ALLOW_ANY")]
    AllowAny,
    /// It is refused: requests with 502, connections by closing them
    #[value(name = "REGISTRY_ONLY")]
    RegistryOnly,
}

impl SidecarArgs {
    /// Returns the sockets on which a proxy in this mode accepts connections of its workload.
    pub fn sockets(&self, mode: Mode) -> SidecarSockets {
        match mode {
            Mode::Gateway => SidecarSockets {
                outbound: None,
                inbound: None,
                proxy_header: false,
                is_transparent: false,
                http_proxy: None,
            },
            Mode::Sidecar => SidecarSockets {
                outbound: self.outbound_listener.0,
                inbound: self.inbound_listener.0,
                proxy_header: self.original_destination == OriginalDestinationArg::ProxyHeader,
                is_transparent: self.interception_mode == InterceptionMode::Transparent,
                http_proxy: self.http_proxy_listener.0,
            },
        }
    }

    /// Returns the policy for traffic to unknown destinations.
    pub fn unknown_destinations(&self) -> UnknownDestinations {
        match self.outbound_traffic_policy {
            OutboundTrafficPolicyArg::AllowAny => UnknownDestinations::AllowAny,
            OutboundTrafficPolicyArg::RegistryOnly => UnknownDestinations::RegistryOnly,
        }
    }
}

fn listener(text: &str) -> Result<SidecarListener, String> {
    match text.trim() {
        "off" => Ok(SidecarListener(None)),
        address => socket_address(address).map(|address| SidecarListener(Some(address))),
    }
}
