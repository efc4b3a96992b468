//! Values that several parts of a Destination share.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::codes::common::CM022;
use crate::raw::gloo as raw;
use crate::raw::{Field, IntOrString, Map};
use crate::resource::gloo::{ClusterRef, MeshRef};
use crate::validate::{Check, api};

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

/// Returns the entries of a string map. Label keys are not checked, because they come from other systems.
pub(super) fn texts(field: &Field<Map<String>>) -> BTreeMap<String, String> {
    let entries = field.get().into_iter().flat_map(Map::iter);
    entries
        .map(|(key, _, value)| (key.to_owned(), value.get().cloned().unwrap_or_default()))
        .collect()
}

/// Returns the texts of a list.
pub(super) fn list(entries: Vec<(&Field<String>, &String)>) -> Vec<Arc<str>> {
    entries
        .into_iter()
        .map(|(_, text)| Arc::from(text.as_str()))
        .collect()
}

/// Returns a generation; 0 if missing. The JSON mapping of protobuf writes 64-bit numbers as strings.
pub(super) fn generation(field: &Field<IntOrString>, check: &mut Check<'_>) -> i64 {
    let text = match field.get() {
        None => return 0,
        Some(IntOrString::Int(value)) => return *value,
        Some(IntOrString::String(text)) => text,
    };
    text.parse().unwrap_or_else(|_| {
        let message = format!("Invalid value: {text:?}: must be a whole number");
        check.error(CM022, field.span(), message);
        0
    })
}
