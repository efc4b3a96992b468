//! Server side of a connection: receives requests, sends responses.

use std::ops::Range;

use http::{HeaderMap, StatusCode};

use super::Reason;
use super::connection::{Block, Connection, FrameResult, STREAM_MAX, Side, StreamEvent};
use super::frame::{self, PREFACE, flag};
use super::head::{Builder, Flaw, Request};
use super::output::Output;
use super::settings::Settings;
use super::stream::Stream;

/// Payload of the PING after the GOAWAY that announces the shutdown.
const PING_LEAVING: [u8; 8] = *b"we leave";

/// A received event. `place` identifies a stream.
#[derive(Debug)]
pub enum Event {
    /// A request.
    Request {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Head of the request.
        head: Box<Request>,
        /// Whether the request has no body.
        end: bool,
    },
    /// A request whose headers exceed the limit, to be answered with 431.
    TooLarge {
        /// Index of the stream in the table of its connection.
        place: usize,
    },
    /// Bytes of a request's body; call [`Connection::release`] as they are consumed.
    Data {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Position of the bytes in the input.
        range: Range<usize>,
        /// Whether the body ends with these bytes.
        end: bool,
    },
    /// Trailers, which end a request.
    Trailers {
        /// Index of the stream in the table of its connection.
        place: usize,
        /// Trailers.
        trailers: HeaderMap,
    },
    /// Reset of a stream, by the peer or because of its violation.
    Reset {
        /// Place of the stream, vacant now.
        place: usize,
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
            StreamEvent::Reset { place, reason, .. } => Event::Reset { place, reason },
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

/// Progress of a graceful shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// GOAWAY was sent, then a PING; requests that arrive before its answer are still served.
    Announced,
    /// Streams above the one in the last GOAWAY are ignored.
    Final,
}

/// State that only the server side has.
#[derive(Debug)]
pub struct Role {
    preface: bool,
    leaving: Leaving,
}

/// Server side of a connection.
pub type Server = Connection<Role>;

impl Server {
    /// Returns a connection that expects the client's preface.
    pub fn new(settings: Settings, output_bytes_max: usize) -> Self {
        let role = Role {
            preface: false,
            leaving: Leaving::No,
        };
        let mut output = Output::default();
        settings.write(output.buffer());
        Self::with(role, Side::Server, settings, output, output_bytes_max)
    }

    /// Counts a request that the peer reset before it was processed.
    ///
    /// # Errors
    ///
    /// If there were too many since the last [`Connection::advance`].
    pub fn pending_reset(&mut self) -> Result<(), Reason> {
        self.guard.pending_reset()
    }

    /// Processes one frame at the front of the input.
    ///
    /// # Errors
    ///
    /// If the connection must end; [`Server::fail`] then notifies the peer.
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
            FrameResult::Stream(of) => Some(of.into()),
            FrameResult::Block(block, fragments) => self.on_block(block, &fragments)?,
            FrameResult::Pong(payload) => {
                if payload == PING_LEAVING && self.role.leaving == Leaving::Announced {
                    self.leave_for_good();
                }
                None
            }
            // open streams continue; the peer closes when it is done
            FrameResult::GoAway { .. } | FrameResult::Nothing | FrameResult::Settings => None,
        };
        Ok(Received { used, event })
    }

    /// Processes a complete header block. Decodes it in any case, to keep the table in step.
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
            // before its acknowledgment, the peer may not know our limit
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

    /// Sends an interim response (1xx), unless the final one was sent.
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

    /// Announces the shutdown by GOAWAY. Requests that the peer sent before it received that are still served.
    pub fn leave(&mut self) {
        if self.role.leaving == Leaving::No {
            self.role.leaving = Leaving::Announced;
            frame::write_go_away(self.output.buffer(), STREAM_MAX, Reason::NO_ERROR);
            frame::write_ping(self.output.buffer(), 0, PING_LEAVING);
        }
    }

    /// Ends the shutdown without waiting for requests in flight: GOAWAY tells the peer that they are not served.
    /// Returns false if that was done before.
    pub fn leave_for_good(&mut self) -> bool {
        if self.role.leaving == Leaving::Final {
            return false;
        }
        self.role.leaving = Leaving::Final;
        self.ignores_new = true;
        frame::write_go_away(self.output.buffer(), self.last, Reason::NO_ERROR);
        true
    }

    /// Whether the shutdown is complete: no stream is open, and none is accepted.
    pub fn has_left(&self) -> bool {
        self.role.leaving == Leaving::Final && self.open == 0
    }

    /// Queues a GOAWAY with an error code.
    pub fn fail(&mut self, reason: Reason) {
        frame::write_go_away(self.output.buffer(), self.last, reason);
    }
}

#[cfg(test)]
mod tests;
