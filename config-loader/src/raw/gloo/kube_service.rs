//! Service of a Kubernetes cluster, as written.

use serde::Deserialize;

use super::ClusterObjectRef;
use crate::raw::{Field, IntOrString, Map};

/// Service of a Kubernetes cluster (`kubeService`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeService {
    /// Name, namespace and cluster of the service (`ref`).
    #[serde(rename = "ref")]
    pub reference: Field<ClusterObjectRef>,
    /// Labels of the service's pods.
    pub workload_selector_labels: Field<Map<String>>,
    /// Labels of the service.
    pub labels: Field<Map<String>>,
    /// Ports of the service.
    pub ports: Field<Vec<Field<KubeServicePort>>>,
    /// Label keys with several values among the workloads, and these values; for information.
    pub subsets: Field<Map<Subset>>,
    /// Region of all endpoints.
    pub region: Field<String>,
    /// Groups of endpoints.
    pub endpoint_subsets: Field<Vec<Field<EndpointsSubset>>>,
    /// Addresses at which clients outside of the cluster reach the service.
    pub external_addresses: Field<Vec<Field<ExternalAddress>>>,
    /// Type of the service, by name or number: `CLUSTER_IP` (default), `NODE_PORT`, `LOAD_BALANCER`, ...
    pub service_type: Field<IntOrString>,
}

/// Port of the service: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServicePort {
    /// Port number that clients use.
    pub port: Field<i64>,
    /// Name of the port. Default: the protocol.
    pub name: Field<String>,
    /// Protocol, such as `TCP` or `HTTP`.
    pub protocol: Field<String>,
    /// Application protocol.
    pub app_protocol: Field<String>,
    /// Port of the endpoints by name; not together with `targetPortNumber`.
    pub target_port_name: Field<String>,
    /// Port of the endpoints by number.
    pub target_port_number: Field<i64>,
    /// Port number on every node.
    pub node_port: Field<i64>,
}

/// Values of a label: a value of `subsets`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// Values of the label.
    pub values: Field<Vec<Field<String>>>,
}

/// Group of endpoints with the same ports: an entry of `endpointSubsets`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointsSubset {
    /// Endpoints of the group.
    pub endpoints: Field<Vec<Field<Endpoint>>>,
    /// Ports of the endpoints.
    pub ports: Field<Vec<Field<EndpointPort>>>,
}

/// Workload of the service: an entry of `endpoints`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// IP address of the workload.
    pub ip_address: Field<String>,
    /// Labels of the workload, by which subsets select it.
    pub labels: Field<Map<String>>,
    /// Zone and sub-zone of the workload.
    pub sub_locality: Field<SubLocality>,
}

/// Zone and sub-zone of a workload (`subLocality`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubLocality {
    /// Zone within the service's region.
    pub zone: Field<String>,
    /// Sub-zone within the zone.
    pub sub_zone: Field<String>,
}

/// Port of a group of endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// Port number.
    pub port: Field<i64>,
    /// Name of the port.
    pub name: Field<String>,
    /// Protocol of the port.
    pub protocol: Field<String>,
    /// Application protocol.
    pub app_protocol: Field<String>,
}

/// Address outside of the cluster: an entry of `externalAddresses`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalAddress {
    /// DNS name.
    pub dns_name: Field<String>,
    /// IP address.
    pub ip: Field<String>,
}
