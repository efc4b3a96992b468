//! The networking.istio.io kinds: raw to checked.

use super::Check;
use crate::{raw, resource};

/// Checks a DestinationRule.
pub fn destination_rule(
    _raw: &raw::istio::DestinationRule,
    _check: &mut Check<'_>,
) -> resource::istio::DestinationRule {
    resource::istio::DestinationRule::default()
}

/// Checks a Gateway.
pub fn gateway(_raw: &raw::istio::Gateway, _check: &mut Check<'_>) -> resource::istio::Gateway {
    resource::istio::Gateway::default()
}

/// Checks a ServiceEntry.
pub fn service_entry(
    _raw: &raw::istio::ServiceEntry,
    _check: &mut Check<'_>,
) -> resource::istio::ServiceEntry {
    resource::istio::ServiceEntry::default()
}

/// Checks a Sidecar.
pub fn sidecar(_raw: &raw::istio::Sidecar, _check: &mut Check<'_>) -> resource::istio::Sidecar {
    resource::istio::Sidecar::default()
}

/// Checks a VirtualService.
pub fn virtual_service(
    _raw: &raw::istio::VirtualService,
    _check: &mut Check<'_>,
) -> resource::istio::VirtualService {
    resource::istio::VirtualService::default()
}

/// Checks a WorkloadEntry.
pub fn workload_entry(
    _raw: &raw::istio::WorkloadEntry,
    _check: &mut Check<'_>,
) -> resource::istio::WorkloadEntry {
    resource::istio::WorkloadEntry::default()
}
