//! Routes of the Gateway API by the listeners that they are attached to, kept from one compile to the next.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::gateway_api::{GatewayRoute, Gateways, ServedGateway, ServedListener};
use config_loader::catalog::{Changes, Reads, Tape, View};
use config_loader::{ObjectRef, ResourceSet};

use crate::compile::services::reads::GATEWAY_ROUTES;

/// Routes of a listener.
#[derive(Debug, Default)]
pub(in crate::compile) struct ListenerRoutes {
    /// By the hosts that they share with the listener; for each host the oldest first.
    pub by_host: BTreeMap<Arc<str>, Vec<ObjectRef>>,
    /// Hash of `by_host`.
    pub hash: u64,
}

/// Routes by the object that has their listener, and the name of the listener.
type ByListener = HashMap<ObjectRef, HashMap<Arc<str>, ListenerRoutes>>;

/// Routes of all listeners.
#[derive(Debug)]
pub(in crate::compile) struct AttachedRoutes {
    by_listener: ByListener,
    /// Hash of the Gateways that they are attached to.
    gateways: u64,
    reads: Reads,
}

impl AttachedRoutes {
    /// Attaches routes to Gateways, which have this hash.
    pub(in crate::compile) fn collect(
        gateways: &Gateways<'_>,
        hash: u64,
        resources: &ResourceSet,
        tape: &Tape,
    ) -> Self {
        let (by_listener, reads) = tape.part(|| {
            tape.read(GATEWAY_ROUTES, 0);
            attached(gateways, &GatewayRoute::all(View::from(resources)))
        });
        Self {
            by_listener,
            gateways: hash,
            reads,
        }
    }

    /// Whether the routes are attached in the same way to Gateways with this hash.
    pub(in crate::compile) fn is_same(&self, gateways: u64, changes: &Changes) -> bool {
        self.gateways == gateways && changes.cause_for(&self.reads).is_none()
    }

    /// Returns the routes of a listener; `None` if it has none.
    pub(in crate::compile) fn of(
        &self,
        gateway: &ServedGateway<'_>,
        listener: &ServedListener<'_>,
    ) -> Option<&ListenerRoutes> {
        let (owner, name) = gateway.id_of(listener);
        self.by_listener.get(owner)?.get(name)
    }
}

/// Attaches routes, the oldest first.
fn attached(gateways: &Gateways<'_>, routes: &[GatewayRoute<'_>]) -> ByListener {
    let mut by_listener = ByListener::new();
    for route in routes.iter().map(|route| route.attaching()) {
        let parents = route.parents.iter();
        let attached = parents.filter_map(|parent| gateways.attach(route, parent)?.ok());
        for one in attached.flatten() {
            let (owner, name) = one.gateway.id_of(one.listener);
            let of_owner = by_listener.entry(owner.clone()).or_default();
            let routes = of_owner.entry(name.into()).or_default();
            for host in one.hosts {
                let all = routes.by_host.entry(host).or_default();
                // another parent reference may be to the same listener
                if all.last() != Some(route.id) {
                    all.push(route.id.clone());
                }
            }
        }
    }
    for routes in by_listener.values_mut().flat_map(HashMap::values_mut) {
        let mut hasher = DefaultHasher::new();
        routes.by_host.hash(&mut hasher);
        routes.hash = hasher.finish();
    }
    by_listener
}
