//! Upstream servers whose behavior a test scripts.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

/// Error of a body.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Boxed body of a request or response.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Returns a body with these bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns an empty body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Protocol of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    H1,
    H2,
}

/// Head of a request as received by an origin.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub uri: Uri,
    pub version: Version,
    pub headers: HeaderMap,
}

impl Seen {
    /// Returns the value of a header; `None` if there is none, panics if there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?.to_str().unwrap();
        assert!(values.next().is_none(), "{name} came more than once");
        Some(first)
    }

    /// Returns the host of the request, from the URI or the `host` header.
    pub fn host(&self) -> &str {
        match self.uri.authority() {
            Some(authority) => authority.as_str(),
            None => self.header("host").unwrap(),
        }
    }

    /// Returns path and query.
    pub fn path(&self) -> &str {
        self.uri.path_and_query().unwrap().as_str()
    }
}

/// Running upstream server, stopped on drop.
pub struct Origin {
    pub address: SocketAddr,
    pub back: Back,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    /// Starts a server that answers with a closure, on a thread of its own.
    pub fn start<F, R>(back: Back, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> R + Send + 'static,
        R: Future<Output = Response<Body>> + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::start_on(listener, back, handler)
    }

    /// Starts a server on a listening socket.
    pub fn start_on<F, R>(listener: TcpListener, back: Back, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> R + Send + 'static,
        R: Future<Output = Response<Body>> + 'static,
    {
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let (stop, stopped) = oneshot::channel();
        let (log, count) = (Arc::clone(&seen), Arc::clone(&connections));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let serve = async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, back, Rc::new(handler), log, count) => (),
                    _ = stopped => (),
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, serve);
        });
        Self {
            address,
            back,
            seen,
            connections,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Starts a server that answers every request with its name.
    pub fn named(back: Back, name: &'static str) -> Self {
        Self::start(back, move |_| async move { Response::new(full(name)) })
    }

    /// Returns the request heads received so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the only request received; panics if there are others.
    pub fn only(&self) -> Seen {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.remove(0)
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Origin {
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

async fn accept<F, R>(
    listener: tokio::net::TcpListener,
    back: Back,
    handler: Rc<F>,
    log: Arc<Mutex<Vec<Seen>>>,
    count: Arc<AtomicUsize>,
) where
    F: Fn(Request<Incoming>) -> R + 'static,
    R: Future<Output = Response<Body>> + 'static,
{
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        count.fetch_add(1, Ordering::SeqCst);
        let (handler, log) = (Rc::clone(&handler), Arc::clone(&log));
        let service = service_fn(move |request: Request<Incoming>| {
            log.lock().unwrap().push(Seen {
                method: request.method().clone(),
                uri: request.uri().clone(),
                version: request.version(),
                headers: request.headers().clone(),
            });
            let answer = handler(request);
            async move { Ok::<_, std::convert::Infallible>(answer.await) }
        });
        let io = TokioIo::new(stream);
        tokio::task::spawn_local(async move {
            // How a connection ends is for the test to judge by what the client sees.
            match back {
                Back::H1 => {
                    let serve = hyper::server::conn::http1::Builder::new()
                        .serve_connection(io, service)
                        .with_upgrades();
                    drop(serve.await);
                }
                Back::H2 => {
                    let serve = hyper::server::conn::http2::Builder::new(Local)
                        .serve_connection(io, service);
                    drop(serve.await);
                }
            }
        });
    }
}

/// Executor that spawns tasks on the thread's local set.
#[derive(Clone, Copy)]
pub struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move { drop(future.await) });
    }
}

/// Upstream server of raw TCP: a closure handles each connection and its number, on a thread of its own.
pub struct RawOrigin {
    pub address: SocketAddr,
}

impl RawOrigin {
    /// Starts a server, which listens until the process ends.
    pub fn start(script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(script);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let script = Arc::clone(&script);
                std::thread::spawn(move || script(number, stream.unwrap()));
            }
        });
        Self { address }
    }
}

/// Listener with a full accept queue: further connections get no reply, as from an unreachable address.
pub struct Unreachable {
    pub address: SocketAddr,
    listener: TcpListener,
    queued: Vec<TcpStream>,
}

impl Unreachable {
    pub fn new() -> Self {
        let mut unreachable = Self::listening();
        unreachable.fill();
        unreachable
    }

    /// Creates a listener that still accepts connections.
    pub fn listening() -> Self {
        let kind = socket2::Type::STREAM;
        let socket = socket2::Socket::new(socket2::Domain::IPV4, kind, None).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(&any.into()).unwrap();
        socket.listen(0).unwrap();
        let listener = TcpListener::from(socket);
        Self {
            address: listener.local_addr().unwrap(),
            listener,
            queued: Vec::new(),
        }
    }

    /// Accepts the next connection from the queue.
    pub fn accept(&self) -> TcpStream {
        self.listener.accept().unwrap().0
    }

    /// Fills the accept queue, so that further connections get no reply.
    pub fn fill(&mut self) {
        let wait = std::time::Duration::from_millis(200);
        while let Ok(stream) = TcpStream::connect_timeout(&self.address, wait) {
            self.queued.push(stream);
        }
    }

    /// Closes the connections in the queue, so that others are accepted.
    pub fn empty(&mut self) {
        self.queued.clear();
    }
}

/// Reads a request head from a stream, including the empty line; returns an empty string at the end of the stream.
pub fn read_head(stream: &mut impl std::io::Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1..) => head.push(byte[0]),
            _ => return String::new(),
        }
    }
    String::from_utf8(head).unwrap()
}
