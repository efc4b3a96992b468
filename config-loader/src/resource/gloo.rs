//! The discovery.mesh.gloo.solo.io kinds, checked.

mod access_policy;
mod destination;
mod external_service;
mod kube_service;
mod status;
mod traffic_policy;

pub use access_policy::{AccessPolicy, AppliedAccessPolicy, DestinationSelector, SourceSelector};
pub use destination::{Backing, Destination, MeshRef};
pub use external_service::{ExternalEndpoint, ExternalPort, ExternalProtocol, ExternalService};
pub use kube_service::{
    ClusterRef, EndpointPort, EndpointSubset, KubeEndpoint, KubePort, KubeService, KubeServiceType,
    KubeTargetPort,
};
pub use status::{
    AppliedTrafficPolicy, DestinationStatus, Federation, HeaderManipulation, RequiredSubsets,
    ShiftTarget, TcpKeepalive, TrafficShift, WeightedDestination, subset_name,
};
pub use traffic_policy::{PolicyTarget, WorkloadSelector};
