//! Validation of the networking.k8s.io kinds: the rules of the Kubernetes API.

mod ingress;
mod ingress_class;

pub use ingress::ingress;
pub use ingress_class::ingress_class;
