//! Requests in flight, by position; positions are used again.

use traffic::registry::RequestPermit;

use super::pools::{Connection, Waiting};
use crate::exchange::attempt::deadline::Times;
use crate::exchange::simulated::SimulatedRequest;

/// A request in flight.
pub(super) struct Flow {
    pub(super) request: SimulatedRequest,
    pub(super) proxy: u16,
    pub(super) worker: u16,
    /// Time of its arrival, in nanoseconds since the start.
    pub(super) begun: u64,
    pub(super) attempts: u64,
    pub(super) times: Times,
    /// Time of its timeout.
    pub(super) ends: Option<u64>,
    /// Time at which the attempt times out.
    pub(super) attempt_ends: Option<u64>,
    /// Position of its endpoint in the world.
    pub(super) backend: u32,
    /// Number of its endpoint.
    pub(super) endpoint: u64,
    pub(super) connection: Option<Connection>,
    /// Permit of the request limit.
    pub(super) permit: Option<RequestPermit>,
    pub(super) waiting: Option<Waiting>,
    /// Whether its endpoint has the request.
    pub(super) is_sent: bool,
}

impl Flow {
    /// Time at which an attempt times out that gets its connection now.
    pub(super) fn end_of_attempt(&self, now: u64) -> Option<u64> {
        let own = [self.times.per_attempt, self.times.idle];
        let own = own.into_iter().flatten();
        let own = own.map(|time| now.saturating_add(time.as_nanos() as u64));
        own.chain(self.ends).min()
    }
}

/// Slot of a request; its serial number changes with each attempt.
#[derive(Default)]
struct Slot {
    serial: u32,
    flow: Option<Box<Flow>>,
}

/// Requests in flight.
#[derive(Default)]
pub(super) struct Requests {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Requests {
    /// Adds a request; returns its position.
    pub(super) fn add(&mut self, flow: Flow) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.slots[at as usize].flow = Some(Box::new(flow));
        at
    }

    /// The request at a position.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    pub(super) fn get(&mut self, at: u32) -> &mut Flow {
        let flow = self.slots[at as usize].flow.as_deref_mut();
        flow.expect("a request is used until it has ended")
    }

    /// Serial number of the attempt at a position.
    pub(super) fn serial(&self, at: u32) -> u32 {
        self.slots[at as usize].serial
    }

    /// Whether this attempt is still being made.
    pub(super) fn is_current(&self, at: u32, serial: u32) -> bool {
        let slot = &self.slots[at as usize];
        slot.serial == serial && slot.flow.is_some()
    }

    /// Ends an attempt: events with its serial number mean nothing any more.
    pub(super) fn end_attempt(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        slot.serial = slot.serial.wrapping_add(1);
    }

    /// Removes a request that has ended.
    pub(super) fn remove(&mut self, at: u32) -> Option<Box<Flow>> {
        self.free.push(at);
        self.slots[at as usize].flow.take()
    }

    /// Number of requests in flight.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Positions of the requests in flight that fit.
    pub(super) fn that(&self, fits: impl Fn(&Flow) -> bool) -> Vec<u32> {
        let all = (0..).zip(&self.slots);
        let found = all.filter(|(_, slot)| slot.flow.as_deref().is_some_and(&fits));
        found.map(|(at, _)| at).collect()
    }
}
