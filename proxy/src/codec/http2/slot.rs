//! Work of a stream: its request, the future that answers it, the response body.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::super::handler::Handler;
use crate::exchange::downstream::body::Lane;
use wire::http2::head::Request as Head;

/// Allocation for the future of an answer, reused by the streams of one connection.
pub(super) type FutureSlot<F> = Pin<Box<Option<F>>>;

/// Current work of a stream.
pub(super) enum Work<A: Handler> {
    /// None: the stream has ended, or only the peer still sends.
    None,
    /// Request that has not been polled yet.
    Waiting(Box<Head>),
    /// Future of the answer.
    Answering(FutureSlot<A::Future>),
    /// Response body that is being sent.
    Sending(A::Body),
    /// Another protocol.
    Tunnel,
}

/// State of one stream.
pub(super) struct StreamWork<A: Handler> {
    pub(super) work: Work<A>,
    /// Body of the request, if it has one.
    pub(super) lane: Option<Rc<Lane>>,
    /// Whether the request asks for a tunnel.
    pub(super) connects: bool,
    /// Whether the response has begun.
    pub(super) answered: bool,
    /// Whether a stream occupies this place.
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

/// Allocations of completed futures, for reuse.
pub(super) struct FutureSlots<F>(Vec<FutureSlot<F>>);

impl<F: Future> FutureSlots<F> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns a slot with this future in it.
    pub(super) fn take(&mut self, future: F) -> FutureSlot<F> {
        match self.0.pop() {
            Some(mut future_slot) => {
                future_slot.set(Some(future));
                future_slot
            }
            None => Box::pin(Some(future)),
        }
    }

    /// Drops the future and keeps its allocation. There are never more slots than concurrent streams.
    pub(super) fn give_back(&mut self, mut future_slot: FutureSlot<F>) {
        future_slot.set(None);
        self.0.push(future_slot);
    }

    /// Frees all allocations.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
