//! Connections whose endpoint is connected before it is known what the client speaks: the side that speaks first tells.
//!
//! A client of a server that speaks first says nothing before that has spoken, and a client of the mesh's TLS speaks at once,
//! but its message may be lost on the way. So the endpoint's first bytes are held back for a moment, unless the client is known
//! to speak plain text. Once they have been sent in plain text, TLS of the mesh that comes after all ends the connection: the
//! endpoint never gets it.

use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, sleep_until};

use super::guard::{Guard, Tell};
use super::{Failure, Met};
use crate::codec::accepted::AcceptedConnection;
use crate::codec::handler::Handler;
use crate::exchange::tcp::DownstreamTcp;
use crate::snapshot::OpaqueRoutes;

/// Most bytes of the endpoint that are held back; the rest stays in the kernel.
const HELD_BYTES_MAX: usize = 4096;

/// The side of a connection that spoke first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstSpeaker<T> {
    /// The client, and what it speaks.
    Client(T),
    /// The endpoint, and nothing of the client is known.
    Endpoint,
    /// None: the client has ended, or the connection may not go on. It is passed on as it is.
    None,
}

impl<A: Handler> AcceptedConnection<A> {
    /// Connects to the endpoint, by the first route that matches; `None` if that fails, which is recorded.
    pub async fn meet(&mut self, routes: Arc<OpaqueRoutes>) -> Option<Box<Met>> {
        let asked = DownstreamTcp {
            is_undecided: true,
            ..self.asked(Some(routes))
        };
        Box::pin(self.open(asked)).await
    }

    /// Waits for one of both sides to speak. What the client sends stays there for what follows.
    pub async fn first_speaker<T>(&mut self, met: &mut Met, tell: Tell<T>) -> FirstSpeaker<T> {
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
                // more may be known by now
                let until = until();
                if until <= Instant::now() {
                    clients.saw_silence(client, member.now());
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

    /// Notes that the client speaks the mesh's TLS.
    pub fn saw_mesh_tls(&self) {
        let clients = &self.server.known_clients;
        clients.saw_mesh_tls(self.client(), self.member.now());
    }

    /// Notes that the client has sent plain text.
    pub fn saw_plain_text(&self) {
        let clients = &self.server.known_clients;
        clients.saw_plain_text(self.client(), self.member.now());
    }

    fn client(&self) -> IpAddr {
        self.downstream.remote.ip().to_canonical()
    }

    /// Carries the connection over what was connected before. With a guard, only first bytes of the client that it lets pass
    /// reach the endpoint; others end the connection.
    pub async fn carry(
        mut self: Box<Self>,
        mut met: Box<Met>,
        server_name: Option<Box<str>>,
        guard: Option<Tell<bool>>,
    ) {
        let server_name = server_name.map(Arc::from);
        if let Err(refusal) = met.record.decided(self.tls.take(), server_name) {
            return met.record.refuse(&refusal);
        }
        let guard = guard.map(|passes| Box::new(Guard::new(passes)));
        self.pass(met, guard).await;
    }
}

impl Met {
    /// Ready once the endpoint has spoken, ended or broken the connection. Meanwhile the endpoint gets what is for it before the
    /// client's bytes.
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
