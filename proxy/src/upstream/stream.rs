//! Socket of an upstream connection: TCP or Unix, with or without TLS.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::client::UnbufferedClientConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::tunnelled::Tunnelled;
use crate::runtime::gather;
use crate::tls::encrypted::Encrypted;

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// TLS over another variant.
    Tls(Box<Encrypted<Stream, UnbufferedClientConnection>>),
    /// Another variant through a tunnel.
    Tunnelled(Box<Tunnelled<Stream>>),
    /// A Unix stream socket.
    Unix(UnixStream),
}

impl Stream {
    /// Returns the local address; `None` on a Unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Tls(stream) => stream.socket().local_address(),
            Stream::Tunnelled(stream) => stream.inner().local_address(),
            Stream::Unix(_) => None,
        }
    }

    /// Whether the peer closed the idle connection or sent unrequested bytes; a TLS session ticket does not count.
    ///
    /// Costs no system call unless the poller has seen an event.
    pub fn is_stale(&mut self) -> bool {
        let read = self.try_read(&mut [0]);
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads available bytes, without waiting.
    ///
    /// # Errors
    ///
    /// Errors of the socket; [`io::ErrorKind::WouldBlock`] if no bytes are available.
    pub fn try_read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tls(stream) => stream.try_read(space, Stream::try_read_plain),
            stream => stream.try_read_plain(space),
        }
    }

    /// Like [`Stream::try_read`], from the socket itself.
    fn try_read_plain(&self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_read(space),
            // only the inner stream could tell
            Stream::Tls(_) | Stream::Tunnelled(_) => Err(io::ErrorKind::Unsupported.into()),
            Stream::Unix(stream) => stream.try_read(space),
        }
    }

    /// Writes pieces in order; few small ones together.
    pub fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => gather::poll_write(Pin::new(stream), cx, pieces),
            // combines small pieces by itself
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Tunnelled(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Unix(stream) => gather::poll_write(Pin::new(stream), cx, pieces),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, space),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, space),
            Stream::Tunnelled(stream) => Pin::new(stream).poll_read(cx, space),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, space),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tunnelled(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Tunnelled(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tunnelled(stream) => Pin::new(stream).poll_flush(cx),
            // sockets buffer nothing
            Stream::Tcp(_) | Stream::Unix(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tunnelled(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
