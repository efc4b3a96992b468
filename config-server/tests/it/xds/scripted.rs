//! Scripted xDS server, which sends the VirtualServices of a test as state of the world, and no other resources.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use config_loader::xds::{
    DiscoveryRequest, DiscoveryResponse, STATE_OF_THE_WORLD, resource_of, resource_type,
};
use futures_util::{Stream, stream};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tonic::server::{Grpc, StreamingService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

const VIRTUAL_SERVICES: &str = "networking.istio.io/v1/VirtualService";

/// Server without TLS.
pub struct ScriptedServer {
    pub address: SocketAddr,
    streams: Mutex<mpsc::UnboundedReceiver<ScriptedStream>>,
    _tasks: JoinSet<()>,
}

/// Server side of a stream.
pub struct ScriptedStream {
    requests: mpsc::UnboundedReceiver<DiscoveryRequest>,
    responses: mpsc::UnboundedSender<Result<DiscoveryResponse, Status>>,
}

impl ScriptedServer {
    /// Starts a server that rejects incremental xDS as unimplemented.
    pub async fn start() -> ScriptedServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, streams) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let sender = Arc::new(sender);
            let mut connections = JoinSet::new();
            while let Ok((connection, _)) = listener.accept().await {
                let sender = Arc::clone(&sender);
                let service = service_fn(move |request| {
                    let sender = Arc::clone(&sender);
                    async move { Ok::<_, Infallible>(answer(&sender, request).await) }
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                connections.spawn(async move {
                    let _ = builder
                        .serve_connection(TokioIo::new(connection), service)
                        .await;
                });
            }
        });
        ScriptedServer {
            address,
            streams: Mutex::new(streams),
            _tasks: tasks,
        }
    }

    /// Waits for the next stream of a client.
    pub async fn stream(&self) -> ScriptedStream {
        self.streams.lock().await.recv().await.unwrap()
    }
}

impl ScriptedStream {
    /// Waits for the next request about VirtualServices.
    async fn request(&mut self) -> DiscoveryRequest {
        loop {
            let request = self
                .requests
                .recv()
                .await
                .expect("the client ended the stream");
            if request.type_url == VIRTUAL_SERVICES {
                return request;
            }
        }
    }

    /// Waits for the first request about VirtualServices, and adds the node of the first request of the stream.
    pub async fn first_request(&mut self) -> DiscoveryRequest {
        let first = self.requests.recv().await.expect("a request");
        let node = first.node.clone();
        let request = match first.type_url == VIRTUAL_SERVICES {
            true => first,
            false => self.request().await,
        };
        DiscoveryRequest { node, ..request }
    }

    /// Sends a state of VirtualServices. Its nonce is its version.
    pub async fn send_state(&mut self, version: &str, objects: &[Value]) {
        let of = resource_type(VIRTUAL_SERVICES).unwrap();
        let resources = objects
            .iter()
            .map(|object| resource_of(&of, object).unwrap().1);
        let response = DiscoveryResponse {
            version_info: version.to_owned(),
            resources: resources.collect(),
            type_url: VIRTUAL_SERVICES.to_owned(),
            nonce: version.to_owned(),
            control_plane: None,
        };
        self.responses.send(Ok(response)).unwrap();
    }

    /// Waits for the answer to a response. Returns the accepted version, and the error of a NACK.
    pub async fn answer(&mut self, nonce: &str) -> (String, Option<String>) {
        loop {
            let request = self.request().await;
            if request.response_nonce == nonce {
                return (
                    request.version_info,
                    request.error_detail.map(|status| status.message),
                );
            }
        }
    }

    /// Ends the stream with an error.
    pub fn break_off(self) {
        self.responses
            .send(Err(Status::internal("broken")))
            .unwrap();
    }
}

type Sender = mpsc::UnboundedSender<ScriptedStream>;

async fn answer(sender: &Sender, request: Request<Incoming>) -> Response<tonic::body::Body> {
    if request.uri().path() != STATE_OF_THE_WORLD {
        return Status::unimplemented("only the whole state").into_http();
    }
    let codec = ProstCodec::<DiscoveryResponse, DiscoveryRequest>::default();
    Grpc::new(codec)
        .streaming(Accept(sender.clone()), request)
        .await
}

struct Accept(Sender);

impl StreamingService<DiscoveryRequest> for Accept {
    type Response = DiscoveryResponse;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<DiscoveryResponse, Status>> + Send>>;
    type Future = Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<DiscoveryRequest>>) -> Self::Future {
        let (responses, waiting) = mpsc::unbounded_channel();
        let (seen, requests) = mpsc::unbounded_channel();
        let mut incoming = request.into_inner();
        let others = responses.clone();
        tokio::spawn(async move {
            while let Ok(Some(request)) = incoming.message().await {
                if request.type_url != VIRTUAL_SERVICES && request.response_nonce.is_empty() {
                    let nothing = DiscoveryResponse {
                        version_info: "1".to_owned(),
                        type_url: request.type_url.clone(),
                        nonce: "1".to_owned(),
                        ..DiscoveryResponse::default()
                    };
                    let _ = others.send(Ok(nothing));
                }
                if seen.send(request).is_err() {
                    return;
                }
            }
        });
        // The receiver is gone when the test is over.
        let _ = self.0.send(ScriptedStream {
            requests,
            responses,
        });
        let responses = stream::unfold(waiting, |mut waiting: mpsc::UnboundedReceiver<_>| async {
            let next = waiting.recv().await?;
            Some((next, waiting))
        });
        ready(Ok(tonic::Response::new(Box::pin(responses))))
    }
}
