//! First bytes of a client that are held back until it is known what they are.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use crate::codec::transport::Transport;

/// Tells from the first bytes of a client what it speaks, or nothing while more are needed. Bounds how many are.
pub type Tell<T> = fn(&[u8]) -> Option<T>;

/// Holds back the first bytes of a client until they are known to be meant for the endpoint.
pub(super) struct Guard {
    passes: Tell<bool>,
    held: BytesMut,
    /// Whether the client had sent something before.
    has_spoken: bool,
}

/// Plain text of a client that was let pass.
#[derive(Debug)]
pub(super) struct Passed {
    /// Whether the client had sent nothing before the guard was set up.
    pub(super) is_first: bool,
}

impl Guard {
    pub(super) fn new(passes: Tell<bool>) -> Self {
        Self {
            passes,
            held: BytesMut::new(),
            has_spoken: false,
        }
    }

    /// Holds back what was read of the client so far.
    pub(super) fn hold(&mut self, ahead: &[u8]) {
        self.has_spoken |= !ahead.is_empty();
        self.held.extend_from_slice(ahead);
    }

    /// What bytes that were let pass say of the client: nothing where there are none, or where they are TLS of the endpoint.
    pub(super) fn passed(&self, bytes: &[u8]) -> Option<Passed> {
        let is_plain = !matches!(bytes, [] | [0x16, 3, ..]);
        let is_first = !self.has_spoken;
        is_plain.then_some(Passed { is_first })
    }

    /// The bytes that may pass; `None` if the endpoint must not get them.
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
                // the end is read again
                return Poll::Ready(Ok(Some(self.held.split().freeze())));
            }
            self.held.extend_from_slice(space.filled());
        }
    }
}
