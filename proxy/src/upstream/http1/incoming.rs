//! Response body, read on demand; at its end the connection is free again.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::{Connection, Wire};
use super::reading::Reading;
use traffic::error::{Error, Kind};
use traffic::registry::RequestPermit;
use wire::http1::response::decoder::{Decoder, Step};

/// Response body. Its state is in its connection, so that moving the body stays cheap.
#[derive(Debug)]
pub struct Incoming {
    /// `None` once the connection is free or has failed; the body then has ended.
    connection: Option<Box<Connection>>,
}

impl Incoming {
    /// Returns the body of the current response of this connection.
    pub(super) fn new(connection: Box<Connection>) -> Self {
        Self {
            connection: Some(connection),
        }
    }

    /// Whether the body is complete.
    pub fn is_end_stream(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_none_or(|connection| connection.reading.decoder.is_end())
    }

    /// Returns the number of remaining bytes, if known.
    pub fn size_hint(&self) -> SizeHint {
        let Some(connection) = &self.connection else {
            return SizeHint::with_exact(0);
        };
        let remaining = connection.reading.decoder.remaining();
        remaining.map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// Polls for the next frame of the body.
    ///
    /// # Errors
    ///
    /// [`Kind::UpstreamClosed`] if the connection ends before the body, [`Kind::UpstreamProtocol`] if its framing is
    /// malformed, [`Kind::DownstreamBody`] if the body of the request fails.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(None);
            };
            let decoder = &mut connection.reading.decoder;
            match decoder.step(&mut connection.input) {
                Ok(Step::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(Step::End(trailers)) => {
                    return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
                }
                Ok(Step::More) => {}
                Err(error) => return Poll::Ready(Some(Err(self.give_up(error.into())))),
            }
            if connection.reading.sent.has_failed(cx) {
                let error = Error::new(Kind::DownstreamBody);
                return Poll::Ready(Some(Err(self.give_up(error))));
            }
            let decoder = &connection.reading.decoder;
            let until_close = *decoder == Decoder::UntilClose;
            match ready!(connection.poll_fill(cx)) {
                Ok(0) if until_close => connection.reading.decoder = Decoder::End,
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

    /// Takes the connection once the body has ended, if it can carry another request.
    pub fn take_free(&mut self) -> Option<Box<Connection>> {
        let reading = &mut self.connection.as_mut()?.reading;
        if !reading.decoder.is_end() {
            return None;
        }
        // a request that is still being sent then is not waited for
        reading.persistent &= reading.sent.is_whole();
        if !reading.persistent {
            return None;
        }
        let mut connection = self.connection.take()?;
        connection.request = None;
        connection.reading = Reading::NOTHING;
        // an endpoint that sends more than declared is not reused
        connection.input.is_empty().then_some(connection)
    }

    /// Returns the connection, switched to another protocol after a 101.
    pub fn into_upgraded(self) -> Option<Upgraded> {
        let connection = self.connection?;
        Some(Upgraded {
            wire: connection.wire,
            ahead: connection.input,
            _request: connection.request,
        })
    }

    fn give_up(&mut self, error: Error) -> Error {
        self.connection = None;
        error
    }
}

/// A connection that switched to another protocol.
#[derive(Debug)]
pub struct Upgraded {
    wire: Rc<Wire>,
    /// Bytes read before the switch.
    ahead: BytesMut,
    /// Counts the connection as a request in flight.
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
