//! VirtualService as written.

use serde::Deserialize;

use super::{Destination, HttpRoute};
use crate::raw::{Field, Map};

/// VirtualService as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualService {
    /// Hosts of the requests, exact or wildcard. Empty in a delegate.
    pub hosts: Field<Vec<Field<String>>>,
    /// Gateways that the object applies to; `mesh` for sidecars. Default: `mesh`.
    pub gateways: Field<Vec<Field<String>>>,
    /// Rules for HTTP requests, in order.
    pub http: Field<Vec<Field<HttpRoute>>>,
    /// Rules for TLS connections that are not terminated, by SNI, in order.
    pub tls: Field<Vec<Field<TlsRoute>>>,
    /// Rules for other connections, in order.
    pub tcp: Field<Vec<Field<TcpRoute>>>,
    /// Namespaces that may use the object: `*`, `.` (its own) or names. Default: all.
    pub export_to: Field<Vec<Field<String>>>,
}

/// TLS rule: an entry of `tls`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsRoute {
    /// Match blocks, of which any must match; at least one.
    pub r#match: Field<Vec<Field<TlsMatchAttributes>>>,
    /// Weighted destinations of the connection; at least one.
    pub route: Field<Vec<Field<RouteDestination>>>,
}

/// Match block of a TLS rule. All conditions must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsMatchAttributes {
    /// SNI names, exact or wildcard, of which any must match; at least one.
    pub sni_hosts: Field<Vec<Field<String>>>,
    /// Subnets of the address that the client dialed. Default: any.
    pub destination_subnets: Field<Vec<Field<String>>>,
    /// Port of the listener. Default: any.
    pub port: Field<i64>,
    /// Labels that the proxy's workload must have.
    pub source_labels: Field<Map<String>>,
    /// Gateways of this match block. Default: those of the VirtualService.
    pub gateways: Field<Vec<Field<String>>>,
    /// Namespace of the proxy's workload. Default: any.
    pub source_namespace: Field<String>,
}

/// TCP rule: an entry of `tcp`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpRoute {
    /// Match blocks, of which any must match. Default: every connection.
    pub r#match: Field<Vec<Field<L4MatchAttributes>>>,
    /// Weighted destinations of the connection; at least one.
    pub route: Field<Vec<Field<RouteDestination>>>,
}

/// Match block of a TCP rule. All conditions must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct L4MatchAttributes {
    /// Subnets of the address that the client dialed. Default: any.
    pub destination_subnets: Field<Vec<Field<String>>>,
    /// Port of the listener. Default: any.
    pub port: Field<i64>,
    /// Subnet of the client. Ignored unless `--enforce-source-subnet` is set, as in Istio.
    pub source_subnet: Field<String>,
    /// Labels that the proxy's workload must have.
    pub source_labels: Field<Map<String>>,
    /// Gateways of this match block. Default: those of the VirtualService.
    pub gateways: Field<Vec<Field<String>>>,
    /// Namespace of the proxy's workload. Default: any.
    pub source_namespace: Field<String>,
}

/// Weighted destination of connections: an entry of the `route` of a `tls` or `tcp` rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteDestination {
    /// Service and subset of the destination; required.
    pub destination: Field<Destination>,
    /// Share relative to the other destinations. Default: 0; without effect for a single destination.
    pub weight: Field<i64>,
}
