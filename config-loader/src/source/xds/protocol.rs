//! The two forms of the stream, and the requests and responses that both have.

use std::collections::HashMap;

use prost::Message;
use prost_types::Any;

use crate::xds::{
    ControlPlane, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest,
    DiscoveryResponse, INCREMENTAL, Node, REPORT_TYPE, Rejected, RpcStatus, STATE_OF_THE_WORLD,
    rejection,
};

/// What a type is subscribed with.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    pub(super) type_url: String,
    /// The identity of the proxy; in the first request of a stream only.
    pub(super) node: Option<Node>,
    /// The version of the type that was accepted last.
    pub(super) accepted: String,
    /// The resources that were accepted, with their versions.
    pub(super) versions: HashMap<String, String>,
}

/// What a response says.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) type_url: String,
    pub(super) version: String,
    pub(super) nonce: String,
    /// The identity of the server.
    pub(super) server: Option<ControlPlane>,
    /// Whether the type has these resources and no others.
    pub(super) is_whole: bool,
    pub(super) resources: Vec<ReceivedResource>,
    /// Names of resources that are gone.
    pub(super) removed: Vec<String>,
}

/// A resource of a response.
#[derive(Debug, Default)]
pub(super) struct ReceivedResource {
    /// Its name, where the protocol has one beside the resource.
    pub(super) name: Option<String>,
    pub(super) version: String,
    pub(super) body: Any,
}

/// The answer to a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) type_url: String,
    /// The version of the type that was accepted last.
    pub(super) accepted: String,
    pub(super) nonce: String,
    /// Why the response is rejected: a NACK.
    pub(super) error: Option<String>,
    /// The resources that are rejected, as far as they have a name.
    pub(super) rejected: Vec<Rejected>,
}

impl Answer {
    fn status(&mut self) -> Option<RpcStatus> {
        let message = self.error.take()?;
        Some(rejection(message, &self.rejected))
    }
}

/// A form of the stream.
pub(super) trait Protocol {
    /// Its method.
    const PATH: &'static str;
    type Request: Message + Default + 'static;
    type Response: Message + Default + 'static;

    fn subscribe(subscription: Subscription) -> Self::Request;
    fn received(response: Self::Response) -> Received;
    fn answer(answer: Answer) -> Self::Request;
    /// The report of the proxy, in a node.
    fn report(node: Node) -> Self::Request;
}

/// Changes only (delta).
#[derive(Debug)]
pub(super) struct Incremental;

/// The whole state of a type in each response.
#[derive(Debug)]
pub(super) struct StateOfTheWorld;

impl Protocol for Incremental {
    const PATH: &'static str = INCREMENTAL;
    type Request = DeltaDiscoveryRequest;
    type Response = DeltaDiscoveryResponse;

    fn subscribe(subscription: Subscription) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            node: subscription.node,
            type_url: subscription.type_url,
            initial_resource_versions: subscription.versions,
            ..DeltaDiscoveryRequest::default()
        }
    }

    fn received(response: DeltaDiscoveryResponse) -> Received {
        let resources = response.resources.into_iter();
        let resources = resources.map(|resource| ReceivedResource {
            name: Some(resource.name),
            version: resource.version,
            body: resource.resource.unwrap_or_default(),
        });
        Received {
            type_url: response.type_url,
            version: response.system_version_info,
            nonce: response.nonce,
            server: response.control_plane,
            is_whole: false,
            resources: resources.collect(),
            removed: response.removed_resources,
        }
    }

    fn answer(mut answer: Answer) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            error_detail: answer.status(),
            type_url: answer.type_url,
            response_nonce: answer.nonce,
            ..DeltaDiscoveryRequest::default()
        }
    }

    fn report(node: Node) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            node: Some(node),
            type_url: REPORT_TYPE.to_owned(),
            ..DeltaDiscoveryRequest::default()
        }
    }
}

impl Protocol for StateOfTheWorld {
    const PATH: &'static str = STATE_OF_THE_WORLD;
    type Request = DiscoveryRequest;
    type Response = DiscoveryResponse;

    fn subscribe(subscription: Subscription) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: subscription.accepted,
            node: subscription.node,
            type_url: subscription.type_url,
            ..DiscoveryRequest::default()
        }
    }

    fn received(response: DiscoveryResponse) -> Received {
        let resources = response.resources.into_iter();
        let resources = resources.map(|body| ReceivedResource {
            body,
            ..ReceivedResource::default()
        });
        Received {
            type_url: response.type_url,
            version: response.version_info,
            nonce: response.nonce,
            server: response.control_plane,
            is_whole: true,
            resources: resources.collect(),
            removed: Vec::new(),
        }
    }

    fn answer(mut answer: Answer) -> DiscoveryRequest {
        DiscoveryRequest {
            error_detail: answer.status(),
            version_info: answer.accepted,
            type_url: answer.type_url,
            response_nonce: answer.nonce,
            ..DiscoveryRequest::default()
        }
    }

    fn report(node: Node) -> DiscoveryRequest {
        DiscoveryRequest {
            node: Some(node),
            type_url: REPORT_TYPE.to_owned(),
            ..DiscoveryRequest::default()
        }
    }
}
