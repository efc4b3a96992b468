//! Kinds of networking.k8s.io, checked.

mod ingress;
mod ingress_class;

pub use ingress::{
    BackendPort, Ingress, IngressAnnotation, IngressBackend, IngressPath, IngressRule, IngressTls,
    PathType,
};
pub use ingress_class::IngressClass;
