//! Gateway as written.

use serde::Deserialize;

use super::ServerTlsSettings;
use crate::raw::{Field, Map};

/// Gateway as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gateway {
    /// `servers`
    pub servers: Field<Vec<Field<Server>>>,
    /// `selector`
    pub selector: Field<Map<String>>,
}

/// An entry of `servers`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Server {
    /// `port`
    pub port: Field<Port>,
    /// `bind`
    pub bind: Field<String>,
    /// `hosts`
    pub hosts: Field<Vec<Field<String>>>,
    /// `tls`
    pub tls: Field<ServerTlsSettings>,
    /// `defaultEndpoint`
    pub default_endpoint: Field<String>,
    /// `name`
    pub name: Field<String>,
}

/// `port` of a Gateway server or a Sidecar listener.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    /// `number`
    pub number: Field<i64>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `name`
    pub name: Field<String>,
    /// `targetPort`
    pub target_port: Field<i64>,
}
