//! Downstream socket with the bytes that were read ahead of its codec, and the counters of its connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::transport::{Replayed, Transport};
use crate::runtime::admission::AdmissionPermit;
use crate::telemetry::{CloseReason, ConnectionProtocol, ListenerStats, WorkerId};

/// Bytes per read ahead: most request heads fit.
const AHEAD: usize = 1024;

/// Counts a connection in the statistics of its listener while its socket is open.
#[derive(Debug)]
pub struct Counted {
    stats: Arc<ListenerStats>,
    worker: WorkerId,
    protocol: ConnectionProtocol,
    reason: CloseReason,
}

impl Counted {
    /// Counts an opened connection.
    pub fn new(stats: Arc<ListenerStats>, worker: WorkerId, protocol: ConnectionProtocol) -> Self {
        stats.opened(worker, protocol);
        Self {
            stats,
            worker,
            protocol,
            reason: CloseReason::default(),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.stats.closed(self.worker, self.protocol, self.reason);
    }
}

/// A downstream socket with the bytes that were read ahead of its codec.
#[derive(Debug)]
pub struct Socket {
    transport: Transport,
    /// Bytes that were read and not consumed.
    ahead: Bytes,
    counts: Counts,
}

/// Counters of a connection until its socket closes, also after an upgrade.
#[derive(Debug)]
pub struct Counts {
    /// Statistics of the listener, once the protocol is known or the connection is rejected.
    listener: Option<Counted>,
    slot: AdmissionPermit,
}

impl Counts {
    /// Notes the reason for which the connection will close, instead of [`CloseReason::Client`].
    pub fn ends(&mut self, reason: CloseReason) {
        if let Some(counted) = &mut self.listener {
            counted.reason = reason;
        }
    }
}

impl From<AdmissionPermit> for Counts {
    fn from(slot: AdmissionPermit) -> Self {
        Self {
            listener: None,
            slot,
        }
    }
}

impl Socket {
    /// Wraps an accepted socket, or one on which the proxy terminates TLS.
    pub fn new(transport: Transport, counts: impl Into<Counts>) -> Self {
        Self {
            transport,
            ahead: Bytes::new(),
            counts: counts.into(),
        }
    }

    /// Splits the connection for a TLS handshake: its socket with the bytes read ahead in front, and its counters.
    /// `None` if it is inside TLS already.
    pub fn into_handshake(self) -> Option<(Replayed, Counts)> {
        let socket = Replayed::new(self.ahead, self.transport)?;
        Some((socket, self.counts))
    }

    /// Splits the connection: its socket, the bytes read ahead, and its counters.
    pub fn into_parts(self) -> (Transport, Bytes, Counts) {
        (self.transport, self.ahead, self.counts)
    }

    /// Returns the transport.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the transport, for writing.
    pub fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Bytes that were read ahead and not consumed.
    pub fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Consumes bytes that were read ahead.
    pub fn consume(&mut self, bytes: usize) {
        self.ahead.advance(bytes.min(self.ahead.len()));
        if self.ahead.is_empty() {
            // A slice would keep the whole buffer alive.
            self.ahead = Bytes::new();
        }
    }

    /// Puts bytes back in front of the bytes read ahead.
    pub fn put_back(&mut self, bytes: &[u8]) {
        self.ahead = joined(bytes, &self.ahead);
    }

    /// Counts the connection by its protocol until it closes.
    pub fn count(&mut self, counted: Counted) {
        self.counts.listener = Some(counted);
    }

    /// Notes the reason for which the connection will close; see [`Counts::ends`].
    pub fn ends(&mut self, reason: CloseReason) {
        self.counts.ends(reason);
    }

    /// Whether the statistics of the listener include the connection.
    pub fn is_counted(&self) -> bool {
        self.counts.listener.is_some()
    }

    /// Counts the connection as outbound until it closes; see [`AdmissionPermit::count_outbound`].
    pub fn count_outbound(&mut self) {
        self.counts.slot.count_outbound();
    }

    /// Reads bytes and keeps them for the codec; 0 bytes mean that the peer closed its direction.
    pub fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack only during a poll, so that waiting costs no memory.
        let mut space = [0; AHEAD];
        let mut space = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.transport).poll_read(cx, &mut space))?;
        let read = space.filled();
        self.ahead = joined(&self.ahead, read);
        Poll::Ready(Ok(read.len()))
    }

    /// Reads and discards; 0 bytes mean that the peer closed its direction.
    pub fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [0; 4 * AHEAD];
        let mut space = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.transport).poll_read(cx, &mut space))?;
        Poll::Ready(Ok(space.filled().len()))
    }

    /// Writes a short last message if the kernel accepts it at once, and closes our direction.
    pub async fn finish(&mut self, message: &[u8]) -> io::Result<()> {
        let transport = &mut self.transport;
        if !message.is_empty() {
            // A failure to write does not matter; waiting for the peer would.
            poll_fn(
                |cx| match Pin::new(&mut *transport).poll_write(cx, message) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Ready(Ok(_)) | Poll::Pending => Poll::Ready(Ok(())),
                },
            )
            .await?;
        }
        poll_fn(|cx| Pin::new(&mut *transport).poll_shutdown(cx)).await
    }
}

impl AsyncRead for Socket {
    /// Reads the bytes read ahead first.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.transport).poll_read(cx, space);
        }
        let length = self.ahead.len().min(space.remaining());
        space.put_slice(&self.ahead[..length]);
        self.consume(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}

fn joined(first: &[u8], second: &[u8]) -> Bytes {
    let mut both = BytesMut::with_capacity(first.len() + second.len());
    both.extend_from_slice(first);
    both.extend_from_slice(second);
    both.freeze()
}
