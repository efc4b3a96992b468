//! Traffic shifts of Gloo Destinations, and the hosts that VirtualServices route instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{HostIndex, View, hostname};
use crate::kind::ObjectRef;
use crate::resource::Object;
use crate::resource::gloo::{Backing, ClusterRef, Destination, ShiftTarget, subset_name};
use crate::resource::istio::VirtualService;

/// Hosts that VirtualServices route. Traffic shifts have no effect for them.
#[derive(Debug, Default)]
pub struct RoutedHosts<'a> {
    by_host: HostIndex<Option<&'a ObjectRef>>,
    every: Option<&'a ObjectRef>,
}

impl<'a> RoutedHosts<'a> {
    /// Collects the hosts of the VirtualServices in `view`, in a mesh with this domain.
    pub fn collect(view: impl Into<View<'a>>, domain: &str) -> Self {
        let mut routed = Self::default();
        for object in view.into().all::<VirtualService>().values() {
            for host in &object.spec.hosts {
                let host = hostname::complete(&host.value, &object.id.namespace, domain);
                if *host != *"*" {
                    routed.by_host.entry(&host).get_or_insert(&object.id);
                } else if object.spec.gateways.iter().any(|one| one.value.is_named()) {
                    routed.every.get_or_insert(&object.id);
                }
            }
        }
        routed
    }

    /// Returns a VirtualService that routes a host. VirtualServices for every host are not included: see
    /// [`Self::every`].
    pub fn by(&self, host: &str) -> Option<&'a ObjectRef> {
        self.by_host.find(host).copied().flatten()
    }

    /// Returns a VirtualService that routes every host at its gateways.
    pub fn every(&self) -> Option<&'a ObjectRef> {
        self.every
    }
}

impl ClusterRef {
    /// Returns the host of the service within its own Kubernetes cluster.
    pub fn host(&self, domain: &str) -> String {
        hostname::of_service(&self.name, &self.namespace, domain)
    }
}

impl Object<Destination> {
    /// Returns the hosts of a service in canonical form: its own, the local one and the federated one.
    pub fn hosts(&self, domain: &str) -> Vec<String> {
        let status = &self.spec.status;
        let federated = status.federation.as_ref();
        let federated = federated.and_then(|federation| federation.hostname.as_deref());
        let others = [status.local_fqdn.as_deref(), federated];
        let others = others.into_iter().flatten();
        let others = others.map(|host| hostname::canonical(host).into_owned());
        match &self.spec.backing {
            Backing::Kube(kube) => others.chain([kube.service.host(domain)]).collect(),
            Backing::Denied(_) | Backing::External(_) | Backing::Nothing => others.collect(),
        }
    }

    /// Returns the subsets that shifts to the Destination require, with their labels.
    pub fn required_subsets(&self) -> BTreeMap<Arc<str>, BTreeMap<String, String>> {
        let all = self.spec.status.required_subsets.iter();
        let parts = all.flat_map(|required| &required.shift.destinations);
        let subsets = parts.filter_map(|part| match &part.target {
            ShiftTarget::Kube { subset, .. } if !subset.is_empty() => {
                Some((subset_name(subset).into(), subset.clone()))
            }
            _ => None,
        });
        subsets.collect()
    }
}
