//! Gateway as written.

use serde::Deserialize;

use super::ServerTlsSettings;
use crate::raw::{Field, Map};

/// Gateway as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gateway {
    /// Servers of the gateway; at least one.
    pub servers: Field<Vec<Field<Server>>>,
    /// Labels of the gateway workloads, in any namespace. Default: all.
    pub selector: Field<Map<String>>,
}

/// Server of a gateway: an entry of `servers`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Server {
    /// Port of the server; required.
    pub port: Field<Port>,
    /// Address or Unix socket (`unix://PATH`) that the listener binds to. Default: every address.
    pub bind: Field<String>,
    /// Hosts that the server accepts, `HOST` or `NAMESPACE/HOST`; at least one.
    pub hosts: Field<Vec<Field<String>>>,
    /// TLS settings; required for HTTPS and TLS.
    pub tls: Field<ServerTlsSettings>,
    /// Default endpoint; has no effect at a gateway.
    pub default_endpoint: Field<String>,
    /// Name for display only.
    pub name: Field<String>,
}

/// `port` of a Gateway server or a Sidecar listener.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    /// Port number, 1 to 65535; 0 or absent with a Unix socket.
    pub number: Field<i64>,
    /// Protocol of the port, such as `HTTP`, `HTTPS`, `TLS` or `TCP`.
    pub protocol: Field<String>,
    /// Name of the port.
    pub name: Field<String>,
    /// Target port; has no effect on a listener.
    pub target_port: Field<i64>,
}
