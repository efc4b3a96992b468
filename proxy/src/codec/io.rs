//! The downstream socket as hyper sees it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::runtime::admission::Slot;

/// Bytes read ahead at once: most request heads fit.
const AHEAD: usize = 1024;

/// A downstream socket with the bytes that were read ahead of its codec.
#[derive(Debug)]
pub struct Stream {
    tcp: TcpStream,
    prefix: Bytes,
    /// Counts the connection out when the socket closes, also after an upgrade.
    _slot: Slot,
}

impl Stream {
    /// Takes over an accepted socket.
    pub fn new(tcp: TcpStream, slot: Slot) -> Self {
        Self {
            tcp,
            prefix: Bytes::new(),
            _slot: slot,
        }
    }

    /// What was read ahead and not yet consumed.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Reads ahead; returns how many bytes were added, 0 at the end of the stream.
    ///
    /// # Errors
    ///
    /// What reading from the socket fails with.
    pub async fn fill_prefix(&mut self) -> io::Result<usize> {
        poll_fn(|cx| self.poll_fill(cx)).await
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack only while it is polled, so that waiting costs no memory.
        let mut space = [0; AHEAD];
        let mut space = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut space))?;
        let read = space.filled();
        let mut prefix = BytesMut::with_capacity(self.prefix.len() + read.len());
        prefix.extend_from_slice(&self.prefix);
        prefix.extend_from_slice(read);
        self.prefix = prefix.freeze();
        Poll::Ready(Ok(read.len()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.prefix.is_empty() {
            let length = this.prefix.len().min(space.remaining());
            space.put_slice(&this.prefix[..length]);
            this.prefix.advance(length);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.tcp).poll_read(cx, space)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
