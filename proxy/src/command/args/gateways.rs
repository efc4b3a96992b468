//! Arguments about Gateways of the Gateway API.

use std::net::IpAddr;

use clap::Args;
use config_loader::catalog::gateway_api::CONTROLLER;
use ipnet::IpNet;

use crate::identity::{GatewayPattern, GatewaySettings, ListenPort};

/// Controller of Gateways, and its pool of addresses: the same for `strait control` and proxies.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Gateway API")]
pub struct GatewayPoolArgs {
    /// Name of the controller, as GatewayClasses have it
    #[arg(
        long,
        value_name = "DOMAIN/PATH",
        default_value = CONTROLLER,
        env = "STRAIT_GATEWAY_CONTROLLER",
        value_parser = controller
    )]
    pub gateway_controller: String,
    /// Pool of addresses, of which `strait control` gives each Gateway one of its own, and which proxies with the same pool open.
    /// Default: none, and proxies open a Gateway without addresses on all
    #[arg(
        long,
        value_name = "CIDR",
        env = "STRAIT_GATEWAY_ADDRESSES",
        value_delimiter = ',',
        value_parser = network
    )]
    gateway_addresses: Vec<Option<IpNet>>,
}

impl GatewayPoolArgs {
    /// Returns the pool of addresses.
    pub fn pool(&self) -> Vec<IpNet> {
        self.gateway_addresses.iter().flatten().copied().collect()
    }
}

/// Gateways of the Gateway API that the proxy serves.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Gateway API")]
pub struct GatewayArgs {
    /// Controller and pool.
    #[command(flatten)]
    pub of_controller: GatewayPoolArgs,
    /// Gateways that are served: NAMESPACE/NAME, or NAMESPACE/* for all of a namespace. Default: every Gateway of the controller
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        env = "STRAIT_GATEWAYS",
        value_delimiter = ',',
        value_parser = pattern
    )]
    pub gateways: Vec<Option<GatewayPattern>>,
    /// Ports that are opened in place of those of listeners, such as 80:8080,443:8443, for a Service that maps them back.
    /// Redirects name the port of the listener. Default: none
    #[arg(
        long,
        value_name = "PORT:OPENED",
        env = "STRAIT_LISTEN_PORTS",
        value_delimiter = ',',
        value_parser = listen_port
    )]
    pub listen_ports: Vec<Option<ListenPort>>,
}

impl GatewayArgs {
    /// Returns the settings.
    pub fn settings(&self) -> GatewaySettings {
        GatewaySettings {
            controller: self.of_controller.gateway_controller.clone(),
            pool: self.of_controller.pool(),
            only: self.gateways.iter().flatten().cloned().collect(),
            ports: self.listen_ports.iter().flatten().copied().collect(),
        }
    }
}

/// Parses the name of a controller: a domain and a path, as the API demands of GatewayClasses.
fn controller(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => Ok(text.to_owned()),
        _ => Err(format!(
            "expected a domain and a path, such as {CONTROLLER}"
        )),
    }
}

/// Parses a network; `None` for empty text, as manifests leave variables empty.
fn network(text: &str) -> Result<Option<IpNet>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let address = || text.parse().map(|ip: IpAddr| ip.into());
    let network = text.parse().or_else(|_| address());
    network
        .map(Some)
        .map_err(|_| "expected an IP address, or a network such as 192.0.2.0/24".to_owned())
}

fn pattern(text: &str) -> Result<Option<GatewayPattern>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty()
                && !namespace.contains('*')
                && !name.is_empty()
                && (name == "*" || !name.contains(['/', '*'])) =>
        {
            Ok(Some(GatewayPattern {
                namespace: namespace.to_owned(),
                name: (name != "*").then(|| name.to_owned()),
            }))
        }
        _ => Err("expected NAMESPACE/NAME, or NAMESPACE/*".to_owned()),
    }
}

fn listen_port(text: &str) -> Result<Option<ListenPort>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    let parsed = text.split_once(':').and_then(|(written, opened)| {
        Some(ListenPort {
            written: port(written)?,
            opened: port(opened)?,
        })
    });
    let expected = || "expected two ports, such as 80:8080".to_owned();
    parsed.map(Some).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_patterns_are_parsed() {
        assert_eq!(network(""), Ok(None));
        assert_eq!(network("192.0.2.0/24"), Ok("192.0.2.0/24".parse().ok()));
        assert_eq!(network("192.0.2.7"), Ok("192.0.2.7/32".parse().ok()));
        assert_eq!(network("2001:db8::/64"), Ok("2001:db8::/64".parse().ok()));
        for wrong in ["192.0.2.0/33", "example.com", "192.0.2"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
        let of = |namespace: &str, name: Option<&str>| GatewayPattern {
            namespace: namespace.to_owned(),
            name: name.map(str::to_owned),
        };
        assert_eq!(pattern("a/b"), Ok(Some(of("a", Some("b")))));
        assert_eq!(pattern("a/*"), Ok(Some(of("a", None))));
        for wrong in ["a", "/b", "a/", "*", "a/b/c", "*/b", "a/b*"] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn controllers_have_a_domain_and_a_path() {
        assert_eq!(controller(CONTROLLER), Ok(CONTROLLER.to_owned()));
        for wrong in ["", "nope", "/path", "example.com/"] {
            assert!(controller(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn listen_ports_are_pairs() {
        assert_eq!(listen_port(""), Ok(None));
        let expected = ListenPort {
            written: 80,
            opened: 8080,
        };
        assert_eq!(listen_port("80:8080"), Ok(Some(expected)));
        for wrong in ["80", "80:", ":8080", "0:80", "80:0", "80:70000", "80:81:82"] {
            assert!(listen_port(wrong).is_err(), "{wrong}");
        }
    }
}
