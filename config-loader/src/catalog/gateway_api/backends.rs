//! Backends of routes: the service that a reference means.

use std::sync::Arc;

use super::backend_tls::{policy_of, rule_with_tls, trusted};
use super::grants::Referrer;
use super::references::ReferenceProblem;
use crate::catalog::{View, hostname};
use crate::kind::{Kind, Name, ObjectRef};
use crate::resource::core::Service;
use crate::resource::flomesh::ServiceImport;
use crate::resource::gateway_api::{BackendRef, Filter, ObjectReference, RouteRule};

/// Value of `appProtocol` for WebSocket over TLS.
const WEBSOCKET_TLS: &str = "kubernetes.io/wss";

/// Service that a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHost {
    /// Host of the service in the mesh.
    pub host: String,
    /// Port of the service.
    pub port: u16,
    /// BackendTLSPolicy by which the proxy sends to the service.
    pub tls_policy: Option<ObjectRef>,
}

/// Returns the service of a backend of a route at a gateway.
///
/// # Errors
///
/// Returns the reason that the reference does not hold.
pub fn backend(
    view: View<'_>,
    route: &ObjectRef,
    target: &BackendRef,
    domain: &str,
) -> Result<BackendHost, ReferenceProblem> {
    let mut found = raw_backend(view, route, target, domain)?;
    let port = port_of(view, &target.object, found.port).flatten();
    let port = port.unwrap_or_default();
    // connections of a TCPRoute are passed on as they are
    let may_have_policy = route.kind != Kind::TCPRoute;
    let policy = may_have_policy.then(|| policy_of(view, &target.object, port.name));
    let policy = policy.flatten();
    if let Some(policy) = policy
        && trusted(view, policy).is_none()
    {
        return Err(ReferenceProblem::UnverifiableTls(policy.id.clone()));
    }
    let has_tls =
        || policy.is_some() || rule_with_tls(view, &found.host, found.port, domain).is_some();
    if port.app_protocol == Some(WEBSOCKET_TLS) && !has_tls() {
        return Err(ReferenceProblem::UnsupportedProtocol(WEBSOCKET_TLS));
    }
    found.tls_policy = policy.map(|policy| policy.id.clone());
    Ok(found)
}

/// Returns the service of a backend of a route at a gateway that passes the bytes of its clients on as they are:
/// BackendTLSPolicies do not apply.
///
/// # Errors
///
/// Returns the reason that the reference does not hold.
pub fn raw_backend(
    view: View<'_>,
    route: &ObjectRef,
    target: &BackendRef,
    domain: &str,
) -> Result<BackendHost, ReferenceProblem> {
    let object = &target.object;
    let referrer = Referrer {
        kind: route.kind.as_str(),
        namespace: &route.namespace,
    };
    if host_of(object, domain).is_some() && !referrer.may_refer(view, object) {
        return Err(ReferenceProblem::NotPermitted);
    }
    mesh_backend(view, target, domain)
}

/// Returns the service of a backend of a route in a sidecar. It sends requests as the workload itself, which needs no
/// ReferenceGrant, and BackendTLSPolicies do not apply.
///
/// # Errors
///
/// Returns the reason that the reference does not hold.
pub fn mesh_backend(
    view: View<'_>,
    target: &BackendRef,
    domain: &str,
) -> Result<BackendHost, ReferenceProblem> {
    let object = &target.object;
    let Some(host) = host_of(object, domain) else {
        return Err(ReferenceProblem::InvalidKind);
    };
    let (kind, name) = (&object.kind, object.to_name());
    let missing = |what: String| Err(ReferenceProblem::NotFound(what));
    let Some(port) = target.port else {
        return missing(format!("{kind} {name} needs a port"));
    };
    match has_port(view, object, port) {
        None => missing(format!("{kind} {name} does not exist")),
        Some(false) => missing(format!("{kind} {name} has no port {port}")),
        Some(true) => Ok(BackendHost {
            host,
            port,
            tls_policy: None,
        }),
    }
}

/// Returns the host of a Service or ServiceImport in the mesh; `None` for other kinds.
pub(super) fn host_of(object: &ObjectReference, domain: &str) -> Option<String> {
    let (name, namespace) = (&object.name, &object.namespace);
    if object.is_service() {
        return Some(hostname::of_service(name, namespace, domain));
    }
    let is_import = object.is_service_import();
    is_import.then(|| hostname::of_cluster_set_service(name, namespace))
}

/// Whether a Service or ServiceImport has a port; `None` if it does not exist.
pub(super) fn has_port(view: View<'_>, object: &ObjectReference, port: u16) -> Option<bool> {
    port_of(view, object, port).map(|port| port.is_some())
}

/// Port of a backend, as far as its TLS depends on it.
#[derive(Clone, Copy, Default)]
struct Port<'a> {
    name: &'a str,
    app_protocol: Option<&'a str>,
}

impl<'a> Port<'a> {
    fn new(name: &'a str, app_protocol: Option<&'a Arc<str>>) -> Self {
        Self {
            name,
            app_protocol: app_protocol.map(|protocol| &**protocol),
        }
    }
}

/// Returns a port of a Service or ServiceImport, which must exist. An ExternalName has every port.
fn port_of<'a>(view: View<'a>, object: &ObjectReference, port: u16) -> Option<Option<Port<'a>>> {
    let name: Name = object.to_name();
    if !object.is_service() {
        let import = view.get::<ServiceImport>(&name)?;
        let mut ports = import.spec.ports.iter();
        let found = ports.find(|one| one.port == port);
        return Some(found.map(|one| Port::new(&one.name, one.app_protocol.as_ref())));
    }
    let service = &view.get::<Service>(&name)?.spec;
    let found = service.port(port);
    let found = found.map(|one| Port::new(&one.name, one.app_protocol.as_ref()));
    let any = || service.external_name().map(|_| Port::default());
    Some(found.or_else(any))
}

/// Returns the backends of rules, with those of mirrors, in order.
pub fn backend_targets<M>(rules: &[RouteRule<M>]) -> impl Iterator<Item = &BackendRef> {
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
