//! Addresses that a connection to an endpoint may use, and the order in which they are tried.

use std::net::SocketAddr;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::registry::{Address, Resolution};

/// Maximum addresses tried for one connection.
pub const ADDRESSES_MAX: usize = 8;

/// Other addresses of an endpoint's host, used if its own address refuses the connection.
#[derive(Clone, Debug, Default)]
pub enum Alternates {
    /// No other addresses.
    #[default]
    None,
    /// Addresses of the DNS name from which the endpoint's own address comes.
    ///
    /// Source: ServiceEntry `resolution: DNS`. The endpoint's own address is tried first.
    SameName(Arc<[SocketAddr]>),
    /// Addresses that a DNS name has at the time of connecting; the endpoint is the name itself.
    ///
    /// Source: ServiceEntry `resolution: DNS_ROUND_ROBIN`.
    Name {
        /// Result of resolving the name.
        resolution: Arc<Resolution>,
        /// Port of the endpoint.
        port: u16,
    },
}

/// Addresses at which an endpoint can be reached.
#[derive(Clone, Copy, Debug)]
pub struct Reach<'a> {
    /// Endpoint's own address.
    pub address: &'a Address,
    /// Other addresses of its host.
    pub alternates: &'a Alternates,
}

impl Reach<'_> {
    /// Returns the IP addresses in the order to try them; none for a Unix socket, at most [`ADDRESSES_MAX`].
    ///
    /// IPv4 and IPv6 alternate, so that a family that does not work costs one attempt only (RFC 8305, section 4).
    pub fn candidates(&self) -> SmallVec<[SocketAddr; 4]> {
        let own = self.address.socket();
        let others: SmallVec<[SocketAddr; 4]> = match self.alternates {
            Alternates::None => SmallVec::new(),
            Alternates::SameName(addresses) => SmallVec::from_slice(addresses),
            Alternates::Name { resolution, port } => {
                let latest = resolution.latest();
                latest
                    .iter()
                    .map(|ip| SocketAddr::new(*ip, *port))
                    .collect()
            }
        };
        let others = others.into_iter().filter(|other| Some(*other) != own);
        interleave(own.into_iter().chain(others))
    }
}

/// Returns the first address, then alternates between the families; each keeps its order.
fn interleave(addresses: impl Iterator<Item = SocketAddr>) -> SmallVec<[SocketAddr; 4]> {
    let all: SmallVec<[SocketAddr; 4]> = addresses.collect();
    let Some(first) = all.first().map(SocketAddr::is_ipv6) else {
        return all;
    };
    let mut same = all.iter().filter(|address| address.is_ipv6() == first);
    let mut other = all.iter().filter(|address| address.is_ipv6() != first);
    let mut ordered = SmallVec::new();
    while ordered.len() < ADDRESSES_MAX {
        let before = ordered.len();
        ordered.extend(same.next().copied());
        ordered.extend(other.next().copied());
        if ordered.len() == before {
            break;
        }
    }
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(own: &str, others: &[&str]) -> Vec<String> {
        let address = Address::Ip(own.parse().unwrap());
        let others = others.iter().map(|text| text.parse().unwrap()).collect();
        let reach = Reach {
            address: &address,
            alternates: &Alternates::SameName(others),
        };
        let candidates = reach.candidates();
        candidates.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn own_address_is_first_and_families_alternate() {
        let all = ["10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80", "[fd00::2]:80"];
        assert_eq!(
            candidates("10.0.0.2:80", &all),
            ["10.0.0.2:80", "[fd00::1]:80", "10.0.0.1:80", "[fd00::2]:80"]
        );
        assert_eq!(
            candidates("[fd00::2]:80", &all),
            ["[fd00::2]:80", "10.0.0.1:80", "[fd00::1]:80", "10.0.0.2:80"]
        );
        assert_eq!(candidates("10.0.0.1:80", &[]), ["10.0.0.1:80"]);
    }

    #[test]
    fn number_of_attempted_addresses_is_bounded() {
        let many: Vec<String> = (1..40).map(|last| format!("10.0.0.{last}:80")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(candidates("10.0.0.9:80", &many).len(), ADDRESSES_MAX);
    }

    #[test]
    fn addresses_are_attempted_in_the_order_of_the_last_answer() {
        let registry = crate::registry::Registry::default();
        let ips = |text: [&str; 2]| text.map(|ip| ip.parse().unwrap()).to_vec();
        registry.set_resolution("a.test", ips(["10.0.0.1", "10.0.0.2"]));
        let address = Address::Name {
            name: "a.test".into(),
            port: 80,
        };
        let alternates = Alternates::Name {
            resolution: registry.resolution("a.test").unwrap(),
            port: 80,
        };
        let reach = Reach {
            address: &address,
            alternates: &alternates,
        };
        assert_eq!(reach.candidates()[0].to_string(), "10.0.0.1:80");
        registry.set_resolution("a.test", ips(["10.0.0.2", "10.0.0.1"]));
        assert_eq!(reach.candidates()[0].to_string(), "10.0.0.2:80");
    }
}
