//! The messages, field for field.

use std::collections::HashMap;

use prost::Message;
use prost_types::{Any, Struct, Timestamp};

/// `DiscoveryRequest`: a subscription to the whole state of a type, an ACK or a NACK.
#[derive(Clone, PartialEq, Message)]
pub struct DiscoveryRequest {
    /// The version that was accepted last; empty if there is none.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// The identity of the client; in the first request of a stream only.
    #[prost(message, optional, tag = "2")]
    pub node: Option<Node>,
    /// Which resources; none for all.
    #[prost(string, repeated, tag = "3")]
    pub resource_names: Vec<String>,
    /// The type.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// The nonce of the response that this answers; empty in a first request.
    #[prost(string, tag = "5")]
    pub response_nonce: String,
    /// Why the response is rejected.
    #[prost(message, optional, tag = "6")]
    pub error_detail: Option<RpcStatus>,
}

/// `DiscoveryResponse`: the whole state of a type.
#[derive(Clone, PartialEq, Message)]
pub struct DiscoveryResponse {
    /// The version of this state.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// The resources.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Any>,
    /// The type.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// The nonce that the ACK or NACK of this response repeats.
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// The identity of the server.
    #[prost(message, optional, tag = "6")]
    pub control_plane: Option<ControlPlane>,
}

/// `DeltaDiscoveryRequest`: a subscription to the changes of a type, an ACK or a NACK.
#[derive(Clone, PartialEq, Message)]
pub struct DeltaDiscoveryRequest {
    /// The identity of the client; in the first request of a stream only.
    #[prost(message, optional, tag = "1")]
    pub node: Option<Node>,
    /// The type.
    #[prost(string, tag = "2")]
    pub type_url: String,
    /// Further names that are wanted; none or `*` in a first request for all.
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    /// Names that are not wanted any more.
    #[prost(string, repeated, tag = "4")]
    pub resource_names_unsubscribe: Vec<String>,
    /// Which resources are known from an earlier stream, with their versions; in the first request for a type only.
    #[prost(map = "string, string", tag = "5")]
    pub initial_resource_versions: HashMap<String, String>,
    /// The nonce of the response that this answers; empty in a first request.
    #[prost(string, tag = "6")]
    pub response_nonce: String,
    /// Why the response is rejected.
    #[prost(message, optional, tag = "7")]
    pub error_detail: Option<RpcStatus>,
}

/// `DeltaDiscoveryResponse`: changes of a type.
#[derive(Clone, PartialEq, Message)]
pub struct DeltaDiscoveryResponse {
    /// The version of the state after these changes.
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    /// Resources that are new or changed.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    /// The type.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// The nonce that the ACK or NACK of this response repeats.
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Names of resources that are gone.
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
    /// The identity of the server.
    #[prost(message, optional, tag = "7")]
    pub control_plane: Option<ControlPlane>,
}

/// `Resource` of the incremental protocol.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    /// Its version.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The resource itself.
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    /// Its name: `NAMESPACE/NAME`.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// `Node`: the identity of a client.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    /// Istio reads `TYPE~IP~NAME.NAMESPACE~DOMAIN`.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The service that the node is of.
    #[prost(string, tag = "2")]
    pub cluster: String,
    /// What Istio calls node metadata: `GENERATOR`, `NAMESPACE`, `LABELS` and so on.
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<Struct>,
    /// Where it is.
    #[prost(message, optional, tag = "4")]
    pub locality: Option<NodeLocality>,
    /// The program.
    #[prost(string, tag = "6")]
    pub user_agent_name: String,
    /// Its version.
    #[prost(string, tag = "7")]
    pub user_agent_version: String,
}

/// `Locality`.
#[derive(Clone, PartialEq, Message)]
pub struct NodeLocality {
    /// The region.
    #[prost(string, tag = "1")]
    pub region: String,
    /// The zone.
    #[prost(string, tag = "2")]
    pub zone: String,
    /// The sub-zone.
    #[prost(string, tag = "3")]
    pub sub_zone: String,
}

/// `ControlPlane`: the identity of a server.
#[derive(Clone, PartialEq, Message)]
pub struct ControlPlane {
    /// Its name.
    #[prost(string, tag = "1")]
    pub identifier: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    /// A code of gRPC.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// In words.
    #[prost(string, tag = "2")]
    pub message: String,
    /// The same for programs, such as a [`BadRequest`].
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.rpc.BadRequest`: what is wrong, one by one.
#[derive(Clone, PartialEq, Message)]
pub struct BadRequest {
    /// What is wrong.
    #[prost(message, repeated, tag = "1")]
    pub field_violations: Vec<FieldViolation>,
}

/// `google.rpc.BadRequest.FieldViolation`.
#[derive(Clone, PartialEq, Message)]
pub struct FieldViolation {
    /// What it is about: here the name of a resource.
    #[prost(string, tag = "1")]
    pub field: String,
    /// What is wrong with it.
    #[prost(string, tag = "2")]
    pub description: String,
}

/// `istio.mcp.v1alpha1.Resource`: an object of Kubernetes, without the type.
#[derive(Clone, PartialEq, Message)]
pub struct McpResource {
    /// Its metadata.
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<McpMetadata>,
    /// Its `spec`.
    #[prost(message, optional, tag = "2")]
    pub body: Option<Any>,
}

/// `istio.mcp.v1alpha1.Metadata`.
#[derive(Clone, PartialEq, Message)]
pub struct McpMetadata {
    /// `NAMESPACE/NAME`, or `NAME` alone outside of namespaces.
    #[prost(string, tag = "1")]
    pub name: String,
    /// When it was created.
    #[prost(message, optional, tag = "2")]
    pub create_time: Option<Timestamp>,
    /// Its version.
    #[prost(string, tag = "3")]
    pub version: String,
    /// Its labels.
    #[prost(map = "string, string", tag = "4")]
    pub labels: HashMap<String, String>,
    /// Its annotations.
    #[prost(map = "string, string", tag = "5")]
    pub annotations: HashMap<String, String>,
}
