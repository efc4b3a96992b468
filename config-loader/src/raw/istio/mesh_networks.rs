//! MeshNetworks as written: networks of clusters and their gateways, under `meshNetworks` of the ConfigMap `istio`.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// Networks of the mesh.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MeshNetworks {
    /// Networks by name.
    pub networks: Field<Map<Network>>,
}

/// Network as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// Endpoints of the network.
    pub endpoints: Field<Vec<Field<NetworkEndpoints>>>,
    /// Gateways to the network.
    pub gateways: Field<Vec<Field<NetworkGateway>>>,
}

/// Endpoints of a network.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkEndpoints {
    /// Name of a cluster, whose endpoints are meant.
    pub from_registry: Field<String>,
    /// Addresses, such as `10.0.0.0/8`.
    pub from_cidr: Field<String>,
}

/// Gateway to a network. Fields of type [`IgnoredAny`] have no effect.
#[expect(missing_docs, reason = "fields without effect")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkGateway {
    /// IP address or DNS name.
    pub address: Field<String>,
    /// Port.
    pub port: Field<i64>,
    pub locality: Field<IgnoredAny>,
    pub registry_service_name: Field<IgnoredAny>,
}
