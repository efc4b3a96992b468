//! Response body, taken on demand.

use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::hold::StreamHandle;
use traffic::error::Error;

/// Response body. Dropping it before its end cancels the stream.
#[derive(Debug)]
pub struct Incoming {
    /// Hold on the stream, until the end of the body.
    hold: Option<StreamHandle>,
    /// Remaining bytes, if the response declared a length.
    left: Option<u64>,
}

impl Incoming {
    /// Returns an empty body.
    pub(super) fn empty() -> Self {
        Self {
            hold: None,
            left: Some(0),
        }
    }

    pub(super) fn new(hold: StreamHandle, left: Option<u64>) -> Self {
        Self {
            hold: Some(hold),
            left,
        }
    }

    /// Whether the body is complete.
    pub fn is_end_stream(&self) -> bool {
        self.hold.is_none()
    }

    /// Returns the number of remaining bytes, if known.
    pub fn size_hint(&self) -> SizeHint {
        match (&self.hold, self.left) {
            (None, _) => SizeHint::with_exact(0),
            (Some(_), Some(left)) => SizeHint::with_exact(left),
            (Some(_), None) => SizeHint::default(),
        }
    }

    /// Polls for the next frame of the body.
    ///
    /// # Errors
    ///
    /// If the stream ends before the body is complete.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(hold) = &self.hold else {
            return Poll::Ready(None);
        };
        let place = hold.place;
        let mut guard = hold.link.0.borrow_mut();
        let state = &mut *guard;
        let slot = &mut state.slots[place];
        let frame = if let Some(data) = slot.take_data() {
            state.engine.release(place, data.len() as u32);
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            Some(Ok(Frame::data(data)))
        } else if let Some(trailers) = slot.trailers.take() {
            Some(Ok(Frame::trailers(trailers)))
        } else if let Some(fault) = slot.fault {
            Some(Err(fault.after_response()))
        } else if slot.ended {
            None
        } else {
            slot.wait_to_read(cx.waker());
            return Poll::Pending;
        };
        let over = state.slots[place].is_done() || !matches!(frame, Some(Ok(_)));
        state.flush();
        drop(guard);
        if over {
            self.hold = None;
        }
        Poll::Ready(frame)
    }
}
