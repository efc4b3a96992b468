//! Parts that entries about logs, metrics and traces share.

use std::sync::Arc;

use crate::diagnostic::codes::istio::TL005;
use crate::raw::Field;
use crate::raw::istio::telemetry::{ModeSelector, ProviderRef};
use crate::resource::istio::telemetry::{TrafficSide, WorkloadMode};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the traffic that an entry is about.
pub(super) fn mode_of(field: &Field<ModeSelector>, check: &mut Check<'_>) -> WorkloadMode {
    let written = field.get();
    written.map_or_else(WorkloadMode::default, |written| mode(&written.mode, check))
}

pub(super) fn mode(field: &Field<String>, check: &mut Check<'_>) -> WorkloadMode {
    let modes = [
        ("CLIENT_AND_SERVER", WorkloadMode::Both),
        ("CLIENT", WorkloadMode::Only(TrafficSide::Client)),
        ("SERVER", WorkloadMode::Only(TrafficSide::Server)),
    ];
    scalar::enum_of(field, &modes, check).unwrap_or_default()
}

/// Returns the names of providers.
pub(super) fn providers(
    field: &Field<Vec<Field<ProviderRef>>>,
    check: &mut Check<'_>,
) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        match shared::text_arc(&raw.name) {
            Some(name) => names.push(name),
            None => {
                let found = check.error(TL005, entry.span(), "a provider has no name");
                found.help("write the name of a provider of the mesh configuration");
            }
        }
    }
    names
}
