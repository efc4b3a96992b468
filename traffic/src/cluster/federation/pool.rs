//! The endpoints of one member of a federation.

use std::sync::Arc;

use crate::registry::ClusterId;

/// The endpoints of one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Key of the member: `region/zone/group/cluster`.
    pub member: Arc<str>,
    /// The cluster with its endpoints.
    pub cluster: ClusterId,
    /// Tier of the member, 0 first.
    pub tier: u8,
    /// Weight among the available pools of its tier; never 0.
    pub weight: u32,
}

impl Pool {
    /// The name of the member: the last part of its key.
    pub fn name(&self) -> &str {
        self.member.rsplit('/').next().unwrap_or_default()
    }
}
