//! The downstream side of a tunnel, whose bytes are counted as they move: they are known however the tunnel ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What counts the bytes of a tunnel.
pub trait Count: Unpin {
    /// Bytes that came from downstream, and that went there.
    fn carried(&mut self, received: u64, sent: u64);
}

/// A side whose bytes are counted.
pub struct Counted<S, C> {
    stream: S,
    /// What counts them.
    pub count: C,
    /// Whether this is the side that failed.
    pub is_broken: bool,
}

impl<S, C> Counted<S, C> {
    /// Counts the bytes of a stream.
    pub fn new(stream: S, count: C) -> Self {
        Self {
            stream,
            count,
            is_broken: false,
        }
    }
}

impl<S: AsyncRead + Unpin, C: Count> AsyncRead for Counted<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = space.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, space);
        let received = space.filled().len() - before;
        if received > 0 {
            self.count.carried(received as u64, 0);
        }
        self.is_broken |= matches!(polled, Poll::Ready(Err(_)));
        polled
    }
}

impl<S: AsyncWrite + Unpin, C: Count> AsyncWrite for Counted<S, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        match &polled {
            Poll::Ready(Ok(sent)) => self.count.carried(0, *sent as u64),
            Poll::Ready(Err(_)) => self.is_broken = true,
            Poll::Pending => {}
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
