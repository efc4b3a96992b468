//! The kinds of resource that there are, and the names of objects. Uses nothing else of this crate.

use std::fmt;
use std::sync::Arc;

/// The table of kinds: API group, kind, field of a [`ResourceSet`](crate::ResourceSet), module of the checked type. The
/// macro `$generate` makes a register of the rows.
///
/// `marked`: labels and annotations are part of what the checked type says. `reduced`: in addition, its objects drop
/// them.
macro_rules! kinds {
    ($generate:ident) => {
        $generate! {
            "security.istio.io" AuthorizationPolicy authorization_policies istio;
            "flomesh.io" Cluster clusters flomesh;
            "discovery.mesh.gloo.solo.io" Destination destinations gloo;
            "networking.istio.io" DestinationRule destination_rules istio;
            "discovery.k8s.io" EndpointSlice endpoint_slices core marked;
            "networking.istio.io" Gateway gateways istio;
            "flomesh.io" GlobalTrafficPolicy global_traffic_policies flomesh;
            "networking.karmada.io" MultiClusterService multi_cluster_services karmada;
            "core" Namespace namespaces core reduced;
            "core" Node nodes core reduced;
            "security.istio.io" PeerAuthentication peer_authentications istio;
            "core" Pod pods core reduced;
            "security.istio.io" RequestAuthentication request_authentications istio;
            "core" Secret secrets core;
            "core" Service services core;
            "networking.istio.io" ServiceEntry service_entries istio;
            "flomesh.io" ServiceExport service_exports flomesh;
            "flomesh.io" ServiceImport service_imports flomesh;
            "networking.istio.io" Sidecar sidecars istio;
            "networking.istio.io" VirtualService virtual_services istio;
            "networking.istio.io" WorkloadEntry workload_entries istio;
        }
    };
}
pub(crate) use kinds;

/// The group of upstream's API, of which what flomesh's own says goes first.
pub const MCS_API: &str = "multicluster.x-k8s.io";

macro_rules! kind_enum {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {
        /// A kind of resource that a data plane reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = $group] $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: [Kind; [$(stringify!($kind)),*].len()] = [$(Kind::$kind),*];

            /// The kind's name, as `kind:` has it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Kind::$kind => stringify!($kind),)*
                }
            }
        }
    };
}
kinds!(kind_enum);

impl Kind {
    /// Whether objects of this kind restrict which clusters serve which, or which clients are served: without such an
    /// object more would be allowed.
    pub fn restricts(self) -> bool {
        matches!(
            self,
            Kind::GlobalTrafficPolicy | Kind::MultiClusterService | Kind::PeerAuthentication
        )
    }

    /// Whether objects of this kind are the state of a Kubernetes cluster rather than configuration: they come from its
    /// API server, or from files with what it says, and most of their fields are for others.
    pub fn is_state(self) -> bool {
        matches!(self, Kind::Namespace | Kind::Node | Kind::Pod)
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
