//! Byte counts of a tunnel, updated as bytes move, so that they are right however the tunnel ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counter of a tunnel's bytes.
pub(crate) trait Count: Unpin {
    /// Counts bytes received from and sent to the downstream side.
    fn carried(&mut self, received: u64, sent: u64);
}

/// A stream whose bytes are counted.
pub(crate) struct Counted<S, C> {
    stream: S,
    /// The counter.
    pub count: C,
    /// Whether this side has failed.
    pub is_broken: bool,
}

impl<S, C> Counted<S, C> {
    /// Wraps a stream.
    pub(crate) fn new(stream: S, count: C) -> Self {
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
