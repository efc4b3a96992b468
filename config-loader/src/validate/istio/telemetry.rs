//! Telemetry: validation.

mod access_logging;
mod entries;
mod metrics;
mod tracing;

pub(super) use tracing::{custom_tags, percentage};

use super::Check;
use super::security_policies::{ScopeCodes, scope};
use crate::diagnostic::codes::istio::{TL003, TL004, TL005};
use crate::raw;
use crate::resource::istio::Telemetry;

/// Codes of findings about selectors and targets.
const SCOPE: ScopeCodes = ScopeCodes {
    fields: TL005,
    target: TL003,
    passes_target: true,
    unserved: TL004,
};

/// Checks a Telemetry.
pub fn telemetry(raw: &raw::istio::Telemetry, check: &mut Check<'_>) -> Telemetry {
    Telemetry {
        scope: scope(
            &raw.selector,
            &raw.target_ref,
            &raw.target_refs,
            SCOPE,
            check,
        ),
        tracing: tracing::tracing(&raw.tracing, check),
        metrics: metrics::metrics(&raw.metrics, check),
        access_logging: access_logging::access_logging(&raw.access_logging, check),
    }
}

#[cfg(test)]
mod tests;
