//! Attachment of routes to listeners.

use std::sync::Arc;

use super::listeners::{Member, is_in};
use super::{Gateways, ServedGateway, ServedListener};
use crate::catalog::hostname;
use crate::kind::ObjectRef;
use crate::resource::Object;
use crate::resource::gateway_api::{GROUP, GRPCRoute, HTTPRoute, ParentRef, TCPRoute, TLSRoute};
use crate::resource::istio::Lined;

/// Route, as far as its attachment depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachingRoute<'a> {
    /// Kind, namespace and name.
    pub id: &'a ObjectRef,
    /// Parents.
    pub parents: &'a [ParentRef],
    /// Hosts; none for those of the listener.
    pub hostnames: &'a [Lined<Arc<str>>],
    /// Whether it comes from a server.
    pub is_from_server: bool,
}

macro_rules! attaching_routes {
    ($($kind:ident $hostnames:expr;)*) => {$(
        impl<'a> From<&'a Object<$kind>> for AttachingRoute<'a> {
            fn from(object: &'a Object<$kind>) -> Self {
                let hostnames: fn(&'a $kind) -> &'a [Lined<Arc<str>>] = $hostnames;
                Self {
                    id: &object.id,
                    parents: &object.spec.parents,
                    hostnames: hostnames(&object.spec),
                    is_from_server: object.is_from_server(),
                }
            }
        }
    )*};
}
attaching_routes! {
    GRPCRoute |spec| &spec.hostnames;
    HTTPRoute |spec| &spec.hostnames;
    TCPRoute |_| &[];
    TLSRoute |spec| &spec.hostnames;
}

/// Listener that a route is attached to.
#[derive(Debug)]
pub struct Attached<'g, 'a> {
    /// Gateway of the listener.
    pub gateway: &'g ServedGateway<'a>,
    /// Listener. It may not be accepted.
    pub listener: &'g ServedListener<'a>,
    /// Hosts that the listener and the route share; `*` for every host.
    pub hosts: Vec<Arc<str>>,
}

/// Reason that a route is not attached to a parent; a later one is closer to an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttachmentProblem {
    /// The parent is not accepted, or has no listener of the section and port.
    NoMatchingParent,
    /// Listeners do not allow routes of the kind, or of the namespace.
    NotAllowedByListeners,
    /// Listeners have other hosts.
    NoMatchingListenerHostname,
}

impl<'a> Gateways<'a> {
    /// Attaches a route to one of its parents; `None` for a parent that is not a served Gateway, or a ListenerSet of one.
    pub fn attach(
        &self,
        route: AttachingRoute<'_>,
        parent: &ParentRef,
    ) -> Option<Result<Vec<Attached<'_, 'a>>, AttachmentProblem>> {
        let (gateway, set) = self.parent(parent)?;
        if gateway.problem().is_some() {
            return Some(Err(AttachmentProblem::NoMatchingParent));
        }
        let mut attached = Vec::new();
        let mut problem = AttachmentProblem::NoMatchingParent;
        for listener in gateway.listeners.iter().filter(|one| one.set == set) {
            match self.attach_to(route, parent, gateway, listener) {
                Ok(hosts) => attached.push(Attached {
                    gateway,
                    listener,
                    hosts,
                }),
                Err(found) => problem = problem.max(found),
            }
        }
        Some(match attached.is_empty() {
            true => Err(problem),
            false => Ok(attached),
        })
    }

    /// Returns the listeners of a parent.
    pub fn listeners_of(&self, parent: &ParentRef) -> Vec<&ServedListener<'a>> {
        let Some((gateway, set)) = self.parent(parent) else {
            return Vec::new();
        };
        let listeners = gateway.listeners.iter();
        listeners.filter(|one| one.set == set).collect()
    }

    /// Returns the Gateway of a parent, and the position of its ListenerSet if it is one.
    fn parent(&self, parent: &ParentRef) -> Option<(&ServedGateway<'a>, Option<usize>)> {
        let name = parent.object.to_name();
        let (index, set) = if parent.object.is(GROUP, "Gateway") {
            (*self.by_name.get(&name)?, None)
        } else if parent.object.is(GROUP, "ListenerSet") {
            let (index, set) = *self.sets.get(&name)?;
            (index, Some(set))
        } else {
            return None;
        };
        Some((&self.all[index], set))
    }

    fn attach_to(
        &self,
        route: AttachingRoute<'_>,
        parent: &ParentRef,
        gateway: &ServedGateway<'a>,
        served: &ServedListener<'a>,
    ) -> Result<Vec<Arc<str>>, AttachmentProblem> {
        let listener = served.listener;
        let is_named = parent
            .section
            .as_ref()
            .is_none_or(|name| *name == listener.name)
            && parent.port.is_none_or(|port| port == listener.port);
        if !is_named {
            return Err(AttachmentProblem::NoMatchingParent);
        }
        let own = &gateway.owner(served).namespace;
        let member = Member {
            namespace: &route.id.namespace,
            is_from_server: route.is_from_server,
        };
        let is_allowed = served.kinds.contains(&route.id.kind)
            && is_in(self.view, &listener.namespaces, own, member);
        if !is_allowed {
            return Err(AttachmentProblem::NotAllowedByListeners);
        }
        let hosts = shared_hosts(listener.hostname.as_ref(), route.hostnames);
        match hosts.is_empty() {
            true => Err(AttachmentProblem::NoMatchingListenerHostname),
            false => Ok(hosts),
        }
    }
}

/// Returns the hosts that a listener and a route share.
fn shared_hosts(listener: Option<&Arc<str>>, route: &[Lined<Arc<str>>]) -> Vec<Arc<str>> {
    let Some(listener) = listener else {
        return match route {
            [] => vec!["*".into()],
            route => route.iter().map(|host| Arc::clone(&host.value)).collect(),
        };
    };
    if route.is_empty() {
        return vec![Arc::clone(listener)];
    }
    let shared = route.iter().filter_map(|host| {
        let shared = hostname::intersection(&host.value, listener)?;
        Some(match *shared == **listener {
            true => Arc::clone(listener),
            false => Arc::clone(&host.value),
        })
    });
    let mut hosts: Vec<Arc<str>> = Vec::new();
    for host in shared {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::super::CONTROLLER;
    use super::super::tests::{gateway, object};
    use super::*;
    use crate::catalog::View;
    use crate::diagnostic::Diagnostics;
    use crate::load_bytes;

    #[test]
    fn unknown_labels_of_a_namespace_never_admit_it() {
        let absent = "matchExpressions: [{key: untrusted, operator: DoesNotExist}]";
        let other = "matchExpressions: [{key: team, operator: NotIn, values: [guests]}]";
        let named = "matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [guests]}]";
        let by_name = "matchLabels: {kubernetes.io/metadata.name: web}";
        let object_of = "---\n{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n";
        for (selector, file, documents, expected) in [
            (absent, "kubernetes://a", "", false),
            (other, "xds://a:1", "", false),
            (named, "kubernetes://a", "", true),
            (by_name, "kubernetes://a", "", true),
            (absent, "a.yaml", "", true),
            (other, "a.yaml", "", true),
            (absent, "kubernetes://a", object_of, true),
            (other, "kubernetes://a", object_of, true),
        ] {
            let listeners = format!(
                "listeners: [{{name: a, protocol: HTTP, port: 80, allowedRoutes: {{namespaces: {{from: Selector, selector: {{{selector}}}}}}}}}], \
                 allowedListeners: {{namespaces: {{from: Selector, selector: {{{selector}}}}}}}"
            );
            let text = [
                gateway(&listeners),
                object(
                    "HTTPRoute",
                    "web/r",
                    "parentRefs: [{name: main, namespace: edge}], rules: [{}]",
                ),
                object(
                    "ListenerSet",
                    "web/s",
                    "parentRef: {name: main, namespace: edge}, listeners: [{name: b, protocol: HTTP, port: 81}]",
                ),
                documents.to_owned(),
                object(
                    "GatewayClass",
                    "x/strait",
                    &format!("controllerName: {CONTROLLER}"),
                ),
            ];
            let mut found = Diagnostics::default();
            let set = load_bytes(file, text.concat().as_bytes(), &mut found);
            assert!(!found.has_errors(), "{:?}", found.into_sorted());
            let gateways = Gateways::of(View::from(&set), CONTROLLER);
            let route: &Object<HTTPRoute> = set.http_routes.values().next().unwrap();
            let attached = gateways
                .attach(route.into(), &route.spec.parents[0])
                .unwrap();
            assert_eq!(attached.is_ok(), expected, "{selector} {file}");
            assert_eq!(
                gateways.all[0].sets[0].is_allowed, expected,
                "{selector} {file}"
            );
        }
    }
}
