//! A tunnel through another proxy: opened by an HTTP/1.1 request, and bytes from then on.
//!
//! After a CONNECT the bytes go as they are (RFC 9110, section 9.3.6). With POST they are the body of the request, in
//! chunks, and of the response.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::http1::decoder::{Decoder, Step};
use super::http1::head::{self, ExpectedResponse, Head};
use super::stream::Stream;
use crate::error::{Error, Kind};

/// Most bytes of a chunk of ours.
const CHUNK_BYTES_MAX: usize = 16 * 1024;

/// Bytes that are read at once of what is in chunks.
const READ_BYTES: usize = 16 * 1024;

/// Most interim responses before the final one.
const INTERIM_MAX: usize = 32;

/// Where a tunnel leads, and how it is opened.
///
/// Source: DestinationRule `tunnel`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// How it is opened.
    pub method: TunnelMethod,
    /// Host and port of its far end.
    pub authority: Arc<str>,
}

/// How a tunnel is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TunnelMethod {
    /// By CONNECT.
    #[default]
    Connect,
    /// By POST, with bodies of no known length.
    Post,
}

impl TunnelMethod {
    /// The method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::Post => "POST",
        }
    }
}

impl Tunnel {
    /// Opens it over a connection to the proxy.
    ///
    /// # Errors
    ///
    /// [`Kind::ConnectFailed`] when the proxy does not answer with a 2xx; nothing was carried then.
    pub async fn open(&self, mut stream: Stream) -> Result<Stream, Error> {
        let failed = |error: io::Error| Error::new(Kind::ConnectFailed).with_source(error);
        let request = self.request();
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        stream.flush().await.map_err(failed)?;
        let mut input = BytesMut::new();
        let mut interim = 0;
        let head = loop {
            let head = self.head(&mut stream, &mut input).await?;
            interim += 1;
            if !head.status.is_informational() || interim > INTERIM_MAX {
                break head;
            }
        };
        if !head.status.is_success() {
            let text = format!(
                "the proxy answers {} with {}",
                self.method.as_str(),
                head.status
            );
            return Err(Error::new(Kind::ConnectFailed).with_source(text));
        }
        Ok(match self.method {
            TunnelMethod::Connect if input.is_empty() => stream,
            TunnelMethod::Connect => Tunnelled::wrap(stream, input, Coding::None),
            TunnelMethod::Post => Tunnelled::wrap(stream, input, Coding::Bodies(head.decoder)),
        })
    }

    fn request(&self) -> String {
        let authority = &self.authority;
        match self.method {
            TunnelMethod::Connect => {
                format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n")
            }
            TunnelMethod::Post => format!(
                "POST / HTTP/1.1\r\nhost: {authority}\r\ntransfer-encoding: chunked\r\n\r\n"
            ),
        }
    }

    async fn head(&self, stream: &mut Stream, input: &mut BytesMut) -> Result<Head, Error> {
        let asked = ExpectedResponse {
            head: false,
            upgrade: false,
        };
        loop {
            if !input.is_empty()
                && let Some(head) = head::parse(input, &mut HeaderMap::new(), asked)?
            {
                return Ok(head);
            }
            let closed = || Error::new(Kind::ConnectFailed);
            match stream.read_buf(input).await {
                Ok(0) => return Err(closed().with_source("the proxy closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(closed().with_source(error)),
            }
        }
    }
}

/// How bytes go through a tunnel.
#[derive(Debug)]
enum Coding {
    /// As bodies of messages; the response's is still to be decoded.
    Bodies(Decoder),
    /// As they are.
    None,
}

/// A connection whose bytes are not read and written as they are.
#[derive(Debug)]
pub struct Tunnelled {
    stream: Stream,
    coding: Coding,
    /// Read, and not decoded.
    input: BytesMut,
    /// Decoded, and not taken.
    plain: Bytes,
    /// Encoded, and not with the kernel.
    output: BytesMut,
    finished: bool,
}

impl Tunnelled {
    fn wrap(stream: Stream, input: BytesMut, coding: Coding) -> Stream {
        Stream::Tunnelled(Box::new(Self {
            stream,
            coding,
            input,
            plain: Bytes::new(),
            output: BytesMut::new(),
            finished: false,
        }))
    }

    /// What the bytes go through.
    pub fn inner(&self) -> &Stream {
        &self.stream
    }

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

    /// Decodes; ready with nothing at the end of the body.
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

fn broken(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl AsyncRead for Tunnelled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // what waits to be written must not wait for what is read
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

impl AsyncWrite for Tunnelled {
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
            // bytes that the kernel did not take go before the next data
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
        // the response goes on: ending the connection would end it too
        self.poll_flush(cx)
    }
}
