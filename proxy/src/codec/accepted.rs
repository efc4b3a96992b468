//! A connection from its accept to the moment that its protocol is known.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::connection_table::ConnectionHandle;
use super::handler::Handler;
use super::park;
use super::server::Server;
use super::socket::Socket;
use super::transport::Transport;
use crate::exchange::Connection;
use crate::exchange::downstream::connection::{DownstreamProtocol, Handshake};
use crate::runtime::admission::AdmissionPermit;
use crate::runtime::clock::Tick;
use crate::runtime::interception::original_destination;
use crate::snapshot::{Direction, Intake, ListenerKey, ProxyHeader, Service};
use crate::telemetry::{ConnectionProtocol, Counter};

/// Where a connection comes from, as far as the sockets know.
#[derive(Clone, Debug)]
pub struct Downstream {
    /// The listener that accepted it.
    pub listener: Arc<ListenerKey>,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// Our address, or that which the client dialed.
    pub local: SocketAddr,
}

impl<A: Handler> Server<A> {
    /// Takes in a connection that was just accepted.
    pub fn enter(
        this: &Rc<Self>,
        transport: Transport,
        slot: AdmissionPermit,
        downstream: Downstream,
    ) -> Box<AcceptedConnection<A>> {
        Box::new(AcceptedConnection {
            socket: Socket::new(transport, slot),
            member: this.connection_table.join(Arc::clone(&downstream.listener)),
            server: Rc::clone(this),
            downstream,
            tls: None,
        })
    }
}

/// A connection that no codec has taken over, or that is parked: all that is kept of it.
///
/// Boxed everywhere, since it is passed on by value and each step would keep room for it.
#[derive(Debug)]
pub struct AcceptedConnection<A> {
    pub(super) server: Rc<Server<A>>,
    pub(super) socket: Socket,
    pub(super) member: ConnectionHandle,
    pub(super) downstream: Downstream,
    /// The result of the TLS handshake, if TLS ends here.
    pub(super) tls: Option<Rc<Handshake>>,
}

impl<A: Handler> AcceptedConnection<A> {
    /// What its listener does with connections now, and whether they begin with a PROXY header; see
    /// [`Handler::listener`]. Counts the connection as outbound if that is its listener's direction.
    pub fn service(&mut self) -> Option<(Service, ProxyHeader)> {
        let Downstream {
            listener, local, ..
        } = &self.downstream;
        let listener = self.server.handler.listener(listener, *local)?;
        if listener.direction == Direction::Outbound {
            self.socket.count_outbound();
        }
        let is_inbound = listener.direction == Direction::Inbound;
        if is_inbound && !matches!(listener.service, Service::Captured(_)) {
            self.member
                .govern(&self.downstream.listener, self.downstream.local);
        }
        Some((listener.service.clone(), listener.proxy_protocol))
    }

    /// Removes bytes from the front of the received bytes, with what they said of the addresses of both ends.
    pub fn forwarded(&mut self, bytes: usize, addresses: Option<(SocketAddr, SocketAddr)>) {
        self.socket.consume(bytes);
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
        match self.socket.transport() {
            Transport::Tcp(tcp) => original_destination(tcp, port),
            Transport::Tls(_) | Transport::Unix(_) => None,
            #[cfg(test)]
            Transport::InMemory(_) => None,
        }
    }

    /// Passes a captured connection on to the listener for the address that its client dialed, and returns what that does
    /// with it. `None` if there is none.
    pub fn captured(&mut self, intake: Intake, dialed: SocketAddr) -> Option<Service> {
        let key = ListenerKey::captured(intake, dialed);
        let listener = self.server.handler.listener(&key, dialed)?;
        self.downstream.listener = Arc::clone(&listener.key);
        self.downstream.local = dialed;
        if listener.direction == Direction::Inbound {
            self.member.govern(&listener.key, dialed);
        }
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
    pub fn readable_until(&mut self, due: Tick) -> impl Future<Output = bool> + '_ {
        park::readable_until(&mut self.socket, &self.member, due)
    }

    /// Waits for bytes, or for more of them; `false` when none came in time, or the peer closed.
    pub fn readable(&mut self) -> impl Future<Output = bool> + '_ {
        let mut patience = self.server.timeouts.patience();
        if !self.socket.ahead().is_empty() {
            patience.idle = &self.server.settings.http1.head_timeout;
        }
        park::readable(&mut self.socket, &self.member, patience)
    }

    /// The bytes received so far. They stay there for the codec.
    pub fn first_bytes(&self) -> &[u8] {
        self.socket.ahead()
    }

    /// Closes the connection, which is none that its listener serves, and counts why. The listener counts it once, also where
    /// its endpoint is connected already.
    pub fn refuse(mut self: Box<Self>, reason: Counter) {
        if !self.socket.is_counted() {
            self.count_as(ConnectionProtocol::Unknown);
        }
        self.server.count(reason);
    }

    /// Counts the connection as one of this protocol until its socket closes.
    pub(super) fn count_as(&mut self, protocol: ConnectionProtocol) {
        let counted = self.server.counted(&self.downstream.listener, protocol);
        self.socket.count(counted);
    }

    /// The connection as its requests see it.
    pub(super) fn connection(&self, protocol: DownstreamProtocol) -> Rc<Connection> {
        let Downstream {
            listener,
            remote,
            local,
        } = &self.downstream;
        let listener = ListenerKey::clone(listener);
        let mut connection = Connection::new(listener, *remote, *local, protocol);
        let handler = &self.server.handler;
        connection.server_header = handler.server_header(&connection.listener, *local);
        connection.tls = self.tls.clone();
        Rc::new(connection)
    }

    /// Takes the connection apart for a codec that does not park it.
    pub(super) fn into_parts(self: Box<Self>) -> (Rc<Server<A>>, Socket, ConnectionHandle) {
        (self.server, self.socket, self.member)
    }
}
