//! Gateways of the Gateway API: which of them a controller serves, their listeners, the routes that attach to them, and
//! the references that hold.
//!
//! The conditions in a status, the findings of `check` and the routes of traffic follow from the same answers.

mod addresses;
mod attachment;
mod backend_tls;
mod backends;
mod distinct;
mod gateway_route;
mod grants;
mod listeners;
mod mesh;
mod references;
pub mod status;

use std::collections::HashMap;

pub use addresses::{AddressListeners, PlacedListener};
pub use attachment::{Attached, AttachingRoute, AttachmentProblem};
pub use backend_tls::{
    JudgedPolicy, PolicyProblem, TrustedAuthorities, judge, rule_with_tls, trusted,
};
pub use backends::{BackendHost, backend, backend_targets, mesh_backend, raw_backend};
pub use gateway_route::GatewayRoute;
pub use grants::Referrer;
pub use listeners::{
    AttachedSet, Clients, GatewayProblem, ListenerProblem, ServedGateway, ServedListener,
};
pub use mesh::{ApplyingRoutes, MeshRoutes, ParentService, ServiceProblem, service_of};
pub use references::ReferenceProblem;

use super::View;
use crate::kind::Name;
use crate::resource::Object;
use crate::resource::gateway_api::{GatewayClass, KubernetesGateway, ListenerSet};

/// Controller name of Strait (GatewayClass `spec.controllerName`).
pub const CONTROLLER: &str = "strait.io/gateway-controller";

/// Class whose Gateways are served without a GatewayClass, unless they are of an API server.
pub const CLASS: &str = "strait";

/// Label that the source gives to Gateways of config servers, which have the class built in.
pub(crate) const BUILT_IN: &str = "strait.io/built-in-class";

/// Gateways that a controller serves, oldest first.
#[derive(Debug)]
pub struct Gateways<'a> {
    view: View<'a>,
    all: Vec<ServedGateway<'a>>,
    /// Positions in `all`.
    by_name: HashMap<Name, usize>,
    /// ListenerSets of the Gateways: positions in `all`, and in the sets there.
    sets: HashMap<Name, (usize, usize)>,
}

/// Relation of a Gateway to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassOf<'a> {
    /// Its class is of the controller.
    Served,
    /// Its class is of this other controller.
    Other(&'a str),
    /// Its class has parameters, which are not supported.
    WithParameters,
    /// Its class does not exist.
    Unknown,
}

/// Returns the relation of a Gateway to a controller.
pub fn class_of<'a>(
    view: View<'a>,
    gateway: &Object<KubernetesGateway>,
    controller: &str,
) -> ClassOf<'a> {
    // a file may give it a namespace, which means nothing
    let mut classes = view.all::<GatewayClass>().values();
    match classes.find(|class| class.id.name == gateway.spec.class) {
        None if *gateway.spec.class == *CLASS && has_built_in_class(gateway) => ClassOf::Served,
        None => ClassOf::Unknown,
        Some(class) if *class.spec.controller != *controller => {
            ClassOf::Other(&class.spec.controller)
        }
        Some(class) if class.spec.parameters.is_some() => ClassOf::WithParameters,
        Some(_) => ClassOf::Served,
    }
}

/// Whether a Gateway is from a file, an xDS server or a config server, and not from another API server.
pub(crate) fn has_built_in_class(gateway: &Object<KubernetesGateway>) -> bool {
    !gateway.provenance.file.starts_with("kubernetes://") || gateway.labels.contains_key(BUILT_IN)
}

impl<'a> Gateways<'a> {
    /// Finds the Gateways of a controller, with their listeners.
    pub fn of(view: View<'a>, controller: &str) -> Self {
        let gateways = view.all::<KubernetesGateway>().values();
        let served = gateways.filter(|one| class_of(view, one, controller) == ClassOf::Served);
        let mut served: Vec<_> = served.collect();
        served.sort_by_cached_key(|one| seniority(one));
        let mut sets: Vec<_> = view.all::<ListenerSet>().values().collect();
        sets.sort_by_cached_key(|one| seniority(one));
        let all = served.into_iter();
        let all = all.map(|object| listeners::of_gateway(view, object, &sets));
        let all: Vec<ServedGateway<'_>> = all.collect();
        let by_name = all.iter().enumerate();
        let by_name = by_name.map(|(index, one)| (one.object.id.to_name(), index));
        let sets = all.iter().enumerate().flat_map(|(index, one)| {
            let sets = one.sets.iter().enumerate();
            sets.map(move |(set, one)| (one.object.id.to_name(), (index, set)))
        });
        Self {
            by_name: by_name.collect(),
            sets: sets.collect(),
            view,
            all,
        }
    }

    /// Returns the Gateways, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &ServedGateway<'a>> {
        self.all.iter()
    }
}

/// Returns the sort key for age, oldest first: creation time (a missing one is the oldest), then `NAMESPACE/NAME`.
pub fn seniority<T>(object: &Object<T>) -> (i64, String) {
    let id = &object.id;
    let created = object.created.unwrap_or(i64::MIN);
    (created, format!("{}/{}", id.namespace, id.name))
}

#[cfg(test)]
mod tests;
