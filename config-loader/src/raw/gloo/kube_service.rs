//! Service of a Kubernetes cluster, as written.

use serde::Deserialize;

use super::ClusterObjectRef;
use crate::raw::{Field, IntOrString, Map};

/// `kubeService` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeService {
    /// `ref`
    #[serde(rename = "ref")]
    pub reference: Field<ClusterObjectRef>,
    /// `workloadSelectorLabels`
    pub workload_selector_labels: Field<Map<String>>,
    /// `labels`
    pub labels: Field<Map<String>>,
    /// `ports`
    pub ports: Field<Vec<Field<KubeServicePort>>>,
    /// `subsets`
    pub subsets: Field<Map<Subset>>,
    /// `region`
    pub region: Field<String>,
    /// `endpointSubsets`
    pub endpoint_subsets: Field<Vec<Field<EndpointsSubset>>>,
    /// `externalAddresses`
    pub external_addresses: Field<Vec<Field<ExternalAddress>>>,
    /// `serviceType`
    pub service_type: Field<IntOrString>,
}

/// An entry of `ports` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServicePort {
    /// `port`
    pub port: Field<i64>,
    /// `name`
    pub name: Field<String>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `appProtocol`
    pub app_protocol: Field<String>,
    /// `targetPortName`
    pub target_port_name: Field<String>,
    /// `targetPortNumber`
    pub target_port_number: Field<i64>,
    /// `nodePort`
    pub node_port: Field<i64>,
}

/// A value of `subsets` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// `values`
    pub values: Field<Vec<Field<String>>>,
}

/// An entry of `endpointSubsets` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointsSubset {
    /// `endpoints`
    pub endpoints: Field<Vec<Field<Endpoint>>>,
    /// `ports`
    pub ports: Field<Vec<Field<EndpointPort>>>,
}

/// An endpoint as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// `ipAddress`
    pub ip_address: Field<String>,
    /// `labels`
    pub labels: Field<Map<String>>,
    /// `subLocality`
    pub sub_locality: Field<SubLocality>,
}

/// `subLocality` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubLocality {
    /// `zone`
    pub zone: Field<String>,
    /// `subZone`
    pub sub_zone: Field<String>,
}

/// A port of endpoints as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// `port`
    pub port: Field<i64>,
    /// `name`
    pub name: Field<String>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `appProtocol`
    pub app_protocol: Field<String>,
}

/// An entry of `externalAddresses` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalAddress {
    /// `dnsName`
    pub dns_name: Field<String>,
    /// `ip`
    pub ip: Field<String>,
}
