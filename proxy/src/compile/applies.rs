//! Resources that apply to this proxy: by their selectors, and by the namespaces that they are exported to.

use config_loader::catalog::Workload;
use config_loader::resource::Object;
use config_loader::resource::istio::Gateway;

use crate::compile::route_source::RouteSource;
use crate::identity::Identity;

/// Returns the route sources that apply to a proxy of this identity, in the order of their precedence, each once.
pub(in crate::compile) fn visible(
    sources: impl Iterator<Item = RouteSource>,
    identity: &Identity,
) -> Vec<RouteSource> {
    let visible = sources.filter(|source| is_visible(source, identity));
    let mut visible: Vec<RouteSource> = visible.collect();
    visible.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
    visible.dedup();
    visible
}

/// Whether a route source has hosts and applies to a proxy of this identity.
pub(in crate::compile) fn is_visible(source: &RouteSource, identity: &Identity) -> bool {
    !source.is_delegate() && source.export_to().includes(&identity.namespace)
}

/// Returns the workload of a sidecar of this identity.
pub(in crate::compile) fn workload(identity: &Identity) -> Workload<'_> {
    Workload {
        namespace: &identity.namespace,
        labels: &identity.labels,
        root_namespace: &identity.root_namespace,
    }
}

/// Whether a Gateway's selector matches a proxy of this identity.
pub(in crate::compile) fn selects(gateway: &Object<Gateway>, identity: &Identity) -> bool {
    let mut selector = gateway.spec.selector.iter();
    selector.all(|(key, value)| identity.labels.get(key) == Some(value))
}
