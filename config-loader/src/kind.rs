//! The kinds of resource that there are, and the names of objects. Uses nothing else of this crate.

use std::fmt;
use std::sync::Arc;

/// A kind of resource that a data plane reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// security.istio.io
    AuthorizationPolicy,
    /// flomesh.io
    Cluster,
    /// discovery.mesh.gloo.solo.io
    Destination,
    /// networking.istio.io
    DestinationRule,
    /// discovery.k8s.io
    EndpointSlice,
    /// networking.istio.io
    Gateway,
    /// flomesh.io
    GlobalTrafficPolicy,
    /// networking.karmada.io
    MultiClusterService,
    /// core
    Namespace,
    /// core
    Node,
    /// security.istio.io
    PeerAuthentication,
    /// core
    Pod,
    /// security.istio.io
    RequestAuthentication,
    /// core
    Secret,
    /// core
    Service,
    /// networking.istio.io
    ServiceEntry,
    /// flomesh.io
    ServiceExport,
    /// flomesh.io
    ServiceImport,
    /// networking.istio.io
    Sidecar,
    /// networking.istio.io
    VirtualService,
    /// networking.istio.io
    WorkloadEntry,
}

impl Kind {
    /// Whether objects of this kind restrict which clusters serve which, or which clients are served: without such an
    /// object more would be allowed.
    pub fn restricts(self) -> bool {
        matches!(
            self,
            Kind::GlobalTrafficPolicy | Kind::MultiClusterService | Kind::PeerAuthentication
        )
    }

    /// Whether objects of this kind are the state of a Kubernetes cluster rather than configuration: they come from its API
    /// server, or from files with what it says, and most of their fields are for others.
    pub fn is_state(self) -> bool {
        matches!(self, Kind::Namespace | Kind::Node | Kind::Pod)
    }

    /// Every kind.
    pub const ALL: [Kind; 21] = [
        Kind::AuthorizationPolicy,
        Kind::Cluster,
        Kind::Destination,
        Kind::DestinationRule,
        Kind::EndpointSlice,
        Kind::Gateway,
        Kind::GlobalTrafficPolicy,
        Kind::MultiClusterService,
        Kind::Namespace,
        Kind::Node,
        Kind::PeerAuthentication,
        Kind::Pod,
        Kind::RequestAuthentication,
        Kind::Secret,
        Kind::Service,
        Kind::ServiceEntry,
        Kind::ServiceExport,
        Kind::ServiceImport,
        Kind::Sidecar,
        Kind::VirtualService,
        Kind::WorkloadEntry,
    ];

    /// The kind's name, as `kind:` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::AuthorizationPolicy => "AuthorizationPolicy",
            Kind::Cluster => "Cluster",
            Kind::Destination => "Destination",
            Kind::DestinationRule => "DestinationRule",
            Kind::EndpointSlice => "EndpointSlice",
            Kind::Gateway => "Gateway",
            Kind::GlobalTrafficPolicy => "GlobalTrafficPolicy",
            Kind::MultiClusterService => "MultiClusterService",
            Kind::Namespace => "Namespace",
            Kind::Node => "Node",
            Kind::PeerAuthentication => "PeerAuthentication",
            Kind::Pod => "Pod",
            Kind::RequestAuthentication => "RequestAuthentication",
            Kind::Secret => "Secret",
            Kind::Service => "Service",
            Kind::ServiceEntry => "ServiceEntry",
            Kind::ServiceExport => "ServiceExport",
            Kind::ServiceImport => "ServiceImport",
            Kind::Sidecar => "Sidecar",
            Kind::VirtualService => "VirtualService",
            Kind::WorkloadEntry => "WorkloadEntry",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A namespace and a name: what tells objects of one kind apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// `default` when none was written.
    pub namespace: Arc<str>,
    /// As written.
    pub name: Arc<str>,
}

impl Name {
    /// The name `name` in `namespace`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Name {
        Name {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The full name of an object. Prints as `Kind/namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, `default` when none was written.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its API group, if its kind exists in more than one; empty otherwise.
    pub group: &'static str,
}

impl ObjectRef {
    /// The object of that kind and name, of the kind's only API group.
    pub fn new(kind: Kind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ObjectRef {
        ObjectRef {
            kind,
            namespace: namespace.into(),
            name: name.into(),
            group: "",
        }
    }

    /// The object of the same kind and name in another API group.
    pub fn in_group(mut self, group: &'static str) -> ObjectRef {
        self.group = group;
        self
    }

    /// The part that tells objects of one kind apart.
    pub fn to_name(&self) -> Name {
        Name {
            namespace: Arc::clone(&self.namespace),
            name: Arc::clone(&self.name),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_parsed_by_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::from_name("Deployment"), None);
    }
}
