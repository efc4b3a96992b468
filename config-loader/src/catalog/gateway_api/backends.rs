//! Backends of routes: the service that a reference means.

use std::sync::Arc;

use super::grants::Referrer;
use crate::catalog::{View, hostname};
use crate::kind::{MCS_API, Name, ObjectRef};
use crate::resource::core::Service;
use crate::resource::flomesh::ServiceImport;
use crate::resource::gateway_api::{BackendRef, BackendTLSPolicy, ObjectReference};

/// Service that a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHost {
    /// Host of the service in the mesh.
    pub host: String,
    /// Port of the service.
    pub port: u16,
}

/// Reason that a reference to a backend does not hold. Requests for it get a response with status 500.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendProblem {
    /// Backends are Services and ServiceImports.
    InvalidKind,
    /// The object or its port does not exist.
    NotFound(String),
    /// The object is of another namespace, and no ReferenceGrant permits the reference.
    NotPermitted,
    /// This BackendTLSPolicy applies, which proxies do not follow yet: requests would be sent in plain text.
    TlsNotFollowed(ObjectRef),
}

/// Returns the service of a backend of a route.
///
/// # Errors
///
/// Returns the reason that the reference does not hold.
pub fn backend(
    view: View<'_>,
    route: &ObjectRef,
    target: &BackendRef,
    domain: &str,
) -> Result<BackendHost, BackendProblem> {
    let object = &target.object;
    let is_service = object.is("", "Service");
    let is_import = &*object.kind == "ServiceImport"
        && (&*object.group == MCS_API || object.group.ends_with("flomesh.io"));
    if !is_service && !is_import {
        return Err(BackendProblem::InvalidKind);
    }
    let referrer = Referrer {
        kind: route.kind.as_str(),
        namespace: &route.namespace,
    };
    if !referrer.may_refer(view, object) {
        return Err(BackendProblem::NotPermitted);
    }
    let name = Name {
        namespace: Arc::clone(&object.namespace),
        name: Arc::clone(&object.name),
    };
    let missing = |what: String| Err(BackendProblem::NotFound(what));
    let has_port = |port: u16| match is_service {
        true => view.get::<Service>(&name).map(|service| {
            service.spec.external_name().is_some() || service.spec.port(port).is_some()
        }),
        false => view.get::<ServiceImport>(&name).map(|import| {
            let mut ports = import.spec.ports.iter();
            ports.any(|one| one.port == port)
        }),
    };
    let kind = &object.kind;
    let Some(port) = target.port else {
        return missing(format!("{kind} {name} needs a port"));
    };
    match has_port(port) {
        None => missing(format!("{kind} {name} does not exist")),
        Some(false) => missing(format!("{kind} {name} has no port {port}")),
        Some(true) => match tls_policy(view, object) {
            Some(policy) => Err(BackendProblem::TlsNotFollowed(policy.clone())),
            None => Ok(BackendHost {
                host: match is_service {
                    true => hostname::of_service(&object.name, &object.namespace, domain),
                    false => hostname::of_cluster_set_service(&object.name, &object.namespace),
                },
                port,
            }),
        },
    }
}

/// Returns a BackendTLSPolicy of an object.
fn tls_policy<'a>(view: View<'a>, object: &ObjectReference) -> Option<&'a ObjectRef> {
    let mut policies = view.in_namespace::<BackendTLSPolicy>(&object.namespace);
    let policy = policies.find(|policy| {
        let targets = &policy.spec.targets;
        let mut all = targets.iter();
        targets.is_empty()
            || all.any(|target| {
                target.object.is(&object.group, &object.kind) && target.object.name == object.name
            })
    });
    policy.map(|policy| &policy.id)
}
