//! Addresses of Gateways: written ones, and ones that the controller assigns.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::catalog::gateway_api::{Gateways, ServedGateway};
use crate::kind::Name;
use crate::resource::gateway_api::AddressType;

/// Address in the status of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StatusAddress {
    /// Host name, of a load balancer.
    Host(String),
    /// IP address.
    Ip(IpAddr),
}

/// Addresses that Gateways may get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSources {
    /// Pool, of which each Gateway gets an address of its own.
    pub pool: Vec<IpNet>,
    /// Addresses of a load balancer that all Gateways share.
    pub shared: Vec<StatusAddress>,
}

/// Addresses of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Addresses that the Gateway has.
    pub addresses: Vec<StatusAddress>,
    /// Reason that it lacks one.
    pub problem: Option<AddressProblem>,
}

/// Reason that a Gateway lacks an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressProblem {
    /// No address is left to assign.
    NotAssigned,
    /// This written address is not one of the controller, or an older Gateway has it.
    NotUsable(IpAddr),
}

/// Addresses of a Gateway in its specification.
#[derive(Debug)]
pub struct GatewayAddresses {
    /// Written addresses.
    pub written: Vec<IpAddr>,
    /// Number of addresses to assign.
    pub open: usize,
}

impl GatewayAddresses {
    /// Returns the addresses that a Gateway asks for.
    pub fn of(gateway: &ServedGateway<'_>) -> Self {
        let all = &gateway.object.spec.addresses;
        let ip = |address: &AddressType| match address {
            AddressType::Ip(ip) => Some(*ip),
            AddressType::Other(_) => None,
        };
        let ips = || all.iter().filter_map(|one| ip(&one.address));
        Self {
            written: ips().flatten().collect(),
            open: match all.is_empty() {
                true => 1,
                false => ips().filter(Option::is_none).count(),
            },
        }
    }
}

impl AddressSources {
    fn is_in_pool(&self, ip: IpAddr) -> bool {
        self.pool.iter().any(|net| net.contains(&ip))
    }

    /// Assigns addresses to Gateways, the oldest first: it keeps the addresses of the pool that it holds, and no younger one gets
    /// them by writing them.
    pub(super) fn assign(
        &self,
        gateways: &Gateways<'_>,
        held: &HashMap<Name, Vec<StatusAddress>>,
    ) -> HashMap<Name, Assignment> {
        let mut taken: HashSet<IpAddr> = HashSet::new();
        let mut all: Vec<(Name, usize, Assignment)> = Vec::new();
        for gateway in gateways
            .iter()
            .filter(|gateway| gateway.problem().is_none())
        {
            let name = gateway.object.id.to_name();
            let GatewayAddresses { written, mut open } = GatewayAddresses::of(gateway);
            let mut assignment = Assignment::default();
            for ip in written {
                let is_shared = self.shared.contains(&StatusAddress::Ip(ip));
                match is_shared || (self.is_in_pool(ip) && taken.insert(ip)) {
                    true => assignment.addresses.push(StatusAddress::Ip(ip)),
                    false => assignment.problem = Some(AddressProblem::NotUsable(ip)),
                }
            }
            for address in held.get(&name).into_iter().flatten() {
                let StatusAddress::Ip(ip) = address else {
                    continue;
                };
                if open > 0 && self.is_in_pool(*ip) && taken.insert(*ip) {
                    assignment.addresses.push(address.clone());
                    open -= 1;
                }
            }
            all.push((name, open, assignment));
        }
        let mut free = self.pool.iter().flat_map(IpNet::hosts);
        for (_, open, assignment) in &mut all {
            for _ in 0..*open {
                match free.find(|ip| taken.insert(*ip)) {
                    Some(ip) => assignment.addresses.push(StatusAddress::Ip(ip)),
                    None if self.shared.is_empty() => {
                        assignment
                            .problem
                            .get_or_insert(AddressProblem::NotAssigned);
                    }
                    None => assignment.addresses.extend(self.shared.iter().cloned()),
                }
            }
        }
        let all = all.into_iter();
        all.map(|(name, _, assignment)| (name, assignment))
            .collect()
    }
}
