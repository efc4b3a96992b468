//! Documents of objects: their text, as a file would contain it, and their name.
//!
//! Objects of a remote cluster are labeled with that cluster.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::discovery::Resource;
use super::settings::ApiServer;
use crate::kind::Kind;
use crate::resource::flomesh::ClusterKey;
use crate::source::stream::text;

/// Label of EndpointSlices of a remote cluster (KEP-1645).
const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";

/// Labels of EndpointSlices that their cluster itself imported from another one.
const IMPORTED: [&str; 3] = [
    SOURCE_CLUSTER,
    "multicluster.flomesh.io/source-cluster",
    "endpointslice.karmada.io/provision-cluster",
];

/// Service fields that are meaningful only in the Service's own cluster.
const OF_ITS_CLUSTER: [&str; 6] = [
    "clusterIPs",
    "externalIPs",
    "healthCheckNodePort",
    "loadBalancerIP",
    "loadBalancerClass",
    "selector",
];

/// Returns the name of a document, such as `kubernetes://east/prod/virtualservices.networking.istio.io/web`.
pub(super) fn name(server: &ApiServer, resource: &Resource, object: &DynamicObject) -> Arc<str> {
    let mut name = server.name();
    for part in [
        object.metadata.namespace.as_deref(),
        Some(&*resource.name()),
        object.metadata.name.as_deref(),
    ]
    .into_iter()
    .flatten()
    {
        name.push('/');
        name.push_str(part);
    }
    name.into()
}

/// Returns the namespace and name of the object of a document, such as `prod/web`.
pub(super) fn namespaced_name(document: &str) -> String {
    let mut parts = document.rsplit('/');
    let (name, namespace) = (parts.next(), parts.nth(1));
    let (name, namespace) = (name.unwrap_or_default(), namespace.unwrap_or_default());
    format!("{namespace}/{name}")
}

/// Whether an object is used. Not used are objects that are being deleted, except cluster state (a terminating pod may
/// still serve), and objects that their cluster imported from another one.
pub(super) fn counts(server: &ApiServer, resource: &Resource, object: &DynamicObject) -> bool {
    let is_imported = || {
        let marks = [object.labels(), object.annotations()];
        let mut marks = marks.into_iter().flat_map(|marks| marks.keys());
        marks.any(|mark| IMPORTED.contains(&mark.as_str()))
    };
    let is_there = object.metadata.deletion_timestamp.is_none() || resource.kind.is_state();
    is_there && (server.cluster.is_none() || !is_imported())
}

/// Returns the text of an object.
///
/// # Errors
/// If the object cannot be written as JSON, in words.
pub(super) fn text(
    server: &ApiServer,
    resource: &Resource,
    mut object: DynamicObject,
) -> Result<String, serde_json::Error> {
    object.metadata.managed_fields = None;
    if resource.kind.is_state() {
        object.metadata.deletion_timestamp = None;
        object.metadata.resource_version = None;
    }
    // Objects of a list do not say what they are.
    object.types = None;
    if let Some(cluster) = &server.cluster {
        mark(&mut object, resource.kind, cluster);
    }
    let mut value = serde_json::to_value(object)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), json!(resource.api.api_version));
        fields.insert("kind".to_owned(), json!(resource.api.kind));
    }
    text::of_object(value)
}

/// Labels an object of a remote cluster: EndpointSlices and cluster state get the name of that cluster. Services lose
/// the fields that are meaningful only there.
fn mark(object: &mut DynamicObject, kind: Kind, cluster: &ClusterKey) {
    match kind {
        Kind::EndpointSlice | Kind::Namespace | Kind::Node | Kind::Pod => {
            let name = cluster.name();
            object
                .labels_mut()
                .insert(SOURCE_CLUSTER.to_owned(), name.to_owned());
            let own = object.metadata.name.take().unwrap_or_default();
            object.metadata.name = Some(format!("{name}-{own}"));
        }
        Kind::Service => {
            if let Some(spec) = object.data.get_mut("spec").and_then(Value::as_object_mut) {
                for field in OF_ITS_CLUSTER {
                    spec.shift_remove(field);
                }
                if spec.get("clusterIP").is_some_and(|ip| ip != "None") {
                    spec.shift_remove("clusterIP");
                }
            }
            if let Some(fields) = object.data.as_object_mut() {
                fields.shift_remove("status");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
