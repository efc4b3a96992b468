//! The networking.karmada.io kinds: raw to checked.

use super::Check;
use crate::{raw, resource};

/// Checks a MultiClusterService.
pub fn multi_cluster_service(
    _raw: &raw::karmada::MultiClusterService,
    _check: &mut Check<'_>,
) -> resource::karmada::MultiClusterService {
    resource::karmada::MultiClusterService::default()
}
