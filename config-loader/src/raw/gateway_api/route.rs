//! Routes as written.

use serde::Deserialize;

use super::{BackendReference, GrpcRule, HttpRule, ParentReference};
use crate::raw::Field;

/// HTTPRoute as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRoute {
    /// Gateways, ListenerSets or Services that use the route.
    pub parent_refs: Field<Vec<Field<ParentReference>>>,
    /// Use by default Gateways; experimental.
    pub use_default_gateways: Field<String>,
    /// Hosts. Default: those of the listener.
    pub hostnames: Field<Vec<Field<String>>>,
    /// Rules. Default: one without backends.
    pub rules: Field<Vec<Field<HttpRule>>>,
}

/// GRPCRoute as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcRoute {
    /// Gateways, ListenerSets or Services that use the route.
    pub parent_refs: Field<Vec<Field<ParentReference>>>,
    /// Use by default Gateways; experimental.
    pub use_default_gateways: Field<String>,
    /// Hosts. Default: those of the listener.
    pub hostnames: Field<Vec<Field<String>>>,
    /// Rules.
    pub rules: Field<Vec<Field<GrpcRule>>>,
}

/// TLSRoute as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsRoute {
    /// Gateways or ListenerSets that use the route.
    pub parent_refs: Field<Vec<Field<ParentReference>>>,
    /// Use by default Gateways; experimental.
    pub use_default_gateways: Field<String>,
    /// Server names (SNI).
    pub hostnames: Field<Vec<Field<String>>>,
    /// Exactly one rule.
    pub rules: Field<Vec<Field<L4Rule>>>,
}

/// TCPRoute as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpRoute {
    /// Gateways or ListenerSets that use the route.
    pub parent_refs: Field<Vec<Field<ParentReference>>>,
    /// Use by default Gateways; experimental.
    pub use_default_gateways: Field<String>,
    /// Exactly one rule.
    pub rules: Field<Vec<Field<L4Rule>>>,
}

/// Rule of a TLSRoute or a TCPRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct L4Rule {
    /// Name of the rule.
    pub name: Field<String>,
    /// Backends, by weight.
    pub backend_refs: Field<Vec<Field<BackendReference>>>,
}
