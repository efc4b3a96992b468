//! The server's side of a connection: requests come, responses go.

use std::ops::Range;

use http::{HeaderMap, StatusCode};

use super::Reason;
use super::connection::{Block, Connection, OfStream, STREAM_MAX, Side, Taken};
use super::frame::{self, PREFACE, flag};
use super::head::{Builder, Flaw, Request};
use super::output::Output;
use super::settings::Settings;
use super::stream::Stream;

/// Payload of our PING behind the GOAWAY that announces that we leave.
const PING_LEAVING: [u8; 8] = *b"we leave";

/// A received event. `place` names a stream.
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
    /// Bytes of a request's body, to be given back with [`Connection::release`] as they are consumed.
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

impl From<OfStream> for Event {
    #[inline]
    fn from(of: OfStream) -> Self {
        match of {
            OfStream::Data { place, range, end } => Event::Data { place, range, end },
            OfStream::Trailers { place, trailers } => Event::Trailers { place, trailers },
            OfStream::Reset { place, reason, .. } => Event::Reset { place, reason },
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

/// How far we are in leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// GOAWAY was sent, with a PING behind it; requests before the answer are still served.
    Announced,
    /// Streams above the one that the last GOAWAY named are ignored.
    Final,
}

/// What only a server has.
#[derive(Debug)]
pub struct Role {
    preface: bool,
    leaving: Leaving,
}

/// The server's side of a connection.
pub type Server = Connection<Role>;

impl Server {
    /// A connection that begins with the client's preface.
    pub fn new(settings: Settings, output_bytes_max: usize) -> Self {
        let role = Role {
            preface: false,
            leaving: Leaving::No,
        };
        let mut output = Output::default();
        settings.write(output.buffer());
        Self::with(role, Side::Server, settings, output, output_bytes_max)
    }

    /// The peer reset a request before it was looked at.
    ///
    /// # Errors
    ///
    /// When there were too many since the last [`Connection::advance`].
    pub fn pending_reset(&mut self) -> Result<(), Reason> {
        self.guard.pending_reset()
    }

    /// Takes one frame from the front of the input.
    ///
    /// # Errors
    ///
    /// When the connection is over; then [`Server::fail`] tells the peer.
    pub fn receive(&mut self, input: &[u8]) -> Result<Received, Reason> {
        if !self.role.preface {
            let known = input.len().min(PREFACE.len());
            if input[..known] != PREFACE[..known] {
                return Err(Reason::PROTOCOL_ERROR);
            }
            self.role.preface = known == PREFACE.len();
            let used = if self.role.preface { known } else { 0 };
            return Ok(Received { used, event: None });
        }
        let (used, taken) = self.receive_frame(input)?;
        let event = match taken {
            Taken::Stream(of) => Some(of.into()),
            Taken::Block(block, fragments) => self.on_block(block, &fragments)?,
            Taken::Pong(payload) => {
                if payload == PING_LEAVING && self.role.leaving == Leaving::Announced {
                    self.leave_for_good();
                }
                None
            }
            // what is open goes on; the peer closes when it has what it wants
            Taken::GoAway { .. } | Taken::Nothing | Taken::Settings => None,
        };
        Ok(Received { used, event })
    }

    /// A header block is complete. Whatever becomes of it, it is decoded.
    fn on_block(&mut self, block: Block, fragments: &[u8]) -> Result<Option<Event>, Reason> {
        let id = block.stream;
        if let Some(place) = self.place_of(id) {
            let of = self.on_trailers(place, block, fragments)?;
            return Ok(Some(of.into()));
        }
        if id <= self.last || self.ignores_new {
            self.decode(fragments, &mut Builder::trailers(0))?;
            if self.may_linger(id) {
                self.late(id, 0)?;
                return Ok(None);
            }
            return Err(Reason::STREAM_CLOSED);
        }
        self.last = id;
        let headers = self.spare_maps.pop().unwrap_or_default();
        let bytes_max = self.settings.header_list_bytes_max as usize;
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
                let place = self.begin(id, request.content_length, block.end_stream);
                Ok(Some(Event::Request {
                    place,
                    head: Box::new(request),
                    end: block.end_stream,
                }))
            }
            Err(Flaw::TooLarge) => {
                let place = self.begin(id, None, block.end_stream);
                Ok(Some(Event::TooLarge { place }))
            }
            Err(Flaw::Malformed) => self.malformed(id),
        }
    }

    fn malformed(&mut self, id: u32) -> Result<Option<Event>, Reason> {
        self.guard.error_reset()?;
        self.write_reset(id, Reason::PROTOCOL_ERROR, None);
        Ok(None)
    }

    fn begin(&mut self, id: u32, length: Option<u64>, end: bool) -> usize {
        let (ours, theirs) = (self.peer.window_bytes, self.settings.stream_window_bytes);
        let place = self.open_stream(Stream::new(id, ours, theirs, length));
        self.end_received(place, end);
        place
    }

    /// Sends an interim response (1xx), unless the final one has gone out.
    pub fn interim(&mut self, place: usize, status: StatusCode, headers: &HeaderMap) {
        if self.wants(place) && !self.streams[place].responded {
            self.send_response(place, status, headers, 0);
        }
    }

    /// Sends the head of the final response; `end` if it has no body.
    pub fn respond(&mut self, place: usize, status: StatusCode, headers: &HeaderMap, end: bool) {
        if !self.wants(place) || self.streams[place].responded {
            return;
        }
        self.streams[place].responded = true;
        let flags = if end { flag::END_STREAM } else { 0 };
        self.send_response(place, status, headers, flags);
        if end {
            self.end_sent(place);
        }
    }

    fn send_response(&mut self, place: usize, status: StatusCode, headers: &HeaderMap, flags: u8) {
        self.send_block(place, flags, |encoder, output| {
            encoder.status(status, output);
            encoder.headers(headers, output);
        });
    }

    /// Announces that we leave. What the peer sent before it learns of it is still served.
    pub fn leave(&mut self) {
        if self.role.leaving == Leaving::No {
            self.role.leaving = Leaving::Announced;
            frame::write_go_away(self.output.buffer(), STREAM_MAX, Reason::NO_ERROR);
            frame::write_ping(self.output.buffer(), 0, PING_LEAVING);
        }
    }

    /// Leaves without waiting for what the peer may have sent: it learns that this was not served. False if that is so
    /// already.
    pub fn leave_for_good(&mut self) -> bool {
        if self.role.leaving == Leaving::Final {
            return false;
        }
        self.role.leaving = Leaving::Final;
        self.ignores_new = true;
        frame::write_go_away(self.output.buffer(), self.last, Reason::NO_ERROR);
        true
    }

    /// Whether we have left: nothing is open and nothing more is taken.
    pub fn has_left(&self) -> bool {
        self.role.leaving == Leaving::Final && self.open == 0
    }

    /// Tells the peer why the connection ends.
    pub fn fail(&mut self, reason: Reason) {
        frame::write_go_away(self.output.buffer(), self.last, reason);
    }
}

#[cfg(test)]
mod tests;
