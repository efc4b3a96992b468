//! Pods of a headless service, which clients choose by the address that they dial or by a pod name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use super::Endpoint;
use crate::balance::EndpointIdx;
use crate::registry::Address;

/// Endpoints of a headless service by pod name, sorted.
#[derive(Debug, Default)]
pub struct Pods(Box<[(Arc<str>, EndpointIdx)]>);

impl Pods {
    /// Indexes the pod names of these endpoints.
    pub fn of(endpoints: &[Endpoint]) -> Self {
        let numbered = endpoints.iter().zip(0..);
        let named = numbered.filter_map(|(endpoint, number)| {
            let hostname = endpoint.hostname.as_ref()?;
            Some((Arc::clone(hostname), EndpointIdx(number)))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self(named.into())
    }

    /// The endpoint at an address that a client dialed; if none has the port, one with the same IP address: the port of
    /// the service may differ from that of its pods. `endpoints` must be the ones given to [`Pods::of`].
    pub fn at(&self, endpoints: &[Endpoint], dialed: SocketAddr) -> Option<EndpointIdx> {
        let ip = dialed.ip().to_canonical();
        // endpoints are sorted by address
        let least = Address::Ip(SocketAddr::new(ip, 0));
        let from = endpoints.partition_point(|endpoint| endpoint.address < least);
        let socket = |at: usize| endpoints.get(at)?.address.socket();
        let mut of_ip = (from..).take_while(|at| socket(*at).is_some_and(|own| own.ip() == ip));
        let dialed = SocketAddr::new(ip, dialed.port());
        let exact = of_ip.clone().find(|at| socket(*at) == Some(dialed));
        let found = exact.or_else(|| of_ip.next())?;
        u32::try_from(found).ok().map(EndpointIdx)
    }

    /// The endpoint with this DNS name of its pod: its hostname, else its address with dashes.
    pub fn named(&self, endpoints: &[Endpoint], hostname: &str) -> Option<EndpointIdx> {
        let at = self.0.partition_point(|(name, _)| **name < *hostname);
        match self.0.get(at) {
            Some((name, number)) if **name == *hostname => Some(*number),
            _ => self.at(endpoints, SocketAddr::new(dashed(hostname)?, 0)),
        }
    }
}

/// The pod name at the beginning of a host, if the rest is a name of the headless service, short or full. The host must
/// be in lower case and without a port.
pub fn pod_of_host<'h>(host: &'h str, service: &str) -> Option<&'h str> {
    // `redis.redis` is the service `redis` in the namespace `redis`, not a pod
    let beyond = service.strip_prefix(host);
    if beyond.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
        return None;
    }
    let (hostname, name) = host.split_once('.')?;
    let rest = service.strip_prefix(name)?;
    (!name.is_empty() && (rest.is_empty() || rest.starts_with('.'))).then_some(hostname)
}

/// Parses the DNS name of an endpoint without a hostname: `10-1-2-3`, `2001-db8--7`.
fn dashed(hostname: &str) -> Option<IpAddr> {
    let v4 = hostname.replace('-', ".").parse::<Ipv4Addr>();
    let v6 = || hostname.replace('-', ":").parse::<Ipv6Addr>();
    v4.map(IpAddr::from)
        .or_else(|_| v6().map(IpAddr::from))
        .ok()
}

#[cfg(test)]
mod tests;
