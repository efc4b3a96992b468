//! Gateway, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Bind, Protocol, ServerTls};
use crate::span::Line;

/// Checked Gateway.
#[derive(Clone, Debug, Default)]
pub struct Gateway {
    /// Labels of the gateway workloads that the object configures, in any namespace; empty for all.
    pub selector: BTreeMap<String, String>,
    /// Servers of the gateway. Never empty; port names are unique.
    pub servers: Vec<Server>,
}

/// Server of a gateway: an entry of `servers`.
#[derive(Clone, Debug)]
pub struct Server {
    /// Name for display only; may be empty.
    pub name: Arc<str>,
    /// Port number; 0 with a Unix socket.
    pub port: u16,
    /// Name of the port.
    pub port_name: Arc<str>,
    /// Protocol of the port.
    pub protocol: Protocol,
    /// Address that the listener binds to.
    pub bind: Bind,
    /// Hosts that the server accepts. Never empty.
    pub hosts: Vec<ServerHost>,
    /// TLS settings; `None` on ports without TLS.
    pub tls: Option<Box<ServerTls>>,
    /// Whether plain HTTP requests are redirected to HTTPS. Only on HTTP ports.
    pub https_redirect: bool,
    /// Source line within the document.
    pub line: Line,
}

/// Host that a server accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHost {
    /// Namespaces whose VirtualServices may bind to the host.
    pub namespace: NamespaceFilter,
    /// Host name, wildcard (`*.` and a name, or `*`) or IP address.
    pub host: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Filter of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamespaceFilter {
    /// Every namespace.
    #[default]
    Any,
    /// One namespace.
    Only(Arc<str>),
}

impl NamespaceFilter {
    /// Whether the filter includes `namespace`.
    pub fn includes(&self, namespace: &str) -> bool {
        match self {
            NamespaceFilter::Any => true,
            NamespaceFilter::Only(only) => &**only == namespace,
        }
    }
}
