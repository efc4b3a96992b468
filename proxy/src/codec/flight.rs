//! Requests in flight on one connection, and the body that ends a flight.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::io::Wire;

/// Counts the requests of one connection.
#[derive(Debug)]
pub struct Flights {
    wire: Arc<Wire>,
    begun: Cell<u32>,
    ended: Cell<u32>,
    cut: Cell<u32>,
}

impl Flights {
    /// No request so far.
    pub fn new(wire: Arc<Wire>) -> Rc<Self> {
        Rc::new(Self {
            wire,
            begun: Cell::default(),
            ended: Cell::default(),
            cut: Cell::default(),
        })
    }

    /// The connection that the requests come on.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Counts a request in; it is counted out when the returned value is dropped.
    pub fn begin(self: &Rc<Self>) -> Flight {
        self.begun.set(self.begun.get().wrapping_add(1));
        Flight {
            flights: Rc::clone(self),
            answered: Cell::new(false),
        }
    }

    /// Requests so far.
    pub fn begun(&self) -> u32 {
        self.begun.get()
    }

    /// Requests that are over.
    pub fn ended(&self) -> u32 {
        self.ended.get()
    }

    /// Requests that were over before they were answered.
    pub fn cut(&self) -> u32 {
        self.cut.get()
    }
}

/// A request in flight: from its head to the last byte of its response.
#[derive(Debug)]
pub struct Flight {
    flights: Rc<Flights>,
    answered: Cell<bool>,
}

impl Flight {
    /// The response begins another protocol on this connection.
    pub fn tunnel(&self) {
        self.flights.wire.set_tunnel();
    }

    /// The response is there, even if its body still has to be sent.
    fn answered(&self) {
        self.answered.set(true);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let flights = &self.flights;
        flights.ended.set(flights.ended.get().wrapping_add(1));
        if !self.answered.get() {
            flights.cut.set(flights.cut.get().wrapping_add(1));
        }
    }
}

/// The body of a response, which ends its flight when it is dropped. `None` is a body without bytes.
#[derive(Debug)]
pub struct Outgoing<B> {
    body: Option<B>,
    flight: Flight,
}

impl<B> Outgoing<B> {
    /// A body of this flight.
    pub fn new(body: Option<B>, flight: Flight) -> Self {
        flight.answered();
        Self { body, flight }
    }

    /// The flight that this body ends.
    pub fn flight(&self) -> &Flight {
        &self.flight
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Outgoing<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        self.body.as_ref().map_or_else(none, Body::size_hint)
    }
}
