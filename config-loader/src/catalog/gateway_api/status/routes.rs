//! Status of routes: for each parent, whether the route is attached and its references hold.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Condition, ObjectStatus, ParentStatus, World, reference_reason};
use crate::catalog::gateway_api::{
    Attached, AttachingRoute, AttachmentProblem, GatewayRoute, ReferenceProblem, ServiceProblem,
    backend, mesh_backend, service_of,
};
use crate::kind::{Name, ObjectRef};
use crate::resource::gateway_api::{
    Backend, BackendRef, Filter, ObjectReference, ParentRef, RouteRule,
};

/// Effects of routes on the status of other objects.
#[derive(Default)]
pub(super) struct Tally<'w> {
    /// Numbers of attached routes by listener: the object that has it, and its name.
    pub counts: HashMap<(&'w ObjectRef, &'w str), usize>,
    /// Backends of the routes of each Gateway.
    reached: HashMap<&'w ObjectRef, HashSet<Name>>,
}

impl<'w> Tally<'w> {
    fn reach(&mut self, gateway: &'w ObjectRef, backends: &[&BackendRef]) {
        let names = backends.iter().map(|one| one.object.to_name());
        self.reached.entry(gateway).or_default().extend(names);
    }

    /// Whether a route of a Gateway has a Service or ServiceImport as a backend.
    pub(super) fn reaches(&self, gateway: &ObjectRef, backend: &ObjectReference) -> bool {
        let reached = self.reached.get(gateway);
        reached.is_some_and(|reached| reached.contains(&backend.to_name()))
    }
}

/// Relation of a route to a parent of the controller.
enum Attachment<'w, 'a> {
    /// Listeners that it is attached to.
    Gateway(Vec<Attached<'w, 'a>>),
    /// Condition that says why it is not attached.
    None(Condition),
    /// Service that it is attached to.
    Service,
}

/// Rules of a route that have filters which cannot be applied.
#[derive(Default)]
struct Dropped {
    /// Position of the first one, with its filter.
    first: Option<(usize, Arc<str>)>,
    /// Whether no rule is left.
    is_all: bool,
}

impl Dropped {
    fn of<M>(rules: &[RouteRule<M>]) -> Self {
        fn unusable(filters: &[Filter]) -> Option<Arc<str>> {
            filters.iter().find_map(|one| match one {
                Filter::Unusable(filter) => Some(Arc::clone(&filter.filter_type)),
                _ => None,
            })
        }
        let of_rule = |rule: &RouteRule<M>| {
            let mut of_backends = rule.backends.iter();
            let of_backend = |backend: &Backend| unusable(&backend.filters);
            unusable(&rule.filters).or_else(|| of_backends.find_map(of_backend))
        };
        let dropped = rules.iter().enumerate();
        let mut dropped = dropped.filter_map(|(index, rule)| Some((index, of_rule(rule)?)));
        let first = dropped.next();
        let count = usize::from(first.is_some()) + dropped.count();
        Self {
            is_all: count > 0 && count == rules.len(),
            first,
        }
    }

    /// Returns the `Accepted` condition of a route that is attached.
    fn condition(&self) -> Condition {
        match self.message().filter(|_| self.is_all) {
            Some(message) => Condition::new("Accepted", false, "UnsupportedValue").because(message),
            None => Condition::new("Accepted", true, "Accepted"),
        }
    }

    fn message(&self) -> Option<String> {
        let (index, filter) = self.first.as_ref()?;
        Some(format!(
            "Dropped Rule: spec.rules[{index}] has the filter {filter}, which cannot be applied; its requests get a \
             response with status 500"
        ))
    }
}

impl<'w, 'a> World<'w, 'a> {
    /// Adds the status of each route. Returns the numbers of routes that are attached to listeners.
    pub(super) fn routes(&self, all: &mut BTreeMap<ObjectRef, ObjectStatus>) -> Tally<'w> {
        let mut tally = Tally::default();
        for route in GatewayRoute::all(self.view) {
            let dropped = match route {
                GatewayRoute::Grpc(route) => Dropped::of(&route.spec.rules),
                GatewayRoute::Http(route) => Dropped::of(&route.spec.rules),
                GatewayRoute::Tcp(_) | GatewayRoute::Tls(_) => Dropped::default(),
            };
            let parents = self.route(route, &dropped, &mut tally);
            if !parents.is_empty() {
                all.insert(route.id().clone(), ObjectStatus::Route(parents));
            }
        }
        tally
    }

    fn route(
        &self,
        route: GatewayRoute<'_>,
        dropped: &Dropped,
        tally: &mut Tally<'w>,
    ) -> Vec<ParentStatus> {
        let (backends, route) = (route.targets(), route.attaching());
        let mut parents = Vec::new();
        let mut listeners = HashSet::new();
        let mut is_at_gateway = false;
        for parent in route.parents {
            let Some(attached) = self.attached(route, parent) else {
                continue;
            };
            is_at_gateway |= matches!(attached, Attachment::Gateway(_));
            let accepted = match &attached {
                Attachment::None(condition) => condition.clone(),
                _ => dropped.condition(),
            };
            if let Attachment::Gateway(attached) = attached
                && accepted.is_true()
            {
                let ids = attached.iter().map(|one| one.gateway.id_of(one.listener));
                listeners.extend(ids);
                for one in attached {
                    tally.reach(&one.gateway.object.id, &backends);
                }
            }
            parents.push(ParentStatus {
                parent: parent.clone(),
                conditions: vec![accepted],
            });
        }
        for listener in listeners {
            *tally.counts.entry(listener).or_default() += 1;
        }
        if parents.is_empty() {
            return parents;
        }
        let resolved = self.resolved(route.id, &backends, is_at_gateway);
        let partial = dropped.message().filter(|_| !dropped.is_all);
        let partial = partial.map(|message| {
            Condition::new("PartiallyInvalid", true, "UnsupportedValue").because(message)
        });
        for parent in &mut parents {
            parent.conditions.push(resolved.clone());
            parent.conditions.extend(partial.clone());
        }
        parents
    }

    /// Attaches a route to one of its parents; `None` for a parent of another controller.
    fn attached(
        &self,
        route: AttachingRoute<'_>,
        parent: &ParentRef,
    ) -> Option<Attachment<'w, 'a>> {
        if let Some(attached) = self.gateways.attach(route, parent) {
            return Some(match attached {
                Ok(attached) => Attachment::Gateway(attached),
                Err(problem) => Attachment::None(unattached(problem)),
            });
        }
        match service_of(self.view, route, parent, self.domain)? {
            Ok(_) => Some(Attachment::Service),
            Err(ServiceProblem::NoMatchingParent(what)) => {
                let condition = Condition::new("Accepted", false, "NoMatchingParent");
                Some(Attachment::None(condition.because(what)))
            }
            Err(ServiceProblem::KindNotApplied) => None,
        }
    }

    /// Returns the `ResolvedRefs` condition of a route with these backends.
    fn resolved(
        &self,
        route: &ObjectRef,
        backends: &[&BackendRef],
        is_at_gateway: bool,
    ) -> Condition {
        let problem = backends.iter().find_map(|target| {
            let found = match is_at_gateway {
                true => backend(self.view, route, target, self.domain),
                false => mesh_backend(self.view, target, self.domain),
            };
            let problem = found.err()?;
            // the reference holds, and only the TLS of the backend does not
            let is_of_tls = matches!(problem, ReferenceProblem::UnverifiableTls(_));
            (!is_of_tls).then_some((&target.object, problem))
        });
        let Some((object, problem)) = problem else {
            return Condition::new("ResolvedRefs", true, "ResolvedRefs");
        };
        let reason = reference_reason(&problem, "BackendNotFound", "InvalidKind");
        let name = format!("{} {}/{}", object.kind, object.namespace, object.name);
        Condition::new("ResolvedRefs", false, reason).because(format!("backend {name}: {problem}"))
    }
}

fn unattached(problem: AttachmentProblem) -> Condition {
    let (reason, message) = match problem {
        AttachmentProblem::NoMatchingParent => (
            "NoMatchingParent",
            "the parent is not accepted, or has no listener with this sectionName and port",
        ),
        AttachmentProblem::NotAllowedByListeners => (
            "NotAllowedByListeners",
            "allowedRoutes of the listeners does not include this kind and namespace",
        ),
        AttachmentProblem::NoMatchingListenerHostname => (
            "NoMatchingListenerHostname",
            "no host is one of a listener: change spec.hostnames, or the hostname of a listener",
        ),
    };
    Condition::new("Accepted", false, reason).because(message)
}
