//! MeshConfig, checked.

use std::sync::Arc;

use traffic::authz::ExtAuthz;

/// Checked MeshConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshConfig {
    /// Providers of external authorization, by name.
    pub authorizers: Vec<Arc<ExtAuthz>>,
    /// Values for flags of the proxy that are not given, by the name of the flag.
    pub flags: Vec<(&'static str, String)>,
}
