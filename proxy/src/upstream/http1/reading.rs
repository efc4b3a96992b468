//! Progress of a response, kept in its connection while its body moves.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Context;

use tokio::sync::oneshot;

use wire::http1::response::decoder::Decoder;

/// Progress of a response.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) decoder: Decoder,
    /// Whether the connection can carry another request after it.
    pub(super) persistent: bool,
    /// Progress of sending the request.
    pub(super) sent: Sent,
}

impl Reading {
    /// State before a response.
    pub(super) const NOTHING: Self = Self {
        decoder: Decoder::End,
        persistent: false,
        sent: Sent::Broken,
    };
}

/// Progress of sending a request.
#[derive(Debug)]
pub(super) enum Sent {
    /// Sent completely.
    Whole,
    /// Sent by a task.
    InTheBackground {
        /// Progress of the task.
        rest: Rc<Cell<Rest>>,
        /// Dropped when the response ends; closed when the task does.
        response: oneshot::Sender<()>,
    },
    /// Failed.
    Broken,
}

/// Rest of a request that is sent by a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The body has failed, so that the endpoint never gets a whole request.
    Failed,
    /// Not all is sent.
    Pending,
    /// All is sent.
    Sent,
}

impl Sent {
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Sent::Whole => true,
            Sent::InTheBackground { rest, .. } => rest.get() == Rest::Sent,
            Sent::Broken => false,
        }
    }

    /// Whether the body of the request has failed; wakes the task of `cx` when it does.
    pub(super) fn has_failed(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Sent::InTheBackground { rest, response } => {
                response.poll_closed(cx).is_ready() && rest.get() == Rest::Failed
            }
            Sent::Whole | Sent::Broken => false,
        }
    }
}
