//! A response on its way to the client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame};

use super::outbox::Outbox;
use crate::codec::transport::Transport;
use wire::http1::response::encoder::{self, Encoding};

/// Error: a response is cut off because its body failed or has a wrong length, or the peer is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseCutOff;

/// A response whose head was written to the outbox.
pub(super) struct Reply<B> {
    /// Body, until its end.
    pub(super) body: Option<B>,
    pub(super) encoding: Encoding,
    /// Whether the connection can carry another request.
    pub(super) persistent: bool,
    /// Whether the connection switches to another protocol.
    pub(super) switching: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Reply<B> {
    /// Sends the body; ready once the kernel has taken all of it. Polls the body only while the outbox has room.
    pub(super) fn poll_send(
        &mut self,
        outbox: &mut Outbox,
        transport: &mut Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ResponseCutOff>> {
        loop {
            let mut waits = false;
            // available small pieces go out together; a long head goes alone
            while !waits && self.body.is_some() && outbox.has_room() {
                match self.poll_body(outbox, cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Pending => waits = true,
                    Poll::Ready(Err(broken)) => {
                        // send at least the beginning
                        let _ = outbox.poll_flush(transport, cx);
                        return Poll::Ready(Err(broken));
                    }
                }
            }
            ready!(outbox.poll_flush(transport, cx)).map_err(|_| ResponseCutOff)?;
            if self.body.is_none() {
                return Poll::Ready(Ok(()));
            }
            if waits {
                return Poll::Pending;
            }
        }
    }

    /// Queues one frame of the body.
    fn poll_body(
        &mut self,
        outbox: &mut Outbox,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ResponseCutOff>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(()));
        };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        let is_last = body.is_end_stream();
        let ended = match frame
            .transpose()
            .map_err(|_| ResponseCutOff)?
            .map(Frame::into_data)
        {
            Some(Ok(data)) => self.add(outbox, data, is_last),
            Some(Err(frame)) => {
                self.end(outbox, frame.into_trailers().ok())?;
                true
            }
            None => {
                self.end(outbox, None)?;
                true
            }
        };
        if ended {
            self.body = None;
        }
        Poll::Ready(Ok(()))
    }

    /// Queues bytes of the body; returns whether they were the last.
    fn add(&mut self, outbox: &mut Outbox, mut data: Bytes, is_last: bool) -> bool {
        if data.is_empty() {
            return false;
        }
        match &mut self.encoding {
            Encoding::UntilClose => {
                outbox.push(data, b"");
                false
            }
            Encoding::Length(left) => {
                let length = data.len() as u64;
                let is_excess = length > *left;
                if is_excess {
                    // more than declared: the client would take it for the next response
                    data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    self.persistent = false;
                }
                *left = left.saturating_sub(length);
                outbox.push(data, b"");
                is_excess || (*left == 0 && is_last)
            }
            Encoding::Chunked(_) => {
                encoder::chunk(&mut outbox.head, data.len());
                outbox.push(
                    data,
                    match is_last {
                        true => encoder::LAST_CHUNK_END,
                        false => encoder::CHUNK_END,
                    },
                );
                is_last
            }
        }
    }

    /// Queues the end of the body.
    fn end(&self, outbox: &mut Outbox, trailers: Option<HeaderMap>) -> Result<(), ResponseCutOff> {
        match &self.encoding {
            Encoding::Length(0) | Encoding::UntilClose => Ok(()),
            // shorter than declared: the client must not take it for complete
            Encoding::Length(_) => Err(ResponseCutOff),
            Encoding::Chunked(announced) => {
                encoder::end(&mut outbox.head, announced, &trailers.unwrap_or_default());
                Ok(())
            }
        }
    }
}
