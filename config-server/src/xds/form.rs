//! Protocol variants of xDS, and the requests and responses that both share.

use std::collections::HashMap;
use std::sync::Arc;

use config_loader::xds::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
    INCREMENTAL, Node, Resource, RpcStatus, STATE_OF_THE_WORLD, control_plane,
};
use prost::Message;
use prost_types::Any;

/// Decoded request.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) type_url: String,
    pub(super) node: Option<Node>,
    /// Nonce of the response that the request answers; empty for other requests.
    pub(super) nonce: String,
    /// Error detail of a NACK.
    pub(super) error: Option<RpcStatus>,
    /// Names to subscribe to; empty in a first request for all resources.
    pub(super) subscribe: Vec<String>,
    /// Names to unsubscribe from.
    pub(super) unsubscribe: Vec<String>,
    /// Versions of the resources that the client has, by name.
    pub(super) versions: HashMap<String, String>,
}

/// Encoded resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) name: String,
    /// Hash of the content. A reconnecting client receives only the resources whose hash differs.
    pub(super) version: String,
    pub(super) resource: Any,
}

/// Response before it is encoded.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) type_url: String,
    pub(super) version: String,
    pub(super) nonce: String,
    pub(super) resources: Vec<Arc<Sent>>,
    pub(super) removed: Vec<String>,
}

/// Protocol variant of xDS.
pub(super) trait Form: Send + 'static {
    /// Path of the gRPC method.
    const PATH: &'static str;
    /// Whether each response contains all resources.
    const IS_WHOLE: bool;
    type Request: Message + Default + Send + 'static;
    type Response: Message + Default + Send + 'static;

    fn asked(request: Self::Request) -> Asked;
    fn said(said: Said) -> Self::Response;
}

/// Incremental xDS: responses contain changes only.
pub(super) struct Incremental;

/// State of the world: each response contains all resources.
pub(super) struct StateOfTheWorld;

impl Form for Incremental {
    const PATH: &'static str = INCREMENTAL;
    const IS_WHOLE: bool = false;
    type Request = DeltaDiscoveryRequest;
    type Response = DeltaDiscoveryResponse;

    fn asked(request: DeltaDiscoveryRequest) -> Asked {
        Asked {
            type_url: request.type_url,
            node: request.node,
            nonce: request.response_nonce,
            error: request.error_detail,
            subscribe: request.resource_names_subscribe,
            unsubscribe: request.resource_names_unsubscribe,
            versions: request.initial_resource_versions,
        }
    }

    fn said(said: Said) -> DeltaDiscoveryResponse {
        let resources = said.resources.iter().map(|sent| Resource {
            version: sent.version.clone(),
            resource: Some(sent.resource.clone()),
            name: sent.name.clone(),
        });
        DeltaDiscoveryResponse {
            system_version_info: said.version,
            resources: resources.collect(),
            type_url: said.type_url,
            nonce: said.nonce,
            removed_resources: said.removed,
            control_plane: Some(control_plane()),
        }
    }
}

impl Form for StateOfTheWorld {
    const PATH: &'static str = STATE_OF_THE_WORLD;
    const IS_WHOLE: bool = true;
    type Request = DiscoveryRequest;
    type Response = DiscoveryResponse;

    fn asked(request: DiscoveryRequest) -> Asked {
        Asked {
            type_url: request.type_url,
            node: request.node,
            nonce: request.response_nonce,
            error: request.error_detail,
            subscribe: request.resource_names,
            ..Asked::default()
        }
    }

    fn said(said: Said) -> DiscoveryResponse {
        DiscoveryResponse {
            version_info: said.version,
            resources: said
                .resources
                .iter()
                .map(|sent| sent.resource.clone())
                .collect(),
            type_url: said.type_url,
            nonce: said.nonce,
            control_plane: Some(control_plane()),
        }
    }
}
