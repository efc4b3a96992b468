//! Kinds of networking.k8s.io as written.

mod ingress;
mod ingress_class;

pub use ingress::{
    HttpPath, HttpPaths, Ingress, IngressBackend, IngressRule, IngressTls, ResourceBackend,
    ServiceBackend, ServicePort,
};
pub use ingress_class::{IngressClass, IngressParameters};
