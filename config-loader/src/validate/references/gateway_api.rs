//! Gateway API: Gateways that no controller serves, listeners that are not accepted, routes that attach to nothing, and
//! references that do not hold.

mod backend_tls;
mod backends;
pub(super) mod matches;

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use super::finding::{location, note, warning};
use super::service_routes;
use crate::Fleet;
use backends::{Place, placed};

use crate::catalog::View;
use crate::catalog::gateway_api::status::GatewayAddresses;
use crate::catalog::gateway_api::{
    AttachingRoute, AttachmentProblem, ClassOf, GatewayProblem, Gateways, ListenerProblem,
    PlacedListener, ReferenceProblem, Referrer, ServedGateway, ServedListener, backend, class_of,
    has_built_in_class, mesh_backend, seniority, service_of,
};
use crate::diagnostic::codes::gateway_api::{
    GA001, GA002, GA004, GA010, GA011, GA014, GA020, GA021, GA030, GA042, GA044,
};
use crate::diagnostic::{Code, Diagnostic, Severity, suggest};
use crate::kind::ObjectRef;
use crate::resource::gateway_api::{
    BackendRef, GROUP, ObjectReference, ParentRef, RouteRule, TCPRoute,
};
use crate::resource::istio::Bind;
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

/// Checks all objects of the Gateway API but HTTPRoutes and GRPCRoutes, as the proxies of a fleet see them.
pub(super) fn check(set: &ResourceSet, domain: &str, fleet: &Fleet, found: &mut Vec<Diagnostic>) {
    let view = View::from(set);
    let controller = fleet.gateway_controller();
    let gateways = Gateways::of(view, controller);
    check_classes(view, set, controller, found);
    for gateway in gateways.iter() {
        check_listeners(gateway, found);
    }
    check_addresses(set, &gateways, fleet, found);
    let world = World {
        set,
        domain,
        gateways: &gateways,
    };
    for route in set.tls_routes.values() {
        let targets = route.spec.rule.targets().enumerate();
        let placed = targets.map(|(index, target)| (Place::of_connections(index), target));
        world.route(route, placed, found);
    }
    for route in set.tcp_routes.values() {
        let targets = route.spec.rule.targets().enumerate();
        let placed = targets.map(|(index, target)| (Place::of_connections(index), target));
        world.route(route, placed, found);
    }
    world.check_tcp_routes(found);
    backend_tls::check(view, domain, found);
}

/// Reports Gateways that this controller does not serve.
fn check_classes(view: View<'_>, set: &ResourceSet, controller: &str, found: &mut Vec<Diagnostic>) {
    for gateway in set.kubernetes_gateways.values() {
        let class = &gateway.spec.class;
        let line = gateway.spec.class_line;
        let field = "spec.gatewayClassName";
        let mut diagnostic = match class_of(view, gateway, controller) {
            ClassOf::Served => continue,
            ClassOf::Unknown => {
                let message =
                    format!("no GatewayClass has the name `{class}`: the Gateway is not served");
                let mut diagnostic = note(gateway, GA001, line, field, message);
                let instead = match has_built_in_class(gateway) {
                    true => "write `strait`, or add",
                    false => "add",
                };
                diagnostic.help(format!(
                    "{instead} a GatewayClass `{class}` with `controllerName: {controller}`"
                ));
                diagnostic
            }
            ClassOf::Other(other) => {
                let message = format!("the class `{class}` is of the controller `{other}`");
                let mut diagnostic = note(gateway, GA002, line, field, message);
                diagnostic.help("leave it to that controller, or write a class of this one");
                diagnostic
            }
            ClassOf::WithParameters => {
                let message = format!(
                    "the class `{class}` has parameters, so that no Gateway of it is served"
                );
                warning(gateway, GA010, line, field.to_owned(), message)
            }
        };
        if diagnostic.severity == Severity::Warning {
            diagnostic.help("remove `parametersRef` from the GatewayClass");
        }
        found.push(diagnostic);
    }
}

/// Reports listeners of a served Gateway that are not accepted, and references of theirs that do not hold.
fn check_listeners(gateway: &ServedGateway<'_>, found: &mut Vec<Diagnostic>) {
    for served in &gateway.listeners {
        match served.set {
            None => check_listener(&**gateway.object, "Gateway", served, found),
            Some(index) => {
                check_listener(&**gateway.sets[index].object, "ListenerSet", served, found);
            }
        }
    }
    for attached in gateway.sets.iter().filter(|one| !one.is_allowed) {
        let message = format!(
            "{} allows no listeners of this namespace",
            gateway.object.id
        );
        let field = "spec.parentRef".to_owned();
        let mut diagnostic = warning(attached.object, GA020, Line(0), field, message);
        diagnostic.help(
            "set `allowedListeners.namespaces.from` of the Gateway to `Same`, `All` or `Selector`",
        );
        found.push(diagnostic);
    }
    if let Some(GatewayProblem::UnsupportedAddress(name)) = gateway.problem() {
        let message = format!("the address `{name}` is not supported: no listener is opened");
        let field = "spec.addresses".to_owned();
        let mut diagnostic = warning(gateway.object, GA020, Line(0), field, message);
        diagnostic.help("write an address of type IPAddress, or none");
        found.push(diagnostic);
    }
    if let (Some(Err(problem)), Some(target)) = (
        &gateway.client_certificate,
        &gateway.object.spec.client_certificate,
    ) {
        let field = "spec.tls.backend.clientCertificateRef".to_owned();
        let at = Reference {
            object: &**gateway.object,
            kind: "Gateway",
            field,
        };
        found.push(at.diagnostic(target, problem));
    }
}

/// Reports listeners whose address and port an Istio Gateway has, or an older Gateway.
fn check_addresses(
    set: &ResourceSet,
    gateways: &Gateways<'_>,
    fleet: &Fleet,
    found: &mut Vec<Diagnostic>,
) {
    let servers = set.gateways.values().flat_map(|gateway| {
        let servers = gateway.spec.servers.iter();
        servers.filter_map(move |server| {
            let ip = match server.bind {
                Bind::Default => Ipv6Addr::UNSPECIFIED.into(),
                Bind::Ip(ip) => ip,
                Bind::Unix(_) => return None,
            };
            Some((SocketAddr::new(ip, server.port), &gateway.id))
        })
    });
    let istio: HashMap<SocketAddr, &ObjectRef> = servers.collect();
    let by_address = gateways.by_address(fleet.root_namespace(), |gateway| {
        match fleet.has_gateway_pool {
            true => GatewayAddresses::of(gateway).written,
            false => gateway.addresses(&[]),
        }
    });
    for (address, listeners) in by_address {
        for (placed, other) in &listeners.guarded {
            found.push(guarded(placed, &other.gateway.object.id));
        }
        let of_istio = istio.get(&address).into_iter().flat_map(|id| {
            let opened = listeners.opened.iter();
            opened.map(|placed| (placed, id.to_string()))
        });
        let lost = listeners.lost.iter();
        let lost = lost.map(|(placed, older)| (placed, older.gateway.object.id.to_string()));
        for (placed, owner) in of_istio.chain(lost) {
            let listener = placed.served.listener;
            let message = format!(
                "{owner} has the address and port: a proxy that serves both does not open listener `{}`",
                listener.name
            );
            let mut diagnostic = about_port(placed, GA011, message);
            diagnostic.help(
                "give the listener another port or host, or the Gateway an address of its own",
            );
            found.push(diagnostic);
        }
    }
}

/// Reports a listener whose Gateway shares the address with one that has other policies.
fn guarded(placed: &PlacedListener<'_, '_>, other: &ObjectRef) -> Diagnostic {
    let message = format!(
        "policies are attached to the Gateway, and not the same ones to {other}, which has the address and port as well: a \
         proxy that serves both does not open listener `{}`",
        placed.served.listener.name
    );
    let mut diagnostic = about_port(placed, GA014, message);
    diagnostic.help("give the Gateway an address of its own, by `spec.addresses` or --gateway-addresses, or the listener another port");
    diagnostic
}

fn about_port(placed: &PlacedListener<'_, '_>, code: Code, message: String) -> Diagnostic {
    let listener = placed.served.listener;
    let field = format!("spec.listeners[{}].port", listener.name);
    match placed.served.set {
        None => warning(placed.gateway.object, code, listener.line, field, message),
        Some(set) => {
            let set = placed.gateway.sets[set].object;
            warning(set, code, listener.line, field, message)
        }
    }
}

/// Field with a reference.
struct Reference<'a, T> {
    object: &'a Object<T>,
    /// Kind of the object.
    kind: &'a str,
    field: String,
}

impl<T> Reference<'_, T> {
    fn diagnostic(&self, target: &ObjectReference, problem: &ReferenceProblem) -> Diagnostic {
        if *problem == ReferenceProblem::NotPermitted {
            return self.missing_grant(target);
        }
        let message = problem.describe(target);
        let field = self.field.clone();
        let mut diagnostic = warning(self.object, GA030, target.line, field, message);
        diagnostic.help("the listener serves without what is missing, or not at all: certificates are Secrets with `tls.crt` and `tls.key`, CA certificates ConfigMaps or Secrets with `ca.crt`");
        diagnostic
    }

    fn missing_grant(&self, target: &ObjectReference) -> Diagnostic {
        let message = ReferenceProblem::NotPermitted.describe(target);
        let mut diagnostic = warning(self.object, GA021, target.line, self.field.clone(), message);
        let referrer = Referrer {
            kind: self.kind,
            namespace: &self.object.id.namespace,
        };
        diagnostic.help(format!("apply {}", referrer.missing_grant(target)));
        diagnostic
    }
}

fn check_listener<T>(
    object: &Object<T>,
    kind: &str,
    served: &ServedListener<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let listener = served.listener;
    let name = &listener.name;
    let message = match &served.problem {
        Some(ListenerProblem::HostnameConflict(with)) => {
            let host = listener.hostname.as_deref().unwrap_or("*");
            Some(format!(
                "listener `{name}` is not accepted: {with} has port {} and the host `{host}`",
                listener.port
            ))
        }
        Some(ListenerProblem::ProtocolConflict(with)) => Some(format!(
            "listener `{name}` is not accepted: {with} has port {}, and cannot share it with {}",
            listener.port,
            listener.protocol.as_str()
        )),
        Some(ListenerProblem::NoValidCaCertificate) => Some(format!(
            "listener `{name}` is not accepted: it has no CA certificate for clients"
        )),
        Some(ListenerProblem::UnsupportedProtocol) => Some(format!(
            "listener `{name}` is not accepted: {} is not supported",
            listener.protocol.as_str()
        )),
        None if !served.is_usable() && served.certificate_problems().next().is_none() => Some(
            format!("listener `{name}` is not opened: it has no certificate"),
        ),
        None if served.is_usable() && !served.is_served() => Some(format!(
            "listener `{name}` is not opened: {} with these settings is not followed yet",
            listener.protocol.as_str()
        )),
        None if served.has_invalid_kinds => Some(format!(
            "listener `{name}` allows kinds that {} does not carry",
            listener.protocol.as_str()
        )),
        None => None,
    };
    if let Some(message) = message {
        let field = format!("spec.listeners[{name}]");
        let mut diagnostic = warning(object, GA020, listener.line, field, message);
        diagnostic.help(match &served.problem {
            Some(ListenerProblem::NoValidCaCertificate) => {
                "write a ConfigMap or Secret with `ca.crt`, and a ReferenceGrant if it is of another namespace"
            }
            None if !served.is_usable() => "write `tls.certificateRefs`",
            _ => "give the listener another port, host or protocol; HTTP, HTTPS, TLS and TCP are served",
        });
        found.push(diagnostic);
    }
    let at = |field: &str| Reference {
        object,
        kind,
        field: format!("spec.listeners[{name}].{field}"),
    };
    for (target, problem) in served.certificate_problems() {
        found.push(at("tls.certificateRefs").diagnostic(target, problem));
    }
    if let Some(clients) = &served.clients {
        let written = clients.references.iter().zip(&clients.authorities);
        let problems = written.filter_map(|(target, one)| Some((target, one.as_ref().err()?)));
        for (target, problem) in problems {
            found.push(at("tls.frontend").diagnostic(target, problem));
        }
    }
}

/// State that routes are checked against.
pub(super) struct World<'a> {
    pub(super) set: &'a ResourceSet,
    /// Domain of the mesh.
    pub(super) domain: &'a str,
    pub(super) gateways: &'a Gateways<'a>,
}

impl World<'_> {
    /// Checks an HTTPRoute or GRPCRoute with these rules.
    pub(super) fn route_of_requests<'r, T, M>(
        &self,
        route: &'r Object<T>,
        rules: &'r [RouteRule<M>],
    ) -> Vec<Diagnostic>
    where
        AttachingRoute<'r>: From<&'r Object<T>>,
    {
        let mut found = Vec::new();
        self.route(route, placed(rules), &mut found);
        let mut parents = AttachingRoute::from(route).parents.iter();
        let is_ours = |parent| self.gateways.attach(route.into(), parent).is_some();
        if parents.any(is_ours) {
            backends::check_weights(route, rules, &mut found);
        }
        found
    }

    /// Reports parents that a route does not attach to, and backends that do not hold.
    fn route<'r, T>(
        &self,
        object: &'r Object<T>,
        backends: impl Iterator<Item = (Place, &'r BackendRef)>,
        found: &mut Vec<Diagnostic>,
    ) where
        AttachingRoute<'r>: From<&'r Object<T>>,
    {
        let view = View::from(self.set);
        let route = AttachingRoute::from(object);
        let (mut is_served, mut is_in_mesh) = (false, false);
        for (index, parent) in route.parents.iter().enumerate() {
            let field = format!("spec.parentRefs[{index}]");
            match self.gateways.attach(route, parent) {
                Some(Ok(_)) => is_served = true,
                Some(Err(problem)) => {
                    is_served = true;
                    found.push(self.unattached(object, parent, field, problem));
                }
                None => match service_of(view, route, parent, self.domain) {
                    Some(Ok(_)) => {
                        is_in_mesh = true;
                        service_routes::check_fields(object, route, parent, found);
                    }
                    Some(Err(problem)) => {
                        let problem = service_routes::unattached(object, parent, field, problem);
                        found.push(problem);
                    }
                    None => found.extend(self.unknown_parent(object, parent, field)),
                },
            }
        }
        if !is_served && !is_in_mesh {
            return;
        }
        for (place, target) in backends {
            let resolved = match is_served {
                true => backend(view, &object.id, target, self.domain),
                false => mesh_backend(view, target, self.domain),
            };
            let Err(problem) = resolved else {
                continue;
            };
            let target = &target.object;
            let at = Reference {
                object,
                kind: object.id.kind.as_str(),
                field: place.field(),
            };
            if problem == ReferenceProblem::NotPermitted {
                found.push(at.missing_grant(target));
                continue;
            }
            let what = problem.describe(target);
            let message = format!("{what}: {}", place.fate(object.id.kind));
            let code = backends::code_of(&problem);
            let mut diagnostic = warning(object, code, target.line, at.field, message);
            diagnostic.help(backends::advice(&problem));
            found.push(diagnostic);
        }
    }

    fn unattached<T>(
        &self,
        object: &Object<T>,
        parent: &ParentRef,
        field: String,
        problem: AttachmentProblem,
    ) -> Diagnostic {
        let target = &parent.object;
        let name = format!("{}/{}", target.namespace, target.name);
        let listeners = self.gateways.listeners_of(parent);
        let names = listeners.iter().map(|one| &*one.listener.name);
        let names: Vec<&str> = names.collect();
        let (why, help) = match problem {
            AttachmentProblem::NoMatchingParent => {
                let section = parent.section.as_deref();
                let near = section.and_then(|name| suggest::nearest(name, names.iter().copied()));
                let help = match near {
                    Some(near) => format!("did you mean `sectionName: {near}`?"),
                    None => format!("its listeners are: {}", names.join(", ")),
                };
                ("it has no listener with this section and port", help)
            }
            AttachmentProblem::NotAllowedByListeners => (
                "its listeners do not allow routes of this kind or namespace",
                format!(
                    "add the kind or the namespace {} to `allowedRoutes` of a listener",
                    object.id.namespace
                ),
            ),
            AttachmentProblem::NoMatchingListenerHostname => {
                let hosts = listeners
                    .iter()
                    .filter_map(|one| one.listener.hostname.as_deref());
                let mut hosts: Vec<&str> = hosts.collect();
                hosts.sort_unstable();
                hosts.dedup();
                (
                    "its listeners have other hosts",
                    format!("their hosts are: {}", hosts.join(", ")),
                )
            }
        };
        let message = format!("the route is not attached to {} {name}: {why}", target.kind);
        let mut diagnostic = warning(object, GA044, target.line, field, message);
        diagnostic.help(help);
        diagnostic
    }

    /// Reports a parent that does not exist.
    fn unknown_parent<T>(
        &self,
        object: &Object<T>,
        parent: &ParentRef,
        field: String,
    ) -> Option<Diagnostic> {
        let target = &parent.object;
        let name = target.to_name();
        let exists = match &*target.kind {
            "Gateway" => self.set.kubernetes_gateways.contains_key(&name),
            "ListenerSet" => self.set.listener_sets.contains_key(&name),
            _ => return None,
        };
        if exists || *target.group != *GROUP {
            return None;
        }
        let message = format!(
            "{} {name} does not exist: the route is not attached to it",
            target.kind
        );
        let mut diagnostic = note(object, GA004, target.line, &field, message);
        diagnostic.help("write the name and namespace of one that exists, or add it");
        Some(diagnostic)
    }

    /// Reports TCPRoutes that get no connection, because an older one has the listener.
    fn check_tcp_routes(&self, found: &mut Vec<Diagnostic>) {
        let mut routes: Vec<&Arc<Object<TCPRoute>>> = self.set.tcp_routes.values().collect();
        routes.sort_by_cached_key(|route| seniority(route));
        let mut owners: HashMap<(&ObjectRef, &str), &Arc<Object<TCPRoute>>> = HashMap::new();
        for route in routes {
            let parents = route.spec.parents.iter();
            let attached = parents.filter_map(|parent| {
                let found = self.gateways.attach((&**route).into(), parent)?;
                Some((parent, found.ok()?))
            });
            let mut lost = None;
            let mut has_any = false;
            for (parent, attached) in attached {
                for one in attached {
                    let key = one.gateway.id_of(one.listener);
                    let owner = *owners.entry(key).or_insert(route);
                    has_any |= Arc::ptr_eq(owner, route);
                    if !Arc::ptr_eq(owner, route) {
                        lost = Some((parent, owner));
                    }
                }
            }
            if let Some((parent, owner)) = lost.filter(|_| !has_any) {
                let message = format!(
                    "{} is older, and gets every connection of the listener",
                    owner.id
                );
                let field = "spec.parentRefs".to_owned();
                let mut diagnostic = warning(route, GA042, parent.object.line, field, message);
                diagnostic.help("attach the route to another listener, or remove the older one");
                diagnostic.related(location(owner, Line(0)), "this one serves");
                found.push(diagnostic);
            }
        }
    }
}

#[cfg(test)]
mod tests;
