//! Detection of a server that stops in the middle of a message while its connection seems alive.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

/// Longest time that a message may make no progress.
pub(in crate::source) const STALL_MAX: Duration = Duration::from_secs(30);

/// Error: a message made no progress for [`STALL_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct Stalled;

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = STALL_MAX.as_secs();
        write!(
            f,
            "the server stalled in the middle of a message: nothing more came for {seconds} s"
        )
    }
}

impl Error for Stalled {}

/// Whether an error is of type `E`, or was caused by one.
pub(in crate::source) fn is_caused_by<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<E>() {
            return true;
        }
        // The source of an I/O error is that of the error in it.
        let inside = error
            .downcast_ref::<io::Error>()
            .and_then(|io| io.get_ref());
        next = match inside {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    false
}

/// Result of polling a body.
pub(in crate::source) type Polled =
    Poll<Option<Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>>>;

/// Timer of a message that makes no progress.
#[derive(Debug, Default)]
pub(in crate::source) struct StallTimer(Option<Pin<Box<Sleep>>>);

impl StallTimer {
    /// Returns the next frame of a body. Fails with [`Stalled`] if nothing arrives for [`STALL_MAX`] in the middle of a
    /// message.
    pub(in crate::source) fn poll_frame<B>(
        &mut self,
        body: &mut B,
        is_in_message: bool,
        cx: &mut Context<'_>,
    ) -> Polled
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        match Pin::new(body).poll_frame(cx) {
            Poll::Ready(frame) => {
                self.0 = None;
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                let stalled = self.poll(is_in_message, cx);
                stalled.map(|stalled| Some(Err(stalled.into())))
            }
        }
    }

    /// Handles a body without data. Ready once that has lasted for [`STALL_MAX`] in the middle of a message.
    fn poll(&mut self, is_in_message: bool, cx: &mut Context<'_>) -> Poll<Stalled> {
        if !is_in_message {
            self.0 = None;
            return Poll::Pending;
        }
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep(STALL_MAX)));
        sleep.as_mut().poll(cx).map(|()| Stalled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_is_found_behind_other_errors() {
        let error = io::Error::other(io::Error::other(Stalled));
        assert!(is_caused_by::<Stalled>(&error));
        assert!(!is_caused_by::<Stalled>(&io::Error::other("other")));
        let status = tonic::Status::from_error(Box::new(error));
        assert!(is_caused_by::<Stalled>(&status));
    }
}
