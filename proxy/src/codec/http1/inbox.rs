//! Input of a connection: unread bytes, and the body of the request that is being received.

use std::future::Future as _;
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use http::HeaderMap;
use tokio::io::AsyncReadExt as _;

use crate::codec::refusal::Refusal;
use crate::codec::socket::Socket;
use crate::codec::transport::Gone;
use crate::codec::watchdog::StreamPosition;
use crate::exchange::downstream::body::Lane;
use wire::http1::request::decoder::{Decoder, Piece};
use wire::http1::request::head::Head;
use wire::http2::Reason;

/// Bytes per read, for heads and for bodies.
const HEAD_READ_BYTES: usize = 4 * 1024;
const BODY_READ_BYTES: usize = 16 * 1024;

/// Maximum bytes of later requests that are read before a response is sent.
const PIPELINED_BYTES_MAX: usize = 16 * 1024;

/// Input of a connection. Holds one head, or one piece of a body beyond the bytes in its lane.
pub(super) struct Inbox {
    /// Bytes that were read and not decoded.
    input: BytesMut,
    decoder: Decoder,
    /// Map for the fields of the next request: that of the previous response.
    memory: HeaderMap,
    /// Body of the request, until its end is read.
    lane: Option<OpenLane>,
    /// Reason that the body of the request is malformed.
    broken: Option<Refusal>,
    /// Whether the peer closed its direction within a body, or after a malformed one.
    ended: bool,
    moved: u32,
    starved: bool,
}

impl Inbox {
    pub(super) fn new(decoder: Decoder) -> Self {
        Self {
            input: BytesMut::new(),
            decoder,
            memory: HeaderMap::new(),
            lane: None,
            broken: None,
            ended: false,
            moved: 0,
            starved: false,
        }
    }

    /// Bytes of empty lines that were skipped before the next request.
    pub(super) fn skipped(&self) -> usize {
        self.decoder.skipped()
    }

    /// Returns the bytes that were read and not decoded.
    pub(super) fn into_rest(self) -> BytesMut {
        self.input
    }

    /// Whether bytes were read and not decoded.
    pub(super) fn has_rest(&self) -> bool {
        !self.input.is_empty()
    }

    /// Body of the request, until its end is read.
    pub(super) fn lane(&self) -> Option<&Lane> {
        self.lane.as_deref()
    }

    /// Reason that the body of the request is malformed, if it is.
    pub(super) fn broken(&self) -> Option<Refusal> {
        self.broken
    }

    /// Whether the peer closed its direction within a body, or after a malformed one.
    pub(super) fn is_cut_off(&self) -> bool {
        self.ended
    }

    /// Notes that the peer closed its direction behind unread bytes; after a malformed body that counts as cut off.
    pub(super) fn end_unread(&mut self) {
        self.ended |= self.broken.is_some();
    }

    /// Whether the connection cannot carry another request.
    pub(super) fn is_last(&self) -> bool {
        self.ended || self.broken.is_some()
    }

    /// Whether reading is paused, so that the end of the peer's direction is not seen.
    pub(super) fn is_blocked(&self) -> bool {
        let is_full = match self.lane() {
            Some(lane) => lane.is_full(),
            None => self.input.len() >= PIPELINED_BYTES_MAX,
        };
        is_full || self.is_last()
    }

    /// Returns the part of a request that is read now; `Between` while a complete request is being answered.
    pub(super) fn place(&self, answering: bool) -> StreamPosition {
        match self.lane {
            Some(_) => StreamPosition::Body,
            // the rest of the body is missing for good
            None if self.is_last() => StreamPosition::Body,
            None if self.has_rest() && !answering => StreamPosition::Head,
            None => StreamPosition::Between,
        }
    }

    /// Whether the request lacks bytes that the peer has to send.
    pub(super) fn is_starved(&self) -> bool {
        self.is_last() || (self.starved && !self.lane().is_some_and(Lane::is_expecting))
    }

    /// Counter of reads of body bytes.
    pub(super) fn moved(&self) -> u32 {
        self.moved
    }

    /// Keeps a header map for the fields of the next request.
    pub(super) fn keep(&mut self, mut memory: HeaderMap) {
        memory.clear();
        self.memory = memory;
    }

    /// Reads the body of the request into this lane from now on.
    pub(super) fn open(&mut self, lane: Rc<Lane>) {
        self.lane = Some(OpenLane(lane));
    }

    /// Reads a head; `Err(None)` if the peer closed its direction, even within a head.
    pub(super) fn poll_head(
        &mut self,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Option<Refusal>>> {
        loop {
            if self.has_rest() {
                match self.decoder.head(&mut self.input, &mut self.memory) {
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Ok(None) => {}
                    Err(refusal) => return Poll::Ready(Err(Some(refusal))),
                }
            }
            if ready!(self.poll_fill(HEAD_READ_BYTES, socket, cx)).is_err() {
                return Poll::Ready(Err(None));
            }
        }
    }

    /// Reads available bytes of the request body, up to the limit of its lane.
    pub(super) fn read_body(
        &mut self,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Result<(), Gone> {
        while let Some(lane) = &self.lane {
            lane.take_released();
            if lane.is_full() {
                return Ok(());
            }
            match self.decoder.body(&mut self.input) {
                Ok(Piece::Data(bytes)) => {
                    let end = !self.decoder.is_in_body();
                    lane.push_owned(bytes, end);
                    if end {
                        self.lane = None;
                    }
                }
                Ok(Piece::End(trailers)) => {
                    match trailers {
                        Some(trailers) => lane.push_trailers(trailers),
                        None => drop(lane.push(&[], true)),
                    }
                    self.lane = None;
                }
                Ok(Piece::More) => match self.poll_fill(BODY_READ_BYTES, socket, cx) {
                    Poll::Ready(Ok(())) => self.moved = self.moved.wrapping_add(1),
                    // the peer may still read a response to its incomplete request
                    Poll::Ready(Err(Gone::Ended)) => {
                        self.ended = true;
                        self.lane = None;
                    }
                    Poll::Ready(Err(Gone::Broken)) => return Err(Gone::Broken),
                    Poll::Pending => return Ok(()),
                },
                Err(refusal) => {
                    // the exchange replies
                    lane.fail(Reason::PROTOCOL_ERROR);
                    self.broken = Some(refusal);
                    self.lane = None;
                }
            }
        }
        Ok(())
    }

    /// Watches the peer while a complete request waits for its response; ready when the peer has closed. Bytes of later
    /// requests are buffered.
    ///
    /// A peer that closed its direction counts as gone even if all its requests were complete: a half-closed connection
    /// looks like a closed one, and a slow upstream would be kept busy for a client that left.
    pub(super) fn poll_gone(&mut self, socket: &mut Socket, cx: &mut Context<'_>) -> Poll<Gone> {
        while self.lane.is_none() && !self.is_blocked() {
            if let Err(gone) = ready!(self.poll_fill(HEAD_READ_BYTES, socket, cx)) {
                return Poll::Ready(gone);
            }
        }
        Poll::Pending
    }

    fn poll_fill(
        &mut self,
        bytes: usize,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Gone>> {
        let room = self.input.capacity() - self.input.len();
        if room < bytes / 4 {
            self.input.reserve(bytes);
        }
        let polled = pin!(socket.read_buf(&mut self.input)).poll(cx);
        self.starved = polled.is_pending();
        let read = ready!(polled);
        Poll::Ready(match read {
            Ok(1..) => Ok(()),
            Ok(0) => Err(Gone::Ended),
            Err(_) => Err(Gone::Broken),
        })
    }
}

/// Body of a request whose end was not read. Dropping it tells the reader that the connection is gone.
struct OpenLane(Rc<Lane>);

impl Deref for OpenLane {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        &self.0
    }
}

impl Drop for OpenLane {
    fn drop(&mut self) {
        self.0.fail(Reason::CANCEL);
    }
}
