//! What a stream is doing: its request, the future that answers it, the body that is being sent.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::super::handler::Handler;
use crate::exchange::downstream::body::Lane;
use crate::http2::head::Request as Head;

/// Memory for the future of an answer, used again and again by one connection.
pub(super) type FutureSlot<F> = Pin<Box<Option<F>>>;

/// What is being done for a stream.
pub(super) enum Work<A: Handler> {
    /// Nothing: it is over, or only the peer still sends.
    None,
    /// Nothing yet.
    Waiting(Box<Head>),
    /// Its answer is being made.
    Answering(FutureSlot<A::Future>),
    /// The body of its response is being sent.
    Sending(A::Body),
    /// It carries another protocol.
    Tunnel,
}

/// The work of one stream.
pub(super) struct StreamWork<A: Handler> {
    pub(super) work: Work<A>,
    /// The request's body, if it has one.
    pub(super) lane: Option<Rc<Lane>>,
    /// Whether it asks for a tunnel.
    pub(super) connects: bool,
    /// Whether its response has begun.
    pub(super) answered: bool,
    /// Whether there is a stream.
    pub(super) taken: bool,
}

impl<A: Handler> Default for StreamWork<A> {
    fn default() -> Self {
        Self {
            work: Work::None,
            lane: None,
            connects: false,
            answered: false,
            taken: false,
        }
    }
}

/// Memory of futures that are over, for further ones.
pub(super) struct FutureSlots<F>(Vec<FutureSlot<F>>);

impl<F: Future> FutureSlots<F> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// A slot with a future in it.
    pub(super) fn take(&mut self, future: F) -> FutureSlot<F> {
        match self.0.pop() {
            Some(mut future_slot) => {
                future_slot.set(Some(future));
                future_slot
            }
            None => Box::pin(Some(future)),
        }
    }

    /// Drops the future and keeps its memory. There are never more slots than streams at a time.
    pub(super) fn give_back(&mut self, mut future_slot: FutureSlot<F>) {
        future_slot.set(None);
        self.0.push(future_slot);
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
