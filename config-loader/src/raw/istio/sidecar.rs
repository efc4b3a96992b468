//! Sidecar as written.

use serde::Deserialize;

use super::{ConnectionPoolSettings, Destination, Port, ServerTlsSettings};
use crate::raw::{Field, Map};

/// Sidecar as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sidecar {
    /// `workloadSelector`
    pub workload_selector: Field<WorkloadSelector>,
    /// `ingress`
    pub ingress: Field<Vec<Field<IstioIngressListener>>>,
    /// `egress`
    pub egress: Field<Vec<Field<IstioEgressListener>>>,
    /// `inboundConnectionPool`
    pub inbound_connection_pool: Field<ConnectionPoolSettings>,
    /// `outboundTrafficPolicy`
    pub outbound_traffic_policy: Field<OutboundTrafficPolicy>,
}

/// `workloadSelector` of a Sidecar or a ServiceEntry.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSelector {
    /// `labels`
    pub labels: Field<Map<String>>,
}

/// An entry of `ingress`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioIngressListener {
    /// `port`
    pub port: Field<Port>,
    /// `bind`
    pub bind: Field<String>,
    /// `captureMode`
    pub capture_mode: Field<String>,
    /// `defaultEndpoint`
    pub default_endpoint: Field<String>,
    /// `tls`
    pub tls: Field<ServerTlsSettings>,
    /// `connectionPool`
    pub connection_pool: Field<ConnectionPoolSettings>,
}

/// An entry of `egress`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioEgressListener {
    /// `port`
    pub port: Field<Port>,
    /// `bind`
    pub bind: Field<String>,
    /// `captureMode`
    pub capture_mode: Field<String>,
    /// `hosts`
    pub hosts: Field<Vec<Field<String>>>,
}

/// `outboundTrafficPolicy`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutboundTrafficPolicy {
    /// `mode`
    pub mode: Field<String>,
    /// `egressProxy`
    pub egress_proxy: Field<Destination>,
}
