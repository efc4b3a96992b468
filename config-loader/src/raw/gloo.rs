//! Kinds of discovery.mesh.gloo.solo.io as written.

mod access_policy;
mod destination;
mod external_service;
mod kube_service;
mod object_ref;
mod status;

pub use access_policy::{
    AccessPolicySpec, DestinationSelector, IdentitySelector, KubeIdentityMatcher,
    KubeServiceAccountRefs, KubeServiceMatcher, KubeServiceRefs,
};
pub use destination::{Destination, DestinationSpec};
pub use external_service::{ExternalEndpoint, ExternalService, ExternalServicePort};
pub use kube_service::{
    Endpoint, EndpointPort, EndpointsSubset, ExternalAddress, KubeService, KubeServicePort,
    SubLocality, Subset,
};
pub use object_ref::{ClusterObjectRef, ObjectRef};
pub use status::{
    AppliedAccessPolicy, AppliedFederation, AppliedTrafficPolicy, DestinationStatus,
    HeaderManipulation, RequiredSubsets, RouteOptions, ShiftKubeService, TcpKeepalive,
    TrafficShift, VirtualDestination, WeightedDestination,
};
