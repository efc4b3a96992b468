//! Supported resource kinds, and references of objects. Uses nothing else of this crate.

use std::fmt;
use std::sync::Arc;

/// Table of kinds: API group, kind, field of a [`ResourceSet`](crate::ResourceSet) and module of the checked type.
/// Passes the rows to the macro `$generate`.
///
/// `marked`: the checked type has fields that come from labels and annotations. `reduced`: in addition, its objects
/// drop their labels and annotations. `standing`: a rejected object without a last good version has a stand-in.
/// `policy`: `marked` and `standing`. `destination`: `standing`, and a last good version that admits all clients is
/// restricted while a rejected version has access policies.
macro_rules! kinds {
    ($generate:ident) => {
        $generate! {
            "security.istio.io" AuthorizationPolicy authorization_policies istio policy;
            "gateway.networking.k8s.io" BackendTLSPolicy backend_tls_policies gateway_api standing;
            "gateway.envoyproxy.io" BackendTrafficPolicy backend_traffic_policies envoy_gateway;
            "flomesh.io" Cluster clusters flomesh;
            "core" ConfigMap config_maps core;
            "discovery.mesh.gloo.solo.io" Destination destinations gloo destination;
            "networking.istio.io" DestinationRule destination_rules istio;
            "discovery.k8s.io" EndpointSlice endpoint_slices core marked;
            "gateway.networking.k8s.io" GRPCRoute grpc_routes gateway_api;
            "networking.istio.io" Gateway gateways istio;
            "gateway.networking.k8s.io" GatewayClass gateway_classes gateway_api;
            "flomesh.io" GlobalTrafficPolicy global_traffic_policies flomesh;
            "gateway.networking.k8s.io" HTTPRoute http_routes gateway_api;
            "gateway.networking.k8s.io" KubernetesGateway kubernetes_gateways gateway_api;
            "gateway.networking.k8s.io" ListenerSet listener_sets gateway_api;
            "networking.k8s.io" Ingress ingresses networking;
            "networking.k8s.io" IngressClass ingress_classes networking;
            "networking.karmada.io" MultiClusterService multi_cluster_services karmada;
            "core" Namespace namespaces core reduced;
            "core" Node nodes core reduced;
            "security.istio.io" PeerAuthentication peer_authentications istio;
            "core" Pod pods core reduced;
            "networking.istio.io" ProxyConfig proxy_configs istio;
            "gateway.networking.k8s.io" ReferenceGrant reference_grants gateway_api;
            "security.istio.io" RequestAuthentication request_authentications istio standing;
            "core" Secret secrets core;
            "core" Service services core;
            "networking.istio.io" ServiceEntry service_entries istio;
            "flomesh.io" ServiceExport service_exports flomesh;
            "flomesh.io" ServiceImport service_imports flomesh;
            "networking.istio.io" Sidecar sidecars istio;
            "gateway.networking.k8s.io" TCPRoute tcp_routes gateway_api;
            "gateway.networking.k8s.io" TLSRoute tls_routes gateway_api;
            "telemetry.istio.io" Telemetry telemetries istio;
            "networking.istio.io" VirtualService virtual_services istio;
            "networking.istio.io" WorkloadEntry workload_entries istio;
        }
    };
}
pub(crate) use kinds;

/// API group of the upstream multi-cluster API. An object of flomesh's own group takes precedence over one of this
/// group.
pub const MCS_API: &str = "multicluster.x-k8s.io";

macro_rules! kind_enum {
    ($($group:literal $kind:ident $field:ident $module:ident $($marks:ident)?;)*) => {
        /// Supported resource kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = $group] $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: [Kind; [$(stringify!($kind)),*].len()] = [$(Kind::$kind),*];

            /// Returns the name of the kind, as in `kind:`. Two kinds are named `Gateway`.
            pub fn as_str(self) -> &'static str {
                let name = match self {
                    $(Kind::$kind => stringify!($kind),)*
                };
                name.strip_prefix("Kubernetes").unwrap_or(name)
            }
        }
    };
}
kinds!(kind_enum);

impl Kind {
    /// Whether objects of this kind restrict traffic between clusters or the clients that are served. Without such an
    /// object, more traffic would be allowed.
    pub fn restricts(self) -> bool {
        matches!(
            self,
            Kind::GlobalTrafficPolicy | Kind::MultiClusterService | Kind::PeerAuthentication
        )
    }

    /// Whether objects of this kind decide who may send requests. A field of theirs that is unknown is always an error,
    /// because a misspelled one could admit more clients.
    pub fn is_security(self) -> bool {
        matches!(
            self,
            Kind::AuthorizationPolicy | Kind::PeerAuthentication | Kind::RequestAuthentication
        )
    }

    /// Whether objects of this kind are state of a Kubernetes cluster instead of configuration. They come from its API
    /// server or from dumps of it, and most of their fields are ignored.
    pub fn is_state(self) -> bool {
        matches!(self, Kind::Namespace | Kind::Node | Kind::Pod)
    }

    /// Whether the kind is one of gateway.networking.k8s.io.
    pub fn is_gateway_api(self) -> bool {
        matches!(
            self,
            Kind::BackendTLSPolicy
                | Kind::GRPCRoute
                | Kind::GatewayClass
                | Kind::HTTPRoute
                | Kind::KubernetesGateway
                | Kind::ListenerSet
                | Kind::ReferenceGrant
                | Kind::TCPRoute
                | Kind::TLSRoute
        )
    }

    /// Whether objects of this kind are in a namespace.
    pub fn is_namespaced(self) -> bool {
        !matches!(
            self,
            Kind::Cluster | Kind::GatewayClass | Kind::IngressClass | Kind::Namespace | Kind::Node
        )
    }

    /// Returns the kind with this name. `Gateway` is that of networking.istio.io.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Namespace and name, which identify an object within its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// Namespace; `default` if none is set.
    pub namespace: Arc<str>,
    /// Name as written.
    pub name: Arc<str>,
}

impl Name {
    /// Creates a name in `namespace`.
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

/// Namespace of an object whose namespace cannot be read.
pub const UNREADABLE_NAMESPACE: &str = "(unreadable)";

/// Reference of an object. Displayed as `Kind/namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Kind of the object.
    pub kind: Kind,
    /// Namespace of the object; `default` if none is set.
    pub namespace: Arc<str>,
    /// Name of the object.
    pub name: Arc<str>,
    /// API group of the object, if its kind exists in more than one; empty otherwise.
    pub group: &'static str,
}

impl ObjectRef {
    /// Creates a reference to an object of a kind with only one API group.
    pub fn new(kind: Kind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ObjectRef {
        ObjectRef {
            kind,
            namespace: namespace.into(),
            name: name.into(),
            group: "",
        }
    }

    /// Returns the reference to the object with the same kind and name in another API group.
    pub fn in_group(mut self, group: &'static str) -> ObjectRef {
        self.group = group;
        self
    }

    /// Returns namespace and name.
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
            let named = Kind::from_name(kind.as_str());
            let is_second = kind == Kind::KubernetesGateway;
            assert_eq!(named, Some(if is_second { Kind::Gateway } else { kind }));
        }
        assert_eq!(Kind::from_name("Deployment"), None);
    }
}
