//! A connection from its accept to the moment that its protocol is known.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::connection_table::ConnectionHandle;
use super::framing::Framing;
use super::handler::Handler;
use super::io::Stream;
use super::server::Server;
use super::transport::Transport;
use super::{http1, http2, opaque, park};
use crate::exchange::Connection;
use crate::exchange::downstream::connection::{DownstreamProtocol, Handshake};
use crate::exchange::tcp::DownstreamTcp;
use crate::runtime::admission::AdmissionPermit;
use crate::runtime::clock::Tick;
use crate::runtime::interception::original_destination;
use crate::snapshot::{Direction, Intake, ListenerKey, OpaqueRoutes, ProxyHeader, Service};
use crate::telemetry::{ConnectionProtocol, Counter};

/// Where a connection comes from, as far as the sockets know.
#[derive(Clone, Debug)]
pub struct Downstream {
    /// The listener that accepted it.
    pub listener: ListenerKey,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// Our address, or that which the client dialed.
    pub local: SocketAddr,
}

impl Downstream {
    fn connection(
        self,
        protocol: DownstreamProtocol,
        tls: Option<Box<Handshake>>,
    ) -> Rc<Connection> {
        let mut connection = Connection::new(self.listener, self.remote, self.local, protocol);
        connection.tls = tls;
        Rc::new(connection)
    }
}

impl<A: Handler> Server<A> {
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
            downstream: Box::new(downstream),
            tls: None,
        }
    }
}

/// A connection of which the protocol is not known yet.
#[derive(Debug)]
pub struct AcceptedConnection<A> {
    pub(super) server: Rc<Server<A>>,
    /// Boxed, since it is passed on by value and each step would keep room for it.
    pub(super) stream: Box<Stream>,
    pub(super) member: ConnectionHandle,
    /// Boxed for the same reason.
    pub(super) downstream: Box<Downstream>,
    /// The result of the TLS handshake, if TLS ends here.
    pub(super) tls: Option<Box<Handshake>>,
}

impl<A: Handler> AcceptedConnection<A> {
    /// What its listener does with connections now, and whether they begin with a PROXY header; see
    /// [`Handler::listener`]. Counts the connection as outbound if that is its listener's direction.
    pub fn service(&mut self) -> Option<(Service, ProxyHeader)> {
        let Downstream {
            listener, local, ..
        } = &*self.downstream;
        let listener = self.server.handler.listener(listener, *local)?;
        if listener.direction == Direction::Outbound {
            self.stream.count_outbound();
        }
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

    /// The address that the client dialed, if the connection was redirected to this socket; a PROXY header can say so, too.
    pub fn original_destination(&self) -> Option<SocketAddr> {
        let port = self.downstream.listener.address.port();
        if self.downstream.local.port() != port {
            return Some(self.downstream.local);
        }
        match self.stream.transport() {
            Transport::Tcp(tcp) => original_destination(tcp, port),
            Transport::Tls(_) | Transport::Unix(_) => None,
        }
    }

    /// Passes a captured connection on to the listener for the address that its client dialed, and returns what that does
    /// with it. `None` if there is none.
    pub fn captured(&mut self, intake: Intake, dialed: SocketAddr) -> Option<Service> {
        let key = ListenerKey::captured(intake, dialed);
        let listener = self.server.handler.listener(&key, dialed)?;
        self.downstream.listener = listener.key.clone();
        self.downstream.local = dialed;
        Some(listener.service.clone())
    }

    /// The address that the client dialed.
    pub fn local(&self) -> SocketAddr {
        self.downstream.local
    }

    /// When a client has to have spoken whose protocol is not declared.
    pub fn detection_due(&self) -> Tick {
        self.member.now().after(self.server.timeouts.detection)
    }

    /// Adds one to a counter of this worker.
    pub fn count(&self, counter: Counter) {
        self.server.count(counter);
    }

    /// Counts, by its source, a connection in plain text that the mesh's TLS could have carried.
    pub fn count_plaintext(&self) {
        let plaintext = &self.server.telemetry.plaintext;
        plaintext.count(self.downstream.remote.ip());
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

    /// Proxies the connection as raw TCP, by the first route that matches; without routes, closes and records it.
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
            dialed: (!listener.has_socket()).then_some(self.downstream.local),
            server_name: server_name.map(Arc::from),
            tls: self.tls.take(),
            routes,
            connect: None,
        };
        // Boxed, so that the memory that connecting takes goes when that is done.
        let opened = Box::pin(self.server.handler.open(asked)).await;
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
