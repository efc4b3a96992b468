//! The downstream side of a connection: frames in, events out. Sending is in `send`.
//!
//! Streams live in places that are used again; their numbers are what callers name them by. A place is free as soon as
//! its stream is over, so whoever keeps something per place looks at [`Server::is_open`] after each call.

mod send;

use std::collections::VecDeque;
use std::ops::Range;

use http::HeaderMap;

use super::Reason;
use super::flow::{ReceiveWindow, SendWindow, WINDOW_DEFAULT};
use super::frame::{self, HEAD_BYTES, Head, Kind, PAYLOAD_BYTES_MAX, PREFACE, flag};
use super::guard::{BLOCK_FRAMES_MAX, Guard};
use super::head::{Builder, Flaw, Request};
use super::hpack::TABLE_BYTES_DEFAULT;
use super::hpack::decoder::Decoder;
use super::hpack::encoder::Encoder;
use super::output::Output;
use super::settings::{Peer, Settings};
use super::stream::Stream;

/// Streams that were reset of late: what is still on its way for them is no violation, as far as their windows went.
const RECENT_RESETS: usize = 128;

/// Largest number of a stream.
const STREAM_MAX: u32 = (1 << 31) - 1;

/// Payloads of our PINGs.
const PING_ALIVE: [u8; 8] = *b"is alive";
const PING_LEAVING: [u8; 8] = *b"we leave";

/// Empty maps of headers that wait to be used again, and the largest that does.
const SPARE_MAPS: usize = 16;
const SPARE_MAP_HEADERS: usize = 64;

/// What came. `place` names a stream.
#[derive(Debug)]
pub enum Event {
    /// A request.
    Request {
        /// Its stream.
        place: usize,
        /// Its head.
        head: Box<Request>,
        /// Whether it has no body.
        end: bool,
    },
    /// A request whose headers are larger than we allow: to be answered with 431.
    TooLarge {
        /// Its stream.
        place: usize,
    },
    /// Bytes of a request's body, to be given back with [`Server::release`] as they are consumed.
    Data {
        /// Its stream.
        place: usize,
        /// Where the bytes are in the input.
        range: Range<usize>,
        /// Whether they are the last.
        end: bool,
    },
    /// Trailers of a request; its end.
    Trailers {
        /// Its stream.
        place: usize,
        /// The trailers.
        trailers: HeaderMap,
    },
    /// A stream was reset, by the peer or for what it did.
    Reset {
        /// Its place, which is free now.
        place: usize,
        /// Why.
        reason: Reason,
    },
}

/// What was made of the front of the input.
#[derive(Debug)]
pub struct Received {
    /// Bytes of the input that are done with; none when more are needed.
    pub used: usize,
    /// What came, if it is for the caller.
    pub event: Option<Event>,
}

/// A header block that has begun and not ended.
#[derive(Debug)]
struct Block {
    stream: u32,
    end_stream: bool,
    /// Whether its stream is said to depend on itself.
    depends_on_itself: bool,
    fragments: Vec<u8>,
    frames: u32,
}

/// How far we are in leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// GOAWAY was sent, with a PING behind it; what comes before the answer is still served.
    Announced,
    /// Streams above the one that the last GOAWAY named are ignored.
    Final,
}

/// The server's side of a connection.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    peer: Peer,
    decoder: Decoder,
    encoder: Encoder,
    output: Output,
    streams: Vec<Stream>,
    open: usize,
    /// The highest stream that was opened.
    last: u32,
    send: SendWindow,
    receive: ReceiveWindow,
    guard: Guard,
    block: Option<Block>,
    preface: bool,
    /// Whether the peer's first SETTINGS came.
    introduced: bool,
    /// Whether the peer knows our settings.
    acknowledged: bool,
    /// Places of streams that can send, in turns.
    line: VecDeque<usize>,
    /// Whether something was held back because as much waits to be written.
    short_of_room: bool,
    /// DATA is made while fewer bytes wait to be written.
    output_bytes_max: usize,
    recent_resets: VecDeque<(u32, ReceiveWindow)>,
    /// Streams that were reset for the peer's errors after their requests were handed out.
    provoked: u32,
    leaving: Leaving,
    pongs: u32,
    spare_maps: Vec<HeaderMap>,
}

impl Server {
    /// A connection that begins with the client's preface.
    pub fn new(settings: Settings, output_bytes_max: usize) -> Self {
        let window = settings.connection_window_bytes.max(WINDOW_DEFAULT);
        let mut output = Output::default();
        settings.write(output.buffer());
        if window > WINDOW_DEFAULT {
            frame::write_window_update(output.buffer(), 0, window - WINDOW_DEFAULT);
        }
        Self {
            peer: Peer::default(),
            decoder: Decoder::new(TABLE_BYTES_DEFAULT),
            encoder: Encoder::new(),
            output,
            streams: Vec::new(),
            open: 0,
            last: 0,
            send: SendWindow::new(WINDOW_DEFAULT),
            receive: ReceiveWindow::new(window),
            guard: Guard::new(settings.error_resets_max, settings.pending_resets_max),
            settings,
            block: None,
            preface: false,
            introduced: false,
            acknowledged: false,
            line: VecDeque::new(),
            short_of_room: false,
            output_bytes_max,
            recent_resets: VecDeque::new(),
            provoked: 0,
            leaving: Leaving::No,
            pongs: 0,
            spare_maps: Vec::new(),
        }
    }

    /// What waits to be written.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Whether so much waits to be written that nothing should be added.
    pub fn is_full(&self) -> bool {
        self.output.len() >= self.output_bytes_max
    }

    /// Streams that are open.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether a header block has begun and not ended.
    pub fn is_in_block(&self) -> bool {
        self.block.is_some()
    }

    /// Places that streams have had so far.
    pub fn places(&self) -> usize {
        self.streams.len()
    }

    /// Whether there is a stream in this place.
    pub fn is_open(&self, place: usize) -> bool {
        self.streams.get(place).is_some_and(|stream| stream.id != 0)
    }

    /// Answers to our PINGs so far.
    pub fn pongs(&self) -> u32 {
        self.pongs
    }

    /// Streams that we reset for the peer's errors after their requests were handed out.
    pub fn provoked(&self) -> u32 {
        self.provoked
    }

    /// Time has come to this tick of a tenth of a second, and all requests so far were looked at.
    pub fn advance(&mut self, tick: u64) {
        self.guard.advance(tick);
    }

    /// The peer reset a request before it was looked at.
    ///
    /// # Errors
    ///
    /// When there were too many since the last [`Server::advance`].
    pub fn pending_reset(&mut self) -> Result<(), Reason> {
        self.guard.pending_reset()
    }

    /// Takes back a map of headers for requests to come.
    pub fn recycle(&mut self, mut headers: HeaderMap) {
        if self.spare_maps.len() < SPARE_MAPS && headers.capacity() <= SPARE_MAP_HEADERS {
            headers.clear();
            self.spare_maps.push(headers);
        }
    }

    /// Gives back memory that a connection without streams does not need.
    pub fn rest(&mut self) {
        if self.open == 0 && self.block.is_none() {
            self.streams = Vec::new();
            self.line = VecDeque::new();
            self.spare_maps = Vec::new();
            self.recent_resets.shrink_to_fit();
        }
    }

    /// Takes one frame from the front of the input.
    ///
    /// # Errors
    ///
    /// When the connection is over; then [`Server::fail`] tells the peer.
    pub fn receive(&mut self, input: &[u8]) -> Result<Received, Reason> {
        let more = Received {
            used: 0,
            event: None,
        };
        if !self.preface {
            let known = input.len().min(PREFACE.len());
            if input[..known] != PREFACE[..known] {
                return Err(Reason::PROTOCOL_ERROR);
            }
            self.preface = known == PREFACE.len();
            let used = if self.preface { known } else { 0 };
            return Ok(Received { used, ..more });
        }
        let Some(head) = Head::parse(input) else {
            return Ok(more);
        };
        self.check_head(&head)?;
        let used = HEAD_BYTES + head.len;
        let Some(payload) = input.get(HEAD_BYTES..used) else {
            return Ok(more);
        };
        let event = match head.kind {
            Kind::Data => self.on_data(&head, payload)?,
            Kind::Headers => self.on_headers(&head, payload)?,
            Kind::Continuation => self.on_continuation(&head, payload)?,
            Kind::RstStream => self.on_reset(&head, payload)?,
            Kind::WindowUpdate => self.on_window_update(&head, payload)?,
            Kind::Priority => self.on_priority(&head, payload)?,
            Kind::PushPromise => return Err(Reason::PROTOCOL_ERROR),
            Kind::Settings | Kind::Ping | Kind::GoAway | Kind::Unknown => {
                self.guard.idle_frame()?;
                self.on_connection_frame(&head, payload)?;
                None
            }
        };
        Ok(Received { used, event })
    }

    /// What can be said of a frame before its payload is there.
    fn check_head(&self, head: &Head) -> Result<(), Reason> {
        if head.len > PAYLOAD_BYTES_MAX {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        if !self.introduced && (head.kind != Kind::Settings || head.has(flag::ACK)) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let continues = head.kind == Kind::Continuation;
        match &self.block {
            Some(block) if !continues || block.stream != head.stream => Err(Reason::PROTOCOL_ERROR),
            None if continues => Err(Reason::PROTOCOL_ERROR),
            _ => Ok(()),
        }
    }

    fn place_of(&self, id: u32) -> Option<usize> {
        if id == 0 {
            return None;
        }
        self.streams.iter().position(|stream| stream.id == id)
    }

    /// Whether a stream is one that the peer has not opened.
    fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || (id > self.last && self.leaving != Leaving::Final)
    }

    /// Whether frames of a stream that is not open may still come.
    fn may_linger(&self, id: u32) -> bool {
        id > self.last || self.recent_resets.iter().any(|(recent, _)| *recent == id)
    }

    fn on_data(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Reason> {
        let len = payload.len() as u32;
        if self.is_idle(head.stream) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        // of whatever stream: the connection's window is everyone's
        self.receive.receive(len)?;
        let data = frame::unpad(head, payload)?;
        let end = head.has(flag::END_STREAM);
        let Some(place) = self.place_of(head.stream) else {
            self.give_back(len);
            return self.late(head.stream, len);
        };
        let stream = &mut self.streams[place];
        let bytes = data.len() as u32;
        let fault = if !stream.state.can_receive() {
            Some(Reason::STREAM_CLOSED)
        } else if let Err(reason) = stream.receive.receive(len) {
            Some(reason)
        } else if !stream.count(data.len(), end) {
            Some(Reason::PROTOCOL_ERROR)
        } else {
            None
        };
        if let Some(reason) = fault {
            self.give_back(len);
            return self.error(place, reason).map(Some);
        }
        if bytes > 0 {
            self.guard.data_received();
        } else if !end {
            self.guard.idle_frame()?;
        }
        stream.held += bytes;
        let padding = len - bytes;
        if padding > 0 {
            self.give_back(padding);
            self.give_back_on(place, padding);
        }
        self.end_received(place, end);
        Ok(Some(Event::Data {
            place,
            range: HEAD_BYTES + data.start..HEAD_BYTES + data.end,
            end,
        }))
    }

    /// DATA came for a stream that is over.
    fn late(&mut self, id: u32, len: u32) -> Result<Option<Event>, Reason> {
        let mut recent = self.recent_resets.iter_mut();
        if let Some((_, window)) = recent.find(|(recent, _)| *recent == id && len > 0) {
            // a peer that writes small frames had many on their way
            window.receive(len)?;
        } else if self.may_linger(id) {
            self.guard.idle_frame()?;
        } else {
            self.guard.error_reset()?;
            self.write_reset(id, Reason::STREAM_CLOSED, None);
        }
        Ok(None)
    }

    fn on_headers(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Reason> {
        if head.stream.is_multiple_of(2) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let range = frame::unpad(head, payload)?;
        let mut fragment = &payload[range];
        let mut depends_on_itself = false;
        if head.has(flag::PRIORITY) {
            let (priority, rest) = fragment
                .split_at_checked(5)
                .ok_or(Reason::FRAME_SIZE_ERROR)?;
            fragment = rest;
            depends_on_itself = depends_on(priority, head.stream);
        }
        let mut block = Block {
            stream: head.stream,
            end_stream: head.has(flag::END_STREAM),
            depends_on_itself,
            fragments: Vec::new(),
            frames: 1,
        };
        if head.has(flag::END_HEADERS) {
            return self.on_block(&block, fragment);
        }
        block.fragments.extend_from_slice(fragment);
        self.block = Some(block);
        Ok(None)
    }

    fn on_continuation(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Reason> {
        let Some(block) = &mut self.block else {
            return Err(Reason::PROTOCOL_ERROR);
        };
        // Half as much again as the list may have: what is a little too large can be told so.
        let bytes_max = self.settings.header_list_bytes_max as usize / 2 * 3;
        block.frames += 1;
        if block.fragments.len() + payload.len() > bytes_max || block.frames > BLOCK_FRAMES_MAX {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        block.fragments.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        match self.block.take() {
            Some(mut block) => {
                let fragments = std::mem::take(&mut block.fragments);
                self.on_block(&block, &fragments)
            }
            None => Ok(None),
        }
    }

    /// A header block is complete. Whatever becomes of it, it is decoded.
    fn on_block(&mut self, block: &Block, fragments: &[u8]) -> Result<Option<Event>, Reason> {
        let id = block.stream;
        let bytes_max = self.settings.header_list_bytes_max as usize;
        if let Some(place) = self.place_of(id) {
            let mut trailers = Builder::trailers(bytes_max);
            self.decode(fragments, &mut trailers)?;
            return self.on_trailers(place, block, trailers);
        }
        if id <= self.last || self.leaving == Leaving::Final {
            self.decode(fragments, &mut Builder::trailers(0))?;
            if self.may_linger(id) {
                self.guard.idle_frame()?;
                return Ok(None);
            }
            return Err(Reason::STREAM_CLOSED);
        }
        self.last = id;
        let headers = self.spare_maps.pop().unwrap_or_default();
        let mut builder = Builder::head(headers, bytes_max);
        self.decode(fragments, &mut builder)?;
        if self.open >= self.settings.concurrent_streams_max as usize {
            // before it knows our settings it cannot know better
            if self.acknowledged {
                self.guard.error_reset()?;
            } else {
                self.guard.idle_frame()?;
            }
            self.write_reset(id, Reason::REFUSED_STREAM, None);
            return Ok(None);
        }
        self.guard.request();
        let request = match builder.into_request() {
            _ if block.depends_on_itself => Err(Flaw::Malformed),
            made => made,
        };
        match request {
            Ok(request)
                if block.end_stream && request.content_length.is_some_and(|len| len > 0) =>
            {
                self.malformed(id)
            }
            Ok(request) => {
                let place = self.open_stream(id, request.content_length, block.end_stream);
                Ok(Some(Event::Request {
                    place,
                    head: Box::new(request),
                    end: block.end_stream,
                }))
            }
            Err(Flaw::TooLarge) => {
                let place = self.open_stream(id, None, block.end_stream);
                Ok(Some(Event::TooLarge { place }))
            }
            Err(Flaw::Malformed) => self.malformed(id),
        }
    }

    fn decode(&mut self, block: &[u8], builder: &mut Builder) -> Result<(), Reason> {
        let decoded = self.decoder.decode(block, builder);
        decoded.map_err(|_| Reason::COMPRESSION_ERROR)
    }

    fn malformed(&mut self, id: u32) -> Result<Option<Event>, Reason> {
        self.guard.error_reset()?;
        self.write_reset(id, Reason::PROTOCOL_ERROR, None);
        Ok(None)
    }

    fn open_stream(&mut self, id: u32, length: Option<u64>, end: bool) -> usize {
        let mut stream = Stream::new(
            id,
            self.peer.window_bytes,
            self.settings.stream_window_bytes,
            length,
        );
        let free = self.streams.iter().position(|stream| stream.id == 0);
        let place = match free {
            Some(place) => {
                // the stream before it may have left the place standing in line
                stream.in_line = self.streams[place].in_line;
                self.streams[place] = stream;
                place
            }
            None => {
                self.streams.push(stream);
                self.streams.len() - 1
            }
        };
        self.open += 1;
        self.end_received(place, end);
        place
    }

    fn on_trailers(
        &mut self,
        place: usize,
        block: &Block,
        trailers: Builder,
    ) -> Result<Option<Event>, Reason> {
        let stream = &mut self.streams[place];
        if !stream.state.can_receive() {
            return self.error(place, Reason::STREAM_CLOSED).map(Some);
        }
        let whole = block.end_stream && !block.depends_on_itself && stream.count(0, true);
        match trailers.into_trailers() {
            Ok(trailers) if whole => {
                self.end_received(place, true);
                Ok(Some(Event::Trailers { place, trailers }))
            }
            _ => self.error(place, Reason::PROTOCOL_ERROR).map(Some),
        }
    }

    fn end_received(&mut self, place: usize, end: bool) {
        if end {
            let stream = &mut self.streams[place];
            stream.state = stream.state.end_received();
            self.free_if_over(place);
        }
    }

    fn on_reset(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Reason> {
        if payload.len() != 4 {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        if self.is_idle(head.stream) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let reason = Reason(frame::number(payload).unwrap_or_default());
        let Some(place) = self.place_of(head.stream) else {
            self.guard.idle_frame()?;
            return Ok(None);
        };
        self.free(place);
        Ok(Some(Event::Reset { place, reason }))
    }

    fn on_window_update(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Reason> {
        if payload.len() != 4 {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        self.guard.idle_frame()?;
        let by = i64::from(frame::number(payload).unwrap_or_default() & STREAM_MAX);
        if head.stream == 0 {
            if by == 0 {
                return Err(Reason::PROTOCOL_ERROR);
            }
            self.send.change(by)?;
            return Ok(None);
        }
        if self.is_idle(head.stream) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let Some(place) = self.place_of(head.stream) else {
            return Ok(None);
        };
        let changed = match by {
            0 => Err(Reason::PROTOCOL_ERROR),
            by => self.streams[place].send.change(by),
        };
        match changed {
            Ok(()) => {
                self.stand_in_line(place);
                Ok(None)
            }
            Err(reason) => self.error(place, reason).map(Some),
        }
    }

    fn on_priority(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Reason> {
        self.guard.idle_frame()?;
        if head.stream == 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let reason = if payload.len() != 5 {
            Reason::FRAME_SIZE_ERROR
        } else if depends_on(payload, head.stream) {
            Reason::PROTOCOL_ERROR
        } else {
            return Ok(None);
        };
        match self.place_of(head.stream) {
            Some(place) => self.error(place, reason).map(Some),
            // a stream that is not open cannot be reset
            None if self.is_idle(head.stream) => Err(reason),
            None => Ok(None),
        }
    }

    fn on_connection_frame(&mut self, head: &Head, payload: &[u8]) -> Result<(), Reason> {
        if head.kind == Kind::Unknown {
            return Ok(());
        }
        if head.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        match head.kind {
            Kind::Settings if head.has(flag::ACK) => {
                if !payload.is_empty() {
                    return Err(Reason::FRAME_SIZE_ERROR);
                }
                self.acknowledged = true;
                Ok(())
            }
            Kind::Settings => self.on_settings(payload),
            Kind::Ping => self.on_ping(head, payload),
            // what is open goes on; the peer closes when it has what it wants
            _ if payload.len() < 8 => Err(Reason::FRAME_SIZE_ERROR),
            _ => Ok(()),
        }
    }

    fn on_settings(&mut self, payload: &[u8]) -> Result<(), Reason> {
        let before = self.peer.window_bytes;
        self.peer.update(payload)?;
        // what a table lost when it shrank is gone, also when it grew again at once (RFC 7541, section 4.2)
        self.encoder.resize(self.peer.header_table_bytes_least);
        self.encoder.resize(self.peer.header_table_bytes);
        let by = i64::from(self.peer.window_bytes) - i64::from(before);
        for place in 0..self.streams.len() {
            if by != 0 && self.streams[place].id != 0 {
                self.streams[place].send.change(by)?;
                self.stand_in_line(place);
            }
        }
        self.introduced = true;
        frame::write_head(self.output.buffer(), 0, Kind::Settings, flag::ACK, 0);
        Ok(())
    }

    fn on_ping(&mut self, head: &Head, payload: &[u8]) -> Result<(), Reason> {
        let payload = <[u8; 8]>::try_from(payload).map_err(|_| Reason::FRAME_SIZE_ERROR)?;
        if !head.has(flag::ACK) {
            frame::write_ping(self.output.buffer(), flag::ACK, payload);
            return Ok(());
        }
        self.pongs = self.pongs.wrapping_add(1);
        if payload == PING_LEAVING && self.leaving == Leaving::Announced {
            self.leave_for_good();
        }
        Ok(())
    }

    /// The peer broke a rule on an open stream.
    fn error(&mut self, place: usize, reason: Reason) -> Result<Event, Reason> {
        self.guard.error_reset()?;
        self.provoked = self.provoked.wrapping_add(1);
        self.reset(place, reason);
        Ok(Event::Reset { place, reason })
    }

    /// Frees a place; what its stream holds of the connection's window is given back.
    fn free(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        let held = std::mem::take(&mut stream.held);
        stream.id = 0;
        stream.pending = bytes::Bytes::new();
        stream.tail = super::stream::Tail::More;
        self.open -= 1;
        self.give_back(held);
    }

    fn free_if_over(&mut self, place: usize) {
        if self.streams[place].state == super::stream::State::Closed {
            self.free(place);
        }
    }
}

/// Whether the stream that a priority names is this one.
fn depends_on(priority: &[u8], stream: u32) -> bool {
    frame::number(priority).is_some_and(|number| number & STREAM_MAX == stream)
}

#[cfg(test)]
mod tests;
