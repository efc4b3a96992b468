//! Serves one HTTP/1 connection: its requests in order, one at a time.
//!
//! One task reads a request, polls the future that answers it, and writes the response. Reading, answering and writing
//! overlap if a request has a body; the next request is not read before the response is sent.

use std::future::Future as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, Version};
use hyper::body::{Body as _, SizeHint};
use tokio::io::AsyncWrite as _;
use tokio::sync::oneshot;

use super::inbox::Inbox;
use super::outbox::Outbox;
use super::reply::Reply;
use crate::codec::check;
use crate::codec::connection_table::ConnectionHandle;
use crate::codec::handler::Handler;
use crate::codec::refusal::{Refusal, RefusalReply as _};
use crate::codec::server::Server;
use crate::codec::socket::Socket;
use crate::codec::transport::Gone;
use crate::codec::watchdog::ConnectionActivity;
use crate::exchange::downstream::body::{CutOff, HandedOver, Lane};
use crate::exchange::downstream::connection::Unreached;
use crate::exchange::{Connection, DownstreamBody};
use crate::telemetry::CloseReason;
use wire::http1::request::decoder::{Decoder, Limits};
use wire::http1::request::head::{BodyKind, Head};
use wire::http1::response::encoder::{self, Encoding, MethodKind, RequestTraits};

/// End of serving a connection, other than by parking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All is sent, and the peer may still be sending.
    Linger,
    /// Close the socket.
    Close,
    /// Reset the socket, so that the peer does not take a partial response for a complete one.
    Reset,
    /// The peer sent a request that is rejected.
    Refused(Refusal),
    /// The upgrade response is sent: the socket goes to the exchange.
    Switched,
}

/// Returns the end of a connection whose response is incomplete. A client that takes the end of the connection for the
/// end of the response must see a reset instead.
fn early_end(encoding: &Encoding) -> End {
    match encoding {
        Encoding::UntilClose => End::Reset,
        Encoding::Chunked(_) | Encoding::Length(_) => End::Close,
    }
}

/// Result of a step: continue, or end.
type Step = Result<(), End>;

/// Current phase of serving.
enum Phase<B> {
    /// Reading a head.
    Head,
    /// Waiting for the response to a request with these properties.
    Answering(RequestTraits),
    /// Sending the response.
    Sending(Reply<B>),
    /// Reading the rest of a request whose response was sent.
    Rest(AfterResponse),
    /// Shutting down the socket.
    Shutdown,
}

/// Continuation after a request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterResponse {
    /// Read the next request.
    Next,
    /// End the connection.
    Shutdown,
    /// Switch to another protocol.
    Switch,
}

/// One connection, from its first request until it ends or parks.
pub(super) struct Driver<'a, A: Handler> {
    server: &'a Rc<Server<A>>,
    connection: &'a Rc<Connection>,
    socket: Socket,
    inbox: Inbox,
    outbox: Outbox,
    phase: Phase<A::Body>,
    /// Slot for the future of the answer, which is several kilobytes large.
    answer: Pin<Box<Option<A::Future>>>,
    /// Whether the answer has not been pending yet.
    is_new: bool,
    /// Sender that hands the connection to the exchange, if the request asks for another protocol.
    switch: Option<oneshot::Sender<HandedOver>>,
    /// Requests so far.
    heads: u32,
    /// State from before the connection was parked.
    past: ParkedState,
}

/// State of a connection that outlives parking.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ParkedState {
    /// Whether the connection has served requests.
    pub(super) is_reused: bool,
    /// Bytes of empty lines since the last request.
    pub(super) skipped: u32,
}

impl<'a, A: Handler> Driver<'a, A> {
    pub(super) fn new(
        server: &'a Rc<Server<A>>,
        connection: &'a Rc<Connection>,
        socket: Socket,
        past: ParkedState,
    ) -> Self {
        let settings = server.settings();
        let limits = Limits {
            head_bytes_max: settings.http1.head_bytes_max,
            headers_max: settings.http1.headers_max,
        };
        Self {
            past,
            server,
            connection,
            socket,
            inbox: Inbox::new(Decoder::after(past.skipped as usize, limits)),
            outbox: Outbox::default(),
            phase: Phase::Head,
            answer: Box::pin(None),
            is_new: false,
            switch: None,
            heads: 0,
        }
    }

    /// Notes the reason for which the connection will close.
    pub(super) fn ends(&mut self, reason: CloseReason) {
        self.socket.ends(reason);
    }

    /// Returns the state to keep while the connection is parked.
    pub(super) fn past(&self) -> ParkedState {
        ParkedState {
            is_reused: true,
            skipped: u32::try_from(self.inbox.skipped()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the socket, with the unread input put back.
    pub(super) fn into_socket(self) -> Socket {
        let mut socket = self.socket;
        let rest = self.inbox.into_rest();
        if !rest.is_empty() {
            socket.put_back(&rest);
        }
        socket
    }

    /// Hands the connection to the exchange, with its handle if a security policy may end it.
    pub(super) fn hand_over(mut self, member: ConnectionHandle) {
        let policy_drain = self.server.settings().timeouts.policy_drain;
        if let Some(switch) = self.switch.take() {
            let handed_over = HandedOver {
                connection: Box::pin(self.into_socket()),
                cut_off: match member.is_governed() {
                    false => CutOff::never(),
                    true => CutOff::by(member.forbidden(policy_drain)),
                },
            };
            // the receiver may be dropped, and the connection then closes
            let _ = switch.send(handed_over);
        }
    }

    /// Returns the activity of the connection, for its timeouts.
    pub(super) fn activity(&self, member: &ConnectionHandle) -> ConnectionActivity {
        let answering = matches!(self.phase, Phase::Answering(_) | Phase::Sending(_));
        let closing = matches!(self.phase, Phase::Shutdown);
        ConnectionActivity {
            heads: self.heads,
            in_flight: u32::from(answering),
            place: self.inbox.place(answering),
            unflushed: closing || !self.outbox.is_flushed(),
            starved: self.inbox.is_starved(),
            blocked: self.inbox.is_blocked(),
            cut_off: self.inbox.is_cut_off(),
            moved: self.inbox.moved().wrapping_add(self.outbox.moved()),
            draining: member.draining(),
        }
    }

    /// Number of bytes that wait to be written.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.outbox.len()
    }

    /// Serves while there is progress.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let step = match self.phase {
                Phase::Head => self.poll_head(cx),
                Phase::Answering(asked) => self.poll_answer(asked, cx),
                Phase::Sending(_) => self.poll_reply(cx),
                Phase::Rest(then) => self.poll_rest(then, cx),
                Phase::Shutdown => {
                    let transport = Pin::new(self.socket.transport_mut());
                    transport.poll_shutdown(cx).map(|_| Err(End::Close))
                }
            };
            if let Err(end) = ready!(step) {
                return Poll::Ready(end);
            }
        }
    }

    /// Reads a head and begins its request.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let head = ready!(self.inbox.poll_head(&mut self.socket, cx));
        Poll::Ready(match head {
            Ok(head) => {
                self.begin(head, cx);
                Ok(())
            }
            Err(Some(refusal)) => Err(End::Refused(refusal)),
            // no request is lost, at most an incomplete head
            Err(None) => {
                self.phase = Phase::Shutdown;
                Ok(())
            }
        })
    }

    /// Begins to answer a request, or rejects it.
    fn begin(&mut self, head: Head, cx: &Context<'_>) {
        let interim = &self.connection.interim;
        if interim.any() {
            // too late for the previous response
            interim.write(Vec::clear);
        }
        self.heads = self.heads.wrapping_add(1);
        let asked = RequestTraits {
            method: head.request.method().into(),
            is_http11: head.request.version() == Version::HTTP_11,
            persistent: head.persistent,
            takes_trailers: head.takes_trailers,
        };
        let body = self.body(&head, cx);
        let mut request = head.request.map(|()| body);
        let settings = self.server.settings();
        let checked = settings.underscores.apply(request.headers_mut());
        match checked.and_then(|()| check::head(&request, settings.http1.http10)) {
            Ok(()) => {
                let answer = self.server.handler.answer(self.connection, request);
                self.answer.set(Some(answer));
                self.is_new = true;
                self.phase = Phase::Answering(asked);
            }
            Err(refusal) => self.refuse(asked, &request, refusal),
        }
    }

    /// Returns the request body for the exchange, and opens it for reading unless it is empty.
    fn body(&mut self, head: &Head, cx: &Context<'_>) -> DownstreamBody {
        let left = match head.body {
            BodyKind::Empty if !head.upgrade => return DownstreamBody::Empty,
            BodyKind::Empty => Some(0),
            BodyKind::Length(length) => Some(length),
            BodyKind::Chunked => None,
        };
        let receiver = head.upgrade.then(|| {
            let (sender, receiver) = oneshot::channel();
            self.switch = Some(sender);
            receiver
        });
        let lane = Lane::with_connection(cx.waker().clone(), left, head.expects, receiver);
        let body = DownstreamBody::Stream(lane.inlet());
        if head.body != BodyKind::Empty {
            self.inbox.open(lane);
        }
        body
    }

    /// Replies to a request that is rejected by its head.
    fn refuse(
        &mut self,
        asked: RequestTraits,
        request: &Request<DownstreamBody>,
        refusal: Refusal,
    ) {
        let text = match self.server.is_http_proxy(self.connection) {
            true => refusal.advice(request),
            false => refusal.body(Some(request)),
        };
        let status = self.server.refuse(self.connection, request, refusal);
        let response = Server::<A>::own_head(self.connection, status, text);
        let asked = RequestTraits {
            // `connection: close` goes to HTTP/1.0 as well
            is_http11: true,
            persistent: false,
            ..asked
        };
        let size = SizeHint::with_exact(text.len() as u64);
        let reply = self.reply(asked, response, &size);
        if reply.encoding != Encoding::Length(0) {
            self.outbox.push(Bytes::from_static(text.as_bytes()), b"");
        }
        self.phase = Phase::Sending(reply);
    }

    /// Polls the answer, and reads the request body that it needs.
    fn poll_answer(&mut self, asked: RequestTraits, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            self.read_body(cx)?;
            if let Some(lane) = self.inbox.lane() {
                lane.watch(true);
            }
            let polled = match self.answer.as_mut().as_pin_mut() {
                Some(answer) => answer.poll(cx),
                None => Poll::Pending,
            };
            self.queue_interim_responses(polled.is_ready());
            if let Poll::Ready(response) = polled {
                self.answer.set(None);
                let is_unreached = response.extensions().get::<Unreached>().is_some();
                if is_unreached && (self.past.is_reused || self.heads > 1) {
                    return Poll::Ready(Err(End::Close));
                }
                self.respond(asked, response);
                return Poll::Ready(Ok(()));
            }
            if !self.outbox.is_flushed() {
                let flushed = self.outbox.poll_flush(self.socket.transport_mut(), cx);
                if let Poll::Ready(Err(_)) = flushed {
                    return Poll::Ready(Err(End::Close));
                }
            }
            match self.inbox.lane() {
                Some(lane) if lane.take_released().0 > 0 => {}
                // Requests that arrived together go out together in the next turn, and most complete without another
                // wait: until then the peer need not be watched.
                _ if std::mem::take(&mut self.is_new) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                _ => return self.poll_gone(cx),
            }
        }
    }

    /// Queues bytes that precede the response: a wanted `100 Continue`, and interim responses. Before the final
    /// response (`is_final`) all of them; else they wait, within their own limits, while the client reads nothing.
    fn queue_interim_responses(&mut self, is_final: bool) {
        if let Some(lane) = self.inbox.lane() {
            lane.watch(false);
            if lane.take_continue_wanted() {
                let text = b"HTTP/1.1 100 Continue\r\n\r\n";
                self.outbox.head.extend_from_slice(text);
            }
        }
        let interim = &self.connection.interim;
        if interim.any() && (is_final || self.outbox.has_room()) {
            interim.write(|bytes| self.outbox.head.append(bytes));
        }
    }

    fn read_body(&mut self, cx: &mut Context<'_>) -> Step {
        if self.inbox.lane().is_none() {
            return Ok(());
        }
        let read = self.inbox.read_body(&mut self.socket, cx);
        read.map_err(|_| End::Close)
    }

    /// Ends when the peer has closed. Behind unread bytes its end is only checked now and then, and does not stop a
    /// response that is being sent.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let is_sending = matches!(self.phase, Phase::Sending(_));
        if is_sending && self.inbox.is_cut_off() && self.outbox.is_flushed() {
            // an upstream that waits for the rest of the body would wait for ever
            return Poll::Ready(Err(End::Close));
        }
        if self.inbox.is_blocked() {
            let waits = matches!(self.phase, Phase::Answering(_)) && !self.inbox.is_last();
            return match self.socket.transport().gone() {
                Some(Gone::Broken) => Poll::Ready(Err(End::Close)),
                Some(Gone::Ended) if waits => Poll::Ready(Err(End::Close)),
                Some(Gone::Ended) => {
                    self.inbox.end_unread();
                    Poll::Pending
                }
                None => Poll::Pending,
            };
        }
        let gone = self.inbox.poll_gone(&mut self.socket, cx);
        gone.map(|_| Err(End::Close))
    }

    /// Begins to send a response.
    fn respond(&mut self, mut asked: RequestTraits, response: Response<A::Body>) {
        let (parts, body) = response.into_parts();
        let is_reading = self.inbox.lane().is_some();
        // tells the peer that the rest of its request is not read
        let is_cut_short = self.connection.answered_here.take() && is_reading;
        // bytes that the client may have sent for a tunnel that was refused are no request
        let is_no_tunnel = asked.method == MethodKind::Connect
            && !encoder::switches_protocol(asked.method, parts.status);
        if self.connection.draining.get() || is_cut_short || is_no_tunnel || self.inbox.is_last() {
            asked.persistent = false;
        }
        let size = match body.is_end_stream() {
            true => SizeHint::with_exact(0),
            false => body.size_hint(),
        };
        let mut reply = self.reply(asked, Response::from_parts(parts, ()), &size);
        if reply.encoding != Encoding::Length(0) {
            reply.body = Some(body);
        }
        self.phase = Phase::Sending(reply);
    }

    /// Writes the head of a response.
    fn reply(
        &mut self,
        asked: RequestTraits,
        response: Response<()>,
        size: &SizeHint,
    ) -> Reply<A::Body> {
        let (parts, ()) = response.into_parts();
        let server = self.server;
        let out = &mut self.outbox.head;
        let begun = encoder::head(out, &parts, asked, size, |out| server.write_date(out));
        let switching = encoder::switches_protocol(asked.method, parts.status);
        self.inbox.keep(parts.headers);
        Reply {
            body: None,
            encoding: begun.encoding,
            persistent: begun.persistent,
            switching,
        }
    }

    /// Sends the response, and continues to read the request.
    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        self.read_body(cx)?;
        let Phase::Sending(reply) = &mut self.phase else {
            return Poll::Ready(Ok(()));
        };
        match reply.poll_send(&mut self.outbox, self.socket.transport_mut(), cx) {
            Poll::Ready(Ok(())) => {
                let then = match (reply.switching, reply.persistent) {
                    (true, _) => AfterResponse::Switch,
                    (false, true) => AfterResponse::Next,
                    (false, false) => AfterResponse::Shutdown,
                };
                // the end of the connection delimits this response
                let ends = reply.encoding == Encoding::UntilClose;
                if ends && self.inbox.lane().is_some() {
                    let transport = Pin::new(self.socket.transport_mut());
                    ready!(transport.poll_shutdown(cx)).map_err(|_| End::Close)?;
                }
                Poll::Ready(self.finish(then))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(early_end(&reply.encoding))),
            Poll::Pending => {
                let end = early_end(&reply.encoding);
                self.poll_gone(cx).map(|gone| gone.map_err(|_| end))
            }
        }
    }

    /// Moves to the next phase after a response, or after the rest of its request was read.
    fn finish(&mut self, then: AfterResponse) -> Step {
        if let Some(refusal) = self.inbox.broken() {
            return Err(End::Refused(refusal));
        }
        if self.inbox.lane().is_some() {
            self.phase = Phase::Rest(then);
            return Ok(());
        }
        self.phase = match then {
            AfterResponse::Switch => return Err(End::Switched),
            AfterResponse::Next if !self.inbox.is_last() => Phase::Head,
            AfterResponse::Shutdown if self.inbox.has_rest() => return Err(End::Linger),
            AfterResponse::Next | AfterResponse::Shutdown => Phase::Shutdown,
        };
        self.switch = None;
        Ok(())
    }

    /// Reads the rest of a request whose response was sent, as long as the exchange reads it.
    fn poll_rest(&mut self, then: AfterResponse, cx: &mut Context<'_>) -> Poll<Step> {
        self.read_body(cx)?;
        match self.inbox.lane() {
            None => Poll::Ready(self.finish(then)),
            // the exchange dropped the body
            Some(lane) if lane.is_abandoned() => Poll::Ready(Err(End::Linger)),
            Some(_) => Poll::Pending,
        }
    }
}
