//! MultiClusterService as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::{Condition, LoadBalancerStatus};

/// MultiClusterService as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MultiClusterService {
    /// Clusters that may serve and use the service.
    pub spec: Field<MultiClusterServiceSpec>,
    /// Conditions and load balancer addresses.
    pub status: Field<ServiceStatus>,
}

/// Clusters that may serve and use the service (`spec`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MultiClusterServiceSpec {
    /// Exposure: one of `CrossCluster` and `LoadBalancer`; required.
    pub types: Field<Vec<Field<String>>>,
    /// Exposed ports. Default: all.
    pub ports: Field<Vec<Field<ExposurePort>>>,
    /// Clusters whose endpoints may serve. Default: all.
    pub provider_clusters: Field<Vec<Field<ClusterSelector>>>,
    /// Clusters whose proxies may use endpoints of other clusters. Default: all.
    pub consumer_clusters: Field<Vec<Field<ClusterSelector>>>,
    /// `range`: deprecated
    pub range: Field<ExposureRange>,
    /// `serviceProvisionClusters`: deprecated
    pub service_provision_clusters: Field<Vec<Field<String>>>,
    /// `serviceConsumptionClusters`: deprecated
    pub service_consumption_clusters: Field<Vec<Field<String>>>,
}

/// Exposed port: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposurePort {
    /// Port name, if it must also match.
    pub name: Field<String>,
    /// Port number of the service.
    pub port: Field<i64>,
}

/// Cluster by name: an entry of `providerClusters` or `consumerClusters`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    /// Name of the cluster; required.
    pub name: Field<String>,
}

/// Clusters that the service is exposed to (`range`, deprecated).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposureRange {
    /// Names of the clusters.
    pub cluster_names: Field<Vec<Field<String>>>,
}

/// Conditions and load balancer addresses (`status`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    /// Conditions that controllers report.
    pub conditions: Field<Vec<Field<Condition>>>,
    /// Load balancer addresses for external clients.
    pub load_balancer: Field<LoadBalancerStatus>,
}
