//! VirtualService as written.

use serde::Deserialize;

use super::{Destination, HttpRoute};
use crate::raw::{Field, Map};

/// VirtualService as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualService {
    /// `hosts`
    pub hosts: Field<Vec<Field<String>>>,
    /// `gateways`
    pub gateways: Field<Vec<Field<String>>>,
    /// `http`
    pub http: Field<Vec<Field<HttpRoute>>>,
    /// `tls`
    pub tls: Field<Vec<Field<TlsRoute>>>,
    /// `tcp`
    pub tcp: Field<Vec<Field<TcpRoute>>>,
    /// `exportTo`
    pub export_to: Field<Vec<Field<String>>>,
}

/// An entry of `tls`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsRoute {
    /// `match`
    pub r#match: Field<Vec<Field<TlsMatchAttributes>>>,
    /// `route`
    pub route: Field<Vec<Field<RouteDestination>>>,
}

/// A match block of `tls`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsMatchAttributes {
    /// `sniHosts`
    pub sni_hosts: Field<Vec<Field<String>>>,
    /// `destinationSubnets`
    pub destination_subnets: Field<Vec<Field<String>>>,
    /// `port`
    pub port: Field<i64>,
    /// `sourceLabels`
    pub source_labels: Field<Map<String>>,
    /// `gateways`
    pub gateways: Field<Vec<Field<String>>>,
    /// `sourceNamespace`
    pub source_namespace: Field<String>,
}

/// An entry of `tcp`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpRoute {
    /// `match`
    pub r#match: Field<Vec<Field<L4MatchAttributes>>>,
    /// `route`
    pub route: Field<Vec<Field<RouteDestination>>>,
}

/// A match block of `tcp`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct L4MatchAttributes {
    /// `destinationSubnets`
    pub destination_subnets: Field<Vec<Field<String>>>,
    /// `port`
    pub port: Field<i64>,
    /// `sourceSubnet`
    pub source_subnet: Field<String>,
    /// `sourceLabels`
    pub source_labels: Field<Map<String>>,
    /// `gateways`
    pub gateways: Field<Vec<Field<String>>>,
    /// `sourceNamespace`
    pub source_namespace: Field<String>,
}

/// An entry of the `route` of a `tls` or `tcp` rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteDestination {
    /// `destination`
    pub destination: Field<Destination>,
    /// `weight`
    pub weight: Field<i64>,
}
