//! The downstream socket as hyper sees it, with the counts and times that hyper does not expose.
//!
//! A [`Stream`] feeds what it reads to [`Framing`] before hyper parses it, and notes on the shared [`Wire`] where the
//! connection stands. All of it stays on one thread; atomics are used only because an upgraded connection has to be
//! `Send`, and plain loads and stores cost the same as a `Cell`.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::framing::{Framing, StreamPosition, Verdict};
use super::refusal::Refusal;
use super::socket::Socket;
use super::transport::Transport;
use crate::exchange::downstream::interim::Waiting;

/// Bytes of a request body that are read at once. What hyper reads waits in memory until the upstream takes it.
const BODY_READ_BYTES_MAX: u64 = 16 * 1024;

/// Bytes of a response body that may wait to be written; no more of the body is asked for until they are.
const UNWRITTEN_BYTES_MAX: u32 = 16 * 1024;

/// Where a connection stands, as seen from its socket.
#[derive(Debug, Default)]
pub struct Wire {
    heads: AtomicU32,
    moved: AtomicU32,
    /// Bytes of response bodies that hyper took since the last flush.
    unwritten: AtomicU32,
    place: AtomicU8,
    refusal: AtomicU8,
    ended: AtomicBool,
    starved: AtomicBool,
    unflushed: AtomicBool,
    /// A response body waits for them to be written.
    held: AtomicBool,
    tunnel: AtomicBool,
    resume: AtomicBool,
}

impl Wire {
    /// Heads of requests that came in complete.
    pub fn heads(&self) -> u32 {
        self.heads.load(Ordering::Relaxed)
    }

    /// Changes whenever bytes move in either direction.
    pub fn moved(&self) -> u32 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Where the bytes read so far end.
    pub fn place(&self) -> StreamPosition {
        match self.place.load(Ordering::Relaxed) {
            0 => StreamPosition::Between,
            1 => StreamPosition::Body,
            2 => StreamPosition::Head,
            3 => StreamPosition::Held,
            4 => StreamPosition::Refused,
            _ => StreamPosition::Tunnel,
        }
    }

    /// Why nothing more is read, if so.
    pub fn refusal(&self) -> Option<Refusal> {
        Refusal::from_code(self.refusal.load(Ordering::Relaxed))
    }

    /// Whether the peer has ended its direction.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether the last read found nothing to read.
    pub fn is_starved(&self) -> bool {
        self.starved.load(Ordering::Relaxed)
    }

    /// Whether something was written that is not all with the kernel yet.
    pub fn is_unflushed(&self) -> bool {
        self.unflushed.load(Ordering::Relaxed)
    }

    /// The protocol changes with the response that is about to be sent.
    pub fn set_tunnel(&self) {
        self.tunnel.store(true, Ordering::Relaxed);
    }

    /// Whether the protocol has changed.
    pub fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::Relaxed)
    }

    /// The request that asked for another protocol is over and got none: bytes that were held are requests.
    pub fn set_resume(&self) {
        self.resume.store(true, Ordering::Relaxed);
    }

    /// hyper took this much of a response body.
    pub fn note_unwritten(&self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let unwritten = self.unwritten.load(Ordering::Relaxed);
        let unwritten = unwritten.saturating_add(bytes);
        self.unwritten.store(unwritten, Ordering::Relaxed);
    }

    /// Whether the body of a response has to wait until what was taken of it is written. The driver of the connection
    /// polls again after [`Wire::take_released`].
    ///
    /// hyper takes pieces of a body until its buffer is full, whatever size they have; a client that reads slowly, or
    /// not at all, would have all of them wait in memory.
    pub fn hold_body(&self) -> bool {
        let held = self.unwritten.load(Ordering::Relaxed) >= UNWRITTEN_BYTES_MAX;
        self.held.store(held, Ordering::Relaxed);
        held
    }

    /// Whether a body that was held may go on, since all that was taken of it is written. True once.
    pub fn take_released(&self) -> bool {
        let released = self.held.load(Ordering::Relaxed) && !self.is_unflushed();
        if released {
            self.held.store(false, Ordering::Relaxed);
        }
        released
    }

    fn note_flushed(&self) {
        self.unflushed.store(false, Ordering::Relaxed);
        self.unwritten.store(0, Ordering::Relaxed);
    }

    fn note(&self, framing: &Framing) {
        self.heads.store(framing.heads(), Ordering::Relaxed);
        let place = match framing.place() {
            StreamPosition::Between => 0,
            StreamPosition::Body => 1,
            StreamPosition::Head => 2,
            StreamPosition::Held => 3,
            StreamPosition::Refused => 4,
            StreamPosition::Tunnel => 5,
        };
        self.place.store(place, Ordering::Relaxed);
    }

    fn note_moved(&self) {
        let moved = self.moved().wrapping_add(1);
        self.moved.store(moved, Ordering::Relaxed);
    }
}

/// A downstream socket as its codec reads and writes it. A parked connection has none, only the socket.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    framing: Framing,
    wire: Arc<Wire>,
    /// Interim responses of the request that is being answered.
    interim: Option<Arc<Waiting>>,
}

impl Stream {
    /// A socket on which HTTP/1 begins; interim responses are written where they may go.
    pub fn new(
        socket: Socket,
        framing: Framing,
        wire: Arc<Wire>,
        interim: Option<Arc<Waiting>>,
    ) -> Self {
        Self {
            socket,
            framing,
            wire,
            interim,
        }
    }

    /// A socket on which something else than HTTP/1 begins.
    pub fn unframed(socket: Socket, framing: Framing) -> Self {
        let mut stream = Self::new(socket, framing, Arc::default(), None);
        stream.tunnel();
        stream
    }

    /// The socket alone.
    pub fn into_socket(self) -> Socket {
        self.socket
    }

    /// Where the connection stands.
    pub fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }

    /// From here on, bytes are not HTTP/1.
    fn tunnel(&mut self) {
        self.framing.tunnel();
        self.wire.note(&self.framing);
    }

    fn poll_raw(&mut self, cx: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let socket = Pin::new(&mut self.socket);
        if self.framing.place() == StreamPosition::Body {
            return pin!(socket.take(BODY_READ_BYTES_MAX)).poll_read(cx, space);
        }
        socket.poll_read(cx, space)
    }

    /// Reads what the parser may see.
    fn poll_framed(
        &mut self,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = space.filled().len();
        ready!(self.poll_raw(cx, space))?;
        let read = &space.filled()[before..];
        if read.is_empty() {
            self.wire.ended.store(true, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        let verdict = self.framing.feed(read);
        self.wire.note(&self.framing);
        let (passed, stopped) = match verdict {
            Verdict::Pass => (read.len(), Poll::Pending),
            Verdict::Hold(passed) => {
                self.socket.put_back(&read[passed..]);
                (passed, Poll::Pending)
            }
            Verdict::Refuse(passed, refusal) => {
                self.wire.refusal.store(refusal.code(), Ordering::Relaxed);
                (passed, refused(refusal))
            }
        };
        space.set_filled(before + passed);
        if passed > 0 {
            Poll::Ready(Ok(()))
        } else {
            stopped
        }
    }

    /// While bytes are held: nothing, or the end of the stream.
    ///
    /// The protocol detection polls again, so that no waker is needed when there are bytes.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.socket.ahead().is_empty() {
            return Poll::Pending;
        }
        let read = match self.socket.transport() {
            Transport::Tcp(tcp) => {
                let mut byte = [0; 1];
                ready!(tcp.poll_peek(cx, &mut ReadBuf::new(&mut byte)))?
            }
            // no peeking here: what there is is held as well
            Transport::Tls(_) | Transport::Unix(_) => ready!(self.socket.poll_ahead(cx))?,
        };
        if read == 0 {
            self.wire.ended.store(true, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }
}

/// What hyper reads in place of what was refused: a broken body is an error; before a bad head there is just nothing
/// more, and the driver of the connection ends it once the requests before are answered.
fn refused(refusal: Refusal) -> Poll<io::Result<()>> {
    match refusal {
        Refusal::Chunk => Poll::Ready(Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "request body breaks its framing",
        ))),
        _ => Poll::Pending,
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.framing.place() == StreamPosition::Held {
            if this.wire.is_tunnel() {
                this.tunnel();
            } else if this.wire.resume.swap(false, Ordering::Relaxed) {
                this.framing.resume();
                this.wire.note(&this.framing);
            }
        }
        let polled = match this.framing.place() {
            StreamPosition::Held => this.poll_held(cx),
            StreamPosition::Refused => this.wire.refusal().map_or(Poll::Pending, refused),
            StreamPosition::Tunnel => this.poll_raw(cx, space),
            StreamPosition::Between | StreamPosition::Body | StreamPosition::Head => {
                this.poll_framed(cx, space)
            }
        };
        this.wire
            .starved
            .store(polled.is_pending(), Ordering::Relaxed);
        if polled.is_ready() {
            this.wire.note_moved();
        }
        polled
    }
}

impl Stream {
    /// Before a message is written: interim responses go first, unless part of an earlier message still has to.
    fn poll_before_message(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(interim) = self.interim.as_ref().filter(|interim| interim.any()) else {
            return Poll::Ready(Ok(()));
        };
        if self.wire.is_unflushed() {
            if interim.is_sealed() {
                interim.write(Vec::clear);
            }
            return Poll::Ready(Ok(()));
        }
        self.poll_interim(cx)
    }

    /// Writes what there is of interim responses.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(interim) = &self.interim else {
            return Poll::Ready(Ok(()));
        };
        let transport = self.socket.transport_mut();
        interim.write(|bytes| {
            while !bytes.is_empty() {
                let written = ready!(Pin::new(&mut *transport).poll_write(cx, bytes))?;
                bytes.drain(..written);
            }
            Poll::Ready(Ok(()))
        })
    }

    fn note_written(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.wire.unflushed.store(true, Ordering::Relaxed);
        if polled.is_ready() {
            self.wire.note_moved();
        }
        polled
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_before_message(cx))?;
        let polled = Pin::new(self.socket.transport_mut()).poll_write(cx, bytes);
        self.note_written(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_before_message(cx))?;
        let polled = self.socket.transport_mut().poll_gather(cx, slices);
        self.note_written(polled)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper flushes when everything it has was written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let was_unflushed = self.wire.is_unflushed();
        match self.interim.as_ref().filter(|interim| interim.any()) {
            None => {}
            // its final response has just been written: too late
            Some(interim) if interim.is_sealed() && was_unflushed => interim.write(Vec::clear),
            Some(_) => {
                self.wire.unflushed.store(false, Ordering::Relaxed);
                ready!(self.poll_interim(cx))?;
            }
        }
        ready!(Pin::new(self.socket.transport_mut()).poll_flush(cx))?;
        self.wire.note_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.socket.transport_mut()).poll_shutdown(cx)
    }
}
