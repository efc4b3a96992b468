//! The discovery.mesh.gloo.solo.io kinds: raw to checked.

use super::Check;
use crate::{raw, resource};

/// Checks a Destination.
pub fn destination(
    _raw: &raw::gloo::Destination,
    _check: &mut Check<'_>,
) -> resource::gloo::Destination {
    resource::gloo::Destination::default()
}
