//! Shared by both sides of a connection: streams, windows, and the frames that both handle alike.
//!
//! [`Connection`] is generic over the state of its side; the sides are `server` and `client`. Each stream has a place,
//! which is reused; callers identify a stream by the number of its place. On the server side a place is free as soon as
//! its stream ends, so a caller that keeps state per place checks [`Connection::is_open`] after each call; on the
//! client side the caller releases it. Sending is in `send`.

mod places;
mod send;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use http::HeaderMap;

use self::places::Places;
use super::Reason;
use super::flow::{ReceiveWindow, SendWindow, WINDOW_DEFAULT};
use super::frame::{self, HEAD_BYTES, Head, Kind, PAYLOAD_BYTES_MAX, flag};
use super::guard::{BLOCK_FRAMES_MAX, Guard};
use super::head::Builder;
use super::hpack::TABLE_BYTES_DEFAULT;
use super::hpack::decoder::Decoder;
use super::hpack::encoder::Encoder;
use super::output::Output;
use super::settings::{Peer, Settings};
use super::stream::{State, Stream};

/// Streams that were reset recently: frames in flight for them are no violation, within their windows.
const RECENT_RESETS: usize = 128;

/// Largest stream number.
pub(super) const STREAM_MAX: u32 = (1 << 31) - 1;

/// Maximum spare header maps, and maximum capacity of one.
const SPARE_MAPS: usize = 16;
const SPARE_MAP_HEADERS: usize = 64;

/// Further frames, without DATA, accepted per stream that was reset without the peer's fault: its head, trailers,
/// window updates.
const LATE_FRAMES: u32 = 8;

/// Event of one stream. `place` identifies it.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// Bytes of a body.
    Data {
        place: usize,
        /// Position of the bytes in the input.
        range: Range<usize>,
        end: bool,
    },
    /// Trailers, which end a body.
    Trailers { place: usize, trailers: HeaderMap },
    /// Reset of the stream, by the peer or because of its violation.
    Reset {
        place: usize,
        reason: Reason,
        by_peer: bool,
    },
}

/// Result of a frame.
#[derive(Debug)]
pub(super) enum FrameResult<'a> {
    /// No event, or more bytes are needed.
    Nothing,
    /// Event of one stream.
    Stream(StreamEvent),
    /// Complete header block.
    Block(Block, Cow<'a, [u8]>),
    /// SETTINGS of the peer.
    Settings,
    /// Answer to a PING.
    Pong([u8; 8]),
    /// GOAWAY of the peer, which processes no stream above `last`.
    GoAway { last: u32, reason: Reason },
}

/// Stream and flags of a header block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    /// Whether the stream declares a dependency on itself.
    pub(super) depends_on_itself: bool,
}

/// An incomplete header block.
#[derive(Debug)]
struct Partial {
    block: Block,
    fragments: Vec<u8>,
    frames: u32,
}

/// Side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Opens streams.
    Client,
    /// Answers requests.
    Server,
}

/// One side of a connection; `R` is the state that only this side has.
#[derive(Debug)]
pub struct Connection<R> {
    pub(super) role: R,
    side: Side,
    pub(super) settings: Settings,
    pub(super) peer: Peer,
    decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) output: Output,
    pub(super) streams: Vec<Stream>,
    places: Places,
    pub(super) open: usize,
    /// Highest stream that was opened.
    pub(super) last: u32,
    /// Whether streams above `last` are ignored.
    pub(super) ignores_new: bool,
    send: SendWindow,
    receive: ReceiveWindow,
    pub(super) guard: Guard,
    partial: Option<Partial>,
    /// Whether the peer's first SETTINGS arrived.
    introduced: bool,
    /// Whether the peer acknowledged our SETTINGS.
    pub(super) acknowledged: bool,
    /// Queue of streams with data to send, served round-robin.
    line: VecDeque<usize>,
    /// Whether sending stopped because the output was full.
    short_of_room: bool,
    /// Queued output above which no DATA frame is added.
    output_bytes_max: usize,
    recent_resets: VecDeque<(u32, ReceiveWindow)>,
    /// Allowance for frames of streams that were reset without the peer's fault.
    late: LateFrameAllowance,
    pongs: u32,
    pub(super) spare_maps: Vec<HeaderMap>,
}

/// Allowance for frames of streams that were reset before the peer could know: frames without data, and data of streams
/// no longer in `recent_resets`.
#[derive(Debug, Default)]
struct LateFrameAllowance {
    frames: u32,
    bytes: u64,
}

impl<R> Connection<R> {
    /// Returns a connection; `output` contains the first bytes to send.
    pub(super) fn with(
        role: R,
        side: Side,
        settings: Settings,
        mut output: Output,
        output_bytes_max: usize,
    ) -> Self {
        let window = settings.connection_window_bytes.max(WINDOW_DEFAULT);
        if window > WINDOW_DEFAULT {
            frame::write_window_update(output.buffer(), 0, window - WINDOW_DEFAULT);
        }
        Self {
            role,
            side,
            peer: Peer::default(),
            decoder: Decoder::new(TABLE_BYTES_DEFAULT),
            encoder: Encoder::new(),
            output,
            streams: Vec::new(),
            places: Places::default(),
            open: 0,
            last: 0,
            ignores_new: false,
            send: SendWindow::new(WINDOW_DEFAULT),
            receive: ReceiveWindow::new(window),
            guard: Guard::new(settings.error_resets_max, settings.pending_resets_max),
            settings,
            partial: None,
            introduced: false,
            acknowledged: false,
            line: VecDeque::new(),
            short_of_room: false,
            output_bytes_max,
            recent_resets: VecDeque::new(),
            late: LateFrameAllowance::default(),
            pongs: 0,
            spare_maps: Vec::new(),
        }
    }

    /// Returns the bytes to write.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Whether the output is full, so that nothing should be added.
    pub fn is_full(&self) -> bool {
        self.output.len() >= self.output_bytes_max
    }

    /// Number of open streams.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether a header block is incomplete.
    pub fn is_in_block(&self) -> bool {
        self.partial.is_some()
    }

    /// Number of places allocated so far.
    pub fn places(&self) -> usize {
        self.streams.len()
    }

    /// Whether this place has an open stream.
    pub fn is_open(&self, place: usize) -> bool {
        self.streams.get(place).is_some_and(|stream| stream.id != 0)
    }

    /// Number of PING answers so far.
    pub fn pongs(&self) -> u32 {
        self.pongs
    }

    /// Advances the clock, in ticks of 0.1 s. Call it after all received requests were processed.
    pub fn advance(&mut self, tick: u64) {
        self.guard.advance(tick);
    }

    /// Keeps a header map for reuse.
    pub fn recycle(&mut self, mut headers: HeaderMap) {
        if self.spare_maps.len() < SPARE_MAPS && headers.capacity() <= SPARE_MAP_HEADERS {
            headers.clear();
            self.spare_maps.push(headers);
        }
    }

    /// Releases memory that a connection without streams does not need.
    pub fn rest(&mut self) {
        if self.open == 0 && self.partial.is_none() {
            if self.places.are_all_vacant(self.streams.len()) {
                self.streams = Vec::new();
                self.places = Places::default();
                self.line = VecDeque::new();
            }
            self.spare_maps = Vec::new();
            self.recent_resets.shrink_to_fit();
        }
    }

    /// Processes one frame at the front of the input; also returns its length, 0 if more bytes are needed.
    pub(super) fn receive_frame<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, FrameResult<'a>), Reason> {
        let Some(head) = Head::parse(input) else {
            return Ok((0, FrameResult::Nothing));
        };
        self.check_head(&head)?;
        let used = HEAD_BYTES + head.len;
        let Some(payload) = input.get(HEAD_BYTES..used) else {
            return Ok((0, FrameResult::Nothing));
        };
        let taken = match head.kind {
            Kind::Data => self.on_data(&head, payload)?,
            Kind::Headers => self.on_headers(&head, payload)?,
            Kind::Continuation => self.on_continuation(&head, payload)?,
            Kind::RstStream => self.on_reset(&head, payload)?,
            Kind::WindowUpdate => self.on_window_update(&head, payload)?,
            Kind::Priority => self.on_priority(&head, payload)?,
            Kind::PushPromise => return Err(Reason::PROTOCOL_ERROR),
            Kind::Settings | Kind::Ping | Kind::GoAway | Kind::Unknown => {
                self.guard.idle_frame()?;
                self.on_connection_frame(&head, payload)?
            }
        };
        Ok((used, taken))
    }

    /// Checks the head of a frame before its payload arrives.
    fn check_head(&self, head: &Head) -> Result<(), Reason> {
        if head.len > PAYLOAD_BYTES_MAX {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        // SETTINGS come first; PINGs of servers before them are answered
        let introduces = head.kind == Kind::Settings && !head.has(flag::ACK);
        let asks = head.kind == Kind::Ping && self.side == Side::Client;
        if !self.introduced && !introduces && !asks {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let continues = head.kind == Kind::Continuation;
        match &self.partial {
            Some(partial) if !continues || partial.block.stream != head.stream => {
                Err(Reason::PROTOCOL_ERROR)
            }
            None if continues => Err(Reason::PROTOCOL_ERROR),
            _ => Ok(()),
        }
    }

    pub(super) fn place_of(&mut self, id: u32) -> Option<usize> {
        self.places.find(id, &self.streams)
    }

    /// Whether a stream was never opened.
    fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || (id > self.last && !self.ignores_new)
    }

    /// Whether frames of a stream that is not open may still arrive.
    pub(super) fn may_linger(&self, id: u32) -> bool {
        let mut recent = self.recent_resets.iter();
        self.side == Side::Client || id > self.last || recent.any(|(recent, _)| *recent == id)
    }

    fn on_data(&mut self, head: &Head, payload: &[u8]) -> Result<FrameResult<'static>, Reason> {
        let len = payload.len() as u32;
        if self.is_idle(head.stream) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        // for any stream: all share the connection's window
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
        } else if stream.expects_head || !stream.count(data.len(), end) {
            Some(Reason::PROTOCOL_ERROR)
        } else {
            None
        };
        if let Some(reason) = fault {
            self.give_back(len);
            return self.error(place, reason).map(FrameResult::Stream);
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
        Ok(FrameResult::Stream(StreamEvent::Data {
            place,
            range: HEAD_BYTES + data.start..HEAD_BYTES + data.end,
            end,
        }))
    }

    /// Handles a frame for a stream that has ended.
    pub(super) fn late(&mut self, id: u32, bytes: u32) -> Result<FrameResult<'static>, Reason> {
        let mut recent = self.recent_resets.iter_mut();
        if let Some((_, window)) = recent.find(|(recent, _)| *recent == id && bytes > 0) {
            // a peer that writes small frames may have many in flight
            window.receive(bytes)?;
        } else if !self.may_linger(id) {
            self.guard.error_reset()?;
            self.write_reset(id, Reason::STREAM_CLOSED, None);
        } else if self.side == Side::Client && bytes > 0 && u64::from(bytes) <= self.late.bytes {
            self.late.bytes -= u64::from(bytes);
        } else if self.late.frames > 0 {
            self.late.frames -= 1;
        } else {
            self.guard.idle_frame()?;
        }
        Ok(FrameResult::Nothing)
    }

    fn on_headers<'a>(
        &mut self,
        head: &Head,
        payload: &'a [u8],
    ) -> Result<FrameResult<'a>, Reason> {
        if self.is_idle(head.stream) && self.side == Side::Client || head.stream.is_multiple_of(2) {
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
        let block = Block {
            stream: head.stream,
            end_stream: head.has(flag::END_STREAM),
            depends_on_itself,
        };
        if head.has(flag::END_HEADERS) {
            return Ok(FrameResult::Block(block, Cow::Borrowed(fragment)));
        }
        self.partial = Some(Partial {
            block,
            fragments: fragment.to_vec(),
            frames: 1,
        });
        Ok(FrameResult::Nothing)
    }

    fn on_continuation(
        &mut self,
        head: &Head,
        payload: &[u8],
    ) -> Result<FrameResult<'static>, Reason> {
        let Some(mut partial) = self.partial.take() else {
            return Err(Reason::PROTOCOL_ERROR);
        };
        // Half as much again as the limit of the list: a list that is only a little too large can be answered with 431.
        let bytes_max = self.settings.header_list_bytes_max as usize / 2 * 3;
        partial.frames += 1;
        let bytes = partial.fragments.len() + payload.len();
        if bytes > bytes_max || partial.frames > BLOCK_FRAMES_MAX {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        partial.fragments.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            self.partial = Some(partial);
            return Ok(FrameResult::Nothing);
        }
        Ok(FrameResult::Block(
            partial.block,
            Cow::Owned(partial.fragments),
        ))
    }

    /// Decodes a header block. Required for each one, even if it is ignored: blocks change the compression table.
    pub(super) fn decode(&mut self, block: &[u8], builder: &mut Builder) -> Result<(), Reason> {
        let decoded = self.decoder.decode(block, builder);
        decoded.map_err(|_| Reason::COMPRESSION_ERROR)
    }

    /// Decodes a header block as the trailers of a stream.
    pub(super) fn on_trailers(
        &mut self,
        place: usize,
        block: Block,
        fragments: &[u8],
    ) -> Result<StreamEvent, Reason> {
        let bytes_max = self.settings.header_list_bytes_max as usize;
        let mut trailers = Builder::trailers(bytes_max);
        self.decode(fragments, &mut trailers)?;
        let stream = &mut self.streams[place];
        if !stream.state.can_receive() {
            return self.error(place, Reason::STREAM_CLOSED);
        }
        let whole = block.end_stream && !block.depends_on_itself && stream.count(0, true);
        match trailers.into_trailers() {
            Ok(trailers) if whole => {
                self.end_received(place, true);
                Ok(StreamEvent::Trailers { place, trailers })
            }
            _ => self.error(place, Reason::PROTOCOL_ERROR),
        }
    }

    /// Assigns a place to a new stream.
    pub(super) fn open_stream(&mut self, mut stream: Stream) -> usize {
        let id = stream.id;
        self.last = id;
        let place = match self.places.take_vacant() {
            Some(place) => {
                // the previous stream may have left this place in the queue
                stream.is_queued = self.streams[place].is_queued;
                self.streams[place] = stream;
                place
            }
            None => {
                self.streams.push(stream);
                self.streams.len() - 1
            }
        };
        self.places.note(id, place, &self.streams);
        self.open += 1;
        place
    }

    pub(super) fn end_received(&mut self, place: usize, end: bool) {
        if end {
            let stream = &mut self.streams[place];
            stream.state = stream.state.end_received();
            self.free_if_over(place);
        }
    }

    fn on_reset(&mut self, head: &Head, payload: &[u8]) -> Result<FrameResult<'static>, Reason> {
        if payload.len() != 4 {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        if self.is_idle(head.stream) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let reason = Reason(frame::number(payload).unwrap_or_default());
        let Some(place) = self.place_of(head.stream) else {
            self.guard.idle_frame()?;
            return Ok(FrameResult::Nothing);
        };
        self.free(place);
        Ok(FrameResult::Stream(StreamEvent::Reset {
            place,
            reason,
            by_peer: true,
        }))
    }

    fn on_window_update(
        &mut self,
        head: &Head,
        payload: &[u8],
    ) -> Result<FrameResult<'static>, Reason> {
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
            return Ok(FrameResult::Nothing);
        }
        if self.is_idle(head.stream) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let Some(place) = self.place_of(head.stream) else {
            return Ok(FrameResult::Nothing);
        };
        let changed = match by {
            0 => Err(Reason::PROTOCOL_ERROR),
            by => self.streams[place].send.change(by),
        };
        match changed {
            Ok(()) => {
                self.enqueue(place);
                Ok(FrameResult::Nothing)
            }
            Err(reason) => self.error(place, reason).map(FrameResult::Stream),
        }
    }

    fn on_priority(&mut self, head: &Head, payload: &[u8]) -> Result<FrameResult<'static>, Reason> {
        self.guard.idle_frame()?;
        if head.stream == 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let reason = if payload.len() != 5 {
            Reason::FRAME_SIZE_ERROR
        } else if depends_on(payload, head.stream) {
            Reason::PROTOCOL_ERROR
        } else {
            return Ok(FrameResult::Nothing);
        };
        match self.place_of(head.stream) {
            Some(place) => self.error(place, reason).map(FrameResult::Stream),
            // a stream that was never opened cannot be reset
            None if self.is_idle(head.stream) => Err(reason),
            None => {
                self.guard.error_reset()?;
                self.write_reset(head.stream, reason, None);
                Ok(FrameResult::Nothing)
            }
        }
    }

    fn on_connection_frame(
        &mut self,
        head: &Head,
        payload: &[u8],
    ) -> Result<FrameResult<'static>, Reason> {
        if head.kind == Kind::Unknown {
            return Ok(FrameResult::Nothing);
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
                Ok(FrameResult::Nothing)
            }
            Kind::Settings => self.on_settings(payload),
            Kind::Ping => self.on_ping(head, payload),
            _ => {
                let (Some(last), Some(reason)) = (
                    frame::number(payload),
                    payload.get(4..).and_then(frame::number),
                ) else {
                    return Err(Reason::FRAME_SIZE_ERROR);
                };
                Ok(FrameResult::GoAway {
                    last: last & STREAM_MAX,
                    reason: Reason(reason),
                })
            }
        }
    }

    fn on_settings(&mut self, payload: &[u8]) -> Result<FrameResult<'static>, Reason> {
        let before = self.peer.window_bytes;
        self.peer.update(payload)?;
        // only servers push (RFC 9113, section 6.5.2)
        if self.side == Side::Client && self.peer.takes_pushes == Some(true) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        // entries lost when the table shrank stay lost, even if it grew again at once (RFC 7541, section 4.2)
        self.encoder.resize(self.peer.header_table_bytes_least);
        self.encoder.resize(self.peer.header_table_bytes);
        let by = i64::from(self.peer.window_bytes) - i64::from(before);
        for place in 0..self.streams.len() {
            if by != 0 && self.streams[place].id != 0 {
                self.streams[place].send.change(by)?;
                self.enqueue(place);
            }
        }
        self.introduced = true;
        frame::write_head(self.output.buffer(), 0, Kind::Settings, flag::ACK, 0);
        Ok(FrameResult::Settings)
    }

    fn on_ping(&mut self, head: &Head, payload: &[u8]) -> Result<FrameResult<'static>, Reason> {
        let payload = <[u8; 8]>::try_from(payload).map_err(|_| Reason::FRAME_SIZE_ERROR)?;
        if !head.has(flag::ACK) {
            frame::write_ping(self.output.buffer(), flag::ACK, payload);
            return Ok(FrameResult::Nothing);
        }
        self.pongs = self.pongs.wrapping_add(1);
        Ok(FrameResult::Pong(payload))
    }

    /// Resets an open stream for a violation by the peer.
    pub(super) fn error(&mut self, place: usize, reason: Reason) -> Result<StreamEvent, Reason> {
        self.guard.error_reset()?;
        self.reset(place, reason);
        Ok(StreamEvent::Reset {
            place,
            reason,
            by_peer: false,
        })
    }

    /// Ends the stream in a place. The server side then releases its unread bytes in the connection's window, and
    /// reuses the place.
    pub(super) fn free(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        stream.id = 0;
        stream.state = State::Closed;
        stream.pending = bytes::Bytes::new();
        stream.tail = super::stream::Tail::More;
        self.open -= 1;
        if self.side == Side::Server {
            self.make_vacant(place);
        }
    }

    /// Releases the place of an ended stream; its unread bytes count as consumed.
    pub(super) fn make_vacant(&mut self, place: usize) {
        let held = std::mem::take(&mut self.streams[place].held);
        self.places.give_back(place);
        self.give_back(held);
    }

    fn free_if_over(&mut self, place: usize) {
        if self.streams[place].state == State::Closed {
            self.free(place);
        }
    }
}

/// Windows of a connection.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub(super) sending: usize,
    pub(super) receiving: usize,
    pub(super) withheld: u32,
}

#[cfg(test)]
impl<R> Connection<R> {
    pub(super) fn windows(&self) -> Windows {
        Windows {
            sending: self.send.available(),
            receiving: self.receive.available() as usize,
            withheld: self.receive.withheld(),
        }
    }
}

/// Whether a priority names this stream as dependency.
fn depends_on(priority: &[u8], stream: u32) -> bool {
    frame::number(priority).is_some_and(|number| number & STREAM_MAX == stream)
}
