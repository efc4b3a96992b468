//! The hold that a response body has on its connection.

use std::cell::Cell;
use std::rc::Rc;

use hyper::client::conn::{http1, http2};
use tokio::time::Instant;

use super::EndpointPool;

/// Keeps the connection that a response is read from.
///
/// [`Lease::finish`] gives an HTTP/1 connection back to its pool; dropping the lease instead closes it, which is
/// what must happen when the response was not read to its end. On an HTTP/2 connection both end the stream only.
pub struct Lease<B>(Hold<B>);

enum Hold<B> {
    Http1 {
        pool: Rc<EndpointPool<B>>,
        sender: http1::SendRequest<B>,
    },
    Http2(StreamHold<B>),
}

/// One stream's place on a shared connection.
pub(super) struct StreamHold<B> {
    pub(super) active: Rc<Cell<usize>>,
    /// Keeps the connection open while the stream runs.
    pub(super) _sender: http2::SendRequest<B>,
}

impl<B> Drop for StreamHold<B> {
    fn drop(&mut self) {
        self.active.set(self.active.get() - 1);
    }
}

impl<B> Lease<B> {
    pub(super) fn http1(pool: Rc<EndpointPool<B>>, sender: http1::SendRequest<B>) -> Self {
        Self(Hold::Http1 { pool, sender })
    }

    pub(super) fn http2(hold: StreamHold<B>) -> Self {
        Self(Hold::Http2(hold))
    }

    /// Ends the hold after the response was read to its end.
    pub fn finish(self) {
        match self.0 {
            Hold::Http1 { pool, sender } => {
                if !sender.is_closed() {
                    pool.http1.push(sender, Instant::now(), &pool.counts);
                }
            }
            Hold::Http2(hold) => drop(hold),
        }
    }
}
