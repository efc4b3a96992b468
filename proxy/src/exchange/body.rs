//! Bodies that pass through: counted, never gathered, with back pressure from the side that reads.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The body of a response to the downstream peer.
#[derive(Debug)]
pub enum ReplyBody {
    /// No bytes.
    Empty,
    /// A local reply's bytes, sent as one frame.
    Full(Bytes),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        match std::mem::replace(this, ReplyBody::Empty) {
            ReplyBody::Empty => Poll::Ready(None),
            ReplyBody::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ReplyBody::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Empty => SizeHint::with_exact(0),
            ReplyBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}
