//! The kinds, and where a set keeps the objects of each.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use super::core::{EndpointSlice, Namespace, Node, Pod, Secret, Service};
use super::flomesh::{Cluster, GlobalTrafficPolicy, ServiceExport, ServiceImport};
use super::gloo::Destination;
use super::istio::{
    AuthorizationPolicy, DestinationRule, Gateway, PeerAuthentication, RequestAuthentication,
    ServiceEntry, Sidecar, VirtualService, WorkloadEntry,
};
use super::karmada::MultiClusterService;
use super::object::{Object, Order, Provenance};
use super::set::{Objects, ResourceSet};
use crate::kind::{Kind, ObjectRef};

/// What an object of one kind says, and where a [`ResourceSet`] keeps objects of that kind.
pub trait Spec: Debug + Send + Sync + Sized + 'static {
    /// The kind.
    const KIND: Kind;
    /// Whether objects keep their labels and annotations; otherwise [`Spec::marked`] takes what counts.
    const KEEPS_MARKS: bool = true;
    /// The objects of this kind.
    fn objects(set: &ResourceSet) -> &Objects<Self>;
    /// The objects of this kind, to be changed.
    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Self>;

    /// With what the object's labels and annotations say of it.
    fn marked(
        self,
        _labels: &BTreeMap<String, String>,
        _annotations: &BTreeMap<String, String>,
    ) -> Self {
        self
    }
}

/// An object of any kind.
pub trait AnyObject: Any + Debug + Send + Sync {
    /// Who it is.
    fn id(&self) -> &ObjectRef;
    /// A hash of what it says.
    fn fingerprint(&self) -> u64;
    /// Where it was read.
    fn provenance(&self) -> &Provenance;
    /// Where in its file it stands.
    fn order(&self) -> Order;
    /// The same object, read elsewhere.
    fn moved(&self, provenance: Provenance, order: Order) -> Arc<dyn AnyObject>;
    /// Puts it into a set, in place of one of the same name.
    fn put(self: Arc<Self>, set: &mut ResourceSet);
    /// Puts it into a set beside one of the same name, which rules.
    fn put_beside(self: Arc<Self>, set: &mut ResourceSet);
}

impl<T: Spec> AnyObject for Object<T> {
    fn id(&self) -> &ObjectRef {
        &self.id
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    fn order(&self) -> Order {
        self.order
    }

    fn moved(&self, provenance: Provenance, order: Order) -> Arc<dyn AnyObject> {
        Arc::new(Object {
            id: self.id.clone(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            created: self.created,
            order,
            provenance,
            fingerprint: self.fingerprint,
            spec: Arc::clone(&self.spec),
        })
    }

    fn put(self: Arc<Self>, set: &mut ResourceSet) {
        let name = self.id.to_name();
        T::objects_mut(set).insert(name, self);
    }

    fn put_beside(self: Arc<Self>, set: &mut ResourceSet) {
        let name = self.id.to_name();
        T::objects_mut(set).insert_beside(name, self);
    }
}

impl Spec for VirtualService {
    const KIND: Kind = Kind::VirtualService;

    fn objects(set: &ResourceSet) -> &Objects<VirtualService> {
        &set.virtual_services
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<VirtualService> {
        &mut set.virtual_services
    }
}

impl Spec for DestinationRule {
    const KIND: Kind = Kind::DestinationRule;

    fn objects(set: &ResourceSet) -> &Objects<DestinationRule> {
        &set.destination_rules
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<DestinationRule> {
        &mut set.destination_rules
    }
}

impl Spec for Gateway {
    const KIND: Kind = Kind::Gateway;

    fn objects(set: &ResourceSet) -> &Objects<Gateway> {
        &set.gateways
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Gateway> {
        &mut set.gateways
    }
}

impl Spec for PeerAuthentication {
    const KIND: Kind = Kind::PeerAuthentication;

    fn objects(set: &ResourceSet) -> &Objects<PeerAuthentication> {
        &set.peer_authentications
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<PeerAuthentication> {
        &mut set.peer_authentications
    }
}

impl Spec for AuthorizationPolicy {
    const KIND: Kind = Kind::AuthorizationPolicy;

    fn objects(set: &ResourceSet) -> &Objects<AuthorizationPolicy> {
        &set.authorization_policies
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<AuthorizationPolicy> {
        &mut set.authorization_policies
    }
}

impl Spec for RequestAuthentication {
    const KIND: Kind = Kind::RequestAuthentication;

    fn objects(set: &ResourceSet) -> &Objects<RequestAuthentication> {
        &set.request_authentications
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<RequestAuthentication> {
        &mut set.request_authentications
    }
}

impl Spec for Sidecar {
    const KIND: Kind = Kind::Sidecar;

    fn objects(set: &ResourceSet) -> &Objects<Sidecar> {
        &set.sidecars
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Sidecar> {
        &mut set.sidecars
    }
}

impl Spec for ServiceEntry {
    const KIND: Kind = Kind::ServiceEntry;

    fn objects(set: &ResourceSet) -> &Objects<ServiceEntry> {
        &set.service_entries
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<ServiceEntry> {
        &mut set.service_entries
    }
}

impl Spec for WorkloadEntry {
    const KIND: Kind = Kind::WorkloadEntry;

    fn objects(set: &ResourceSet) -> &Objects<WorkloadEntry> {
        &set.workload_entries
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<WorkloadEntry> {
        &mut set.workload_entries
    }
}

impl Spec for Cluster {
    const KIND: Kind = Kind::Cluster;

    fn objects(set: &ResourceSet) -> &Objects<Cluster> {
        &set.clusters
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Cluster> {
        &mut set.clusters
    }
}

impl Spec for GlobalTrafficPolicy {
    const KIND: Kind = Kind::GlobalTrafficPolicy;

    fn objects(set: &ResourceSet) -> &Objects<GlobalTrafficPolicy> {
        &set.global_traffic_policies
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<GlobalTrafficPolicy> {
        &mut set.global_traffic_policies
    }
}

impl Spec for ServiceImport {
    const KIND: Kind = Kind::ServiceImport;

    fn objects(set: &ResourceSet) -> &Objects<ServiceImport> {
        &set.service_imports
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<ServiceImport> {
        &mut set.service_imports
    }
}

impl Spec for ServiceExport {
    const KIND: Kind = Kind::ServiceExport;

    fn objects(set: &ResourceSet) -> &Objects<ServiceExport> {
        &set.service_exports
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<ServiceExport> {
        &mut set.service_exports
    }
}

impl Spec for MultiClusterService {
    const KIND: Kind = Kind::MultiClusterService;

    fn objects(set: &ResourceSet) -> &Objects<MultiClusterService> {
        &set.multi_cluster_services
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<MultiClusterService> {
        &mut set.multi_cluster_services
    }
}

impl Spec for Destination {
    const KIND: Kind = Kind::Destination;

    fn objects(set: &ResourceSet) -> &Objects<Destination> {
        &set.destinations
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Destination> {
        &mut set.destinations
    }
}

impl Spec for Service {
    const KIND: Kind = Kind::Service;

    fn objects(set: &ResourceSet) -> &Objects<Service> {
        &set.services
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Service> {
        &mut set.services
    }
}

impl Spec for EndpointSlice {
    const KIND: Kind = Kind::EndpointSlice;

    fn objects(set: &ResourceSet) -> &Objects<EndpointSlice> {
        &set.endpoint_slices
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<EndpointSlice> {
        &mut set.endpoint_slices
    }

    fn marked(
        self,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> EndpointSlice {
        EndpointSlice::marked(self, labels, annotations)
    }
}

impl Spec for Secret {
    const KIND: Kind = Kind::Secret;

    fn objects(set: &ResourceSet) -> &Objects<Secret> {
        &set.secrets
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Secret> {
        &mut set.secrets
    }
}

impl Spec for Pod {
    const KIND: Kind = Kind::Pod;
    const KEEPS_MARKS: bool = false;

    fn objects(set: &ResourceSet) -> &Objects<Pod> {
        &set.pods
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Pod> {
        &mut set.pods
    }

    fn marked(
        self,
        labels: &BTreeMap<String, String>,
        _annotations: &BTreeMap<String, String>,
    ) -> Pod {
        Pod::marked(self, labels)
    }
}

impl Spec for Node {
    const KIND: Kind = Kind::Node;
    const KEEPS_MARKS: bool = false;

    fn objects(set: &ResourceSet) -> &Objects<Node> {
        &set.nodes
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Node> {
        &mut set.nodes
    }

    fn marked(
        self,
        labels: &BTreeMap<String, String>,
        _annotations: &BTreeMap<String, String>,
    ) -> Node {
        Node::marked(self, labels)
    }
}

impl Spec for Namespace {
    const KIND: Kind = Kind::Namespace;
    const KEEPS_MARKS: bool = false;

    fn objects(set: &ResourceSet) -> &Objects<Namespace> {
        &set.namespaces
    }

    fn objects_mut(set: &mut ResourceSet) -> &mut Objects<Namespace> {
        &mut set.namespaces
    }

    fn marked(
        self,
        labels: &BTreeMap<String, String>,
        _annotations: &BTreeMap<String, String>,
    ) -> Namespace {
        Namespace::marked(self, labels)
    }
}
