//! TLS upstream servers, and their records of client handshakes.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::server::TlsStream;

use super::origin::{Body, Local, empty, full};
use super::pki::{Authority, Pair};

/// Application protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// Raw TCP: sends this many bytes, then closes the socket without a TLS close_notify.
    Blunt(usize),
    /// Raw TCP: sends a greeting, then echoes.
    Echo,
    /// HTTP/1.1.
    H1,
    /// HTTP/2, by ALPN.
    H2,
    /// HTTP/2 without ALPN.
    SilentH2,
}

/// Client, as seen by the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Server name (SNI) that it requested.
    pub sni: Option<String>,
    /// Protocols that it offered by ALPN.
    pub alpn: Vec<String>,
    /// Client certificate, as DER.
    pub certificate: Option<Vec<u8>>,
    /// Whether it resumed a session.
    pub resumed: bool,
    /// Host of each of its requests.
    pub hosts: Vec<String>,
}

/// TLS upstream server.
pub struct TlsOrigin {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    speaks: Speaks,
    config: Mutex<Arc<ServerConfig>>,
    callers: Mutex<Vec<Caller>>,
    failed: Mutex<usize>,
}

/// TLS settings of a server.
#[derive(Clone)]
pub struct Terms {
    pub pair: Pair,
    /// Authorities that must have issued the client's certificate; `None` requests no certificate.
    pub clients: Option<Vec<u8>>,
    pub versions: Vec<&'static SupportedProtocolVersion>,
}

impl Terms {
    pub fn new(pair: &Pair) -> Self {
        Self {
            pair: pair.clone(),
            clients: None,
            versions: rustls::ALL_VERSIONS.to_vec(),
        }
    }

    /// Requires a client certificate issued by this authority.
    pub fn for_clients_of(mut self, authority: &Authority) -> Self {
        self.clients = Some(authority.der());
        self
    }

    pub fn speaking(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    fn config(&self, speaks: Speaks) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.versions)
            .unwrap();
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone().into()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let chain = CertificateDer::pem_slice_iter(self.pair.chain.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.pair.key.as_bytes()).unwrap();
        let chain = chain.map(Result::unwrap).collect();
        let certified = CertifiedKey::from_der(chain, key, &provider).unwrap();
        let mut config = builder.with_cert_resolver(Arc::new(Only(Arc::new(certified))));
        config.alpn_protocols = match speaks {
            Speaks::Blunt(_) | Speaks::Echo | Speaks::H1 | Speaks::SilentH2 => Vec::new(),
            Speaks::H2 => vec![b"h2".to_vec()],
        };
        Arc::new(config)
    }
}

#[derive(Debug)]
struct Only(Arc<CertifiedKey>);

impl ResolvesServerCert for Only {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

impl TlsOrigin {
    /// Starts a server on a thread of its own. HTTP requests are answered with `hello`, or with the request body;
    /// `CONNECT` and upgrades lead to an echo that sends a greeting first.
    pub fn start(speaks: Speaks, terms: &Terms) -> Self {
        Self::serving(speaks, terms, answer)
    }

    /// Starts an HTTP server that answers with a closure, on a thread of its own.
    pub fn serving<F, R>(speaks: Speaks, terms: &Terms, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> R + Send + 'static,
        R: Future<Output = Result<Response<Body>, hyper::Error>> + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            speaks,
            config: Mutex::new(terms.config(speaks)),
            callers: Mutex::default(),
            failed: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let serve = async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, served, Rc::new(handler)) => (),
                    _ = stopped => (),
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, serve);
        });
        Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Changes the TLS settings for new connections.
    pub fn change(&self, terms: &Terms) {
        *self.shared.config.lock().unwrap() = terms.config(self.shared.speaks);
    }

    /// Returns the clients that have completed a handshake so far.
    pub fn callers(&self) -> Vec<Caller> {
        self.shared.callers.lock().unwrap().clone()
    }

    /// Returns the only client; panics if there are others.
    pub fn only(&self) -> Caller {
        let mut callers = self.callers();
        assert_eq!(callers.len(), 1, "{callers:?}");
        callers.remove(0)
    }

    /// Returns the number of failed handshakes.
    pub fn failed(&self) -> usize {
        *self.shared.failed.lock().unwrap()
    }
}

impl Drop for TlsOrigin {
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

async fn accept<F, R>(listener: tokio::net::TcpListener, shared: Arc<Shared>, handler: Rc<F>)
where
    F: Fn(Request<Incoming>) -> R + 'static,
    R: Future<Output = Result<Response<Body>, hyper::Error>> + 'static,
{
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::task::spawn_local(serve(stream, Arc::clone(&shared), Rc::clone(&handler)));
    }
}

async fn serve<F, R>(stream: TcpStream, shared: Arc<Shared>, handler: Rc<F>)
where
    F: Fn(Request<Incoming>) -> R + 'static,
    R: Future<Output = Result<Response<Body>, hyper::Error>> + 'static,
{
    let config = Arc::clone(&shared.config.lock().unwrap());
    let Ok((stream, number)) = shake_hands(stream, config, &shared).await else {
        *shared.failed.lock().unwrap() += 1;
        return;
    };
    let seen = Arc::clone(&shared);
    let service = service_fn(move |request: Request<Incoming>| {
        let host = match request.uri().authority() {
            Some(authority) => authority.to_string(),
            None => request.headers()["host"].to_str().unwrap().to_owned(),
        };
        seen.callers.lock().unwrap()[number].hosts.push(host);
        handler(request)
    });
    // How a connection ends is for the test to judge by what the client sees.
    match shared.speaks {
        Speaks::Blunt(bytes) => drop(say_and_leave(stream, bytes).await),
        Speaks::Echo => drop(echo(stream).await),
        Speaks::H1 => {
            let serve = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            drop(serve.await);
        }
        Speaks::H2 | Speaks::SilentH2 => {
            let serve = hyper::server::conn::http2::Builder::new(Local)
                .serve_connection(TokioIo::new(stream), service);
            drop(serve.await);
        }
    }
}

async fn shake_hands(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    shared: &Shared,
) -> io::Result<(TlsStream<TcpStream>, usize)> {
    let start = tokio_rustls::LazyConfigAcceptor::new(Default::default(), stream).await?;
    let hello = start.client_hello();
    let alpn = hello.alpn().into_iter().flatten();
    let mut caller = Caller {
        sni: hello.server_name().map(str::to_owned),
        alpn: alpn
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect(),
        ..Caller::default()
    };
    let stream = start.into_stream(config).await?;
    let session = &stream.get_ref().1;
    let certificates = session.peer_certificates();
    caller.certificate = certificates.map(|chain| chain[0].to_vec());
    caller.resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
    let mut callers = shared.callers.lock().unwrap();
    callers.push(caller);
    let number = callers.len() - 1;
    drop(callers);
    Ok((stream, number))
}

async fn answer(mut request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    use http_body_util::BodyExt;
    let connects = request.method() == Method::CONNECT;
    if connects || request.headers().contains_key("upgrade") {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::task::spawn_local(async move {
            let upgraded = TokioIo::new(upgrade.await.unwrap());
            drop(echo(upgraded).await);
        });
        if connects {
            return Ok(Response::new(empty()));
        }
        let response = Response::builder()
            .status(101)
            .header("connection", "upgrade")
            .header("upgrade", "echo");
        return Ok(response.body(empty()).unwrap());
    }
    let closes = request.uri().path() == "/close";
    let body = request.into_body().collect().await?.to_bytes();
    let body = if body.is_empty() {
        "hello".into()
    } else {
        body
    };
    let mut response = Response::new(full(body));
    if closes {
        let value = "close".parse().expect("a header's value");
        response.headers_mut().insert("connection", value);
    }
    Ok(response)
}

async fn say_and_leave(mut stream: TlsStream<TcpStream>, bytes: usize) -> io::Result<()> {
    stream.write_all(&vec![b'x'; bytes]).await?;
    stream.flush().await?;
    let (mut socket, _) = stream.into_inner();
    socket.shutdown().await
}

async fn echo(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
) -> io::Result<()> {
    stream.write_all(b"welcome\n").await?;
    stream.flush().await?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return stream.shutdown().await;
        }
        stream.write_all(&buffer[..count]).await?;
        stream.flush().await?;
    }
}
