//! Which resources apply to this proxy at all: by their selectors, and by the namespaces that they are exported to.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::Workload;
use config_loader::resource::Object;
use config_loader::resource::istio::{Gateway, VirtualService};

use crate::identity::Identity;

/// The VirtualServices with hosts that count for a proxy of this identity, in the order of their precedence.
pub(in crate::compile) fn visible<'a>(
    resources: &'a ResourceSet,
    identity: &Identity,
) -> Vec<&'a Arc<Object<VirtualService>>> {
    let mut virtual_services: Vec<&Arc<Object<VirtualService>>> = resources
        .virtual_services
        .values()
        .filter(|object| is_visible(object, identity))
        .collect();
    virtual_services.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
    virtual_services
}

/// Whether a VirtualService has hosts and counts for a proxy of this identity.
pub(in crate::compile) fn is_visible(object: &Object<VirtualService>, identity: &Identity) -> bool {
    !object.spec.is_delegate() && object.spec.export_to.includes(&identity.namespace)
}

/// The workload beside a sidecar of this identity.
pub(in crate::compile) fn workload(identity: &Identity) -> Workload<'_> {
    Workload {
        namespace: &identity.namespace,
        labels: &identity.labels,
        root_namespace: &identity.root_namespace,
    }
}

/// Whether a Gateway's selector takes in a proxy of this identity.
pub(in crate::compile) fn selects(gateway: &Object<Gateway>, identity: &Identity) -> bool {
    let mut selector = gateway.spec.selector.iter();
    selector.all(|(key, value)| identity.labels.get(key) == Some(value))
}
