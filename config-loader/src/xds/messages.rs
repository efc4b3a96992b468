//! Messages of the xDS and MCP protocols, field by field.

use std::collections::HashMap;

use prost::Message;
use prost_types::{Any, Struct, Timestamp};

/// `DiscoveryRequest`: a subscription to the full state of a type, an ACK or a NACK.
#[derive(Clone, PartialEq, Message)]
pub struct DiscoveryRequest {
    /// Last accepted version; empty if there is none.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// Identity of the client, only in the first request of a stream.
    #[prost(message, optional, tag = "2")]
    pub node: Option<Node>,
    /// Names of the requested resources; empty for all.
    #[prost(string, repeated, tag = "3")]
    pub resource_names: Vec<String>,
    /// Type URL of the resources.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Nonce of the acknowledged or rejected response; empty in a first request.
    #[prost(string, tag = "5")]
    pub response_nonce: String,
    /// Error that caused a NACK.
    #[prost(message, optional, tag = "6")]
    pub error_detail: Option<RpcStatus>,
}

/// `DiscoveryResponse`: the full state of a type.
#[derive(Clone, PartialEq, Message)]
pub struct DiscoveryResponse {
    /// Version of this state.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// Resources of the type.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Any>,
    /// Type URL of the resources.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Nonce that the ACK or NACK of this response repeats.
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Identity of the server.
    #[prost(message, optional, tag = "6")]
    pub control_plane: Option<ControlPlane>,
}

/// `DeltaDiscoveryRequest`: a subscription to the changes of a type, an ACK or a NACK.
#[derive(Clone, PartialEq, Message)]
pub struct DeltaDiscoveryRequest {
    /// Identity of the client, only in the first request of a stream.
    #[prost(message, optional, tag = "1")]
    pub node: Option<Node>,
    /// Type URL of the resources.
    #[prost(string, tag = "2")]
    pub type_url: String,
    /// Names to subscribe to; none or `*` in a first request for all.
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    /// Names to unsubscribe from.
    #[prost(string, repeated, tag = "4")]
    pub resource_names_unsubscribe: Vec<String>,
    /// Versions of resources known from an earlier stream, by name; only in the first request for a type.
    #[prost(map = "string, string", tag = "5")]
    pub initial_resource_versions: HashMap<String, String>,
    /// Nonce of the acknowledged or rejected response; empty in a first request.
    #[prost(string, tag = "6")]
    pub response_nonce: String,
    /// Error that caused a NACK.
    #[prost(message, optional, tag = "7")]
    pub error_detail: Option<RpcStatus>,
}

/// `DeltaDiscoveryResponse`: the changes of a type.
#[derive(Clone, PartialEq, Message)]
pub struct DeltaDiscoveryResponse {
    /// Version of the state after these changes.
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    /// New and changed resources.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    /// Type URL of the resources.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Nonce that the ACK or NACK of this response repeats.
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Names of removed resources.
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
    /// Identity of the server.
    #[prost(message, optional, tag = "7")]
    pub control_plane: Option<ControlPlane>,
}

/// `Resource` of the incremental protocol.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    /// Version of the resource.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Content of the resource.
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    /// Name of the resource: `NAMESPACE/NAME`.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// `Node`: the identity of a client.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    /// Node ID. Istio expects `TYPE~IP~NAME.NAMESPACE~DOMAIN`.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Service of the node.
    #[prost(string, tag = "2")]
    pub cluster: String,
    /// Node metadata of Istio: `GENERATOR`, `NAMESPACE`, `LABELS` and so on.
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<Struct>,
    /// Locality of the client.
    #[prost(message, optional, tag = "4")]
    pub locality: Option<NodeLocality>,
    /// Name of the client program.
    #[prost(string, tag = "6")]
    pub user_agent_name: String,
    /// Version of the client program.
    #[prost(string, tag = "7")]
    pub user_agent_version: String,
}

/// `Locality`.
#[derive(Clone, PartialEq, Message)]
pub struct NodeLocality {
    /// Region of the node.
    #[prost(string, tag = "1")]
    pub region: String,
    /// Zone of the node.
    #[prost(string, tag = "2")]
    pub zone: String,
    /// Sub-zone of the node.
    #[prost(string, tag = "3")]
    pub sub_zone: String,
}

/// `ControlPlane`: the identity of a server.
#[derive(Clone, PartialEq, Message)]
pub struct ControlPlane {
    /// Identifier of the server.
    #[prost(string, tag = "1")]
    pub identifier: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    /// gRPC status code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// Error message.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Machine-readable details, such as a [`BadRequest`].
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.rpc.BadRequest`: a list of errors.
#[derive(Clone, PartialEq, Message)]
pub struct BadRequest {
    /// Errors, one for each resource.
    #[prost(message, repeated, tag = "1")]
    pub field_violations: Vec<FieldViolation>,
}

/// `google.rpc.BadRequest.FieldViolation`.
#[derive(Clone, PartialEq, Message)]
pub struct FieldViolation {
    /// Subject of the error: here the name of a resource.
    #[prost(string, tag = "1")]
    pub field: String,
    /// Description of the error.
    #[prost(string, tag = "2")]
    pub description: String,
}

/// `istio.mcp.v1alpha1.Resource`: a Kubernetes object, without its type.
#[derive(Clone, PartialEq, Message)]
pub struct McpResource {
    /// Metadata of the object.
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<McpMetadata>,
    /// `spec` of the object.
    #[prost(message, optional, tag = "2")]
    pub body: Option<Any>,
}

/// `istio.mcp.v1alpha1.Metadata`.
#[derive(Clone, PartialEq, Message)]
pub struct McpMetadata {
    /// Name of the object: `NAMESPACE/NAME`, or `NAME` for cluster-scoped objects.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Creation time.
    #[prost(message, optional, tag = "2")]
    pub create_time: Option<Timestamp>,
    /// Resource version.
    #[prost(string, tag = "3")]
    pub version: String,
    /// Labels of the object.
    #[prost(map = "string, string", tag = "4")]
    pub labels: HashMap<String, String>,
    /// Annotations of the object.
    #[prost(map = "string, string", tag = "5")]
    pub annotations: HashMap<String, String>,
}
