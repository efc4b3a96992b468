//! A request body with several readers: each attempt reads it from the start, and mirrors get copies.
//!
//! The body streams: data from the client goes to the current attempt at once, and is buffered as well. Beyond a limit
//! the buffer is dropped, and a request whose body was read that far is not retried.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame};
use smallvec::SmallVec;

use crate::exchange::body::feed::Feed;
use crate::exchange::body::held::HeldBytes;
use crate::exchange::body::progress::Progress;
use crate::exchange::downstream::body::DownstreamBody;
use traffic::error::BoxError;

/// Memory overhead of a piece of a body.
const PIECE_BYTES: usize = 64;

/// Size below which a piece is copied, so that it does not keep the whole buffer that it was read into.
const COPIED_BELOW: usize = 4096;

/// Memory limit of one worker for request bodies that may be sent again.
#[derive(Debug)]
pub struct ReplayBudget {
    used: HeldBytes,
    max: usize,
    /// Maximum number of bytes for one body.
    body_max: usize,
}

impl ReplayBudget {
    /// Creates a budget of `max` bytes, of which one body takes at most `body_max`.
    pub fn new(used: HeldBytes, max: usize, body_max: usize) -> Rc<Self> {
        Rc::new(Self {
            used,
            max,
            body_max,
        })
    }

    fn take(&self, bytes: usize) -> bool {
        let used = self.used.get().saturating_add(bytes);
        let fits = used <= self.max;
        if fits {
            self.used.set(used);
        }
        fits
    }

    fn give(&self, bytes: usize) {
        self.used.set(self.used.get() - bytes);
    }
}

/// Error of a reader that was replaced by that of a later attempt.
const RETIRED: &str = "the request goes another way";

/// A body and its buffer.
#[derive(Debug)]
pub struct Source {
    state: RefCell<State>,
    progress: Rc<Progress>,
    /// Length of the whole body, if known.
    length: Option<u64>,
}

#[derive(Debug)]
struct State {
    incoming: DownstreamBody,
    /// Budget that is charged for the buffer; `None` without a buffer.
    memory: Option<Rc<ReplayBudget>>,
    body_max: usize,
    charged: usize,
    /// Pieces in order: all of them while the body is buffered, else those not read yet.
    kept: VecDeque<Bytes>,
    /// Number of buffered pieces that the reader has read.
    next: usize,
    trailers: Option<HeaderMap>,
    /// Whether the reader has read the trailers.
    told_trailers: bool,
    ended: bool,
    /// Whether everything that was read is buffered.
    whole: bool,
    /// Number of the current reader.
    turn: u32,
    waker: Option<Waker>,
    copies: SmallVec<[Rc<Feed>; 1]>,
}

impl Source {
    /// Creates a body that is buffered within `memory`, if given, and copied to mirrors.
    pub fn new(
        incoming: DownstreamBody,
        progress: &Rc<Progress>,
        memory: Option<Rc<ReplayBudget>>,
        copies: SmallVec<[Rc<Feed>; 1]>,
    ) -> Rc<Self> {
        let length = incoming.size_hint().exact();
        let body_max = memory.as_ref().map_or(0, |memory| memory.body_max);
        let too_long = length.is_some_and(|length| length > body_max as u64);
        Rc::new(Self {
            state: RefCell::new(State {
                incoming,
                whole: memory.is_some(),
                memory,
                // a body that will not fit is not buffered; until its first byte is read, it can still be sent again
                body_max: if too_long { 0 } else { body_max },
                charged: 0,
                kept: VecDeque::new(),
                next: 0,
                trailers: None,
                told_trailers: false,
                ended: false,
                turn: 0,
                waker: None,
                copies,
            }),
            progress: Rc::clone(progress),
            length,
        })
    }

    /// Returns a reader from the start of the body, for the next attempt; the earlier reader gets an error. `None` if
    /// the start is no longer buffered.
    pub fn reader(self: &Rc<Self>) -> Option<Reader> {
        let mut state = self.state.borrow_mut();
        if !state.whole && state.turn > 0 {
            return None;
        }
        state.turn += 1;
        state.next = 0;
        state.told_trailers = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        Some(Reader {
            turn: state.turn,
            source: Rc::clone(self),
            read: 0,
        })
    }

    /// Whether the body can be read from the start.
    pub fn is_whole(&self) -> bool {
        self.state.borrow().whole
    }

    /// Whether the whole body is known to have at most `most` bytes.
    pub fn is_within(&self, most: usize) -> bool {
        let state = self.state.borrow();
        match self.length {
            Some(length) => length <= most as u64,
            None => state.ended && state.charged <= most,
        }
    }

    /// Stops buffering, because no attempt follows, and frees what the reader has read.
    pub fn release(&self) {
        self.state.borrow_mut().release();
    }
}

impl State {
    fn release(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        self.whole = false;
        memory.give(std::mem::take(&mut self.charged));
        self.kept.drain(..self.next);
        self.next = 0;
    }

    /// Buffers a piece that the reader gets as well.
    fn keep(&mut self, data: &Bytes) {
        let Some(memory) = &self.memory else {
            return;
        };
        let cost = data.len() + PIECE_BYTES;
        let fits = self.charged + data.len() <= self.body_max && memory.take(cost);
        if !fits {
            self.release();
            return;
        }
        self.charged += cost;
        self.kept.push_back(if data.len() < COPIED_BELOW {
            Bytes::copy_from_slice(data)
        } else {
            data.clone()
        });
        self.next += 1;
    }

    /// The next buffered piece that the reader has not read.
    fn take_kept(&mut self) -> Option<Bytes> {
        if self.memory.is_none() {
            return self.kept.pop_front();
        }
        let kept = self.kept.get(self.next)?;
        self.next += 1;
        Some(kept.clone())
    }

    fn has_kept(&self) -> bool {
        self.next < self.kept.len()
    }

    fn is_end(&self) -> bool {
        let trailers = self.trailers.is_some() && !self.told_trailers;
        self.ended && !self.has_kept() && !trailers
    }

    fn end(&mut self, progress: &Progress) {
        if !self.ended {
            self.ended = true;
            progress.end_body();
            for copy in &self.copies {
                copy.finish(self.trailers.as_ref());
            }
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.release();
        for copy in &self.copies {
            copy.break_off();
        }
    }
}

/// One attempt's reader of the body.
#[derive(Debug)]
pub struct Reader {
    source: Rc<Source>,
    turn: u32,
    read: u64,
}

impl Reader {
    /// The body that it reads.
    pub fn source(&self) -> &Rc<Source> {
        &self.source
    }

    /// Returns the next frame.
    ///
    /// # Errors
    ///
    /// If the client's body is incomplete, or a later attempt reads it.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let state = &mut *self.source.state.borrow_mut();
        if state.turn != self.turn {
            return Poll::Ready(Some(Err(RETIRED.into())));
        }
        if let Some(data) = state.take_kept() {
            self.read += data.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if state.ended {
            if state.told_trailers {
                return Poll::Ready(None);
            }
            state.told_trailers = true;
            let trailers = state.trailers.clone();
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        let Poll::Ready(polled) = Pin::new(&mut state.incoming).poll_frame(cx) else {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let progress = &self.source.progress;
        let frame = match polled {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                state.copies.drain(..).for_each(|copy| copy.break_off());
                return Poll::Ready(Some(Err(error.into())));
            }
            None => {
                state.end(progress);
                return Poll::Ready(None);
            }
        };
        if let Some(data) = frame.data_ref() {
            self.read += data.len() as u64;
            progress.saw(data);
            state.keep(data);
            for copy in &state.copies {
                copy.push(data);
            }
        } else if let Some(trailers) = frame.trailers_ref() {
            state.trailers = Some(trailers.clone());
            state.told_trailers = true;
        }
        if state.incoming.is_end_stream() {
            state.end(progress);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    /// Whether the body is at its end.
    pub fn is_end_stream(&self) -> bool {
        let state = self.source.state.borrow();
        state.turn == self.turn && state.is_end()
    }

    /// Number of remaining bytes, if known.
    pub fn left(&self) -> Option<u64> {
        Some(self.source.length?.saturating_sub(self.read))
    }
}
