//! Agent with a SPIFFE Workload API on a Unix socket, for tests.

use std::collections::HashMap;
use std::pin::Pin;
use std::thread::JoinHandle;

use futures_util::Stream;
use futures_util::stream::unfold;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::UnixListener;
use tokio::sync::{oneshot, watch};
use tonic::server::ServerStreamingService;
use tonic::{Code, Response, Status};
use tonic_prost::ProstCodec;

use crate::support::origin::{Body, Local};
use crate::support::pki::{Authority, Pair};

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct SvidRequest {}

/// `X509SVIDResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SvidResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) svids: Vec<Svid>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) crl: Vec<Vec<u8>>,
    #[prost(map = "string, bytes", tag = "3")]
    pub(crate) federated_bundles: HashMap<String, Vec<u8>>,
}

/// `X509SVID`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Svid {
    #[prost(string, tag = "1")]
    pub(crate) spiffe_id: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) x509_svid: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) x509_svid_key: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) bundle: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) hint: String,
}

impl Svid {
    pub(crate) fn new(id: &str, pair: &Pair, ca: &Authority) -> Self {
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        Self {
            spiffe_id: id.to_owned(),
            x509_svid: pair.der.clone(),
            x509_svid_key: key.secret_der().to_vec(),
            bundle: ca.der(),
            hint: String::new(),
        }
    }
}

/// State of the agent: the newest message, or the status with which every stream ends.
pub(crate) type State = Result<SvidResponse, Code>;

/// Agent on a socket of its own.
pub(crate) struct Agent {
    state: watch::Sender<State>,
    directory: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    pub(crate) fn start(state: State) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        let (sender, states) = watch::channel(state);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let serve = async move {
                let listener = UnixListener::bind(path).unwrap();
                tokio::select! {
                    () = accept(listener, states) => (),
                    _ = stopped => (),
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, serve);
        });
        Self {
            state: sender,
            directory,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Sends a message to all streams, or ends them.
    pub(crate) fn answers(&self, state: State) {
        drop(self.state.send_replace(state));
    }

    /// Returns the flags of a workload.
    pub(crate) fn flags(&self, namespace: &str, account: &str) -> Vec<String> {
        let socket = self.directory.path().join("agent.sock");
        let flags = [
            ("--identity", "workload-api".to_owned()),
            ("--workload-api", format!("unix://{}", socket.display())),
            ("--namespace", namespace.to_owned()),
            ("--service-account", account.to_owned()),
        ];
        let flags = flags.into_iter();
        flags
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

async fn accept(listener: UnixListener, states: watch::Receiver<State>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let states = states.clone();
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| answer(states.clone(), request));
            let serve = hyper::server::conn::http2::Builder::new(Local)
                .serve_connection(TokioIo::new(stream), service);
            drop(serve.await);
        });
    }
}

async fn answer(
    states: watch::Receiver<State>,
    request: Request<Incoming>,
) -> Result<hyper::Response<Body>, hyper::Error> {
    assert_eq!(request.uri().path(), "/SpiffeWorkloadAPI/FetchX509SVID");
    let response = match request.headers().get("workload.spiffe.io") {
        Some(value) if value == "true" => {
            let codec = ProstCodec::<SvidResponse, SvidRequest>::default();
            let mut grpc = tonic::server::Grpc::new(codec);
            grpc.server_streaming(Fetch(states), request).await
        }
        _ => Status::invalid_argument("security header missing").into_http(),
    };
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

struct Fetch(watch::Receiver<State>);

type Messages = Pin<Box<dyn Stream<Item = Result<SvidResponse, Status>> + Send>>;

impl ServerStreamingService<SvidRequest> for Fetch {
    type Response = SvidResponse;
    type ResponseStream = Messages;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Messages>, Status>> + Send>>;

    fn call(&mut self, _: tonic::Request<SvidRequest>) -> Self::Future {
        let mut states = self.0.clone();
        states.mark_changed();
        let messages = unfold((states, false), |(mut states, has_ended)| async move {
            if has_ended || states.changed().await.is_err() {
                return None;
            }
            let state = states.borrow_and_update().clone();
            let has_ended = state.is_err();
            let message = state.map_err(|code| Status::new(code, "as asked"));
            Some((message, (states, has_ended)))
        });
        let messages: Messages = Box::pin(messages);
        Box::pin(async move { Ok(Response::new(messages)) })
    }
}
