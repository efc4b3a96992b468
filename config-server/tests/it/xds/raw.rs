//! A client that asks and answers as a test wants, in the incremental form.

use std::collections::BTreeMap;
use std::time::Duration;

use config_loader::grpc::{ClientTlsFiles, channel, client_tls};
use config_loader::xds::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, INCREMENTAL, Node, RpcStatus,
};
use futures_util::stream;
use http::uri::PathAndQuery;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::support::TestServer;

/// How long a response may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of a client that is no proxy of Strait.
pub struct RawStream {
    requests: mpsc::UnboundedSender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

/// Who the client of that name is.
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

impl RawStream {
    /// Subscribes to a type.
    pub async fn open(server: &TestServer, token: &str, node: Node, type_url: &str) -> RawStream {
        let files = ClientTlsFiles {
            ca: Some(server.data.path().join("ca.crt")),
            ..ClientTlsFiles::default()
        };
        let tls = client_tls(&files, "no CA").unwrap();
        let address = server.address;
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
        let first = DeltaDiscoveryRequest {
            node: Some(node),
            type_url: type_url.to_owned(),
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(first).unwrap();
        let codec = ProstCodec::<DeltaDiscoveryRequest, DeltaDiscoveryResponse>::default();
        let path = PathAndQuery::from_static(INCREMENTAL);
        let responses = grpc.streaming(request, path, codec).await.unwrap();
        RawStream {
            requests,
            responses: responses.into_inner(),
        }
    }

    /// The next response, or how the stream ended.
    pub async fn next(&mut self) -> Result<Option<DeltaDiscoveryResponse>, Status> {
        let next = tokio::time::timeout(PATIENCE, self.responses.message()).await;
        next.expect("a response or an end")
    }

    /// The next response, which is accepted, or rejected with an error.
    pub async fn answer(&mut self, error: Option<RpcStatus>) -> DeltaDiscoveryResponse {
        let response = self.next().await.unwrap().expect("a response");
        let answer = DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            error_detail: error,
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(answer).unwrap();
        response
    }
}
