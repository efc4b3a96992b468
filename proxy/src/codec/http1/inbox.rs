//! What a client sends: the bytes that were read, and the body of the request that is being read.

use std::future::Future as _;
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use http::HeaderMap;
use tokio::io::AsyncReadExt as _;

use super::decoder::{Decoder, Piece};
use super::head::Head;
use crate::codec::refusal::Refusal;
use crate::codec::socket::Socket;
use crate::codec::transport::Gone;
use crate::codec::watchdog::StreamPosition;
use crate::exchange::downstream::body::Lane;
use crate::http2::Reason;

/// Bytes that are read at once, of heads and of bodies.
const HEAD_READ_BYTES: usize = 4 * 1024;
const BODY_READ_BYTES: usize = 16 * 1024;

/// Bytes of later requests past which no more is read before a response is sent.
const PIPELINED_BYTES_MAX: usize = 16 * 1024;

/// What a client sends. It holds one head, or one piece of a body beside what its lane holds.
pub(super) struct Inbox {
    /// Read, and not yet taken.
    input: BytesMut,
    decoder: Decoder,
    /// Memory for the fields of a request: those of the response before.
    memory: HeaderMap,
    /// The body of the request, until its end was read.
    lane: Option<OpenLane>,
    /// Why the body of the request broke.
    broken: Option<Refusal>,
    /// Whether the peer ended its direction within a body, or after one that broke.
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

    /// Bytes of empty lines that were dropped before the next request.
    pub(super) fn skipped(&self) -> usize {
        self.decoder.skipped()
    }

    /// What was read and not taken.
    pub(super) fn into_rest(self) -> BytesMut {
        self.input
    }

    /// Whether something was read that was not taken.
    pub(super) fn has_rest(&self) -> bool {
        !self.input.is_empty()
    }

    /// The body of the request, until its end was read.
    pub(super) fn lane(&self) -> Option<&Lane> {
        self.lane.as_deref()
    }

    /// Why the body of the request broke, if it did.
    pub(super) fn broken(&self) -> Option<Refusal> {
        self.broken
    }

    /// Whether the peer ended its direction within a body, or after one that broke.
    pub(super) fn is_cut_off(&self) -> bool {
        self.ended
    }

    /// The peer was seen to have ended its direction, behind bytes that are not read: after a body that broke, it gave up.
    pub(super) fn end_unread(&mut self) {
        self.ended |= self.broken.is_some();
    }

    /// Whether no other request can be read after this one.
    pub(super) fn is_last(&self) -> bool {
        self.ended || self.broken.is_some()
    }

    /// Whether nothing more is read for now, so that the end of the peer's direction is not seen.
    pub(super) fn is_blocked(&self) -> bool {
        let is_full = match self.lane() {
            Some(lane) => lane.is_full(),
            None => self.input.len() >= PIPELINED_BYTES_MAX,
        };
        is_full || self.is_last()
    }

    /// Where the bytes read so far end, between requests if nothing is being answered.
    pub(super) fn place(&self, answering: bool) -> StreamPosition {
        match self.lane {
            Some(_) => StreamPosition::Body,
            // the rest of the body is missing for good
            None if self.is_last() => StreamPosition::Body,
            None if self.has_rest() && !answering => StreamPosition::Head,
            None => StreamPosition::Between,
        }
    }

    /// Whether bytes are missing that the peer is to send.
    pub(super) fn is_starved(&self) -> bool {
        self.is_last() || (self.starved && !self.lane().is_some_and(Lane::is_expecting))
    }

    /// Changes whenever bytes of a body are read.
    pub(super) fn moved(&self) -> u32 {
        self.moved
    }

    /// Keeps the memory of header fields for those of the next request.
    pub(super) fn keep(&mut self, mut memory: HeaderMap) {
        memory.clear();
        self.memory = memory;
    }

    /// From here on, a body is read into this lane.
    pub(super) fn open(&mut self, lane: Rc<Lane>) {
        self.lane = Some(OpenLane(lane));
    }

    /// Reads a head; `Err(None)` when the peer ended its direction, even within one.
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

    /// Reads what there is of the request's body, as long as it is taken.
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
                    // the peer may still read what there is of a response to half a request
                    Poll::Ready(Err(Gone::Ended)) => {
                        self.ended = true;
                        self.lane = None;
                    }
                    Poll::Ready(Err(Gone::Broken)) => return Err(Gone::Broken),
                    Poll::Pending => return Ok(()),
                },
                Err(refusal) => {
                    // the exchange replies to it
                    lane.fail(Reason::PROTOCOL_ERROR);
                    self.broken = Some(refusal);
                    self.lane = None;
                }
            }
        }
        Ok(())
    }

    /// While a request that was read waits for something else: ready when the peer is gone, and its answer of no use. What
    /// comes meanwhile is of later requests, and waits.
    ///
    /// A peer that ended its direction counts as gone even if all its requests were complete: a half-closed connection looks
    /// the same as a closed one, and an upstream that does not answer would be kept busy for a client that left.
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

/// The body of a request whose end was not read. Who reads it learns when the connection is gone before that.
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
