//! The body of a response, read as it is asked for; at its end the connection is free again.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use super::connection::{Connection, Wire};
use super::decoder::{Decoder, Step};
use crate::error::{Error, Kind};
use crate::registry::RequestPermit;

/// A response body that is still with its connection.
#[derive(Debug)]
pub struct Incoming {
    /// Gone once it is free, or given up.
    connection: Option<Box<Connection>>,
    decoder: Decoder,
    persistent: bool,
    /// Whether the request has been sent to its end.
    sent: Sent,
    /// The connection, once it can carry another request.
    free: Option<Box<Connection>>,
}

/// Whether a request has been sent to its end.
#[derive(Debug)]
pub(super) enum Sent {
    /// It has.
    Whole,
    /// A task is at it.
    InTheBackground {
        /// Set when it is done.
        done: Rc<Cell<bool>>,
        /// Dropped when the response is over.
        _response: oneshot::Sender<()>,
    },
    /// It never will be.
    Broken,
}

impl Sent {
    fn is_whole(&self) -> bool {
        match self {
            Sent::Whole => true,
            Sent::InTheBackground { done, .. } => done.get(),
            Sent::Broken => false,
        }
    }
}

impl Incoming {
    pub(super) fn new(
        connection: Box<Connection>,
        decoder: Decoder,
        persistent: bool,
        sent: Sent,
    ) -> Self {
        let mut incoming = Self {
            connection: Some(connection),
            decoder,
            persistent,
            sent,
            free: None,
        };
        incoming.settle();
        incoming
    }

    /// Whether the body is complete.
    pub fn is_end_stream(&self) -> bool {
        self.decoder.is_end()
    }

    /// How much is still to come.
    pub fn size_hint(&self) -> SizeHint {
        self.decoder
            .remaining()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// The next frame of the body.
    ///
    /// # Errors
    ///
    /// [`Kind::UpstreamClosed`] when the connection ends before the body does, [`Kind::UpstreamProtocol`] when the body
    /// breaks its framing.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(None);
            };
            match self.decoder.step(&mut connection.input) {
                Ok(Step::Data(data)) => {
                    self.settle();
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Ok(Step::End(trailers)) => {
                    self.settle();
                    return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
                }
                Ok(Step::More) => {}
                Err(error) => return Poll::Ready(Some(Err(self.give_up(error)))),
            }
            match ready!(connection.poll_fill(cx)) {
                Ok(0) if self.decoder == Decoder::UntilClose => {
                    self.decoder = Decoder::End;
                    self.settle();
                }
                Ok(0) => {
                    let error =
                        Error::new(Kind::UpstreamClosed).with_source("body is not complete");
                    return Poll::Ready(Some(Err(self.give_up(error))));
                }
                Ok(_) => {}
                Err(error) => {
                    let error = Error::new(Kind::UpstreamClosed).with_source(error);
                    return Poll::Ready(Some(Err(self.give_up(error))));
                }
            }
        }
    }

    /// The connection, once the body was read to its end, if it can carry another request.
    pub fn take_free(&mut self) -> Option<Box<Connection>> {
        self.free.take()
    }

    /// The connection as it is, after a 101.
    pub fn into_upgraded(mut self) -> Option<Upgraded> {
        let connection = self.connection.take().or_else(|| self.free.take())?;
        Some(Upgraded {
            wire: connection.wire,
            ahead: connection.input,
            _request: connection.request,
        })
    }

    /// Frees the connection when the body is complete.
    fn settle(&mut self) {
        if !self.decoder.is_end() || !self.persistent {
            return;
        }
        // an endpoint that sends more than announced is not used again
        if self.sent.is_whole() {
            let mut connection = self.connection.take();
            if let Some(connection) = &mut connection {
                connection.request = None;
            }
            self.free = connection.filter(|connection| connection.input.is_empty());
        }
    }

    fn give_up(&mut self, error: Error) -> Error {
        self.connection = None;
        self.decoder = Decoder::End;
        error
    }
}

/// A connection that changed its protocol.
#[derive(Debug)]
pub struct Upgraded {
    wire: Rc<Wire>,
    /// Read before the protocol changed.
    ahead: BytesMut,
    /// Counts it as a request in flight.
    _request: Option<RequestPermit>,
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(space.remaining());
            space.put_slice(&self.ahead.split_to(length));
            return Poll::Ready(Ok(()));
        }
        self.wire.poll(|stream| stream.poll_read(cx, space))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.wire.poll(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.wire.poll(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.wire.poll(|stream| stream.poll_shutdown(cx))
    }
}
