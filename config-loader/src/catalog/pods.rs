//! Lookup of the pod of an endpoint, and of the pod's node.
//!
//! An EndpointSlice names pods and nodes of the cluster that it was read from. Objects of remote clusters are stored
//! under prefixed names, and record their cluster.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Change, View, differences};
use crate::kind::Name;
use crate::resource::core::{
    EndpointSlice, Host, Namespace, Node, Pod, SliceEndpoint, name_in, own_name,
};
use crate::resource::{Object, ResourceSet};

/// Workload of an endpoint: pod, node and namespace, each if known.
#[derive(Clone, Debug, Default)]
pub struct PodInfo {
    /// Pod of the endpoint.
    pub pod: Option<Arc<Object<Pod>>>,
    /// Node that the pod runs on.
    pub node: Option<Arc<Object<Node>>>,
    /// Namespace object of the pod.
    pub namespace: Option<Arc<Object<Namespace>>>,
}

impl PodInfo {
    /// Returns the workload of an endpoint of a slice.
    pub fn of_endpoint<'a>(
        view: impl Into<View<'a>>,
        slice: &Object<EndpointSlice>,
        endpoint: &SliceEndpoint,
    ) -> PodInfo {
        let view = view.into();
        let pod = pod_of(view, slice, endpoint);
        let own = || PodInfo {
            pod: None,
            node: None,
            namespace: namespace(view, slice.source_cluster(), &slice.id.namespace).cloned(),
        };
        let mut info = pod.map_or_else(own, |pod| PodInfo::of_pod(view, pod));
        if info.node.is_none() {
            let named = endpoint.node_name.as_deref();
            let node = named.and_then(|name| node_of(view, slice.source_cluster(), name));
            info.node = node.cloned();
        }
        info
    }

    /// Returns the workload of a pod.
    pub fn of_pod<'a>(view: impl Into<View<'a>>, pod: &Arc<Object<Pod>>) -> PodInfo {
        let view = view.into();
        let source = pod.spec.source_cluster.as_deref();
        let node = pod.spec.node.as_deref();
        let node = node.and_then(|name| node_of(view, source, name));
        PodInfo {
            pod: Some(Arc::clone(pod)),
            node: node.cloned(),
            namespace: namespace(view, source, &pod.id.namespace).cloned(),
        }
    }

    /// Returns the value of a label of the pod, if it has the label and the value is not empty.
    pub fn label(&self, name: &str) -> Option<&str> {
        let value = self.pod.as_ref()?.spec.labels.get(name)?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns region, zone and sub-zone from the labels of the pod, otherwise of its node; `None` for a missing label.
    pub fn topology(&self) -> [Option<&str>; 3] {
        let of_node = self.node.as_ref().map(|node| node.spec.topology());
        let [region, zone, subzone] = of_node.unwrap_or_default();
        [
            self.label("topology.kubernetes.io/region").or(region),
            self.label("topology.kubernetes.io/zone").or(zone),
            self.label("topology.istio.io/subzone").or(subzone),
        ]
    }

    /// Returns the network from the label of the pod, otherwise of its namespace; `None` if neither has it.
    pub fn network(&self) -> Option<&str> {
        let own = self.label("topology.istio.io/network");
        own.or_else(|| self.namespace.as_ref()?.spec.network())
    }
}

/// Namespace under which cluster-scoped objects are stored.
pub(super) const CLUSTER_SCOPED: &str = "default";

/// Returns the namespace object with this name in a cluster; `None` as the source means the local cluster.
fn namespace<'a>(
    view: View<'a>,
    source: Option<&str>,
    name: &str,
) -> Option<&'a Arc<Object<Namespace>>> {
    if view.is_empty::<Namespace>() {
        return None;
    }
    let name = Name::new(CLUSTER_SCOPED, name_in(source, name));
    let namespace = view.get::<Namespace>(&name)?;
    (namespace.spec.source_cluster.as_deref() == source).then_some(namespace)
}

/// Returns the node with this name in a cluster; `None` as the source means the local cluster.
fn node_of<'a>(view: View<'a>, source: Option<&str>, name: &str) -> Option<&'a Arc<Object<Node>>> {
    if view.is_empty::<Node>() {
        return None;
    }
    let name = Name::new(CLUSTER_SCOPED, name_in(source, name));
    let node = view.get::<Node>(&name)?;
    (node.spec.source_cluster.as_deref() == source).then_some(node)
}

/// Returns the pod with this namespace and name in a cluster; `None` as the source means the local cluster.
pub fn pod<'a>(
    view: impl Into<View<'a>>,
    source: Option<&str>,
    namespace: &str,
    name: &str,
) -> Option<&'a Arc<Object<Pod>>> {
    let name = Name::new(namespace, name_in(source, name));
    let pod = view.into().get::<Pod>(&name)?;
    (pod.spec.source_cluster.as_deref() == source).then_some(pod)
}

/// Returns the pod of an endpoint of a slice: the pod that the endpoint names, otherwise the only pod of its namespace
/// with the endpoint's address.
pub fn pod_of<'a>(
    view: impl Into<View<'a>>,
    slice: &Object<EndpointSlice>,
    endpoint: &SliceEndpoint,
) -> Option<&'a Arc<Object<Pod>>> {
    let (view, source) = (view.into(), slice.source_cluster());
    if view.is_empty::<Pod>() {
        return None;
    }
    if let Some((namespace, name)) = endpoint.pod_from(&slice.id.namespace) {
        return pod(view, source, namespace, name);
    }
    let Host::Ip(address) = endpoint.address else {
        return None;
    };
    let mut found = view.in_namespace::<Pod>(&slice.id.namespace).filter(|pod| {
        pod.spec.source_cluster.as_deref() == source && pod.spec.addresses.contains(&address)
    });
    let pod = found.next()?;
    found.next().is_none().then_some(pod)
}

/// Returns the slices whose pods, nodes or namespaces differ between two resource sets.
pub fn slices_of_changed<'a>(
    before: &'a ResourceSet,
    now: &'a ResourceSet,
) -> Vec<&'a Arc<Object<EndpointSlice>>> {
    let mut changed = Changed::default();
    for pod in both(differences(&before.pods, &now.pods)) {
        changed.add(pod);
    }
    for node in both(differences(&before.nodes, &now.nodes)) {
        let source = node.spec.source_cluster.as_deref();
        changed
            .nodes
            .insert((source, own_name(source, &node.id.name)));
    }
    for namespace in both(differences(&before.namespaces, &now.namespaces)) {
        let source = namespace.spec.source_cluster.as_deref();
        changed
            .namespaces
            .insert((source, own_name(source, &namespace.id.name)));
    }
    if !changed.nodes.is_empty() || !changed.namespaces.is_empty() {
        // slices need not say where their pods are
        let moved = now.pods.values().filter(|pod| changed.moves(pod));
        let moved: Vec<&Object<Pod>> = moved.map(|pod| &**pod).collect();
        moved.into_iter().for_each(|pod| changed.add(pod));
    }
    let slices = now.endpoint_slices.values();
    match changed.is_empty() {
        true => Vec::new(),
        false => slices.filter(|slice| changed.concerns(slice)).collect(),
    }
}

/// Iterates over the objects before and after each change.
fn both<'a, T: 'a>(
    changes: impl Iterator<Item = Change<'a, T>>,
) -> impl Iterator<Item = &'a Object<T>> {
    changes
        .flat_map(|(gone, came)| [gone, came])
        .flatten()
        .map(|object| &**object)
}

/// Changed pods, nodes and namespaces, each with its cluster.
#[derive(Default)]
struct Changed<'a> {
    pods: HashSet<(Option<&'a str>, &'a str, &'a str)>,
    addresses: HashSet<(&'a str, IpAddr)>,
    nodes: HashSet<(Option<&'a str>, &'a str)>,
    namespaces: HashSet<(Option<&'a str>, &'a str)>,
}

impl<'a> Changed<'a> {
    fn add(&mut self, pod: &'a Object<Pod>) {
        let (source, namespace) = (pod.spec.source_cluster.as_deref(), &*pod.id.namespace);
        let name = own_name(source, &pod.id.name);
        self.pods.insert((source, namespace, name));
        let addresses = pod.spec.addresses.iter();
        self.addresses
            .extend(addresses.map(|address| (namespace, *address)));
    }

    /// Whether the node or the namespace of a pod changed.
    fn moves(&self, pod: &Object<Pod>) -> bool {
        let source = pod.spec.source_cluster.as_deref();
        let node = pod.spec.node.as_deref();
        node.is_some_and(|node| self.nodes.contains(&(source, node)))
            || self.namespaces.contains(&(source, &*pod.id.namespace))
    }

    fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.nodes.is_empty() && self.namespaces.is_empty()
    }

    /// Whether a slice refers to a changed object.
    fn concerns(&self, slice: &Object<EndpointSlice>) -> bool {
        let (source, namespace) = (slice.source_cluster(), &*slice.id.namespace);
        let leads_to = |endpoint: &SliceEndpoint| {
            let node = endpoint.node_name.as_deref();
            let named = endpoint.pod_from(namespace);
            let is_changed = match (named, &endpoint.address) {
                (Some((namespace, pod)), _) => self.pods.contains(&(source, namespace, pod)),
                (None, Host::Ip(ip)) => self.addresses.contains(&(namespace, *ip)),
                (None, Host::Dns(_)) => false,
            };
            is_changed || node.is_some_and(|node| self.nodes.contains(&(source, node)))
        };
        self.namespaces.contains(&(source, namespace)) || slice.spec.endpoints.iter().any(leads_to)
    }
}
