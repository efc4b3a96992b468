//! HTTP/2 connections: hyper's, with limits on what a peer may make us do, idle timeout and graceful end.

use std::convert::Infallible;
use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::check::{self, Http10};
use super::extended_connect;
use super::flight::{Flights, Outgoing};
use super::io::Stream;
use super::roster::Member;
use super::{Answer, Server};
use crate::exchange::Connection;
use crate::runtime::clock::Tick;
use crate::runtime::task::Supervisor;
use crate::telemetry::Counter;

/// Limits and timeouts of HTTP/2 connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Streams that a peer may have open on one connection. Default: 128.
    pub concurrent_streams_max: u32,
    /// Bytes of a request's header list as RFC 9113 counts them; past it, 431. Also bounds CONTINUATION frames.
    /// Default: 60 KiB.
    pub header_list_bytes_max: u32,
    /// Bytes of request bodies that a peer may send ahead on one stream. Default: 256 KiB.
    pub stream_window_bytes: u32,
    /// The same over all streams of a connection. Default: 1 MiB.
    pub connection_window_bytes: u32,
    /// Bytes of a response that wait to be written, per stream. Default: 64 KiB.
    pub send_buffer_bytes_max: usize,
    /// Streams reset by the peer that may wait to be looked at; past it, the connection is closed. Default: 20.
    pub pending_resets_max: usize,
    /// Streams that we reset for the peer's errors; past it, the connection is closed. Default: 1,024.
    pub error_resets_max: usize,
    /// Requests after which a connection is judged by how many of them its peer cut off. Default: 500.
    pub resets_judged_after: u32,
    /// Time without a byte moving while the peer does not take bytes that are ready; past it, the connection is closed.
    /// Default: 5 min.
    pub stall_timeout: Duration,
    /// Time between pings that find out whether a silent peer is still there. Default: none are sent.
    pub keep_alive: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrent_streams_max: 128,
            header_list_bytes_max: 60 * 1024,
            stream_window_bytes: 256 * 1024,
            connection_window_bytes: 1024 * 1024,
            send_buffer_bytes_max: 64 * 1024,
            pending_resets_max: 20,
            error_resets_max: 1024,
            resets_judged_after: 500,
            stall_timeout: Duration::from_secs(300),
            keep_alive: None,
        }
    }
}

impl Settings {
    pub(super) fn builder(&self, supervisor: Supervisor) -> Builder<LocalExecutor> {
        let mut builder = Builder::new(LocalExecutor(supervisor));
        builder
            .enable_connect_protocol()
            .max_concurrent_streams(self.concurrent_streams_max)
            .max_header_list_size(self.header_list_bytes_max)
            .initial_stream_window_size(self.stream_window_bytes)
            .initial_connection_window_size(self.connection_window_bytes)
            .max_send_buf_size(self.send_buffer_bytes_max)
            .max_pending_accept_reset_streams(self.pending_resets_max)
            .max_local_error_reset_streams(self.error_resets_max);
        if let Some(interval) = self.keep_alive {
            builder
                .timer(TokioTimer::new())
                .keep_alive_interval(interval);
        }
        builder
    }

    /// Whether a peer has cut off so many of its requests before they were answered that it can want nothing else.
    ///
    /// h2 bounds the streams that are reset before we look at them (CVE-2023-44487); this bounds the work that a peer can
    /// cause by resetting those that we did look at.
    fn is_abuse(&self, begun: u32, cut: u32) -> bool {
        begun >= self.resets_judged_after && cut > begun / 2
    }
}

/// Runs each stream in a supervised task of this thread.
#[derive(Clone, Debug)]
pub(super) struct LocalExecutor(Supervisor);

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, stream: F) {
        self.0.spawn("stream", stream);
    }
}

/// Serves a connection to its end.
pub(super) async fn serve<A: Answer>(
    server: &Rc<Server<A>>,
    mut stream: Box<Stream>,
    connection: &Rc<Connection>,
    member: &Member,
) {
    stream.tunnel();
    let flights = Flights::new(Arc::clone(stream.wire()));
    let service = service_fn(|request| answer(server, connection, &flights, request));
    let hyper = server.http2.serve_connection(TokioIo::new(stream), service);
    let mut hyper = pin!(hyper);
    let mut farewell = Farewell::new(member.now());
    let limits = Limits {
        idle: server.timeouts.idle,
        drain: server.timeouts.drain,
        stall: server.settings.http2.stall_timeout,
    };
    let result = poll_fn(|cx| {
        connection.draining.set(member.draining().is_some());
        loop {
            if let Poll::Ready(result) = hyper.as_mut().poll(cx) {
                return Poll::Ready(result.err().and_then(|error| violation(&error)));
            }
            if server
                .settings
                .http2
                .is_abuse(flights.begun(), flights.cut())
            {
                return Poll::Ready(Some(Counter::ProtocolRapidReset));
            }
            let wire = flights.wire();
            let seen = Seen {
                begun: flights.begun(),
                // a stream that became a tunnel has had its answer
                ended: flights.ended().wrapping_sub(connection.tunnels.get()),
                unflushed: wire.is_unflushed(),
                moved: wire.moved(),
                draining: member.draining(),
            };
            match farewell.decide(seen, &limits, member.now()) {
                Action::Close => return Poll::Ready(None),
                Action::Leave => hyper.as_mut().graceful_shutdown(),
                Action::Wait(due) => {
                    member.wake_at(cx, due);
                    return Poll::Pending;
                }
            }
        }
    });
    if let Some(counter) = result.await {
        server.count(counter);
    }
}

/// Which violation of the protocol ended a connection, if any did.
fn violation(error: &hyper::Error) -> Option<Counter> {
    tracing::debug!(%error, "downstream connection failed");
    let error = error.source()?.downcast_ref::<h2::Error>()?;
    match error.reason() {
        // What the peer ended, or what its network did, is no violation.
        _ if !error.is_library() => None,
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Some(Counter::ProtocolFlood),
        _ => Some(Counter::ProtocolHttp2),
    }
}

/// Answers one request, or refuses it.
fn answer<A: Answer>(
    server: &Rc<Server<A>>,
    connection: &Rc<Connection>,
    flights: &Rc<Flights>,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Outgoing<A::Body>>, Infallible>> + use<A> {
    let flight = flights.begin();
    let checked = check::head(&request, Http10::Accept);
    let connects = checked.is_ok() && extended_connect::to_upgrade(&mut request);
    let answer = match checked {
        // Boxed, since it is large, and moved several times on its way into a task.
        Ok(()) => Ok(Box::pin(server.answer.answer(connection, request))),
        Err(refusal) => Err(server.refuse(connection, &request, refusal)),
    };
    async move {
        let status = match answer {
            Ok(answer) => {
                let mut response = answer.await;
                if !connects || extended_connect::to_connected(&mut response) {
                    return Ok(response.map(|body| Outgoing::new(Some(body), flight)));
                }
                StatusCode::BAD_GATEWAY
            }
            Err(status) => status,
        };
        let mut response = Response::new(Outgoing::new(None, flight));
        *response.status_mut() = status;
        Ok(response)
    }
}

/// How long a peer that has no stream open may take to acknowledge that we leave.
const FAREWELL: Duration = Duration::from_secs(5);

/// Decides when to announce the end of a connection, and when not to wait for it any longer. Pure.
#[derive(Clone, Copy, Debug)]
struct Farewell {
    /// Since when no stream has been open and nothing unsent.
    idle_since: Tick,
    /// Since when bytes have moved last.
    moved_at: Tick,
    ended: u32,
    moved: u32,
    left: Option<Tick>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    begun: u32,
    ended: u32,
    unflushed: bool,
    moved: u32,
    draining: Option<Tick>,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    idle: Duration,
    drain: Duration,
    stall: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Close,
    Leave,
    Wait(Tick),
}

impl Farewell {
    fn new(now: Tick) -> Self {
        Self {
            idle_since: now,
            moved_at: now,
            ended: 0,
            moved: 0,
            left: None,
        }
    }

    fn decide(&mut self, seen: Seen, limits: &Limits, now: Tick) -> Action {
        let busy = seen.begun != seen.ended || seen.unflushed;
        if busy || seen.ended != self.ended {
            self.idle_since = now;
        }
        if !seen.unflushed || seen.moved != self.moved {
            self.moved_at = now;
        }
        self.ended = seen.ended;
        self.moved = seen.moved;
        let drained = seen.draining.map(|since| since.after(limits.drain));
        let stalled = seen.unflushed.then(|| self.moved_at.after(limits.stall));
        let end = drained.into_iter().chain(stalled).min();
        let end = end.unwrap_or(Tick::NEVER);
        let due = match self.left {
            None if seen.draining.is_some() => now,
            _ if busy => Tick::NEVER,
            None => self.idle_since.after(limits.idle),
            Some(left) => self.idle_since.max(left).after(FAREWELL),
        };
        match self.left {
            _ if now >= end => Action::Close,
            _ if now < due => Action::Wait(due.min(end)),
            Some(_) => Action::Close,
            None => {
                self.left = Some(now);
                Action::Leave
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        idle: Duration::from_secs(60),
        drain: Duration::from_secs(30),
        stall: Duration::from_secs(300),
    };

    fn seen((begun, ended, draining): (u32, u32, Option<u64>)) -> Seen {
        Seen {
            begun,
            ended,
            unflushed: false,
            moved: 0,
            draining: draining.map(Tick),
        }
    }

    fn decide(farewell: &mut Farewell, state: (u32, u32, Option<u64>), now: u64) -> Action {
        farewell.decide(seen(state), &LIMITS, Tick(now))
    }

    #[test]
    fn unsent_bytes_keep_a_connection_until_they_stall() {
        let mut farewell = Farewell::new(Tick(0));
        assert_eq!(decide(&mut farewell, (1, 0, Some(10)), 10), Action::Leave);
        let unflushed = |moved, draining| Seen {
            unflushed: true,
            moved,
            ..seen((1, 1, draining))
        };
        let mut at = |seen, now| farewell.decide(seen, &LIMITS, Tick(now));
        // Neither the farewell's own time nor the idle timeout counts while the peer reads.
        assert_eq!(at(unflushed(1, None), 2_000), Action::Wait(Tick(5_001)));
        assert_eq!(at(unflushed(2, None), 4_000), Action::Wait(Tick(7_001)));
        assert_eq!(at(unflushed(2, None), 7_001), Action::Close);
    }

    #[test]
    fn idle_connection_leaves_and_then_closes() {
        let mut farewell = Farewell::new(Tick(0));
        assert_eq!(
            decide(&mut farewell, (1, 0, None), 500),
            Action::Wait(Tick::NEVER)
        );
        assert_eq!(
            decide(&mut farewell, (1, 1, None), 700),
            Action::Wait(Tick(1301))
        );
        assert_eq!(decide(&mut farewell, (1, 1, None), 1301), Action::Leave);
        assert_eq!(
            decide(&mut farewell, (1, 1, None), 1301),
            Action::Wait(Tick(1352))
        );
        assert_eq!(decide(&mut farewell, (1, 1, None), 1352), Action::Close);
    }

    #[test]
    fn drain_leaves_at_once_and_waits_for_streams() {
        let mut farewell = Farewell::new(Tick(0));
        assert_eq!(decide(&mut farewell, (1, 0, Some(10)), 10), Action::Leave);
        assert_eq!(
            decide(&mut farewell, (1, 0, Some(10)), 11),
            Action::Wait(Tick(311))
        );
        assert_eq!(
            decide(&mut farewell, (1, 1, Some(10)), 40),
            Action::Wait(Tick(91))
        );
        assert_eq!(decide(&mut farewell, (2, 1, Some(10)), 311), Action::Close);
    }

    #[test]
    fn peer_that_cuts_off_most_of_its_requests_is_abusive() {
        let settings = Settings::default();
        for (begun, cut, expected) in [
            (10, 10, false),
            (499, 499, false),
            (500, 250, false),
            (500, 251, true),
            (10_000, 5_001, true),
        ] {
            assert_eq!(settings.is_abuse(begun, cut), expected, "{begun} {cut}");
        }
    }
}
