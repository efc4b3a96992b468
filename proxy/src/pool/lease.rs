//! The hold that a request has on its connection, and its response's body after it.

use std::rc::Rc;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::{Request, Response};
use tokio::time::Instant;

use super::http1::Exclusive;
use super::http2::StreamHold;
use crate::error::BoxError;
use crate::upstream::Ends;

/// Keeps the connection that a request was sent on and that its response is read from.
///
/// [`Lease::finish`] gives an HTTP/1 connection back to its pool; dropping the lease instead closes it, which is
/// what must happen when the response was not read to its end. On an HTTP/2 connection both end the stream only.
pub struct Lease<B>(Hold<B>);

enum Hold<B> {
    Http1(Exclusive<B>),
    Http2(StreamHold<B>),
}

impl<B> Lease<B> {
    pub(super) fn http1(connection: Exclusive<B>) -> Self {
        Self(Hold::Http1(connection))
    }

    pub(super) fn http2(hold: StreamHold<B>) -> Self {
        Self(Hold::Http2(hold))
    }

    /// What the connection connects.
    pub fn ends(&self) -> &Rc<Ends> {
        match &self.0 {
            Hold::Http1(connection) => &connection.ends,
            Hold::Http2(hold) => hold.ends(),
        }
    }

    /// Whether the connection had carried another request before.
    pub(super) fn reused(&self) -> bool {
        match &self.0 {
            Hold::Http1(connection) => connection.reused,
            Hold::Http2(hold) => hold.reused(),
        }
    }

    /// Sends the request.
    ///
    /// # Errors
    ///
    /// Why there is no response; with the request if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<B>,
    ) -> Result<Response<Incoming>, TrySendError<Request<B>>>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        match &mut self.0 {
            Hold::Http1(connection) => connection.sender.try_send_request(request).await,
            Hold::Http2(hold) => hold.sender().try_send_request(request).await,
        }
    }

    /// Ends the hold on a connection that turned out to be closed: no other request is to meet it.
    pub(super) fn condemn(self) {
        if let Hold::Http2(hold) = &self.0 {
            hold.retire();
        }
    }

    /// Ends the hold after the response was read to its end.
    pub fn finish(self) {
        match self.0 {
            Hold::Http1(connection) => connection.give_back(Instant::now()),
            Hold::Http2(hold) => drop(hold),
        }
    }
}
