//! Holds back first bytes of a client until their protocol is known.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use crate::codec::transport::Transport;

/// Detects the client's protocol from its first bytes; `None` while more are needed. Bounds how many that are.
pub type DetectFn<T> = fn(&[u8]) -> Option<T>;

/// Holds back the first bytes of a client until they are known to be meant for the endpoint.
pub(super) struct FirstBytesGuard {
    passes: DetectFn<bool>,
    held: BytesMut,
    /// Whether the client had sent bytes before.
    has_spoken: bool,
}

/// Plain text of a client that the guard passed.
#[derive(Debug)]
pub(super) struct PlainTextPassed {
    /// Whether the client had sent no bytes before the guard was set up.
    pub(super) is_first: bool,
}

impl FirstBytesGuard {
    pub(super) fn new(passes: DetectFn<bool>) -> Self {
        Self {
            passes,
            held: BytesMut::new(),
            has_spoken: false,
        }
    }

    /// Holds back bytes that were read from the client so far.
    pub(super) fn hold(&mut self, ahead: &[u8]) {
        self.has_spoken |= !ahead.is_empty();
        self.held.extend_from_slice(ahead);
    }

    /// Returns the plain text in bytes that passed; `None` if there are none, or if they are TLS for the endpoint.
    pub(super) fn passed(&self, bytes: &[u8]) -> Option<PlainTextPassed> {
        let is_plain = !matches!(bytes, [] | [0x16, 3, ..]);
        let is_first = !self.has_spoken;
        is_plain.then_some(PlainTextPassed { is_first })
    }

    /// Returns the bytes that may pass; `None` if the endpoint must not receive them.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Transport,
    ) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            match (self.passes)(&self.held) {
                Some(true) => return Poll::Ready(Ok(Some(self.held.split().freeze()))),
                Some(false) => return Poll::Ready(Ok(None)),
                None => {}
            }
            let mut space = [0; 1024];
            let mut space = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut *from).poll_read(cx, &mut space))?;
            if space.filled().is_empty() {
                // the caller reads the end again
                return Poll::Ready(Ok(Some(self.held.split().freeze())));
            }
            self.held.extend_from_slice(space.filled());
        }
    }
}
