//! Sending: header blocks, bodies as windows and output permit, window updates, resets.

use bytes::Bytes;
use http::HeaderMap;

use super::super::Reason;
use super::super::flow::ReceiveWindow;
use super::super::frame::{self, HEAD_BYTES, Kind, PAYLOAD_BYTES_MAX, flag};
use super::super::hpack::encoder::Encoder;
use super::super::stream::{Stream, Tail};
use super::{Connection, LATE_FRAMES, RECENT_RESETS};

/// Payload of keep-alive PINGs.
const PING_ALIVE: [u8; 8] = *b"is alive";

impl<R> Connection<R> {
    /// Whether the stream accepts more of its body: nothing of it is pending.
    pub fn wants(&self, place: usize) -> bool {
        self.streams.get(place).is_some_and(|stream| {
            stream.id != 0 && stream.state.can_send() && !stream.has_pending_data()
        })
    }

    /// Whether body bytes wait for the peer to open a window.
    pub fn is_blocked(&self) -> bool {
        let waits = |stream: &Stream| stream.id != 0 && !stream.pending.is_empty();
        self.open > 0 && self.streams.iter().any(waits)
    }

    /// Number of bytes that wait: of the output, and of bodies.
    pub fn pending_bytes(&mut self) -> usize {
        let bodies = self.streams.iter().map(|stream| stream.pending.len());
        self.output.len() + bodies.sum::<usize>()
    }

    /// Sends bytes of a body as far as possible; the rest is pending. `end` if they are the last.
    pub fn data(&mut self, place: usize, bytes: Bytes, end: bool) {
        if !self.wants(place) {
            return;
        }
        let stream = &mut self.streams[place];
        stream.pending = bytes;
        if end {
            stream.tail = Tail::End;
        }
        while self.send_some(place) {}
    }

    /// Ends a body, with trailers if there are any.
    pub fn finish(&mut self, place: usize, trailers: Option<HeaderMap>) {
        if self.wants(place) {
            self.streams[place].tail = match trailers {
                Some(trailers) if !trailers.is_empty() => Tail::Trailers(Box::new(trailers)),
                _ => Tail::End,
            };
            while self.send_some(place) {}
        }
    }

    /// Sends pending data round-robin as far as the windows allow. Calls `drained` with each place that accepts more
    /// data or whose stream has ended.
    pub fn pump(&mut self, mut drained: impl FnMut(usize)) {
        self.short_of_room = false;
        // streams skipped since the last one that could send
        let mut stuck = 0;
        while stuck < self.line.len() {
            if self.is_full() {
                self.short_of_room = true;
                return;
            }
            let Some(place) = self.line.pop_front() else {
                return;
            };
            let stream = &mut self.streams[place];
            stream.is_queued = false;
            if stream.id == 0 {
                continue;
            }
            let before = self.output.len();
            if self.send_some(place) {
                self.enqueue(place);
            }
            stuck = if self.output.len() == before {
                stuck + 1
            } else {
                0
            };
            if self.wants(place) || !self.is_open(place) {
                drained(place);
            }
        }
    }

    /// Whether sending stopped because the output was full.
    pub fn is_short_of_room(&self) -> bool {
        self.short_of_room
    }

    /// Requests that [`Connection::pump`] reports this place when there is room.
    pub fn wait_for_room(&mut self, place: usize) {
        self.short_of_room = true;
        let stream = &mut self.streams[place];
        if !stream.is_queued {
            stream.is_queued = true;
            self.line.push_back(place);
        }
    }

    /// Queues a stream with data to send.
    pub(super) fn enqueue(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        if stream.has_pending_data() && !stream.is_queued {
            stream.is_queued = true;
            self.line.push_back(place);
        }
    }

    /// Sends one frame of the pending data; returns whether more can be sent now.
    fn send_some(&mut self, place: usize) -> bool {
        let full = self.is_full();
        let stream = &mut self.streams[place];
        if stream.id == 0 {
            return false;
        }
        if !stream.pending.is_empty() {
            let window = self.send.available().min(stream.send.available());
            let len = stream.pending.len().min(window).min(PAYLOAD_BYTES_MAX);
            if len == 0 || full {
                self.short_of_room |= full;
                // an update of the stream's window queues it again
                if stream.send.available() > 0 {
                    self.enqueue(place);
                }
                return false;
            }
            let last = len == stream.pending.len() && matches!(stream.tail, Tail::End);
            let piece = if len == stream.pending.len() {
                std::mem::take(&mut stream.pending)
            } else {
                stream.pending.split_to(len)
            };
            stream.send.take(len);
            self.send.take(len);
            self.guard.data_sent();
            let flags = if last { flag::END_STREAM } else { 0 };
            frame::write_head(self.output.buffer(), len, Kind::Data, flags, stream.id);
            self.output.push(piece);
            if last {
                // otherwise a window update would end it again
                self.streams[place].tail = Tail::More;
                self.end_sent(place);
                return false;
            }
            if !self.streams[place].pending.is_empty() {
                return true;
            }
        }
        match std::mem::take(&mut self.streams[place].tail) {
            Tail::More => {}
            Tail::End => {
                let id = self.streams[place].id;
                frame::write_head(self.output.buffer(), 0, Kind::Data, flag::END_STREAM, id);
                self.end_sent(place);
            }
            Tail::Trailers(trailers) => {
                self.send_block(place, flag::END_STREAM, |encoder, output| {
                    encoder.headers(&trailers, output);
                });
                self.end_sent(place);
            }
        }
        false
    }

    /// Sends a header block, in as many frames as needed.
    pub(in super::super) fn send_block(
        &mut self,
        place: usize,
        flags: u8,
        fields: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let id = self.streams[place].id;
        let output = self.output.buffer();
        let start = output.len();
        frame::write_head(output, 0, Kind::Headers, 0, id);
        self.encoder.begin(output);
        fields(&mut self.encoder, output);
        let len = output.len() - start - HEAD_BYTES;
        let first = len.min(PAYLOAD_BYTES_MAX);
        let all = if first == len { flag::END_HEADERS } else { 0 };
        let head = frame::head(first, Kind::Headers, flags | all, id);
        output[start..start + HEAD_BYTES].copy_from_slice(&head);
        if first < len {
            let rest = output.split_off(start + HEAD_BYTES + first);
            let mut pieces = rest.chunks(PAYLOAD_BYTES_MAX).peekable();
            while let Some(piece) = pieces.next() {
                let flags = if pieces.peek().is_none() {
                    flag::END_HEADERS
                } else {
                    0
                };
                frame::write_head(output, piece.len(), Kind::Continuation, flags, id);
                output.extend_from_slice(piece);
            }
        }
    }

    pub(in super::super) fn end_sent(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        stream.state = stream.state.end_sent();
        self.free_if_over(place);
    }

    /// Marks received body bytes as consumed, which reopens the windows.
    pub fn release(&mut self, place: usize, bytes: u32) {
        let Some(stream) = self.streams.get_mut(place) else {
            return;
        };
        // at most the unread bytes, even after a miscount
        let bytes = bytes.min(stream.held);
        if bytes == 0 {
            return;
        }
        stream.held -= bytes;
        self.give_back(bytes);
        self.give_back_on(place, bytes);
    }

    /// Discards received body bytes: reopens the connection's window, but not the stream's.
    pub fn discard(&mut self, place: usize, bytes: u32) {
        if let Some(stream) = self.streams.get_mut(place) {
            let bytes = bytes.min(stream.held);
            stream.held -= bytes;
            self.give_back(bytes);
        }
    }

    pub(super) fn give_back_on(&mut self, place: usize, bytes: u32) {
        let stream = &mut self.streams[place];
        if let Some(back) = stream.receive.consume(bytes)
            && stream.state.can_receive()
        {
            frame::write_window_update(self.output.buffer(), stream.id, back);
        }
    }

    pub(super) fn give_back(&mut self, bytes: u32) {
        if let Some(back) = self.receive.consume(bytes) {
            frame::write_window_update(self.output.buffer(), 0, back);
        }
    }

    /// Resets a stream.
    pub fn reset(&mut self, place: usize, reason: Reason) {
        if self.is_open(place) {
            let (id, window) = (self.streams[place].id, self.streams[place].receive);
            self.write_reset(id, reason, Some(window));
            self.free(place);
        }
    }

    /// Resets a stream without a violation by the peer: its frames in flight are tolerated.
    pub(in super::super) fn give_up(&mut self, place: usize, reason: Reason) {
        if self.is_open(place) {
            self.late.frames = self.late.frames.saturating_add(LATE_FRAMES);
            self.reset(place, reason);
        }
    }

    /// Queues RST_STREAM and remembers the stream; `window` is its receive window, if it was ever open.
    pub(in super::super) fn write_reset(
        &mut self,
        id: u32,
        reason: Reason,
        window: Option<ReceiveWindow>,
    ) {
        if self.recent_resets.len() == RECENT_RESETS
            && let Some((_, window)) = self.recent_resets.pop_front()
        {
            self.late.bytes = self
                .late
                .bytes
                .saturating_add(u64::from(window.available()));
        }
        let window =
            window.unwrap_or_else(|| ReceiveWindow::new(self.settings.stream_window_bytes));
        self.recent_resets.push_back((id, window));
        frame::write_reset(self.output.buffer(), id, reason);
    }

    /// Whether our direction of the stream has ended, but not the peer's.
    pub fn is_answered(&self, place: usize) -> bool {
        self.is_open(place) && !self.streams[place].state.can_send()
    }

    /// Queues a keep-alive PING.
    pub fn ping(&mut self) {
        frame::write_ping(self.output.buffer(), 0, PING_ALIVE);
    }
}
