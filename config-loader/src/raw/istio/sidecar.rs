//! Sidecar as written.

use serde::Deserialize;

use super::{ConnectionPoolSettings, Destination, Port, ServerTlsSettings};
use crate::raw::{Field, Map};

/// Sidecar as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sidecar {
    /// Workloads in the Sidecar's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub workload_selector: Field<WorkloadSelector>,
    /// Inbound listeners. Default: the ports of the workload's services.
    pub ingress: Field<Vec<Field<IstioIngressListener>>>,
    /// Outbound listeners with the hosts that the workload can reach. Default: all hosts.
    pub egress: Field<Vec<Field<IstioEgressListener>>>,
    /// Limits of connections to the workload, for ports without their own.
    pub inbound_connection_pool: Field<ConnectionPoolSettings>,
    /// Policy for traffic to unknown destinations. Default: that of the mesh.
    pub outbound_traffic_policy: Field<OutboundTrafficPolicy>,
}

/// `workloadSelector` of a Sidecar or a ServiceEntry.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSelector {
    /// Labels that a workload must have.
    pub labels: Field<Map<String>>,
}

/// Inbound listener: an entry of `ingress`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioIngressListener {
    /// Port of the listener; required.
    pub port: Field<Port>,
    /// Address that the listener binds to.
    pub bind: Field<String>,
    /// Traffic capture: `DEFAULT`, `IPTABLES` or `NONE`, for a listener that clients dial.
    pub capture_mode: Field<String>,
    /// Address in the workload that receives the traffic: `IP:PORT` or `unix://PATH`. Default: the dialed address.
    pub default_endpoint: Field<String>,
    /// TLS settings for clients without mesh mTLS.
    pub tls: Field<ServerTlsSettings>,
    /// Limits of connections to the workload on this port.
    pub connection_pool: Field<ConnectionPoolSettings>,
}

/// Outbound listener: an entry of `egress`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioEgressListener {
    /// Port of the services. Default: all ports without an entry.
    pub port: Field<Port>,
    /// Address or Unix socket that the listener binds to.
    pub bind: Field<String>,
    /// Traffic capture: `DEFAULT`, `IPTABLES` or `NONE`, for a listener that the workload dials.
    pub capture_mode: Field<String>,
    /// Hosts that the workload can reach, `NAMESPACE/HOST`; at least one.
    pub hosts: Field<Vec<Field<String>>>,
}

/// Policy for traffic to unknown destinations (`outboundTrafficPolicy`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutboundTrafficPolicy {
    /// Mode: `REGISTRY_ONLY` (default) refuses the traffic, `ALLOW_ANY` sends it to the dialed address.
    pub mode: Field<String>,
    /// Deprecated: service that receives the traffic instead.
    pub egress_proxy: Field<Destination>,
}
