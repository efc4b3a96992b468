//! Destination: the checks of its API, and of fields that routing requires.

use super::values::mesh_ref;
use super::{external_service, kube_service, status};
use crate::diagnostic::codes::multicluster::{GD001, GD002};
use crate::raw::gloo as raw;
use crate::resource::gloo::{Backing, Destination, DestinationStatus};
use crate::validate::Check;

/// Checks a Destination.
pub fn destination(raw: &raw::Destination, check: &mut Check<'_>) -> Destination {
    let empty = raw::DestinationSpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    let kube = spec.kube_service.get();
    let external = spec.external_service.get();
    let backing = match (kube, external) {
        (Some(kube), Some(_)) => {
            let message = "Invalid value: \"kubeService,externalService\": exactly one destination type may be set";
            let location = check.location(spec.kube_service.span());
            check
                .error(GD001, raw.spec.span(), message)
                .related(location, "one of them");
            let span = spec.kube_service.span();
            Backing::Kube(kube_service::kube_service(kube, span, check))
        }
        (Some(kube), None) => {
            let span = spec.kube_service.span();
            Backing::Kube(kube_service::kube_service(kube, span, check))
        }
        (None, Some(external)) => {
            let span = spec.external_service.span();
            Backing::External(external_service::external_service(external, span, check))
        }
        (None, None) => {
            if !spec.kube_service.is_invalid() && !spec.external_service.is_invalid() {
                check
                    .warning(GD002, raw.spec.span(), "the destination has no effect")
                    .help("write `kubeService` or `externalService`");
            }
            Backing::Nothing
        }
    };
    let status = match raw.status.get() {
        Some(status) => status::status(status, &backing, check),
        None => DestinationStatus {
            is_restricted: raw.status.is_invalid(),
            ..DestinationStatus::default()
        },
    };
    Destination {
        backing,
        mesh: spec.mesh.get().map(mesh_ref),
        status,
    }
}

#[cfg(test)]
mod tests;
