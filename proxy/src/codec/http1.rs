//! HTTP/1.0 and HTTP/1.1 connections: requests by our own decoder, with limits, timeouts and parking.
//!
//! A connection alternates between two states: served by a boxed `Driver`, and parked with only its socket. Requests
//! are answered in order, one at a time.

mod driver;
mod inbox;
mod outbox;
mod reply;

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use hyper::body::SizeHint;

use super::accepted::AcceptedConnection;
use super::connection_table::ConnectionHandle;
use super::handler::Handler;
use super::held_output::HeldOutput;
use super::park::{LingerCause, linger};
use super::refusal::{Refusal, RefusalReply as _};
use super::server::Server;
use super::socket::Socket;
use super::watchdog::{Action, Timeouts, Watchdog};
use crate::exchange::Connection;
use crate::exchange::downstream::connection::DownstreamProtocol;
use crate::exchange::record::log::Unserved;
use crate::runtime::clock::Turn;
use crate::telemetry::{CloseReason, ConnectionProtocol};

use self::driver::{Driver, End, ParkedState};
pub use super::settings::http1::Settings;
use wire::http1::response::encoder::{self, RequestTraits};

/// End of serving a connection, with the socket or the connection that is left.
enum Ended<S> {
    /// The socket is gone: closed, or handed to another protocol.
    Gone,
    /// Send this last message, then read and discard until the peer closes.
    Linger(S, LingerCause, Vec<u8>),
    /// The connection is idle and keeps only its socket.
    Parked(S, ParkedState),
}

impl<A: Handler> AcceptedConnection<A> {
    /// Serves HTTP/1 until the connection ends.
    ///
    /// The previous pause decides whether an idle connection parks at once or after `park_after`: a client that sent
    /// its next request soon is expected to do so again. So clients that open many connections and rarely use them hold
    /// no buffers, and busy connections are not torn down between two requests.
    pub async fn http1(mut self: Box<Self>) {
        self.count_as(ConnectionProtocol::Http1);
        // in a block: what is borrowed would be stored while the connection waits
        let park_after = {
            let settings = self.server.settings();
            (self.member).ends_after(settings.timeouts.duration_max);
            settings.http1.park_after
        };
        let (mut came_back_soon, mut past) = (false, ParkedState::default());
        loop {
            let wait = came_back_soon.then_some(park_after);
            let Some((mut parked, left)) = until_parked(self, wait, past).await else {
                return;
            };
            let soon = parked.now().after(park_after);
            if !parked.readable().await {
                return;
            }
            came_back_soon = parked.now() < soon;
            past = left;
            self = parked;
        }
    }
}

/// Serves requests until the connection parks; `None` when it ends.
///
/// State that only an active connection needs is boxed, so that parking frees it.
async fn until_parked<A: Handler>(
    connection: Box<AcceptedConnection<A>>,
    park_after: Option<Duration>,
    past: ParkedState,
) -> Option<(Box<AcceptedConnection<A>>, ParkedState)> {
    let lingering = match Box::pin(live(connection, park_after, past)).await {
        Ended::Gone => return None,
        Ended::Linger(left, done, message) => send_final_message(left, done, message),
        Ended::Parked(parked, past) => return Some((parked, past)),
    };
    Box::pin(lingering).await;
    None
}

/// Sends a last message, and waits for the peer to close.
async fn send_final_message<A: Handler>(
    connection: Box<AcceptedConnection<A>>,
    done: LingerCause,
    message: Vec<u8>,
) {
    let (_, socket, member) = connection.into_parts();
    linger(socket, &member, done, &message).await;
}

/// Serves requests until the connection is idle or ends.
async fn live<A: Handler>(
    mut accepted: Box<AcceptedConnection<A>>,
    park_after: Option<Duration>,
    past: ParkedState,
) -> Ended<Box<AcceptedConnection<A>>> {
    let connection = &accepted.connection(DownstreamProtocol::Http1);
    let (server, member) = (&accepted.server, &accepted.member);
    let (timeouts, policy_drain) = {
        let settings = server.settings();
        let timeouts = settings.timeouts.http1(&settings.http1, park_after);
        (timeouts, settings.timeouts.policy_drain)
    };
    let mut service = Service {
        driver: Driver::new(server, connection, accepted.socket, past),
        held: HeldOutput::new(server),
        watchdog: Watchdog::new(member.now()),
        timeouts,
        policy_drain,
    };
    let outcome = poll_fn(|cx| {
        if member.is_announced() {
            connection.draining.set(true);
        }
        service.poll(cx, member)
    });
    let outcome = outcome.await;
    let reason = outcome.reason(member);
    reason
        .into_iter()
        .for_each(|reason| service.driver.ends(reason));
    if let Outcome::End(End::Switched) = outcome {
        service.driver.hand_over(accepted.member);
        return Ended::Gone;
    }
    match service.end(outcome, server, connection) {
        Ended::Gone => Ended::Gone,
        Ended::Linger(socket, done, message) => {
            accepted.socket = socket;
            Ended::Linger(accepted, done, message)
        }
        Ended::Parked(socket, past) => {
            accepted.socket = socket;
            Ended::Parked(accepted, past)
        }
    }
}

/// Driver of a connection with its timeouts.
struct Service<'a, A: Handler> {
    driver: Driver<'a, A>,
    held: HeldOutput<A>,
    watchdog: Watchdog,
    timeouts: Timeouts,
    policy_drain: Duration,
}

/// Reason that serving stops.
enum Outcome {
    End(End),
    /// A timeout.
    Overdue,
    Park,
    Refuse(Refusal),
}

impl Outcome {
    /// Returns the reason for which the connection closes; `None` for the client, or if it goes on.
    fn reason(&self, member: &ConnectionHandle) -> Option<CloseReason> {
        match self {
            Self::Refuse(refusal) | Self::End(End::Refused(refusal)) => Some(match refusal {
                Refusal::BodyTimeout | Refusal::HeadTimeout => CloseReason::Timeout,
                _ => CloseReason::ProtocolError,
            }),
            Self::Park | Self::End(End::Switched) => None,
            _ if member.is_announced() => Some(CloseReason::Drain),
            Self::Overdue => Some(CloseReason::Timeout),
            Self::End(_) => None,
        }
    }
}

impl<A: Handler> Service<'_, A> {
    fn poll(&mut self, cx: &mut Context<'_>, member: &ConnectionHandle) -> Poll<Outcome> {
        let _turn = Turn::begin();
        if let Poll::Ready(end) = self.driver.poll(cx) {
            return Poll::Ready(Outcome::End(end));
        }
        self.held.set(self.driver.unsent_bytes());
        let seen = self.driver.activity(member);
        let timeouts = Timeouts {
            drain_idle: member.drain_idle(self.timeouts.drain_idle),
            drain: member.drain_time(self.timeouts.drain, self.policy_drain),
            ..self.timeouts
        };
        match self.watchdog.decide(&seen, &timeouts, member.now()) {
            Action::Close => Poll::Ready(Outcome::Overdue),
            Action::Park => Poll::Ready(Outcome::Park),
            Action::Refuse(refusal) => Poll::Ready(Outcome::Refuse(refusal)),
            Action::Wait(due) => {
                member.wake_at(cx, due);
                Poll::Pending
            }
        }
    }

    fn end(self, outcome: Outcome, server: &Server<A>, connection: &Connection) -> Ended<Socket> {
        match outcome {
            Outcome::Park => {
                let past = self.driver.past();
                Ended::Parked(self.driver.into_socket(), past)
            }
            Outcome::End(End::Close) | Outcome::Overdue => Ended::Gone,
            // the exchange owns the socket already
            Outcome::End(End::Switched) => Ended::Gone,
            Outcome::End(End::Reset) => {
                self.driver.into_socket().transport().reset_on_close();
                Ended::Gone
            }
            Outcome::End(End::Linger) => {
                let socket = self.driver.into_socket();
                Ended::Linger(socket, LingerCause::Answered, Vec::new())
            }
            Outcome::End(End::Refused(refusal)) | Outcome::Refuse(refusal) => {
                self.refuse(refusal, server, connection)
            }
        }
    }

    fn refuse(
        self,
        refusal: Refusal,
        server: &Server<A>,
        connection: &Connection,
    ) -> Ended<Socket> {
        server.count(refusal.counter());
        let Some(status) = refusal.status() else {
            return match refusal {
                // the exchange replies
                Refusal::Chunk => {
                    let socket = self.driver.into_socket();
                    Ended::Linger(socket, LingerCause::Refused, Vec::new())
                }
                _ => Ended::Gone,
            };
        };
        let waited = match refusal {
            Refusal::HeadTimeout => self.timeouts.head,
            _ => Duration::ZERO,
        };
        let unserved = Unserved {
            duration: waited,
            ..refusal.unserved(None, status)
        };
        server.handler.refused(connection, &unserved);
        let socket = self.driver.into_socket();
        Ended::Linger(
            socket,
            LingerCause::Refused,
            last_reply(server, connection, status, refusal.body::<()>(None)),
        )
    }
}

/// Returns a reply to a request whose head could not be read.
fn last_reply<A: Handler>(
    server: &Server<A>,
    connection: &Connection,
    status: StatusCode,
    text: &str,
) -> Vec<u8> {
    let (parts, ()) = Server::<A>::own_head(connection, status, text).into_parts();
    let size = SizeHint::with_exact(text.len() as u64);
    let mut reply = Vec::new();
    encoder::head(&mut reply, &parts, RequestTraits::LAST, &size, |out| {
        server.write_date(out);
    });
    reply.extend_from_slice(text.as_bytes());
    reply
}

#[cfg(test)]
mod tests;
