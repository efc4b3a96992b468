//! A service outside the mesh.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use crate::resource::core::Host;
use crate::span::Line;

/// `externalService`. Has hosts or addresses.
#[derive(Clone, Debug, Default)]
pub struct ExternalService {
    /// A label only.
    pub name: Arc<str>,
    /// The hosts that select it, exact or with a leading `*.`.
    pub hosts: Vec<Arc<str>>,
    /// The addresses that select it.
    pub addresses: Vec<IpNet>,
    /// Its ports.
    pub ports: Vec<ExternalPort>,
    /// Where it is served. If empty, the requested host itself is resolved.
    pub endpoints: Vec<ExternalEndpoint>,
    /// Where it was written.
    pub line: Line,
}

/// A port of an external service.
#[derive(Clone, Debug)]
pub struct ExternalPort {
    /// The port that clients use.
    pub number: u16,
    /// Its name, by which endpoints map it.
    pub name: Arc<str>,
    /// What it speaks.
    pub protocol: ExternalProtocol,
    /// Where it was written.
    pub line: Line,
}

/// What a port of an external service speaks.
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

/// Where an external service is served.
#[derive(Clone, Debug)]
pub struct ExternalEndpoint {
    /// Its address.
    pub address: Host,
    /// Its port for each port name of the service; a name that is missing keeps the service's number.
    pub ports: BTreeMap<Arc<str>, u16>,
    /// Where it was written.
    pub line: Line,
}

impl ExternalEndpoint {
    /// The port of this endpoint that serves `port`.
    pub fn port_for(&self, port: &ExternalPort) -> u16 {
        self.ports.get(&port.name).copied().unwrap_or(port.number)
    }
}
