//! The Kubernetes core kinds: raw to checked.

use super::Check;
use crate::{raw, resource};

/// Checks a EndpointSlice.
pub fn endpoint_slice(
    _raw: &raw::core::EndpointSlice,
    _check: &mut Check<'_>,
) -> resource::core::EndpointSlice {
    resource::core::EndpointSlice::default()
}

/// Checks a Secret.
pub fn secret(_raw: &raw::core::Secret, _check: &mut Check<'_>) -> resource::core::Secret {
    resource::core::Secret::default()
}

/// Checks a Service.
pub fn service(_raw: &raw::core::Service, _check: &mut Check<'_>) -> resource::core::Service {
    resource::core::Service::default()
}
