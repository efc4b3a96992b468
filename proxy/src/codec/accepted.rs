//! A connection from its accept until its protocol is known.

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
use crate::telemetry::{CloseReason, ConnectionProtocol, Counter};

/// Listener and addresses of a downstream connection: those of the sockets, or those of a PROXY header.
#[derive(Clone, Debug)]
pub struct Downstream {
    /// Listener that accepted the connection, or that of the captured connection's destination.
    pub listener: Arc<ListenerKey>,
    /// Address of the client.
    pub remote: SocketAddr,
    /// Address that the client dialed; without a redirection or a PROXY header the proxy's own.
    pub local: SocketAddr,
}

impl<A: Handler> Server<A> {
    /// Registers a connection that was just accepted.
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

/// State of a connection that is parked, or that no codec serves yet.
///
/// Boxed everywhere: it is passed by value, and each async step would reserve space for it.
#[derive(Debug)]
pub struct AcceptedConnection<A> {
    pub(super) server: Rc<Server<A>>,
    pub(super) socket: Socket,
    pub(super) member: ConnectionHandle,
    pub(super) downstream: Downstream,
    /// Result of the TLS handshake, if the proxy terminates TLS.
    pub(super) tls: Option<Rc<Handshake>>,
}

impl<A: Handler> AcceptedConnection<A> {
    /// Returns the service of the listener as configured now, and whether connections begin with a PROXY header; see
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

    /// Removes a PROXY header from the front of the received bytes, and takes over the addresses that it carries.
    pub fn take_proxy_header(&mut self, bytes: usize, addresses: Option<(SocketAddr, SocketAddr)>) {
        self.socket.consume(bytes);
        if let Some((remote, local)) = addresses {
            self.downstream.remote = remote;
            self.downstream.local = local;
        }
    }

    /// Returns the address that the client dialed, if the connection was redirected to this socket or a PROXY header
    /// says so.
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

    /// Assigns a captured connection to the listener for the address that its client dialed, and returns that
    /// listener's service; `None` without such a listener.
    pub fn assign_captured(&mut self, intake: Intake, dialed: SocketAddr) -> Option<Service> {
        let key = ListenerKey::for_captured(intake, dialed);
        let listener = self.server.handler.listener(&key, dialed)?;
        self.downstream.listener = Arc::clone(&listener.key);
        self.downstream.local = dialed;
        if listener.direction == Direction::Inbound {
            self.member.govern(&listener.key, dialed);
        }
        Some(listener.service.clone())
    }

    /// Returns the address that the client dialed.
    pub fn local(&self) -> SocketAddr {
        self.downstream.local
    }

    /// Deadline for the first bytes of a client on a port whose protocol is not declared.
    pub fn detection_due(&self) -> Tick {
        self.member
            .now()
            .after(self.server.settings().timeouts.detection)
    }

    /// Adds one to a counter of this worker.
    pub fn count(&self, counter: Counter) {
        self.server.count(counter);
    }

    /// Counts, by source address, a plain-text connection to a port that accepts mutual TLS of the mesh.
    pub fn count_plaintext(&self) {
        let plaintext = &self.server.telemetry.plaintext;
        plaintext.count(self.downstream.remote.ip());
    }

    /// Coarse time of the worker.
    pub fn now(&self) -> Tick {
        self.member.now()
    }

    /// Waits for further bytes until `due`; `false` if none arrive, or the peer closes.
    pub fn readable_until(&mut self, due: Tick) -> impl Future<Output = bool> + '_ {
        park::readable_until(&mut self.socket, &self.member, due)
    }

    /// Waits for further bytes within the usual timeouts; `false` if none arrive, or the peer closes.
    pub fn readable(&mut self) -> impl Future<Output = bool> + '_ {
        let has_begun = !self.socket.ahead().is_empty();
        let server = &self.server;
        park::readable(&mut self.socket, &self.member, move |is_draining| {
            let settings = server.settings();
            match is_draining {
                true => settings.timeouts.drain_idle,
                false if has_begun => settings.http1.head_timeout,
                false => settings.timeouts.idle,
            }
        })
    }

    /// Returns the bytes received so far, and leaves them for the codec.
    pub fn first_bytes(&self) -> &[u8] {
        self.socket.ahead()
    }

    /// Closes a connection that its listener does not serve, and counts the reason. The listener counts the connection
    /// once, also if its endpoint is connected already.
    pub fn refuse(mut self: Box<Self>, reason: Counter) {
        if !self.socket.is_counted() {
            self.count_as(ConnectionProtocol::Unknown);
        }
        self.socket.ends(CloseReason::Refused);
        self.server.count(reason);
    }

    /// Counts the connection as one of this protocol until its socket closes.
    pub(super) fn count_as(&mut self, protocol: ConnectionProtocol) {
        let counted = self.server.counted(&self.downstream.listener, protocol);
        self.socket.count(counted);
    }

    /// Returns the data of the connection that its requests read.
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

    /// Splits the connection into its parts, for a codec that does not park it.
    pub(super) fn into_parts(self: Box<Self>) -> (Rc<Server<A>>, Socket, ConnectionHandle) {
        (self.server, self.socket, self.member)
    }
}
