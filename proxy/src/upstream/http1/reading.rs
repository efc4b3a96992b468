//! How far an exchange has come: kept with its connection, while the body of its response moves.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::oneshot;

use super::decoder::Decoder;

/// How far a response has come.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) decoder: Decoder,
    /// Whether the connection can carry another request after it.
    pub(super) persistent: bool,
    /// Whether the request has been sent to its end.
    pub(super) sent: Sent,
}

impl Reading {
    /// Nothing is read yet.
    pub(super) const NOTHING: Self = Self {
        decoder: Decoder::End,
        persistent: false,
        sent: Sent::Broken,
    };
}

/// Whether a request has been sent to its end.
#[derive(Debug)]
pub(super) enum Sent {
    /// It has.
    Whole,
    /// A task is at it.
    InTheBackground {
        /// Set when it is done.
        done: Rc<Cell<bool>>,
        /// Dropped when the response is over.
        _response: oneshot::Sender<()>,
    },
    /// It never will be.
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
