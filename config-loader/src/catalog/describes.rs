//! Hosts that each kind of resource describes.

use std::sync::Arc;

use super::hostname;
use super::source::Source;
use crate::resource::core::Service;
use crate::resource::flomesh::{ImportType, ServiceImport};
use crate::resource::gloo::{Backing, Destination};
use crate::resource::istio::ServiceEntry;
use crate::resource::karmada::MultiClusterService;
use crate::resource::{Object, Spec};

/// Kind of resource that describes hosts.
pub(crate) trait Describes: Spec {
    /// Calls `take` with each host that an object describes, in canonical form.
    fn sources(object: &Arc<Object<Self>>, domain: &str, take: &mut dyn FnMut(&str, Source));
}

impl Describes for Service {
    fn sources(object: &Arc<Object<Self>>, domain: &str, take: &mut dyn FnMut(&str, Source)) {
        let (name, namespace) = (&object.id.name, &object.id.namespace);
        let host = hostname::of_service(name, namespace, domain);
        take(&host, Source::Service(Arc::clone(object)));
    }
}

impl Describes for ServiceEntry {
    fn sources(object: &Arc<Object<Self>>, _: &str, take: &mut dyn FnMut(&str, Source)) {
        for host in &object.spec.hosts {
            let host = hostname::canonical(&host.value);
            take(&host, Source::Entry(Arc::clone(object)));
        }
    }
}

impl Describes for ServiceImport {
    /// Calls `take` with the service's own host, the `clusterset.local` host, and the hosts of single endpoints.
    fn sources(object: &Arc<Object<Self>>, domain: &str, take: &mut dyn FnMut(&str, Source)) {
        let source = || Source::Import(Arc::clone(object));
        let (name, namespace) = (&object.id.name, &object.id.namespace);
        take(&hostname::of_service(name, namespace, domain), source());
        let together = hostname::of_cluster_set_service(name, namespace);
        take(&together, source());
        if object.spec.import_type == ImportType::ClusterSetIp {
            return;
        }
        for endpoint in object.spec.ports.iter().flat_map(|port| &port.endpoints) {
            if let Some(target) = &endpoint.target.server_name {
                let hostname = target.split('.').next().unwrap_or_default();
                let cluster = endpoint.cluster.name();
                take(&format!("{hostname}.{cluster}.{together}"), source());
            }
        }
    }
}

impl Describes for Destination {
    fn sources(object: &Arc<Object<Self>>, domain: &str, take: &mut dyn FnMut(&str, Source)) {
        let source = || Source::Destination(Arc::clone(object));
        match &object.spec.backing {
            Backing::External(service) => {
                for host in &service.hosts {
                    let host = hostname::canonical(host);
                    take(&host, Source::External(Arc::clone(object)));
                }
            }
            Backing::Denied(_) | Backing::Kube(_) | Backing::Nothing => {}
        }
        for host in object.hosts(domain) {
            take(&host, source());
        }
    }
}

impl Describes for MultiClusterService {
    fn sources(object: &Arc<Object<Self>>, _: &str, take: &mut dyn FnMut(&str, Source)) {
        let (name, namespace) = (&object.id.name, &object.id.namespace);
        let host = hostname::of_cluster_set_service(name, namespace);
        take(&host, Source::Exposure(Arc::clone(object)));
    }
}
