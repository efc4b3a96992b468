//! The client's side of a connection: requests go, responses come.
//!
//! The slot of a stream is kept until [`Client::vacate`], also when the stream is closed: received data may still be
//! read, and counts against the connection's window until it is.

use std::ops::Range;

use http::{HeaderMap, Method, StatusCode, Uri};

use super::Reason;
use super::connection::{Block, Connection, OfStream, STREAM_MAX, Side, Taken};
use super::frame::{self, PREFACE, flag};
use super::head::{Builder, Flaw, Response};
use super::output::Output;
use super::settings::Settings;
use super::stream::Stream;

/// Most interim responses to one request.
pub const INTERIMS_MAX: u32 = 32;

/// A received event. `place` names a stream.
#[derive(Debug)]
pub enum Event {
    /// A response.
    Response {
        /// Its stream.
        place: usize,
        /// Its head.
        head: Response,
        /// Whether it has no body.
        end: bool,
    },
    /// An interim response (1xx); others and the final one follow.
    Interim {
        /// Its stream.
        place: usize,
        /// Its status.
        status: StatusCode,
        /// Its headers.
        headers: HeaderMap,
    },
    /// Bytes of a response's body, to be given back with [`Connection::release`] as they are consumed.
    Data {
        /// Its stream.
        place: usize,
        /// Where the bytes are in the input.
        range: Range<usize>,
        /// Whether they are the last.
        end: bool,
    },
    /// Trailers of a response; its end.
    Trailers {
        /// Its stream.
        place: usize,
        /// The trailers.
        trailers: HeaderMap,
    },
    /// A stream is over before its end.
    Reset {
        /// Its place.
        place: usize,
        /// Why.
        reason: Reason,
        /// Whether the peer reset it; else we did, for what the peer sent.
        by_peer: bool,
    },
    /// The peer allows another number of streams, or says for the first time how many.
    Limit,
    /// The peer leaves. Streams that it has not looked at are over: streams that are no longer open.
    Leaving {
        /// Why.
        reason: Reason,
    },
}

impl From<OfStream> for Event {
    #[inline]
    fn from(of: OfStream) -> Self {
        match of {
            OfStream::Data { place, range, end } => Event::Data { place, range, end },
            OfStream::Trailers { place, trailers } => Event::Trailers { place, trailers },
            OfStream::Reset {
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

/// What was made of the front of the input.
#[derive(Debug)]
pub struct Received {
    /// Bytes of the input that are done with; none when more are needed.
    pub used: usize,
    /// The received event, if it is for the caller.
    pub event: Option<Event>,
}

/// What only a client has.
#[derive(Debug)]
pub struct Role {
    /// The last stream that the peer looks at, once it leaves.
    last_wanted: Option<u32>,
    /// Whether the peer has said how many streams it takes.
    settled: bool,
}

/// The client's side of a connection.
pub type Client = Connection<Role>;

impl Client {
    /// A connection that begins with our preface.
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

    /// How many streams the peer takes at a time, once it has said so.
    pub fn streams_max(&self) -> Option<usize> {
        let max = self.peer.concurrent_streams_max.unwrap_or(STREAM_MAX);
        self.role.settled.then_some(max as usize)
    }

    /// Whether a further request can be sent at all: the peer has not said that it leaves, and there are numbers left.
    pub fn can_request(&self) -> bool {
        self.role.last_wanted.is_none() && self.last < STREAM_MAX
    }

    /// Sends the head of a request, if [`Client::can_request`]; `end` if it has no body. Its stream's place, which is to
    /// be given back with [`Client::vacate`]. Whether the peer has room for it is for the caller to know.
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
            awaits_head: true,
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

    /// Whether any byte of a place's stream has been written.
    pub fn is_sent(&self, place: usize) -> bool {
        let stream = self.streams.get(place);
        stream.is_some_and(|stream| self.output.sent() > stream.begins_at)
    }

    /// Whether a stream's request can be sent further, now or later.
    pub fn is_sending(&self, place: usize) -> bool {
        self.is_open(place) && self.streams[place].state.can_send()
    }

    /// Gives up a stream that is not over.
    pub fn cancel(&mut self, place: usize, reason: Reason) {
        self.give_up(place, reason);
    }

    /// Releases a place, whose stream is over or is given up now.
    pub fn vacate(&mut self, place: usize) {
        self.give_up(place, Reason::CANCEL);
        self.make_vacant(place);
    }

    /// Takes one frame from the front of the input.
    ///
    /// # Errors
    ///
    /// When the connection is over; then [`Client::fail`] tells the peer.
    pub fn receive(&mut self, input: &[u8]) -> Result<Received, Reason> {
        let (used, taken) = self.receive_frame(input)?;
        let event = match taken {
            Taken::Stream(of) => Some(of.into()),
            Taken::Block(block, fragments) => self.on_block(block, &fragments)?,
            Taken::Settings => {
                self.role.settled = true;
                Some(Event::Limit)
            }
            Taken::GoAway { last, reason } => {
                self.on_go_away(last);
                Some(Event::Leaving { reason })
            }
            Taken::Nothing | Taken::Pong(_) => None,
        };
        Ok(Received { used, event })
    }

    fn on_block(&mut self, block: Block, fragments: &[u8]) -> Result<Option<Event>, Reason> {
        let Some(place) = self.place_of(block.stream) else {
            self.decode(fragments, &mut Builder::trailers(0))?;
            self.late(block.stream, 0)?;
            return Ok(None);
        };
        if !self.streams[place].awaits_head {
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

    /// RFC 9113, sections 8.1 and 8.6: an interim response ends nothing, and there is no switching of protocols.
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
        stream.awaits_head = false;
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

    /// The peer looks at no stream above `last`; it may say so again with a lower number.
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

    /// The connection is over, and with it all streams.
    pub fn end(&mut self) {
        self.on_go_away(0);
    }

    /// Tells the peer that we leave.
    pub fn leave(&mut self) {
        self.fail(Reason::NO_ERROR);
    }

    /// Tells the peer why the connection ends.
    pub fn fail(&mut self, reason: Reason) {
        // it has opened no stream
        frame::write_go_away(self.output.buffer(), 0, reason);
    }
}

#[cfg(test)]
mod tests;
