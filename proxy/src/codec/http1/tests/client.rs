//! Client of a simulated connection: an in-memory socket and the script that drives it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::codec::transport::{Gone, InMemory};

/// Maximum socket calls of one connection; a busy loop exceeds it.
const CALLS_MAX: u32 = 200_000;

/// Step of a client.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Wait.
    Pause(Duration),
    /// Let the proxy run.
    Yield,
    Send(Vec<u8>),
    /// Close its direction.
    End,
    /// Break the connection.
    Reset,
    /// Accept this many more bytes.
    Take(usize),
}

/// Both directions of a connection, as the client's kernel sees them.
#[derive(Debug)]
pub(crate) struct Wire {
    rng: SmallRng,
    /// Whether every call does as much as it can.
    pub smooth: bool,
    inbound: VecDeque<u8>,
    /// Whether the client closed its direction.
    ended: bool,
    /// Whether the client broke the connection.
    pub broken: bool,
    /// Time of either.
    pub left_at: Option<Instant>,
    /// Bytes that the client still accepts.
    room: usize,
    pub written: Vec<u8>,
    /// Whether bytes were written since the last flush.
    unflushed: bool,
    /// Whether the proxy closed its direction.
    pub is_shut: bool,
    pub resets_on_close: bool,
    pub closed_at: Option<Instant>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    calls: u32,
}

impl Wire {
    pub(crate) fn new(seed: u64, smooth: bool) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            rng: SmallRng::seed_from_u64(seed),
            smooth,
            inbound: VecDeque::new(),
            ended: false,
            broken: false,
            left_at: None,
            room: 0,
            written: Vec::new(),
            unflushed: false,
            is_shut: false,
            resets_on_close: false,
            closed_at: None,
            reader: None,
            writer: None,
            calls: 0,
        }))
    }

    /// Counts a call; returns whether this call pretends to be pending and wakes the task.
    fn hesitates(&mut self, cx: &Context<'_>) -> bool {
        self.calls += 1;
        assert!(self.calls < CALLS_MAX, "the connection spins");
        let hesitates = !self.smooth && self.rng.random_range(0..8) == 0;
        if hesitates {
            cx.waker().wake_by_ref();
        }
        hesitates
    }

    /// Returns how many bytes this call moves, at most `most`.
    fn some(&mut self, most: usize) -> usize {
        match self.smooth || self.rng.random_range(0..3) == 0 {
            true => most,
            false => self.rng.random_range(1..=most),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Pause(_) | Step::Yield => {}
            Step::Send(bytes) => self.inbound.extend(bytes),
            Step::End => self.ended = true,
            Step::Reset => self.broken = true,
            Step::Take(bytes) => self.room = self.room.saturating_add(*bytes),
        }
        if self.ended || self.broken {
            self.left_at.get_or_insert_with(Instant::now);
        }
        let takes = matches!(step, Step::Take(_));
        let reads = matches!(step, Step::Send(_) | Step::End);
        if let Some(waker) = self.reader.take_if(|_| reads || self.broken) {
            waker.wake();
        }
        if let Some(waker) = self.writer.take_if(|_| takes || self.broken) {
            waker.wake();
        }
    }
}

/// Runs the steps in order.
pub(crate) async fn run(wire: Rc<RefCell<Wire>>, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Pause(pause) => tokio::time::sleep(pause).await,
            Step::Yield => tokio::task::yield_now().await,
            _ => wire.borrow_mut().step(&step),
        }
    }
}

/// Proxy's end of the connection.
#[derive(Debug)]
pub(crate) struct Stream(pub Rc<RefCell<Wire>>);

impl InMemory for Stream {
    fn reset_on_close(&self) {
        self.0.borrow_mut().resets_on_close = true;
    }

    fn gone(&self) -> Option<Gone> {
        let wire = self.0.borrow();
        let ended = wire.ended.then_some(Gone::Ended);
        if wire.broken {
            Some(Gone::Broken)
        } else {
            ended
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.borrow_mut().closed_at = Some(Instant::now());
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.borrow_mut();
        if wire.hesitates(cx) {
            return Poll::Pending;
        }
        if wire.broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let most = wire.inbound.len().min(space.remaining());
        if most == 0 && !wire.ended {
            wire.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if most > 0 {
            let some = wire.some(most);
            let bytes: Vec<u8> = wire.inbound.drain(..some).collect();
            space.put_slice(&bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wire = &mut *self.0.borrow_mut();
        assert!(!wire.is_shut, "nothing is written after the end");
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
        assert!(!bytes.is_empty(), "there is something to write");
        if wire.hesitates(cx) {
            return Poll::Pending;
        }
        if wire.broken {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let most = wire.room.min(bytes.len());
        if most == 0 {
            wire.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let some = wire.some(most);
        wire.room -= some;
        wire.unflushed = true;
        wire.written.extend_from_slice(&bytes[..some]);
        Poll::Ready(Ok(some))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.borrow_mut();
        if wire.unflushed && wire.hesitates(cx) {
            return Poll::Pending;
        }
        wire.unflushed = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.borrow_mut();
        if wire.hesitates(cx) {
            return Poll::Pending;
        }
        wire.is_shut = true;
        Poll::Ready(Ok(()))
    }
}
