//! Cluster, checked.

use super::ClusterKey;
use crate::resource::core::Host;

/// A checked Cluster: a cluster of the fleet.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its full name; the last part is the name of the object.
    pub key: ClusterKey,
    /// Where its gateway is, if it says one.
    pub gateway: Option<Host>,
    /// The port of its gateway.
    ///
    /// Default: [`Cluster::PORT_DEFAULT`].
    pub gateway_port: u16,
}

impl Cluster {
    /// The port of a gateway that has none.
    pub const PORT_DEFAULT: u16 = 80;
}
