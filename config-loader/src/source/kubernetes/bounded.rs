//! Bounds what a server may send: the client library reads a line of a watch, and the body of a list, however long it is, and
//! waits for the rest of it for ever.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::TryFutureExt;
use futures_util::future::MapOk;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower_layer::Layer;
use tower_service::Service;

use super::throttle::Throttle;
use crate::source::stream::stall::StallTimer;

/// The longest line of a watch, which is one event. An API server stores objects of at most 1.5 MiB (etcd) or a few times that.
const LINE_BYTES_MAX: usize = 16 << 20;

/// The largest body of any other response: a page of a list has at most 500 objects.
const BODY_BYTES_MAX: usize = 512 << 20;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A response, or an event of a watch, is larger than what is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge {
    what: &'static str,
    max: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLarge { what, max } = self;
        write!(f, "the API server sent {what} of more than {max} bytes")
    }
}

impl std::error::Error for TooLarge {}

/// Ends responses that are larger than anything that an API server sends, or that stop in the middle, and notes how long the
/// server asks to be left alone.
#[derive(Clone, Debug)]
pub(super) struct BoundedLayer {
    throttle: Throttle,
}

impl BoundedLayer {
    /// With what is noted.
    pub(super) fn new(throttle: Throttle) -> BoundedLayer {
        BoundedLayer { throttle }
    }
}

impl<S> Layer<S> for BoundedLayer {
    type Service = Bounded<S>;

    fn layer(&self, inner: S) -> Bounded<S> {
        Bounded {
            inner,
            throttle: self.throttle.clone(),
        }
    }
}

/// A client with bounded responses.
#[derive(Clone, Debug)]
pub(super) struct Bounded<S> {
    inner: S,
    throttle: Throttle,
}

impl<S, Q, B> Service<Request<Q>> for Bounded<S>
where
    S: Service<Request<Q>, Response = Response<B>>,
{
    type Response = Response<BoundedBody<B>>;
    type Error = S::Error;
    type Future = MapOk<S::Future, Box<dyn FnOnce(Response<B>) -> Self::Response + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let is_watch = is_watch(request.uri().query().unwrap_or(""));
        let throttle = self.throttle.clone();
        let bound = move |response: Response<B>| {
            throttle.note(response.status(), response.headers());
            response.map(|body| BoundedBody::new(body, is_watch))
        };
        self.inner.call(request).map_ok(Box::new(bound))
    }
}

fn is_watch(query: &str) -> bool {
    query
        .split('&')
        .any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// A body that fails when it, or a line of it, is too long, or stops in the middle.
#[derive(Debug)]
pub(super) struct BoundedBody<B> {
    inner: B,
    is_watch: bool,
    /// The bytes of the line so far, or of the body.
    length: usize,
    timer: StallTimer,
}

impl<B> BoundedBody<B> {
    fn new(inner: B, is_watch: bool) -> BoundedBody<B> {
        BoundedBody {
            inner,
            is_watch,
            length: 0,
            timer: StallTimer::default(),
        }
    }

    /// Whether more has to come: a watch is silent between its lines.
    fn is_in_message(&self) -> bool {
        !self.is_watch || self.length > 0
    }

    /// Counts bytes.
    fn take(&mut self, data: &[u8]) -> Result<(), TooLarge> {
        let (max, what) = match self.is_watch {
            true => (LINE_BYTES_MAX, "an event of a watch"),
            false => (BODY_BYTES_MAX, "a response"),
        };
        let mut pieces = data
            .split(|byte| self.is_watch && *byte == b'\n')
            .peekable();
        while let Some(piece) = pieces.next() {
            self.length += piece.len();
            if self.length > max {
                return Err(TooLarge { what, max });
            }
            if pieces.peek().is_some() {
                self.length = 0;
            }
        }
        Ok(())
    }
}

impl<B> Body for BoundedBody<B>
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
        let is_in_message = this.is_in_message();
        let polled = this.timer.poll_frame(&mut this.inner, is_in_message, cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
            && let Err(error) = this.take(data)
        {
            return Poll::Ready(Some(Err(error.into())));
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
    use super::*;

    #[test]
    fn one_line_of_a_watch_is_bounded_and_their_number_is_not() {
        let mut body = BoundedBody::new((), true);
        let half = vec![b'x'; LINE_BYTES_MAX / 2];
        for _ in 0..10 {
            body.take(&half).unwrap();
            body.take(b"\nx").unwrap();
            body.take(b"y\n").unwrap();
        }
        body.take(&half).unwrap();
        body.take(&half).unwrap();
        let error = body.take(b"x").unwrap_err().to_string();
        assert!(
            error.contains("an event of a watch of more than"),
            "{error}"
        );
    }

    #[test]
    fn other_bodies_are_bounded_as_a_whole() {
        let mut body = BoundedBody::new((), false);
        let line = vec![b'\n'; LINE_BYTES_MAX];
        let count = BODY_BYTES_MAX / LINE_BYTES_MAX;
        for _ in 0..count {
            body.take(&line).unwrap();
        }
        assert!(body.take(b"\n").is_err());
    }

    #[test]
    fn watches_are_told_by_their_query() {
        assert!(is_watch("watch=true") && is_watch("a=b&watch=1&c"));
        assert!(!is_watch("") && !is_watch("limit=500&labelSelector=watch%3Dtrue"));
    }
}
