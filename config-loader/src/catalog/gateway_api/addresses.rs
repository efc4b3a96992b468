//! Listeners by the address that proxies open for them.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

use super::distinct::conflict;
use super::status::GatewayAddresses;
use super::{Gateways, ServedGateway, ServedListener};
use crate::kind::ObjectRef;

/// Listener with its Gateway.
#[derive(Clone, Copy, Debug)]
pub struct PlacedListener<'g, 'a> {
    /// Gateway.
    pub gateway: &'g ServedGateway<'a>,
    /// Listener.
    pub served: &'g ServedListener<'a>,
}

/// Listeners of an address, those of the oldest Gateway first.
#[derive(Debug, Default)]
pub struct AddressListeners<'g, 'a> {
    /// Listeners that are opened.
    pub opened: Vec<PlacedListener<'g, 'a>>,
    /// Listeners that are not, each with the one of an older Gateway that has its host, or another protocol.
    pub lost: Vec<(PlacedListener<'g, 'a>, PlacedListener<'g, 'a>)>,
    /// Listeners that are not, since policies are attached to their Gateway, each with one of a Gateway to which others are.
    pub guarded: Vec<(PlacedListener<'g, 'a>, PlacedListener<'g, 'a>)>,
}

impl AddressListeners<'_, '_> {
    /// Closes the listeners of Gateways with attached policies if not all Gateways of the address have the same. `policies`
    /// are those attached to a Gateway.
    fn separate(&mut self, policies: &HashMap<&ObjectRef, Vec<&ObjectRef>>) {
        let of = |placed: &PlacedListener<'_, '_>| &policies[&placed.gateway.object.id];
        let Some(first) = self.opened.first().copied() else {
            return;
        };
        let Some(other) = self
            .opened
            .iter()
            .copied()
            .find(|one| of(one) != of(&first))
        else {
            return;
        };
        let (opened, guarded): (Vec<_>, Vec<_>) = self
            .opened
            .iter()
            .copied()
            .partition(|one| of(one).is_empty());
        let guarded = guarded.into_iter();
        let guarded = guarded.map(|one| match of(&one) == of(&first) {
            true => (one, other),
            false => (one, first),
        });
        self.guarded = guarded.collect();
        self.opened = opened;
    }
}

impl PlacedListener<'_, '_> {
    /// Whether the two cannot share an address.
    fn excludes(&self, other: &Self) -> bool {
        conflict(self.served.listener, other.served.listener).is_some()
    }
}

impl ServedGateway<'_> {
    /// Returns the addresses that proxies with this pool open for the Gateway: those of the pool that its status has, since the
    /// controller refuses what an older one holds. Without a pool: written ones, or else all addresses.
    pub fn addresses(&self, pool: &[IpNet]) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = match pool {
            [] => GatewayAddresses::of(self).written,
            pool => {
                let is_in_pool = |ip: &&IpAddr| pool.iter().any(|net| net.contains(*ip));
                let assigned = self.object.spec.assigned.iter().flatten();
                assigned.filter(is_in_pool).copied().collect()
            }
        };
        addresses.sort();
        addresses.dedup();
        if addresses.is_empty() && pool.is_empty() {
            addresses.push(Ipv6Addr::UNSPECIFIED.into());
        }
        addresses
    }
}

impl<'a> Gateways<'a> {
    /// Returns the listeners that proxies with a root namespace serve, by address. `addresses` are those of a Gateway, asked of
    /// the oldest first; none for one that is not opened. A TLS listener that cannot serve keeps its host.
    pub fn by_address(
        &self,
        root_namespace: &str,
        mut addresses: impl FnMut(&ServedGateway<'a>) -> Vec<IpAddr>,
    ) -> BTreeMap<SocketAddr, AddressListeners<'_, 'a>> {
        let mut by_address: BTreeMap<SocketAddr, AddressListeners<'_, 'a>> = BTreeMap::new();
        for gateway in self.iter().filter(|gateway| gateway.problem().is_none()) {
            let ips = addresses(gateway);
            let served = gateway.listeners.iter();
            let served = served.filter(|one| one.is_served() || one.keeps_host());
            for (served, ip) in served.flat_map(|one| ips.iter().map(move |ip| (one, *ip))) {
                let address = SocketAddr::new(ip, served.listener.port);
                let listeners = by_address.entry(address).or_default();
                let placed = PlacedListener { gateway, served };
                let mut opened = listeners.opened.iter();
                match opened.find(|older| placed.excludes(older)) {
                    None => listeners.opened.push(placed),
                    Some(older) => listeners.lost.push((placed, *older)),
                }
            }
        }
        let policies = self.iter().map(|one| {
            let policies = one.policies(self.view, root_namespace);
            (&one.object.id, policies)
        });
        let policies: HashMap<_, _> = policies.collect();
        for listeners in by_address.values_mut() {
            listeners.separate(&policies);
        }
        by_address
    }
}
