//! Services of a listener, grouped by the property that identifies their connections.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::compile::clusters::Clusters;
use crate::compile::service::Service as Host;
use crate::compile::service::port::{Carries, Port};
use crate::compile::service::workload::{Workload, WorkloadHost};

/// Services of a port, grouped by the property that identifies their connections.
#[derive(Default)]
pub(super) struct Sorted {
    /// Services that are identified by the host of a request.
    pub(super) http: Vec<(Arc<Host>, Port)>,
    /// Services that are identified by SNI, else by address.
    pub(super) tls: Vec<(Arc<Host>, u16, Vec<IpNet>)>,
    /// Services with a listener for their single address, which needs no inspection of bytes.
    pub(super) exact: Vec<(IpAddr, Arc<Host>, Port)>,
    /// Services that are identified by a block of addresses.
    pub(super) nets: Vec<(Arc<Host>, u16, Vec<IpNet>)>,
    /// Services without an address, which match connections to any address.
    pub(super) anywhere: Vec<(Arc<Host>, u16)>,
    /// Addresses of services whose clients speak first.
    pub(super) client_first: Vec<IpAddr>,
}

impl Sorted {
    /// Groups the services. On a listener with its own socket, the dialed address does not identify the service.
    pub(super) fn of(
        services: &[(Arc<Host>, Port)],
        has_socket: bool,
        clusters: &Clusters<'_>,
    ) -> Self {
        let mut sorted = Self::default();
        for (service, port) in services {
            sorted.put(service, port, clusters);
            if has_socket && matches!(port.carries, Carries::Detect | Carries::Bytes) {
                sorted.anywhere.push((Arc::clone(service), port.number));
            }
        }
        sorted
    }

    fn put(&mut self, service: &Arc<Host>, port: &Port, clusters: &Clusters<'_>) {
        let dialed = dialed(service, port, clusters);
        let is_single = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
        let (single, nets): (Vec<IpNet>, Vec<IpNet>) =
            dialed.iter().partition(|net| is_single(net));
        let single = single.iter().map(IpNet::addr);
        match port.carries {
            Carries::GrpcWeb | Carries::Http => {
                self.http.push((Arc::clone(service), port.clone()));
                self.client_first.extend(single);
            }
            Carries::Tls => {
                self.tls
                    .push((Arc::clone(service), port.number, dialed.clone()));
                self.client_first.extend(single);
            }
            Carries::Detect | Carries::Bytes => {
                if port.carries == Carries::Detect {
                    self.http.push((Arc::clone(service), port.clone()));
                }
                let own = single.map(|address| (address, Arc::clone(service), port.clone()));
                self.exact.extend(own);
                if !nets.is_empty() {
                    self.nets.push((Arc::clone(service), port.number, nets));
                }
                if dialed.is_empty() && !service.is_headless && port.carries == Carries::Bytes {
                    self.anywhere.push((Arc::clone(service), port.number));
                }
            }
        }
    }
}

/// Returns the addresses that clients dial for a service.
pub(super) fn addresses(service: &Host, clusters: &Clusters<'_>) -> Vec<ipnet::IpNet> {
    let claimed = clusters.vips().of(&service.host);
    match service.is_outside || !claimed.is_empty() {
        true => claimed.to_vec(),
        false => service.addresses.clone(),
    }
}

/// Returns the addresses that clients of a service dial on this port.
pub(super) fn dialed(service: &Host, port: &Port, clusters: &Clusters<'_>) -> Vec<IpNet> {
    match service.is_headless {
        true => endpoints(service, port),
        false => addresses(service, clusters),
    }
}

/// Returns the addresses of a headless service's endpoints that accept connections on the number of its port.
fn endpoints(service: &Host, port: &Port) -> Vec<IpNet> {
    let of = |workload: &Workload| match workload.host {
        WorkloadHost::Ip(ip) if workload.port(port) == Some(port.number) => Some(IpNet::from(ip)),
        _ => None,
    };
    let mut found: Vec<_> = service.endpoints.iter().filter_map(of).collect();
    found.sort_unstable();
    found.dedup();
    found
}
