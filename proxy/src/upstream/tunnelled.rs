//! Bytes of a tunnel: raw, or framed as the bodies of a request and its response.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use traffic::error::Error;
use wire::http1::response::Malformed;
use wire::http1::response::decoder::{Decoder, Step};

/// Maximum bytes of a chunk that the proxy writes.
const CHUNK_BYTES_MAX: usize = 16 * 1024;

/// Bytes per read of a chunked body.
const READ_BYTES: usize = 16 * 1024;

/// Framing of the bytes of a tunnel.
#[derive(Debug)]
pub(super) enum Coding {
    /// Bodies of messages, with the decoder of the response body.
    Bodies(Decoder),
    /// Raw bytes.
    None,
}

/// A connection through a tunnel.
#[derive(Debug)]
pub struct Tunnelled<S> {
    stream: S,
    coding: Coding,
    /// Bytes that were read and not decoded.
    input: BytesMut,
    /// Bytes that were decoded and not taken.
    plain: Bytes,
    /// Bytes that were encoded and not written.
    output: BytesMut,
    finished: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Tunnelled<S> {
    /// Returns a tunnel over this stream; `input` was read from it already.
    pub(super) fn new(stream: S, input: BytesMut, coding: Coding) -> Self {
        Self {
            stream,
            coding,
            input,
            plain: Bytes::new(),
            output: BytesMut::new(),
            finished: false,
        }
    }

    /// Returns the stream below the tunnel.
    pub fn inner(&self) -> &S {
        &self.stream
    }

    /// Writes the pending output to the stream below.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.output))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Decodes the next bytes; ready with none at the end of the body.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        loop {
            let Coding::Bodies(decoder) = &mut self.coding else {
                return Poll::Ready(Ok(self.input.split().freeze()));
            };
            match decoder.step(&mut self.input).map_err(broken)? {
                Step::Data(data) if data.is_empty() => {}
                Step::Data(data) => return Poll::Ready(Ok(data)),
                Step::End(_) => return Poll::Ready(Ok(Bytes::new())),
                Step::More => {
                    self.input.reserve(READ_BYTES);
                    let read = self.stream.read_buf(&mut self.input);
                    if ready!(std::pin::pin!(read).poll(cx))? == 0 {
                        return Poll::Ready(match decoder {
                            Decoder::UntilClose => Ok(Bytes::new()),
                            _ => Err(io::ErrorKind::UnexpectedEof.into()),
                        });
                    }
                }
            }
        }
    }
}

fn broken(error: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Error::from(error))
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnelled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // pending output must not wait for input
        if let Poll::Ready(Err(error)) = this.poll_drain(cx) {
            return Poll::Ready(Err(error));
        }
        if this.plain.is_empty() {
            if matches!(this.coding, Coding::None) && this.input.is_empty() {
                return Pin::new(&mut this.stream).poll_read(cx, space);
            }
            this.plain = ready!(this.poll_body(cx))?;
        }
        let count = this.plain.len().min(space.remaining());
        space.put_slice(&this.plain.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tunnelled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if matches!(this.coding, Coding::None) {
            return Pin::new(&mut this.stream).poll_write(cx, bytes);
        }
        ready!(this.poll_drain(cx))?;
        let taken = &bytes[..bytes.len().min(CHUNK_BYTES_MAX)];
        if !taken.is_empty() {
            let size = format!("{:x}\r\n", taken.len());
            for piece in [size.as_bytes(), taken, b"\r\n"] {
                this.output.extend_from_slice(piece);
            }
        }
        match this.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // bytes that the kernel did not accept go before the next data
            _ => Poll::Ready(Ok(taken.len())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = pieces.iter().find(|piece| !piece.is_empty());
        self.poll_write(cx, first.map_or(&[], |piece| piece))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.coding, Coding::None) {
            return Pin::new(&mut self.stream).poll_shutdown(cx);
        }
        if !self.finished {
            self.finished = true;
            self.output.extend_from_slice(b"0\r\n\r\n");
        }
        // the response continues: closing the connection would end it too
        self.poll_flush(cx)
    }
}
