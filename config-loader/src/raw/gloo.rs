//! The discovery.mesh.gloo.solo.io kinds as written.

mod access_policy;
mod destination;
mod external_service;
mod kube_service;
mod status;

pub use access_policy::{
    AccessPolicySpec, DestinationSelector, IdentitySelector, KubeIdentityMatcher,
    KubeServiceAccountRefs, KubeServiceMatcher, KubeServiceRefs,
};
pub use destination::{ClusterObjectRef, Destination, DestinationSpec, ObjectRef};
pub use external_service::{ExternalEndpoint, ExternalService, ExternalServicePort};
pub use kube_service::{
    Endpoint, EndpointPort, EndpointsSubset, ExternalAddress, KubeService, KubeServicePort,
    SubLocality, Subset,
};
pub use status::{
    AppliedAccessPolicy, AppliedFederation, AppliedTrafficPolicy, DestinationStatus,
    HeaderManipulation, RequiredSubsets, RouteOptions, ShiftKubeService, TcpKeepalive,
    TrafficShift, VirtualDestination, WeightedDestination,
};
