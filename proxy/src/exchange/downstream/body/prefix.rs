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
    /// whole body. With `is_part_enough`, `max` bytes are enough: the rest may come late.
    ///
    /// # Errors
    ///
    /// Fails if the body breaks off before.
    pub async fn prefix(
        &mut self,
        max: usize,
        is_part_enough: bool,
    ) -> Result<(Bytes, bool), PrefixError> {
        let enough = if is_part_enough { max } else { max + 1 };
        let Self::Stream(inlet) = self else {
            return Ok((Bytes::new(), true));
        };
        let mut read = BytesMut::new();
        let ended = poll_fn(|cx| inlet.0.poll_prefix(cx, enough, &mut read)).await;
        let bytes = read.freeze();
        inlet.0.put_back(bytes.clone());
        let is_whole = ended? && bytes.len() <= max;
        Ok((bytes, is_whole))
    }
}

impl Lane {
    /// Takes received bytes until there are enough. Ready with whether the body has ended.
    fn poll_prefix(
        &self,
        cx: &std::task::Context<'_>,
        enough: usize,
        read: &mut BytesMut,
    ) -> Poll<Result<bool, PrefixError>> {
        let mut state = self.state.borrow_mut();
        while !(state.put_back.is_empty() && state.inbound.is_empty()) {
            read.extend_from_slice(&state.next());
            self.touch();
        }
        if read.len() >= enough || state.ended {
            return Poll::Ready(Ok(state.ended));
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
