//! The beginning of a body, read before the body is forwarded.

use std::future::poll_fn;
use std::task::{Poll, ready};

use bytes::{Bytes, BytesMut};

use super::{DownstreamBody, Lane};

/// Error: the body broke off within its beginning.
#[derive(Debug)]
pub struct PrefixError;

impl DownstreamBody {
    /// Reads more than `max` bytes of the body, or all of it, and puts them back. Returns them, and whether they are the
    /// whole body.
    ///
    /// # Errors
    ///
    /// Fails if the body breaks off before.
    pub async fn prefix(&mut self, max: usize) -> Result<(Bytes, bool), PrefixError> {
        let Self::Stream(inlet) = self else {
            return Ok((Bytes::new(), true));
        };
        let mut read = BytesMut::new();
        let is_whole = poll_fn(|cx| inlet.0.poll_prefix(cx, max, &mut read)).await;
        let bytes = read.freeze();
        inlet.0.put_back(bytes.clone());
        Ok((bytes, is_whole?))
    }
}

impl Lane {
    /// Takes received bytes until there are more than `max`. Ready with whether the body ended before.
    fn poll_prefix(
        &self,
        cx: &std::task::Context<'_>,
        max: usize,
        read: &mut BytesMut,
    ) -> Poll<Result<bool, PrefixError>> {
        let mut state = self.state.borrow_mut();
        while !(state.put_back.is_empty() && state.inbound.is_empty()) {
            read.extend_from_slice(&state.next());
            self.touch();
        }
        if read.len() > max {
            return Poll::Ready(Ok(false));
        }
        if state.ended {
            return Poll::Ready(Ok(true));
        }
        if state.fault.is_some() {
            return Poll::Ready(Err(PrefixError));
        }
        self.wait(&mut state, cx);
        ready!(Poll::Pending)
    }

    /// Puts bytes back that were taken.
    fn put_back(&self, bytes: Bytes) {
        let mut state = self.state.borrow_mut();
        state.left = state.left.map(|left| left + bytes.len() as u64);
        state.put_back = bytes;
    }
}
