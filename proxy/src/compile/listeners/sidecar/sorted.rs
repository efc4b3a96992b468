//! The services of a listener, sorted by how their connections are told apart.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::compile::clusters::Clusters;
use crate::compile::service::Service as Host;
use crate::compile::service::port::{Carries, Port};
use crate::compile::service::workload::{Workload, WorkloadHost};

use super::named::addresses;

/// The services of a port by how their connections are told apart.
#[derive(Default)]
pub(super) struct Sorted {
    /// Requests, by host.
    pub(super) http: Vec<(Arc<Host>, Port)>,
    /// TLS, by SNI, else by address.
    pub(super) tls: Vec<(Arc<Host>, u16, Vec<IpNet>)>,
    /// By address: it has a listener of its own, since nothing has to be looked at.
    pub(super) exact: Vec<(IpAddr, Arc<Host>, Port)>,
    /// By blocks of addresses.
    pub(super) nets: Vec<(Arc<Host>, u16, Vec<IpNet>)>,
    /// Connections to any address, as the service has none.
    pub(super) anywhere: Vec<(Arc<Host>, u16)>,
    /// Addresses of services whose clients speak first.
    pub(super) client_first: Vec<IpAddr>,
}

impl Sorted {
    /// The application dials a listener with a socket itself: the address tells nothing of the service.
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

/// Addresses that clients of a service dial on this port.
pub(super) fn dialed(service: &Host, port: &Port, clusters: &Clusters<'_>) -> Vec<IpNet> {
    match service.is_headless {
        true => endpoints(service, port),
        false => addresses(service, clusters),
    }
}

/// Addresses of the endpoints of a headless service that take connections on the number of its port.
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
