//! The body of an upstream request: streamed with back pressure from the endpoint, and counted.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use smallvec::SmallVec;

use super::feed::{CopyBody, Feed};
use super::progress::Progress;
use super::replay::{Reader, ReplayBudget, Source};
use crate::exchange::downstream::body::DownstreamBody;
use traffic::error::BoxError;

/// Additional uses of a request's body.
#[derive(Default)]
pub struct Extras {
    /// Memory for buffering, if the request may be sent again.
    pub memory: Option<Rc<ReplayBudget>>,
    /// Queues of mirrors that get copies.
    pub copies: SmallVec<[Rc<Feed>; 1]>,
}

/// The body of an upstream request.
#[derive(Debug)]
pub enum UpstreamBody {
    /// No bytes; can be sent again as it is.
    Empty,
    /// Streamed from downstream as fast as the upstream takes it.
    Stream {
        /// The downstream side.
        incoming: DownstreamBody,
        /// Progress, updated with every frame.
        progress: Rc<Progress>,
    },
    /// Streamed, and buffered for retries or copied for a mirror.
    Shared(Reader),
    /// A mirror's copy.
    Copy(CopyBody),
    /// The whole body of a request of the proxy's own.
    Whole(Box<Bytes>),
}

impl UpstreamBody {
    /// Creates the upstream body of a downstream request; also returns its progress.
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

    /// The shared body, if it may have more readers.
    pub fn source(&self) -> Option<Rc<Source>> {
        match self {
            UpstreamBody::Shared(reader) => Some(Rc::clone(reader.source())),
            UpstreamBody::Copy(_)
            | UpstreamBody::Empty
            | UpstreamBody::Stream { .. }
            | UpstreamBody::Whole(_) => None,
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
            UpstreamBody::Whole(bytes) => {
                let left = (!bytes.is_empty()).then(|| std::mem::take(&mut **bytes));
                return Poll::Ready(left.map(|bytes| Ok(Frame::data(bytes))));
            }
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
            UpstreamBody::Whole(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            UpstreamBody::Empty => SizeHint::with_exact(0),
            UpstreamBody::Stream { incoming, .. } => incoming.size_hint(),
            UpstreamBody::Shared(reader) => hint(reader.left()),
            UpstreamBody::Copy(_) => SizeHint::default(),
            UpstreamBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

fn hint(exact: Option<u64>) -> SizeHint {
    exact.map_or_else(SizeHint::default, SizeHint::with_exact)
}
