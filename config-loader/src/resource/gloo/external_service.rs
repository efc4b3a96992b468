//! Service outside the mesh.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use crate::resource::core::Host;
use crate::span::Line;

/// Content of `externalService`. At least one host or address is set.
#[derive(Clone, Debug, Default)]
pub struct ExternalService {
    /// Name for display only.
    pub name: Arc<str>,
    /// Hosts of requests for the service, exact or with a leading `*.`.
    pub hosts: Vec<Arc<str>>,
    /// Destination addresses of connections to the service.
    pub addresses: Vec<IpNet>,
    /// Ports of the service.
    pub ports: Vec<ExternalPort>,
    /// Endpoints of the service. If empty, the requested host is resolved.
    pub endpoints: Vec<ExternalEndpoint>,
    /// Source line within the document.
    pub line: Line,
}

/// Port of an external service.
#[derive(Clone, Debug)]
pub struct ExternalPort {
    /// Port number that clients use.
    pub number: u16,
    /// Name of the port, by which endpoints map it.
    pub name: Arc<str>,
    /// Application protocol of the port.
    pub protocol: ExternalProtocol,
    /// Source line within the document.
    pub line: Line,
}

/// Application protocol of a port of an external service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalProtocol {
    /// `GRPC`
    Grpc,
    /// `HTTP`
    Http,
    /// `HTTP2`
    Http2,
    /// `HTTPS`
    Https,
    /// `MONGO`
    Mongo,
    /// `TCP`
    Tcp,
    /// `TLS`
    Tls,
}

/// Endpoint of an external service.
#[derive(Clone, Debug)]
pub struct ExternalEndpoint {
    /// Address of the endpoint.
    pub address: Host,
    /// Port number for each port name of the service. A missing name keeps the service's port number.
    pub ports: BTreeMap<Arc<str>, u16>,
    /// Source line within the document.
    pub line: Line,
}

impl ExternalEndpoint {
    /// Returns the port number of this endpoint for `port`.
    pub fn port_for(&self, port: &ExternalPort) -> u16 {
        self.ports.get(&port.name).copied().unwrap_or(port.number)
    }
}
