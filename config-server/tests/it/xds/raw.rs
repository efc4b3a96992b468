//! xDS client with full control over its requests, for both protocol variants.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config_loader::xds::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
    INCREMENTAL, Node, RpcStatus, STATE_OF_THE_WORLD,
};
use futures_util::stream;
use grpc_client::{ClientTlsFiles, channel, client_tls};
use http::uri::PathAndQuery;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::support::TestServer;

/// Maximum time for a response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Stream of a client that is not a Strait proxy.
pub struct RawStream<Q = DeltaDiscoveryRequest, A = DeltaDiscoveryResponse> {
    requests: mpsc::UnboundedSender<Q>,
    responses: Streaming<A>,
}

/// Stream of the state of the world of a type.
pub type WholeStream = RawStream<DiscoveryRequest, DiscoveryResponse>;

/// Returns the node of a client of that name.
pub fn node(name: &str) -> Node {
    let text = |text: &str| Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    };
    let fields = [("NAMESPACE", "edge"), ("CLUSTER_ID", "east")];
    let fields = fields.map(|(key, value)| (key.to_owned(), text(value)));
    Node {
        id: format!("sidecar~10.0.0.1~{name}.edge~edge.svc.cluster.local"),
        metadata: Some(Struct {
            fields: BTreeMap::from(fields).into_iter().collect(),
        }),
        user_agent_name: "other".to_owned(),
        user_agent_version: "7".to_owned(),
        ..Node::default()
    }
}

impl<Q, A> RawStream<Q, A>
where
    Q: prost::Message + Default + Send + 'static,
    A: prost::Message + Default + Send + 'static,
{
    async fn begin(server: &TestServer, token: &str, path: &'static str, first: Q) -> Self {
        let ca = server.data.path().join("ca.crt");
        Self::begin_at(server.address, ca, token, path, first)
            .await
            .unwrap()
    }

    async fn begin_at(
        address: SocketAddr,
        ca: PathBuf,
        token: &str,
        path: &'static str,
        first: Q,
    ) -> Result<Self, Status> {
        let files = ClientTlsFiles {
            ca: Some(ca),
            ..ClientTlsFiles::default()
        };
        let tls = client_tls(&files, "no CA").unwrap();
        let channel = channel(&address.ip().to_string(), address.port(), Some(&tls)).unwrap();
        let mut grpc = Grpc::new(channel);
        grpc.ready().await.unwrap();
        let (requests, waiting) = mpsc::unbounded_channel();
        let messages = stream::unfold(waiting, |mut waiting: mpsc::UnboundedReceiver<_>| async {
            let next = waiting.recv().await?;
            Some((next, waiting))
        });
        let mut request = Request::new(messages);
        let token = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", token);
        requests.send(first).ok().unwrap();
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        let responses = grpc.streaming(request, path, codec).await?;
        Ok(RawStream {
            requests,
            responses: responses.into_inner(),
        })
    }

    /// Returns the next response, or the end of the stream.
    pub async fn next(&mut self) -> Result<Option<A>, Status> {
        let next = tokio::time::timeout(PATIENCE, self.responses.message()).await;
        next.expect("a response or an end")
    }
}

impl RawStream {
    /// Subscribes to a type.
    pub async fn open(server: &TestServer, token: &str, node: Node, type_url: &str) -> RawStream {
        let first = DeltaDiscoveryRequest {
            node: Some(node),
            type_url: type_url.to_owned(),
            ..DeltaDiscoveryRequest::default()
        };
        RawStream::begin(server, token, INCREMENTAL, first).await
    }

    /// Begins a stream of any server with a request.
    pub async fn at(
        address: SocketAddr,
        ca: &Path,
        token: &str,
        first: DeltaDiscoveryRequest,
    ) -> Result<RawStream, Status> {
        RawStream::begin_at(address, ca.to_owned(), token, INCREMENTAL, first).await
    }

    /// Subscribes to a type with the resource versions that the client already has.
    pub async fn resume(
        server: &TestServer,
        token: &str,
        node: Node,
        type_url: &str,
        versions: HashMap<String, String>,
    ) -> RawStream {
        let first = DeltaDiscoveryRequest {
            node: Some(node),
            type_url: type_url.to_owned(),
            initial_resource_versions: versions,
            ..DeltaDiscoveryRequest::default()
        };
        RawStream::begin(server, token, INCREMENTAL, first).await
    }

    /// Receives the next response and answers with an ACK, or with a NACK if `error` is set. Returns the response.
    pub async fn answer(&mut self, error: Option<RpcStatus>) -> DeltaDiscoveryResponse {
        let response = self.next().await.unwrap().expect("a response");
        self.answer_to(&response, error);
        response
    }

    /// Answers a response with an ACK, or with a NACK if `error` is set.
    pub fn answer_to(&self, response: &DeltaDiscoveryResponse, error: Option<RpcStatus>) {
        let answer = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            error_detail: error,
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(answer).unwrap();
    }

    /// Subscribes to a further type.
    pub fn subscribe(&self, type_url: &str) {
        let request = DeltaDiscoveryRequest {
            type_url: type_url.to_owned(),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(request).unwrap();
    }
}

impl WholeStream {
    /// Subscribes to a type.
    pub async fn open_whole(server: &TestServer, token: &str, type_url: &str) -> WholeStream {
        let first = DiscoveryRequest {
            node: Some(node("whole")),
            type_url: type_url.to_owned(),
            ..DiscoveryRequest::default()
        };
        RawStream::begin(server, token, STATE_OF_THE_WORLD, first).await
    }

    /// Receives the next response and answers with an ACK. Returns the response.
    pub async fn accept(&mut self) -> DiscoveryResponse {
        let response = self.next().await.unwrap().expect("a response");
        let answer = DiscoveryRequest {
            version_info: response.version_info.clone(),
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            ..DiscoveryRequest::default()
        };
        self.requests.send(answer).unwrap();
        response
    }
}
