//! Service outside the mesh, as written.

use serde::Deserialize;

use crate::raw::{Field, Map};

/// Service outside of the mesh (`externalService`). It has at least one host or address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalService {
    /// Name for display only.
    pub name: Field<String>,
    /// Hosts of requests for the service, exact or with a leading `*.`.
    pub hosts: Field<Vec<Field<String>>>,
    /// IP addresses or CIDR blocks that clients dial.
    pub addresses: Field<Vec<Field<String>>>,
    /// Ports of the service.
    pub ports: Field<Vec<Field<ExternalServicePort>>>,
    /// Endpoints of the service. Default: the addresses of the requested host.
    pub endpoints: Field<Vec<Field<ExternalEndpoint>>>,
}

/// Port of the service: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalServicePort {
    /// Port number that clients use.
    pub number: Field<i64>,
    /// Name of the port, by which endpoints map it.
    pub name: Field<String>,
    /// Application protocol: `GRPC`, `HTTP`, `HTTP2`, `HTTPS`, `MONGO`, `TCP` or `TLS`.
    pub protocol: Field<String>,
}

/// Endpoint of the service: an entry of `endpoints`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalEndpoint {
    /// IP address or DNS name of the endpoint.
    pub address: Field<String>,
    /// Port numbers by name of the service's port. A missing name keeps the service's number.
    pub ports: Field<Map<i64>>,
}
