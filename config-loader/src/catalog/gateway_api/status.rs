//! Status of the objects of the Gateway API: conditions, addresses and counts, without times and generations.
//!
//! Only objects of a controller have one. It follows from the answers that traffic and the findings of `check` follow from.

mod addresses;
mod classes;
mod condition;
mod listeners;
mod overlap;
mod policies;
mod routes;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub use addresses::{AddressProblem, AddressSources, Assignment, GatewayAddresses, StatusAddress};
pub use classes::CrdBundle;
pub use condition::Condition;

use super::{ClassOf, Gateways, ReferenceProblem, class_of};
use crate::catalog::View;
use crate::kind::{Kind, Name, ObjectRef};
use crate::resource::gateway_api::{GatewayClass, KubernetesGateway, ParentRef};

/// Conditions of a listener, with its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// Name of the listener.
    pub name: Arc<str>,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Number of attached routes.
    pub attached: usize,
    /// Kinds of routes that may attach.
    pub kinds: Vec<Kind>,
}

/// Conditions of a route for one of its parents, or of a policy for a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentStatus {
    /// Parent as written in the route, or Gateway.
    pub parent: ParentRef,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

/// Status of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectStatus {
    /// Status of a GatewayClass.
    Class(Vec<Condition>),
    /// Status of a Gateway.
    Gateway {
        /// Conditions.
        conditions: Vec<Condition>,
        /// Listeners, in order.
        listeners: Vec<ListenerStatus>,
        /// Addresses.
        addresses: Vec<StatusAddress>,
        /// Number of accepted ListenerSets.
        sets: usize,
    },
    /// Status of a ListenerSet.
    ListenerSet {
        /// Conditions.
        conditions: Vec<Condition>,
        /// Listeners, in order.
        listeners: Vec<ListenerStatus>,
    },
    /// Status of a policy: an entry for each Gateway whose routes reach its targets.
    Policy(Vec<ParentStatus>),
    /// Status of a route: an entry for each parent of the controller.
    Route(Vec<ParentStatus>),
}

/// Settings of the controller whose objects get a status.
#[derive(Clone, Copy, Debug)]
pub struct StatusSettings<'a> {
    /// Name of the controller.
    pub controller: &'a str,
    /// Domain of the cluster.
    pub domain: &'a str,
    /// Namespace with mesh-wide defaults.
    pub root_namespace: &'a str,
    /// Version of the CRDs.
    pub crds: &'a CrdBundle,
    /// Addresses that Gateways may get.
    pub sources: &'a AddressSources,
    /// Addresses of each Gateway in its present status.
    pub held: &'a HashMap<Name, Vec<StatusAddress>>,
}

/// Returns the status of each object of a controller.
pub fn statuses(view: View<'_>, settings: StatusSettings<'_>) -> BTreeMap<ObjectRef, ObjectStatus> {
    let gateways = Gateways::of(view, settings.controller);
    let addresses = settings.sources.assign(&gateways, settings.held);
    let world = World {
        view,
        gateways: &gateways,
        addresses: &addresses,
        domain: settings.domain,
        root_namespace: settings.root_namespace,
        has_pool: !settings.sources.pool.is_empty(),
    };
    let mut all = BTreeMap::new();
    for class in view.all::<GatewayClass>().values() {
        if *class.spec.controller == *settings.controller {
            let conditions = classes::conditions(&class.spec, settings.crds);
            all.insert(class.id.clone(), ObjectStatus::Class(conditions));
        }
    }
    for gateway in view.all::<KubernetesGateway>().values() {
        if class_of(view, gateway, settings.controller) == ClassOf::WithParameters {
            all.insert(gateway.id.clone(), without_class());
        }
    }
    let tally = world.routes(&mut all);
    world.gateways(&tally, &mut all);
    world.policies(&tally, &mut all);
    all
}

/// Returns the reason of a condition about a reference. `found` is for an object that does not exist, or lacks what is needed
/// of it, and `kind` for one that cannot be referred to.
fn reference_reason(
    problem: &ReferenceProblem,
    found: &'static str,
    kind: &'static str,
) -> &'static str {
    match problem {
        ReferenceProblem::InvalidKind => kind,
        ReferenceProblem::NotPermitted => "RefNotPermitted",
        ReferenceProblem::UnsupportedProtocol(_) => "UnsupportedProtocol",
        ReferenceProblem::Malformed(_)
        | ReferenceProblem::NotFound(_)
        | ReferenceProblem::UnverifiableTls(_) => found,
    }
}

/// Returns the status of a Gateway whose class is not accepted.
fn without_class() -> ObjectStatus {
    let message = "the GatewayClass is not accepted: its parameters are not supported";
    let conditions = [("Accepted", "InvalidParameters"), ("Programmed", "Invalid")];
    ObjectStatus::Gateway {
        conditions: conditions
            .map(|(name, reason)| Condition::new(name, false, reason).because(message))
            .into(),
        listeners: Vec::new(),
        addresses: Vec::new(),
        sets: 0,
    }
}

/// State that the status of an object follows from.
struct World<'w, 'a> {
    view: View<'a>,
    gateways: &'w Gateways<'a>,
    addresses: &'w HashMap<Name, Assignment>,
    domain: &'w str,
    root_namespace: &'w str,
    /// Whether Gateways get addresses of their own.
    has_pool: bool,
}

#[cfg(test)]
mod tests;
