//! A request that is being sent: an encoded head, and a body that is polled.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use hyper::body::{Body, Frame};
use tokio::io::AsyncWrite;

use crate::upstream::buffers::Buffer;
use crate::upstream::stream::Stream;
use traffic::error::{BoxError, Error, Kind};
use wire::http1::response::decoder::is_too_late;
use wire::http1::response::head::{self, ExpectedResponse, Framing};

/// Reason that a message could not be sent.
#[derive(Debug)]
pub(super) enum Fault {
    /// The body failed, or has a wrong length.
    Body(Error),
    /// The socket failed.
    Socket(io::Error),
}

/// Remaining body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Chunks,
    Length(u64),
    Nothing,
}

/// Receives the interim responses (1xx) before the final one.
pub trait Interim {
    /// Receives an interim response as the upstream sent it.
    fn tell(&self, status: StatusCode, headers: HeaderMap);
}

/// A request that is being sent.
pub struct Message<B> {
    /// Encoded head, later also the framing of chunks.
    head: Buffer,
    /// Bytes of `head` that were written.
    written: usize,
    /// Body bytes after `head`.
    data: Bytes,
    /// Bytes after `data`.
    tail: &'static [u8],
    body: B,
    left: Left,
    framing: Framing,
    begun: bool,
    asked: ExpectedResponse,
    /// Receiver of interim responses; `None` if the client must not see them.
    interim: Option<Arc<dyn Interim>>,
}

impl<B> Message<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    /// Encodes the head into `memory`, and takes the fields out of `parts`.
    pub fn new(memory: Buffer, parts: &mut Parts, body: B) -> Self {
        Self::with_more(memory, parts, |_| (), body)
    }

    /// The same; `more` appends further lines to the head.
    pub fn with_more(
        mut memory: Buffer,
        parts: &mut Parts,
        more: impl FnOnce(&mut Vec<u8>),
        body: B,
    ) -> Self {
        let framing = Framing::of(&parts.headers, body.is_end_stream());
        head::encode(&mut memory, parts, framing, more);
        let asked = ExpectedResponse::by(parts);
        memory.home().keep_map(std::mem::take(&mut parts.headers));
        Self {
            head: memory,
            written: 0,
            data: Bytes::new(),
            tail: b"",
            left: match framing {
                Framing::Chunked => Left::Chunks,
                Framing::Empty => Left::Nothing,
                Framing::Length(bytes) => Left::Length(bytes),
            },
            body,
            framing,
            begun: false,
            asked,
            interim: None,
        }
    }

    /// Sets the receiver of interim responses.
    pub fn set_interim(&mut self, interim: Option<Arc<dyn Interim>>) {
        self.interim = interim;
    }

    pub(super) fn tell_interim(&self, status: StatusCode, headers: HeaderMap) {
        if let Some(interim) = &self.interim {
            interim.tell(status, headers);
        }
    }

    /// Returns the properties of the request that decide how its response is parsed.
    pub(super) fn asked(&self) -> &ExpectedResponse {
        &self.asked
    }

    /// Takes a header map for the response.
    pub(super) fn take_map(&self) -> HeaderMap {
        self.head.home().take_map()
    }

    /// Returns an unused header map.
    pub(super) fn keep_map(&self, map: HeaderMap) {
        self.head.home().keep_map(map);
    }

    /// Whether any byte was written to the socket.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// Whether sending can restart; impossible with a body, of which bytes may be consumed.
    pub fn can_rewind(&self) -> bool {
        self.framing == Framing::Empty
    }

    /// Replaces the value of a header, before sending begins or restarts.
    pub fn set_header(&mut self, name: &HeaderName, value: &HeaderValue) {
        debug_assert!(!self.begun && self.can_rewind());
        head::replace(&mut self.head, name, value);
    }

    /// Restarts sending; `false` if that is impossible.
    pub fn rewind(&mut self) -> bool {
        let possible = self.can_rewind();
        if possible {
            self.written = 0;
            self.begun = false;
        }
        possible
    }

    /// Sends available bytes; ready once the kernel has taken all of the message.
    pub(super) fn poll_send(
        &mut self,
        mut stream: Pin<&mut Stream>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        loop {
            let room = self.data.is_empty() && self.tail.is_empty();
            if room && self.left != Left::Nothing {
                match Pin::new(&mut self.body).poll_frame(cx) {
                    Poll::Ready(frame) => self.take(frame).map_err(Fault::Body)?,
                    // the head alone is a complete request: any further body byte would make it malformed
                    Poll::Pending if self.framing == Framing::Length(0) => return Poll::Pending,
                    // flush available bytes, above all the head
                    Poll::Pending if self.is_flushed() => {
                        ready!(stream.as_mut().poll_flush(cx)).map_err(Fault::Socket)?;
                        return Poll::Pending;
                    }
                    Poll::Pending => {}
                }
            }
            if !self.is_flushed() {
                ready!(self.poll_write(stream.as_mut(), cx)).map_err(Fault::Socket)?;
            } else if self.left == Left::Nothing {
                return stream.as_mut().poll_flush(cx).map_err(Fault::Socket);
            }
        }
    }

    fn is_flushed(&self) -> bool {
        self.written == self.head.len() && self.data.is_empty() && self.tail.is_empty()
    }

    fn poll_write(
        &mut self,
        stream: Pin<&mut Stream>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let head = &self.head[self.written..];
        let mut written = if self.data.is_empty() && self.tail.is_empty() {
            ready!(stream.get_mut().poll_gather(cx, &[IoSlice::new(head)]))?
        } else {
            let pieces = [head, &self.data, self.tail].map(IoSlice::new);
            ready!(stream.get_mut().poll_gather(cx, &pieces))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.begun = true;
        let of_head = written.min(head.len());
        self.written += of_head;
        written -= of_head;
        let of_data = written.min(self.data.len());
        self.data.advance(of_data);
        self.tail = &self.tail[written - of_data..];
        Poll::Ready(Ok(()))
    }

    /// Queues the framing and bytes of a body frame.
    fn take(&mut self, frame: Option<Result<Frame<Bytes>, B::Error>>) -> Result<(), Error> {
        let Some(frame) = frame else {
            return self.end(None);
        };
        let frame = frame.map_err(|error| Error::new(Kind::DownstreamBody).with_source(error))?;
        match frame.into_data() {
            Ok(data) => self.take_data(data),
            Err(frame) => self.end(frame.into_trailers().ok()),
        }
    }

    fn take_data(&mut self, data: Bytes) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.left {
            Left::Chunks => {
                self.frame(format_args!("{:x}\r\n", data.len()));
                self.data = data;
                self.tail = b"\r\n";
                if self.body.is_end_stream() {
                    self.tail = b"\r\n0\r\n\r\n";
                    self.left = Left::Nothing;
                }
            }
            Left::Length(left) => {
                let rest = left.checked_sub(data.len() as u64);
                *left = rest.ok_or_else(|| wrong_length("body is longer than its length"))?;
                // else wait for the end, so that the code that watches the body sees it
                if *left == 0 && self.body.is_end_stream() {
                    self.left = Left::Nothing;
                }
                self.data = data;
            }
            Left::Nothing => {}
        }
        Ok(())
    }

    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), Error> {
        let more = trailers.is_some();
        match self.left {
            Left::Length(1..) => return Err(wrong_length("body is shorter than its length")),
            Left::Chunks => {
                self.frame(format_args!("0\r\n"));
                for (name, value) in trailers.iter().flatten() {
                    if !is_too_late(name) {
                        head::line(&mut self.head, name, value);
                    }
                }
                self.head.extend_from_slice(b"\r\n");
            }
            Left::Length(0) | Left::Nothing => {}
        }
        // the code that watches the body sees its end only by polling it
        self.left = match self.body.is_end_stream() {
            false if more => Left::Length(0),
            _ => Left::Nothing,
        };
        Ok(())
    }

    /// Appends to `head`, replacing written bytes.
    fn frame(&mut self, text: std::fmt::Arguments<'_>) {
        use std::io::Write;
        if self.written == self.head.len() {
            self.head.clear();
            self.written = 0;
        }
        // Writing to memory cannot fail.
        let _ = self.head.write_fmt(text);
    }
}

fn wrong_length(text: &'static str) -> Error {
    Error::new(Kind::DownstreamBody).with_source(text)
}

#[cfg(test)]
mod tests;
