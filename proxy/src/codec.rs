//! Downstream bytes to requests and back: HTTP/1 and HTTP/2 with their limits, and the end of a connection.
//!
//! Uses `exchange` for the type of a connection, and `runtime`. What answers a request is passed in as [`Answer`].

pub mod http1;
pub mod http2;
pub mod io;

use std::error::Error as StdError;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tokio::net::TcpStream;

use crate::detect::{Protocol, detect};
use crate::exchange::Connection;
use crate::exchange::request::DownstreamProtocol;
use crate::runtime::admission::Slot;
use crate::runtime::task::Supervisor;
use crate::snapshot::ListenerKey;
use crate::telemetry::{Counter, Telemetry, WorkerId};

use self::io::Stream;

/// What answers requests: `exchange::run` in a proxy, a closure in tests.
pub trait Answer: 'static {
    /// Body of the responses.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + 'static;

    /// Answers one request that came on this connection.
    fn answer(
        &self,
        connection: &Rc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + 'static;
}

impl<F, Fut, B> Answer for F
where
    F: Fn(Rc<Connection>, Request<Incoming>) -> Fut + 'static,
    Fut: Future<Output = Response<B>> + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + 'static,
{
    type Body = B;

    fn answer(
        &self,
        connection: &Rc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<B>> + 'static {
        self(Rc::clone(connection), request)
    }
}

/// Where a connection comes from, as far as the sockets know.
#[derive(Clone, Copy, Debug)]
pub struct Downstream {
    /// The listener that accepted it.
    pub listener: ListenerKey,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// Our address.
    pub local: SocketAddr,
}

impl Downstream {
    fn connection(self, protocol: DownstreamProtocol) -> Rc<Connection> {
        Rc::new(Connection::new(
            self.listener,
            self.remote,
            self.local,
            protocol,
        ))
    }
}

/// Limits and timeouts of downstream connections.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// HTTP/1.
    pub http1: http1::Settings,
    /// HTTP/2.
    pub http2: http2::Settings,
}

/// What one worker serves connections with.
#[derive(Debug)]
pub struct Server<A> {
    answer: A,
    settings: Settings,
    supervisor: Supervisor,
    telemetry: Arc<Telemetry>,
    worker: WorkerId,
}

impl<A: Answer> Server<A> {
    /// Serves with these settings, on the current thread.
    pub fn new(answer: A, settings: Settings, telemetry: Arc<Telemetry>, worker: WorkerId) -> Self {
        let panics = Arc::clone(&telemetry);
        let supervisor =
            Supervisor::new(move || panics.counters.increment(worker, Counter::TaskPanics));
        Self {
            answer,
            settings,
            supervisor,
            telemetry,
            worker,
        }
    }

    /// Adds one to a counter of this worker.
    pub fn count(&self, counter: Counter) {
        self.telemetry.counters.increment(self.worker, counter);
    }

    /// Starts this worker's tasks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Asks the connections of a listener that was closed to go elsewhere.
    pub fn drain_listener(&self, _listener: ListenerKey) {}

    /// Serves a connection in a task of its own.
    pub fn spawn(this: &Rc<Self>, tcp: TcpStream, slot: Slot, downstream: Downstream) {
        let server = Rc::clone(this);
        this.supervisor.spawn("connection", async move {
            server.serve(tcp, slot, downstream).await;
        });
    }

    async fn serve(self: Rc<Self>, tcp: TcpStream, slot: Slot, downstream: Downstream) {
        let mut stream = Stream::new(tcp, slot);
        let protocol = loop {
            match detect(stream.prefix()) {
                Some(protocol) => break protocol,
                None => match stream.fill_prefix().await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                },
            }
        };
        match protocol {
            Protocol::Http1 => {
                let connection = downstream.connection(DownstreamProtocol::Http1);
                http1::serve(&self, stream, &connection).await;
            }
            Protocol::Http2 => {
                let connection = downstream.connection(DownstreamProtocol::Http2);
                http2::serve(&self, stream, &connection).await;
            }
            Protocol::Tls => self.count(Counter::ProtocolUnknown),
        }
    }
}
