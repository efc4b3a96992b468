//! Drives one connection: reads, polls the streams that are ready, and writes all output at once.
//!
//! The connection's own task polls all its streams. Back pressure: while much output waits, nothing is read and no
//! stream is polled; a body is polled again only when all of its earlier bytes were sent.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE, EXPECT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::check::{self, Http10};
use super::super::extended_connect;
use super::super::handler::Handler;
use super::super::refusal::{Refusal, RefusalReply as _};
use super::super::server::Server;
use super::super::socket::Socket;
use super::ready::Ready;
use super::slot::{FutureSlots, StreamWork, Work};
use crate::exchange::downstream::body::{Lane, Outbound};
use crate::exchange::downstream::connection::Unreached;
use crate::exchange::{Connection, DownstreamBody};
use crate::runtime::clock::Turn;
use crate::telemetry::CloseReason;
use wire::http2::Reason;
use wire::http2::head;
use wire::http2::output::SLICES;
use wire::http2::server::{self as engine, Event};

/// Maximum reads per turn, so that other connections get theirs.
const READS: usize = 4;

/// Maximum rounds of polling bodies and writing per turn.
const ROUNDS: usize = 8;

/// Reason that a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer closed the connection.
    Gone,
    /// The peer violated the protocol, and receives GOAWAY.
    Failed(Reason),
    /// The proxy sent GOAWAY, and all streams are done.
    Left,
}

/// One connection.
pub(super) struct Driver<'a, A: Handler> {
    server: &'a Rc<Server<A>>,
    connection: &'a Rc<Connection>,
    socket: Socket,
    engine: engine::Server,
    /// Incomplete frame at the end of the input.
    rest: Vec<u8>,
    slots: Vec<StreamWork<A>>,
    seats: FutureSlots<A::Future>,
    ready: Arc<Ready>,
    wakers: Vec<Waker>,
    /// Places of streams whose bodies can be polled again.
    drained: Vec<usize>,
    /// Whether input was left unread only because much output waits.
    unread: bool,
    /// Whether the socket may hold back written bytes.
    unflushed: bool,
    /// Counter of reads and writes that moved bytes.
    moved: u32,
    /// Maximum number of open streams.
    streams_max: u32,
    /// Requests so far.
    begun: u32,
    /// Requests that ended before they were answered.
    cut: u32,
}

impl<'a, A: Handler> Driver<'a, A> {
    pub(super) fn new(
        server: &'a Rc<Server<A>>,
        connection: &'a Rc<Connection>,
        socket: Socket,
    ) -> Self {
        let settings = server.settings();
        let settings = &settings.http2;
        Self {
            server,
            connection,
            socket,
            engine: engine::Server::new(settings.engine(), settings.send_buffer_bytes_max),
            streams_max: settings.concurrent_streams_max,
            rest: Vec::new(),
            slots: Vec::new(),
            seats: FutureSlots::new(),
            ready: Ready::new(0, Waker::noop()),
            wakers: Vec::new(),
            drained: Vec::new(),
            unread: false,
            unflushed: false,
            moved: 0,
            begun: 0,
            cut: 0,
        }
    }

    /// Requests so far.
    pub(super) fn begun(&self) -> u32 {
        self.begun
    }

    /// Requests that have ended.
    pub(super) fn ended(&self) -> u32 {
        self.begun.wrapping_sub(self.engine.open() as u32)
    }

    /// Requests that the peer canceled, or whose errors made the proxy reset them.
    pub(super) fn cut(&self) -> u32 {
        self.cut
    }

    /// Whether output waits for the peer.
    pub(super) fn is_unsent(&self) -> bool {
        self.unflushed || self.engine.is_blocked()
    }

    /// Number of bytes that wait for the peer, if output does.
    pub(super) fn unsent_bytes(&mut self, is_unsent: bool) -> usize {
        match is_unsent {
            true => self.engine.pending_bytes(),
            false => 0,
        }
    }

    /// Counter of reads and writes that moved bytes.
    pub(super) fn moved(&self) -> u32 {
        self.moved
    }

    /// Whether a request head is incomplete.
    pub(super) fn is_in_head(&self) -> bool {
        self.engine.is_in_block() || (self.engine.open() == 0 && !self.rest.is_empty())
    }

    /// Notes the reason for which the connection will close.
    pub(super) fn ends(&mut self, reason: CloseReason) {
        self.socket.ends(reason);
    }

    /// Returns the protocol engine.
    pub(super) fn engine(&mut self) -> &mut engine::Server {
        &mut self.engine
    }

    /// Releases memory that an idle connection does not need.
    pub(super) fn rest(&mut self) {
        if self.engine.open() == 0 {
            self.engine.rest();
            self.slots = Vec::new();
            self.seats.clear();
            self.wakers = Vec::new();
            self.drained = Vec::new();
            if self.rest.is_empty() {
                self.rest = Vec::new();
            }
        }
    }

    /// Ends the connection: returns the socket, and the last output to write to it.
    pub(super) fn into_final_output(mut self) -> (Socket, Vec<u8>) {
        let mut words = Vec::new();
        let output = self.engine.output();
        while !output.is_empty() {
            let mut slices = [std::io::IoSlice::new(&[]); SLICES];
            let count = output.slices(&mut slices);
            let before = words.len();
            for slice in &slices[..count] {
                words.extend_from_slice(slice);
            }
            let added = words.len() - before;
            output.advance(added);
        }
        self.drop_all(Reason::CANCEL);
        (self.socket, words)
    }

    /// Runs one turn; ready when the connection has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, tick: u64) -> Poll<End> {
        let _turn = Turn::begin();
        let memory = &self.server.http2_buffers;
        if !self.ready.is_of(cx.waker()) {
            self.rebuild_wakers(cx.waker());
        }
        self.ready.awake();
        self.engine.advance(tick);
        self.engine.output().lend_buffer(|| memory.take_buffer());
        let end = self.turn(cx);
        if let Some(buffer) = self.engine.output().take_buffer() {
            memory.give_back(buffer);
        }
        // while the peer reads nothing, no stream can continue: the socket wakes the task
        if !self.engine.is_full() {
            self.ready.sleep();
        }
        end
    }

    /// Reads, polls the ready streams, and writes, as far as possible.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready(end) = self.poll_read(cx) {
            return Poll::Ready(end);
        }
        self.poll_ready();
        for round in 0..ROUNDS {
            self.pump();
            if let Poll::Ready(Err(_)) = self.poll_write(cx) {
                return Poll::Ready(End::Gone);
            }
            if !self.engine.output().is_empty() {
                return Poll::Pending;
            }
            if self.engine.has_left() {
                return Poll::Ready(End::Left);
            }
            let more = self.engine.is_short_of_room();
            if self.unread || (more && round + 1 == ROUNDS) {
                cx.waker().wake_by_ref();
            }
            if !more {
                break;
            }
        }
        Poll::Pending
    }

    /// Queues further body bytes as windows allow.
    fn pump(&mut self) {
        let mut drained = std::mem::take(&mut self.drained);
        loop {
            self.engine.pump(|place| drained.push(place));
            if drained.is_empty() {
                break;
            }
            for place in drained.drain(..) {
                self.poll_place(place);
            }
        }
        self.drained = drained;
    }

    /// Rebuilds all wakers: the task that drives the connection has changed.
    fn rebuild_wakers(&mut self, task: &Waker) {
        self.ready = Ready::new(self.streams_max as usize, task);
        for (place, waker) in self.wakers.iter_mut().enumerate() {
            *waker = self.ready.waker(place);
            self.ready.mark(place);
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let server = self.server;
        let mut scratch = server.http2_buffers.input();
        for _ in 0..READS {
            self.unread = self.engine.is_full();
            if self.unread {
                return Poll::Pending;
            }
            let kept = self.rest.len();
            scratch[..kept].copy_from_slice(&self.rest);
            let mut space = ReadBuf::new(&mut scratch[kept..]);
            let read = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut space));
            self.moved = self.moved.wrapping_add(1);
            match read {
                Ok(()) if !space.filled().is_empty() => {}
                _ => {
                    self.drop_all(Reason::CANCEL);
                    return Poll::Ready(End::Gone);
                }
            }
            let len = kept + space.filled().len();
            let input = &scratch[..len];
            match self.take(input) {
                Ok(used) => {
                    self.rest.clear();
                    self.rest.extend_from_slice(&input[used..]);
                }
                Err(reason) => {
                    self.engine.fail(reason);
                    self.drop_all(reason);
                    return Poll::Ready(End::Failed(reason));
                }
            }
        }
        // other tasks run first
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Processes all complete frames of the input.
    fn take(&mut self, input: &[u8]) -> Result<usize, Reason> {
        let mut at = 0;
        loop {
            let received = self.engine.receive(&input[at..])?;
            if received.used == 0 {
                return Ok(at);
            }
            if let Some(event) = received.event {
                self.on_event(event, &input[at..])?;
            }
            at += received.used;
        }
    }

    fn on_event(&mut self, event: Event, input: &[u8]) -> Result<(), Reason> {
        match event {
            Event::Request { place, head, end } => self.on_request(place, head, end),
            Event::TooLarge { place } => self.on_too_large(place),
            Event::Data { place, range, end } => {
                let len = range.len();
                let unwanted = match self.slots.get(place).and_then(|slot| slot.lane.as_ref()) {
                    Some(lane) => lane.push(&input[range], end),
                    None => len,
                };
                self.engine.discard(place, unwanted as u32);
                self.clear_if_over(place);
            }
            Event::Trailers { place, trailers } => {
                if let Some(lane) = self.slots.get(place).and_then(|slot| slot.lane.as_ref()) {
                    lane.push_trailers(trailers);
                }
                self.clear_if_over(place);
            }
            Event::Reset { place, reason } => {
                let unseen = matches!(
                    self.slots.get(place).map(|slot| &slot.work),
                    Some(Work::Waiting(_))
                );
                self.clear(place, reason);
                if unseen {
                    self.engine.pending_reset()?;
                }
            }
        }
        Ok(())
    }

    /// Initializes the work of a stream at this place.
    fn slot(&mut self, place: usize) -> &mut StreamWork<A> {
        while self.slots.len() <= place {
            self.wakers.push(self.ready.waker(self.slots.len()));
            self.slots.push(StreamWork::default());
        }
        let slot = &mut self.slots[place];
        *slot = StreamWork {
            taken: true,
            ..StreamWork::default()
        };
        slot
    }

    fn on_request(&mut self, place: usize, head: Box<head::Request>, end: bool) {
        self.begun = self.begun.wrapping_add(1);
        self.slot(place);
        let connects = head.protocol.is_some() || head.method == Method::CONNECT;
        let slot = &mut self.slots[place];
        slot.connects = connects;
        if !end || connects {
            let expects = head.headers.contains_key(EXPECT);
            let lane = Lane::new(self.wakers[place].clone(), head.content_length, expects);
            if end {
                lane.push(&[], true);
            }
            slot.lane = Some(lane);
        }
        slot.work = Work::Waiting(head);
        self.ready.mark(place);
    }

    /// Replies to a request whose headers are too large.
    fn on_too_large(&mut self, place: usize) {
        self.begun = self.begun.wrapping_add(1);
        let slot = self.slot(place);
        slot.answered = true;
        let refusal = Refusal::HeadersTooLarge;
        self.server.count(refusal.counter());
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let unserved = refusal.unserved(None, status);
        self.server.handler.refused(self.connection, &unserved);
        self.reply_with_status(place, status);
        self.finish_if_answered(place);
    }

    fn reply_with_status(&mut self, place: usize, status: StatusCode) {
        let (parts, ()) = Server::<A>::own_head(self.connection, status, "").into_parts();
        let mut headers = parts.headers;
        headers.insert(DATE, self.server.date());
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        self.engine.respond(place, status, &headers, true);
    }

    /// Replies with a short text, or without it if the stream cannot send data.
    fn reply_with_text(&mut self, place: usize, status: StatusCode, text: &'static str) {
        let (parts, ()) = Server::<A>::own_head(self.connection, status, text).into_parts();
        let mut headers = parts.headers;
        headers.insert(DATE, self.server.date());
        self.engine.respond(place, status, &headers, false);
        match self.engine.wants(place) {
            true => (self.engine).data(place, Bytes::from_static(text.as_bytes()), true),
            false => self.engine.finish(place, None),
        }
    }

    /// Polls each ready stream once. Streams that become ready meanwhile wait for the next turn, so that other tasks of
    /// the worker run.
    fn poll_ready(&mut self) {
        for word in 0..self.ready.words() {
            let mut bits = self.ready.take(word);
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let place = word * 64 + bit as usize;
                if self.engine.is_full() {
                    self.ready.mark(place);
                } else {
                    self.poll_place(place);
                }
            }
        }
    }

    /// Polls one stream.
    fn poll_place(&mut self, place: usize) {
        let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.taken) else {
            return;
        };
        let work = std::mem::replace(&mut slot.work, Work::None);
        let lane = slot.lane.clone();
        if let Some(lane) = &lane {
            lane.watch(true);
        }
        let supervisor = self.server.supervisor();
        // lent, and put back below: a clone would update its reference count twice
        let waker = std::mem::replace(&mut self.wakers[place], Waker::noop().clone());
        let mut cx = Context::from_waker(&waker);
        // a panic ends only its stream
        let work = supervisor.guard("stream", || self.work(place, work, &mut cx));
        self.wakers[place] = waker;
        match work {
            Some(work) => self.slots[place].work = work,
            None => self.engine.reset(place, Reason::INTERNAL_ERROR),
        }
        if let Some(lane) = &lane {
            lane.watch(false);
            let (released, dropped) = lane.take_released();
            self.engine.release(place, released);
            self.engine.discard(place, dropped);
            if lane.take_continue_wanted() {
                self.engine
                    .interim(place, StatusCode::CONTINUE, &HeaderMap::new());
            }
        }
        self.finish_if_answered(place);
    }

    fn work(&mut self, place: usize, work: Work<A>, cx: &mut Context<'_>) -> Work<A> {
        match work {
            Work::None => Work::None,
            Work::Waiting(head) => self.begin(place, *head, cx),
            Work::Answering(mut future_slot) => {
                let polled = match future_slot.as_mut().as_pin_mut() {
                    Some(future) => future.poll(cx),
                    None => Poll::Pending,
                };
                if self.connection.interim.any() {
                    for (status, headers) in self.connection.interim.take_heads() {
                        self.engine.interim(place, status, &headers);
                    }
                }
                match polled {
                    Poll::Pending => Work::Answering(future_slot),
                    Poll::Ready(response) => {
                        self.seats.give_back(future_slot);
                        self.respond(place, response, cx)
                    }
                }
            }
            Work::Sending(body) => self.send(place, body, cx),
            Work::Tunnel => self.send_tunnel(place),
        }
    }

    /// Begins to answer a request.
    fn begin(&mut self, place: usize, head: head::Request, cx: &mut Context<'_>) -> Work<A> {
        let mut request = Request::new(match &self.slots[place].lane {
            Some(lane) => DownstreamBody::Stream(lane.inlet()),
            None => DownstreamBody::Empty,
        });
        *request.method_mut() = head.method;
        *request.uri_mut() = head.uri;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = head.headers;
        let server = self.server;
        let underscores = server.settings().underscores.apply(request.headers_mut());
        let checked = underscores.and_then(|()| check::head(&request, Http10::Accept));
        if let Err(refusal) = checked {
            let status = server.refuse(self.connection, &request, refusal);
            self.slots[place].answered = true;
            let has_text =
                server.is_http_proxy(self.connection) && *request.method() != Method::HEAD;
            match has_text.then(|| refusal.advice(&request)) {
                None | Some("") => self.reply_with_status(place, status),
                Some(text) => self.reply_with_text(place, status, text),
            }
            return Work::None;
        }
        if let Some(protocol) = head.protocol {
            extended_connect::to_upgrade(&mut request, protocol);
        }
        let future = server.handler.answer(self.connection, request);
        let future_slot = self.seats.take(future);
        self.work(place, Work::Answering(future_slot), cx)
    }

    /// Sends the head of a response, and the available part of its body.
    fn respond(
        &mut self,
        place: usize,
        mut response: Response<A::Body>,
        cx: &mut Context<'_>,
    ) -> Work<A> {
        let slot = &mut self.slots[place];
        slot.answered = true;
        if response.extensions().get::<Unreached>().is_some() {
            self.engine.reset(place, Reason::REFUSED_STREAM);
            self.engine.leave();
            return Work::None;
        }
        let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if slot.connects && !extended_connect::to_connected(&mut response) {
            self.reply_with_status(place, StatusCode::BAD_GATEWAY);
            return Work::None;
        }
        let tunnels = switched && slot.connects;
        let (mut parts, body) = response.into_parts();
        let end = !tunnels && body.is_end_stream();
        let headers = &mut parts.headers;
        if parts.status == StatusCode::NO_CONTENT {
            // no length to any method (RFC 9110, section 8.6), and clients reject one
            headers.remove(CONTENT_LENGTH);
        }
        if !headers.contains_key(DATE) {
            headers.insert(DATE, self.server.date());
        }
        if !end
            && !tunnels
            && let Some(length) = body.size_hint().exact()
            && !headers.contains_key(CONTENT_LENGTH)
        {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        self.engine.respond(place, parts.status, headers, end);
        self.engine.recycle(parts.headers);
        match (tunnels, end) {
            (true, _) => self.send_tunnel(place),
            (false, true) => Work::None,
            (false, false) => self.send(place, body, cx),
        }
    }

    /// Sends the available part of a body.
    fn send(&mut self, place: usize, mut body: A::Body, cx: &mut Context<'_>) -> Work<A> {
        while self.engine.wants(place) && !self.engine.is_full() {
            match Pin::new(&mut body).poll_frame(cx) {
                Poll::Pending => return Work::Sending(body),
                Poll::Ready(None) => {
                    self.engine.finish(place, None);
                    return Work::None;
                }
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        let end = body.is_end_stream();
                        if !data.is_empty() || end {
                            self.engine.data(place, data, end);
                        }
                        if end {
                            return Work::None;
                        }
                    }
                    Err(frame) => {
                        self.engine.finish(place, frame.into_trailers().ok());
                        return Work::None;
                    }
                },
                Poll::Ready(Some(Err(_))) => {
                    self.engine.reset(place, Reason::INTERNAL_ERROR);
                    return Work::None;
                }
            }
        }
        if self.engine.wants(place) {
            // no room: the engine reports the place when there is some
            self.engine.wait_for_room(place);
        }
        Work::Sending(body)
    }

    /// Sends the bytes that a tunnel has for the peer.
    fn send_tunnel(&mut self, place: usize) -> Work<A> {
        let Some(lane) = self.slots[place].lane.clone() else {
            self.engine.reset(place, Reason::INTERNAL_ERROR);
            return Work::None;
        };
        while self.engine.wants(place) && !self.engine.is_full() {
            match lane.take_outbound() {
                None => return Work::Tunnel,
                Some(Outbound::Data(bytes)) => self.engine.data(place, bytes, false),
                Some(Outbound::End) => {
                    self.engine.finish(place, None);
                    return Work::None;
                }
                Some(Outbound::Broken) => {
                    self.engine.reset(place, Reason::CANCEL);
                    return Work::None;
                }
            }
        }
        if self.engine.wants(place) {
            self.engine.wait_for_room(place);
        }
        Work::Tunnel
    }

    /// Resets a stream whose response is complete if the rest of its request is not read, and removes it once it has
    /// ended.
    fn finish_if_answered(&mut self, place: usize) {
        let slot = &self.slots[place];
        let unread = slot.lane.as_ref().is_none_or(|lane| lane.is_abandoned());
        if unread && self.engine.is_answered(place) {
            // the response is complete, and the rest of the request is not read (RFC 9113, section 8.1)
            self.engine.reset(place, Reason::NO_ERROR);
        }
        self.clear_if_over(place);
    }

    fn clear_if_over(&mut self, place: usize) {
        if !self.engine.is_open(place) {
            self.clear(place, Reason::CANCEL);
        }
    }

    /// Removes a stream and drops its work.
    fn clear(&mut self, place: usize, reason: Reason) {
        let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.taken) else {
            return;
        };
        let slot = std::mem::take(slot);
        if !slot.answered {
            self.cut = self.cut.wrapping_add(1);
        }
        if let Some(lane) = &slot.lane {
            lane.fail(reason);
        }
        if let Work::Answering(future_slot) = slot.work {
            self.seats.give_back(future_slot);
        }
    }

    /// Ends all streams; tunnels, which are tasks of their own, are notified.
    pub(super) fn drop_all(&mut self, reason: Reason) {
        for place in 0..self.slots.len() {
            self.clear(place, reason);
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let output = self.engine.output();
        while !output.is_empty() {
            self.unflushed = true;
            let mut slices = [std::io::IoSlice::new(&[]); SLICES];
            let count = output.slices(&mut slices);
            let transport = self.socket.transport_mut();
            let written = ready!(transport.poll_gather(cx, &slices[..count]))?;
            self.moved = self.moved.wrapping_add(1);
            if written == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
            }
            output.advance(written);
        }
        if self.unflushed {
            ready!(Pin::new(self.socket.transport_mut()).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}
