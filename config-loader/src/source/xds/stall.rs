//! Ends a stream that stops in the middle of a message. The gRPC library would wait for the rest forever.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::TryFutureExt;
use futures_util::future::MapOk;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower_service::Service;

use crate::source::stream::stall::StallTimer;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Length of the prefix of a gRPC message: compression flag and message length.
const HEAD_BYTES: usize = 5;

/// Channel whose responses fail when they stop in the middle of a message.
#[derive(Clone, Debug)]
pub(super) struct Watched<S>(pub(super) S);

impl<S, Q, B> Service<Request<Q>> for Watched<S>
where
    S: Service<Request<Q>, Response = Response<B>>,
{
    type Response = Response<WatchedBody<B>>;
    type Error = S::Error;
    type Future = MapOk<S::Future, fn(Response<B>) -> Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let watch = |response: Response<B>| response.map(WatchedBody::new);
        self.0.call(request).map_ok(watch)
    }
}

/// Body of gRPC messages.
#[derive(Debug)]
pub(super) struct WatchedBody<B> {
    inner: B,
    position: Position,
    timer: StallTimer,
}

impl<B> WatchedBody<B> {
    fn new(inner: B) -> WatchedBody<B> {
        WatchedBody {
            inner,
            position: Position::default(),
            timer: StallTimer::default(),
        }
    }
}

/// Parse position of a body within its messages.
#[derive(Debug, Default)]
struct Position {
    /// Bytes received of the message's prefix.
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Bytes missing until the end of the message.
    missing: usize,
}

impl Position {
    fn is_in_message(&self) -> bool {
        self.head_bytes > 0 || self.missing > 0
    }

    fn advance(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let taken;
            if self.missing > 0 {
                taken = self.missing.min(data.len());
                self.missing -= taken;
            } else {
                taken = (HEAD_BYTES - self.head_bytes).min(data.len());
                let end = self.head_bytes + taken;
                self.head[self.head_bytes..end].copy_from_slice(&data[..taken]);
                self.head_bytes = end;
                if end == HEAD_BYTES {
                    let [_, length @ ..] = self.head;
                    self.missing = u32::from_be_bytes(length) as usize;
                    self.head_bytes = 0;
                }
            }
            data = &data[taken..];
        }
    }
}

impl<B> Body for WatchedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        let is_in_message = this.position.is_in_message();
        let polled = this.timer.poll_frame(&mut this.inner, is_in_message, cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            this.position.advance(data);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::stream::{self, StreamExt};
    use http_body_util::{BodyExt, StreamBody};
    use tokio::time::timeout;

    use super::*;
    use crate::source::stream::stall::{STALL_MAX, Stalled};

    #[test]
    fn position_is_known_wherever_messages_are_cut() {
        let mut bytes = vec![0, 0, 0, 0, 3, 1, 2, 3];
        bytes.extend([0, 0, 0, 0, 0]);
        bytes.extend([1, 0, 0, 1, 0]);
        bytes.extend([7; 256]);
        let ends = [8, 13, 274];
        for size in [1, 2, 4, 5, 7, 300] {
            let mut position = Position::default();
            let mut at = 0;
            for part in bytes.chunks(size) {
                position.advance(part);
                at += part.len();
                assert_eq!(position.is_in_message(), !ends.contains(&at), "{size} {at}");
            }
        }
    }

    /// Returns a body that sends `bytes` and then stalls.
    fn body(bytes: &'static [u8]) -> WatchedBody<impl Body<Data = Bytes, Error = Error> + Unpin> {
        let first = stream::iter([Ok(Frame::data(Bytes::from_static(bytes)))]);
        WatchedBody::new(StreamBody::new(first.chain(stream::pending())))
    }

    #[tokio::test(start_paused = true)]
    async fn half_message_ends_the_stream_and_silence_between_messages_does_not() {
        let long = Duration::from_secs(10_000);
        let mut whole = body(&[0, 0, 0, 0, 1, 9]);
        whole.frame().await.unwrap().unwrap();
        assert!(timeout(long, whole.frame()).await.is_err());
        for half in [&[0_u8, 0][..], &[0, 0, 0, 0, 2, 9]] {
            let mut half = body(half);
            half.frame().await.unwrap().unwrap();
            let early = timeout(STALL_MAX / 2, half.frame()).await;
            assert!(early.is_err());
            let ended = timeout(STALL_MAX, half.frame()).await.unwrap().unwrap();
            assert!(ended.unwrap_err().is::<Stalled>());
        }
    }
}
