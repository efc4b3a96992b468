//! Gateways of the Gateway API that a proxy serves.

use std::collections::HashSet;
use std::net::IpAddr;

use config_loader::ObjectRef;
use config_loader::catalog::gateway_api::{CONTROLLER, ServedGateway};
use ipnet::IpNet;

/// Gateways that a proxy serves, and the addresses that it opens for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatewaySettings {
    /// Name of the controller. Flag `--gateway-controller`, default `strait.io/gateway-controller`.
    pub controller: String,
    /// Pool of assigned addresses. Flag `--gateway-addresses`, default none.
    pub pool: Vec<IpNet>,
    /// Gateways; empty for all. Flag `--gateways`.
    pub only: Vec<GatewayPattern>,
    /// Ports that are opened in place of others. Flag `--listen-ports`, default none.
    pub ports: Vec<ListenPort>,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            controller: CONTROLLER.to_owned(),
            pool: Vec::new(),
            only: Vec::new(),
            ports: Vec::new(),
        }
    }
}

impl GatewaySettings {
    /// Returns the addresses that are opened for a Gateway; none for one that is not served. Addresses of the pool are of the
    /// oldest Gateway that has them: `taken` are those of older ones, to which they are added.
    pub fn addresses(
        &self,
        gateway: &ServedGateway<'_>,
        taken: &mut HashSet<IpAddr>,
    ) -> Vec<IpAddr> {
        // that of Ingresses has no status with addresses of the pool, and the flag `--ingress` names it
        if gateway.object.provenance.written_as.is_some() {
            return gateway.addresses(&[]);
        }
        let mut addresses = gateway.addresses(&self.pool);
        if !self.pool.is_empty() {
            addresses.retain(|ip| taken.insert(*ip));
        }
        let mut only = self.only.iter();
        match self.only.is_empty() || only.any(|one| one.includes(&gateway.object.id)) {
            true => addresses,
            false => Vec::new(),
        }
    }

    /// Returns the port that is opened for the port of a listener.
    pub fn opened(&self, written: u16) -> u16 {
        let found = self.ports.iter().find(|one| one.written == written);
        found.map_or(written, |one| one.opened)
    }
}

/// Port that is opened in place of that of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenPort {
    /// Port of the listener.
    pub written: u16,
    /// Port that is opened.
    pub opened: u16,
}

/// Gateway, or all of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatewayPattern {
    /// Namespace.
    pub namespace: String,
    /// Name; `None` for all.
    pub name: Option<String>,
}

impl GatewayPattern {
    fn includes(&self, gateway: &ObjectRef) -> bool {
        let mut name = self.name.iter();
        *self.namespace == *gateway.namespace && name.all(|name| **name == *gateway.name)
    }
}
