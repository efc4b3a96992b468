//! Messages of the xDS protocol, version 3, and the type URLs of resources.
//!
//! Messages have only the fields that Strait reads or writes; a decoder skips all others. Sources:
//! `envoy/service/discovery/v3/discovery.proto`, `envoy/config/core/v3/base.proto`, `google/rpc/status.proto` and
//! `istio/mcp/v1alpha1/resource.proto`.

mod answers;
mod body_of;
mod messages;
mod reports;
mod types;

pub use answers::{Rejected, rejected_in, rejection};
pub use body_of::{object_of, resource_of};
pub use messages::{
    BadRequest, ControlPlane, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest,
    DiscoveryResponse, FieldViolation, McpMetadata, McpResource, Node, NodeLocality, Resource,
    RpcStatus,
};
pub use reports::{REPORT_TYPE, control_plane, report_in, report_node, takes_reports};
pub use types::{ResourceType, resource_type, resource_types};

/// gRPC method of the state-of-the-world variant: all types over one stream, with the full state of a type in each
/// response.
pub const STATE_OF_THE_WORLD: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// gRPC method of the incremental (delta) variant: all types over one stream, with changes only.
pub const INCREMENTAL: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/// Type URL of the wrapper in which Istio's MCP sends resources.
pub const MCP_RESOURCE: &str = "type.googleapis.com/istio.mcp.v1alpha1.Resource";
