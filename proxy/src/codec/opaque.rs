//! Proxies raw TCP in both directions: with half-close, back pressure, an idle timeout and a bounded end.
//!
//! A waiting connection holds no buffer. Bytes are read into memory that all connections of a worker share and written
//! to the other side at once; only bytes that the other side does not accept are kept, and reading from this side
//! pauses until they are written.

mod first;
mod guard;

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::accepted::{AcceptedConnection, Downstream};
use super::connection_table::ConnectionHandle;
use super::handler::Handler;
use super::server::scratch::Scratch;
use super::settings::Settings as ConnectionSettings;
use super::transport::Transport;
use crate::exchange::tcp::{DownstreamTcp, Opened, Record, Side, broken};
use crate::runtime::clock::Tick;
use crate::snapshot::OpaqueRoutes;
use crate::telemetry::{CloseReason, ConnectionProtocol, ResponseFlags};
use crate::upstream::counts::Counted;
use crate::upstream::stream::Stream as Upstream;
use traffic::registry::ConnectionPermit;

pub use self::first::FirstSpeaker;
pub use self::guard::DetectFn;
use self::guard::{FirstBytesGuard, PlainTextPassed};
pub use super::settings::opaque::Settings;

/// End of a connection.
enum Outcome {
    /// Both sides closed their direction.
    Complete,
    /// One side broke the connection.
    Broken(Side, io::Error),
    /// The proxy closed the connection.
    Closed(ResponseFlags, Cow<'static, str>),
}

impl Outcome {
    /// Returns the reason for which the connection closes.
    fn reason(&self) -> CloseReason {
        match self {
            Self::Complete => CloseReason::Complete,
            Self::Broken(Side::Downstream, _) => CloseReason::Client,
            Self::Broken(Side::Upstream, _) => CloseReason::Upstream,
            Self::Closed(ResponseFlags::DPE, _) => CloseReason::ProtocolError,
            Self::Closed(ResponseFlags::DT, _) => CloseReason::MaxDuration,
            Self::Closed(ResponseFlags::SI, _) => CloseReason::IdleTimeout,
            Self::Closed(_, details) if details == DRAINED => CloseReason::Drain,
            Self::Closed(..) => CloseReason::Policy,
        }
    }
}

/// Reason of a connection that did not end within the drain, for the access log.
const DRAINED: &str = "drain_timeout";

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// Bytes that were read, and that the other side has not accepted yet.
    pending: Bytes,
    /// Whether the source closed its direction.
    ended: bool,
    /// Whether the end was forwarded to the other side.
    finished: bool,
}

/// Source and destination of a direction.
struct Ends<'a, From, To> {
    from: &'a mut From,
    to: &'a mut To,
}

/// Failure of a direction: of its source, or of its destination.
enum Failure {
    Read(io::Error),
    Write(io::Error),
}

impl Direction {
    /// Writes the pending bytes; ready when the other side has accepted all of them.
    fn poll_pending(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut (impl AsyncWrite + Unpin),
        moved: &mut u64,
    ) -> Poll<Result<(), Failure>> {
        while !self.pending.is_empty() {
            let taken = ready!(Pin::new(&mut *to).poll_write(cx, &self.pending));
            let taken = taken.and_then(nonzero).map_err(Failure::Write)?;
            *moved += taken as u64;
            self.pending.advance(taken);
        }
        // An empty slice would keep its whole buffer alive.
        self.pending = Bytes::new();
        Poll::Ready(Ok(()))
    }

    /// Moves bytes until there are none or the other side accepts none; ready when the direction is finished.
    ///
    /// Adds the bytes that the other side accepted to `moved`.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        ends: Ends<'_, impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
        space: &mut [u8],
        moved: &mut u64,
    ) -> Poll<Result<(), Failure>> {
        let Ends { from, to } = ends;
        loop {
            ready!(self.poll_pending(cx, to, moved))?;
            if self.finished {
                return Poll::Ready(Ok(()));
            }
            if self.ended {
                ready!(Pin::new(&mut *to).poll_shutdown(cx)).map_err(Failure::Write)?;
                self.finished = true;
                continue;
            }
            let mut read = ReadBuf::new(space);
            let Poll::Ready(result) = Pin::new(&mut *from).poll_read(cx, &mut read) else {
                // Flush output that TLS holds back before waiting.
                ready!(Pin::new(&mut *to).poll_flush(cx)).map_err(Failure::Write)?;
                return Poll::Pending;
            };
            result.map_err(Failure::Read)?;
            let mut rest = read.filled();
            self.ended = rest.is_empty();
            while !rest.is_empty() {
                match Pin::new(&mut *to).poll_write(cx, rest) {
                    Poll::Ready(taken) => {
                        let taken = taken.and_then(nonzero).map_err(Failure::Write)?;
                        *moved += taken as u64;
                        rest = &rest[taken..];
                    }
                    Poll::Pending => {
                        self.pending = Bytes::copy_from_slice(rest);
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

fn nonzero(taken: usize) -> io::Result<usize> {
    match taken {
        0 => Err(io::ErrorKind::WriteZero.into()),
        taken => Ok(taken),
    }
}

/// A connected endpoint, with the state of proxying a client to it. Boxed everywhere: it is passed by value, and each
/// async step would reserve space for it.
pub struct ProxiedEndpoint {
    upstream: Upstream,
    up: Direction,
    down: Direction,
    /// Error with which the endpoint broke the connection before the first byte was proxied. The kernel reports it
    /// once, then only the end.
    broken: Option<io::Error>,
    record: Record,
    /// Time at which a byte last moved.
    moved: Tick,
    limits: Limits,
    /// Counts the connection to the endpoint until it closes; dropped after its socket.
    _counted: (Counted, ConnectionPermit),
}

/// A client's connection and its endpoint's.
struct Pair {
    downstream: Transport,
    met: Box<ProxiedEndpoint>,
    /// Holds back the client's first bytes. Boxed, since it is soon dropped and the connection may last long.
    guard: Option<Box<FirstBytesGuard>>,
    /// Bytes that the guard passed, until they are recorded.
    passed: Option<PlainTextPassed>,
}

/// Timeouts of a connection.
struct Limits {
    idle: Duration,
    drain: Duration,
    policy_drain: Duration,
    end: Tick,
}

impl<A: Handler> AcceptedConnection<A> {
    /// Proxies the connection as raw TCP by the first matching route; without routes, closes and records it.
    pub async fn opaque(
        self: Box<Self>,
        routes: Option<Arc<OpaqueRoutes>>,
        server_name: Option<Box<str>>,
    ) {
        self.drawn_opaque(routes, server_name, None).await;
    }

    /// Draws the destination of the connection before its handshake; `None` if it has none.
    pub fn draw(&self, routes: &Arc<OpaqueRoutes>, server_name: Option<&str>) -> Option<u64> {
        self.server.handler.draw(&DownstreamTcp {
            server_name: server_name.map(Arc::from),
            ..self.asked(Some(Arc::clone(routes)))
        })
    }

    /// Proxies the connection as [`opaque`](Self::opaque) does, to the destination that was drawn.
    pub async fn drawn_opaque(
        mut self: Box<Self>,
        routes: Option<Arc<OpaqueRoutes>>,
        server_name: Option<Box<str>>,
        draw: Option<u64>,
    ) {
        let asked = DownstreamTcp {
            server_name: server_name.map(Arc::from),
            tls: self.tls.take(),
            draw,
            ..self.asked(routes)
        };
        // Boxed, so that memory needed only to connect is freed afterwards.
        match Box::pin(self.open(asked)).await {
            Some(met) => self.pass(met, None).await,
            None => self.socket.ends(CloseReason::Refused),
        }
    }

    fn asked(&self, routes: Option<Arc<OpaqueRoutes>>) -> DownstreamTcp {
        let Downstream {
            listener,
            remote,
            local,
        } = &self.downstream;
        DownstreamTcp {
            listener: Arc::clone(listener),
            remote: *remote,
            local: *local,
            dialed: (!listener.has_socket()).then_some(*local),
            server_name: None,
            tls: None,
            is_undecided: false,
            routes,
            connect: None,
            draw: None,
        }
    }

    /// Connects to the endpoint.
    async fn open(&mut self, asked: DownstreamTcp) -> Option<Box<ProxiedEndpoint>> {
        self.count_as(ConnectionProtocol::Tcp);
        let opened = self.server.handler.open(asked).await?;
        let settings = self.server.settings();
        let met = ProxiedEndpoint::new(opened, self.member.now(), &settings);
        Some(Box::new(met))
    }

    /// Proxies bytes in both directions until the connection ends.
    async fn pass(self: Box<Self>, met: Box<ProxiedEndpoint>, guard: Option<Box<FirstBytesGuard>>) {
        let client = self.downstream.remote.ip().to_canonical();
        let (server, socket, member) = self.into_parts();
        let (transport, ahead, mut counts) = socket.into_parts();
        let mut met = met;
        let mut denial = met.record.denial.take();
        let mut pair = Pair::new(transport, ahead, met, guard);
        let outcome = poll_fn(|cx| {
            let polled = pair.poll(cx, &member, &server.scratch);
            if let Some(passed) = pair.passed.take() {
                (server.known_clients).saw_plain_text(client, member.now());
                if passed.is_first {
                    server.telemetry.plaintext.count(client);
                }
            }
            if polled.is_pending()
                && let Some(denial) = &mut denial
            {
                let reason = ready!(denial.as_mut().poll(cx));
                return Poll::Ready(Outcome::Closed(ResponseFlags::NONE, reason.into()));
            }
            polled
        })
        .await;
        if matches!(outcome, Outcome::Closed(ResponseFlags::DPE, _)) {
            (server.known_clients).saw_mesh_tls(client, member.now());
        }
        counts.ends(outcome.reason());
        pair.end(outcome);
    }
}

/// Joins a preface and the bytes read ahead into the first bytes for the endpoint. A preface has a few dozen bytes and
/// is not counted.
fn joined(preface: Bytes, ahead: Bytes) -> Bytes {
    match (preface.is_empty(), ahead.is_empty()) {
        (true, _) => ahead,
        (false, true) => preface,
        (false, false) => [preface, ahead].concat().into(),
    }
}

impl ProxiedEndpoint {
    fn new(opened: Opened, now: Tick, settings: &ConnectionSettings) -> Self {
        let Opened {
            upstream,
            preface,
            idle_timeout,
            ends_at,
            permit,
            record,
        } = opened;
        Self {
            upstream: upstream.stream,
            up: Direction {
                pending: preface,
                ..Direction::default()
            },
            down: Direction::default(),
            broken: None,
            record,
            moved: now,
            limits: Limits {
                idle: idle_timeout.unwrap_or(settings.opaque.idle_timeout),
                drain: settings.timeouts.drain,
                policy_drain: settings.timeouts.policy_drain,
                end: ends_at.map_or(Tick::NEVER, |end| {
                    now.after(end.saturating_duration_since(Instant::now()))
                }),
            },
            _counted: (upstream.counted, permit),
        }
    }

    /// Returns the next deadline of the connection.
    ///
    /// # Errors
    ///
    /// The end of the connection, if a deadline has passed.
    fn due(&self, member: &ConnectionHandle) -> Result<Tick, Outcome> {
        let (now, limits) = (member.now(), &self.limits);
        let idle = self.moved.after(limits.idle);
        let drain = member.draining().map_or(Tick::NEVER, |since| {
            since.after(member.drain_time(limits.drain, limits.policy_drain))
        });
        if now >= drain {
            return Err(Outcome::Closed(ResponseFlags::NONE, DRAINED.into()));
        }
        if now >= limits.end {
            let details = "max_duration_timeout";
            return Err(Outcome::Closed(ResponseFlags::DT, details.into()));
        }
        if now >= idle {
            let details = "tcp_session_idle_timeout";
            return Err(Outcome::Closed(ResponseFlags::SI, details.into()));
        }
        Ok(idle.min(limits.end).min(drain))
    }
}

impl Pair {
    fn new(
        downstream: Transport,
        ahead: Bytes,
        met: Box<ProxiedEndpoint>,
        guard: Option<Box<FirstBytesGuard>>,
    ) -> Self {
        let (mut met, mut guard) = (met, guard);
        match &mut guard {
            Some(guard) => guard.hold(&ahead),
            None => met.up.pending = joined(std::mem::take(&mut met.up.pending), ahead),
        }
        Self {
            downstream,
            met,
            guard,
            passed: None,
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        member: &ConnectionHandle,
        scratch: &Scratch,
    ) -> Poll<Outcome> {
        let (mut received, mut sent) = (0, 0);
        let polled = self.poll_both(cx, scratch, &mut received, &mut sent);
        if received + sent > 0 {
            self.met.record.carried(received, sent);
            self.met.moved = member.now();
        }
        if let Poll::Ready(outcome) = polled {
            return Poll::Ready(outcome);
        }
        match self.met.due(member) {
            Ok(due) => member.wake_at(cx, due),
            Err(outcome) => return Poll::Ready(outcome),
        }
        Poll::Pending
    }

    fn poll_both(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &Scratch,
        received: &mut u64,
        sent: &mut u64,
    ) -> Poll<Outcome> {
        if let Some(error) = self.met.broken.take() {
            return broke(Side::Upstream, error);
        }
        let ProxiedEndpoint {
            upstream, up, down, ..
        } = &mut *self.met;
        let mut space = scratch.space();
        if let Some(guard) = &mut self.guard {
            match guard.poll(cx, &mut self.downstream) {
                Poll::Pending => {}
                Poll::Ready(Ok(Some(first))) => {
                    self.passed = guard.passed(&first);
                    up.pending = joined(std::mem::take(&mut up.pending), first);
                    self.guard = None;
                }
                Poll::Ready(Ok(None)) => {
                    let details = "mesh_tls_after_first_bytes";
                    return Poll::Ready(Outcome::Closed(ResponseFlags::DPE, details.into()));
                }
                Poll::Ready(Err(error)) => return broke(Side::Downstream, error),
            }
        }
        let up = match self.guard {
            // the preface does not wait for the client
            Some(_) => match up.poll_pending(cx, upstream, received) {
                Poll::Ready(Err(Failure::Read(error) | Failure::Write(error))) => {
                    return broke(Side::Upstream, error);
                }
                _ => false,
            },
            None => {
                let ends = Ends {
                    from: &mut self.downstream,
                    to: upstream,
                };
                match up.poll(cx, ends, &mut space, received) {
                    Poll::Ready(Err(Failure::Read(error))) => {
                        return broke(Side::Downstream, error);
                    }
                    Poll::Ready(Err(Failure::Write(error))) => return broke(Side::Upstream, error),
                    polled => polled.is_ready(),
                }
            }
        };
        let ends = Ends {
            from: upstream,
            to: &mut self.downstream,
        };
        let down = match down.poll(cx, ends, &mut space, sent) {
            Poll::Ready(Err(Failure::Read(error))) => return broke(Side::Upstream, error),
            Poll::Ready(Err(Failure::Write(error))) => return broke(Side::Downstream, error),
            polled => polled.is_ready(),
        };
        if up && down {
            return Poll::Ready(Outcome::Complete);
        }
        Poll::Pending
    }

    /// Records the end. A connection that broke is reset on both sides: an orderly end would tell the peer that it
    /// received everything. A reset discards bytes that the kernel has not delivered yet, so an endpoint that ends its
    /// TLS without `close_notify`, as many servers do, only ends the connection, and its bytes arrive.
    fn end(self, outcome: Outcome) {
        match outcome {
            Outcome::Complete => self.met.record.finish(ResponseFlags::NONE, None),
            Outcome::Broken(side, error) => {
                let has_left = error.kind() == io::ErrorKind::UnexpectedEof;
                if !(has_left && matches!(side, Side::Upstream)) {
                    reset(&self.downstream, &self.met.upstream);
                }
                self.met.record.finish(broken(side, &error), None);
            }
            Outcome::Closed(flags, details) => {
                reset(&self.downstream, &self.met.upstream);
                self.met.record.finish(flags, Some(details));
            }
        }
    }
}

fn broke(side: Side, error: io::Error) -> Poll<Outcome> {
    Poll::Ready(Outcome::Broken(side, error))
}

/// Makes closing the sockets send a reset. Unix sockets, TLS and tunnels have none; their peers see the end.
fn reset(downstream: &Transport, upstream: &Upstream) {
    downstream.reset_on_close();
    if let Upstream::Tcp(socket) = upstream {
        // fails only if the socket is gone already
        let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    }
}

#[cfg(test)]
mod tests;
