//! Gateway API: Gateways that no controller serves, listeners that are not accepted, routes that attach to nothing, and
//! references that do not hold.

use std::collections::HashMap;
use std::sync::Arc;

use super::finding::{location, warning};
use crate::catalog::View;
use crate::catalog::gateway_api::{
    AttachingRoute, AttachmentProblem, BackendProblem, ClassOf, Gateways, ListenerProblem,
    ReferenceProblem, Referrer, ServedGateway, ServedListener, backend, class_of, seniority,
};
use crate::diagnostic::codes::gateway_api::{
    GA001, GA002, GA004, GA010, GA014, GA020, GA021, GA030, GA041, GA042, GA044, GA052, GA062,
    GA063, GA070, GA071,
};
use crate::diagnostic::{Code, Diagnostic, Severity, suggest};
use crate::kind::ObjectRef;
use crate::resource::gateway_api::{
    BackendRef, BackendTLSPolicy, Filter, GROUP, HTTPRoute, ObjectReference, ParentRef, RouteRule,
    TCPRoute,
};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

/// Checks all objects of the Gateway API, as the proxies of this controller see them.
pub(super) fn check(
    set: &ResourceSet,
    domain: &str,
    controller: &str,
    found: &mut Vec<Diagnostic>,
) {
    let view = View::from(set);
    let gateways = Gateways::of(view, controller);
    check_classes(view, set, controller, found);
    for gateway in gateways.iter() {
        check_listeners(gateway, found);
    }
    let world = World {
        view,
        set,
        domain,
        gateways: &gateways,
    };
    for route in set.http_routes.values() {
        check_backend_filters(route, found);
        world.route(route, http_backends(&route.spec.rules), found);
    }
    for route in set.grpc_routes.values() {
        world.route(route, http_backends(&route.spec.rules), found);
    }
    for route in set.tls_routes.values() {
        let backends = route.spec.rule.backends.iter().map(|one| &one.target);
        world.route(route, backends, found);
    }
    for route in set.tcp_routes.values() {
        let backends = route.spec.rule.backends.iter().map(|one| &one.target);
        world.route(route, backends, found);
    }
    world.check_tcp_routes(found);
    check_backend_tls_policies(set, found);
}

/// Returns the backends of rules, with those of mirrors.
fn http_backends<M>(rules: &[RouteRule<M>]) -> impl Iterator<Item = &BackendRef> {
    fn mirror(filter: &Filter) -> Option<&BackendRef> {
        match filter {
            Filter::Mirror(mirror) => Some(&mirror.target),
            _ => None,
        }
    }
    rules.iter().flat_map(|rule| {
        let of_backends = rule.backends.iter().flat_map(|backend| {
            let mirrors = backend.filters.iter().filter_map(mirror);
            std::iter::once(&backend.target).chain(mirrors)
        });
        let mirrors = rule.filters.iter().filter_map(mirror);
        mirrors.chain(of_backends)
    })
}

fn note<T>(object: &Object<T>, code: Code, line: Line, field: &str, message: String) -> Diagnostic {
    let mut found = warning(object, code, line, field.to_owned(), message);
    found.severity = Severity::Note;
    found
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
                diagnostic.help(format!(
                    "write `strait`, or add a GatewayClass `{class}` with `controllerName: {controller}`"
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
            None => check_listener((&**gateway.object, "Gateway"), served, found),
            Some(index) => {
                check_listener(
                    (&**gateway.sets[index].object, "ListenerSet"),
                    served,
                    found,
                );
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
    if let Some(policy) = gateway.policy {
        let id = &gateway.object.id;
        let message = format!(
            "{policy} is attached to this Gateway: only proxies of its own serve it, which apply the policy"
        );
        let mut diagnostic = warning(gateway.object, GA014, Line(0), "spec".to_owned(), message);
        diagnostic.help(format!(
            "run one in namespace {} with the label `gateway.networking.k8s.io/gateway-name: {}`",
            id.namespace, id.name
        ));
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

/// Field with a reference.
struct Reference<'a, T> {
    object: &'a Object<T>,
    /// Kind of the object.
    kind: &'a str,
    field: String,
}

impl<T> Reference<'_, T> {
    fn diagnostic(&self, target: &ObjectReference, problem: &ReferenceProblem) -> Diagnostic {
        let (code, message) = match problem {
            ReferenceProblem::InvalidKind => {
                let message = format!(
                    "{} `{}` cannot be referred to here",
                    target.kind, target.name
                );
                (GA030, message)
            }
            ReferenceProblem::NotFound(what) => (GA030, what.clone()),
            ReferenceProblem::NotPermitted => return self.missing_grant(target),
        };
        let mut diagnostic = warning(self.object, code, target.line, self.field.clone(), message);
        diagnostic.help("the listener serves without what is missing, or not at all: certificates are Secrets with `tls.crt` and `tls.key`, CA certificates ConfigMaps or Secrets with `ca.crt`");
        diagnostic
    }

    fn missing_grant(&self, target: &ObjectReference) -> Diagnostic {
        let ObjectReference {
            kind,
            namespace,
            name,
            ..
        } = target;
        let message =
            format!("no ReferenceGrant permits this reference to {kind} {namespace}/{name}");
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
    (object, kind): (&Object<T>, &str),
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
        diagnostic
            .help("give the listener another port, host or protocol; HTTP and HTTPS are served");
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
        let written = clients
            .validation
            .authorities
            .iter()
            .zip(&clients.authorities);
        let problems = written.filter_map(|(target, one)| Some((target, one.as_ref().err()?)));
        for (target, problem) in problems {
            found.push(at("tls.frontend").diagnostic(target, problem));
        }
    }
}

/// Reports filters of backends that are not followed yet.
fn check_backend_filters(route: &Object<HTTPRoute>, found: &mut Vec<Diagnostic>) {
    let backends = route.spec.rules.iter().flat_map(|rule| &rule.backends);
    for backend in backends.filter(|backend| !backend.has_only_header_edits()) {
        let message = "only header modifiers are followed in filters of a backend: its share of the requests gets a \
                       response with status 500"
            .to_owned();
        let field = "spec.rules[].backendRefs[].filters".to_owned();
        let line = backend.target.object.line;
        let mut diagnostic = warning(route, GA041, line, field, message);
        diagnostic.help("write the filter in the rule");
        found.push(diagnostic);
    }
}

/// State that routes are checked against.
struct World<'a> {
    view: View<'a>,
    set: &'a ResourceSet,
    domain: &'a str,
    gateways: &'a Gateways<'a>,
}

impl World<'_> {
    /// Reports parents that a route does not attach to, and backends that do not hold.
    fn route<'r, T>(
        &self,
        object: &'r Object<T>,
        backends: impl Iterator<Item = &'r BackendRef>,
        found: &mut Vec<Diagnostic>,
    ) where
        AttachingRoute<'r>: From<&'r Object<T>>,
    {
        let route = AttachingRoute::from(object);
        let mut is_served = false;
        for (index, parent) in route.parents.iter().enumerate() {
            let field = format!("spec.parentRefs[{index}]");
            match self.gateways.attach(route, parent) {
                Some(Ok(_)) => is_served = true,
                Some(Err(problem)) => {
                    is_served = true;
                    found.push(self.unattached((object, route), parent, (field, problem)));
                }
                None => found.extend(self.unknown_parent(object, parent, field)),
            }
        }
        if !is_served {
            return;
        }
        for target in backends {
            let at = Reference {
                object,
                kind: object.id.kind.as_str(),
                field: "spec.rules[].backendRefs".to_owned(),
            };
            let Err(problem) = backend(self.view, &object.id, target, self.domain) else {
                continue;
            };
            let (code, what) = match problem {
                BackendProblem::NotPermitted => {
                    found.push(at.missing_grant(&target.object));
                    continue;
                }
                BackendProblem::InvalidKind => {
                    let what = format!("{} cannot be a backend", target.object.kind);
                    (GA070, what)
                }
                BackendProblem::NotFound(what) => (GA071, what),
                BackendProblem::TlsNotFollowed(policy) => (
                    GA063,
                    format!("{policy} applies, which is not followed yet"),
                ),
            };
            let message =
                format!("{what}: its share of the requests gets a response with status 500");
            let line = target.object.line;
            let mut diagnostic = warning(object, code, line, at.field, message);
            diagnostic.help("write a Service or ServiceImport that exists, and one of its ports");
            found.push(diagnostic);
        }
    }

    fn unattached<T>(
        &self,
        (object, route): (&Object<T>, AttachingRoute<'_>),
        parent: &ParentRef,
        (field, problem): (String, AttachmentProblem),
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
                    route.id.namespace
                ),
            ),
            AttachmentProblem::NoMatchingListenerHostname => {
                let hosts = listeners
                    .iter()
                    .filter_map(|one| one.listener.hostname.as_deref());
                let hosts: Vec<&str> = hosts.collect();
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
        let name = crate::kind::Name {
            namespace: Arc::clone(&target.namespace),
            name: Arc::clone(&target.name),
        };
        let exists = match &*target.kind {
            "Gateway" => self.set.kubernetes_gateways.contains_key(&name),
            "ListenerSet" => self.set.listener_sets.contains_key(&name),
            "Service" if target.group.is_empty() => {
                let message = "routes of a Service are not followed yet".to_owned();
                let mut diagnostic = warning(object, GA052, target.line, field, message);
                diagnostic.help("write a VirtualService for the host of the Service");
                return Some(diagnostic);
            }
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
                    let key = (
                        one.gateway.owner(one.listener),
                        &*one.listener.listener.name,
                    );
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

/// Reports BackendTLSPolicies whose targets older ones have.
fn check_backend_tls_policies(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut policies: Vec<&Arc<Object<BackendTLSPolicy>>> =
        set.backend_tls_policies.values().collect();
    policies.sort_by_cached_key(|policy| seniority(policy));
    let mut owners = HashMap::new();
    for policy in policies {
        for (index, target) in policy.spec.targets.iter().enumerate() {
            let ObjectReference {
                group, kind, name, ..
            } = &target.object;
            let key = (&policy.id.namespace, group, kind, name, &target.section);
            let owner = *owners.entry(key).or_insert(policy);
            if Arc::ptr_eq(owner, policy) {
                continue;
            }
            let message = format!("{} is older, and has the same target", owner.id);
            let field = format!("spec.targetRefs[{index}]");
            let mut diagnostic = warning(policy, GA062, target.object.line, field, message);
            diagnostic
                .help("keep one policy for a Service, or name different ports by `sectionName`");
            diagnostic.related(location(owner, Line(0)), "this one counts");
            found.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests;
