//! MultiClusterService as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::{Condition, LoadBalancerStatus};

/// MultiClusterService as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MultiClusterService {
    /// `spec`
    pub spec: Field<MultiClusterServiceSpec>,
    /// `status`
    pub status: Field<ServiceStatus>,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MultiClusterServiceSpec {
    /// `types`
    pub types: Field<Vec<Field<String>>>,
    /// `ports`
    pub ports: Field<Vec<Field<ExposurePort>>>,
    /// `providerClusters`
    pub provider_clusters: Field<Vec<Field<ClusterSelector>>>,
    /// `consumerClusters`
    pub consumer_clusters: Field<Vec<Field<ClusterSelector>>>,
    /// `range`: deprecated
    pub range: Field<ExposureRange>,
    /// `serviceProvisionClusters`: deprecated
    pub service_provision_clusters: Field<Vec<Field<String>>>,
    /// `serviceConsumptionClusters`: deprecated
    pub service_consumption_clusters: Field<Vec<Field<String>>>,
}

/// An entry of `ports` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposurePort {
    /// `name`
    pub name: Field<String>,
    /// `port`
    pub port: Field<i64>,
}

/// Cluster name as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    /// `name`
    pub name: Field<String>,
}

/// `range` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposureRange {
    /// `clusterNames`
    pub cluster_names: Field<Vec<Field<String>>>,
}

/// `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    /// `conditions`
    pub conditions: Field<Vec<Field<Condition>>>,
    /// `loadBalancer`
    pub load_balancer: Field<LoadBalancerStatus>,
}
