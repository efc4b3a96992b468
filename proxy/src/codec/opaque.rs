//! Bytes both ways, as they are: with half-close, back pressure, an idle timeout and a bounded end.
//!
//! A connection that waits holds no buffer. What is read goes into memory that all connections of a worker share and
//! from there to the other side at once; only what the other side does not take is kept, and nothing more is read from
//! this side until that is gone.

mod scratch;
mod settings;

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

use super::accepted::AcceptedConnection;
use super::connection_table::ConnectionHandle;
use super::handler::Handler;
use super::timeouts::Timeouts;
use super::transport::Transport;
use crate::exchange::tcp::{DownstreamTcp, Opened, Record, Side, broken};
use crate::registry::ConnectionPermit;
use crate::runtime::clock::Tick;
use crate::snapshot::OpaqueRoutes;
use crate::telemetry::{ConnectionProtocol, ResponseFlags};
use crate::upstream::counts::Counted;
use crate::upstream::stream::Stream as Upstream;

pub(super) use self::scratch::Scratch;
pub use self::settings::Settings;

/// How a connection came to its end.
enum Outcome {
    /// Both sides have ended their direction.
    Complete,
    /// A side broke it.
    Broken(Side, io::Error),
    /// We closed it.
    Closed(ResponseFlags, &'static str),
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// Read, and not yet taken by the other side.
    pending: Bytes,
    /// The side that is read from has ended.
    ended: bool,
    /// The end was also forwarded to the other side.
    finished: bool,
}

/// A failure of a direction: of the side that is read from, or of the one that is written to.
enum Failure {
    Read(io::Error),
    Write(io::Error),
}

impl Direction {
    /// Moves bytes until there are none or the other side takes none; ready when the direction is finished.
    ///
    /// `moved` is raised by what the other side has taken.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (from, to): (
            &mut (impl AsyncRead + Unpin),
            &mut (impl AsyncWrite + Unpin),
        ),
        space: &mut [u8],
        moved: &mut u64,
    ) -> Poll<Result<(), Failure>> {
        loop {
            while !self.pending.is_empty() {
                let taken = ready!(Pin::new(&mut *to).poll_write(cx, &self.pending));
                let taken = taken.and_then(nonzero).map_err(Failure::Write)?;
                *moved += taken as u64;
                self.pending.advance(taken);
            }
            // An empty slice would still keep the memory that it is a slice of.
            self.pending = Bytes::new();
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
                // What TLS holds back goes out before we wait.
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

/// A connection that is carried.
struct Pair {
    downstream: Transport,
    upstream: Upstream,
    up: Direction,
    down: Direction,
    record: Record,
    /// When a byte moved last.
    moved: Tick,
    limits: Limits,
    /// Count the connection to the endpoint until it is closed; dropped after the sockets.
    _counted: (Counted, ConnectionPermit),
}

/// What a connection may take of time.
struct Limits {
    idle: Duration,
    drain: Duration,
    end: Tick,
}

impl<A: Handler> AcceptedConnection<A> {
    /// Proxies the connection as raw TCP, by the first route that matches; without routes, closes and records it.
    pub async fn opaque(
        mut self: Box<Self>,
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
        let Some(opened) = Box::pin(self.server.handler.open(asked)).await else {
            return;
        };
        let (server, socket, member) = self.into_parts();
        let (transport, ahead, _slot) = socket.into_parts();
        let limits = (&server.settings.opaque, &server.timeouts);
        let mut pair = Pair::new((transport, ahead), opened, member.now(), limits);
        let outcome = poll_fn(|cx| pair.poll(cx, &member, &server.scratch)).await;
        pair.end(outcome);
    }
}

/// What goes to the endpoint first. Not counted apart: a preface is some dozen bytes.
fn joined(preface: Bytes, ahead: Bytes) -> Bytes {
    match (preface.is_empty(), ahead.is_empty()) {
        (true, _) => ahead,
        (false, true) => preface,
        (false, false) => [preface, ahead].concat().into(),
    }
}

impl Pair {
    fn new(
        (downstream, ahead): (Transport, Bytes),
        opened: Opened,
        now: Tick,
        (settings, timeouts): (&Settings, &Timeouts),
    ) -> Self {
        let Opened {
            upstream,
            preface,
            idle_timeout,
            ends_at,
            permit,
            record,
        } = opened;
        Self {
            downstream,
            upstream: upstream.stream,
            up: Direction {
                pending: joined(preface, ahead),
                ..Direction::default()
            },
            down: Direction::default(),
            record,
            moved: now,
            limits: Limits {
                idle: idle_timeout.unwrap_or(settings.idle_timeout),
                drain: timeouts.drain,
                end: ends_at.map_or(Tick::NEVER, |end| {
                    now.after(end.saturating_duration_since(Instant::now()))
                }),
            },
            _counted: (upstream.counted, permit),
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
            self.record.carried(received, sent);
            self.moved = member.now();
        }
        if let Poll::Ready(outcome) = polled {
            return Poll::Ready(outcome);
        }
        let (now, idle) = (member.now(), self.moved.after(self.limits.idle));
        let drain = member
            .draining()
            .map(|since| since.after(self.limits.drain));
        if drain.is_some_and(|drain| now >= drain) {
            return Poll::Ready(Outcome::Closed(ResponseFlags::NONE, "drain_timeout"));
        }
        if now >= self.limits.end {
            let details = "max_duration_timeout";
            return Poll::Ready(Outcome::Closed(ResponseFlags::DT, details));
        }
        if now >= idle {
            let details = "tcp_session_idle_timeout";
            return Poll::Ready(Outcome::Closed(ResponseFlags::SI, details));
        }
        let due = idle.min(self.limits.end);
        member.wake_at(cx, drain.map_or(due, |drain| drain.min(due)));
        Poll::Pending
    }

    fn poll_both(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &Scratch,
        received: &mut u64,
        sent: &mut u64,
    ) -> Poll<Outcome> {
        let mut space = scratch.space();
        let sides = (&mut self.downstream, &mut self.upstream);
        let up = match self.up.poll(cx, sides, &mut space, received) {
            Poll::Ready(Err(Failure::Read(error))) => return broke(Side::Downstream, error),
            Poll::Ready(Err(Failure::Write(error))) => return broke(Side::Upstream, error),
            polled => polled.is_ready(),
        };
        let sides = (&mut self.upstream, &mut self.downstream);
        let down = match self.down.poll(cx, sides, &mut space, sent) {
            Poll::Ready(Err(Failure::Read(error))) => return broke(Side::Upstream, error),
            Poll::Ready(Err(Failure::Write(error))) => return broke(Side::Downstream, error),
            polled => polled.is_ready(),
        };
        if up && down {
            return Poll::Ready(Outcome::Complete);
        }
        Poll::Pending
    }

    /// Tells how it ended. A connection that broke is reset on both sides: to end one in order would tell its peer that
    /// it has got everything. A reset discards what the kernel has not delivered yet, which is why an endpoint that
    /// ends its TLS without `close_notify`, as many servers do, only ends the connection: what it sent arrives.
    fn end(self, outcome: Outcome) {
        match outcome {
            Outcome::Complete => self.record.finish(ResponseFlags::NONE, None),
            Outcome::Broken(side, error) => {
                let has_left = error.kind() == io::ErrorKind::UnexpectedEof;
                if !(has_left && matches!(side, Side::Upstream)) {
                    reset(&self.downstream, &self.upstream);
                }
                self.record.finish(broken(side, &error), None);
            }
            Outcome::Closed(flags, details) => {
                reset(&self.downstream, &self.upstream);
                self.record.finish(flags, Some(details));
            }
        }
    }
}

fn broke(side: Side, error: io::Error) -> Poll<Outcome> {
    Poll::Ready(Outcome::Broken(side, error))
}

/// Makes closing the sockets a reset. Unix sockets, TLS and tunnels have none; their peers see the end.
fn reset(downstream: &Transport, upstream: &Upstream) {
    downstream.reset_on_close();
    if let Upstream::Tcp(socket) = upstream {
        // fails only for a socket that is gone already
        let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    }
}

#[cfg(test)]
mod tests;
