//! Response body, and its hold on its connection.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::endpoint_pool::{EndpointPool, StreamHold};
use crate::upstream::{ConnectionInfo, http1, http2};
use traffic::error::Error;

/// Response body, from either kind of connection.
///
/// Read to its end, it returns an HTTP/1 connection to its pool; dropped earlier, it closes the connection. On an
/// HTTP/2 connection both only end the stream.
pub struct Incoming {
    source: Source,
    ends: Rc<ConnectionInfo>,
}

enum Source {
    Http1 {
        body: http1::Incoming,
        pool: Rc<EndpointPool>,
    },
    Http2 {
        body: http2::Incoming,
        /// Dropped at the end of the body.
        hold: Option<StreamHold>,
    },
}

impl Incoming {
    pub(super) fn http1(
        body: http1::Incoming,
        pool: &Rc<EndpointPool>,
        ends: Rc<ConnectionInfo>,
    ) -> Self {
        let pool = Rc::clone(pool);
        Self::new(Source::Http1 { body, pool }, ends)
    }

    fn new(source: Source, ends: Rc<ConnectionInfo>) -> Self {
        let mut incoming = Self { source, ends };
        incoming.release_if_ended();
        incoming
    }

    pub(super) fn http2(body: http2::Incoming, hold: StreamHold) -> Self {
        let ends = Rc::clone(hold.ends());
        let hold = Some(hold);
        Self::new(Source::Http2 { body, hold }, ends)
    }

    /// Addresses and TLS state of the connection.
    pub fn ends(&self) -> &Rc<ConnectionInfo> {
        &self.ends
    }

    /// Returns the raw connection after a 101; `None` on HTTP/2, which has none.
    pub fn into_upgraded(self) -> Option<http1::Upgraded> {
        match self.source {
            Source::Http1 { body, .. } => body.into_upgraded(),
            Source::Http2 { .. } => None,
        }
    }

    /// Releases the connection once the body has ended.
    fn release_if_ended(&mut self) {
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
            this.release_if_ended();
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
