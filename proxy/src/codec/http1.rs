//! HTTP/1.0 and HTTP/1.1 connections: hyper's parser inside our framing, timeouts and parking.
//!
//! A connection alternates between being served, by a hyper connection that is boxed, and being parked, when only the
//! socket is left. Requests are answered in order, one at a time, as hyper does it.

mod settings;

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;

use super::accepted::AcceptedConnection;
use super::check;
use super::connection_table::ConnectionHandle;
use super::flight::{Flights, Outgoing};
use super::framing::{Framing, StreamPosition};
use super::future_slot::FutureSlot;
use super::handler::Handler;
use super::io::{Stream, Wire};
use super::park::{Done, linger};
use super::refusal::Refusal;
use super::server::Server;
use super::socket::Socket;
use super::watchdog::{Action, ConnectionActivity, Timeouts, Watchdog};
use crate::exchange::downstream::connection::DownstreamProtocol;
use crate::exchange::record::log::Unserved;
use crate::exchange::{Connection, DownstreamBody};
use crate::telemetry::{ConnectionProtocol, Counter};

pub use self::settings::Settings;

/// How serving, as opposed to parking, came to an end. Left is the socket, or the connection with it.
enum Ended<S> {
    /// The socket is gone: closed, or handed to another protocol.
    Gone,
    /// What the peer may still send is to be read and forgotten, after this last message.
    Linger(S, Done, Box<str>),
    /// Idle, and worth no more than its socket.
    Parked(S),
}

impl<A: Handler> AcceptedConnection<A> {
    /// Serves HTTP/1 to the connection's end.
    ///
    /// Whether an idle connection is parked at once or after a while follows from its last pause: who came back soon will
    /// come back soon. So clients that open many connections and use them rarely never make us hold buffers for all of them,
    /// and busy connections are not taken apart between two requests.
    pub async fn http1(mut self: Box<Self>) {
        self.count_as(ConnectionProtocol::Http1);
        let park_after = self.server.settings.http1.park_after;
        let mut came_back_soon = false;
        while let Some(mut parked) = until_parked(self, came_back_soon.then_some(park_after)).await
        {
            let soon = parked.now().after(park_after);
            if !parked.readable().await {
                return;
            }
            came_back_soon = parked.now() < soon;
            self = parked;
        }
    }
}

/// Serves requests until the connection is parked; `None` when it is over.
///
/// What only a connection in use needs is boxed, so that the memory goes when it is parked.
async fn until_parked<A: Handler>(
    connection: Box<AcceptedConnection<A>>,
    park_after: Option<Duration>,
) -> Option<Box<AcceptedConnection<A>>> {
    let lingering = match Box::pin(live(connection, park_after)).await {
        Ended::Gone => return None,
        Ended::Linger(left, done, message) => last_words(left, done, message),
        Ended::Parked(parked) => return Some(parked),
    };
    Box::pin(lingering).await;
    None
}

/// Sends a last message, and waits for the peer to end.
async fn last_words<A: Handler>(
    connection: Box<AcceptedConnection<A>>,
    done: Done,
    message: Box<str>,
) {
    let (_, socket, member) = connection.into_parts();
    linger(socket, &member, done, message.as_bytes()).await;
}

/// Serves requests until the connection is idle, or over.
async fn live<A: Handler>(
    mut accepted: Box<AcceptedConnection<A>>,
    park_after: Option<Duration>,
) -> Ended<Box<AcceptedConnection<A>>> {
    let connection = &accepted.connection(DownstreamProtocol::Http1);
    let (server, member) = (&accepted.server, &accepted.member);
    let settings = &server.settings.http1;
    let wire = Arc::default();
    let flights = Flights::new(Arc::clone(&wire));
    let future_slot = FutureSlot::new();
    let service =
        service_fn(|request| answer(server, connection, (&flights, &future_slot), request));
    let interim = Some(Arc::clone(&connection.interim));
    let stream = Stream::new(
        accepted.socket,
        Framing::new(settings.limits()),
        wire,
        interim,
    );
    let hyper = server.http1.serve_connection(TokioIo::new(stream), service);
    let mut driver = Driver {
        hyper: hyper.with_upgrades(),
        watchdog: Watchdog::new(member.now()),
        timeouts: server.timeouts.http1(settings, park_after),
        flights: &flights,
    };
    let verdict = poll_fn(|cx| {
        connection.draining.set(member.draining().is_some());
        driver.poll(cx, member)
    });
    let outcome = verdict.await;
    match driver.end(outcome, server, connection) {
        Ended::Gone => Ended::Gone,
        Ended::Linger(socket, done, message) => {
            accepted.socket = socket;
            Ended::Linger(accepted, done, message)
        }
        Ended::Parked(socket) => {
            accepted.socket = socket;
            Ended::Parked(accepted)
        }
    }
}

/// Drives a hyper connection and watches over it.
struct Driver<'a, S: HttpService<Incoming>> {
    hyper: UpgradeableConnection<TokioIo<Stream>, S>,
    watchdog: Watchdog,
    timeouts: Timeouts,
    flights: &'a Rc<Flights>,
}

/// Why a hyper connection is no longer driven.
enum Outcome {
    Close,
    Done(Result<(), hyper::Error>),
    Park,
    Refuse(Refusal),
}

impl<S, B> Driver<'_, S>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn poll(&mut self, cx: &mut Context<'_>, member: &ConnectionHandle) -> Poll<Outcome> {
        if let Poll::Ready(result) = Pin::new(&mut self.hyper).poll(cx) {
            return Poll::Ready(Outcome::Done(result));
        }
        if self.flights.wire().take_released() {
            cx.waker().wake_by_ref();
        }
        let seen = self.look(member);
        let quiet = seen.in_flight == 0 && !seen.unflushed;
        match seen.place {
            StreamPosition::Refused if quiet => {
                return Poll::Ready(
                    self.flights
                        .wire()
                        .refusal()
                        .map_or(Outcome::Close, Outcome::Refuse),
                );
            }
            StreamPosition::Held if seen.in_flight == 0 && !self.flights.wire().is_tunnel() => {
                self.flights.wire().set_resume();
                cx.waker().wake_by_ref();
            }
            _ => {}
        }
        match self.watchdog.decide(&seen, &self.timeouts, member.now()) {
            Action::Close => Poll::Ready(Outcome::Close),
            Action::Park => Poll::Ready(Outcome::Park),
            Action::Refuse(refusal) => Poll::Ready(Outcome::Refuse(refusal)),
            Action::Wait(due) => {
                member.wake_at(cx, due);
                Poll::Pending
            }
        }
    }

    fn look(&self, member: &ConnectionHandle) -> ConnectionActivity {
        let heads = self.flights.wire().heads();
        ConnectionActivity {
            heads,
            in_flight: heads.wrapping_sub(self.flights.ended()),
            place: self.flights.wire().place(),
            unflushed: self.flights.wire().is_unflushed(),
            starved: self.flights.wire().is_starved(),
            moved: self.flights.wire().moved(),
            draining: member.draining(),
        }
    }

    fn end<A: Handler>(
        self,
        outcome: Outcome,
        server: &Server<A>,
        connection: &Connection,
    ) -> Ended<Socket> {
        // `None` when the connection was handed to another protocol.
        let Some(parts) = self.hyper.into_parts() else {
            return Ended::Gone;
        };
        let socket = parts.io.into_inner().into_socket();
        match outcome {
            Outcome::Park => {
                debug_assert!(parts.read_buf.is_empty(), "parked between requests");
                Ended::Parked(socket)
            }
            Outcome::Refuse(refusal) => {
                server.count(refusal.counter());
                let Some(status) = refusal.status() else {
                    return Ended::Gone;
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
                Ended::Linger(socket, Done::Refused, last_reply(status).into())
            }
            Outcome::Close => Ended::Gone,
            Outcome::Done(result) => {
                let error = result.err();
                let violation = violation(error.as_ref(), self.flights.wire());
                let done = violation.map_or(Done::Answered, |_| Done::Refused);
                if let Some(counter) = violation {
                    server.count(counter);
                }
                if let Some(error) = &error {
                    tracing::debug!(%error, "downstream connection failed");
                    if let Some(unserved) = unserved(error) {
                        server.handler.refused(connection, &unserved);
                    }
                }
                // The peer may be in the middle of sending what we don't want.
                let unread = self.flights.wire().place() != StreamPosition::Between
                    || error.as_ref().is_some_and(hyper::Error::is_parse);
                if unread && !self.flights.wire().is_ended() {
                    Ended::Linger(socket, done, Box::default())
                } else {
                    Ended::Gone
                }
            }
        }
    }
}

/// Which violation of the protocol ended a connection, if any did.
fn violation(error: Option<&hyper::Error>, wire: &Wire) -> Option<Counter> {
    if let Some(refusal) = wire.refusal() {
        return Some(refusal.counter());
    }
    let error = error?;
    if error.is_parse_too_large() {
        return Some(Counter::ProtocolHeaderTooLarge);
    }
    if error.is_parse() {
        return Some(Counter::ProtocolHeader);
    }
    let broke_off = error.is_incomplete_message() && wire.place() == StreamPosition::Body;
    broke_off.then_some(Counter::ProtocolBody)
}

/// The log entry of a head that hyper could not read and answered itself.
fn unserved(error: &hyper::Error) -> Option<Unserved<'static>> {
    let (refusal, status) = if error.is_parse_too_large() {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        (Refusal::HeadersTooLarge, status)
    } else if error.is_parse() {
        (Refusal::Header, StatusCode::BAD_REQUEST)
    } else {
        return None;
    };
    Some(refusal.unserved(None, status))
}

/// A reply to a peer that hyper did not get to see the request of.
fn last_reply(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut reply = String::new();
    write!(
        reply,
        "HTTP/1.1 {} {reason}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        status.as_u16()
    )
    .expect("a string takes everything");
    reply
}

/// The reply to a request that is refused by its head.
fn refused<B>(status: StatusCode, body: Outgoing<B>) -> Response<Outgoing<B>>
where
    Outgoing<B>: hyper::body::Body,
{
    let has_text = !hyper::body::Body::is_end_stream(&body);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if has_text {
        let text = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(CONTENT_TYPE, text);
    }
    response
}

/// Answers one request, or refuses it.
fn answer<A: Handler>(
    server: &Rc<Server<A>>,
    connection: &Rc<Connection>,
    (flights, future_slot): (&Rc<Flights>, &Rc<FutureSlot<A::Future>>),
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Outgoing<A::Body>>, Infallible>> + use<A> {
    let request = request.map(DownstreamBody::Http1);
    let flight = flights.begin();
    let is_connect = *request.method() == Method::CONNECT;
    let answer = match check::head(&request, server.settings.http1.http10) {
        Ok(()) => Ok(future_slot.take(server.handler.answer(connection, request))),
        Err(refusal) => {
            let is_proxied = server.is_http_proxy(connection);
            let text = is_proxied.then(|| refusal.advice(&request));
            let status = server.refuse(connection, &request, refusal);
            Err((status, text.unwrap_or_default()))
        }
    };
    let connection = Rc::clone(connection);
    async move {
        let close = answer.is_err();
        let mut response = match answer {
            Ok(answer) => answer.await.map(|body| Outgoing::new(body, flight)),
            Err((status, text)) => refused(status, Outgoing::text(text, flight)),
        };
        // the peer learns that what it is still sending is not read to its end
        let is_cut_short =
            connection.answered_here.take() && response.body().flight().is_incomplete();
        let tunnel = response.status() == StatusCode::SWITCHING_PROTOCOLS
            || (is_connect && response.status().is_success());
        if tunnel {
            response.body().flight().tunnel();
        } else if close || connection.draining.get() || is_cut_short {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}
