//! HTTP/2 to an endpoint: concurrent requests on a connection, each driven by itself.
//!
//! A request uses the protocol engine (`wire::http2::client`) in place: it opens its stream, hands over its body, and
//! takes the received response. One task per connection, the driver, moves the bytes: it reads, wakes the requests
//! whose streams received data, and writes the output of all requests that ran since at once. So a request costs no
//! task, no channel and no lock; only a body that is incomplete when the response begins continues in a task.
//!
//! Back pressure: a body is polled again only when its earlier bytes were sent; received data of a response counts
//! against the windows until it is taken. The driver always reads, also while the peer does not, so that two proxies
//! never wait for each other.

mod call;
mod driver;
mod hold;
mod incoming;
mod link;
mod slot;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use hyper::body::Body;

pub use self::call::{Call, Failed};
pub use self::incoming::Incoming;

use self::link::{Link, OUTPUT_BYTES_MAX, State};
use super::counts::Counted;
use super::http1::Interim;
use super::stream::Stream;
use super::streams::StreamLimit;
use traffic::error::BoxError;
use traffic::registry::{Closing, ConnectionPermit};
use wire::http1::response::RESPONSE_HEAD_BYTES_MAX;
use wire::http2::client::Client;
use wire::http2::keep_alive;
use wire::http2::settings::Settings;
use wire::http2::worker_buffers::WorkerBuffers;

/// Receive windows of one stream and of a connection: large enough to fill a fast link, small enough to bound the
/// memory that a slow reader costs.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Maximum streams reset for the peer's errors before the connection is closed.
const ERROR_RESETS_MAX: usize = 1024;

/// Sending half of a connection. Once it is dropped, the connection ends with its last request.
#[derive(Debug)]
pub struct Sender {
    link: Rc<Link>,
    limit: Rc<StreamLimit>,
}

impl Sender {
    /// Starts HTTP/2 on a socket; a task on the worker's own thread drives the connection.
    pub fn new(
        stream: Stream,
        counted: Counted,
        memory: &Rc<WorkerBuffers>,
        keep_alive: Option<keep_alive::KeepAlive>,
    ) -> Self {
        let limit = StreamLimit::new();
        let settings = Settings {
            concurrent_streams_max: 0,
            header_list_bytes_max: RESPONSE_HEAD_BYTES_MAX as u32,
            stream_window_bytes: STREAM_WINDOW_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            error_resets_max: ERROR_RESETS_MAX,
            pending_resets_max: 0,
        };
        let link = Rc::new(Link(RefCell::new(State {
            engine: Client::new(settings, OUTPUT_BYTES_MAX),
            stream: Some(stream),
            permit: None,
            moved: 0,
            memory: Rc::clone(memory),
            rest: Vec::new(),
            slots: Vec::new(),
            for_room: Vec::new(),
            driver: None,
            woken: true,
            retired: false,
            end: None,
            limit: Rc::clone(&limit),
        })));
        tokio::task::spawn_local(driver::drive(Rc::clone(&link), counted, keep_alive));
        Self { link, limit }
    }

    /// Concurrent streams that the peer allows.
    pub fn limit(&self) -> &Rc<StreamLimit> {
        &self.limit
    }

    /// Whether the connection accepts no more requests.
    pub fn is_closed(&self) -> bool {
        self.limit.is_ended()
    }

    /// Holds a permit until the socket closes.
    pub fn hold(&self, permit: ConnectionPermit) {
        let state = &mut *self.link.0.borrow_mut();
        // the connection may have ended already
        state.permit = state.stream.is_some().then_some(permit);
    }

    /// Whether the connection still holds its permit, and so its socket.
    pub fn has_permit(&self) -> bool {
        self.link.0.borrow().permit.is_some()
    }

    /// Announces to the permit, which the connection must hold, that the connection is about to close, and why.
    pub fn mark_closing(&self, closing: Closing) {
        let permit = &mut self.link.0.borrow_mut().permit;
        debug_assert!(permit.is_some(), "a promise needs a permit");
        if let Some(permit) = permit {
            permit.mark_closing(closing);
        }
    }

    /// Number of open streams.
    pub fn open(&self) -> usize {
        self.link.0.borrow().engine.open()
    }

    /// Releases memory that a connection without requests does not need.
    pub fn rest(&self) {
        let state = &mut *self.link.0.borrow_mut();
        if state.engine.open() == 0 {
            state.engine.rest();
            if state.engine.places() == 0 {
                state.slots = Vec::new();
            }
            if state.rest.is_empty() {
                state.rest = Vec::new();
            }
        }
    }

    /// Sends a request and waits for the head of its response. If the response comes first, the request body continues
    /// in a task.
    ///
    /// # Errors
    ///
    /// [`Failed`] with the reason; an untouched request stays in place.
    pub fn send<'a, B>(
        &'a self,
        request: &'a mut Option<Request<B>>,
        interim: Option<&'a Arc<dyn Interim>>,
    ) -> Call<'a, B>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        Call::new(&self.link, request, interim)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut state = self.link.0.borrow_mut();
        state.retired = true;
        state.wake_driver();
    }
}

#[cfg(test)]
mod tests;
