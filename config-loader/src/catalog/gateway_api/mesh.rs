//! Routes of Services, which sidecars apply to the requests of their workloads.
//!
//! A producer route is of the namespace of its Service, and applies to requests of all workloads. A consumer route is of
//! another namespace, and applies to requests of the workloads there, instead of the producer routes.

use std::collections::{BTreeSet, HashMap};

use super::AttachingRoute;
use super::GatewayRoute;
use super::backends::{has_port, host_of};
use crate::catalog::View;
use crate::kind::Kind;
use crate::resource::Object;
use crate::resource::gateway_api::ParentRef;
use crate::resource::istio::{PUBLIC, VirtualService};

/// Service or ServiceImport that a route is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentService {
    /// Host in the mesh.
    pub host: String,
    /// Port; `None` for all ports.
    pub port: Option<u16>,
    /// Whether the route is of the namespace of the service.
    pub is_producer: bool,
}

/// Reason that a route is not attached to a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceProblem {
    /// Routes of this kind are applied by gateways only. A status has no entry for the parent.
    KindNotApplied,
    /// The service or its port does not exist.
    NoMatchingParent(String),
}

/// Returns the service of a parent of a route; `None` for a parent of another kind.
///
/// # Errors
///
/// Returns the reason that the route is not attached to the service.
pub fn service_of(
    view: View<'_>,
    route: AttachingRoute<'_>,
    parent: &ParentRef,
    domain: &str,
) -> Option<Result<ParentService, ServiceProblem>> {
    let object = &parent.object;
    let host = host_of(object, domain)?;
    if !matches!(route.id.kind, Kind::GRPCRoute | Kind::HTTPRoute) {
        return Some(Err(ServiceProblem::KindNotApplied));
    }
    let (kind, name) = (&object.kind, object.to_name());
    let missing = |what: String| Some(Err(ServiceProblem::NoMatchingParent(what)));
    match (
        has_port(view, object, parent.port.unwrap_or(0)),
        parent.port,
    ) {
        (None, _) => missing(format!("{kind} {name} does not exist")),
        (Some(false), Some(port)) => missing(format!("{kind} {name} has no port {port}")),
        (Some(_), port) => Some(Ok(ParentService {
            host,
            port,
            is_producer: route.id.namespace == object.namespace,
        })),
    }
}

/// Route of a service.
#[derive(Debug)]
struct Attached<'a> {
    route: GatewayRoute<'a>,
    port: Option<u16>,
    is_producer: bool,
}

/// Routes of all services, by host; those of a host are the oldest first.
#[derive(Debug, Default)]
pub struct MeshRoutes<'a>(HashMap<String, Vec<Attached<'a>>>);

/// Routes that apply to the requests of some workloads for a port of a service. Never empty.
#[derive(Debug)]
pub struct ApplyingRoutes<'a> {
    /// The routes, oldest first.
    pub routes: Vec<GatewayRoute<'a>>,
    /// Whether they are consumer routes.
    pub are_of_consumer: bool,
}

impl<'a> MeshRoutes<'a> {
    /// Finds the routes of all services.
    pub fn of(view: View<'a>, domain: &str) -> Self {
        let mut by_host: HashMap<String, Vec<Attached<'_>>> = HashMap::new();
        let is_service = |parent: &ParentRef| host_of(&parent.object, domain).is_some();
        for route in GatewayRoute::selected(view, is_service) {
            let attaching = route.attaching();
            for parent in attaching.parents {
                if let Some(Ok(service)) = service_of(view, attaching, parent, domain) {
                    by_host.entry(service.host).or_default().push(Attached {
                        route,
                        port: service.port,
                        is_producer: service.is_producer,
                    });
                }
            }
        }
        Self(by_host)
    }

    /// Returns the ports of a host that parents name, and 0 for the others if a parent is for all ports.
    pub fn ports(&self, host: &str) -> BTreeSet<u16> {
        let attached = self.0.get(host).into_iter().flatten();
        attached.map(|one| one.port.unwrap_or(0)).collect()
    }

    /// Returns the namespaces with consumer routes of a host.
    pub fn consumers(&self, host: &str) -> BTreeSet<&'a str> {
        let attached = self.0.get(host).into_iter().flatten();
        let consumers = attached.filter(|one| !one.is_producer);
        consumers.map(|one| &*one.route.id().namespace).collect()
    }

    /// Returns the routes for requests of the workloads of a namespace to a port of a service; `None` without any.
    pub fn applying(&self, host: &str, port: u16, namespace: &str) -> Option<ApplyingRoutes<'a>> {
        let attached = self.0.get(host)?;
        let of = |select: &dyn Fn(&Attached<'_>) -> bool| {
            let covering = attached
                .iter()
                .filter(|one| one.port.is_none_or(|of| of == port));
            let mut routes: Vec<_> = covering
                .filter(|one| select(one))
                .map(|one| one.route)
                .collect();
            // several parents of a route may cover the port
            routes.dedup_by(|a, b| a.id() == b.id());
            routes
        };
        let consumer = of(&|one| !one.is_producer && *one.route.id().namespace == *namespace);
        let are_of_consumer = !consumer.is_empty();
        let routes = match are_of_consumer {
            true => consumer,
            false => of(&|one| one.is_producer),
        };
        (!routes.is_empty()).then_some(ApplyingRoutes {
            routes,
            are_of_consumer,
        })
    }
}

impl ApplyingRoutes<'_> {
    /// Whether the routes are used instead of a VirtualService for the same host: consumer routes always, producer routes
    /// like a public VirtualService of the age of the oldest.
    pub fn precede(&self, other: &Object<VirtualService>) -> bool {
        let oldest = self.routes.first().map(|route| (PUBLIC, route.age()));
        self.are_of_consumer || oldest.is_some_and(|oldest| oldest < other.precedence())
    }
}
