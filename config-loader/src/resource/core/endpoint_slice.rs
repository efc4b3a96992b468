//! EndpointSlice, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Host, Protocol, pod_owner};
use crate::resource::Object;
use crate::span::Line;

/// A checked EndpointSlice. Each of its endpoints is reached at each of its ports.
#[derive(Clone, Debug, Default)]
pub struct EndpointSlice {
    /// The service that it belongs to, in its own namespace.
    ///
    /// Source: its labels.
    pub service: Option<Arc<str>>,
    /// The cluster whose endpoints these are, when that is not the local one.
    ///
    /// Source: its annotations and labels.
    pub source_cluster: Option<Arc<str>>,
    /// What its addresses are. All of them are of this family.
    pub address_type: AddressType,
    /// In the order in which they were written.
    pub endpoints: Vec<SliceEndpoint>,
    /// Names of those endpoints that have one (`hostname`), by their numbers; in their order.
    pub hostnames: Vec<(u32, Arc<str>)>,
    /// In the order in which they were written. Names are unique.
    pub ports: Vec<SlicePort>,
}

impl EndpointSlice {
    /// The label by which a slice names the service that it belongs to, in its own namespace.
    pub const SERVICE_NAME: &'static str = "kubernetes.io/service-name";

    /// The same, of slices that were copied from another cluster by an implementation of KEP-1645.
    pub const IMPORTED_SERVICE_NAME: &'static str = "multicluster.kubernetes.io/service-name";

    /// The label that names the cluster that an object was read from (KEP-1645).
    pub const SOURCE_CLUSTER: &'static str = "multicluster.kubernetes.io/source-cluster";

    /// The marks of slices that were copied from another cluster; the annotation is Karmada's.
    const SOURCE_ANNOTATION: &'static str = "endpointslice.karmada.io/provision-cluster";
    const SOURCE_LABELS: [&'static str; 2] = [
        Self::SOURCE_CLUSTER,
        "multicluster.flomesh.io/source-cluster",
    ];

    /// The endpoints that have a name of their own, with it.
    pub fn named(&self) -> impl Iterator<Item = (&Arc<str>, &SliceEndpoint)> {
        let named = self.hostnames.iter();
        named.filter_map(|(number, name)| Some((name, self.endpoints.get(*number as usize)?)))
    }

    /// The values of its labels and annotations, parsed once.
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
    /// The service that the slice belongs to, in its own namespace.
    pub fn service_name(&self) -> Option<&str> {
        self.spec.service.as_deref()
    }

    /// The cluster whose endpoints these are, when that is not the local one.
    pub fn source_cluster(&self) -> Option<&str> {
        self.spec.source_cluster.as_deref()
    }
}

/// What the addresses of a slice are.
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

/// One endpoint of a slice. There may be a million of them: unused fields are checked and not kept (other
/// addresses, hints).
#[derive(Clone, Debug)]
pub struct SliceEndpoint {
    /// Where it is reached. The first address of those written, which all represent the same endpoint.
    pub address: Host,
    /// Its state.
    pub conditions: Conditions,
    /// The node that it runs on; endpoints of a slice on one node share it.
    pub node_name: Option<Arc<str>>,
    /// The zone that it runs in; endpoints of a slice in one zone share it.
    pub zone: Option<Arc<str>>,
    /// The name of the pod behind it; with its namespace and a slash before it, if that is not the one of the slice.
    ///
    /// Source: `targetRef`.
    pub pod: Option<Arc<str>>,
    /// Where it was written.
    pub line: Line,
}

// there may be a million of them
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SliceEndpoint>() == 80);

impl SliceEndpoint {
    /// Namespace and name of the pod behind an endpoint of a slice in this namespace.
    pub fn pod_from<'a>(&'a self, namespace: &'a str) -> Option<(&'a str, &'a str)> {
        let pod = self.pod.as_deref()?;
        Some(pod.split_once('/').unwrap_or((namespace, pod)))
    }

    /// Namespace and name of the workload that the pod behind it belongs to, by the pod's name.
    pub fn owner_from<'a>(&'a self, namespace: &'a str) -> Option<(&'a str, &'a str)> {
        let (namespace, pod) = self.pod_from(namespace)?;
        Some((namespace, pod_owner::owner_name(pod)))
    }
}

/// The state of an endpoint, where unknown is resolved as Kubernetes says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Whether it takes new traffic.
    pub ready: bool,
    /// Whether it can take traffic, even if it is terminating.
    pub serving: bool,
    /// Whether it is shutting down.
    pub terminating: bool,
}

impl Default for Conditions {
    /// What is said of an endpoint of which nothing is known.
    fn default() -> Conditions {
        Conditions {
            ready: true,
            serving: true,
            terminating: false,
        }
    }
}

/// One port of a slice.
#[derive(Clone, Debug)]
pub struct SlicePort {
    /// The name of the service's port; empty if the only port has none.
    pub name: Arc<str>,
    /// The number at the endpoints; none means all ports.
    pub port: Option<u16>,
    /// The transport protocol.
    pub protocol: Protocol,
    /// What the port speaks, when that was written.
    pub app_protocol: Option<Arc<str>>,
    /// Where it was written.
    pub line: Line,
}
