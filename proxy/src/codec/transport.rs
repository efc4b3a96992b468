//! Socket of a downstream connection, in plain text or with TLS that the proxy terminates.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};

use crate::runtime::gather;
use crate::snapshot::UNIX_PEER;
use crate::tls::encrypted::Encrypted;

/// Transport of a downstream connection.
#[derive(Debug)]
pub enum Transport {
    /// TCP.
    Tcp(TcpStream),
    /// TLS over TCP or a Unix socket.
    Tls(Box<Encrypted<Replayed>>),
    /// A Unix socket.
    Unix(UnixStream),
    /// Stream of a test.
    #[cfg(test)]
    InMemory(Box<dyn InMemory>),
}

/// Manner in which a peer left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It closed its direction.
    Ended,
    /// The connection broke.
    Broken,
}

/// Calls a method of the inner stream.
macro_rules! delegate {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self {
            Transport::Tcp($stream) => $call,
            Transport::Tls($stream) => $call,
            Transport::Unix($stream) => $call,
            #[cfg(test)]
            Transport::InMemory($stream) => $call,
        }
    };
}

impl Transport {
    /// Whether the connection is TLS that the proxy terminates.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Makes closing the socket send a reset. Unix sockets and TLS have none; their peers see the end, for TLS without
    /// `close_notify`.
    pub fn reset_on_close(&self) {
        #[cfg(test)]
        if let Self::InMemory(stream) = self {
            stream.reset_on_close();
        }
        if let Self::Tcp(socket) = self {
            // fails only if the socket is gone already
            let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
        }
    }

    /// Whether the peer has left, even behind unread bytes. Nothing wakes the task for it.
    pub fn gone(&self) -> Option<Gone> {
        match self {
            Self::Tcp(stream) => gone(stream.ready(EITHER)),
            Self::Tls(stream) => stream.socket().gone(),
            Self::Unix(stream) => gone(stream.ready(EITHER)),
            #[cfg(test)]
            Self::InMemory(stream) => stream.gone(),
        }
    }

    /// Writes pieces in order; few small ones together.
    pub fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => gather::poll_write(Pin::new(stream), cx, pieces),
            // combines small pieces by itself
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Unix(stream) => gather::poll_write(Pin::new(stream), cx, pieces),
            #[cfg(test)]
            Self::InMemory(stream) => gather::poll_write(Pin::new(stream), cx, pieces),
        }
    }
}

impl Transport {
    /// Returns our address; [`UNIX_PEER`] for a Unix socket.
    ///
    /// # Errors
    ///
    /// If the peer is gone already, so that the kernel does not know it.
    pub fn local(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr().map(canonical),
            Self::Tls(_) | Self::Unix(_) => Ok(UNIX_PEER),
            #[cfg(test)]
            Self::InMemory(_) => Ok(UNIX_PEER),
        }
    }
}

const EITHER: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Returns the poller's knowledge of the socket's end, from a `ready` future that is polled once and never awaited.
fn gone(ready: impl Future<Output = io::Result<Ready>>) -> Option<Gone> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(ready).poll(&mut context) {
        Poll::Ready(Ok(ready)) if ready.is_write_closed() => Some(Gone::Broken),
        Poll::Ready(Ok(ready)) if ready.is_read_closed() => Some(Gone::Ended),
        Poll::Ready(Ok(_)) | Poll::Pending => None,
        Poll::Ready(Err(_)) => Some(Gone::Broken),
    }
}

/// Returns an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`, on a dual-stack socket) as its IPv4 address.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An accepted socket on its way from one worker to another.
#[derive(Debug)]
pub enum Detached {
    /// TCP.
    Tcp(std::net::TcpStream),
    /// A Unix socket.
    Unix(std::os::unix::net::UnixStream),
}

impl Detached {
    /// Removes a socket from this worker's poller.
    ///
    /// # Errors
    ///
    /// If the poller fails, or the connection is inside TLS.
    pub fn from(transport: Transport) -> io::Result<Self> {
        match transport {
            Transport::Tcp(stream) => stream.into_std().map(Self::Tcp),
            Transport::Unix(stream) => stream.into_std().map(Self::Unix),
            Transport::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
            #[cfg(test)]
            Transport::InMemory(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Registers the socket with the poller of the calling worker.
    ///
    /// # Errors
    ///
    /// If the poller fails.
    pub fn attach(self) -> io::Result<Transport> {
        match self {
            Self::Tcp(stream) => TcpStream::from_std(stream).map(Transport::Tcp),
            Self::Unix(stream) => UnixStream::from_std(stream).map(Transport::Unix),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_read(cx, space))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            // sockets buffer nothing
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(test)]
            Self::InMemory(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(&mut *self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

/// A socket preceded by the bytes that were read ahead, for a TLS handshake.
#[derive(Debug)]
pub struct Replayed {
    ahead: Bytes,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Replayed {
    /// Puts bytes read ahead back in front of a socket; `None` if it is inside TLS already.
    pub fn new(ahead: Bytes, transport: Transport) -> Option<Self> {
        let socket = match transport {
            Transport::Tcp(stream) => Socket::Tcp(stream),
            Transport::Unix(stream) => Socket::Unix(stream),
            Transport::Tls(_) => return None,
            #[cfg(test)]
            Transport::InMemory(_) => return None,
        };
        Some(Self { ahead, socket })
    }

    fn gone(&self) -> Option<Gone> {
        match &self.socket {
            Socket::Tcp(stream) => gone(stream.ready(EITHER)),
            Socket::Unix(stream) => gone(stream.ready(EITHER)),
        }
    }
}

impl AsyncRead for Replayed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(space.remaining());
            space.put_slice(&self.ahead[..length]);
            self.ahead.advance(length);
            if self.ahead.is_empty() {
                // A slice would keep the whole buffer alive.
                self.ahead = Bytes::new();
            }
            return Poll::Ready(Ok(()));
        }
        match &mut self.socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, space),
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, space),
        }
    }
}

impl AsyncWrite for Replayed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Socket::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A stream of a test.
#[cfg(test)]
pub trait InMemory: AsyncRead + AsyncWrite + std::fmt::Debug + Unpin {
    /// See [`Transport::reset_on_close`].
    fn reset_on_close(&self);

    /// See [`Transport::gone`].
    fn gone(&self) -> Option<Gone>;
}
