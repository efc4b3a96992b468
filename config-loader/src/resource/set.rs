//! All objects that are in effect, at one revision.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use super::core::{EndpointSlice, Namespace, Node, Pod, Secret, Service};
use super::flomesh::{Cluster, GlobalTrafficPolicy, ServiceExport, ServiceImport};
use super::gloo::Destination;
use super::istio::{
    AuthorizationPolicy, DestinationRule, Gateway, PeerAuthentication, RequestAuthentication,
    ServiceEntry, Sidecar, VirtualService, WorkloadEntry,
};
use super::karmada::MultiClusterService;
use super::object::Object;
use super::shared_map::{self, SharedMap};
use crate::kind::{Kind, Name, ObjectRef};

/// The objects of one kind, by name. A clone shares them until one of the two changes.
///
/// Where a kind exists in several API groups, objects can stand *beside* one of the same name: that is the one that
/// rules.
#[derive(Clone, Debug)]
pub struct Objects<T> {
    named: Arc<ByName<T>>,
    beside: Arc<BTreeMap<Name, Vec<Arc<Object<T>>>>>,
}

type ByName<T> = SharedMap<Name, Arc<Object<T>>>;

impl<T> Objects<T> {
    /// Puts an object in, in place of one of the same name.
    pub fn insert(&mut self, name: Name, object: Arc<Object<T>>) {
        Arc::make_mut(&mut self.named).insert(name, object);
    }

    /// Puts in an object of another API group, beside the one of the same name.
    pub fn insert_beside(&mut self, name: Name, object: Arc<Object<T>>) {
        let beside = Arc::make_mut(&mut self.beside);
        beside.entry(name).or_default().push(object);
    }

    /// Removes an object, and objects of the same name beside it.
    pub fn remove(&mut self, name: &Name) {
        if self.named.contains_key(name) {
            Arc::make_mut(&mut self.named).remove(name);
        }
        if self.beside.contains_key(name) {
            Arc::make_mut(&mut self.beside).remove(name);
        }
    }

    /// The objects that stand beside the one of this name.
    pub fn beside(&self, name: &Name) -> &[Arc<Object<T>>] {
        self.beside.get(name).map_or(&[], Vec::as_slice)
    }

    /// All objects that stand beside one of the same name.
    pub fn all_beside(&self) -> impl Iterator<Item = (&Name, &Arc<Object<T>>)> {
        let beside = self.beside.iter();
        beside.flat_map(|(name, objects)| objects.iter().map(move |object| (name, object)))
    }

    /// The objects of all API groups of the kind.
    pub fn in_all_groups(&self) -> impl Iterator<Item = &Arc<Object<T>>> {
        let beside = self.all_beside().map(|(_, object)| object);
        self.named.values().chain(beside)
    }

    /// Whether this and `other` are one and the same: nothing of this kind changed between them.
    pub fn same(&self, other: &Objects<T>) -> bool {
        Arc::ptr_eq(&self.named, &other.named) && Arc::ptr_eq(&self.beside, &other.beside)
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects {
            named: Arc::default(),
            beside: Arc::default(),
        }
    }
}

impl<T> Deref for Objects<T> {
    type Target = SharedMap<Name, Arc<Object<T>>>;

    fn deref(&self) -> &Self::Target {
        &self.named
    }
}

impl<'a, T> IntoIterator for &'a Objects<T> {
    type Item = (&'a Name, &'a Arc<Object<T>>);
    type IntoIter = shared_map::Iter<'a, Name, Arc<Object<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.named.iter()
    }
}

impl<T> FromIterator<(Name, Arc<Object<T>>)> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = (Name, Arc<Object<T>>)>>(objects: I) -> Objects<T> {
        Objects {
            named: Arc::new(objects.into_iter().collect()),
            beside: Arc::default(),
        }
    }
}

/// All objects that are in effect, at one revision. Immutable once handed out.
#[derive(Clone, Debug, Default)]
pub struct ResourceSet {
    /// Grows with every change.
    pub revision: u64,
    /// VirtualService objects.
    pub virtual_services: Objects<VirtualService>,
    /// DestinationRule objects.
    pub destination_rules: Objects<DestinationRule>,
    /// Gateway objects.
    pub gateways: Objects<Gateway>,
    /// PeerAuthentication objects.
    pub peer_authentications: Objects<PeerAuthentication>,
    /// AuthorizationPolicy objects, which are not enforced yet.
    pub authorization_policies: Objects<AuthorizationPolicy>,
    /// RequestAuthentication objects, which are not enforced yet.
    pub request_authentications: Objects<RequestAuthentication>,
    /// Sidecar objects.
    pub sidecars: Objects<Sidecar>,
    /// ServiceEntry objects.
    pub service_entries: Objects<ServiceEntry>,
    /// WorkloadEntry objects.
    pub workload_entries: Objects<WorkloadEntry>,
    /// Cluster objects.
    pub clusters: Objects<Cluster>,
    /// GlobalTrafficPolicy objects.
    pub global_traffic_policies: Objects<GlobalTrafficPolicy>,
    /// ServiceImport objects.
    pub service_imports: Objects<ServiceImport>,
    /// ServiceExport objects.
    pub service_exports: Objects<ServiceExport>,
    /// MultiClusterService objects.
    pub multi_cluster_services: Objects<MultiClusterService>,
    /// Destination objects.
    pub destinations: Objects<Destination>,
    /// Service objects.
    pub services: Objects<Service>,
    /// EndpointSlice objects.
    pub endpoint_slices: Objects<EndpointSlice>,
    /// Pod objects.
    pub pods: Objects<Pod>,
    /// Node objects.
    pub nodes: Objects<Node>,
    /// Namespace objects.
    pub namespaces: Objects<Namespace>,
    /// Secret objects.
    pub secrets: Objects<Secret>,
    /// Rejected objects that restrict what is allowed ([`Kind::restricts`]) and of which there never was a good version.
    pub withheld: Arc<BTreeSet<ObjectRef>>,
}

impl ResourceSet {
    /// Whether an object of that kind and name is refused in every API group, and never was good.
    pub fn is_withheld(&self, kind: Kind, name: &Name) -> bool {
        let mut withheld = self.withheld.iter();
        withheld.any(|id| id.kind == kind && id.to_name() == *name)
    }

    /// Takes an object out.
    pub fn remove(&mut self, object: &ObjectRef) {
        let name = object.to_name();
        match object.kind {
            Kind::AuthorizationPolicy => self.authorization_policies.remove(&name),
            Kind::Cluster => self.clusters.remove(&name),
            Kind::Destination => self.destinations.remove(&name),
            Kind::DestinationRule => self.destination_rules.remove(&name),
            Kind::EndpointSlice => self.endpoint_slices.remove(&name),
            Kind::Gateway => self.gateways.remove(&name),
            Kind::GlobalTrafficPolicy => self.global_traffic_policies.remove(&name),
            Kind::MultiClusterService => self.multi_cluster_services.remove(&name),
            Kind::Namespace => self.namespaces.remove(&name),
            Kind::Node => self.nodes.remove(&name),
            Kind::PeerAuthentication => self.peer_authentications.remove(&name),
            Kind::Pod => self.pods.remove(&name),
            Kind::RequestAuthentication => self.request_authentications.remove(&name),
            Kind::Secret => self.secrets.remove(&name),
            Kind::Service => self.services.remove(&name),
            Kind::ServiceEntry => self.service_entries.remove(&name),
            Kind::ServiceExport => self.service_exports.remove(&name),
            Kind::ServiceImport => self.service_imports.remove(&name),
            Kind::Sidecar => self.sidecars.remove(&name),
            Kind::VirtualService => self.virtual_services.remove(&name),
            Kind::WorkloadEntry => self.workload_entries.remove(&name),
        }
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::AuthorizationPolicy => self.authorization_policies.len(),
            Kind::Cluster => self.clusters.len(),
            Kind::Destination => self.destinations.len(),
            Kind::DestinationRule => self.destination_rules.len(),
            Kind::EndpointSlice => self.endpoint_slices.len(),
            Kind::Gateway => self.gateways.len(),
            Kind::GlobalTrafficPolicy => self.global_traffic_policies.len(),
            Kind::MultiClusterService => self.multi_cluster_services.len(),
            Kind::Namespace => self.namespaces.len(),
            Kind::Node => self.nodes.len(),
            Kind::PeerAuthentication => self.peer_authentications.len(),
            Kind::Pod => self.pods.len(),
            Kind::RequestAuthentication => self.request_authentications.len(),
            Kind::Secret => self.secrets.len(),
            Kind::Service => self.services.len(),
            Kind::ServiceEntry => self.service_entries.len(),
            Kind::ServiceExport => self.service_exports.len(),
            Kind::ServiceImport => self.service_imports.len(),
            Kind::Sidecar => self.sidecars.len(),
            Kind::VirtualService => self.virtual_services.len(),
            Kind::WorkloadEntry => self.workload_entries.len(),
        }
    }

    /// Whether this and `other` have the same objects of a kind, in the same versions.
    pub fn is_same(&self, other: &ResourceSet, kind: Kind) -> bool {
        match kind {
            Kind::AuthorizationPolicy => self
                .authorization_policies
                .same(&other.authorization_policies),
            Kind::Cluster => self.clusters.same(&other.clusters),
            Kind::Destination => self.destinations.same(&other.destinations),
            Kind::DestinationRule => self.destination_rules.same(&other.destination_rules),
            Kind::EndpointSlice => self.endpoint_slices.same(&other.endpoint_slices),
            Kind::Gateway => self.gateways.same(&other.gateways),
            Kind::GlobalTrafficPolicy => self
                .global_traffic_policies
                .same(&other.global_traffic_policies),
            Kind::MultiClusterService => self
                .multi_cluster_services
                .same(&other.multi_cluster_services),
            Kind::Namespace => self.namespaces.same(&other.namespaces),
            Kind::Node => self.nodes.same(&other.nodes),
            Kind::PeerAuthentication => self.peer_authentications.same(&other.peer_authentications),
            Kind::Pod => self.pods.same(&other.pods),
            Kind::RequestAuthentication => self
                .request_authentications
                .same(&other.request_authentications),
            Kind::Secret => self.secrets.same(&other.secrets),
            Kind::Service => self.services.same(&other.services),
            Kind::ServiceEntry => self.service_entries.same(&other.service_entries),
            Kind::ServiceExport => self.service_exports.same(&other.service_exports),
            Kind::ServiceImport => self.service_imports.same(&other.service_imports),
            Kind::Sidecar => self.sidecars.same(&other.sidecars),
            Kind::VirtualService => self.virtual_services.same(&other.virtual_services),
            Kind::WorkloadEntry => self.workload_entries.same(&other.workload_entries),
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        Kind::ALL.into_iter().map(|kind| self.count(kind)).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
