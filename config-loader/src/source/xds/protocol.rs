//! Both variants of aggregated discovery, incremental and state of the world, and the requests and responses that they
//! share.

use std::collections::HashMap;

use prost::Message;
use prost_types::Any;

use crate::xds::{
    ControlPlane, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest,
    DiscoveryResponse, INCREMENTAL, Node, REPORT_TYPE, Rejected, RpcStatus, STATE_OF_THE_WORLD,
    rejection,
};

/// Subscription to one type.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    pub(super) type_url: String,
    /// Identity of the proxy; only in the first request of a stream.
    pub(super) node: Option<Node>,
    /// Version of the type that was last accepted.
    pub(super) accepted: String,
    /// Accepted resources, with their versions.
    pub(super) versions: HashMap<String, String>,
}

/// Content of a response.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) type_url: String,
    pub(super) version: String,
    pub(super) nonce: String,
    /// Identity of the server.
    pub(super) server: Option<ControlPlane>,
    /// Whether the response lists all resources of the type.
    pub(super) is_whole: bool,
    pub(super) resources: Vec<ReceivedResource>,
    /// Names of removed resources.
    pub(super) removed: Vec<String>,
}

/// Resource of a response.
#[derive(Debug, Default)]
pub(super) struct ReceivedResource {
    /// Name outside the resource, if the protocol has one.
    pub(super) name: Option<String>,
    pub(super) version: String,
    pub(super) body: Any,
}

/// ACK or NACK of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) type_url: String,
    /// Version of the type that was last accepted.
    pub(super) accepted: String,
    pub(super) nonce: String,
    /// Error of a NACK; `None` for an ACK.
    pub(super) error: Option<String>,
    /// Rejected resources that have a name.
    pub(super) rejected: Vec<Rejected>,
}

impl Answer {
    fn status(&mut self) -> Option<RpcStatus> {
        let message = self.error.take()?;
        Some(rejection(message, &self.rejected))
    }
}

/// Variant of the protocol.
pub(super) trait Protocol {
    /// gRPC path of the method.
    const PATH: &'static str;
    type Request: Message + Default + 'static;
    type Response: Message + Default + 'static;

    fn subscribe(subscription: Subscription) -> Self::Request;
    fn received(response: Self::Response) -> Received;
    fn answer(answer: Answer) -> Self::Request;
    /// Returns the request that carries the proxy's report, in its node.
    fn report(node: Node) -> Self::Request;
}

/// Incremental xDS (delta): responses contain changes only.
#[derive(Debug)]
pub(super) struct Incremental;

/// State-of-the-world xDS: each response contains all resources of a type.
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
