//! Ingress points of a load balancer.

use std::sync::Arc;

use super::{Host, Protocol};

/// Entry of `status.loadBalancer.ingress`.
#[derive(Clone, Debug)]
pub struct Ingress {
    /// Address of the load balancer.
    pub host: Host,
    /// Forwarding mode of the load balancer.
    pub mode: IngressMode,
    /// State of the ports.
    pub ports: Vec<IngressPort>,
}

/// Forwarding mode of a load balancer (`ipMode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngressMode {
    /// Traffic is sent to the address of a node or pod.
    Proxy,
    /// Traffic keeps the load balancer's address as its destination.
    #[default]
    Vip,
}

/// State of one port of a load balancer.
#[derive(Clone, Debug)]
pub struct IngressPort {
    /// Port of the service.
    pub port: u16,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Error of the port; `None` if it works.
    pub error: Option<Arc<str>>,
}
