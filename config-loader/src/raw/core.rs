//! Kubernetes core kinds as written.

mod config_map;
mod endpoint_slice;
mod pod;
mod secret;
mod service;
mod shared;

pub use config_map::ConfigMap;
pub use endpoint_slice::{
    EndpointConditions, EndpointHints, EndpointSlice, Hint, ObjectReference, SliceEndpoint,
    SlicePort,
};
pub use pod::{Namespace, Node, Pod, PodCondition, PodIp, PodSpec, PodStatus};
pub use secret::{Secret, SecretText};
pub use service::{Service, ServicePort, ServiceSpec, ServiceStatus};
pub use shared::{
    ClientIpConfig, Condition, LoadBalancerIngress, LoadBalancerStatus, PortStatus,
    SessionAffinityConfig,
};
