//! Kinds of discovery.mesh.gloo.solo.io, checked.

mod access_policy;
mod destination;
mod external_service;
mod kube_service;
mod object_ref;
mod status;
mod traffic_policy;

pub use access_policy::{AccessPolicy, AppliedAccessPolicy, SourceSelector};
pub use destination::{Backing, DeniedWorkloads, Destination};
pub use external_service::{ExternalEndpoint, ExternalPort, ExternalProtocol, ExternalService};
pub use kube_service::{
    EndpointPort, EndpointSubset, KubeEndpoint, KubePort, KubeService, KubeServiceType,
    KubeTargetPort,
};
pub use object_ref::{ClusterRef, MeshRef};
pub use status::{
    AppliedTrafficPolicy, DestinationStatus, Federation, HeaderManipulation, RequiredSubsets,
    ShiftTarget, TcpKeepalive, TrafficShift, WeightedDestination, subset_name,
};
pub use traffic_policy::{PolicyTarget, WorkloadSelector};
