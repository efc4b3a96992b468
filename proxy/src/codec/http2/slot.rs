//! What a stream is doing: its request, the future that answers it, the body that is being sent.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::super::Answer;
use crate::exchange::downstream::Lane;
use crate::http2::head::Request as Head;

/// Memory for the future of an answer, used again and again by one connection.
pub(super) type Seat<F> = Pin<Box<Option<F>>>;

/// What is being done for a stream.
pub(super) enum Work<A: Answer> {
    /// Nothing: it is over, or only the peer still sends.
    None,
    /// Nothing yet.
    Asked(Box<Head>),
    /// Its answer is being made.
    Answering(Seat<A::Future>),
    /// The body of its response is being sent.
    Sending(A::Body),
    /// It carries another protocol.
    Tunnel,
}

/// The place of a stream.
pub(super) struct Slot<A: Answer> {
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

impl<A: Answer> Default for Slot<A> {
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

/// Seats that wait to be used again.
pub(super) struct Seats<F>(Vec<Seat<F>>);

impl<F: Future> Seats<F> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// A seat with a future in it.
    pub(super) fn take(&mut self, future: F) -> Seat<F> {
        match self.0.pop() {
            Some(mut seat) => {
                seat.set(Some(future));
                seat
            }
            None => Box::pin(Some(future)),
        }
    }

    /// Drops the future and keeps its memory. Not more seats than streams at a time are ever made.
    pub(super) fn give_back(&mut self, mut seat: Seat<F>) {
        seat.set(None);
        self.0.push(seat);
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
