//! Sidecar: raw to checked.

use super::Check;
use crate::{raw, resource};

/// Checks a Sidecar.
pub fn sidecar(_raw: &raw::istio::Sidecar, _check: &mut Check<'_>) -> resource::istio::Sidecar {
    resource::istio::Sidecar::default()
}
