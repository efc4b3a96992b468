//! Gateway, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Bind, Protocol, ServerTls};
use crate::span::Line;

/// A checked Gateway.
#[derive(Clone, Debug, Default)]
pub struct Gateway {
    /// Labels of the gateway workloads that it configures, in any namespace; empty for all.
    pub selector: BTreeMap<String, String>,
    /// What they serve. Never empty; port names are unique.
    pub servers: Vec<Server>,
}

/// An entry of `servers`.
#[derive(Clone, Debug)]
pub struct Server {
    /// A label only; empty if it has none.
    pub name: Arc<str>,
    /// The port; 0 with a Unix socket.
    pub port: u16,
    /// The name of the port.
    pub port_name: Arc<str>,
    /// What the port speaks.
    pub protocol: Protocol,
    /// What it binds to.
    pub bind: Bind,
    /// The hosts that it serves. Never empty.
    pub hosts: Vec<ServerHost>,
    /// TLS; none on ports without it.
    pub tls: Option<Box<ServerTls>>,
    /// Whether requests that did not come by https are redirected to it. Only on HTTP ports.
    pub https_redirect: bool,
    /// Where it was written.
    pub line: Line,
}

/// A host that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHost {
    /// The namespaces whose VirtualServices may bind.
    pub namespace: NamespaceFilter,
    /// A name, `*.` and a name, `*` or an address.
    pub host: Arc<str>,
    /// Where it was written.
    pub line: Line,
}

/// Which namespaces are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamespaceFilter {
    /// Every one.
    #[default]
    Any,
    /// This one.
    Only(Arc<str>),
}

impl NamespaceFilter {
    /// Whether `namespace` is meant.
    pub fn includes(&self, namespace: &str) -> bool {
        match self {
            NamespaceFilter::Any => true,
            NamespaceFilter::Only(only) => &**only == namespace,
        }
    }
}
