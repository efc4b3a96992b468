//! Bodies that pass through: counted, never gathered, with back pressure from the side that reads.

pub mod replay;

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::error::{BoxError, Error};
use crate::exchange::attempt::deadline::Deadline;
use crate::exchange::body::replay::{Reader, ReplayBudget, Source};
use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::forward::mirror::{CopyBody, Feed};
use crate::exchange::message::grpc_messages::Messages;
use crate::exchange::record::{Ending, Record};
use crate::pool;

/// How far the downstream peer's request has come in.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: Cell<u64>,
    /// Counts messages, for gRPC.
    messages: Cell<Option<Messages>>,
    complete: Cell<bool>,
    /// When the body's last byte was read; none for a request without a body.
    ended: Cell<Option<Instant>>,
    waker: RefCell<Option<Waker>>,
}

/// What else is done with the body of a request than to send it.
#[derive(Default)]
pub struct Extras {
    /// Where it is kept, for a request that may be tried again.
    pub memory: Option<Rc<ReplayBudget>>,
    /// Mirrors that get copies.
    pub copies: SmallVec<[Rc<Feed>; 1]>,
}

impl Progress {
    /// Body bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Counts gRPC messages from now on.
    pub fn count_messages(&self) {
        if self.messages.get().is_none() {
            self.messages.set(Some(Messages::default()));
        }
    }

    /// gRPC messages read so far, if they are counted.
    pub fn messages(&self) -> u64 {
        self.messages.get().map_or(0, |messages| messages.count())
    }

    pub(super) fn saw(&self, data: &Bytes) {
        self.bytes.set(self.bytes.get() + data.len() as u64);
        if let Some(mut messages) = self.messages.get() {
            messages.saw(data);
            self.messages.set(Some(messages));
        }
    }

    /// When the request was read to its end, if it has been; `head` is when its head was.
    pub fn ended(&self, head: Instant) -> Option<Instant> {
        self.complete
            .get()
            .then(|| self.ended.get().unwrap_or(head))
    }

    /// Ready once the request has been read to its end.
    pub fn poll_complete(&self, cx: &Context<'_>) -> Poll<()> {
        if self.complete.get() {
            return Poll::Ready(());
        }
        self.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }

    pub(super) fn end_body(&self) {
        if !self.complete.get() {
            self.ended.set(Some(Instant::now()));
            self.finish();
        }
    }

    fn finish(&self) {
        self.complete.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The body of a request on its way upstream.
#[derive(Debug)]
pub enum UpstreamBody {
    /// No bytes; the request can be sent again as it is.
    Empty,
    /// Streamed from downstream as the upstream takes it.
    Stream {
        /// The downstream side.
        incoming: DownstreamBody,
        /// Notified of every frame.
        progress: Rc<Progress>,
    },
    /// As a stream, and kept for another try, or copied for a mirror.
    Shared(Reader),
    /// A mirror's copy.
    Copy(CopyBody),
}

impl UpstreamBody {
    /// The body of a downstream request, and how to follow it.
    pub fn new(incoming: DownstreamBody, extras: Extras) -> (Self, Rc<Progress>) {
        let progress = Rc::new(Progress::default());
        if incoming.is_end_stream() {
            progress.finish();
            return (UpstreamBody::Empty, progress);
        }
        let Extras { memory, copies } = extras;
        if memory.is_some() || !copies.is_empty() {
            let source = Source::new(incoming, &progress, memory, copies);
            let reader = source.reader().expect("nothing of it was read");
            return (UpstreamBody::Shared(reader), progress);
        }
        (
            UpstreamBody::Stream {
                incoming,
                progress: Rc::clone(&progress),
            },
            progress,
        )
    }

    /// The body that it is one reader of, if it can have others.
    pub fn source(&self) -> Option<Rc<Source>> {
        match self {
            UpstreamBody::Shared(reader) => Some(Rc::clone(reader.source())),
            UpstreamBody::Copy(_) | UpstreamBody::Empty | UpstreamBody::Stream { .. } => None,
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (incoming, progress) = match self.get_mut() {
            UpstreamBody::Empty => return Poll::Ready(None),
            UpstreamBody::Stream { incoming, progress } => (incoming, progress),
            UpstreamBody::Shared(reader) => return reader.poll_frame(cx),
            UpstreamBody::Copy(copy) => return copy.poll_frame(cx),
        };
        let polled = ready!(Pin::new(&mut *incoming).poll_frame(cx));
        match &polled {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    progress.saw(data);
                }
                if incoming.is_end_stream() {
                    progress.end_body();
                }
            }
            Some(Err(_)) => (),
            None => progress.end_body(),
        }
        Poll::Ready(polled.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            UpstreamBody::Empty => true,
            UpstreamBody::Stream { incoming, .. } => incoming.is_end_stream(),
            UpstreamBody::Shared(reader) => reader.is_end_stream(),
            UpstreamBody::Copy(copy) => copy.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            UpstreamBody::Empty => SizeHint::with_exact(0),
            UpstreamBody::Stream { incoming, .. } => incoming.size_hint(),
            UpstreamBody::Shared(reader) => hint(reader.left()),
            UpstreamBody::Copy(_) => SizeHint::default(),
        }
    }
}

fn hint(exact: Option<u64>) -> SizeHint {
    exact.map_or_else(SizeHint::default, SizeHint::with_exact)
}

/// The body of a response to the downstream peer.
pub enum ReplyBody {
    /// No bytes.
    Empty,
    /// A local reply's bytes, sent as one frame.
    Full(Bytes),
    /// Streamed from upstream as the downstream peer takes it.
    Stream(Box<StreamBody>),
}

/// A response body on its way downstream, with all that its end must settle.
pub struct StreamBody {
    incoming: pool::Incoming,
    /// Taken when the exchange ends; records a downstream disconnect if it is dropped before.
    record: Option<Box<Record>>,
    deadline: Option<Box<Deadline>>,
}

impl StreamBody {
    /// Wraps the upstream's body.
    pub fn new(
        incoming: pool::Incoming,
        record: Box<Record>,
        deadline: Option<Box<Deadline>>,
    ) -> Self {
        Self {
            incoming,
            record: Some(record),
            deadline,
        }
    }

    fn end(&mut self, ending: Ending) {
        if let Some(record) = self.record.take() {
            record.finish(ending);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(record) = &mut self.record {
                    record.saw_frame(&frame);
                }
                if self.incoming.is_end_stream() {
                    self.end(Ending::Complete);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.end(Ending::UpstreamBroke(error.kind()));
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                self.end(Ending::Complete);
                Poll::Ready(None)
            }
            Poll::Pending => {
                let Some(deadline) = &mut self.deadline else {
                    return Poll::Pending;
                };
                let kind = ready!(deadline.poll(cx, true));
                self.end(Ending::TimedOut);
                Poll::Ready(Some(Err(Error::new(kind))))
            }
        }
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        if self.incoming.is_end_stream() {
            self.end(Ending::Complete);
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        match this {
            ReplyBody::Empty => Poll::Ready(None),
            ReplyBody::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *this = ReplyBody::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            ReplyBody::Stream(stream) => stream.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Empty => true,
            ReplyBody::Full(_) => false,
            ReplyBody::Stream(stream) => stream.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Empty => SizeHint::with_exact(0),
            ReplyBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ReplyBody::Stream(stream) => stream.incoming.size_hint(),
        }
    }
}

impl std::fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ReplyBody::Empty => "Empty",
            ReplyBody::Full(_) => "Full",
            ReplyBody::Stream(_) => "Stream",
        })
    }
}
