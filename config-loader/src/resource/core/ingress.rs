//! Where a load balancer accepts traffic.

use std::sync::Arc;

use super::{Host, Protocol};

/// An entry of `status.loadBalancer.ingress`.
#[derive(Clone, Debug)]
pub struct Ingress {
    /// Where it is.
    pub host: Host,
    /// How it hands on what it accepts.
    pub mode: IngressMode,
    /// What is said about its ports.
    pub ports: Vec<IngressPort>,
}

/// How a load balancer hands on what it accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngressMode {
    /// To the address of a node or a pod.
    Proxy,
    /// To its own address.
    #[default]
    Vip,
}

/// The state of one port of a load balancer.
#[derive(Clone, Debug)]
pub struct IngressPort {
    /// The service's port.
    pub port: u16,
    /// The transport protocol.
    pub protocol: Protocol,
    /// What is wrong with it; none if nothing is.
    pub error: Option<Arc<str>>,
}
