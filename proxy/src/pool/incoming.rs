//! The body of a response, and its hold on the connection that it comes on.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::endpoint_pool::{EndpointPool, StreamHold};
use crate::error::Error;
use crate::upstream::{Ends, http1, http2};

/// The body of a response, from either kind of connection.
///
/// Read to its end, it gives an HTTP/1 connection back to its pool; dropped before, it closes it. On an HTTP/2
/// connection both end the stream only.
pub struct Incoming {
    source: Source,
    ends: Rc<Ends>,
}

enum Source {
    Http1 {
        body: http1::Incoming,
        pool: Rc<EndpointPool>,
    },
    Http2 {
        body: http2::Incoming,
        /// Given up at the body's end.
        hold: Option<StreamHold>,
    },
}

impl Incoming {
    pub(super) fn http1(body: http1::Incoming, pool: &Rc<EndpointPool>, ends: Rc<Ends>) -> Self {
        let pool = Rc::clone(pool);
        Self::settled(Source::Http1 { body, pool }, ends)
    }

    fn settled(source: Source, ends: Rc<Ends>) -> Self {
        let mut incoming = Self { source, ends };
        incoming.settle();
        incoming
    }

    pub(super) fn http2(body: http2::Incoming, hold: StreamHold) -> Self {
        let ends = Rc::clone(hold.ends());
        let hold = Some(hold);
        Self::settled(Source::Http2 { body, hold }, ends)
    }

    /// What the connection connects.
    pub fn ends(&self) -> &Rc<Ends> {
        &self.ends
    }

    /// The raw connection after a 101; `None` on HTTP/2, which has none.
    pub fn into_upgraded(self) -> Option<http1::Upgraded> {
        match self.source {
            Source::Http1 { body, .. } => body.into_upgraded(),
            Source::Http2 { .. } => None,
        }
    }

    /// Lets go of the connection once nothing more comes on it for this body.
    fn settle(&mut self) {
        match &mut self.source {
            Source::Http1 { body, pool } => {
                if let Some(connection) = body.take_free() {
                    pool.park(connection);
                }
            }
            Source::Http2 { body, hold } => {
                if body.is_end_stream() {
                    *hold = None;
                }
            }
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let polled = match &mut this.source {
            Source::Http1 { body, .. } => body.poll_frame(cx),
            Source::Http2 { body, hold } => {
                let polled = body.poll_frame(cx);
                if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
                    *hold = None;
                }
                polled
            }
        };
        if polled.is_ready() {
            this.settle();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Http1 { body, .. } => body.is_end_stream(),
            Source::Http2 { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Http1 { body, .. } => body.size_hint(),
            Source::Http2 { body, .. } => body.size_hint(),
        }
    }
}
