//! The body of a response to the client: streamed, with back pressure from the client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::exchange::attempt::deadline::Deadline;
use crate::exchange::record::{Ending, Record};
use crate::pool;
use traffic::error::Error;
use traffic::filter::grpc_web::Encoder;

/// The body of a response to the downstream peer.
pub enum ReplyBody {
    /// No bytes.
    Empty,
    /// The bytes of a local reply, sent as one frame.
    Full(Bytes),
    /// Streamed from upstream as the downstream peer takes it.
    Stream(Box<StreamBody>),
}

impl From<Bytes> for ReplyBody {
    fn from(bytes: Bytes) -> Self {
        match bytes.is_empty() {
            true => ReplyBody::Empty,
            false => ReplyBody::Full(bytes),
        }
    }
}

/// A streamed response body, with everything that its end must report.
pub struct StreamBody {
    incoming: pool::Incoming,
    /// Taken when the exchange ends; reports a downstream disconnect if dropped before.
    record: Option<Box<Record>>,
    deadline: Option<Box<Deadline>>,
    /// Encoder for gRPC-Web.
    encoder: Option<Box<Encoder>>,
}

impl StreamBody {
    /// Wraps the upstream's body.
    pub fn new(
        incoming: pool::Incoming,
        record: Box<Record>,
        mut deadline: Option<Box<Deadline>>,
    ) -> Self {
        // the head has arrived
        if let Some(deadline) = &mut deadline {
            deadline.restart_idle();
        }
        Self {
            incoming,
            record: Some(record),
            deadline,
            encoder: None,
        }
    }

    fn end(&mut self, ending: Ending) {
        if let Some(record) = self.record.take() {
            record.finish(ending);
        }
    }

    /// Encodes the body for gRPC-Web from now on.
    pub fn translate(&mut self, encoder: Encoder) {
        self.encoder = Some(Box::new(encoder));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.encoder.is_none() {
            return self.poll_upstream(cx);
        }
        loop {
            let frame = ready!(self.poll_upstream(cx));
            let Some(encoder) = &mut self.encoder else {
                return Poll::Ready(frame);
            };
            let (encoded, is_end) = match frame.transpose()?.map(Frame::into_data) {
                None => (encoder.finish(), true),
                Some(Ok(data)) => (encoder.data(data), false),
                Some(Err(frame)) => match frame.into_trailers() {
                    Ok(trailers) => (encoder.trailers(&trailers), true),
                    Err(_) => continue,
                },
            };
            if !encoded.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(encoded))));
            }
            if is_end {
                return Poll::Ready(None);
            }
        }
    }

    fn is_at_end(&self) -> bool {
        let is_encoded = |encoder: &Encoder| encoder.is_complete();
        self.incoming.is_end_stream() && self.encoder.as_deref().is_none_or(is_encoded)
    }

    fn poll_upstream(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(record) = &mut self.record {
                    record.record_frame(&frame);
                }
                if let Some(deadline) = &mut self.deadline {
                    deadline.restart_idle();
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
            ReplyBody::Stream(stream) => stream.is_at_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Empty => SizeHint::with_exact(0),
            ReplyBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ReplyBody::Stream(stream) if stream.encoder.is_some() => SizeHint::default(),
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
