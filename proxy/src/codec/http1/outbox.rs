//! Bytes that wait to be written to a client.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite as _;

use crate::codec::transport::Transport;

/// Largest buffer for heads that is kept, in bytes.
const HEAD_BYTES_KEPT: usize = 16 * 1024;

/// Largest piece of a body that is copied behind the head, in bytes. Copying it costs less than another system call,
/// which may wake the client for it.
const COPIED_BYTES_MAX: usize = 8 * 1024;

/// Queued bytes of heads and small pieces above which nothing is added before they are written.
const TOGETHER_BYTES_MAX: usize = 16 * 1024;

/// Bytes that wait to be written: heads and small pieces of a body, then one larger piece, then its `tail`.
///
/// Bounded by one head, the interim responses before it, [`TOGETHER_BYTES_MAX`], and one piece of a body.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) head: Vec<u8>,
    /// Bytes of `head` that were written.
    written: usize,
    data: Bytes,
    tail: &'static [u8],
    /// Whether bytes were written that may not have been flushed.
    unflushed: bool,
    /// Whether the last write was incomplete because the socket was full.
    blocked: bool,
    /// Counter of writes that moved bytes.
    moved: u32,
}

impl Outbox {
    /// Adds a piece of a body, followed by `tail`; call only if [`Outbox::has_room`].
    pub(super) fn push(&mut self, data: Bytes, tail: &'static [u8]) {
        debug_assert!(!self.has_body(), "one large piece at a time");
        if data.len() <= COPIED_BYTES_MAX {
            self.head.extend_from_slice(&data);
            self.head.extend_from_slice(tail);
        } else {
            self.data = data;
            self.tail = tail;
        }
    }

    /// Number of bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.head.len() - self.written + self.data.len() + self.tail.len()
    }

    fn is_empty(&self) -> bool {
        self.written == self.head.len() && !self.has_body()
    }

    /// Whether a piece of a body may be added.
    pub(super) fn has_room(&self) -> bool {
        let waiting = self.head.len() - self.written;
        !self.blocked && !self.has_body() && waiting <= TOGETHER_BYTES_MAX
    }

    fn has_body(&self) -> bool {
        !self.data.is_empty() || !self.tail.is_empty()
    }

    /// Counter of writes that moved bytes.
    pub(super) fn moved(&self) -> u32 {
        self.moved
    }

    pub(super) fn is_flushed(&self) -> bool {
        !self.unflushed && self.is_empty()
    }

    /// Writes and flushes all bytes.
    pub(super) fn poll_flush(
        &mut self,
        transport: &mut Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let polled = self.poll_write(transport, cx);
            self.blocked = polled.is_pending();
            ready!(polled)?;
        }
        self.written = 0;
        self.head.clear();
        self.head.shrink_to(HEAD_BYTES_KEPT);
        if self.unflushed {
            ready!(Pin::new(transport).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        transport: &mut Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.unflushed = true;
        let head = &self.head[self.written..];
        let pieces = [head, &self.data, self.tail].map(IoSlice::new);
        // a single piece needs no vectored write
        let pieces = match (head.is_empty(), self.tail.is_empty()) {
            _ if !self.has_body() => &pieces[..1],
            (true, true) => &pieces[1..2],
            (false, true) => &pieces[..2],
            (true, false) => &pieces[1..],
            (false, false) => &pieces[..],
        };
        let mut written = ready!(transport.poll_gather(cx, pieces))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.moved = self.moved.wrapping_add(1);
        let of_head = written.min(head.len());
        self.written += of_head;
        written -= of_head;
        let of_data = written.min(self.data.len());
        self.data.advance(of_data);
        self.tail = &self.tail[written - of_data..];
        Poll::Ready(Ok(()))
    }
}
