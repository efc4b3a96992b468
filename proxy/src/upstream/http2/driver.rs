//! Task that moves the bytes of one connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::super::counts::Counted;
use super::super::failure::Fault;
use super::super::stream::Stream;
use super::super::tls::late_refusal;
use super::link::{Link, OUTPUT_BYTES_MAX, State};
use crate::runtime::clock::TICK;
use wire::http2::Reason;
use wire::http2::keep_alive::{KeepAlive, KeepAliveAction, KeepAliveState};
use wire::http2::output::SLICES;

/// Maximum reads per turn, so that other connections get theirs.
const READS: usize = 4;

/// Maximum rounds of polling bodies and writing per turn.
const ROUNDS: usize = 8;

/// Maximum queued output. Only a peer that causes replies and does not read reaches it.
const OUTPUT_BYTES_LIMIT: usize = 4 * OUTPUT_BYTES_MAX;

/// Drives a connection until it ends.
pub(super) async fn drive(link: Rc<Link>, counted: Counted, keep_alive: Option<KeepAlive>) {
    let _open = counted;
    let begun = Instant::now();
    let mut beats = keep_alive.map(|settings| KeepAliveTimer {
        keep_alive: KeepAliveState::new(settings, Duration::ZERO),
        sleep: Box::pin(sleep_until(begun)),
        begun,
    });
    poll_fn(|cx| {
        let state = &mut *link.0.borrow_mut();
        if !state
            .driver
            .as_ref()
            .is_some_and(|known| known.will_wake(cx.waker()))
        {
            state.driver = Some(cx.waker().clone());
        }
        state.woken = true;
        let ticks = begun.elapsed().as_nanos() / TICK.as_nanos();
        state
            .engine
            .advance(u64::try_from(ticks).unwrap_or(u64::MAX));
        state.lend_buffer();
        let mut polled = state.turn(cx);
        if let (Poll::Pending, Some(beats)) = (&polled, &mut beats) {
            polled = beats.poll(state, cx);
        }
        if let Some(buffer) = state.engine.output().take_buffer() {
            state.memory.give_back(buffer);
        }
        if polled.is_ready() {
            // notifies waiting tasks
            state.end(Fault::Closed);
            state.stream = None;
            state.permit = None;
        }
        state.woken = false;
        polled
    })
    .await;
}

/// Detects a dead peer by PINGs.
struct KeepAliveTimer {
    keep_alive: KeepAliveState,
    sleep: Pin<Box<Sleep>>,
    begun: Instant,
}

impl KeepAliveTimer {
    fn poll(&mut self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = self.begun.elapsed();
            match self
                .keep_alive
                .decide(state.moved, state.engine.pongs(), now)
            {
                KeepAliveAction::Dead => {
                    tracing::debug!("upstream does not answer PING");
                    state.end(Fault::Closed);
                    return Poll::Ready(());
                }
                KeepAliveAction::Ping => {
                    state.engine.ping();
                    if state.poll_write(cx).is_err() {
                        return Poll::Ready(());
                    }
                }
                KeepAliveAction::Wait(due) => {
                    self.sleep.as_mut().reset(self.begun + due);
                    if self.sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// No bytes are available.
    Nothing,
    /// More bytes may be available.
    Some,
    /// The connection has ended.
    Over,
}

impl State {
    /// Reads available bytes without waiting.
    pub(super) fn look(&mut self) {
        if self.end.is_some() {
            return;
        }
        let read = self.read(
            |stream, space| match stream.try_read(space.initialize_unfilled()) {
                Ok(read) => {
                    space.advance(read);
                    Poll::Ready(Ok(()))
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        );
        if read != Read::Nothing {
            self.wake_driver();
        }
    }

    /// Reads once.
    fn read(
        &mut self,
        read: impl FnOnce(&mut Stream, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Read {
        let Some(stream) = &mut self.stream else {
            return Read::Over;
        };
        let memory = Rc::clone(&self.memory);
        let mut scratch = memory.input();
        let kept = self.rest.len();
        scratch[..kept].copy_from_slice(&self.rest);
        let mut space = ReadBuf::new(&mut scratch[kept..]);
        let len = match read(stream, &mut space) {
            Poll::Pending => return Read::Nothing,
            Poll::Ready(Ok(())) if !space.filled().is_empty() => kept + space.filled().len(),
            Poll::Ready(ended) => {
                let mut fault = Fault::Closed;
                if let Err(error) = ended {
                    tracing::debug!(%error, "upstream connection broke");
                    let late = late_refusal(&error).filter(|_| self.moved == 0);
                    fault = late.map_or(fault, Fault::Late);
                }
                self.end(fault);
                return Read::Over;
            }
        };
        self.moved = self.moved.wrapping_add(1);
        match self.process_frames(&scratch[..len]) {
            Ok(used) => {
                self.rest.clear();
                self.rest.extend_from_slice(&scratch[used..len]);
                Read::Some
            }
            Err(reason) => {
                tracing::debug!(%reason, "upstream breaks the protocol");
                self.engine.fail(reason);
                self.end(Fault::Violation(reason));
                Read::Over
            }
        }
    }

    /// Runs one turn; ready when the connection has ended.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_read(cx).is_ready() || self.end.is_some() {
            // remaining output is written only if the peer accepts it at once
            let _ = self.poll_write(cx);
            return Poll::Ready(());
        }
        for round in 0..ROUNDS {
            self.pump();
            if let Err(error) = self.poll_write(cx) {
                tracing::debug!(%error, "upstream takes nothing more");
                return self.read_to_the_end(cx);
            }
            if !self.engine.output().is_empty() {
                if self.engine.output().len() > OUTPUT_BYTES_LIMIT {
                    self.end(Fault::Violation(Reason::ENHANCE_YOUR_CALM));
                    return Poll::Ready(());
                }
                return Poll::Pending;
            }
            for waiter in self.for_room.drain(..) {
                waiter.wake();
            }
            if !self.engine.is_short_of_room() {
                break;
            }
            if round + 1 == ROUNDS {
                cx.waker().wake_by_ref();
            }
        }
        let leaves = self.retired || !self.engine.can_request();
        if leaves && self.engine.open() == 0 {
            self.engine.leave();
            let _ = self.poll_write(cx);
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Reads the last bytes of a peer that no longer accepts any, since they may say why, and ends the connection.
    fn read_to_the_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = self.poll_read(cx);
        self.end(Fault::Closed);
        Poll::Ready(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..READS {
            let read = self.read(|stream, space| Pin::new(stream).poll_read(cx, space));
            match read {
                Read::Nothing => return Poll::Pending,
                Read::Some => {}
                Read::Over => return Poll::Ready(()),
            }
        }
        // other tasks run first
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Queues further body bytes as windows allow, and wakes requests that have room to add more.
    fn pump(&mut self) {
        let Self { engine, slots, .. } = self;
        let mut over = Vec::new();
        engine.pump(|place| {
            slots[place].wake_writer();
            if slots[place].detached {
                over.push(place);
            }
        });
        for place in over {
            self.remove_if_ended(place);
        }
    }

    /// Writes as much as the peer accepts.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Self { engine, stream, .. } = self;
        let Some(stream) = stream else {
            return Ok(());
        };
        let output = engine.output();
        while !output.is_empty() {
            let mut slices = [io::IoSlice::new(&[]); SLICES];
            let count = output.slices(&mut slices);
            match stream.poll_gather(cx, &slices[..count]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => output.advance(written),
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        Ok(())
    }
}
