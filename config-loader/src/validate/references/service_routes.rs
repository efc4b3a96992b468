//! Routes whose parent is a Service: parents that do not exist, fields without effect, and VirtualServices for the same
//! host.

use std::collections::HashSet;
use std::sync::Arc;

use super::finding::{location, warning};
use crate::catalog::View;
use crate::catalog::gateway_api::{
    ApplyingRoutes, AttachingRoute, GatewayRoute, MeshRoutes, ServiceProblem,
};
use crate::catalog::hostname;
use crate::diagnostic::codes::gateway_api::{GA050, GA051, GA052, GA053};
use crate::diagnostic::{Code, Diagnostic, Location, Severity};
use crate::kind::ObjectRef;
use crate::resource::gateway_api::ParentRef;
use crate::resource::istio::VirtualService;
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

/// Reports fields of a route that have no effect at a Service.
pub(super) fn check_fields<T>(
    object: &Object<T>,
    route: AttachingRoute<'_>,
    parent: &ParentRef,
    found: &mut Vec<Diagnostic>,
) {
    let target = &parent.object;
    let service = format!("{} {}", target.kind, target.to_name());
    let host = route.hostnames.first().map(|host| (host.line, "hostnames"));
    let section = parent.section.as_ref();
    let section = section.map(|_| (target.line, "parentRefs[].sectionName"));
    for (line, field) in host.into_iter().chain(section) {
        let message = format!(
            "it has no effect for {service}: requests have its routes by its address, whatever their host"
        );
        let mut diagnostic = warning(object, GA050, line, format!("spec.{field}"), message);
        diagnostic.severity = Severity::Note;
        diagnostic
            .help("leave it out; `port` of the parent limits a route to a port of the Service");
        found.push(diagnostic);
    }
}

/// Returns the finding about a Service that a route is not attached to.
pub(super) fn unattached<T>(
    object: &Object<T>,
    parent: &ParentRef,
    field: String,
    problem: ServiceProblem,
) -> Diagnostic {
    let line = parent.object.line;
    let (code, message, help): (Code, _, _) = match problem {
        ServiceProblem::KindNotApplied => (
            GA052,
            format!(
                "a {} is not applied to connections to a Service",
                object.id.kind
            ),
            "write a VirtualService with `tcp` or `tls` rules for the host of the Service",
        ),
        ServiceProblem::NoMatchingParent(what) => (
            GA053,
            format!("{what}: the route is not attached to it"),
            "write the name, namespace and port of one that exists, or add it",
        ),
    };
    let mut diagnostic = warning(object, code, line, field, message);
    diagnostic.help(help);
    diagnostic
}

/// Reports VirtualServices and routes of Services for the same host and port, at the unused ones.
pub(super) fn check_precedence(set: &ResourceSet, domain: &str, found: &mut Vec<Diagnostic>) {
    let routes = MeshRoutes::of(View::from(set), domain);
    let mut mesh: Vec<&Arc<Object<VirtualService>>> = set.virtual_services.values().collect();
    mesh.retain(|one| one.spec.is_for_mesh() && !one.spec.http.is_empty());
    mesh.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
    let mut reported = HashSet::new();
    for virtual_service in mesh {
        for written in &virtual_service.spec.hosts {
            let host = hostname::complete(&written.value, &virtual_service.id.namespace, domain);
            let contest = Contest {
                virtual_service,
                line: written.line,
                host: &host,
            };
            let exported = &virtual_service.spec.export_to;
            let consumers = routes.consumers(&host);
            let consumers = consumers.into_iter().filter(|one| exported.includes(one));
            let namespaces: Vec<&str> = consumers.chain([""]).collect();
            for port in routes
                .ports(&host)
                .into_iter()
                .filter(|port| contest.is_for(*port))
            {
                for namespace in &namespaces {
                    let applying = routes.applying(&host, port, namespace);
                    let applying =
                        applying.filter(|one| one.are_of_consumer != namespace.is_empty());
                    if let Some(applying) = applying {
                        contest.report(&applying, &mut reported, found);
                    }
                }
            }
        }
    }
}

/// VirtualService for a host that has routes.
struct Contest<'a, 'h> {
    virtual_service: &'a Object<VirtualService>,
    /// Line of the host.
    line: Line,
    host: &'h str,
}

impl<'a> Contest<'a, '_> {
    /// Whether the VirtualService has a rule for a port; 0 is any.
    fn is_for(&self, port: u16) -> bool {
        let is_for = |of: Option<u16>| port == 0 || of.is_none_or(|of| of == port);
        self.virtual_service.spec.http.iter().any(|rule| {
            rule.matches.is_empty() || rule.matches.iter().any(|block| is_for(block.port))
        })
    }

    fn report(
        &self,
        applying: &ApplyingRoutes<'a>,
        reported: &mut HashSet<(&'a ObjectRef, &'a ObjectRef)>,
        found: &mut Vec<Diagnostic>,
    ) {
        let own = &self.virtual_service.id;
        if !applying.precede(self.virtual_service) {
            for route in &applying.routes {
                if reported.insert((route.id(), own)) {
                    found.push(self.unused_route(*route));
                }
            }
            return;
        }
        let Some(route) = applying
            .routes
            .first()
            .filter(|one| reported.insert((own, one.id())))
        else {
            return;
        };
        let (host, id) = (self.host, route.id());
        let why = match applying.are_of_consumer {
            true => format!("in namespace {}, {id} is used", id.namespace),
            false => format!("{id} is older, and is used"),
        };
        let message =
            format!("`{host}` has routes of its Service: {why}, and not this VirtualService");
        let field = "spec.hosts".to_owned();
        let mut diagnostic = warning(self.virtual_service, GA051, self.line, field, message);
        diagnostic.help(HELP);
        diagnostic.related(located(*route), "this one is used");
        found.push(diagnostic);
    }

    fn unused_route(&self, route: GatewayRoute<'_>) -> Diagnostic {
        let winner = self.virtual_service;
        let message = format!(
            "{} has requests for `{}`, and not this route: it is older, or exported to fewer namespaces",
            winner.id, self.host
        );
        let field = "spec.parentRefs".to_owned();
        let mut diagnostic = match route {
            GatewayRoute::Grpc(route) => warning(route, GA051, Line(0), field, message),
            GatewayRoute::Http(route) => warning(route, GA051, Line(0), field, message),
            GatewayRoute::Tcp(route) => warning(route, GA051, Line(0), field, message),
            GatewayRoute::Tls(route) => warning(route, GA051, Line(0), field, message),
        };
        diagnostic.help(HELP);
        diagnostic.related(location(winner, self.line), "this one is used");
        diagnostic
    }
}

const HELP: &str = "write all rules for the host in one of them";

fn located(route: GatewayRoute<'_>) -> Location {
    match route {
        GatewayRoute::Grpc(route) => location(route, Line(0)),
        GatewayRoute::Http(route) => location(route, Line(0)),
        GatewayRoute::Tcp(route) => location(route, Line(0)),
        GatewayRoute::Tls(route) => location(route, Line(0)),
    }
}
