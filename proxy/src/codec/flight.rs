//! Requests in flight on one HTTP/1 connection, and the body that ends a flight.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::framing::StreamPosition;
use super::io::Wire;

/// Counts the requests of one connection that are over.
#[derive(Debug)]
pub struct Flights {
    wire: Arc<Wire>,
    ended: Cell<u32>,
}

impl Flights {
    /// No request so far.
    pub fn new(wire: Arc<Wire>) -> Rc<Self> {
        Rc::new(Self {
            wire,
            ended: Cell::default(),
        })
    }

    /// The connection that the requests come on.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Begins a request; it is counted when the returned value is dropped.
    pub fn begin(self: &Rc<Self>) -> Flight {
        Flight {
            flights: Rc::clone(self),
        }
    }

    /// Requests that are over.
    pub fn ended(&self) -> u32 {
        self.ended.get()
    }
}

/// A request in flight: from its head to the last byte of its response.
#[derive(Debug)]
pub struct Flight {
    flights: Rc<Flights>,
}

impl Flight {
    /// Whether the request has not come to its end yet.
    pub fn is_incomplete(&self) -> bool {
        self.flights.wire.place() == StreamPosition::Body
    }

    /// The response begins another protocol on this connection.
    pub fn tunnel(&self) {
        self.flights.wire.set_tunnel();
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let flights = &self.flights;
        flights.ended.set(flights.ended.get().wrapping_add(1));
    }
}

/// The body of a response, which ends its flight when it is dropped.
#[derive(Debug)]
pub struct Outgoing<B> {
    body: Result<B, Bytes>,
    flight: Flight,
}

impl<B> Outgoing<B> {
    /// A body of this flight.
    pub fn new(body: B, flight: Flight) -> Self {
        Self {
            body: Ok(body),
            flight,
        }
    }

    /// A text, possibly empty, as a body of this flight.
    pub fn text(text: &'static str, flight: Flight) -> Self {
        Self {
            body: Err(Bytes::from_static(text.as_bytes())),
            flight,
        }
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
        let this = &mut *self;
        let wire = this.flight.flights.wire();
        if wire.hold_body() {
            return Poll::Pending;
        }
        let frame = match &mut this.body {
            Ok(body) => ready!(Pin::new(body).poll_frame(cx)),
            Err(text) => {
                let text = std::mem::take(text);
                (!text.is_empty()).then(|| Ok(Frame::data(text)))
            }
        };
        if let Some(Ok(frame)) = &frame {
            wire.note_unwritten(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Ok(body) => body.is_end_stream(),
            Err(text) => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Ok(body) => body.size_hint(),
            Err(text) => SizeHint::with_exact(text.len() as u64),
        }
    }
}
