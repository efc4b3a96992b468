//! MeshNetworks: validation.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::diagnostic::codes::istio::{MC011, MC101};
use crate::raw::istio::{MeshNetworks as Raw, Network, NetworkGateway};
use crate::raw::{Field, Map};
use crate::resource::istio::{MeshConfig, MeshNetwork};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, api, scalar};

/// Returns a mesh configuration with these networks alone.
pub fn mesh_networks(raw: &Raw, check: &mut Check<'_>) -> MeshConfig {
    let networks = raw.networks.get().into_iter().flat_map(Map::iter);
    let networks = networks.filter_map(|(name, key, network)| {
        let network = network.get()?;
        Some(MeshNetwork {
            name: name.into(),
            clusters: clusters(network),
            addresses: addresses(network, key.span(), check),
            gateway: gateway(network, check),
        })
    });
    MeshConfig {
        networks: networks.collect(),
        ..MeshConfig::default()
    }
}

fn clusters(network: &Network) -> Vec<Arc<str>> {
    let endpoints = network.endpoints.get().into_iter().flatten();
    let endpoints = endpoints.filter_map(Field::get);
    let named = endpoints.filter_map(|endpoints| shared::text_arc(&endpoints.from_registry));
    named.collect()
}

fn addresses(network: &Network, span: Span, check: &mut Check<'_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for (field, endpoints) in scalar::items(&network.endpoints, check) {
        let Some(text) = shared::text(&endpoints.from_cidr) else {
            continue;
        };
        let parsed = text.parse::<IpNet>();
        match parsed.or_else(|_| text.parse::<IpAddr>().map(IpNet::from)) {
            Ok(network) => networks.push(network.trunc()),
            Err(_) => {
                let at = shared::location(field, span);
                let found = check.error(MC011, at, format!("`{text}` is not a network"));
                found.help("write addresses in CIDR notation, such as 10.0.0.0/8 or fd00::/8");
            }
        }
    }
    networks
}

/// Returns the first gateway with an address.
fn gateway(network: &Network, check: &mut Check<'_>) -> Option<(Arc<str>, u16)> {
    let mut first = None;
    for (field, gateway) in scalar::items(&network.gateways, check) {
        without_effect(gateway, field.span(), first.is_some(), check);
        let port = api::port(&gateway.port, check);
        first = first.or(shared::text_arc(&gateway.address).zip(port));
    }
    first
}

fn without_effect(gateway: &NetworkGateway, span: Span, is_further: bool, check: &mut Check<'_>) {
    let (message, help) = if gateway.registry_service_name.is_set() {
        (
            "`registryServiceName` has no effect",
            "write the `address` of the gateway's load balancer",
        )
    } else if is_further {
        (
            "a further gateway of a network has no effect",
            "write one address, such as that of a load balancer, or a DNS name of several",
        )
    } else if gateway.locality.is_set() {
        (
            "`locality` of a gateway has no effect",
            "write `locality` of the cluster in the file of --clusters",
        )
    } else {
        return;
    };
    check.warning(MC101, span, message).help(help);
}
