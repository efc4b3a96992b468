//! Downstream bytes to requests and back: HTTP/1 and HTTP/2 with their limits, and the end of a connection.
//!
//! Uses `exchange` for the type of a connection, and `runtime`. What answers a request is passed in as [`Handler`].

pub mod check;
mod connection_table;
mod extended_connect;
mod flight;
pub mod framing;
mod future_slot;
pub mod handshake;
pub mod http1;
pub mod http2;
pub mod io;
pub mod opaque;
mod park;
pub mod refusal;

pub mod transport;
pub mod watchdog;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response, StatusCode};

use crate::exchange::downstream::connection::DownstreamProtocol;
use crate::exchange::downstream::connection::Handshake;
use crate::exchange::record::log::Unserved;
use crate::exchange::tcp::{DownstreamTcp, Opened};
use crate::exchange::{Connection, DownstreamBody};
use crate::runtime::admission::AdmissionPermit;
use crate::runtime::clock::Tick;
use crate::runtime::task::Supervisor;
use crate::snapshot::{Listener, ListenerKey, OpaqueRoutes, ProxyHeader, Service};
use crate::telemetry::{ConnectionProtocol, Counter, ListenerStats, Telemetry, WorkerId};

use self::connection_table::{ConnectionHandle, ConnectionTable};
use self::framing::Framing;
use self::io::{Counted, Stream};
use self::opaque::Scratch;
use self::park::Patience;
use self::refusal::Refusal;
use self::transport::Transport;

/// What answers requests: `exchange::run` in a proxy, a closure in tests.
pub trait Handler: 'static {
    /// Body of the responses.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static;

    /// An answer that is being made.
    type Future: Future<Output = Response<Self::Body>> + 'static;

    /// Answers one request that came on this connection.
    fn answer(&self, connection: &Rc<Connection>, request: Request<DownstreamBody>)
    -> Self::Future;

    /// The listener as it is configured now. `None` when it is not configured, or not known here: its
    /// connections are then taken to carry HTTP.
    fn listener(&self, _key: &ListenerKey, _local: SocketAddr) -> Option<Arc<Listener>> {
        None
    }

    /// Connects a raw TCP connection to its destination; `None` if it has none.
    fn open(&self, _asked: DownstreamTcp) -> impl Future<Output = Option<Opened>> + 'static {
        std::future::ready(None)
    }

    /// Takes note of a request that was refused instead.
    fn refused(&self, _connection: &Connection, _unserved: &Unserved<'_>) {}
}

impl<F, Fut, B> Handler for F
where
    F: Fn(Rc<Connection>, Request<DownstreamBody>) -> Fut + 'static,
    Fut: Future<Output = Response<B>> + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static,
{
    type Body = B;
    type Future = Fut;

    fn answer(&self, connection: &Rc<Connection>, request: Request<DownstreamBody>) -> Fut {
        self(Rc::clone(connection), request)
    }
}

/// Where a connection comes from, as far as the sockets know.
#[derive(Clone, Debug)]
pub struct Downstream {
    /// The listener that accepted it.
    pub listener: ListenerKey,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// Our address.
    pub local: SocketAddr,
}

impl Downstream {
    fn connection(
        self,
        protocol: DownstreamProtocol,
        tls: Option<Box<Handshake>>,
    ) -> Rc<Connection> {
        let connection = Connection::new(self.listener, self.remote, self.local, protocol);
        Rc::new(Connection { tls, ..connection })
    }
}

/// Limits and timeouts of downstream connections.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// HTTP/1.
    pub http1: http1::Settings,
    /// HTTP/2.
    pub http2: http2::Settings,
    /// Neither: raw TCP bytes.
    pub opaque: opaque::Settings,
    /// TLS.
    pub tls: handshake::Settings,
    /// Any.
    pub timeouts: Timeouts,
}

/// Timeouts of connections of any protocol.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Time without a request after which a connection is closed. Default: 1 h.
    pub idle: Duration,
    /// The same once a drain has begun, for HTTP/1: long enough for a request that is on its way. Default: 1 s.
    pub drain_idle: Duration,
    /// Time that a connection gets to finish, once its listener was closed or the proxy drains. Default: 45 s.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(3600),
            drain_idle: Duration::from_secs(1),
            drain: Duration::from_secs(45),
        }
    }
}

impl Timeouts {
    fn patience(&self) -> Patience {
        Patience {
            idle: self.idle,
            drain_idle: self.drain_idle,
        }
    }

    fn http1(&self, http1: &http1::Settings, park_after: Option<Duration>) -> watchdog::Timeouts {
        watchdog::Timeouts {
            head: http1.head_timeout,
            body: http1.body_timeout,
            park_after,
            drain_idle: self.drain_idle,
            drain: self.drain,
        }
    }
}

/// What one worker serves connections with.
#[derive(Debug)]
pub struct Server<A> {
    handler: A,
    settings: Settings,
    timeouts: Timeouts,
    http1: hyper::server::conn::http1::Builder,
    http2: http2::Shared,
    connection_table: Rc<ConnectionTable>,
    scratch: Scratch,
    supervisor: Supervisor,
    telemetry: Arc<Telemetry>,
    worker: WorkerId,
    stats: RefCell<BTreeMap<ListenerKey, Arc<ListenerStats>>>,
    handshakes: handshake::Pending,
}

impl<A: Handler> Server<A> {
    /// Serves with these settings, on the current thread.
    ///
    /// # Panics
    ///
    /// Outside a `tokio::task::LocalSet`.
    pub fn new(
        handler: A,
        settings: Settings,
        telemetry: Arc<Telemetry>,
        worker: WorkerId,
    ) -> Self {
        let panics = Arc::clone(&telemetry);
        let supervisor =
            Supervisor::new(move || panics.counters.increment(worker, Counter::TaskPanics));
        let connection_table = Rc::new(ConnectionTable::new());
        let clock = Rc::clone(&connection_table);
        supervisor.spawn("clock", async move { clock.run().await });
        Self {
            handler,
            timeouts: settings.timeouts,
            http1: settings.http1.builder(),
            http2: http2::Shared::new(),
            settings,
            connection_table,
            scratch: Scratch::new(),
            supervisor,
            telemetry,
            worker,
            stats: RefCell::default(),
            handshakes: handshake::Pending::default(),
        }
    }

    /// Adds one to a counter of this worker.
    pub fn count(&self, counter: Counter) {
        self.telemetry.counters.increment(self.worker, counter);
    }

    /// Counts and records a request that is refused by its head; returns the status of the reply.
    fn refuse(
        &self,
        connection: &Connection,
        request: &Request<DownstreamBody>,
        refusal: Refusal,
    ) -> StatusCode {
        self.count(refusal.counter());
        let status = refusal.status().unwrap_or(StatusCode::BAD_REQUEST);
        let unserved = refusal.unserved(Some(request), status);
        self.handler.refused(connection, &unserved);
        status
    }

    /// Starts this worker's tasks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Asks the connections of a listener that is being closed to go elsewhere: HTTP/1 by `connection: close` on their
    /// next response, HTTP/2 by GOAWAY.
    pub fn drain_listener(&self, listener: &ListenerKey) {
        self.stats.borrow_mut().remove(listener);
        self.connection_table.drain(listener);
    }

    /// The listener was opened, possibly again.
    pub fn open_listener(&self, listener: &ListenerKey) {
        self.connection_table.reopen(listener);
    }

    /// Takes in a connection that was just accepted.
    pub fn enter(
        this: &Rc<Self>,
        transport: Transport,
        slot: AdmissionPermit,
        downstream: Downstream,
    ) -> AcceptedConnection<A> {
        let framing = Framing::new(this.settings.http1.limits());
        AcceptedConnection {
            stream: Box::new(Stream::new(transport, slot, framing)),
            member: this.connection_table.join(downstream.listener.clone()),
            server: Rc::clone(this),
            downstream,
            tls: None,
        }
    }

    fn counted(&self, listener: &ListenerKey, protocol: ConnectionProtocol) -> Counted {
        let mut by_listener = self.stats.borrow_mut();
        let stats = match by_listener.get(listener) {
            Some(stats) => Arc::clone(stats),
            None => {
                let name = listener.address.to_string();
                let stats = self.telemetry.stats.listener_stats(&name);
                by_listener.insert(listener.clone(), Arc::clone(&stats));
                stats
            }
        };
        Counted::new(stats, self.worker, protocol)
    }
}

/// A connection of which the protocol is not known yet.
#[derive(Debug)]
pub struct AcceptedConnection<A> {
    server: Rc<Server<A>>,
    /// Boxed, since it is passed on by value and each step would keep room for it.
    stream: Box<Stream>,
    member: ConnectionHandle,
    downstream: Downstream,
    /// Of a connection whose TLS ends here.
    tls: Option<Box<Handshake>>,
}

impl<A: Handler> AcceptedConnection<A> {
    /// What its listener does with connections now, and whether they begin with a PROXY header; see
    /// [`Handler::listener`].
    pub fn service(&self) -> Option<(Service, ProxyHeader)> {
        let Downstream {
            listener, local, ..
        } = &self.downstream;
        let listener = self.server.handler.listener(listener, *local)?;
        Some((listener.service.clone(), listener.proxy_protocol))
    }

    /// Removes bytes from the front of the received bytes, with what they said of the addresses of both ends.
    pub fn forwarded(&mut self, bytes: usize, addresses: Option<(SocketAddr, SocketAddr)>) {
        self.stream.consume(bytes);
        if let Some((remote, local)) = addresses {
            self.downstream.remote = remote;
            self.downstream.local = local;
        }
    }

    /// Adds one to a counter of this worker.
    pub fn count(&self, counter: Counter) {
        self.server.count(counter);
    }

    /// The worker's coarse time.
    pub fn now(&self) -> Tick {
        self.member.now()
    }

    /// Waits for bytes, or for more of them, up to a point in time; `false` when none came, or the peer closed.
    pub async fn readable_until(&mut self, due: Tick) -> bool {
        park::readable_until(&mut self.stream, &self.member, due).await
    }

    /// Waits for bytes, or for more of them; `false` when none came in time, or the peer closed.
    pub async fn readable(&mut self) -> bool {
        let mut patience = self.server.timeouts.patience();
        if !self.first_bytes().is_empty() {
            patience.idle = self.server.settings.http1.head_timeout;
        }
        park::readable(&mut self.stream, &self.member, patience).await
    }

    /// The bytes received so far. They stay there for the codec.
    pub fn first_bytes(&self) -> &[u8] {
        self.stream.ahead()
    }

    /// Serves HTTP/1 to the connection's end.
    pub async fn http1(mut self) {
        let connection = self.known(DownstreamProtocol::Http1, ConnectionProtocol::Http1);
        self.stream.pass_interim(&connection.interim);
        http1::serve(&self.server, self.stream, &connection, &self.member).await;
    }

    /// Serves HTTP/2 to the connection's end.
    pub async fn http2(mut self) {
        let connection = self.known(DownstreamProtocol::Http2, ConnectionProtocol::Http2);
        // Boxed, so that connections that wait for their first bytes do not keep room for it.
        Box::pin(http2::serve(
            &self.server,
            self.stream,
            &connection,
            &self.member,
        ))
        .await;
    }

    /// Carries the connection as it is to where one of the routes leads; without routes, closes it and tells so.
    pub async fn opaque(
        mut self,
        routes: Option<Arc<OpaqueRoutes>>,
        server_name: Option<Box<str>>,
    ) {
        let listener = &self.downstream.listener;
        let _counted = self.server.counted(listener, ConnectionProtocol::Tcp);
        let asked = DownstreamTcp {
            remote: self.downstream.remote,
            local: self.downstream.local,
            server_name: server_name.map(Arc::from),
            routes,
        };
        // Boxed, so that the memory that connecting takes goes when that is done.
        let opened = Box::pin(self.server.handler.open(asked)).await;
        self.tls = None;
        let Some(opened) = opened else { return };
        let (transport, ahead, _slot) = self.stream.into_parts();
        let limits = (&self.server.settings.opaque, &self.server.timeouts);
        let client = (transport, ahead);
        opaque::carry(client, opened, &self.member, &self.server.scratch, limits).await;
    }

    /// Closes the connection, which is none that its listener serves, and counts why.
    pub fn refuse(self, reason: Counter) {
        let listener = &self.downstream.listener;
        drop(self.server.counted(listener, ConnectionProtocol::Unknown));
        self.server.count(reason);
    }

    fn known(
        &mut self,
        protocol: DownstreamProtocol,
        counted_as: ConnectionProtocol,
    ) -> Rc<Connection> {
        let listener = &self.downstream.listener;
        let counted = self.server.counted(listener, counted_as);
        self.stream.count(counted);
        let tls = self.tls.take();
        self.downstream.clone().connection(protocol, tls)
    }
}
