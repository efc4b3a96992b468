//! Cluster, checked.

use super::ClusterKey;
use crate::resource::core::Host;

/// Checked Cluster: one Kubernetes cluster of the fleet.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Full name of the cluster; its last part is the name of the object.
    pub key: ClusterKey,
    /// Address of the cluster's gateway; `None` if not set.
    pub gateway: Option<Host>,
    /// Port of the cluster's gateway.
    ///
    /// Default: [`Cluster::PORT_DEFAULT`].
    pub gateway_port: u16,
}

impl Cluster {
    /// Default port of a gateway.
    pub const PORT_DEFAULT: u16 = 80;
}
