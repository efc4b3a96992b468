//! Test server on a thread of its own, stopped on drop.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// Protocol of a test server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Http1,
    Http1Tls,
    Http2,
    Http2Tls,
}

impl Kind {
    fn tls(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2Tls)
    }

    fn http2(self) -> bool {
        matches!(self, Self::Http2 | Self::Http2Tls)
    }
}

pub struct Server {
    kind: Kind,
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    certificate: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(kind: Kind) -> Self {
        let requests = Arc::new(AtomicU64::new(0));
        let made = rcgen::generate_simple_self_signed(["load.example".to_owned()]).unwrap();
        let certificate = made.cert.pem();
        let acceptor = kind.tls().then(|| acceptor(kind, &made));
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let counted = Arc::clone(&requests);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::from_std(socket).unwrap();
                tokio::select! {
                    () = accept(kind, listener, acceptor, counted) => {}
                    _ = stopped => {}
                }
            });
        });
        let (stop, thread) = (Some(stop), Some(thread));
        Self {
            kind,
            address,
            requests,
            certificate,
            stop,
            thread,
        }
    }

    pub fn url(&self) -> String {
        let scheme = if self.kind.tls() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the number of requests received.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns a file with the server's certificate.
    pub fn authority(&self) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &self.certificate).unwrap();
        file
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().unwrap().join();
    }
}

fn acceptor(kind: Kind, made: &rcgen::CertifiedKey<rcgen::KeyPair>) -> TlsAcceptor {
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::from(key))
        .unwrap();
    let alpn = if kind.http2() { "h2" } else { "http/1.1" };
    config.alpn_protocols = vec![alpn.into()];
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(
    kind: Kind,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    requests: Arc<AtomicU64>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        let (acceptor, requests) = (acceptor.clone(), Arc::clone(&requests));
        tokio::spawn(async move {
            match acceptor {
                None => serve(kind, TokioIo::new(stream), requests).await,
                Some(acceptor) => {
                    // A client that does not trust the certificate leaves.
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    serve(kind, TokioIo::new(stream), requests).await;
                }
            }
        });
    }
}

async fn serve<S>(kind: Kind, stream: S, requests: Arc<AtomicU64>)
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(answer(request, number).await) }
    });
    // How a connection ends is up to the client.
    let _ = if kind.http2() {
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder.serve_connection(stream, service).await
    } else {
        hyper::server::conn::http1::Builder::new()
            .serve_connection(stream, service)
            .await
    };
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn answer(request: Request<Incoming>, number: u64) -> Response<Body> {
    let host = request.uri().authority().map(ToString::to_string);
    let host = host.or_else(|| Some(request.headers().get("host")?.to_str().ok()?.to_owned()));
    let version = format!("{:?}", request.version());
    let failing = request.uri().path() == "/half" && number % 2 == 1;
    let grpc = request.headers().contains_key("te");
    let arrived = request.into_body().collect().await.unwrap().to_bytes();
    let body = if grpc {
        assert_eq!(arrived, &[0; 5][..], "an empty message has a prefix");
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let trailers = std::future::ready(Some(Ok(trailers)));
        Full::new(Bytes::from_static(b"\0\0\0\0\x02ok"))
            .with_trailers(trailers)
            .boxed()
    } else {
        Full::new(Bytes::from_static(b"hello")).boxed()
    };
    Response::builder()
        .status(if failing { 503 } else { 200 })
        .header("x-host", host.unwrap_or_default())
        .header("x-version", version)
        .body(body)
        .unwrap()
}
