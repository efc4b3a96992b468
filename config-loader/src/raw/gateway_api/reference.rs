//! References to other objects, and ReferenceGrant, as written.

use serde::Deserialize;

use crate::raw::Field;

/// Reference to an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// API group of the object; empty for the core group.
    pub group: Field<String>,
    /// Kind of the object.
    pub kind: Field<String>,
    /// Namespace of the object. Default: that of the referrer.
    pub namespace: Field<String>,
    /// Name of the object.
    pub name: Field<String>,
}

/// Reference to the parent of a route: a Gateway, a ListenerSet or a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParentReference {
    /// API group of the parent. Default: `gateway.networking.k8s.io`.
    pub group: Field<String>,
    /// Kind of the parent. Default: `Gateway`.
    pub kind: Field<String>,
    /// Namespace of the parent. Default: that of the route.
    pub namespace: Field<String>,
    /// Name of the parent.
    pub name: Field<String>,
    /// Name of a listener. Default: all listeners.
    pub section_name: Field<String>,
    /// Port of listeners, or of a Service. Default: all ports.
    pub port: Field<i64>,
}

/// Reference to an object of the same namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalReference {
    /// API group of the object; empty for the core group.
    pub group: Field<String>,
    /// Kind of the object.
    pub kind: Field<String>,
    /// Name of the object.
    pub name: Field<String>,
}

/// Reference to a backend without a weight.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendObject {
    /// API group of the backend; empty for the core group.
    pub group: Field<String>,
    /// Kind of the backend. Default: `Service`.
    pub kind: Field<String>,
    /// Namespace of the backend. Default: that of the route.
    pub namespace: Field<String>,
    /// Name of the backend.
    pub name: Field<String>,
    /// Port of the backend.
    pub port: Field<i64>,
}

/// Backend of a TLSRoute or a TCPRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendReference {
    /// API group of the backend; empty for the core group.
    pub group: Field<String>,
    /// Kind of the backend. Default: `Service`.
    pub kind: Field<String>,
    /// Namespace of the backend. Default: that of the route.
    pub namespace: Field<String>,
    /// Name of the backend.
    pub name: Field<String>,
    /// Port of the backend.
    pub port: Field<i64>,
    /// Share of connections, relative to the other backends. Default: 1.
    pub weight: Field<i64>,
}

/// Backend with filters `F`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "F: Deserialize<'de>")]
pub struct FilteredBackend<F> {
    /// API group of the backend; empty for the core group.
    pub group: Field<String>,
    /// Kind of the backend. Default: `Service`.
    pub kind: Field<String>,
    /// Namespace of the backend. Default: that of the route.
    pub namespace: Field<String>,
    /// Name of the backend.
    pub name: Field<String>,
    /// Port of the backend.
    pub port: Field<i64>,
    /// Share of requests, relative to the other backends. Default: 1.
    pub weight: Field<i64>,
    /// Filters of requests to this backend.
    pub filters: Field<Vec<Field<F>>>,
}

impl<F> Default for FilteredBackend<F> {
    fn default() -> FilteredBackend<F> {
        FilteredBackend {
            group: Field::default(),
            kind: Field::default(),
            namespace: Field::default(),
            name: Field::default(),
            port: Field::default(),
            weight: Field::default(),
            filters: Field::default(),
        }
    }
}

impl<F> FilteredBackend<F> {
    /// Returns the backend without its filters.
    pub fn unfiltered(&self) -> BackendReference {
        BackendReference {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            port: self.port.clone(),
            weight: self.weight.clone(),
        }
    }
}

impl BackendReference {
    /// Returns the backend without its weight.
    pub fn object(&self) -> BackendObject {
        BackendObject {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            port: self.port.clone(),
        }
    }
}

/// ReferenceGrant as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReferenceGrant {
    /// Objects of other namespaces that may refer.
    pub from: Field<Vec<Field<GrantFrom>>>,
    /// Objects of this namespace that they may refer to.
    pub to: Field<Vec<Field<GrantTo>>>,
}

/// Objects that may refer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrantFrom {
    /// API group of the objects; empty for the core group.
    pub group: Field<String>,
    /// Kind of the objects.
    pub kind: Field<String>,
    /// Namespace of the objects.
    pub namespace: Field<String>,
}

/// Objects that may be referred to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrantTo {
    /// API group of the objects; empty for the core group.
    pub group: Field<String>,
    /// Kind of the objects.
    pub kind: Field<String>,
    /// Name of the object. Default: all of them.
    pub name: Field<String>,
}
