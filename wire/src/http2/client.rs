//! Client side of a connection: sends requests, receives responses.
//!
//! The place of a stream is kept until [`Client::vacate`], even when the stream is closed: its received data may still
//! be read, and counts against the connection's window until then.

use std::ops::Range;

use http::{HeaderMap, Method, StatusCode, Uri};

use super::Reason;
use super::connection::{Block, Connection, FrameResult, STREAM_MAX, Side, StreamEvent};
use super::frame::{self, PREFACE, flag};
use super::head::{Builder, Flaw, Response};
use super::output::Output;
use super::settings::Settings;
use super::stream::Stream;

/// Maximum interim responses to one request.
pub const INTERIMS_MAX: u32 = 32;

/// A received event. `place` identifies a stream.
#[derive(Debug)]
pub enum Event {
    /// A response.
    Response {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Head of the response.
        head: Response,
        /// Whether the response has no body.
        end: bool,
    },
    /// An interim response (1xx); the final one follows.
    Interim {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Status code.
        status: StatusCode,
        /// Header fields.
        headers: HeaderMap,
    },
    /// Bytes of a response's body; call [`Connection::release`] as they are consumed.
    Data {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Position of the bytes in the input.
        range: Range<usize>,
        /// Whether the body ends with these bytes.
        end: bool,
    },
    /// Trailers, which end a response.
    Trailers {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Trailers.
        trailers: HeaderMap,
    },
    /// A stream ended early.
    Reset {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Error code.
        reason: Reason,
        /// Whether the peer reset the stream; otherwise this side did, because the peer violated the protocol.
        by_peer: bool,
    },
    /// The peer changed its limit of concurrent streams, or announced it for the first time.
    Limit,
    /// The peer sent GOAWAY. Streams that it did not process have ended and are no longer open.
    Leaving {
        /// Error code.
        reason: Reason,
    },
}

impl From<StreamEvent> for Event {
    #[inline]
    fn from(of: StreamEvent) -> Self {
        match of {
            StreamEvent::Data { place, range, end } => Event::Data { place, range, end },
            StreamEvent::Trailers { place, trailers } => Event::Trailers { place, trailers },
            StreamEvent::Reset {
                place,
                reason,
                by_peer,
            } => Event::Reset {
                place,
                reason,
                by_peer,
            },
        }
    }
}

/// Result of processing the front of the input.
#[derive(Debug)]
pub struct Received {
    /// Bytes of the input to remove; 0 if more are needed.
    pub used: usize,
    /// Event for the caller, if any.
    pub event: Option<Event>,
}

/// State that only the client side has.
#[derive(Debug)]
pub struct Role {
    /// Last stream that the peer processes, after its GOAWAY.
    last_wanted: Option<u32>,
    /// Whether the peer's SETTINGS arrived.
    settled: bool,
}

/// Client side of a connection.
pub type Client = Connection<Role>;

impl Client {
    /// Returns a connection; its output begins with the preface.
    pub fn new(settings: Settings, output_bytes_max: usize) -> Self {
        let role = Role {
            last_wanted: None,
            settled: false,
        };
        let mut output = Output::default();
        output.buffer().extend_from_slice(PREFACE);
        settings.write_as_client(output.buffer());
        Self::with(role, Side::Client, settings, output, output_bytes_max)
    }

    /// Returns the maximum concurrent streams that the peer allows; `None` before its SETTINGS.
    pub fn streams_max(&self) -> Option<usize> {
        let max = self.peer.concurrent_streams_max.unwrap_or(STREAM_MAX);
        self.role.settled.then_some(max as usize)
    }

    /// Whether further requests are possible: the peer has sent no GOAWAY, and stream numbers are left.
    pub fn can_request(&self) -> bool {
        self.role.last_wanted.is_none() && self.last < STREAM_MAX
    }

    /// Sends the head of a request, if [`Client::can_request`]; `end` if it has no body. Returns the place of its
    /// stream, to be released with [`Client::vacate`]. The caller observes the peer's limit of concurrent streams.
    pub fn request(
        &mut self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        end: bool,
    ) -> Option<usize> {
        if !self.can_request() {
            return None;
        }
        let id = if self.last == 0 { 1 } else { self.last + 2 };
        let (ours, theirs) = (self.peer.window_bytes, self.settings.stream_window_bytes);
        let place = self.open_stream(Stream {
            expects_head: true,
            bodiless: *method == Method::HEAD,
            begins_at: self.output.end(),
            ..Stream::new(id, ours, theirs, None)
        });
        self.guard.request();
        let flags = if end { flag::END_STREAM } else { 0 };
        self.send_block(place, flags, |encoder, output| {
            encoder.request(method, uri, output);
            encoder.headers(headers, output);
        });
        if end {
            self.end_sent(place);
        }
        Some(place)
    }

    /// Whether any byte of the stream was written.
    pub fn is_sent(&self, place: usize) -> bool {
        let stream = self.streams.get(place);
        stream.is_some_and(|stream| self.output.sent() > stream.begins_at)
    }

    /// Whether the stream can send more of its request, now or later.
    pub fn is_sending(&self, place: usize) -> bool {
        self.is_open(place) && self.streams[place].state.can_send()
    }

    /// Cancels a stream that has not ended.
    pub fn cancel(&mut self, place: usize, reason: Reason) {
        self.give_up(place, reason);
    }

    /// Releases a place; cancels its stream if it has not ended.
    pub fn vacate(&mut self, place: usize) {
        self.give_up(place, Reason::CANCEL);
        self.make_vacant(place);
    }

    /// Processes one frame at the front of the input.
    ///
    /// # Errors
    ///
    /// If the connection must end; [`Client::fail`] then notifies the peer.
    pub fn receive(&mut self, input: &[u8]) -> Result<Received, Reason> {
        let (used, taken) = self.receive_frame(input)?;
        let event = match taken {
            FrameResult::Stream(of) => Some(of.into()),
            FrameResult::Block(block, fragments) => self.on_block(block, &fragments)?,
            FrameResult::Settings => {
                self.role.settled = true;
                Some(Event::Limit)
            }
            FrameResult::GoAway { last, reason } => {
                self.on_go_away(last);
                Some(Event::Leaving { reason })
            }
            FrameResult::Nothing | FrameResult::Pong(_) => None,
        };
        Ok(Received { used, event })
    }

    fn on_block(&mut self, block: Block, fragments: &[u8]) -> Result<Option<Event>, Reason> {
        let Some(place) = self.place_of(block.stream) else {
            self.decode(fragments, &mut Builder::trailers(0))?;
            self.late(block.stream, 0)?;
            return Ok(None);
        };
        if !self.streams[place].expects_head {
            let of = self.on_trailers(place, block, fragments)?;
            return Ok(Some(of.into()));
        }
        let headers = self.spare_maps.pop().unwrap_or_default();
        let bytes_max = self.settings.header_list_bytes_max as usize;
        let mut builder = Builder::head(headers, bytes_max);
        self.decode(fragments, &mut builder)?;
        let event = match builder.into_response() {
            _ if block.depends_on_itself => Err(Flaw::Malformed),
            Ok(head) if head.status.is_informational() => self.on_interim(place, block, head),
            Ok(head) => self.on_response(place, block, head),
            Err(flaw) => Err(flaw),
        };
        match event {
            Ok(event) => Ok(Some(event)),
            Err(_) => {
                let of = self.error(place, Reason::PROTOCOL_ERROR)?;
                Ok(Some(of.into()))
            }
        }
    }

    /// Returns the event of an interim response. Rejects one that ends the stream or switches protocols (RFC 9113,
    /// sections 8.1 and 8.6), and those beyond [`INTERIMS_MAX`].
    fn on_interim(&mut self, place: usize, block: Block, head: Response) -> Result<Event, Flaw> {
        let stream = &mut self.streams[place];
        stream.interims += 1;
        let switches = head.status == StatusCode::SWITCHING_PROTOCOLS;
        if block.end_stream || switches || stream.interims > INTERIMS_MAX {
            return Err(Flaw::Malformed);
        }
        Ok(Event::Interim {
            place,
            status: head.status,
            headers: head.headers,
        })
    }

    fn on_response(&mut self, place: usize, block: Block, head: Response) -> Result<Event, Flaw> {
        let stream = &mut self.streams[place];
        stream.expects_head = false;
        let bodiless = stream.bodiless
            || matches!(
                head.status,
                StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
            );
        stream.expected = if bodiless {
            Some(0)
        } else {
            head.content_length
        };
        if block.end_stream && !stream.count(0, true) {
            return Err(Flaw::Malformed);
        }
        self.end_received(place, block.end_stream);
        Ok(Event::Response {
            place,
            head,
            end: block.end_stream,
        })
    }

    /// Ends the streams above `last`, which the peer does not process; it may repeat that with a lower number.
    fn on_go_away(&mut self, last: u32) {
        let last = self
            .role
            .last_wanted
            .map_or(last, |before| before.min(last));
        self.role.last_wanted = Some(last);
        for place in 0..self.streams.len() {
            if self.streams[place].id > last {
                self.free(place);
            }
        }
    }

    /// Ends the connection with all of its streams.
    pub fn end(&mut self) {
        self.on_go_away(0);
    }

    /// Queues a GOAWAY without an error.
    pub fn leave(&mut self) {
        self.fail(Reason::NO_ERROR);
    }

    /// Queues a GOAWAY with an error code.
    pub fn fail(&mut self, reason: Reason) {
        // the server has opened no stream
        frame::write_go_away(self.output.buffer(), 0, reason);
    }
}

#[cfg(test)]
mod tests;
