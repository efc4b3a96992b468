//! Size and time limits of responses. Without them, the client library reads a line of a watch or the body of a list of
//! any size, and waits forever for a response to begin or to continue.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tower_layer::Layer;
use tower_service::Service;

use super::settings::ApiServerTimes;
use super::silence::{Late, Silent};
use super::throttle::Throttle;
use crate::source::stream::signs::{Cut, Signs};
use crate::source::stream::stall::StallTimer;

/// Largest line of a watch, which is one event. An API server stores objects of at most 1.5 MiB (etcd) or a few times
/// that.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Largest body of any other response. A page of a list has at most 500 objects.
const BODY_BYTES_MAX: usize = 512 << 20;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Error: a response, or an event of a watch, exceeds the size limit.
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

/// Tower layer that fails responses that are too large, do not begin in time, or stop in the middle. It also records
/// `Retry-After` and when each watch was last heard.
#[derive(Clone, Debug)]
pub(super) struct BoundedLayer {
    times: ApiServerTimes,
    throttle: Throttle,
    signs: Signs,
}

impl BoundedLayer {
    /// Creates a layer that records into `throttle` and `signs`.
    pub(super) fn new(times: ApiServerTimes, throttle: Throttle, signs: Signs) -> BoundedLayer {
        BoundedLayer {
            times,
            throttle,
            signs,
        }
    }
}

impl<S> Layer<S> for BoundedLayer {
    type Service = Bounded<S>;

    fn layer(&self, inner: S) -> Bounded<S> {
        Bounded {
            inner,
            layer: self.clone(),
        }
    }
}

/// Client with limits on its responses.
#[derive(Clone, Debug)]
pub(super) struct Bounded<S> {
    inner: S,
    layer: BoundedLayer,
}

impl<S, Q, B> Service<Request<Q>> for Bounded<S>
where
    S: Service<Request<Q>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Error>,
{
    type Response = Response<BoundedBody<B>>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let is_watch = is_watch(request.uri().query().unwrap_or(""));
        let path = request.uri().path().to_owned();
        let layer = self.layer.clone();
        let begins_within = match is_watch {
            true => layer.times.watch_begins,
            false => layer.times.response_begins,
        };
        let response = tokio::time::timeout(begins_within, self.inner.call(request));
        Box::pin(async move {
            let response = response.await.map_err(|_| Late)?.map_err(Into::into)?;
            let status = response.status();
            layer.throttle.note(status, response.headers());
            if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS {
                layer.signs.note(&path);
            }
            let watched = is_watch.then(|| Watched {
                cut: layer.signs.open(&path),
                signs: layer.signs,
                path,
            });
            Ok(response.map(|body| BoundedBody::new(body, watched)))
        })
    }
}

fn is_watch(query: &str) -> bool {
    query
        .split('&')
        .any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// Liveness of a watch, and the handle that ends it.
#[derive(Debug)]
struct Watched {
    cut: Cut,
    signs: Signs,
    path: String,
}

/// Response body that fails when it, or a line of it, is too long, when it stops in the middle, or when it is cut.
#[derive(Debug)]
pub(super) struct BoundedBody<B> {
    inner: B,
    /// State of the watch; `None` for other responses.
    watched: Option<Watched>,
    /// Bytes of the current line, or of the body, so far.
    length: usize,
    timer: StallTimer,
}

impl<B> BoundedBody<B> {
    fn new(inner: B, watched: Option<Watched>) -> BoundedBody<B> {
        BoundedBody {
            inner,
            watched,
            length: 0,
            timer: StallTimer::default(),
        }
    }

    /// Whether a message is incomplete. A watch may be silent between its lines.
    fn is_in_message(&self) -> bool {
        self.watched.is_none() || self.length > 0
    }

    /// Adds `data` to the length and fails if it exceeds the limit.
    fn take(&mut self, data: &[u8]) -> Result<(), TooLarge> {
        let is_watch = self.watched.is_some();
        let (max, what) = match is_watch {
            true => (LINE_BYTES_MAX, "an event of a watch"),
            false => (BODY_BYTES_MAX, "a response"),
        };
        let mut pieces = data.split(|byte| is_watch && *byte == b'\n').peekable();
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
        if let Some(watched) = &mut this.watched
            && watched.cut.poll_unpin(cx).is_ready()
        {
            return Poll::Ready(Some(Err(Silent.into())));
        }
        let is_in_message = this.is_in_message();
        let polled = this.timer.poll_frame(&mut this.inner, is_in_message, cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            if let Some(watched) = &this.watched {
                watched.signs.note(&watched.path);
            }
            if let Err(error) = this.take(data) {
                return Poll::Ready(Some(Err(error.into())));
            }
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
        let signs = Signs::default();
        let watched = Watched {
            cut: signs.open(""),
            signs,
            path: String::new(),
        };
        let mut body = BoundedBody::new((), Some(watched));
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
        let mut body = BoundedBody::new((), None);
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
