//! Routes of all kinds.

use std::sync::Arc;

use super::{AttachingRoute, backend_targets, seniority};
use crate::catalog::{View, differences};
use crate::kind::{Kind, ObjectRef};
use crate::resource::gateway_api::{
    BackendRef, GRPCRoute, HTTPRoute, ParentRef, TCPRoute, TLSRoute,
};
use crate::resource::{Age, Object, ResourceSet, Spec};

/// Route for requests or connections.
#[derive(Clone, Copy, Debug)]
pub enum GatewayRoute<'r> {
    /// Route of gRPC calls.
    Grpc(&'r Arc<Object<GRPCRoute>>),
    /// Route of HTTP requests.
    Http(&'r Arc<Object<HTTPRoute>>),
    /// Route of TCP connections.
    Tcp(&'r Arc<Object<TCPRoute>>),
    /// Route of TLS connections.
    Tls(&'r Arc<Object<TLSRoute>>),
}

impl<'r> GatewayRoute<'r> {
    /// Returns all routes, the oldest first.
    pub fn all(view: View<'r>) -> Vec<Self> {
        Self::selected(view, |_| true)
    }

    /// Returns the routes with such a parent, the oldest first.
    pub(super) fn selected(view: View<'r>, select: impl Fn(&ParentRef) -> bool) -> Vec<Self> {
        let http = view.all::<HTTPRoute>().values().map(Self::Http);
        let grpc = view.all::<GRPCRoute>().values().map(Self::Grpc);
        let tcp = view.all::<TCPRoute>().values().map(Self::Tcp);
        let tls = view.all::<TLSRoute>().values().map(Self::Tls);
        let all = http.chain(grpc).chain(tcp).chain(tls);
        let selected = all.filter(|route| route.attaching().parents.iter().any(&select));
        let mut all: Vec<Self> = selected.collect();
        all.sort_by_cached_key(|route| match route {
            Self::Grpc(route) => seniority(route),
            Self::Http(route) => seniority(route),
            Self::Tcp(route) => seniority(route),
            Self::Tls(route) => seniority(route),
        });
        all
    }

    /// Finds a route; `None` if it does not exist, or for another kind.
    pub fn find(view: View<'r>, id: &ObjectRef) -> Option<Self> {
        let name = id.to_name();
        match id.kind {
            Kind::GRPCRoute => view.get(&name).map(Self::Grpc),
            Kind::HTTPRoute => view.get(&name).map(Self::Http),
            Kind::TCPRoute => view.get(&name).map(Self::Tcp),
            Kind::TLSRoute => view.get(&name).map(Self::Tls),
            _ => None,
        }
    }

    /// Returns a route that has come, gone, or changed in what its attachment and its precedence follow from.
    pub fn moved<'s>(before: &'s ResourceSet, now: &'s ResourceSet) -> Option<&'s ObjectRef> {
        fn of<'s, T: Spec>(before: &'s ResourceSet, now: &'s ResourceSet) -> Option<&'s ObjectRef>
        where
            AttachingRoute<'s>: From<&'s Object<T>>,
        {
            let mut changes = differences(T::objects(before), T::objects(now));
            changes.find_map(|(gone, came)| {
                let of =
                    |object: &'s Arc<Object<T>>| (AttachingRoute::from(&**object), object.created);
                let is_moved = gone.map(of) != came.map(of);
                came.or(gone).filter(|_| is_moved).map(|object| &object.id)
            })
        }
        let requests = of::<HTTPRoute>(before, now).or_else(|| of::<GRPCRoute>(before, now));
        let connections = || of::<TCPRoute>(before, now).or_else(|| of::<TLSRoute>(before, now));
        requests.or_else(connections)
    }

    /// Returns kind, namespace and name.
    pub fn id(self) -> &'r ObjectRef {
        match self {
            Self::Grpc(route) => &route.id,
            Self::Http(route) => &route.id,
            Self::Tcp(route) => &route.id,
            Self::Tls(route) => &route.id,
        }
    }

    /// Returns the creation time.
    pub fn created(self) -> Option<i64> {
        match self {
            Self::Grpc(route) => route.created,
            Self::Http(route) => route.created,
            Self::Tcp(route) => route.created,
            Self::Tls(route) => route.created,
        }
    }

    /// Returns the sort key among objects of Istio.
    pub(super) fn age(self) -> Age<'r> {
        match self {
            Self::Grpc(route) => route.age(),
            Self::Http(route) => route.age(),
            Self::Tcp(route) => route.age(),
            Self::Tls(route) => route.age(),
        }
    }

    /// Returns the backends, with those of mirrors, in order.
    pub(super) fn targets(self) -> Vec<&'r BackendRef> {
        match self {
            Self::Grpc(route) => backend_targets(&route.spec.rules).collect(),
            Self::Http(route) => backend_targets(&route.spec.rules).collect(),
            Self::Tcp(route) => route.spec.rule.targets().collect(),
            Self::Tls(route) => route.spec.rule.targets().collect(),
        }
    }

    /// Returns the parents and hosts.
    pub fn attaching(self) -> AttachingRoute<'r> {
        match self {
            Self::Grpc(route) => (&**route).into(),
            Self::Http(route) => (&**route).into(),
            Self::Tcp(route) => (&**route).into(),
            Self::Tls(route) => (&**route).into(),
        }
    }
}
