//! What `/config_dump` lists of the resources.

use config_loader::ResourceSet;
use config_loader::resource::{Object, Spec};
use serde_json::{Map, Value};

use crate::admin::DumpedResources;
use crate::explain::secret::REDACTED;

/// The lists of a set of resources.
pub(super) fn of(set: &ResourceSet) -> DumpedResources {
    DumpedResources {
        objects: objects(set),
        secrets: secrets(set),
    }
}

/// Every object, with its location.
fn objects(set: &ResourceSet) -> Vec<String> {
    fn located<T: Spec>(set: &ResourceSet) -> impl Iterator<Item = String> {
        T::objects(set).values().map(|object| location(object))
    }
    use config_loader::resource::{core, flomesh, gloo, istio, karmada};
    located::<istio::Gateway>(set)
        .chain(located::<istio::VirtualService>(set))
        .chain(located::<istio::DestinationRule>(set))
        .chain(located::<istio::ServiceEntry>(set))
        .chain(located::<istio::WorkloadEntry>(set))
        .chain(located::<istio::Sidecar>(set))
        .chain(located::<istio::PeerAuthentication>(set))
        .chain(located::<istio::AuthorizationPolicy>(set))
        .chain(located::<istio::RequestAuthentication>(set))
        .chain(located::<core::Service>(set))
        .chain(located::<core::EndpointSlice>(set))
        .chain(located::<core::Secret>(set))
        .chain(located::<flomesh::Cluster>(set))
        .chain(located::<flomesh::ServiceImport>(set))
        .chain(located::<flomesh::ServiceExport>(set))
        .chain(located::<flomesh::GlobalTrafficPolicy>(set))
        .chain(located::<gloo::Destination>(set))
        .chain(located::<karmada::MultiClusterService>(set))
        .collect()
}

fn location<T>(object: &Object<T>) -> String {
    let written = &object.provenance;
    format!("{} ({}:{})", object.id, written.file, written.line)
}

/// Names and keys of Secrets; the values are left out.
fn secrets(set: &ResourceSet) -> Map<String, Value> {
    let secrets = set.secrets.values().map(|secret| {
        let keys = secret.spec.data.keys();
        let keys: Map<String, Value> = keys.map(|k| (k.clone(), REDACTED.into())).collect();
        (secret.id.to_string(), Value::from(keys))
    });
    secrets.collect()
}
