//! HTTP/2 connections: our own protocol engine (`wire::http2`) on a socket, with idle timeout and graceful shutdown.

mod driver;
mod ready;
mod slot;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use super::accepted::AcceptedConnection;
use super::connection_table::ConnectionHandle;
use super::handler::Handler;
use super::held_output::HeldOutput;
use super::park::{LingerCause, linger};
use super::server::Server;
use super::settings::timeouts::Timeouts;
use crate::exchange::Connection;
use crate::exchange::downstream::connection::DownstreamProtocol;
use crate::runtime::clock::{TICK, Tick};
use crate::telemetry::{CloseReason, ConnectionProtocol, Counter};
use wire::http2::Reason;
use wire::http2::keep_alive::{KeepAlive, KeepAliveAction, KeepAliveState};

use self::driver::{Driver, End as DriverEnd};
pub use super::settings::http2::Settings;

impl<A: Handler> AcceptedConnection<A> {
    /// Serves HTTP/2 until the connection ends.
    pub async fn http2(mut self: Box<Self>) {
        self.count_as(ConnectionProtocol::Http2);
        let connection = self.connection(DownstreamProtocol::Http2);
        let (server, socket, member) = self.into_parts();
        let keep_alive = {
            let settings = server.settings();
            member.ends_after(settings.timeouts.duration_max);
            settings.http2.keep_alive
        };
        let now = member.now();
        let mut service = Service {
            driver: Driver::new(&server, &connection, socket),
            held: HeldOutput::new(&server),
            server: &server,
            connection: &connection,
            member: &member,
            farewell: GracefulShutdown::new(now),
            keep_alive: keep_alive.map(move |interval| {
                let settings = KeepAlive {
                    interval,
                    timeout: PONG_TIMEOUT,
                };
                KeepAliveState::new(settings, since_start(now))
            }),
            head_since: None,
            rested: false,
        };
        let end = poll_fn(|cx| service.poll(cx)).await;
        if let Some(counter) = end.counter() {
            server.count(counter);
        }
        let reason = end.reason(service.farewell.left.is_some(), &member);
        reason
            .into_iter()
            .for_each(|reason| service.driver.ends(reason));
        if matches!(end, End::Close | End::Gone | End::Dead) {
            service.driver.drop_all(Reason::CANCEL);
        } else {
            tracing::debug!(?end, "downstream connection ends");
            let (socket, words) = service.driver.into_final_output();
            let done = end
                .counter()
                .map_or(LingerCause::Answered, |_| LingerCause::Refused);
            // boxed, so that waiting connections do not reserve space for it
            Box::pin(async move { linger(socket, &member, done, &words).await }).await;
        }
    }
}

/// A connection that is being served.
struct Service<'a, A: Handler> {
    driver: Driver<'a, A>,
    held: HeldOutput<A>,
    server: &'a Rc<Server<A>>,
    connection: &'a Rc<Connection>,
    member: &'a ConnectionHandle,
    farewell: GracefulShutdown,
    keep_alive: Option<KeepAliveState>,
    /// Start of the request head that is being received, and the number of requests before it.
    head_since: Option<(Tick, u32)>,
    /// Whether memory was released since the connection was last in use.
    rested: bool,
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Close without GOAWAY, after a timeout.
    Close,
    /// The peer answers no PING.
    Dead,
    /// The peer has closed the connection.
    Gone,
    /// Send the remaining output; GOAWAY has this reason.
    Say(Reason),
    /// Request head that was not complete in time.
    Slow,
    /// GOAWAY: the peer canceled too many of its requests.
    Abuse,
}

impl End {
    /// Returns the counter of the protocol violation that ended the connection, if any.
    fn counter(self) -> Option<Counter> {
        match self {
            End::Close | End::Dead | End::Gone | End::Say(Reason::NO_ERROR) => None,
            End::Say(Reason::ENHANCE_YOUR_CALM) => Some(Counter::ProtocolFlood),
            End::Say(_) => Some(Counter::ProtocolHttp2),
            End::Slow => Some(Counter::ProtocolHeadTimeout),
            End::Abuse => Some(Counter::ProtocolRapidReset),
        }
    }

    /// Returns the reason for which the connection closes; `None` for the client. `has_left` says whether GOAWAY was sent.
    fn reason(self, has_left: bool, member: &ConnectionHandle) -> Option<CloseReason> {
        match self {
            Self::Abuse => Some(CloseReason::ProtocolError),
            Self::Say(reason) if reason != Reason::NO_ERROR => Some(CloseReason::ProtocolError),
            Self::Dead | Self::Slow => Some(CloseReason::Timeout),
            _ if member.is_announced() => Some(CloseReason::Drain),
            Self::Close => Some(CloseReason::IdleTimeout),
            Self::Gone | Self::Say(_) => has_left.then_some(CloseReason::IdleTimeout),
        }
    }
}

impl<A: Handler> Service<'_, A> {
    fn poll(&mut self, cx: &mut std::task::Context<'_>) -> Poll<End> {
        let (driver, member) = (&mut self.driver, self.member);
        if member.is_announced() {
            self.connection.draining.set(true);
        }
        let all = self.server.settings();
        let limits = Limits::of(member, &all.timeouts, &all.http2);
        loop {
            let now = member.now();
            match driver.poll(cx, now.0) {
                Poll::Ready(DriverEnd::Gone) => return Poll::Ready(End::Gone),
                Poll::Ready(DriverEnd::Left) => return Poll::Ready(End::Say(Reason::NO_ERROR)),
                Poll::Ready(DriverEnd::Failed(reason)) => return Poll::Ready(End::Say(reason)),
                Poll::Pending => {}
            }
            if all.http2.is_abuse(driver.begun(), driver.cut()) {
                driver.engine().fail(Reason::ENHANCE_YOUR_CALM);
                return Poll::Ready(End::Abuse);
            }
            let seen = Seen {
                begun: driver.begun(),
                // a stream that became a tunnel has its response
                ended: driver.ended().wrapping_sub(self.connection.tunnels.get()),
                unflushed: driver.is_unsent(),
                moved: driver.moved(),
                announced: self.connection.draining.get(),
                draining: member.draining(),
            };
            self.held.set(driver.unsent_bytes(seen.unflushed));
            let is_idle = seen.begun == seen.ended;
            if is_idle && member.ends_idle() && driver.engine().leave_for_good() {
                continue;
            }
            let head_due = head_due(&mut self.head_since, driver, all.http1.head_timeout, now);
            if now >= head_due {
                return Poll::Ready(End::Slow);
            }
            let due = match self.farewell.decide(seen, &limits, now) {
                Action::Close => return Poll::Ready(End::Close),
                Action::Leave => {
                    driver.engine().leave();
                    continue;
                }
                Action::Wait(due) => due,
            };
            self.rested &= is_idle;
            let rest_due = match is_idle && !self.rested {
                true => self.farewell.idle_since.after(REST_AFTER),
                false => Tick::NEVER,
            };
            if now >= rest_due {
                driver.rest();
                self.rested = true;
                continue;
            }
            let pongs = driver.engine().pongs();
            match keep_alive_action(&mut self.keep_alive, seen.moved, pongs, now) {
                KeepAliveAction::Dead => return Poll::Ready(End::Dead),
                KeepAliveAction::Ping => {
                    driver.engine().ping();
                    continue;
                }
                KeepAliveAction::Wait(ping_due) => {
                    let ping_due = Tick(0).after(ping_due);
                    member.wake_at(cx, due.min(rest_due).min(ping_due).min(head_due));
                    return Poll::Pending;
                }
            }
        }
    }
}

/// Returns the deadline of the request head that is being received, if any. `head_since` is its start, and the number
/// of requests before it.
fn head_due<A: Handler>(
    head_since: &mut Option<(Tick, u32)>,
    driver: &Driver<'_, A>,
    timeout: Duration,
    now: Tick,
) -> Tick {
    if !driver.is_in_head() {
        *head_since = None;
        return Tick::NEVER;
    }
    let begun = driver.begun();
    let same = head_since.filter(|(_, before)| *before == begun);
    let (since, _) = *head_since.insert(same.unwrap_or((now, begun)));
    since.after(timeout)
}

/// Time without open streams after which a connection releases memory.
const REST_AFTER: Duration = Duration::from_secs(1);

/// Time for a peer to answer a PING.
const PONG_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the keep-alive action at a time of the worker's clock; without keep-alive, to wait.
fn keep_alive_action(
    state: &mut Option<KeepAliveState>,
    moved: u32,
    pongs: u32,
    now: Tick,
) -> KeepAliveAction {
    match state {
        Some(state) => state.decide(moved, pongs, since_start(now)),
        None => KeepAliveAction::Wait(Duration::MAX),
    }
}

fn since_start(now: Tick) -> Duration {
    TICK.saturating_mul(u32::try_from(now.0).unwrap_or(u32::MAX))
}

/// Time for a new connection to send its first request before GOAWAY asks the peer to reconnect.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// Time for a peer without open streams to close after GOAWAY.
const CLOSE_AFTER_GOAWAY: Duration = Duration::from_secs(5);

/// Decides when to send GOAWAY, and when to close. Pure.
#[derive(Clone, Copy, Debug)]
struct GracefulShutdown {
    /// Time since which no stream is open and all output is sent.
    idle_since: Tick,
    /// Time at which bytes last moved.
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
    /// Whether the peer is asked to use another connection.
    announced: bool,
    draining: Option<Tick>,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    idle: Duration,
    drain: Duration,
    stall: Duration,
}

impl Limits {
    fn of(member: &ConnectionHandle, timeouts: &Timeouts, settings: &Settings) -> Self {
        Self {
            idle: timeouts.idle,
            drain: member.drain_time(timeouts.drain, timeouts.policy_drain),
            stall: settings.stall_timeout,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Close,
    Leave,
    Wait(Tick),
}

impl GracefulShutdown {
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
            // a peer that just connected has a request to send, and would not know whether it was served
            None if seen.announced && seen.begun == 0 => self.idle_since.after(FIRST_REQUEST),
            None if seen.announced => now,
            _ if busy => Tick::NEVER,
            None => self.idle_since.after(limits.idle),
            Some(left) => self.idle_since.max(left).after(CLOSE_AFTER_GOAWAY),
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
            announced: draining.is_some(),
            draining: draining.map(Tick),
        }
    }

    fn decide(farewell: &mut GracefulShutdown, state: (u32, u32, Option<u64>), now: u64) -> Action {
        farewell.decide(seen(state), &LIMITS, Tick(now))
    }

    #[test]
    fn unsent_bytes_keep_a_connection_until_they_stall() {
        let mut farewell = GracefulShutdown::new(Tick(0));
        assert_eq!(decide(&mut farewell, (1, 0, Some(10)), 10), Action::Leave);
        let unflushed = |moved, draining| Seen {
            unflushed: true,
            moved,
            ..seen((1, 1, draining))
        };
        let mut at = |seen, now| farewell.decide(seen, &LIMITS, Tick(now));
        // Neither the time after GOAWAY nor the idle timeout counts while the peer reads.
        assert_eq!(at(unflushed(1, None), 2_000), Action::Wait(Tick(5_001)));
        assert_eq!(at(unflushed(2, None), 4_000), Action::Wait(Tick(7_001)));
        assert_eq!(at(unflushed(2, None), 7_001), Action::Close);
    }

    #[test]
    fn idle_connection_sends_goaway_and_then_closes() {
        let mut farewell = GracefulShutdown::new(Tick(0));
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
    fn drain_sends_goaway_at_once_and_waits_for_streams() {
        let mut farewell = GracefulShutdown::new(Tick(0));
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
    fn announcement_sends_goaway_once_the_first_request_is_there_and_sets_no_end() {
        let mut farewell = GracefulShutdown::new(Tick(10));
        let at = |farewell: &mut GracefulShutdown, begun, ended, now| {
            let announced = Seen {
                announced: true,
                ..seen((begun, ended, None))
            };
            farewell.decide(announced, &LIMITS, Tick(now))
        };
        assert_eq!(at(&mut farewell, 0, 0, 10), Action::Wait(Tick(21)));
        let mut silent = farewell;
        assert_eq!(at(&mut silent, 0, 0, 21), Action::Leave);
        assert_eq!(at(&mut farewell, 1, 0, 12), Action::Leave);
        assert_eq!(at(&mut farewell, 1, 0, 5_000), Action::Wait(Tick::NEVER));
    }

    #[test]
    fn silent_peer_gets_a_ping_and_times_out() {
        let settings = KeepAlive {
            interval: Duration::from_secs(10),
            timeout: PONG_TIMEOUT,
        };
        let mut keep_alive = Some(KeepAliveState::new(settings, since_start(Tick(0))));
        let mut at =
            |moved, pongs, now| match keep_alive_action(&mut keep_alive, moved, pongs, Tick(now)) {
                KeepAliveAction::Wait(due) => KeepAliveAction::Wait(due.min(TICK * 10_000)),
                other => other,
            };
        assert_eq!(at(1, 0, 5), KeepAliveAction::Wait(TICK * 105));
        assert_eq!(at(1, 0, 105), KeepAliveAction::Ping);
        // the PING itself moves bytes, and is no answer
        assert_eq!(at(2, 0, 105), KeepAliveAction::Wait(TICK * 305));
        assert_eq!(at(3, 1, 110), KeepAliveAction::Wait(TICK * 210));
        assert_eq!(at(3, 1, 210), KeepAliveAction::Ping);
        assert_eq!(at(3, 1, 410), KeepAliveAction::Dead);
        assert_eq!(
            keep_alive_action(&mut None, 1, 0, Tick(9_999)),
            KeepAliveAction::Wait(Duration::MAX)
        );
    }

    #[test]
    fn peer_that_resets_most_of_its_requests_is_disconnected() {
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
