//! Destination: what its API refuses, and what no routing can do without.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{external_service, kube_service, status};
use crate::diagnostic::codes::multicluster::{GD001, GD002};
use crate::raw::gloo as raw;
use crate::raw::{Field, Map};
use crate::resource::gloo::{Backing, ClusterRef, Destination, MeshRef};
use crate::validate::{Check, api};

/// Checks a Destination.
pub fn destination(raw: &raw::Destination, check: &mut Check<'_>) -> Destination {
    let empty = raw::DestinationSpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    let kube = spec.kube_service.get();
    let external = spec.external_service.get();
    let backing = match (kube, external) {
        (Some(_), Some(_)) => {
            let message = "Invalid value: \"kubeService,externalService\": exactly one destination type may be set";
            let location = check.location(spec.kube_service.span());
            check
                .error(GD001, raw.spec.span(), message)
                .related(location, "one of them");
            Backing::Nothing
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
    let status = raw
        .status
        .get()
        .map(|status| status::status(status, &backing, check))
        .unwrap_or_default();
    Destination {
        backing,
        mesh: spec.mesh.get().map(mesh_ref),
        status,
    }
}

pub(super) fn mesh_ref(raw: &raw::ObjectRef) -> MeshRef {
    MeshRef {
        name: api::text(&raw.name),
        namespace: api::text(&raw.namespace),
    }
}

pub(super) fn cluster_ref(raw: &raw::ClusterObjectRef) -> ClusterRef {
    ClusterRef {
        name: api::text(&raw.name),
        namespace: api::text(&raw.namespace),
        cluster: api::text(&raw.cluster_name),
    }
}

/// The entries of a map of texts. Label keys of other systems are taken as they are.
pub(super) fn texts(field: &Field<Map<String>>) -> BTreeMap<String, String> {
    let entries = field.get().into_iter().flat_map(Map::iter);
    entries
        .map(|(key, _, value)| (key.to_owned(), value.get().cloned().unwrap_or_default()))
        .collect()
}

/// The texts of a list.
pub(super) fn list(entries: Vec<(&Field<String>, &String)>) -> Vec<Arc<str>> {
    entries
        .into_iter()
        .map(|(_, text)| Arc::from(text.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
