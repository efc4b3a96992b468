//! The flomesh.io and multicluster.flomesh.io kinds: raw to checked.

use super::Check;
use crate::{raw, resource};

/// Checks a GlobalTrafficPolicy.
pub fn global_traffic_policy(
    _raw: &raw::flomesh::GlobalTrafficPolicy,
    _check: &mut Check<'_>,
) -> resource::flomesh::GlobalTrafficPolicy {
    resource::flomesh::GlobalTrafficPolicy::default()
}

/// Checks a ServiceExport.
pub fn service_export(
    _raw: &raw::flomesh::ServiceExport,
    _check: &mut Check<'_>,
) -> resource::flomesh::ServiceExport {
    resource::flomesh::ServiceExport::default()
}

/// Checks a ServiceImport.
pub fn service_import(
    _raw: &raw::flomesh::ServiceImport,
    _check: &mut Check<'_>,
) -> resource::flomesh::ServiceImport {
    resource::flomesh::ServiceImport::default()
}
