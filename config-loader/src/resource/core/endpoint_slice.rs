//! EndpointSlice, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Host, Protocol, pod_owner};
use crate::resource::Object;
use crate::span::Line;

/// Checked EndpointSlice. Each endpoint serves each port.
#[derive(Clone, Debug, Default)]
pub struct EndpointSlice {
    /// Service that the slice belongs to, in the same namespace.
    ///
    /// Source: labels of the slice.
    pub service: Option<Arc<str>>,
    /// Cluster of the endpoints, if it is not the local one.
    ///
    /// Source: annotations and labels of the slice.
    pub source_cluster: Option<Arc<str>>,
    /// Type of the addresses. All addresses of a slice have the same type.
    pub address_type: AddressType,
    /// Endpoints in document order.
    pub endpoints: Vec<SliceEndpoint>,
    /// Names (`hostname`) of the endpoints that have one, with the index of the endpoint, sorted by index.
    pub hostnames: Vec<(u32, Arc<str>)>,
    /// Ports in document order. Names are unique.
    pub ports: Vec<SlicePort>,
}

impl EndpointSlice {
    /// Label with the name of the service, in the same namespace.
    pub const SERVICE_NAME: &'static str = "kubernetes.io/service-name";

    /// Label with the name of the service, on slices that an implementation of KEP-1645 copied from another cluster.
    pub const IMPORTED_SERVICE_NAME: &'static str = "multicluster.kubernetes.io/service-name";

    /// Label with the name of the source cluster (KEP-1645).
    pub const SOURCE_CLUSTER: &'static str = "multicluster.kubernetes.io/source-cluster";

    /// Annotation of Karmada with the name of the source cluster.
    const SOURCE_ANNOTATION: &'static str = "endpointslice.karmada.io/provision-cluster";
    const SOURCE_LABELS: [&'static str; 2] = [
        Self::SOURCE_CLUSTER,
        "multicluster.flomesh.io/source-cluster",
    ];

    /// Iterates over the endpoints that have a name, with the name.
    pub fn named(&self) -> impl Iterator<Item = (&Arc<str>, &SliceEndpoint)> {
        let named = self.hostnames.iter();
        named.filter_map(|(number, name)| Some((name, self.endpoints.get(*number as usize)?)))
    }

    /// Sets the fields that come from labels and annotations.
    pub(crate) fn marked(
        self,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> EndpointSlice {
        let label = |names: [&str; 2]| names.into_iter().find_map(|name| labels.get(name));
        let service = label([Self::SERVICE_NAME, Self::IMPORTED_SERVICE_NAME]);
        let source = annotations.get(Self::SOURCE_ANNOTATION);
        let source = source.or_else(|| label(Self::SOURCE_LABELS));
        EndpointSlice {
            service: service.map(|name| name.as_str().into()),
            source_cluster: source.map(|name| name.as_str().into()),
            ..self
        }
    }
}

impl Object<EndpointSlice> {
    /// Returns the service that the slice belongs to, in the same namespace.
    pub fn service_name(&self) -> Option<&str> {
        self.spec.service.as_deref()
    }

    /// Returns the cluster of the endpoints, if it is not the local one.
    pub fn source_cluster(&self) -> Option<&str> {
        self.spec.source_cluster.as_deref()
    }
}

/// Type of the addresses of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressType {
    /// Domain names.
    Fqdn,
    /// IPv4 addresses.
    #[default]
    Ipv4,
    /// IPv6 addresses.
    Ipv6,
}

/// Endpoint of a slice. There may be a million of them, so unused fields (other addresses, hints) are checked but not
/// kept.
#[derive(Clone, Debug)]
pub struct SliceEndpoint {
    /// First address. All addresses of an endpoint are equivalent.
    pub address: Host,
    /// State of the endpoint.
    pub conditions: Conditions,
    /// Node that the endpoint runs on. Endpoints of a slice on one node share the text.
    pub node_name: Option<Arc<str>>,
    /// Zone that the endpoint runs in. Endpoints of a slice in one zone share the text.
    pub zone: Option<Arc<str>>,
    /// Name of the pod; `namespace/name` if the pod is in another namespace than the slice.
    ///
    /// Source: `targetRef`.
    pub pod: Option<Arc<str>>,
    /// Source line within the document.
    pub line: Line,
}

// there may be a million of them
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SliceEndpoint>() == 80);

impl SliceEndpoint {
    /// Returns the namespace and name of the pod; `namespace` is that of the slice.
    pub fn pod_from<'a>(&'a self, namespace: &'a str) -> Option<(&'a str, &'a str)> {
        let pod = self.pod.as_deref()?;
        Some(pod.split_once('/').unwrap_or((namespace, pod)))
    }

    /// Returns the namespace and name of the workload that owns the pod, derived from the pod's name.
    pub fn owner_from<'a>(&'a self, namespace: &'a str) -> Option<(&'a str, &'a str)> {
        let (namespace, pod) = self.pod_from(namespace)?;
        Some((namespace, pod_owner::owner_name(pod)))
    }
}

/// State of an endpoint. Unknown states have the values that Kubernetes defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Whether the endpoint accepts new traffic.
    pub ready: bool,
    /// Whether the endpoint can serve traffic, even while it is terminating.
    pub serving: bool,
    /// Whether the endpoint is shutting down.
    pub terminating: bool,
}

impl Default for Conditions {
    /// State of an endpoint without conditions: ready.
    fn default() -> Conditions {
        Conditions {
            ready: true,
            serving: true,
            terminating: false,
        }
    }
}

/// Port of a slice.
#[derive(Clone, Debug)]
pub struct SlicePort {
    /// Name of the service's port; empty if the only port has no name.
    pub name: Arc<str>,
    /// Port number of the endpoints; `None` for all ports.
    pub port: Option<u16>,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Application protocol (`appProtocol`), if set.
    pub app_protocol: Option<Arc<str>>,
    /// Source line within the document.
    pub line: Line,
}
