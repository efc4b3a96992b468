//! Progress of a response, kept in its connection while its body moves.

use std::cell::Cell;
use std::rc::Rc;

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
        /// Set when all is sent.
        done: Rc<Cell<bool>>,
        /// Dropped when the response ends.
        _response: oneshot::Sender<()>,
    },
    /// Failed.
    Broken,
}

impl Sent {
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Sent::Whole => true,
            Sent::InTheBackground { done, .. } => done.get(),
            Sent::Broken => false,
        }
    }
}
