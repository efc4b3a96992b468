//! An HTTP/1.1 connection: its socket, what was read from it, and its permits.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::reading::Reading;
use crate::registry::{Closing, ConnectionPermit, RequestPermit};
use crate::upstream::connect::Ends;
use crate::upstream::counts::Counted;
use crate::upstream::stream::Stream;

/// Bytes that are read at once, at first and at most: it doubles while a peer fills it. The most is what a client that
/// stops reading makes us hold.
pub(super) const READ_BYTES: usize = 8 * 1024;
pub(super) const READ_BYTES_MAX: usize = 112 * 1024;

/// A connection to an endpoint.
#[derive(Debug)]
pub struct Connection {
    /// Counts its request; given up before the socket, for which requests may wait.
    pub(super) request: Option<RequestPermit>,
    pub(super) wire: Rc<Wire>,
    /// Read, and not yet decoded.
    pub(super) input: BytesMut,
    pub(super) read_bytes: usize,
    /// Requests that it has carried.
    pub(super) carried: u32,
    pub(super) made: Instant,
    /// Interim responses to the request that it carries.
    pub(super) interim: u32,
    /// The response that it is at.
    pub(super) reading: Reading,
    pub(super) ends: Rc<Ends>,
}

/// The socket, shared by reader and writer.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: RefCell<Stream>,
    _counted: Counted,
    /// Given up after the socket.
    pub(super) permit: RefCell<Option<ConnectionPermit>>,
}

impl Wire {
    pub(super) fn poll<T>(&self, poll: impl FnOnce(Pin<&mut Stream>) -> T) -> T {
        poll(Pin::new(&mut self.stream.borrow_mut()))
    }
}

impl Connection {
    /// A connection that was just made.
    pub fn new(stream: Stream, ends: Rc<Ends>, counted: Counted) -> Box<Self> {
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

    /// What it connects.
    pub fn ends(&self) -> &Rc<Ends> {
        &self.ends
    }

    /// Whether it has carried a request before.
    pub fn is_used(&self) -> bool {
        self.carried > 0
    }

    /// Requests that it has carried.
    pub fn carried(&self) -> u32 {
        self.carried
    }

    /// When it was made.
    pub fn made(&self) -> Instant {
        self.made
    }

    /// Holds on to the permit of its next request until the end of the response.
    pub fn carry(&mut self, request: Option<RequestPermit>) {
        self.request = request;
    }

    /// Holds on to a permit until the socket is closed.
    pub fn hold(&self, permit: ConnectionPermit) {
        self.wire.permit.replace(Some(permit));
    }

    /// The connection is about to be closed for this reason.
    pub fn promise(&self, closing: Closing) {
        if let Some(permit) = &mut *self.wire.permit.borrow_mut() {
            permit.promise(closing);
        }
    }

    /// Whether the peer closed it while it waited, or spoke out of turn.
    pub fn is_stale(&self) -> bool {
        self.wire.stream.borrow_mut().is_stale()
    }

    /// Gives back memory that a connection without a request does not need.
    pub fn rest(&mut self) {
        if self.read_bytes > READ_BYTES {
            self.read_bytes = READ_BYTES;
            self.input = BytesMut::new();
        }
    }

    /// Reads more; 0 when the peer has ended its direction.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.input.capacity() - self.input.len() < self.read_bytes / 2 {
            self.input.reserve(self.read_bytes);
        }
        let space = self.input.capacity() - self.input.len();
        let stream = &mut *self.wire.stream.borrow_mut();
        let read = ready!(pin!(stream.read_buf(&mut self.input)).poll(cx))?;
        // a long head that comes slowly takes as much memory as a fast one, and gives it back alike
        let long = read == space || self.input.len() > self.read_bytes;
        if long && self.read_bytes < READ_BYTES_MAX {
            self.read_bytes = READ_BYTES_MAX.min(self.read_bytes * 2);
        }
        Poll::Ready(Ok(read))
    }
}
