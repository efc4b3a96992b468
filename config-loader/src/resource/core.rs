//! Kubernetes core kinds, checked, and the small types that the multi-cluster kinds share with them.

mod addresses;
mod condition;
mod config_map;
mod endpoint_slice;
mod ingress;
mod label_text;
mod namespace;
mod node;
mod pod;
pub(crate) mod pod_owner;
mod secret;
mod service;
mod shared;

pub use addresses::Addresses;
pub use condition::{Condition, ConditionStatus};
pub use config_map::ConfigMap;
pub use endpoint_slice::{AddressType, Conditions, EndpointSlice, SliceEndpoint, SlicePort};
pub use ingress::{Ingress, IngressMode, IngressPort};
pub use label_text::LabelText;
pub use namespace::Namespace;
pub use node::Node;
pub use pod::Pod;
pub(crate) use pod::{name_in, own_name};
pub use pod_owner::PodOwner;
pub use secret::{Secret, SecretType, SecretValue};
pub use service::{
    ExternalAddress, Service, ServicePort, ServiceType, TargetPort, TrafficDistribution,
    TrafficPolicy,
};
pub use shared::{Host, Protocol, SessionAffinity};
