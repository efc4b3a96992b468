//! State of a connection, shared by its driver and its requests.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Waker;

use hyper::StatusCode;

use super::slot::ReceivedResponse;
use crate::upstream::failure::Fault;
use crate::upstream::stream::Stream;
use crate::upstream::streams::StreamLimit;
use traffic::registry::ConnectionPermit;
use wire::http2::Reason;
use wire::http2::client::{Client, Event};
use wire::http2::worker_buffers::WorkerBuffers;

/// Queued output above which no request and no body adds more.
pub(super) const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Maximum queued interim responses to one request; further ones are dropped, which HTTP permits.
const INTERIMS_WAITING_MAX: usize = 8;

/// A connection, shared by its driver and its requests.
#[derive(Debug)]
pub(super) struct Link(pub(super) RefCell<State>);

#[derive(Debug)]
pub(super) struct State {
    pub(super) engine: Client,
    /// Socket, until the connection ends.
    pub(super) stream: Option<Stream>,
    /// Dropped after the socket.
    pub(super) permit: Option<ConnectionPermit>,
    pub(super) memory: Rc<WorkerBuffers>,
    /// Counter of reads that returned bytes.
    pub(super) moved: u32,
    /// Incomplete frame at the end of the input.
    pub(super) rest: Vec<u8>,
    /// Received response of each stream, by place.
    pub(super) slots: Vec<ReceivedResponse>,
    /// Requests that wait until less output is queued.
    pub(super) for_room: Vec<Waker>,
    pub(super) driver: Option<Waker>,
    /// Whether the driver is going to run.
    pub(super) woken: bool,
    /// Whether the sending half was dropped, so that no further request comes.
    pub(super) retired: bool,
    /// Reason that the connection ended, if it has.
    pub(super) end: Option<Fault>,
    pub(super) limit: Rc<StreamLimit>,
}

impl State {
    /// Wakes the driver, once for all output until it runs.
    pub(super) fn wake_driver(&mut self) {
        if !self.woken {
            self.woken = true;
            if let Some(driver) = &self.driver {
                driver.wake_by_ref();
            }
        }
    }

    /// Wakes the driver if there is output.
    pub(super) fn flush(&mut self) {
        if !self.woken && !self.engine.output().is_empty() {
            self.wake_driver();
        }
    }

    /// Processes all complete frames of the input; returns their length.
    pub(super) fn process_frames(&mut self, input: &[u8]) -> Result<usize, Reason> {
        let mut at = 0;
        loop {
            let received = self.engine.receive(&input[at..])?;
            if received.used == 0 {
                return Ok(at);
            }
            if let Some(event) = received.event {
                self.on_event(event, &input[at..]);
            }
            at += received.used;
        }
    }

    pub(super) fn on_event(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::Response { place, head, end } => {
                let slot = &mut self.slots[place];
                slot.head = Some(head);
                slot.got(end);
            }
            Event::Interim {
                place,
                status,
                headers,
            } => {
                let slot = &mut self.slots[place];
                // unexpected: the downstream side answers `Expect`
                let wanted = status != StatusCode::CONTINUE;
                if wanted && slot.interims.len() < INTERIMS_WAITING_MAX {
                    slot.interims.push((status, headers));
                    slot.got(false);
                }
            }
            Event::Data { place, range, end } => {
                let slot = &mut self.slots[place];
                slot.push(&input[range]);
                slot.got(end);
            }
            Event::Trailers { place, trailers } => {
                let slot = &mut self.slots[place];
                slot.trailers = Some(trailers);
                slot.got(true);
            }
            Event::Reset {
                place,
                reason,
                by_peer,
            } => {
                let fault = match by_peer {
                    true => Fault::of_reset(reason),
                    false => Fault::Violation(reason),
                };
                self.slots[place].fail(fault);
                self.remove_if_ended(place);
            }
            Event::Limit => self.limit.update(self.engine.streams_max()),
            Event::Leaving { reason } => {
                tracing::debug!(%reason, "upstream connection leaves");
                self.limit.end();
                for place in 0..self.slots.len() {
                    if !self.engine.is_open(place) {
                        self.slots[place].fail(Fault::Refused);
                        self.remove_if_ended(place);
                    }
                }
            }
        }
    }

    /// Ends the connection with all of its streams.
    pub(super) fn end(&mut self, fault: Fault) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(fault);
        self.limit.end();
        self.engine.end();
        for place in 0..self.slots.len() {
            self.slots[place].fail(fault);
            self.remove_if_ended(place);
        }
        for waiter in self.for_room.drain(..) {
            waiter.wake();
        }
        self.wake_driver();
    }

    /// Removes a stream without a reader once the rest of its request is sent.
    pub(super) fn remove_if_ended(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        if slot.detached && !self.engine.is_open(place) {
            slot.detached = false;
            self.engine.vacate(place);
        }
    }
}
