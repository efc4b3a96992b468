//! Connections whose endpoint is connected before the client's protocol is known: the side that speaks first decides.
//!
//! A client of a server-first protocol waits for the server, and a client with mutual TLS of the mesh speaks at once,
//! but its message may be lost on the way. So the endpoint's first bytes are held back for a short time, unless the
//! client is known to use plain text. After they were sent in plain text, TLS of the mesh from the client ends the
//! connection: it never reaches the endpoint.

use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, sleep_until};

use super::guard::{DetectFn, FirstBytesGuard};
use super::{Failure, ProxiedEndpoint};
use crate::codec::accepted::AcceptedConnection;
use crate::codec::handler::Handler;
use crate::exchange::tcp::DownstreamTcp;
use crate::snapshot::OpaqueRoutes;
use crate::telemetry::CloseReason;

/// Maximum bytes of the endpoint that are held back; the rest stays in the kernel.
const HELD_BYTES_MAX: usize = 4096;

/// Side of a connection that spoke first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstSpeaker<T> {
    /// The client, with its protocol.
    Client(T),
    /// The endpoint; the client's protocol is unknown.
    Endpoint,
    /// Neither: the client closed, or the connection must end. It is proxied as it is.
    None,
}

impl<A: Handler> AcceptedConnection<A> {
    /// Connects to the endpoint by the first matching route; `None` if that fails, which is recorded.
    pub async fn connect_endpoint(
        &mut self,
        routes: Arc<OpaqueRoutes>,
    ) -> Option<Box<ProxiedEndpoint>> {
        let asked = DownstreamTcp {
            is_undecided: true,
            ..self.asked(Some(routes))
        };
        let opened = Box::pin(self.open(asked)).await;
        if opened.is_none() {
            self.socket.ends(CloseReason::Refused);
        }
        opened
    }

    /// Waits until the client or the endpoint speaks. Bytes of the client stay unread.
    pub async fn first_speaker<T>(
        &mut self,
        met: &mut ProxiedEndpoint,
        tell: DetectFn<T>,
    ) -> FirstSpeaker<T> {
        let client = self.client();
        let (socket, member, clients) =
            (&mut self.socket, &self.member, &self.server.known_clients);
        let began = Instant::now();
        let until = || began + clients.held(client, member.now());
        let mut hold = pin!(sleep_until(until()));
        poll_fn(|cx| {
            loop {
                if let Some(told) = tell(socket.ahead()) {
                    return Poll::Ready(FirstSpeaker::Client(told));
                }
                match socket.poll_ahead(cx) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(FirstSpeaker::None),
                    Poll::Pending => break,
                }
            }
            let has_spoken = met.poll_spoken(cx).is_ready();
            if met.broken.is_some() {
                return Poll::Ready(FirstSpeaker::None);
            }
            if has_spoken {
                // another connection of the client may have shown its protocol
                let until = until();
                if until <= Instant::now() {
                    clients.saw_plain_text(client, member.now());
                    return Poll::Ready(FirstSpeaker::Endpoint);
                }
                hold.as_mut().reset(until);
                if hold.as_mut().poll(cx).is_ready() {
                    cx.waker().wake_by_ref();
                }
            }
            match met.due(member) {
                Ok(due) => member.wake_at(cx, due),
                Err(_) => return Poll::Ready(FirstSpeaker::None),
            }
            Poll::Pending
        })
        .await
    }

    /// Remembers that the client uses mutual TLS of the mesh.
    pub fn saw_mesh_tls(&self) {
        let clients = &self.server.known_clients;
        clients.saw_mesh_tls(self.client(), self.member.now());
    }

    /// Remembers that the client sent plain text.
    pub fn saw_plain_text(&self) {
        let clients = &self.server.known_clients;
        clients.saw_plain_text(self.client(), self.member.now());
    }

    fn client(&self) -> IpAddr {
        self.downstream.remote.ip().to_canonical()
    }

    /// Proxies the connection to the endpoint connected before. With a guard, only first bytes of the client that it
    /// passes reach the endpoint; others end the connection.
    pub async fn carry(
        mut self: Box<Self>,
        mut met: Box<ProxiedEndpoint>,
        server_name: Option<Box<str>>,
        guard: Option<DetectFn<bool>>,
    ) {
        let server_name = server_name.map(Arc::from);
        if let Err(refusal) = met.record.decided(self.tls.take(), server_name).await {
            self.socket.ends(CloseReason::Policy);
            return met.record.refuse(&refusal);
        }
        let guard = guard.map(|passes| Box::new(FirstBytesGuard::new(passes)));
        self.pass(met, guard).await;
    }
}

impl ProxiedEndpoint {
    /// Ready once the endpoint has spoken, closed or broken the connection. Meanwhile writes the preface to the
    /// endpoint.
    fn poll_spoken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.broken.is_some() {
            return Poll::Ready(());
        }
        let written = self.up.poll_pending(cx, &mut self.upstream, &mut 0);
        if let Poll::Ready(Err(Failure::Read(error) | Failure::Write(error))) = written {
            self.broken = Some(error);
            return Poll::Ready(());
        }
        if !self.down.pending.is_empty() || self.down.ended {
            return Poll::Ready(());
        }
        let mut space = [0; HELD_BYTES_MAX];
        let mut space = ReadBuf::new(&mut space);
        match ready!(Pin::new(&mut self.upstream).poll_read(cx, &mut space)) {
            Ok(()) => {
                self.down.pending = Bytes::copy_from_slice(space.filled());
                self.down.ended = space.filled().is_empty();
            }
            Err(error) => self.broken = Some(error),
        }
        Poll::Ready(())
    }
}
