//! Resource that describes a host.

use std::sync::Arc;

use crate::kind::ObjectRef;
use crate::resource::core::Service;
use crate::resource::flomesh::ServiceImport;
use crate::resource::gloo::{Backing, Destination};
use crate::resource::istio::ServiceEntry;
use crate::resource::karmada::MultiClusterService;
use crate::resource::{Age, Object};

/// Resource that describes a host.
#[derive(Clone, Debug)]
pub enum Source {
    /// A Kubernetes Service.
    Service(Arc<Object<Service>>),
    /// A ServiceImport, which describes the service of its name and each of its endpoints.
    Import(Arc<Object<ServiceImport>>),
    /// A Destination of a Kubernetes service, by one of its hosts.
    Destination(Arc<Object<Destination>>),
    /// A MultiClusterService. It only says that clusters share a service.
    Exposure(Arc<Object<MultiClusterService>>),
    /// A ServiceEntry.
    Entry(Arc<Object<ServiceEntry>>),
    /// A Destination of a host outside of all clusters.
    External(Arc<Object<Destination>>),
}

impl Source {
    /// Returns the reference of the object.
    pub fn id(&self) -> &ObjectRef {
        match self {
            Source::Service(object) => &object.id,
            Source::Import(object) => &object.id,
            Source::Destination(object) | Source::External(object) => &object.id,
            Source::Exposure(object) => &object.id,
            Source::Entry(object) => &object.id,
        }
    }

    /// Returns the namespace of the described service.
    pub fn namespace(&self) -> &str {
        match self {
            Source::Destination(object) => match &object.spec.backing {
                Backing::Kube(kube) => &kube.service.namespace,
                Backing::Denied(_) | Backing::External(_) | Backing::Nothing => {
                    &object.id.namespace
                }
            },
            _ => &self.id().namespace,
        }
    }

    /// Returns the ServiceEntry, if the source is one.
    pub fn entry(&self) -> Option<&Arc<Object<ServiceEntry>>> {
        match self {
            Source::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    /// Whether the source describes a service of Kubernetes clusters.
    pub fn is_of_cluster(&self) -> bool {
        !matches!(self, Source::Entry(_) | Source::External(_))
    }

    /// Whether the source is visible from a namespace.
    pub fn is_seen_from(&self, namespace: &str) -> bool {
        match self {
            Source::Service(object) => object.is_exported_to(namespace),
            Source::Entry(object) => object.spec.export_to.includes(namespace),
            Source::Import(_)
            | Source::Destination(_)
            | Source::Exposure(_)
            | Source::External(_) => true,
        }
    }

    /// Returns the ports by number and name; empty if the source has none.
    pub fn ports(&self) -> Vec<(u16, &str)> {
        match self {
            Source::Service(object) => {
                let ports = object.spec.ports.iter();
                ports.map(|port| (port.port, &*port.name)).collect()
            }
            Source::Import(object) => {
                let ports = object.spec.ports.iter();
                ports.map(|port| (port.port, &*port.name)).collect()
            }
            Source::Entry(object) => {
                let ports = object.spec.ports.iter();
                ports.map(|port| (port.number, &*port.name)).collect()
            }
            Source::Destination(object) | Source::External(object) => match &object.spec.backing {
                Backing::External(service) => {
                    let ports = service.ports.iter();
                    ports.map(|port| (port.number, &*port.name)).collect()
                }
                Backing::Kube(service) => {
                    let ports = service.ports.iter();
                    ports.map(|port| (port.port, &*port.name)).collect()
                }
                Backing::Denied(_) | Backing::Nothing => Vec::new(),
            },
            Source::Exposure(_) => Vec::new(),
        }
    }

    /// Returns the sort key for the sources of one host: rank of the kind, then age.
    pub(super) fn precedence(&self) -> (u8, Age<'_>) {
        let age = match self {
            Source::Service(object) => object.age(),
            Source::Import(object) => object.age(),
            Source::Destination(object) | Source::External(object) => object.age(),
            Source::Exposure(object) => object.age(),
            Source::Entry(object) => object.age(),
        };
        (self.rank(), age)
    }

    fn rank(&self) -> u8 {
        match self {
            Source::Service(_) => 0,
            Source::Destination(_) => 1,
            Source::Import(_) => 2,
            Source::Exposure(_) => 3,
            Source::Entry(_) | Source::External(_) => 4,
        }
    }
}
