//! HTTP/1.1 connection: its socket, its unread input, and its permits.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::reading::Reading;
use crate::upstream::connect::ConnectionInfo;
use crate::upstream::counts::Counted;
use crate::upstream::stream::Stream;
use traffic::registry::{Closing, ConnectionPermit, RequestPermit};

/// Bytes per read, initial and maximum: doubles while the peer fills it. The maximum also bounds the buffer of a
/// response whose client stops reading.
pub(super) const READ_BYTES: usize = 8 * 1024;
pub(super) const READ_BYTES_MAX: usize = 112 * 1024;

/// Connection to an endpoint.
#[derive(Debug)]
pub struct Connection {
    /// Permit of its current request; dropped before the socket, since requests may wait for it.
    pub(super) request: Option<RequestPermit>,
    pub(super) wire: Rc<Wire>,
    /// Bytes that were read and not decoded.
    pub(super) input: BytesMut,
    pub(super) read_bytes: usize,
    /// Requests carried so far.
    pub(super) carried: u32,
    pub(super) made: Instant,
    /// Interim responses to the current request.
    pub(super) interim: u32,
    /// Progress of the current response.
    pub(super) reading: Reading,
    pub(super) ends: Rc<ConnectionInfo>,
}

/// Socket, shared by reader and writer.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: RefCell<Stream>,
    _counted: Counted,
    /// Dropped after the socket.
    pub(super) permit: RefCell<Option<ConnectionPermit>>,
}

impl Wire {
    pub(super) fn poll<T>(&self, poll: impl FnOnce(Pin<&mut Stream>) -> T) -> T {
        poll(Pin::new(&mut self.stream.borrow_mut()))
    }
}

impl Connection {
    /// Returns a connection over a socket that was just connected.
    pub fn new(stream: Stream, ends: Rc<ConnectionInfo>, counted: Counted) -> Box<Self> {
        Box::new(Self {
            request: None,
            wire: Rc::new(Wire {
                stream: RefCell::new(stream),
                _counted: counted,
                permit: RefCell::default(),
            }),
            input: BytesMut::new(),
            read_bytes: READ_BYTES,
            carried: 0,
            made: Instant::now(),
            interim: 0,
            reading: Reading::NOTHING,
            ends,
        })
    }

    /// Addresses and TLS state.
    pub fn ends(&self) -> &Rc<ConnectionInfo> {
        &self.ends
    }

    /// Whether the connection has carried a request before.
    pub fn is_used(&self) -> bool {
        self.carried > 0
    }

    /// Requests carried so far.
    pub fn carried(&self) -> u32 {
        self.carried
    }

    /// Time at which the connection was made.
    pub fn made(&self) -> Instant {
        self.made
    }

    /// Holds the permit of the next request until the end of its response.
    pub fn carry(&mut self, request: Option<RequestPermit>) {
        self.request = request;
    }

    /// Holds a permit until the socket closes.
    pub fn hold(&self, permit: ConnectionPermit) {
        self.wire.permit.replace(Some(permit));
    }

    /// Announces to the permit that the connection is about to close, and why.
    pub fn mark_closing(&self, closing: Closing) {
        if let Some(permit) = &mut *self.wire.permit.borrow_mut() {
            permit.mark_closing(closing);
        }
    }

    /// Whether the peer closed the idle connection, or sent bytes without a request.
    pub fn is_stale(&self) -> bool {
        self.wire.stream.borrow_mut().is_stale()
    }

    /// Releases memory that an idle connection does not need.
    pub fn rest(&mut self) {
        if self.read_bytes > READ_BYTES {
            self.read_bytes = READ_BYTES;
            self.input = BytesMut::new();
        }
    }

    /// Reads more bytes; 0 if the peer closed its direction.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.input.capacity() - self.input.len() < self.read_bytes / 2 {
            self.input.reserve(self.read_bytes);
        }
        let space = self.input.capacity() - self.input.len();
        let stream = &mut *self.wire.stream.borrow_mut();
        let read = ready!(pin!(stream.read_buf(&mut self.input)).poll(cx))?;
        // a long head that arrives slowly takes as much memory as a fast one, and is released in the same way
        let long = read == space || self.input.len() > self.read_bytes;
        if long && self.read_bytes < READ_BYTES_MAX {
            self.read_bytes = READ_BYTES_MAX.min(self.read_bytes * 2);
        }
        Poll::Ready(Ok(read))
    }
}
